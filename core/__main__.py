"""The commands: `python -m core --help` in a clone, `attention-atlas --help` if installed."""

import errno
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Annotated


def _interrupted(number: int, frame: FrameType | None) -> None:
    os.write(2, STOPPED.encode() + b"\n")
    os._exit(130)


os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # for torch: spinning threads starve on a busy machine
STOPPED = "Stopped. Run the same command again to start over."
if (__name__ == "__main__" or Path(sys.argv[0]).stem == "attention-atlas") and signal.getsignal(
    signal.SIGINT
) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _interrupted)  # so that Ctrl-C during the imports below prints a message as well

# ruff: noqa: E402 - the first line of `main` gives Ctrl-C back to the commands
import typer

from . import __version__
from .commands.analyse import analyse
from .commands.app import app as app_of_pages
from .commands.atlas import atlas
from .commands.check import check
from .commands.database import backup, export, import_database, import_export, restore_backup
from .commands.findings import app as findings_app
from .commands.heads import heads
from .commands.hypothesis import app as hypothesis_app
from .commands.jobs import app as jobs
from .commands.labels import app as labels_app
from .commands.maps import maps
from .commands.output import CLOSED, INTERRUPTED, StoppedError, tell
from .commands.patterns import app as patterns_app
from .commands.patterns import shares
from .commands.reproduce import reproduce
from .commands.study_commands import OWN, command
from .config import INSTALLED
from .errors import AtlasError, InputError
from .studies.lookup import find_study, study_modules
from .study_names import CURRENT_NAMES

_OUTPUT = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EPIPE, errno.EIO}
app = typer.Typer(
    help="Attention Atlas: what attention heads do, and whether it matters.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=INSTALLED,  # shells complete program names, which `python -m core` is not
)


def _show_version(value: bool) -> None:
    if value:
        tell(f"attention-atlas {__version__}")
        raise typer.Exit


study = typer.Typer(help="Run a study and print its results as a table.", no_args_is_help=True)
app.add_typer(study, name="study")
app.command("app")(app_of_pages)
app.command("check")(check)
app.command("atlas")(atlas)
app.command("maps")(maps)
app.command("heads")(heads)
app.add_typer(jobs, name="jobs")
app.command("export")(export)
app.command("import")(import_export)
app.command("backup")(backup)
app.command("restore")(restore_backup)
app.command("import-database")(import_database)
app.add_typer(patterns_app, name="patterns")
app.add_typer(labels_app, name="labels")
app.add_typer(findings_app, name="findings")
app.add_typer(hypothesis_app, name="hypothesis")
study.command("shares")(shares)
for experiment in map(find_study, sorted(study_modules())):
    if experiment.typed_after is not None:
        group = study if experiment.typed_after else app
        run = command(experiment, OWN.get(experiment.name))
        group.command()(run)  # named after its function, with dashes
        for former in (former for former, name in CURRENT_NAMES.items() if name == experiment.name):
            group.command(former, hidden=True)(run)
app.command("reproduce")(reproduce)
app.command("analyse")(analyse)


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="print the version and exit")
    ] = False,
) -> None:
    """Attention Atlas: what attention heads do, and whether it matters."""


def main() -> None:
    """Run a command of this program. Errors for users print one message and exit with 2; Ctrl-C exits with 130."""
    if signal.getsignal(signal.SIGINT) is _interrupted:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        _refuse_half_characters(sys.argv[1:])
        app()
        sys.stdout.flush()
    except AtlasError as error:
        _stop(str(error))
    except SystemExit as end:
        if end.code == INTERRUPTED and not isinstance(end, StoppedError):
            tell(STOPPED, err=True)
        raise
    except MemoryError:
        _stop("The command needs more memory than is free. Use fewer or shorter inputs, or end other programs.")
    except OSError as error:
        if error.errno not in _OUTPUT:
            raise
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - what is left in the buffer goes nowhere
        if error.errno == errno.EPIPE:
            sys.exit(CLOSED)
        _stop(f"The output could not be written ({error.strerror}). Redirect standard output to another place.")


def _stop(sentence: str) -> None:
    tell(sentence, err=True)
    sys.exit(2)


def _refuse_half_characters(words: list[str]) -> None:
    """Refuse arguments that are not UTF-8, which contain surrogates and cannot be stored or printed."""
    for word in words:
        if any("\ud800" <= letter <= "\udfff" for letter in word):
            raise InputError(f"Command-line arguments must be UTF-8 text; got {word!r}. Retype this argument.")


if __name__ == "__main__":
    main()
