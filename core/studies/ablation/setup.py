"""What ablation studies share: examples, opened classifiers, ablation targets, and outputs that replace a head's."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pydantic.dataclasses

from ... import capture, models, studies
from ...attention import Head
from ...capture.components import Component, LayerBlock, every_part, parse_components
from ...errors import InputError, check_choice
from ...store.rows import Row
from ...tasks.glue import SPLIT, Task, TaskRow, drawn, fingerprint, label_order, read_rows, task_of, unseen
from ...tuning.saved_checkpoints import training_log
from ..contract import Done, ExampleUnit, Need, Study, Unit, provenance
from ..options import Classifier, Data, DrawnRows, Dtype, Limit, MeanBy, Reference, Seed, Split, TaskName

if TYPE_CHECKING:
    from torch import Tensor

    from ...capture.constants import Fitted
    from ...capture.interventions import StandInSource
    from ...models.checkpoint import Checkpoint
    from ...models.encoding import Encoding


# ---------------------------------------------------------------- rows that a fine-tuned checkpoint never saw


def rows_unseen_by(
    checkpoint: str, task: str, data: str | None, limit: int | None = None, seed: int = 0
) -> list[TaskRow]:
    """Sample from all dev examples and those training examples that share no four consecutive words with the examples
    used to fine-tune a checkpoint. Raises InputError if the latter are unknown."""
    return drawn(_every(str(models.opening.locate(checkpoint)), task, data), limit, seed)


@lru_cache(maxsize=4)
def _every(folder: str, task: str, data: str | None) -> tuple[TaskRow, ...]:
    facts = training_log(models.opening.local(folder))
    recipe, seeds = facts.get("recipe", {}), facts.get("seeds", {})
    train = read_rows(task, "train", folder=data)
    learned = drawn(train, recipe.get("train_limit"), seeds.get("rows", 0))
    if facts.get("train_rows_hash") != fingerprint(learned):
        raise InputError(
            "The split unseen needs the training examples of the checkpoint's fine-tuning; the training.json of "
            f"{folder} does not name these training examples of {task}. Give the task and the data of its "
            "fine-tuning, or choose the split dev."
        )
    return tuple(unseen(read_rows(task, "dev", folder=data), train, learned))


ROWS_A_UNIT = 64
WHOLE = {"blocks": "attention", "feedforward": "feedforward", "layers-whole": "layer"}  # taken out whole
TARGETS = ("heads", "layers", "all-but-one", "groups", "duplicates", *WHOLE)


@pydantic.dataclasses.dataclass(frozen=True)
class ExampleOptions:
    """Options that select a checkpoint, a task and examples."""

    checkpoint: Classifier
    task: TaskName = "sst2"
    data: Data = None
    split: Split = "dev"
    limit: Limit = 500
    seed: Seed = 0


@pydantic.dataclasses.dataclass(frozen=True)
class AblationOptions(ExampleOptions):
    """Options that all ablation studies have: checkpoint, task, examples and number format."""

    dtype: Dtype = "float32"


O = TypeVar("O", bound=ExampleOptions)  # noqa: E741 - the options' type
P = TypeVar("P")


@dataclass(frozen=True)
class Opened:
    """A loaded classifier, with the task that it solves and the task label of each of its outputs."""

    checkpoint: "Checkpoint"
    task: Task
    order: tuple[int, ...]

    def predicted(self, logits: "Tensor") -> np.ndarray:
        if self.task.is_score:
            return logits[..., 0].double().numpy()
        return np.array(self.order)[logits.argmax(-1).numpy()]

    def outputs(self, rows: Sequence[TaskRow]) -> list[int | float]:
        """Convert the gold labels of examples to the model's output indices. Scores are returned unchanged."""
        return [row.label if self.task.is_score else list(self.order).index(int(row.label)) for row in rows]

    def encoded(self, rows: Sequence[TaskRow]) -> "list[Encoding]":
        return [self.checkpoint.encode(row.text, row.pair) for row in rows]


def strongest_rival(logits: np.ndarray, answer: np.ndarray) -> np.ndarray:
    """Return, for each example, the index of the largest logit except `answer`. Logits are [example, output]."""
    others = logits.copy()
    others[np.arange(len(logits)), answer] = -np.inf
    return others.argmax(1)


def opened(options: ExampleOptions) -> Opened:
    """Load the classifier that the options name, in float32. Only the computation of ablations uses `dtype`."""
    classifier = studies.worker_cache.get_checkpoint(options.checkpoint, head="classifier")
    task = task_of(options.task)
    return Opened(classifier, task, label_order(task, classifier.labels))


