"""Cross-fitting: each fold of the training examples is tested by a model that was fine-tuned on the other folds."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

import numpy as np
import pydantic.dataclasses

from ... import config, studies
from ...errors import InputError
from ...interval import finite
from ...scoring import effects
from ...store.rows import plain
from ...tasks.glue import Task, TaskRow, must_have_labels, read_rows, task_of
from ...tasks.metrics import majority
from ...tuning.recipe import Recipe, Seeds
from ...tuning.saved_checkpoints import shown_folder, training_log
from ..contract import Done, Flag, Need, Study, TrainingUnit, Unit, provenance
from ..options import Checkpoint, Data, Out, Preset, Seed, Settings, TaskName
from ..outcomes import metrics_of
from ..tuning import finetune
from ..tuning.finetune import FinetuningRun
from .records import CrossFittedPart


@pydantic.dataclasses.dataclass(frozen=True)
class CrossFitting:
    """Options for cross-fitting: the checkpoint, the examples, the number of folds and the training recipe."""

    checkpoint: Checkpoint = config.ENCODER
    task: TaskName = "mrpc"
    data: Data = None
    limit: Annotated[int | None, Flag("number of training examples to use (default: all)", least=10)] = None
    folds: Annotated[int, Flag("number of folds into which the training examples are divided", least=2, most=20)] = 5
    preset: Preset = "auto"
    settings: Settings = field(default_factory=dict)
    seed: Seed = 0
    out: Out = None


O = TypeVar("O", bound=CrossFitting)  # noqa: E741 - the options' type
P = TypeVar("P")


@dataclass(frozen=True)
class TunedPart:
    """A model trained on all folds except the fold `number`, and the score of a constant prediction on that fold."""

    number: int
    folder: str
    train_rows: int
    constant: bool
    baseline: dict[str, float | None]


@dataclass(frozen=True)
class Fold:
    """A fold for cross-fitting: its examples, their positions, and the model that was fine-tuned on the other folds."""

    model: TunedPart
    learned: list[TaskRow]
    rows: list[TaskRow]
    places: np.ndarray


class CrossFittedStudy(Study[O, P]):
    """Base class of studies that test a model on each fold of the examples after fine-tuning it on the other folds."""

    arguments = TrainingUnit
    one_by_one = True
    needs = frozenset({Need.LABELS})

    def units(self, options: O) -> list[Unit]:
        recipe_of(options)
        cut_rows(options)
        return fold_units(options)

    def run(self, options: O, unit: Unit) -> Done[P]:
        of: TrainingUnit = unit.arguments
        rows, folds = cut_rows(options)
        places = np.flatnonzero(folds == of.fold)
        learned, own = [rows[k] for k in np.flatnonzero(folds != of.fold)], [rows[k] for k in places]
        base = studies.worker_cache.get_checkpoint(options.checkpoint)
        run = run_without(options, of.fold, of.source, of.seeds.head)
        if not studies.tuning.finetune.is_trained(base, run, learned, own):
            studies.tuning.finetune.tune_on(base, run, learned, own)
        log = training_log(run.folder)
        _, constant = majority(run.task, [row.label for row in learned], [row.label for row in own])
        model = TunedPart(
            of.fold, shown_folder(run.folder), len(learned), bool(log.get("constant_predictions")), plain(constant)
        )
        partial, dtype = self.on_fold(options, Fold(model, learned, own, places), of)
        facts = provenance(base, [row.id for row in own], split="train", dtype=dtype)  # its models are tuned from it
        return Done(partial, facts)

    def on_fold(self, options: O, fold: Fold, of: TrainingUnit) -> tuple[P, str]:
        """Test a model on its held-out fold. Return the partial result and the number format, such as float32."""
        raise NotImplementedError


def fold_units(options: CrossFitting, name: str = "fold", *, part: int = 1, **about: Any) -> list[Unit]:
    """Create one unit of work per cross-fitting fold. Keyword arguments become fields of each `TrainingUnit`."""
    about = {"seeds": Seeds.all(options.seed)} | about
    size = max(1, finetune.STUDY.units(_on_all_rows(options))[0].size // part)
    return [Unit(f"{name}-{number}", TrainingUnit(fold=number, **about), size) for number in range(options.folds)]


def recipe_of(options: CrossFitting) -> Recipe:
    """Return the training recipe. Raises InputError for keep="best", which would use the held-out fold to select the
    epoch."""
    recipe = Recipe.of(options.preset, options.settings)
    if recipe.keep == "best":
        raise InputError(
            'With cross-fitting, the setting keep must be "last"; got "best", which would choose the epoch by the '
            "evaluation fold. Set keep=last."
        )
    return recipe


def _on_all_rows(options: CrossFitting) -> finetune.FinetuneOptions:
    """Return the options of a fine-tuning on all examples, which determine the size and the folder of each fold."""
    settings = options.settings if options.limit is None else options.settings | {"train_limit": options.limit}
    return finetune.FinetuneOptions(
        checkpoint=options.checkpoint,
        tasks=(options.task,),
        data=options.data,
        preset=options.preset,
        settings=settings,
    )


def cut_rows(options: CrossFitting) -> tuple[list[TaskRow], np.ndarray]:
    """Divide the training examples into folds that share no sentence and have similar class frequencies."""
    from sklearn.model_selection import GroupKFold, StratifiedGroupKFold  # 1 s of start-up

    task = task_of(options.task)
    must_have_labels(task)
    rows = read_rows(task, "train", folder=options.data, limit=options.limit, seed=options.seed)
    labels = [row.label for row in rows]
    if len(rows) < options.folds:
        raise InputError(
            f"Every fold must have an example; there are only {len(rows)} examples for {options.folds} folds. Use "
            "fewer folds or more examples."
        )
    least = min(labels.count(label) for label in set(labels))
    if not task.is_score and least < options.folds:
        raise InputError(
            f"Every fold must have an example of each label; the rarest label has only {least} examples for "
            f"{options.folds} folds. Use fewer folds or more examples."
        )
    together = groups_by_text(rows)
    if len(set(together.tolist())) < options.folds:
        raise InputError(
            "Examples that share a sentence must be in the same fold; they form only "
            f"{len(set(together.tolist()))} groups, too few for {options.folds} folds. Use fewer folds or "
            "more examples."
        )
    cut = (GroupKFold if task.is_score else StratifiedGroupKFold)(
        options.folds, shuffle=True, random_state=options.seed
    )
    folds = np.zeros(len(rows), int)
    for number, (_, left_out) in enumerate(cut.split(labels, labels, together)):
        folds[left_out] = number
    for fold in np.unique(folds):
        missing = set(labels) - {label for label, of in zip(labels, folds, strict=True) if of == fold}
        if missing and not task.is_score:
            raise InputError(
                "Every fold must have an example of each label, with examples that share a sentence in the same fold; "
                f"fold {fold + 1} has no example of {', '.join(map(str, sorted(missing, key=str)))}. Use fewer folds "
                "or more examples."
            )
    return rows, folds


def groups_by_text(rows: Sequence[TaskRow]) -> np.ndarray:
    """Assign a group number to each example. Examples that share a sentence (ignoring case) get the same number."""
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


def run_without(options: CrossFitting, number: int, initialisation: str, seed: int) -> FinetuningRun:
    """Describe the fine-tuning run that uses all cross-fitting folds except the fold with the index `number`."""
    task = task_of(options.task)
    name = finetune.run_name(_on_all_rows(options), task.key, initialisation, seed)
    key = f"{name}-without-texts-{number + 1}-of-{options.folds}"
    return FinetuningRun(
        task, initialisation, initialisation, Seeds.all(seed), options.preset, recipe_of(options), options.data,
        options.out, key,
    )  # fmt: skip


def part_score(task: Task, part: TunedPart, gold: np.ndarray, predicted: np.ndarray) -> CrossFittedPart:
    """Compute the score of a model on its held-out fold, with a constant prediction as the baseline."""
    metric = metrics_of(task)[0]
    score = effects.counted(metric, gold, predicted[None], np.ones((1, len(gold))))[0, 0]
    return CrossFittedPart(
        name=f"part {part.number + 1}", task=task.key, metric=metric, n=len(gold), score=finite(score),
        baseline=part.baseline.get(metric), train_rows=part.train_rows, constant=part.constant, folder=part.folder,
    )  # fmt: skip
