"""A study of a classifier asked for in the terminal's words, with its data and a database of its own."""

from collections.abc import Callable
from pathlib import Path

from typer.testing import CliRunner

import core.__main__
from tests.studies.planted import save_planted, write_rows


def asking(checkpoint: Path, data: Path, database: Path) -> Callable[..., str]:
    """command(study, *arguments) gives what it prints; errors of the app are raised."""

    def command(study: str, *arguments: object) -> str:
        done = CliRunner().invoke(
            core.__main__.app,
            ["study", study, str(checkpoint), "--data", str(data), "--workers", "1", *map(str, arguments)],
            env={"ATLAS_DB": str(database), "OMP_NUM_THREADS": "1", "COLUMNS": "300"},
        )
        if done.exception and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code == 0, done.output
        return done.stdout

    return command


def asking_planted(folder: Path, *, rows: int = 24) -> Callable[..., str]:
    """Of the classifier with a planted head, made in `folder` with its rows."""
    checkpoint, data = save_planted(folder / "checkpoint"), write_rows(folder / "data", rows=rows)
    return asking(checkpoint, data, folder / "atlas.duckdb")
