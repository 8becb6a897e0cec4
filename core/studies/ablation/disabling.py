"""What the studies of disabled heads share: rows of a task, an opened classifier, predictions in the task's labels,
and the sets of heads that are changed together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Required, TypedDict

import numpy as np
import pydantic.dataclasses

from ... import models, studies
from ...attention import Head
from ...capture.components import Component, LayerBlock, every_part, parse_components
from ...errors import InputError
from ...tasks.glue import SPLIT, Task, TaskRow, drawn, fingerprint, label_order, read_rows, task_of, unseen
from ...tuning.saved_checkpoints import training_log
from ..contract import Unit
from ..options import Classifier, Data, Dtype, Limit, Seed, Split, TaskName

if TYPE_CHECKING:
    from torch import Tensor

    from ...models.checkpoint import Checkpoint
    from ...models.encoding import Encoding


# ---------------------------------------------------------------- rows that a fine-tuned checkpoint never saw


def rows_unseen_by(
    checkpoint: str, task: str, data: str | None, limit: int | None = None, seed: int = 0
) -> list[TaskRow]:
    """Dev rows, and train rows that were left out of the fine-tuning and share nothing with what was not.

    Args:
        data: where its rows are.
        limit: at most so many; None: all.

    Returns:
        The rows, at most `limit` of them.

    Raises:
        InputError: nobody knows what it saw.
    """
    return drawn(_every(str(models.opening.locate(checkpoint)), task, data), limit, seed)


@lru_cache(maxsize=4)
def _every(folder: str, task: str, data: str | None) -> tuple[TaskRow, ...]:
    facts = training_log(models.opening.local(folder))
    recipe, seeds = facts.get("recipe", {}), facts.get("seeds", {})
    train = read_rows(task, "train", folder=data)
    learned = drawn(train, recipe.get("train_limit"), seeds.get("rows", 0))
    if facts.get("train_rows_hash") != fingerprint(learned):
        raise InputError(
            f"What a checkpoint never saw is told by what it was fine-tuned on; {folder} was not fine-tuned on these "
            f"train rows of {task}: give the task and the data of its fine-tuning, or take the split dev."
        )
    return tuple(unseen(read_rows(task, "dev", folder=data), train, learned))


ROWS_A_UNIT = 64
PARTS = {"blocks": "attention", "feedforward": "feedforward", "layers-whole": "layer"}  # taken out whole
KINDS = ("heads", "layers", "all-but-one", "groups", "duplicates", *PARTS)


@pydantic.dataclasses.dataclass(frozen=True)
class RowOptions:
    """Which checkpoint, on which rows of which task."""

    checkpoint: Classifier
    task: TaskName = "sst2"
    data: Data = None
    split: Split = "dev"
    limit: Limit = 500
    seed: Seed = 0


@pydantic.dataclasses.dataclass(frozen=True)
class SweepOptions(RowOptions):
    """Which checkpoint, on which rows of which task, and in which precision it runs."""

    dtype: Dtype = "float32"


@dataclass(frozen=True)
class Slice:
    """Some of the task's rows, by their places in it."""

    rows: tuple[int, ...]


@dataclass(frozen=True)
class Opened:
    """A classifier, its task, and which label of the task each of its outputs means."""

    checkpoint: "Checkpoint"
    task: Task
    order: tuple[int, ...]

    def predicted(self, logits: "Tensor") -> np.ndarray:
        """What logits predict, in the task's own labels.

        Args:
            logits: of a score the first one counts. *Shape:* (..., input, label).

        Returns:
            Labels as the task numbers them, or scores. *Shape:* (..., input).
        """
        if self.task.is_score:
            return logits[..., 0].double().numpy()
        return np.array(self.order)[logits.argmax(-1).numpy()]

    def outputs(self, rows: Sequence[TaskRow]) -> list[int | float]:
        """Gold labels as numbers of the checkpoint's outputs (scores stay)."""
        return [row.label if self.task.is_score else list(self.order).index(int(row.label)) for row in rows]

    def encoded(self, rows: Sequence[TaskRow]) -> "list[Encoding]":
        """The rows as the checkpoint reads them."""
        return [self.checkpoint.encode(row.text, row.pair) for row in rows]


def opened(options: RowOptions) -> Opened:
    """The classifier of the options, which this worker keeps for its next unit; in float32, a sweep's dtype is that of
    its own layers. Raises CheckpointError."""
    classifier = studies.worker_cache.get_checkpoint(options.checkpoint, head="classifier")
    task = task_of(options.task)
    return Opened(classifier, task, label_order(task, classifier.labels))


def rows_of(options: RowOptions, split: str | None = None, limit: int | None = None) -> list[TaskRow]:
    """The task's rows that the options name."""
    limit = options.limit if limit is None else limit
    if limit is not None and limit < 2:
        raise InputError(f"Effects are judged on at least two rows; a limit of {limit} was given: raise it.")
    split = split or options.split
    if split == SPLIT:
        return rows_unseen_by(options.checkpoint, options.task, options.data, limit, options.seed)
    return read_rows(options.task, split, folder=options.data, limit=limit, seed=options.seed)


