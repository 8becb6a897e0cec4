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
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from . import __version__
from .config import INSTALLED
from .errors import CLOSED, INTERRUPTED, AtlasError, InputError

_OUTPUT = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EPIPE, errno.EIO}
# By name: where the command or group of commands is, and the first sentence of its help, for the list of commands
COMMANDS = {
    "app": ("app:app", "Start the app and print its address."),
    "check": (
        "maps:check",
        "Check that the attention maps of a checkpoint are captured correctly.",
    ),
    "atlas": ("atlas:atlas", "Print all scores of all heads of a checkpoint."),
    "maps": ("maps:maps", "Save the attention maps of a sentence or pair as NPZ, or as an interactive page."),
    "heads": (
        "heads:heads",
        "Rank heads by attention between a target and a frame element in one sentence (Fig. 3 of Kovaleva et al. "
        "2019). The baseline is attention between other positions at the same distance.",
    ),
    "export": ("database:export", "Export every table of the database to FOLDER as Parquet."),
    "import": (
        "database:import_export",
        "Import the folder that `export` wrote into an empty database. To create a new database, "
        "set ATLAS_DB to a new file.",
    ),
    "backup": ("database:backup", "Back up the database to FILE; also works while the app is running."),
    "restore": (
        "database:restore_backup",
        "Restore the backup FILE; refuses to overwrite a database (choose another file with ATLAS_DB).",
    ),
    "import-database": (
        "database:import_database",
        "Copy the database FILE, with its labels and results, to the database of the app. If that database exists "
        "already, it is not overwritten.",
    ),
    "finetune": (
        "study_commands:finetune",
        "Fine-tune on tasks with several initialisations and seeds, and report the scores (Kovaleva et al., Table 1).",
    ),
    "reproduce": (
        "reproduce:reproduce",
        "Run all studies of the papers and report their published and reproduced numbers as HTML and Parquet.",
    ),
    "analyse": (
        "reproduce:analyse",
        "Analyse a checkpoint on a task with a quick selection of studies, all possible studies, or chosen studies.",
    ),
    "study": ("study_commands:app", "Run a study and print its results as a table."),
    "jobs": ("jobs:app", "List, start, resume and cancel jobs."),
    "patterns": ("patterns:app", "Train and evaluate classifiers of attention patterns."),
    "labels": ("labels:app", "Export, import and aggregate labels of attention maps."),
    "findings": (
        "findings:app",
        "List and export findings, which are results that were pinned on the pages of the app.",
    ),
    "hypothesis": ("hypothesis:app", "Register hypotheses about heads before testing them."),
}


class _OnUse(dict[str, Any]):
    """Commands by name; a command is imported when it is looked up, so that `--help` and `heads` start fast."""

    def __getitem__(self, name: str) -> Any:
        if super().__getitem__(name) is None:
            module, attribute = COMMANDS[name][0].split(":")
            found = getattr(import_module(f".commands.{module}", __package__), attribute)
            alone = typer.Typer()
            if isinstance(found, typer.Typer):
                alone.add_typer(found, name=name)
            else:
                alone.command(name)(found)
            self[name] = get_group(alone).commands[name]
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default  # noqa: SIM401 - `dict.get` imports nothing

    def items(self) -> Any:
        return [(name, self[name]) for name in self]

    def values(self) -> Any:
        return [self[name] for name in self]


class _Commands(TyperGroup):
    """The group of all commands, which lists them without importing them."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands, self._listing = _OnUse(dict.fromkeys(COMMANDS)), False

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if self._listing:
            return TyperCommand(cmd_name, help=COMMANDS[cmd_name][1])
        return super().get_command(ctx, cmd_name)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False


app = typer.Typer(
    cls=_Commands,
    help="Attention Atlas: what attention heads do, and whether it matters.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=INSTALLED,  # shells complete program names, which `python -m core` is not
)


def _show_version(value: bool) -> None:
    if value:
        print(f"attention-atlas {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_show_version, help="print the version of Attention Atlas and exit"
        ),
    ] = False,
) -> None:
    """Attention Atlas: what attention heads do, and whether it matters."""


def main() -> None:
    """Run a command of this program. Known errors exit with one message and status 2; Ctrl-C exits with status 130."""
    if signal.getsignal(signal.SIGINT) is _interrupted:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        _refuse_half_characters(sys.argv[1:])
        app()
        sys.stdout.flush()
    except AtlasError as error:
        _stop(str(error))
    except SystemExit as end:
        if end.code == INTERRUPTED and type(end) is SystemExit:  # `StoppedError` has been explained
            print(STOPPED, file=sys.stderr)  # without `_tell`, which would import what Ctrl-C has just interrupted
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
    _tell(sentence)
    sys.exit(2)


def _tell(sentence: str) -> None:
    from .commands.output import tell  # imported here because it takes 1 s at start

    tell(sentence, err=True)


def _refuse_half_characters(words: list[str]) -> None:
    """Refuse arguments that are not UTF-8, which contain surrogates and cannot be stored or printed."""
    for word in words:
        if any("\ud800" <= letter <= "\udfff" for letter in word):
            raise InputError(f"Command-line arguments must be UTF-8 text; got {word!r}. Retype this argument.")


if __name__ == "__main__":
    main()
