"""Where units of a study came from, where the study ran as a part of another job: what a run of its own would say."""

import json
from collections.abc import Sequence
from typing import Any

from core.store.rows import plain
from core.store.runs import Provenance

SAID_ONCE = ("weights_hash", "device", "dtype", "split", "task", "seed")  # of a run: the same in all of its units


def said_of(provenance: Provenance) -> str:
    """What a unit says of itself, as JSON."""
    return json.dumps(plain({name: value for name, value in provenance.as_row().items() if value is not None}))


def where_from(units: Sequence[str]) -> dict[str, Any]:
    """The provenance of a run whose units said these: what all say, and the ids of all rows, each once.

    Args:
        units: of each unit what `said_of` gave, at least one.

    Returns:
        Fields of `Provenance` by name.
    """
    said = [json.loads(unit) for unit in units]
    about = {name: said[0][name] for name in SAID_ONCE if name in said[0]}
    ids = dict.fromkeys(row for one in said for row in one.get("row_ids") or ())
    return about | ({"row_ids": list(ids)} if ids else {})