def slices(options: RowOptions) -> list[tuple[Slice, int]]:
    """Slices of the rows and their sizes, similar lengths together: inputs of one length share a batch."""
    rows = rows_of(options)
    sizes = [len(row.text) + len(row.pair or "") for row in rows]
    order = sorted(range(len(rows)), key=lambda k: (sizes[k], k))
    places = [order[k : k + ROWS_A_UNIT] for k in range(0, len(order), ROWS_A_UNIT)]
    return [(Slice(tuple(row_numbers)), max(1, sum(sizes[k] for k in row_numbers) // 4)) for row_numbers in places]


def units_of(options: RowOptions) -> list[Unit]:
    """Units of the task's rows, a `Slice` each."""
    return [Unit(f"rows-{k}", row_slice, size) for k, (row_slice, size) in enumerate(slices(options))]


# ---------------------------------------------------------------- sets of heads


@dataclass(frozen=True)
class Variant:
    """What is changed together.

    Attributes:
        layer: zero-based; None where it is no single one.
        head: zero-based; None where it is no single one.
        role: of near-duplicates only, as the next two (`core.studies.ablation.disable`): TOGETHER, ALONE or CONTROL.
    """

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
        """Heads and parts."""
        return frozenset((*self.heads, *self.parts))

    def facts(self) -> "VariantFacts":
        """The variant as fields of a record; those of near-duplicates where it is one."""
        variant_facts = VariantFacts(name=self.name, layer=self.layer, head=self.head, heads=group_name(self.heads))
        if self.parts:
            variant_facts["parts"] = group_name(self.parts)
        if self.role is not None:
            variant_facts |= {"role": self.role, "group": self.group}
        return variant_facts if self.distance is None else variant_facts | {"distance": self.distance}


class VariantFacts(TypedDict, total=False):
    """What a record says of a variant; `parts`, and those of near-duplicates, where it has them."""

    name: Required[str]
    layer: Required[int | None]
    head: Required[int | None]
    heads: Required[str]
    parts: str
    role: str | None
    group: int | None
    distance: float | None


def groups_of(text: str) -> list[tuple[Component, ...]]:
    """Read "L1H2,L7H6; L4H1,L2-attention": groups between semicolons, heads and blocks between commas."""
    groups = [tuple(dict.fromkeys(parse_components(part))) for part in text.split(";") if part.strip()]
    if not groups or not all(groups):
        raise InputError(f'Groups are written like "L1H2,L7H6; L4H1"; "{text[:60]}" names none: name heads.')
    return groups


def _group(components: Sequence[Component]) -> Variant:
    heads = tuple(component for component in components if isinstance(component, Head))
    parts = tuple(component for component in components if isinstance(component, LayerBlock))
    return Variant(group_name(components), None, None, heads, parts=parts)


def head_groups_of(text: str) -> list[tuple[Head, ...]]:
    """Read groups of heads as `groups_of` does. Raises InputError for a block or layer."""
    groups = groups_of(text)
    if parts := [component for group in groups for component in group if isinstance(component, LayerBlock)]:
        raise InputError(f"Only heads are held at a pattern; {parts[0]} is a block or layer: leave it out.")
    return [tuple(component for component in group if isinstance(component, Head)) for group in groups]


def has_parts(what: str, heads: str) -> bool:
    """Whether blocks or layers are among what is changed; they are taken out whole, under the operator "zero"."""
    if what != "groups":
        return what in PARTS
    return any(isinstance(component, LayerBlock) for group in groups_of(heads) for component in group)


def with_groups(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Given options; heads that are named are groups. Raises InputError where something else is asked for too."""
    what = given.get("what", "heads")
    if not given.get("heads"):
        return given
    if what not in ("heads", "groups"):
        raise InputError(f"Heads are named for groups, but what is disabled is {what!r}; leave one of the two out.")
    return {**given, "what": "groups"}


def group_name(heads: Sequence[Component]) -> str:
    """A group's heads, blocks and layers as they are typed."""
    return ",".join(str(head) for head in heads)


def variants_of(what: str, heads: str, layers: int, width: int, attending: Sequence[int] = ()) -> list[Variant]:
    """What is changed together, in the order of the heads.

    Args:
        what: one of KINDS but "duplicates".
        attending: as of `AttentionMaps`.
    """
    all_sets = [[Head(layer, head) for head in range(width)] for layer in attending or range(layers)]
    if what == "heads":
        return [Variant(str(head), head.layer, head.head, (head,)) for row in all_sets for head in row]
    if what == "layers":
        return [Variant(f"L{row[0].layer + 1}", row[0].layer, None, tuple(row)) for row in all_sets]
    if what == "all-but-one":
        return [
            Variant(
                f"all of L{head.layer + 1} but H{head.head + 1}", *head, tuple(other for other in row if other != head)
            )
            for row in all_sets
            for head in row
        ]
    if what == "groups":
        return [_group([component.within(layers, width) for component in group]) for group in groups_of(heads)]
    if what in PARTS:
        parts = every_part(layers, [PARTS[what]])
        return [Variant(str(part), part.layer, None, (), parts=(part,)) for part in parts]
    raise InputError(f'What is disabled is one of {", ".join(KINDS)}; "{what}" is none of them: choose one.')
