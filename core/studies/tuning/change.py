"""Change of attention by fine-tuning: cosine and Jensen-Shannon divergence per head (Kovaleva et al. 4.3, Fig 5).

Both checkpoints process the same tokens of the same dev examples. By default, the task is that of the fine-tuned
checkpoint.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import pydantic.dataclasses

from ... import capture, config, scoring, studies
from ...errors import CheckpointError, InputError
from ...interval import finite
from ...scoring.registry import KOVALEVA, HeadScore
from ...store.rows import Row
from ...tasks.glue import TaskRow, read_rows, task_of
from ...tuning.saved_checkpoints import training_log
from ..attention.records import ChangeScore
from ..contract import ChunkUnit, Done, Flag, Study, Unit, provenance
from ..headline import Fact, Headline, HeadScores, defined, each, head_interval, number, percent
from ..merging import MergedBy, Summed
from ..options import Data, Dtype, Limit, Seed
from ..records import picked

if TYPE_CHECKING:
    from ...models.checkpoint import Checkpoint


ROWS_A_UNIT = 128
BATCH_TOKENS = 1024  # both models' maps of one batch are held together


@pydantic.dataclasses.dataclass(frozen=True)
class ChangeOptions:
    """Options for comparing attention maps before and after fine-tuning."""

    before: Annotated[str, Flag("checkpoint before fine-tuning", argument=True)] = config.ENCODER
    after: Annotated[
        tuple[str, ...], Flag("one or more checkpoints that were fine-tuned from the first one", argument=True)
    ] = ()
    task: Annotated[
        str | None,
        Flag("task of the examples (default: for each fine-tuned checkpoint, the task on which it was fine-tuned)"),
    ] = None
    split: str = "dev"
    data: Data = None
    limit: Limit = 1000
    seed: Seed = 0
    max_length: int = 128
    dtype: Dtype = "float32"


@dataclass(frozen=True)
class TaskChange:
    """The difference between the attention maps of two checkpoints on one task."""

    after: str
    task: str
    change: Summed["scoring.change.Change"]


@dataclass(frozen=True)
class ChangePartial:
    """The change in attention due to fine-tuning, separately for each fine-tuned checkpoint and task."""

    pieces: Annotated[tuple[TaskChange, ...], MergedBy("after", "task")]


def _changed(name: str, label: str, formula: str, high: float) -> HeadScore:
    """Return the definition of a score that compares the same head in two checkpoints."""
    return HeadScore(name, label, formula, ("weights", "tuned"), 0.0, high, KOVALEVA, about="task")


CHANGE_SCORES = (
    _changed("cosine", "cosine before and after fine-tuning", "cosine of its map before and after fine-tuning", 1.0),
    _changed("divergence", "change with fine-tuning", "mean over queries of the Jensen-Shannon divergence, in nats",
             math.log(2)),
    _changed("cosine_without_first", "cosine before and after, no sink", "the cosine without the first token", 1.0),
    _changed("divergence_without_first", "change with fine-tuning, no sink", "the divergence without the first token",
             math.log(2)),
)  # fmt: skip


class ChangeStudy(Study[ChangeOptions, ChangePartial]):
    """Compare the maps of each head before and after fine-tuning (Kovaleva et al. 2019, Fig. 5)."""

    name, options, partial, arguments = "change", ChangeOptions, ChangePartial, ChunkUnit
    question = "Which heads did fine-tuning change most?"
    kinds = (ChangeScore,)
    head_scores = CHANGE_SCORES
    called = "Change of {before}"
    section = "fine-tuning"
    said_at = 9
    counts = "words"

    def units(self, options: ChangeOptions) -> list[Unit]:
        if not options.after:
            raise InputError(
                "Measuring how fine-tuning changes attention needs at least one fine-tuned checkpoint; got none. "
                "Choose one or more checkpoints."
            )
        every = []
        for after in dict.fromkeys(options.after):
            task = task_of(options.task).key if options.task else task_tuned_on(after)
            rows = _rows(options, task)
            for start in range(0, len(rows), ROWS_A_UNIT):
                some = rows[start : start + ROWS_A_UNIT]
                words = sum(len(f"{row.text} {row.pair or ''}".split()) for row in some)
                every.append(
                    Unit(f"{after}|{task}|{start}", ChunkUnit(after, task, start, start + len(some)), size=3 * words)
                )
        return every

    def run(self, options: ChangeOptions, unit: Unit) -> Done[ChangePartial]:
        of: ChunkUnit = unit.arguments
        before, after = (
            studies.worker_cache.get_checkpoint(name, dtype=options.dtype) for name in (options.before, of.checkpoint)
        )
        rows = _rows(options, of.inputs)[of.start : of.stop]
        change = compared(before, after, rows, first=of.start, max_length=options.max_length)
        of_both = replace(
            provenance(before, [row.id for row in rows]),
            checkpoint=f"{options.before} and {of.checkpoint}",
            weights_hash=f"{before.weights_hash} and {after.weights_hash}",
            task=of.inputs,
        )
        return Done(ChangePartial((TaskChange(of.checkpoint, of.inputs, change),)), of_both)

    def results(self, options: ChangeOptions, merged: ChangePartial) -> list[ChangeScore]:
        scores: list[ChangeScore] = []
        for piece in merged.pieces:
            change = piece.change
            heads, layers = change.heads.result(), change.layers.result()
            for place, statistic in enumerate(change.statistics):
                shared: Any = {"before": options.before, "after": piece.after, "task": piece.task,
                               "statistic": statistic, "n": int(heads.n[place])}  # fmt: skip
                for layer in range(heads.value.shape[0]):
                    if all(map(math.isnan, heads.value[layer].ravel())):  # a layer of a hybrid without attention
                        continue
                    for head in range(heads.value.shape[1]):
                        ends = _ends(heads, (layer, head, place))
                        lowest = [
                            {"row": name, "cosine": value} for value, name in change.lowest.get((layer, head), [])
                        ]
                        scores.append(
                            ChangeScore(
                                kind="head", layer=layer, head=head, **ends, feature=piece.task, **shared,
                                changed_most=lowest if statistic == "cosine" else (),
                            )
                        )  # fmt: skip
                    scores.append(ChangeScore(kind="layer", layer=layer, **_ends(layers, (layer, 0, place)), **shared))
        return scores

    def facts(self, scores: HeadScores) -> list[Fact]:
        return [
            Fact(
                self.name,
                f"The attention of this head before and after fine-tuning has a cosine similarity of {number(row)}.",
                row["source"],
            )
            for row in each(scores.own[scores.own["score"] == "cosine"])
        ]

    def headline(self, rows: Sequence[Row]) -> Headline:
        cosines = [
            score for score in ChangeScore.among(rows) if score.statistic == "cosine" and score.value is not None
        ]
        least = min(picked(cosines, kind="head"), key=lambda score: defined(score.value))
        of_layers = picked(cosines, kind="layer", after=least.after)
        layers = sorted(of_layers, key=lambda score: score.layer)
        top = min(layers, key=lambda score: defined(score.value))
        changes = [1 - defined(score.value) for score in layers]
        interval = ""
        if top.low is not None and top.high is not None:
            interval = f" ({percent(1 - top.high, 1 - top.low, '{:z.2f}', 1)})"
        said = f"Layer {top.layer + 1} has the largest mean change: {1 - defined(top.value):z.2f}{interval}."
        if changes[:-2]:
            said += (
                f" The mean change is {fmean(changes[-2:]):z.2f} in the last two layers and "
                f"{fmean(changes[:-2]):z.2f} in the other layers."
            )
        low, high = (None if end is None else 1 - end for end in (least.high, least.low))
        return Headline(
            f"On {task_of(least.task).name}, fine-tuning changed the attention of head {least.name} most "
            f"(1 − cosine similarity = {1 - defined(least.value):z.2f}). {said}",
            least.n,
            "examples",
            head_interval(least.name, low, high, "{:z.2f}"),
            "If attention does not change, 1 − cosine similarity is 0.",
        )


STUDY = ChangeStudy()


def task_tuned_on(checkpoint: str) -> str:
    """Return the task on which this program fine-tuned a checkpoint. Raises InputError if the task is unknown."""
    bundled = [config.BUNDLED_MODELS / checkpoint] if Path(checkpoint).name == checkpoint else []
    places = (Path(checkpoint), config.PROJECT / checkpoint, *bundled)
    for folder in filter(config.is_folder, places):
        if task := training_log(folder.expanduser()).get("task"):
            return task_of(task).key
    raise InputError(
        f"The task of a fine-tuned checkpoint must be known; {checkpoint} has no training.json that names it. Choose a "
        "task."
    )


def _rows(options: ChangeOptions, task: str) -> list[TaskRow]:
    return read_rows(task, options.split, folder=options.data, limit=options.limit, seed=options.seed)


def _ends(estimate: Any, place: tuple[int, int, int]) -> Any:
    return {name: finite(getattr(estimate, name)[place]) for name in ("value", "low", "high")}


# ---------------------------------------------------------------- maps of two checkpoints


def compared(
    before: "Checkpoint",
    after: "Checkpoint",
    rows: Sequence[TaskRow],
    *,
    first: int = 0,
    max_length: int = 128,
) -> "scoring.change.Change":
    """Sum the map differences between two checkpoints over examples. Raises CheckpointError if the tokens differ."""
    refuse_different(before, after)
    names = [row.id for row in rows]
    encodings, others = (
        [side.encode(row.text, row.pair, max_length=max_length) for row in rows] for side in (before, after)
    )
    for name, mine, its in zip(names, encodings, others, strict=True):
        if mine.ids != its.ids:
            raise CheckpointError(
                f"Both checkpoints must split a text into the same tokens; they split example {name} into "
                f"different tokens ({len(mine)} and {len(its)}). Choose a checkpoint that was fine-tuned from "
                f"{before.name}."
            )
    change = scoring.change.Change(before.layers, before.heads, causal=before.causal)
    for chosen in capture.running.batches(encodings, BATCH_TOKENS):
        some, kept = [encodings[k] for k in chosen], _Kept()
        capture.running.run(before, some, [kept])
        capture.running.run(
            after, some, [_Against(kept, change, [first + k for k in chosen], [names[k] for k in chosen])]
        )
    return change


class _Kept:
    """The maps of one batch, stored until those of the other model are compared with them."""

    def __init__(self) -> None:
        self.maps: dict[int, Any] = {}

    def update(self, layer: int, weights: Any, inputs: list[int]) -> None:
        self.maps[layer] = weights.clone()


class _Against:
    """Observer that compares each layer's maps of the second model with the stored maps of the first."""

    def __init__(self, kept: _Kept, change: "scoring.change.Change", numbers: list[int], names: list[str]) -> None:
        self.kept, self.change, self.numbers, self.names = kept, change, numbers, names

    def update(self, layer: int, weights: Any, inputs: list[int]) -> None:
        numbers, names = [self.numbers[k] for k in inputs], [self.names[k] for k in inputs]
        self.change.update(layer, self.kept.maps[layer], weights, numbers, names)


def refuse_different(before: "Checkpoint", after: "Checkpoint") -> None:
    """Raise CheckpointError if two checkpoints differ in model family, number of layers or number of heads."""
    shapes = [(side.layers, side.heads, side.family.model_type) for side in (before, after)]
    if shapes[0] != shapes[1]:
        raise CheckpointError(
            f"The two checkpoints must have the same architecture, layers and heads; {before.name} has "
            f"{shapes[0][0]} layers of {shapes[0][1]} heads ({shapes[0][2]}), and {after.name} has {shapes[1][0]} "
            f"layers of {shapes[1][1]} heads ({shapes[1][2]}). Choose a checkpoint that was fine-tuned from the "
            "other."
        )
