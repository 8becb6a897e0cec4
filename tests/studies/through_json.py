"""A study's rows as a job would make them: every unit through JSON, in any order."""

import json
import random
from collections.abc import Mapping
from typing import Any

from core.jobs import work


def rows_of(study: str, options: Mapping[str, Any], order: random.Random | None = None) -> list[dict[str, Any]]:
    """All units' partial results, in the order of the units or shuffled, as the study's rows."""
    divided = json.loads(json.dumps(work.divide(study, dict(options))))
    found = [work.run_unit(study, divided["options"], unit)["rows"] for unit in divided["units"]]
    if order is not None:
        order.shuffle(found)
    return work.summarize(study, divided["options"], json.loads(json.dumps([row for rows in found for row in rows])))[
        "rows"
    ]
