"""Attention maps that were made elsewhere (a notebook, any model), brought in to be labelled like our own.

An .npz holds the weights; a JSONL file beside it has a line of facts for each. A map's id is a hash of its facts and
weights, so bringing a file in twice changes nothing.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..patterns.labelled_files import Map, read_map_file
from ..reading import lines_of, read_text
from ..store import labels
from ..store.database import Database
from ..store.label_checks import whole_numbers
from ..store.rows import Row

NEEDED = ("key", "checkpoint", "layer", "head")
FACTS = (*NEEDED, "task", "split", "row_id", "tokens", "separators", "causal", "weights_hash")
ELSEWHERE = "elsewhere"  # the "task" of maps that say none
MOST_BYTES = 200 * 2**20


def import_maps(db: Database, maps: Path, facts: Path) -> tuple[int, int]:
    """Store the maps of an .npz with their lines of facts, all or none.

    Args:
        db: where maps are stored.
        maps: the .npz file, a square array of weights a key.

    Returns:
        How many maps the file has, and how many of them are new.

    Raises:
        InputError: naming the map whose facts are missing, come twice, or are not those of a map.
        RightsError: one who is no admin asks.
    """
    db.person.must("admin", "import maps")
    weights, lines = read_map_file(maps), _lines(facts)
    unknown, missing = sorted(set(lines) - set(weights)), sorted(set(weights) - set(lines))
    if unknown or missing:
        problem = f"{unknown[0][:60]!r} has facts and no weights" if unknown else f"{missing[0][:60]!r} has no facts"
        raise InputError(
            f"Every map of {maps.name} has one line of facts in {facts.name} and every line a map; {problem} "
            f"({len(unknown) + len(missing)} such): pair the two files that belong together."
        )
    rows = [_row(key, weights[key], lines[key]) for key in weights]
    return len(rows), labels.store_maps(db, rows)


def _lines(file: Path) -> dict[str, dict[str, Any]]:
    origins: dict[str, dict[str, Any]] = {}
    try:
        text = read_text(file, most=MOST_BYTES)
    except OSError as error:
        raise InputError(
            f"Facts must be in a JSONL file of at most {MOST_BYTES >> 20} MB; {file.name[:120]} cannot be read "
            f"({error.strerror or error}). Check its name and size."
        ) from error
    for number, line in enumerate(lines_of(text), start=1):
        if not line.strip():
            continue
        line_name = f"line {number} of {file.name}"
        try:
            facts = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"Each line of facts is a JSON object; {line_name} is none: mend it.") from error
        if not isinstance(facts, dict) or any(facts.get(name) is None for name in NEEDED):
            raise InputError(f"A line of facts has {', '.join(NEEDED)}; {line_name} lacks one of them: give it.")
        if unexpected := sorted(set(facts) - set(FACTS)):
            raise InputError(
                f"A line of facts has {', '.join(FACTS)} and nothing else; {line_name} has {unexpected[0][:40]!r}: "
                "correct or remove it."
            )
        key = str(facts["key"])
        if key in origins:
            raise InputError(f"A map has one line of facts; {line_name} is the second for {key[:60]!r}: keep one.")
        origins[key] = whole_numbers(facts)
    return origins


def _row(key: str, weights: Map, facts: dict[str, Any]) -> Row:
    """A map as the store keeps it; `store_maps` checks the rest."""
    stored_weights = np.ascontiguousarray(weights, dtype="<f2")
    length, causal = len(stored_weights), facts.get("causal", False)
    inner = (
        stored_weights[1:] if causal and length > 1 else stored_weights
    )  # query 0 of a causal map has one weight, which is 1
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
