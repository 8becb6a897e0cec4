"""Try every bad input where it comes in and print the table: `python -m tests.robustness [--kind NAME] [--json]`."""

import argparse
import json
import sys
import tempfile
import traceback
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.robustness import corpus


def tried(kind: str) -> dict[str, object]:
    """Every input of a kind: how many were refused in a sentence, how many taken as they are, and what failed."""
    said, failed = [], {}
    with tempfile.TemporaryDirectory() as folder, corpus.opened(Path(folder)) as place:
        for name in corpus.KINDS[kind].cases:
            try:
                said.append(corpus.tried(place, kind, name))
            except Exception as error:
                failed[name] = f"{type(error).__name__}: {str(error)[:300]}"
                traceback.print_exc()
    refused = sum(one is not None for one in said)
    return {
        "kind": kind,
        "tried on": corpus.KINDS[kind].door,
        "inputs": len(corpus.KINDS[kind].cases),
        "one sentence": refused,
        "taken": len(said) - refused,
        "failed": failed,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=corpus.KINDS)
    parser.add_argument("--json", action="store_true", help="print one JSON object a kind")
    options = parser.parse_args()
    rows = [tried(kind) for kind in ([options.kind] if options.kind else corpus.KINDS)]
    rows.append(
        {
            "kind": "all",
            "tried on": "",
            **{name: sum(row[name] for row in rows) for name in ("inputs", "one sentence", "taken")},
        }
    )
    failed = sum(len(row.get("failed", ())) for row in rows)
    if options.json:
        print("\n".join(json.dumps({"robustness": row.pop("kind"), **row}) for row in rows))
    else:
        show(rows)
    sys.exit(1 if failed else 0)


def show(rows: list[dict[str, object]]) -> None:
    columns = ("kind", "tried on", "inputs", "one sentence", "taken", "failed")
    table = Table(*columns, title="Bad inputs: no traceback, nothing stored changed")
    for row in rows:
        table.add_row(
            *(", ".join(row[name]) if name == "failed" else str(row[name]) for name in columns if name in row)
        )
    Console().print(table)


if __name__ == "__main__":
    main()
