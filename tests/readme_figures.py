"""The figures that README names, each from the JSON of the command that stands beside it: tests/readme_figures.json.

    python -m tests.readme_figures [NAME ...]

runs the commands again, in a database of their own, and writes what README takes of their answers.
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from core import config

FILE = Path(__file__).with_suffix(".json")
COMMANDS = {
    "atlas": "atlas atlas-encoder --task sst2 --score statistics/ --json",
    "check": "check atlas-encoder --json",
    "maps": 'maps atlas-encoder --text "The cat sat." --pair "It purred." --out maps.npz --json',
    "train": "patterns train --class-set bert --json",
    "finetune": "finetune atlas-encoder --task sst2 --json",
}


def answer(command: str) -> dict[str, Any]:
    """What a command prints as JSON, with an empty database."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"ATLAS_DB": f"{folder}/atlas.duckdb", "PYTHONPATH": str(config.PROJECT)}
        words = [sys.executable, "-m", "core", *shlex.split(command)]
        done = subprocess.run(words, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def figures(name: str, answered: dict[str, Any]) -> dict[str, Any]:
    """What README takes of one answer."""
    rows = answered["rows"]
    if name == "atlas":
        heads = {row["score"].partition("/")[2]: [] for row in rows}
        for row in rows:
            heads[row["score"].partition("/")[2]].append([row["layer"], row["head"], round(row["value"], 3), row["n"]])
        return {score: heads[score] for score in ("next", "separator", "first") if score in heads}
    if name == "check":
        return {"passed": sum(bool(row.get("passed")) for row in rows), "rows": len(rows)}
    if name == "maps":
        return rows[0] | {"tokens": answered["provenance"]["tokens"]}
    if name == "train":
        wanted = ("on", "macro_f1", "low", "high", "identity_f1", "n_labels", "maps")
        scores = [row for row in answered["beside"] if row.get("part") == "scores"]
        return {row["on"]: {key: row.get(key) for key in wanted} for row in scores}
    (run,) = [row for row in rows if row.get("kind") == "run"]
    return {key: run[key] for key in ("accuracy", "baseline", "majority", "dev_rows")}


def main() -> None:
    """Run the commands named, or all, and keep their figures."""
    known = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    for name in sys.argv[1:] or COMMANDS:
        known[name] = {"command": COMMANDS[name], "figures": figures(name, answer(COMMANDS[name]))}
        FILE.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
