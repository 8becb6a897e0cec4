"""Studies that ran as a part of another job: where their units came from, and each kept as a run of its own."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ...store.database import Database
from ...store.rows import Row, plain
from ...store.runs import Provenance, record_run, store_rows
from ..contract import Study, as_json
from ..provenance import provenance_of_run

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


def keep_as_run(
    db: Database, study: Study[Any, Any], options: Any, said: Mapping[str, Any], rows: Sequence[Row], *,
    scores: bool = True,
) -> str:  # fmt: skip
    """Keep a study's rows as a run of its own, as if it had been asked alone.

    Args:
        db: where it is kept.
        said: fields of `Provenance` that its units said (`where_from`).
        scores: whether scores of heads among them are the atlas's too.
    """
    given = as_json(options)
    run = record_run(db, study.name, given, provenance_of_run(given, said), title=study.title(options))
    store_rows(db, run, rows, scores=scores)
    return run
