"""A study's rows as a job would make them: every unit through JSON, in any order."""

import json
import random
from collections.abc import Mapping
from typing import Any

from core.jobs import worker
from core.studies import lookup


def rows_of(study: str, options: Mapping[str, Any], order: random.Random | None = None) -> list[dict[str, Any]]:
    """All units' partial results, in the order of the units or shuffled, as the study's rows; round by round."""
    divided = json.loads(json.dumps(worker.divide(study, dict(options))))
    units, found = divided["units"], []
    while units:
        found += [worker.run_unit(study, divided["options"], unit)["rows"] for unit in units]
        if order is not None:
            order.shuffle(found)
        so_far = json.loads(json.dumps([row for rows in found for row in rows]))
        in_rounds = getattr(lookup.find_study(study), "in_rounds", False)
        units = json.loads(json.dumps(worker.more(study, divided["options"], so_far)["units"])) if in_rounds else []
    return worker.summarize(study, divided["options"], json.loads(json.dumps([row for rows in found for row in rows])))[
        "rows"
    ]