class ExampleStudy(Study[O, P]):
    """Base class of studies that measure a classifier on labelled examples of a task."""

    arguments = ExampleUnit
    needs = frozenset({Need.CLASSIFIER, Need.LABELS})

    def units(self, options: O) -> list[Unit]:
        return units_of(options)

    def run(self, options: O, unit: Unit) -> Done[P]:
        classifier, rows = opened(options), rows_of(options)
        some = [rows[k] for k in unit.arguments.positions]
        partial, dtype = self.on_examples(options, classifier, some, unit.arguments)
        return Done(partial, provenance(classifier.checkpoint, [row.id for row in some], dtype=dtype))

    def on_examples(
        self, options: O, opened: Opened, rows: Sequence[TaskRow], unit: ExampleUnit
    ) -> tuple[P, str | None]:
        """Measure the classifier on `rows`. Return the partial result and the number format, such as "bfloat16". The
        format is None if it is that of the checkpoint."""
        raise NotImplementedError


def rows_of(options: ExampleOptions, split: str | None = None, limit: int | None = None) -> list[TaskRow]:
    """Load the examples that the options select. `split` and `limit` override the options of the same name."""
    limit = options.limit if limit is None else limit
    if limit is not None and limit < 2:
        raise InputError(f"The limit on the number of examples must be at least 2; got {limit}. Raise the limit.")
    split = split or options.split
    if split == SPLIT:
        return rows_unseen_by(options.checkpoint, options.task, options.data, limit, options.seed)
    return read_rows(options.task, split, folder=options.data, limit=limit, seed=options.seed)


def units_of(options: ExampleOptions, name: str = "rows", *, most: int | None = None, **about: Any) -> list[Unit]:
    """Divide the selected examples into units of work. Keyword arguments become fields of each `ExampleUnit`."""
    rows = rows_of(options)
    return units_of_rows(rows, range(len(rows)), name, most=most or ROWS_A_UNIT, **about)


