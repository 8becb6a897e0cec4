"""Each page opened by its link where torch is not.

One interpreter imports all parts of pages and the libraries that most of them need (tests/pages/forked.py), and a fork
of it opens views one after the other, until one of them brings in a heavy module: the next fork goes on after it. So
imports, and what ships, are paid once, and what a view itself brings in can be told apart.
"""

import importlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pages.parts.shell import resources
from tests.pages.opening import opened
from tests.pages.scanned import scan_once

PARTS = Path(__file__).resolve().parents[2] / "pages" / "parts"
LIGHT = ("altair", "pandas", "PIL.Image", "pyarrow.parquet", "scipy.stats")
HEAVY = {"torch", "transformers", "spacy"}


def import_parts() -> None:
    """All modules of pages/parts; none of them may bring in a heavy one."""
    sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # as app.py does
    names = [".".join(file.relative_to(PARTS.parents[1]).with_suffix("").parts) for file in PARTS.rglob("*.py")]
    for name in (*LIGHT, *(name.removesuffix(".__init__") for name in names)):
        importlib.import_module(name)
    scan_once()
    assert not HEAVY & set(sys.modules), "parts of pages must not import torch, transformers or spaCy"


def looked_at(name: str) -> dict[str, Any]:
    """What a view shows to who comes with an empty database, and which heavy modules came in with it."""
    app = opened(name, timeout=60)
    inputs = [*app.selectbox, *app.text_input, *app.button, *app.segmented_control, *app.multiselect]
    return {
        "titles": [title.value for title in app.title],
        "troubles": [one.value for one in (*app.exception, *app.error)],
        "says what to do": bool(inputs or app.info),
        "heavy": sorted(HEAVY & set(sys.modules)),
    }


def _until_heavy(names: list[str], folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Views in turn, each with an empty database, until one has brought in a heavy module: later ones would have it."""
    for name in names:
        os.environ["ATLAS_DB"] = str(folder / f"{name.replace('/', '-')}.duckdb")
        resources.database.clear()
        yield name, looked_at(name)
        if HEAVY & set(sys.modules):
            return


def _in_a_fork(names: list[str], folder: Path) -> dict[str, dict[str, Any]]:
    """The first of these views, at least: what ships is read once for all of a fork."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        status = 1
        try:
            with os.fdopen(writer, "w") as stream:
                for name, page in _until_heavy(names, folder):
                    print(json.dumps({name: page}), file=stream, flush=True)
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader) as stream:
        found = {name: page for line in stream for name, page in json.loads(line).items()}
    _, status = os.wait()
    if status:
        found[names[len(found)]] = {"troubles": [f"its process ended with {status}"], "titles": [], "heavy": []}
    return found


def all_of(names: list[str], folder: Path) -> dict[str, dict[str, Any]]:
    """What each view shows, in as many forks as views bring in a heavy module."""
    found: dict[str, dict[str, Any]] = {}
    while len(found) < len(names):
        found |= _in_a_fork(names[len(found) :], folder)
    return found
