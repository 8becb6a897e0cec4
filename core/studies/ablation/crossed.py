"""Every head, or layer, disabled in turn, tested on all train rows: a sweep that is cross-fitted.

A dev set of a few hundred rows leaves most effects of single heads undecided. Here the train rows are cut into parts; a
model is fine-tuned on all parts but one and swept on the part left out, so that every row is tested by a model that
never saw it, nor any of its sentences: rows that share one (in any case) are in one part. All models start from the
same pre-trained weights, so L1H2 is the same head in each when they begin.

Rows: those of a sweep (`core.studies.ablation.disable`) over all rows together, each variant with the number of parts
in which its change has the sign of the whole; then "fold", each part's score beside its constant predictor. Intervals
are over rows, for the models at hand: what another fine-tuning would give is told by the parts, and by `study seeds`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated

import numpy as np
import pydantic.dataclasses

from core import capture, config, studies
from core.errors import InputError
from core.scoring import effects
from core.store.rows import Row, plain
from core.studies.ablation import disable, disabling
from core.studies.ablation.headlines import sweep_headline
from core.studies.ablation.records import SweptVariant
from core.studies.ablation.seed_records import CrossedPart
from core.studies.contract import Done, Flag, Need, Study, Unit
from core.studies.headline import Headline
from core.studies.options import Checkpoint, Data, Dtype, Out, Preset, Seed, Settings, TaskName
from core.studies.outcomes import finite, metrics_of, outcomes
from core.studies.provenance import provenance
from core.studies.records import Result
from core.studies.tuning import finetune
from core.tasks.glue import TaskRow, must_have_labels, read_rows, task_of
from core.tasks.metrics import majority
from core.tuning.recipe import Recipe, Seeds
from core.tuning.saved_checkpoints import shown_folder, training_log

if TYPE_CHECKING:
    from core.studies.tuning.finetuning_run import FinetuningRun

KINDS = ("heads", "layers")


@pydantic.dataclasses.dataclass(frozen=True)
class CrossedOptions:
    """What is fine-tuned on which rows, in how many parts, and what is done to its heads."""

    checkpoint: Checkpoint = config.ENCODER
    task: TaskName = "mrpc"
    data: Data = None
    limit: Annotated[int | None, Flag("train rows; default: all", least=10)] = None
    folds: Annotated[int, Flag("parts of the rows", least=2, most=20)] = 5
    preset: Preset = "auto"
    settings: Settings = field(default_factory=dict)
    operator: Annotated[str, Flag("disable, zero, previous, current, next or first")] = "disable"
    what: Annotated[str, Flag("heads or layers")] = "heads"
    dtype: Dtype = "float32"
    seed: Seed = 0
    out: Out = None


@dataclass(frozen=True)
class Fold:
    """One part. again: variants that are computed in float32 only, by the model of then."""

    number: int
    again: tuple[int, ...] = ()


@dataclass(frozen=True)
class TunedPart:
    """A model of all parts but one: where it is, and what a constant answer scores on the part left out.

    Args:
        folder: of its checkpoint.
        train_rows: how many it learned.
        constant: whether it gives every row one answer.
        baseline: the constant predictor's score by each metric, None where it has none.
    """

    folder: str
    train_rows: int
    constant: bool
    baseline: dict[str, float | None]


@dataclass(frozen=True)
class Crossed:
    """A sweep of some rows; folds: of each row [row]; runs: the models of the parts that were swept."""

    swept: disable.Swept
    folds: np.ndarray
    runs: tuple[TunedPart, ...]


class CrossedStudy(Study[CrossedOptions, Crossed]):
    """Disable every head, or layer, on all train rows, each by a model fine-tuned on the other parts of them."""

    name, options, partial, arguments = "crossed", CrossedOptions, Crossed, Fold
    called = "Cross-fitted sweep of {checkpoint} on {task}"
    needs = frozenset({Need.LABELS})

    def units(self, options: CrossedOptions) -> list[Unit]:
        """One unit a part; what cannot be is refused before anything is trained."""
        if _recipe(options).keep == "best":
            raise InputError(
                "The part left out must not choose the epoch that it is tested on, but keep=best does: leave keep at "
                "last."
            )
        if options.operator not in capture.interventions.OPERATORS:
            raise InputError(
                f"A cross-fitted sweep has the operators {', '.join(capture.interventions.OPERATORS)}; "
                f'"{options.operator}" is none of them: choose one.'
            )
        if options.what not in KINDS:
            raise InputError(
                f'A cross-fitted sweep is of {" or ".join(KINDS)}; "{options.what}" is neither: choose one.'
            )
        _folds(options)
        return _units(options, ())

    def more(self, options: CrossedOptions, partials: Sequence[Crossed]) -> list[Unit]:
        """In low precision: the variants that float32 might claim, computed again in it."""
        if any(not len(part.swept.changed) for part in partials):
            return []
        near = disable.near_claims(_sweep(options), self.merge(options, partials).swept)
        return _units(options, near) if near else []

    def run(self, options: CrossedOptions, unit: Unit) -> Done[Crossed]:
        """Fine-tune on the other parts, then sweep this one."""
        of: Fold = unit.arguments
        all_rows, folds = _folds(options)
        places = np.flatnonzero(folds == of.number)
        rows = [all_rows[k] for k in places]
        run = _run(options, of.number)
        runs = () if of.again else (_tuned(options, run, all_rows, folds == of.number),)
        opened = disabling.opened(_sweep(options, shown_folder(run.folder)))
        some = disable.RowSlice(tuple(places.tolist()), of.again)
        swept, dtype = disable.swept_rows(_sweep(options), opened, rows, some)
        base = studies.worker_cache.checkpoint(options.checkpoint)  # whose the result is: the parts are tuned from it
        facts = provenance(base, [row.id for row in rows], split="train", dtype=dtype)
        return Done(Crossed(swept, folds[places], runs), facts)

    def merge(self, options: CrossedOptions, partials: Sequence[Crossed]) -> Crossed:
        """All rows, in the task's order."""
        first = sorted((part for part in partials if len(part.swept.changed)), key=lambda part: part.folds[0])
        swept = disable.STUDY.merge(_sweep(options), [part.swept for part in partials])
        places = np.concatenate([part.swept.rows for part in first])
        folds = np.concatenate([part.folds for part in first])
        return Crossed(swept, folds[np.argsort(places)], tuple(run for part in first for run in part.runs))

    def results(self, options: CrossedOptions, merged: Crossed) -> list[Result]:
        """The sweep's records with how many parts agree, then the parts."""
        swept = disable.STUDY.results(_sweep(options), merged.swept)
        agree = iter(_agreeing(options, merged))
        told = [
            replace(result, statistic=None, folds=options.folds, folds_agree=next(agree))  # no score of one checkpoint
            if isinstance(result, SweptVariant)
            else result
            for result in swept
        ]
        return [*told, *_parts(options, merged)]

    def headline(self, rows: Sequence[Row]) -> Headline:
        return sweep_headline(rows)


