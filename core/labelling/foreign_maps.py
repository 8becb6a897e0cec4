"""Import of attention maps from other sources (a notebook, any model) for labelling.

An .npz file has the weights, and a JSONL file has one line of metadata per map. The ID of a map is a hash of its
metadata and weights, so importing a file twice changes nothing.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..patterns.labelled_files import Map, read_map_file
from ..reading import json_line, lines_of, read_text
from ..store import labels
from ..store.database import Database
from ..store.label_checks import whole_numbers
from ..store.rows import Row

NEEDED = ("key", "checkpoint", "layer", "head")
FACTS = (*NEEDED, "task", "split", "row_id", "tokens", "separators", "causal", "weights_hash")
ELSEWHERE = "elsewhere"  # the "task" of maps without one
MOST_BYTES = 200 * 2**20


def import_maps(db: Database, maps: Path, facts: Path) -> tuple[int, int]:
    """Import all maps of an .npz file with metadata, or none. Return the number of maps and the number of new maps.

    The .npz file has one square array per key, the JSONL file one line of metadata per key. Raises InputError, naming
    the map, for missing, duplicate or invalid metadata; RightsError unless the user is an admin.
    """
    db.person.must("admin", "import maps")
    weights = read_map_file(maps)
    lines: dict[str, dict[str, Any]] = {}
    try:
        text = read_text(facts, most=MOST_BYTES)
    except OSError as error:
        raise InputError(
            f"The metadata file must be a readable JSON Lines file of at most {MOST_BYTES >> 20} MB; "
            f"{facts.name[:120]} cannot be used ({error.strerror or error}). Check its name and size."
        ) from error
    for number, line in enumerate(lines_of(text), start=1):
        if not line.strip():
            continue
        line_name = f"line {number} of {facts.name}"
        try:
            if not isinstance(told := json_line(line), dict):
                raise ValueError(line)
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"A line of metadata must be a JSON object; {line_name} has something else. Correct this line."
            ) from error
        if any(told.get(name) is None for name in NEEDED):
            raise InputError(
                f"A line of metadata must have the fields {', '.join(NEEDED)}; {line_name} lacks at least one of them. "
                "Add the missing fields."
            )
        if unexpected := sorted(set(told) - set(FACTS)):
            raise InputError(
                f"A line of metadata may only have the fields {', '.join(FACTS)}; {line_name} has "
                f"{unexpected[0][:40]!r}. Correct or remove this field."
            )
        key = str(told["key"])
        if key in lines:
            raise InputError(
                f"Each map must have one line of metadata; {line_name} is the second one for "
                f"{key[:60]!r}. Keep one of the two lines."
            )
        lines[key] = whole_numbers(told)
    unknown, missing = sorted(set(lines) - set(weights)), sorted(set(weights) - set(lines))
    if unknown or missing:
        problem = (
            f"{unknown[0][:60]!r} has metadata but no weights"
            if unknown
            else f"{missing[0][:60]!r} has weights but no metadata"
        )
        raise InputError(
            f"Maps in {maps.name} and lines in {facts.name} must match one to one; {len(unknown) + len(missing)} of "
            f"them have no counterpart, such as {problem}. Choose two files that belong together."
        )
    rows = [_row(key, weights[key], lines[key]) for key in weights]
    return len(rows), labels.store_maps(db, rows)


def _row(key: str, weights: Map, facts: dict[str, Any]) -> Row:
    """Return a map as a row of the store; `store_maps` checks the other fields."""
    stored_weights = np.ascontiguousarray(weights, dtype="<f2")
    length, causal = len(stored_weights), facts.get("causal", False)
    # Query 0 of a causal map has a single weight of 1
    inner = stored_weights[1:] if causal and length > 1 else stored_weights
    given_facts = {name: facts[name] for name in FACTS if facts.get(name) is not None and name != "key"}
    digest = hashlib.sha256(
        json.dumps([key, given_facts], sort_keys=True, default=str).encode() + stored_weights.tobytes()
    )
    return {
        "map_id": f"x{digest.hexdigest()[:15]}",
        "weights_hash": hashlib.sha256(str(facts["checkpoint"]).encode("utf-8", "replace")).hexdigest()[:16],
        "task": ELSEWHERE,
        "split": None,
        "row_id": key,
        "tokens": [str(position) for position in range(length)],
        "separators": [],
        "seed": None,
        **given_facts,
        "length": length,
        "causal": causal,
        "maximum": round(float(inner.max()), 4),
        "weights": stored_weights.tobytes(),
    }
