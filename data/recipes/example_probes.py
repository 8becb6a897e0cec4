"""Measure what the Probes and Subnetworks pages open with: the studies on the bundled encoder and bundled data.

    python -m data.recipes.example_probes [STUDY ...]

Writes data/examples/probes.json (rows, options, hash of the weights). A study that is not named keeps what it had.
"""

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from core import config
from core.jobs import worker
from core.store.rows import plain
from core.store.shipped_record import EXAMPLES as FILE
from core.studies import lookup

TUNING = {"dev_limit": 300, "precision": "bfloat16"}  # on a processor that computes in it
STUDIES: dict[str, dict[str, Any]] = {
    "syntax": {"limit": 500},
    "probe": {"limit": 400},
    "representation": {},
    "transfer": {"tasks": ["sst2"], "settings": TUNING},
    "subnetworks": {"task": "sst2", "settings": TUNING, "shares": [0, 0.2, 0.4, 0.6, 0.8]},
}


def partials(study: str, options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every unit's partial result, round by round."""
    divided = worker.divide(study, options)
    done: list[dict[str, Any]] = []
    units = divided["units"]
    while units:
        for unit in units:
            print(f"  {unit['key']}", flush=True)
            outcome = worker.run_unit(study, divided["options"], unit)
            done += outcome["rows"]
            yield outcome
        units = worker.more(study, divided["options"], done)["units"] if lookup.find_study(study).in_rounds else []


def measured(study: str, options: dict[str, Any]) -> dict[str, Any]:
    outcomes = list(partials(study, {"checkpoint": config.ENCODER} | options))
    complete = worker.divide(study, {"checkpoint": config.ENCODER} | options)["options"]
    rows = worker.summarize(study, complete, [row for outcome in outcomes for row in outcome["rows"]])["rows"]
    return {"options": complete, "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "code_version": config.code_version(), "rows": [short(row) for row in plain(rows)]}  # fmt: skip


def short(value: Any) -> Any:
    """Numbers with five digits: the file is for pictures."""
    if isinstance(value, dict):
        return {name: short(part) for name, part in value.items()}
    if isinstance(value, list):
        return [short(part) for part in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def main() -> None:
    known = json.loads(FILE.read_text(encoding="utf-8")) if FILE.is_file() else {}
    for study in sys.argv[1:] or STUDIES:
        print(study, flush=True)
        known[study] = measured(study, STUDIES[study])
        FILE.write_text(json.dumps(known, separators=(",", ":"), ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
