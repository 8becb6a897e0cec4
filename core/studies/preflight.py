"""Checks that a checkpoint and its examples meet the requirements of a study, before a job starts."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import config
from ..errors import CheckpointError, InputError
from ..models.config_files import classifies, read_config
from ..models.present import located
from ..tasks import own
from ..tasks.glue import HUB, label_order, must_have_labels, task_of
from ..tuning.saved_checkpoints import shown_folder, training_log
from .contract import Need, Study


def check_runnable(study: Study[Any, Any], options: Mapping[str, Any]) -> None:
    """Raise InputError if a local checkpoint is missing or cannot classify the examples, or if these have no labels."""
    for name in ("checkpoint", "before", *(["compare"] if options.get("compare") else [])):
        chosen = str(options.get(name) or "")
        if chosen.startswith(("data/", "/", "./", "~")) and _folder(chosen) is None:
            raise InputError(
                f"The checkpoint {chosen} must be stored on this machine; it is not stored here (bundled results come "
                "without their checkpoints). Fine-tune a checkpoint on the Fine-tuning page and choose it."
            )
    checkpoint, task = options.get("checkpoint"), options.get("task")
    needs = study.needs_of(options)
    if Need.LABELS in needs:
        for name in filter(None, (task, *(options.get("tasks") or ()))):
            must_have_labels(name)
    if Need.CLASSIFIER not in needs or not checkpoint or (folder := _folder(str(checkpoint))) is None:
        return
    known = read_config(folder, str(checkpoint))
    if not classifies(known) and not _tuned_on(folder):
        raise InputError(
            f"The checkpoint must be a classifier; {checkpoint} has no classification head. Fine-tune it on the "
            "Fine-tuning page (about a minute with the small recipe), or choose a fine-tuned checkpoint."
        )
    if task and (trained := _tuned_on(folder)) and not _judges(trained, task, known.get("id2label")):
        raise InputError(
            "The task must be the one that the checkpoint was fine-tuned on, or a file with its labels; "
            f"{shown_folder(folder)} was fine-tuned on {task_of(trained).name}, not on "
            f"{task_of(task).name}. Choose that task, or another checkpoint."
        )


def check_paths(study: Study[Any, Any], options: Any) -> None:
    """Raise InputError if a path in the options of the study is one that users may not access."""
    for path, to_write in study.paths(options):
        if path != HUB:
            config.inside(path, to_write=to_write)


def _judges(trained: str, task: str, labels: Mapping[str, str] | None) -> bool:
    """Return whether a classifier can be evaluated on a task: its training task, or a custom file with its labels."""
    if own.is_own(task) and labels:
        try:
            return bool(label_order(task_of(task), {int(output): name for output, name in labels.items()}))
        except CheckpointError:
            return False
    return task_of(trained).key == task_of(task).key


def _folder(name: str) -> Path | None:
    places = (place for place in (located(name), config.PROJECT / name) if place is not None)
    return next((place for place in places if config.is_folder(place) and (place / "config.json").is_file()), None)


def _tuned_on(folder: Path) -> str | None:
    return training_log(folder).get("task")
