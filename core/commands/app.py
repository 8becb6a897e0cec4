"""`attention-atlas app`: the pages, served by Streamlit in a process of its own."""

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
    port: Annotated[int, typer.Option(min=1, max=65535, help="port of this machine that the app listens on")] = 8501,
    db: Annotated[Path | None, typer.Option("--db", help="database file; default: ATLAS_DB, or your own")] = None,
) -> None:
    """Start the app, and print the address to open in a browser.

    Its process never imports the package `attention_atlas`: `core` and `pages` are at the top there, as in a clone.
    """
    command = app_command(port, db)
    sys.stdout.flush()
    if os.name == "posix":
        os.execv(command[0], command)  # noqa: S606 - this Python; a signal reaches the app itself
    sys.exit(subprocess.run(command, check=False).returncode)  # noqa: S603 - this Python


def app_command(port: int, db: Path | None) -> list[str]:
    """The command that serves the pages. Its folder comes first on the path of modules, before that of the caller.

    Streamlit reads the settings in `.streamlit/config.toml` of that folder after any others.
    """
    if find_spec("streamlit") is None:
        raise InputError(
            "The app needs Streamlit, which is not installed here: pip install 'attention-atlas[app]', and try again."
        )
    script = str(config.PROJECT / "app.py")
    own = ["--", "--db", str(db)] if db else []
    return [sys.executable, "-P", "-m", "streamlit", "run", script, f"--server.port={port}", *own]
