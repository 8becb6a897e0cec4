"""Fine-tuning of encoders with heads fixed at patterns, compared with unrestricted heads (Raganato et al. 2020).

By default, all heads of each layer except the last are fixed, in turn, at the current, previous, next and first token
(no next token in causal models), in training and in evaluation. Both runs have the same seed, examples and recipe.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Annotated

import numpy as np
import pydantic.dataclasses

from ... import capture, config, studies
from ...attention import Head
from ...scoring import effects
from ...store.rows import Row
from ...tasks.glue import task_of
from ...tuning.recipe import Recipe
from ..contract import Done, Flag, Need, Study, TrainingUnit, Unit, provenance
from ..headline import Headline, percent
from ..options import Checkpoint, Data, Out, Preset, Seeds, Settings, TunedTasks
from ..outcomes import metrics_of
from ..records import Result
from ..tuning import finetune
from ..tuning.finetune import TunedRuns, table_scores
from ..tuning.records import FixedPatternChange, TunedRunScore, TunedScore
from . import setup

if TYPE_CHECKING:
    from ...capture.interventions import Intervention
    from ...models.checkpoint import Checkpoint as Opened

TURNS = ("current", "previous", "next", "first")
FREE, HELD = "free", "held"


@pydantic.dataclasses.dataclass(frozen=True)
class FixedPatternOptions:
    """Options for fine-tuning with fixed attention patterns: the checkpoint, tasks, heads and patterns."""

    checkpoint: Checkpoint = config.ENCODER
    tasks: TunedTasks = ("sst2",)
    seeds: Seeds = (0,)
    data: Data = None
    preset: Preset = "auto"
    settings: Settings = field(default_factory=dict)
    heads: Annotated[
        str,
        Flag(
            "heads whose attention is fixed to the pattern of --operator; by default, all heads except the last of "
            "each layer are fixed, with different patterns for neighbouring heads"
        ),
    ] = ""
    operator: Annotated[
        str,
        Flag(
            "fixed attention pattern: disable (equal attention to all visible tokens), zero (no output), or "
            "all attention to one token: previous, current, next or first"
        ),
    ] = "previous"
    out: Out = None


class FixedPatternStudy(Study[FixedPatternOptions, TunedRuns]):
    """Fine-tune with fixed attention patterns in some heads, and compare with learned attention (Raganato et al.)."""

    name, options, partial, arguments = "fixed-pattern", FixedPatternOptions, TunedRuns, TrainingUnit
    question = "How well does a model learn with fixed attention patterns?"
    kinds = (TunedScore, TunedRunScore, FixedPatternChange)
    called = "Fixed patterns"
    needs = frozenset({Need.LABELS})

    def units(self, options: FixedPatternOptions) -> list[Unit]:
        if options.heads:
            setup.head_groups_of(options.heads)
            capture.interventions.operator_of(options.operator, causal=False)
        shared = ("checkpoint", "tasks", "seeds", "data", "preset", "settings", "out")
        plain = finetune.FinetuneOptions(**{name: getattr(options, name) for name in shared})
        all_units = []
        for unit in finetune.STUDY.units(plain):
            for kind in (FREE, HELD):
                mark = kind
                if kind == HELD and options.heads:  # so that names of checkpoints differ with the heads and patterns
                    told = f"{options.heads} {options.operator}"
                    mark = f"{HELD}-{hashlib.sha256(told.encode()).hexdigest()[:6]}"
                key = f"{unit.key}-{mark}"
                all_units.append(Unit(key, replace(unit.arguments, kind=kind), unit.size))
        return all_units

    def run(self, options: FixedPatternOptions, unit: Unit) -> Done[TunedRuns]:
        of: TrainingUnit = unit.arguments
        base = studies.worker_cache.get_checkpoint(options.checkpoint)
        fixed = held_heads(options, base) if of.kind == HELD else []
        run = studies.tuning.finetune.FinetuningRun(
            task_of(of.task), of.kind, "pretrained", of.seeds, options.preset,
            Recipe.of(options.preset, options.settings), options.data, options.out, unit.key, fixed,
        )  # fmt: skip
        tuned, row_ids = studies.tuning.finetune.tune(base, run)
        return Done(TunedRuns((tuned,)), provenance(base, row_ids))

    def results(self, options: FixedPatternOptions, merged: TunedRuns) -> list[Result]:
        results: list[Result] = [*table_scores(merged.runs)]
        for task in dict.fromkeys(run.score.task for run in merged.runs):
            mine = [run for run in merged.runs if run.score.task == task]
            both = {run.score.seed for run in mine if run.score.initialisation == FREE}
            both &= {run.score.seed for run in mine if run.score.initialisation == HELD}
            if both:
                # fixed minus free heads, paired by dev example and averaged over seeds
                runs = [run for run in mine if run.score.seed in both]
                metric, gold = metrics_of(task_of(task))[0], runs[0].gold
                predicted = np.array([run.predicted for run in runs])
                signs = [1.0 if run.score.initialisation == HELD else -1.0 for run in runs]
                weights = 2 / len(runs) * np.array([signs])
                (change,) = effects.contrast_intervals(metric, gold, predicted[0], predicted, weights)
                results.append(FixedPatternChange(
                    task=task, initialisation="held less free", metric=metric, n=len(gold), score=change.value,
                    low=change.low, high=change.high, seeds=len(runs) // 2,
                    held_heads=max(run.score.held_heads or 0 for run in runs),
                ))  # fmt: skip
        return results

    def headline(self, rows: Sequence[Row]) -> Headline:
        change, score = next(
            (result, result.score) for result in FixedPatternChange.among(rows) if result.score is not None
        )
        task = task_of(change.task).name
        return Headline(
            (
                f"If the attention of {change.held_heads} heads is replaced by fixed patterns during fine-tuning and "
                f"evaluation, {change.metric} on {task} changes by {100 * score:+.1f} points."
            ),
            change.n,
            "examples",
            percent(change.low, change.high),
            "The baseline is the same fine-tuning without fixed attention patterns.",
        )


STUDY = FixedPatternStudy()


def patterns(layers: int, heads: int, *, causal: bool) -> "list[Intervention]":
    """Assign a fixed pattern to every head except the last of each layer. The patterns are used in rotation."""
    turns = [name for name in TURNS if not (causal and name == "next")]
    held: dict[str, set[Head]] = {}
    for head in range(heads - 1):
        held.setdefault(turns[head % len(turns)], set()).update(Head(layer, head) for layer in range(layers))
    return [capture.interventions.Intervention(name, frozenset(fixed)) for name, fixed in held.items()]  # type: ignore[arg-type]


def held_heads(options: FixedPatternOptions, checkpoint: "Opened") -> "list[Intervention]":
    """Return interventions that give the named heads a fixed attention pattern. If no heads are named, return the
    default `patterns`. Raises InputError for unknown heads."""
    if not options.heads:
        return patterns(checkpoint.layers, checkpoint.heads, causal=checkpoint.causal)
    operator = capture.interventions.operator_of(options.operator, causal=checkpoint.causal)
    named = {head for group in setup.head_groups_of(options.heads) for head in group}
    return [
        capture.interventions.Intervention(
            operator, frozenset(head.within(checkpoint.layers, checkpoint.heads) for head in named)
        )
    ]
