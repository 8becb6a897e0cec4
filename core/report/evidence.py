"""Results of the steps of a report, and queries on them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from ..store.rows import Row, plain
from ..studies.attention.records import Score
from ..studies.records import picked
from ..studies.tuning.records import finetuned_task
from . import readings
from .ids import Part
from .plan import OTHER_SEEDS, ReportStep

ON_TRAIN_ROWS = {  # each cross-fitted
    Part.HEADS: Part.CROSSED,
    Part.LAYERS: Part.CROSSED_LAYERS,
    Part.PRUNE: Part.CROSSED_PRUNE,
    Part.TUNING: Part.CROSSED_SCORES,
}


@dataclass(frozen=True)
class Origin:
    """Where the results of a step come from: weights, time, code version, number format and device."""

    weights_hash: str | None = None
    created: str | None = None
    code_version: str | None = None
    dtype: str | None = None
    device: str | None = None
    seconds: float | None = None

    @classmethod
    def of(cls, known: Mapping[str, Any]) -> "Origin":
        return cls(**{field.name: plain(known.get(field.name)) for field in fields(cls)})


@dataclass(frozen=True)
class StepResult:
    """A step of a report with its result rows, or with the reason why there are none."""

    step: ReportStep
    run: str | None
    rows: Sequence[Row] = ()
    error: str = ""
    origin: Origin = field(default_factory=Origin)

    @property
    def task(self) -> str | None:
        return self.step.task

    @property
    def n(self) -> int:
        return readings.Counted.of(self.rows[0]).n

    @cached_property
    def scores(self) -> list[Score]:
        return Score.among(self.rows)

    @property
    def shared_options(self) -> Row:
        """Return the options of this step, except those that differ between fine-tuning seeds."""
        return {name: value for name, value in self.step.asked.items() if name not in ("after", "compare")}

    def by_tuned(self) -> dict[str, list[Row]]:
        """Group the result rows by fine-tuned checkpoint. Rows without a fine-tuned checkpoint have the key ""."""
        compared = getattr(self.step.options, "compare", None)
        rows: dict[str, list[Row]] = {}
        for row in self.rows:
            rows.setdefault(row.get("after") or compared or "", []).append(row)
        return rows

    def tasks(self) -> list[str]:
        return [task for task in dict.fromkeys(score.task for score in self.scores) if task]

    def best(self, **wanted: object) -> Score | None:
        scores = [score for score in picked(self.scores, **wanted) if score.value is not None]
        return max(scores, key=lambda score: score.value or 0.0, default=None)


@dataclass(frozen=True)
class Evidence:
    """All results of a report for one checkpoint.

    Attributes:
        causal: whether it is a decoder.
        bundled: whether examples come from the bundled samples.
        learned: by trained task, how many dev examples also occur in the train split, if any.
    """

    checkpoint: str
    causal: bool
    official: tuple[str, ...]
    results: tuple[StepResult, ...]
    bundled: bool = False
    learned: Mapping[str, int] = field(default_factory=dict)

    def of(self, part: Part, task: str | None = None) -> list[StepResult]:
        """Return the non-empty results of a part of the report, in order. `task` limits them to one task."""
        results = [result for result in self.results if result.step.part == part and result.rows]
        return [result for result in results if task is None or result.task == task]

    def each_seed(self, result: StepResult) -> list[StepResult]:
        """Return one result per fine-tuning seed, starting with the seed of `result`."""
        seed_results = [
            candidate
            for candidate in self.of(OTHER_SEEDS[result.step.part], result.task)
            if candidate.shared_options == result.shared_options
        ]
        by_checkpoint: dict[str, StepResult] = {}
        for seed_result in (result, *seed_results):
            for checkpoint, rows in seed_result.by_tuned().items():
                by_checkpoint.setdefault(checkpoint, replace(seed_result, rows=rows))
        recipe = _recipe_of(next(iter(by_checkpoint), ""))
        return [seed_result for checkpoint, seed_result in by_checkpoint.items() if _recipe_of(checkpoint) == recipe]

    def sweeps(self, part: Part = Part.HEADS) -> list[StepResult]:
        """Return the ablation or pruning results of each task. Cross-fitted results replace other results on the same
        task."""
        crossed = {result.task: result for result in self.of(ON_TRAIN_ROWS[part])}
        return [crossed.get(result.task, result) for result in self.of(part)]

    def tuned_from(self, *initialisations: str) -> list[StepResult]:
        """Return the fine-tuning scores of each task. Cross-fitted scores replace other scores if they cover all
        `initialisations`."""
        crossed = {
            result.task: result
            for result in self.of(Part.CROSSED_SCORES)
            if all(finetuned_task(result.rows).mean(initialisation) for initialisation in initialisations)
        }
        return [crossed.get(result.task, result) for result in self.of(Part.TUNING)]

    def one(self, part: Part, task: str | None = None) -> StepResult | None:
        """Return the first result of a part of the report, or None. `task` limits the search to one task."""
        return next(iter(self.of(part, task)), None)

    def by_task(self, part: Part) -> dict[str, StepResult]:
        """Return the first result of a part of the report for each task."""
        first_results: dict[str, StepResult] = {}
        for result in self.of(part):
            for task in result.tasks():
                first_results.setdefault(task, result)
        return first_results

    def missing(self, part: Part, task: str | None = None) -> str:
        """Explain why a part of the report has no results: its step failed, or the part was not measured."""
        part_results = [result for result in self.results if result.step.part == part]
        errors = [
            result.error for result in part_results if result.error and (task is None or result.task in (task, None))
        ]
        return errors[0] if errors else f"{task or part} was not measured"


def _recipe_of(checkpoint: str) -> str:
    """Return the part of a fine-tuned checkpoint's name that identifies everything but the seed."""
    return checkpoint.rpartition("-")[2]