def units_of_rows(
    rows: Sequence[TaskRow], positions: Iterable[int], name: str, *, most: int, **about: Any
) -> list[Unit]:
    """Divide the examples at the given positions into units of work, with at most `most` examples of similar length."""
    sizes = {int(k): len(rows[k].text) + len(rows[k].pair or "") for k in positions}
    order = sorted(sizes, key=lambda k: (sizes[k], k))
    parts = [tuple(order[k : k + most]) for k in range(0, len(order), most)]
    return [
        Unit(f"{name}-{k}", ExampleUnit(part, **about), max(1, sum(sizes[at] for at in part) // 4))
        for k, part in enumerate(parts)
    ]


# ---------------------------------------------------------------- sets of heads


@dataclass(frozen=True)
class AblationTarget:
    """One or more components of a model that are ablated together, such as a head, a layer or a group of heads."""

    name: str
    layer: int | None
    head: int | None
    heads: tuple[Head, ...]
    role: str | None = None
    group: int | None = None
    distance: float | None = None
    parts: tuple[LayerBlock, ...] = ()

    @property
    def components(self) -> frozenset[Component]:
        return frozenset((*self.heads, *self.parts))

    def facts(self) -> Row:
        """Return the fields of a `TargetResult` record that describe this target."""
        return vars(self) | {"heads": group_name(self.heads), "parts": group_name(self.parts)}


def groups_of(text: str) -> list[tuple[Component, ...]]:
    """Parse groups of components, separated by semicolons, such as "L1H2,L7H6; L4H1,L2-attention"."""
    groups = [tuple(dict.fromkeys(parse_components(part))) for part in text.split(";") if part.strip()]
    if not groups or not all(groups):
        raise InputError(
            f'Groups of heads must be written like "L1H2,L7H6; L4H1"; got "{text[:60]}". Correct the groups.'
        )
    return groups


def _group(components: Sequence[Component]) -> AblationTarget:
    heads = tuple(component for component in components if isinstance(component, Head))
    parts = tuple(component for component in components if isinstance(component, LayerBlock))
    return AblationTarget(group_name(components), None, None, heads, parts=parts)


def head_groups_of(text: str) -> list[tuple[Head, ...]]:
    """Parse groups of heads such as "L1H2,L7H6; L4H1". Raises InputError if a group contains a sublayer or layer."""
    groups = groups_of(text)
    if parts := [component for group in groups for component in group if isinstance(component, LayerBlock)]:
        raise InputError(
            f"Only heads can have a fixed pattern; {parts[0]} is a sublayer or a layer. Remove {parts[0]}."
        )
    return [tuple(component for component in group if isinstance(component, Head)) for group in groups]


def has_parts(what: str, heads: str) -> bool:
    """Return True if the target contains sublayers or whole layers, which can only be ablated by zeroing."""
    if what != "groups":
        return what in WHOLE
    return any(isinstance(component, LayerBlock) for group in groups_of(heads) for component in group)


def with_groups(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Set the option `what` to "groups" if heads are named. Raises InputError if `what` conflicts with named heads."""
    what = given.get("what", "heads")
    if not given.get("heads"):
        return given
    if what not in ("heads", "groups"):
        raise InputError(
            f"If heads are named, the option “what” must be heads or groups; got {what!r}. Remove the named heads, or "
            "set the option “what” to groups."
        )
    return {**given, "what": "groups"}


def group_name(heads: Sequence[Component]) -> str:
    """Format a group of components as text, such as "L1H2,L7H6"."""
    return ",".join(str(head) for head in heads)


def targets_of(what: str, heads: str, layers: int, width: int, attending: Sequence[int] = ()) -> list[AblationTarget]:
    """List the ablation targets of the kind `what`, such as "heads", in a model with `layers` layers of `width`
    heads."""
    all_sets = [[Head(layer, head) for head in range(width)] for layer in attending or range(layers)]
    if what == "heads":
        return [AblationTarget(str(head), head.layer, head.head, (head,)) for row in all_sets for head in row]
    if what == "layers":
        return [AblationTarget(f"L{row[0].layer + 1}", row[0].layer, None, tuple(row)) for row in all_sets]
    if what == "all-but-one":
        return [
            AblationTarget(
                f"all of L{head.layer + 1} but H{head.head + 1}", *head, tuple(other for other in row if other != head)
            )
            for row in all_sets
            for head in row
        ]
    if what == "groups":
        return [_group([component.within(layers, width) for component in group]) for group in groups_of(heads)]
    if what in WHOLE:
        parts = every_part(layers, [WHOLE[what]])
        return [AblationTarget(str(part), part.layer, None, (), parts=(part,)) for part in parts]
    raise InputError(f'Only {", ".join(TARGETS)} can be ablated; got "{what}". Choose one of them.')


# ---------------------------------------------------------------- outputs that replace those of ablated heads

REFERENCE_ROWS = 200
FITTED_ROWS = 64  # of the reference rows, those to which constants are fitted
DRAWS = 3  # rows drawn for each input
FIT_STEPS = 20  # of the constants' descent
MEANS = {"class": "class of position", "position": "absolute position", "all": "all positions together"}


@pydantic.dataclasses.dataclass(frozen=True)
class ReferenceOptions(ExampleOptions):
    """Options for the ablation methods "mean", "resample" and "constant", which replace the outputs of heads."""

    reference: Reference = REFERENCE_ROWS
    draws: DrawnRows = DRAWS
    mean_by: MeanBy = "class"


def check_replacements(operator: str, options: ReferenceOptions) -> None:
    """Raise InputError if the settings for replacing the outputs of heads do not fit the ablation method."""
    if operator in ("mean", "resample", "constant") and options.reference < 2:
        raise InputError(
            f'The ablation method "{operator}" needs at least two reference examples; got '
            f"{max(0, options.reference)}. Use more reference examples."
        )
    if operator == "mean":
        check_choice("The grouping for mean ablation", options.mean_by, MEANS)
    if operator == "resample" and options.draws < 1:
        raise InputError(
            f"Resample ablation must draw at least one example for each input; got {options.draws} draws. Raise the "
            "number of draws."
        )


def replacements(operator: str, opened: Opened, options: ReferenceOptions) -> "list[StandInSource | None]":
    """Create replacements for head outputs, one per random draw. Return [None] if the method needs none."""
    check_replacements(operator, options)
    if operator not in capture.interventions.FROM_REFERENCE:
        return [None]
    if operator == "constant":
        return [fitted_constants(opened, options).source]
    encodings = opened.encoded(reference_rows(opened, options))
    if operator == "mean":
        return [capture.outputs.mean_outputs(opened.checkpoint, encodings, by=options.mean_by)]
    return [
        capture.outputs.Donors(opened.checkpoint, tuple(encodings), options.seed, draw) for draw in range(options.draws)
    ]


def reference_rows(opened: Opened, options: ReferenceOptions, most: int | None = None) -> list[TaskRow]:
    """Sample the training examples from which replacement outputs are computed."""
    limit = options.reference if most is None else min(most, options.reference)
    return read_rows(opened.task, "train", folder=options.data, limit=limit, seed=options.seed)


def fitted_constants(opened: Opened, options: ReferenceOptions) -> "Fitted":
    """Return a constant output for every head, chosen to minimise the loss. The worker caches these constants."""
    about = opened.checkpoint
    key = (about.name, about.weights_hash, opened.task.key, options.data, options.seed, options.reference)
    if key not in _FITTED:
        _FITTED.clear()  # a worker meets one job at a time
        _FITTED[key] = fit_constants(opened, reference_rows(opened, options, FITTED_ROWS))
    return _FITTED[key]


def fit_constants(opened: Opened, rows: list[TaskRow], heads: Collection[Head] | None = None) -> "Fitted":
    """Fit the constant outputs that minimise the loss when they replace the outputs of heads."""
    return capture.constants.optimal_constants(
        opened.checkpoint, opened.encoded(rows), opened.outputs(rows), steps=FIT_STEPS, heads=heads
    )


_FITTED: dict[tuple[Any, ...], "Fitted"] = {}


def expected_logits(logits: "Sequence[Tensor]", *, is_score: bool) -> "Tensor":
    """Average model outputs over random draws. Return the log of the mean class probabilities, or the mean score."""
    import torch  # 1.3 s of start-up

    if len(logits) == 1:
        return logits[0]
    stacked = torch.stack(list(logits))
    return stacked.mean(0) if is_score else torch.softmax(stacked, -1).mean(0).log()
