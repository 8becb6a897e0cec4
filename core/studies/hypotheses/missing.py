"""What is not measured yet of a checkpoint's heads and could be: the studies of one job, with their options."""

import json
from collections.abc import Set

from ... import config
from ...errors import AtlasError
from ..contract import as_json
from ..lookup import find_study
from ..preflight import check_runnable
from .measure_heads import Asked

LOOKING = ("statistics", "roles", "norms", "features", "relations", "redundancy", "effective")
CLASSES, WHY, EFFECTS = "classify-maps", "why", ("importance", "operators")
GIVES = {  # what the page calls what these give
    CLASSES: "the pattern class of maps",
    WHY: "what decides where heads look",
    "importance": "importance by gradients",
    "operators": "the loss without each head",
}
TASK, ROWS, FEWER = "sst2", 300, 100  # FEWER: of studies that run the model again for every head


def missing(
    checkpoint: str, task: str | None, *, measured: Set[str], class_set: str, data: str | None = None
) -> list[Asked]:
    """Studies of which nothing is stored or ships, each with its options; none that this checkpoint cannot have.

    Args:
        task: whose rows are used; None for SST-2.
        data: the folder of the rows; None for the bundled samples.

    Returns:
        What one job is to do, in the order of LOOKING, CLASSES, WHY, EFFECTS.
    """
    names = [name for name in (*LOOKING, CLASSES, WHY, *EFFECTS) if name not in measured]
    if "disable" in measured and "operators" in names:
        names.remove("operators")
    planned = [_asked(name, checkpoint, task or TASK, class_set, data) for name in names]
    return [study for study in planned if study is not None]


def gives(study: str) -> str:
    """What a study measures of heads, in a few words."""
    return GIVES.get(study) or find_study(study).gives


def _asked(name: str, checkpoint: str, task: str, class_set: str, data: str | None) -> Asked | None:
    study_options: dict[str, object] = {"checkpoint": checkpoint}
    try:
        if name in LOOKING:
            study_options |= {"tasks": [task]}
        elif name == WHY:
            study_options |= {"tasks": [task], "removal": 0, "single_heads": False}
        elif name == CLASSES:
            file = config.ANNOTATIONS / class_set / "classifier.safetensors"
            study_options = {"checkpoints": [checkpoint], "task": task, "limit": ROWS, "classifier": str(file),
                     "name": f"bundled, {class_set}", "class_set": class_set}  # fmt: skip
        elif name == "importance":
            study_options |= {"task": task, "limit": ROWS, "sweep": None}
        else:
            study_options |= {"task": task, "limit": FEWER, "operators": ["zero", "mean"]}
        study = find_study(name)
        study_options["data"] = data
        check_runnable(study, study_options)
        return Asked(name, json.dumps(as_json(study.read(study_options))))
    except AtlasError:
        return None
