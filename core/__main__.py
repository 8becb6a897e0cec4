"""The same studies from a terminal: `python -m core --help`."""

import sys

import typer

from core.commands.check import check
from core.commands.maps import maps
from core.errors import AtlasError

app = typer.Typer(
    help="Attention Atlas: what attention heads do, and whether it matters.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
study = typer.Typer(help="Run one experiment and print its rows.", no_args_is_help=True)
app.add_typer(study, name="study")
app.command("check")(check)
app.command("maps")(maps)


def main() -> None:
    """Run a command; an error meant for people is one sentence on standard error, exit status 2."""
    try:
        app()
    except AtlasError as error:
        typer.echo(str(error), err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
