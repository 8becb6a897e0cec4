"""Stored runs beside a report's steps: fine-tuning with other settings, which a sentence sets beside the plan's own.

No step makes them. Where somebody did (`python -m core finetune CHECKPOINT --task rte --set pooling=sep --seeds 3`), a
report finds them by their settings.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..store.rows import Row, from_json
from ..studies.tuning import finetune
from ..tuning.recipe import Recipe
from .evidence import Origin, StepResult
from .ids import Part
from .plan import ReportStep

SETTINGS: dict[Part, Mapping[str, int | str]] = {
    Part.BY_SEPARATOR: {"pooling": "sep"},
    Part.FRESH_LAST: {"reset_last": 2, "train_last": 2},
}


def stored_beside(
    results: Sequence[StepResult], stored: Iterable[Row], rows_of: Callable[[str], Sequence[Row]]
) -> list[StepResult]:
    """Stored fine-tuning with other SETTINGS, on each task that `results` fine-tune on, from the same weights and rows.

    Args:
        stored: runs of `finetune`, as the store describes them, the newest first.

    Returns:
        A result for each setting and task that a run was found for and that `results` lack; its rows are of that task.
    """
    stored_runs = [run | {"options": from_json(run["options"])} for run in stored]
    measured_parts = {(result.step.checkpoint, result.step.part, result.task) for result in results}
    beside_results = []
    for result in results:
        if result.step.part != Part.TUNING or result.run is None:
            continue
        for part, settings in SETTINGS.items():
            run = next((run for run in stored_runs if _is_like(result, run, settings)), None)
            if run is not None and (result.step.checkpoint, part, result.task) not in measured_parts:
                rows = tuple(row for row in rows_of(run["run"]) if row.get("task") == result.task)
                beside_results.append(_result(part, run, result, rows))
    return beside_results


def _is_like(result: StepResult, run: Row, settings: Mapping[str, int | str]) -> bool:
    """Whether a run is as the plan's but for these settings."""
    planned, run_options = result.step.asked, run["options"]
    starts_alike = all(run_options.get(name) == planned.get(name) for name in ("checkpoint", "preset"))
    return (
        starts_alike
        and run_options.get("settings") == {**planned["settings"], **settings}
        and result.task in run_options.get("tasks", ())
        and "pretrained" in run_options.get("initialisations", ())
        and _resolved(run_options.get("data")) == _resolved(planned.get("data"))
        and result.origin.weights_hash in (None, run.get("weights_hash"))
        and ("pooling" not in settings or _reads_first_token(planned))
    )


def _reads_first_token(planned: Mapping[str, Any]) -> bool:
    """Whether the plan's own runs classify by [CLS], which the sentence sets [SEP] beside."""
    return Recipe.of(planned["preset"], planned["settings"]).pooling in ("auto", "cls")


def _resolved(folder: Any) -> str | None:
    """Where rows come from, as one path."""
    return None if folder is None else str(Path(str(folder)).expanduser().resolve())


def _result(part: Part, run: Row, result: StepResult, rows: Sequence[Row]) -> StepResult:
    options = finetune.STUDY.read(run["options"])
    title = f"{part} of {Path(result.step.checkpoint).name}, {result.task}"
    step = ReportStep(part, finetune.STUDY.name, options, result.step.checkpoint, title, result.task)
    return StepResult(step, run["run"], rows, "", Origin.of(run | {"seconds": None}))
