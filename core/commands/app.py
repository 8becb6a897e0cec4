"""`attention-atlas app`: the app, served by Streamlit in its own process."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from .. import config
from ..errors import InputError


def app(
    port: Annotated[int, typer.Option(min=1, max=65535, help="network port on which the app listens")] = 8501,
    db: Annotated[
        Path | None,
        typer.Option(
            "--db",
            help="path of the database file (default: the path in ATLAS_DB, otherwise the "
            "default database of Attention Atlas)",
        ),
    ] = None,
) -> None:
    """Start the app and print its address.

    The process does not import the package `attention_atlas`: `core` and `pages` are top-level modules there, as in a
    clone.
    """
    command = app_command(port, db)
    sys.stdout.flush()
    if os.name == "posix":
        os.execv(command[0], command)  # noqa: S606 - this Python; a signal reaches the app itself
    sys.exit(subprocess.run(command, check=False).returncode)  # noqa: S603 - this Python


def app_command(port: int, db: Path | None) -> list[str]:
    """Return the command that starts the app on a port. Its option -P keeps the working directory out of the module
    search path.

    Streamlit reads `.streamlit/config.toml` in the folder of app.py last.
    """
    if find_spec("streamlit") is None:
        raise InputError(
            "The app needs Streamlit, which is not installed. Run pip install 'attention-atlas[app]', and try again."
        )
    script = str(config.PROJECT / "app.py")
    own = ["--", "--db", str(db)] if db else []
    return [sys.executable, "-P", "-m", "streamlit", "run", script, f"--server.port={port}", *own]