STUDY = CrossedStudy()


def _recipe(options: CrossedOptions) -> Recipe:
    return Recipe.of(options.preset, options.settings)


def _whole(options: CrossedOptions) -> finetune.FinetuneOptions:
    """The fine-tuning on all of the rows: it says how large a part's is, and what its folder is called."""
    settings = options.settings if options.limit is None else options.settings | {"train_limit": options.limit}
    return finetune.FinetuneOptions(
        checkpoint=options.checkpoint,
        tasks=(options.task,),
        data=options.data,
        preset=options.preset,
        settings=settings,
    )


def _units(options: CrossedOptions, again: tuple[int, ...]) -> list[Unit]:
    size = finetune.STUDY.units(_whole(options))[0].size
    name = "again" if again else "fold"
    return [Unit(f"{name}-{k}", Fold(k, again), max(1, size // 4) if again else size) for k in range(options.folds)]


def _folds(options: CrossedOptions) -> tuple[list[TaskRow], np.ndarray]:
    """The rows, and the part of each; of those that share a sentence it is the same; classes are spread evenly."""
    from sklearn.model_selection import GroupKFold, StratifiedGroupKFold  # 1 s of start-up

    task = task_of(options.task)
    must_have_labels(task)
    rows = read_rows(task, "train", folder=options.data, limit=options.limit, seed=options.seed)
    labels = [row.label for row in rows]
    least = len(rows) if task.is_score else min(labels.count(label) for label in set(labels))
    if least < options.folds:
        raise InputError(
            f"Every part needs a row of each label; the rarest has {least} rows for {options.folds} parts: take fewer "
            "parts, or more rows."
        )
    together = groups_by_text(rows)
    if len(set(together.tolist())) < options.folds:
        raise InputError(
            f"Rows that share a sentence stay in one part; these make {len(set(together.tolist()))} groups for "
            f"{options.folds} parts: take fewer parts, or more rows."
        )
    cut = (GroupKFold if task.is_score else StratifiedGroupKFold)(
        options.folds, shuffle=True, random_state=options.seed
    )
    folds = np.zeros(len(rows), int)
    for number, (_, left_out) in enumerate(cut.split(labels, labels, together)):
        folds[left_out] = number
    _must_have_all_labels(labels, folds, is_score=task.is_score)
    return rows, folds


def groups_by_text(rows: Sequence[TaskRow]) -> np.ndarray:
    """The number of each row's group: rows that share a sentence, directly or through others, are in one."""
    group: dict[str, str] = {}

    def root(text: str) -> str:
        while group.setdefault(text, text) != text:
            group[text] = group[group[text]]
            text = group[text]
        return text

    texts = [[" ".join(text.casefold().split()) for text in (row.text, row.pair) if text] for row in rows]
    for first, *others in texts:
        for other in others:
            group[root(other)] = root(first)
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(root(first), len(numbers)) for first, *_ in texts])


def _must_have_all_labels(labels: Sequence[object], folds: np.ndarray, *, is_score: bool) -> None:
    for fold in np.unique(folds):
        missing = set(labels) - {label for label, of in zip(labels, folds, strict=True) if of == fold}
        if missing and not is_score:
            raise InputError(
                "Every part needs a row of each label, and rows that share a sentence stay in one part; part "
                f"{fold + 1} has none of {', '.join(map(str, sorted(missing, key=str)))}: take fewer parts, or more "
                "rows."
            )


def _sweep(options: CrossedOptions, folder: str = "-") -> disable.DisableOptions:
    """The sweep that each part is given, of the model at `folder`."""
    return disable.DisableOptions(
        checkpoint=folder, task=options.task, data=options.data, split="train", limit=options.limit,
        dtype=options.dtype, seed=options.seed, what=options.what, operator=options.operator,
    )  # fmt: skip


def _run(options: CrossedOptions, number: int) -> "FinetuningRun":
    """Fine-tuning without one part; its folder is named after all that decides it."""
    task = task_of(options.task)
    name = finetune.run_name(_whole(options), task.key, "pretrained", options.seed)
    key = f"{name}-without-texts-{number + 1}-of-{options.folds}"
    return studies.tuning.finetuning_run.FinetuningRun(
        task, "pretrained", "pretrained", Seeds.all(options.seed), options.preset, _recipe(options), options.data,
        options.out, key,
    )  # fmt: skip


def _tuned(options: CrossedOptions, run: "FinetuningRun", rows: list[TaskRow], left_out: np.ndarray) -> TunedPart:
    """The model of the other parts; one that learned these rows by this recipe already is not trained again."""
    base = studies.worker_cache.checkpoint(options.checkpoint)
    others, own_rows = ([row for row, out in zip(rows, left_out, strict=True) if out == kept] for kept in (False, True))
    if not studies.tuning.finetuning_run.is_trained(base, run, others, own_rows):
        studies.tuning.finetuning_run.tune_on(base, run, others, own_rows)
    log = training_log(run.folder)
    _, constant = majority(run.task, [row.label for row in others], [row.label for row in own_rows])
    return TunedPart(shown_folder(run.folder), len(others), bool(log["constant_predictions"]), plain(constant))


def _agreeing(options: CrossedOptions, merged: Crossed) -> list[int]:
    """Of each variant: the parts in which its change has the sign of the change over all rows; 0 where that is 0."""
    task, swept = task_of(options.task), merged.swept
    difference = outcomes(task, swept.gold, swept.changed) - outcomes(task, swept.gold, swept.plain)
    whole = np.sign(difference.mean(1))
    parts = [np.sign(difference[:, merged.folds == fold].mean(1)) for fold in np.unique(merged.folds)]
    return [int(count) for count in np.sum([(part == whole) & (whole != 0) for part in parts], axis=0)]


def _parts(options: CrossedOptions, merged: Crossed) -> list[CrossedPart]:
    """Each part's score by the model that never saw it, beside the constant predictor of the other parts."""
    task, swept, parts = task_of(options.task), merged.swept, []
    metric = metrics_of(task)[0]
    for number, run in zip(np.unique(merged.folds), merged.runs, strict=True):
        mine = merged.folds == number
        score = effects.counted(metric, swept.gold[mine], swept.plain[None, mine], np.ones((1, int(mine.sum()))))[0, 0]
        parts.append(CrossedPart(
            name=f"part {number + 1}", task=task.key, metric=metric, n=int(mine.sum()), score=finite(score),
            baseline=run.baseline.get(metric), train_rows=run.train_rows, constant=run.constant, folder=run.folder,
        ))  # fmt: skip
    return parts
