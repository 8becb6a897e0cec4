"""Each page opened by its link where nothing was opened before: `python -m tests.pages.opened FOLDER NAME ...`.

One interpreter imports all parts of pages and the libraries that most of them need, and forks for each page, so that
what a page itself brings in can be told apart, and imports are paid once.
"""

import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from tests.pages.opening import opened

PARTS = Path(__file__).resolve().parents[2] / "pages" / "parts"
LIGHT = ("altair", "pandas", "PIL.Image", "pyarrow.parquet", "scipy.stats")
HEAVY = {"torch", "transformers", "spacy"}


def import_parts() -> None:
    """All modules of pages/parts; none of them may bring in a heavy one."""
    sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # as app.py does
    names = [".".join(file.relative_to(PARTS.parents[1]).with_suffix("").parts) for file in PARTS.rglob("*.py")]
    for name in (*LIGHT, *(name.removesuffix(".__init__") for name in names)):
        importlib.import_module(name)
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


def _in_a_fork(name: str, folder: Path) -> dict[str, Any]:
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.environ["ATLAS_DB"] = str(folder / f"{name.replace('/', '-')}.duckdb")
        status = 1
        try:
            with os.fdopen(writer, "w") as stream:
                json.dump(looked_at(name), stream)
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader) as stream:
        text = stream.read()
    _, status = os.wait()
    return json.loads(text) if status == 0 else {"troubles": [f"its process ended with {status}"]}


if __name__ == "__main__":
    folder, *names = sys.argv[1:]
    import_parts()
    print(json.dumps({name: _in_a_fork(name, Path(folder)) for name in names}))
