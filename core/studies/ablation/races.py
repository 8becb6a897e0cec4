"""What a race of heads measures and asks for next: its rows in the order of the draw, its margin, its rounds."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
import pydantic.dataclasses

from ... import capture
from ...errors import InputError, InterventionError
from ...scoring.racing import ALPHA, FIRST, RaceStep, Rules, Standings, next_step, standings
from ...tasks.glue import Task, TaskRow
from ..contract import Flag
from ..options import Limit
from . import references
from .disabling import SweepOptions, Variant, groups_of, has_parts, variants_of

SHARE = 0.05  # of the loss of the best constant answer: the default margin (docs/racing.md says why)
BACKWARD = 3.0  # passes of a row that all its first-order effects cost: one forward, and twice that backward
HOPELESS = 0.05  # chance of a verdict on all rows below which a head takes no more of them
LEAST = 1e-6  # effects below this are rounding
KINDS = ("heads", "layers", "all-but-one", "groups")


@pydantic.dataclasses.dataclass(frozen=True)
class RaceOptions(SweepOptions, references.ReferenceOptions):
    """What races, of which checkpoint, on which rows, against which margin."""

    limit: Limit = None
    what: Annotated[str, Flag("heads, layers, all-but-one or groups")] = "heads"
    operator: Annotated[str, Flag("disable, zero, mean, resample, constant, previous, current, next or first")] = (
        "disable"
    )
    heads: Annotated[str, Flag('groups disabled together, like "L1H2,L7H6; L4H1"')] = ""
    margin: Annotated[
        float | None,
        Flag("of the mean change of the task's loss (nats, or squared error); default: 5% of the best constant's loss"),
    ] = None
    clip: Annotated[
        float | None,
        Flag("the most that a row's loss counts; default: the best constant's loss. More takes more rows"),
    ] = None
    alpha: Annotated[float, Flag("chance of any wrong verdict, over all heads and looks")] = ALPHA
    first: Annotated[
        int,
        Flag(
            "rows at the first look; later ones have a fifth more each, once heads can be found not to matter", least=4
        ),
    ] = FIRST
    survivors: Annotated[
        bool, Flag("sweep heads that matter in full, for the metric", name="--survivors/--verdicts-only")
    ] = True


@dataclass(frozen=True)
class Round:
    """What a unit measures.

    Attributes:
        variants: their numbers; None for all.
        first_order: whether effects are measured to first order too.
    """

    rows: tuple[int, ...]
    variants: tuple[int, ...] | None
    first_order: bool
    number: int


@dataclass(frozen=True)
class Taken:
    """What was measured of some rows; NaN where a variant was not run.

    Attributes:
        rows: their places in the task. *Shape:* (row,), int.
        gold: labels as the task numbers them, or scores. *Shape:* (row,).
        loss: untouched: cross-entropy in nats, or squared error. *Shape:* (row,).
        plain: predictions of the untouched model. *Shape:* (row,).
        changed: predictions under every variant. *Shape:* (variant, row).
        exact: effects on the loss. *Shape:* (variant, row).
        first_order: the same to first order, from gradients. *Shape:* (variant, row).
        fast: whether what variants share was run once.
    """

    rows: np.ndarray
    layers: int
    heads: int
    gold: np.ndarray
    loss: np.ndarray
    plain: np.ndarray
    changed: np.ndarray
    exact: np.ndarray
    first_order: np.ndarray
    fast: bool
    rounds: int


def draw(options: RaceOptions, rows: int) -> np.ndarray:
    """The order in which a race takes the rows of its task.

    Returns:
        Places of rows in the task, the first to be taken first. *Shape:* (row,), int.
    """
    return np.random.default_rng([options.seed, rows]).permutation(rows)


def constant_loss(task: Task, gold: np.ndarray) -> float:
    """The mean loss of the best constant answer.

    Args:
        gold: labels or scores. *Shape:* (row,).

    Returns:
        The entropy of the labels in nats, or the variance of the scores; above 0.

    Raises:
        InputError: it is 0: rows of one class, or of one score.
    """
    if task.is_score:
        spread = float(np.var(gold))
    else:
        shares = np.unique(gold, return_counts=True)[1] / len(gold)
        spread = float(-(shares * np.log(shares)).sum())
    if not spread > 0:
        kind = "score" if task.is_score else "class"
        raise InputError(
            f"A race needs rows of more than one {kind}; the {len(gold)} rows of {task.name} have one alone "
            f"({gold[0]}): take more rows, or others."
        )
    return spread


def rules_of(options: RaceOptions, task: Task, rows: Sequence[TaskRow], heads: int) -> Rules:
    """The rules asked for. The default margin is 5% of what knowing nothing costs, and a row's loss counts up to what
    knowing nothing costs, or twice a margin above half of that. Raises InputError as `constant_loss`."""
    nothing = constant_loss(task, np.array([row.label for row in rows]))
    margin = SHARE * nothing if options.margin is None else options.margin
    clip = max(nothing, 2 * margin) if options.clip is None else options.clip
    return Rules(margin, clip, len(rows), heads, options.alpha, options.first, HOPELESS)


def clipped(loss: np.ndarray, effects: np.ndarray, clip: float) -> np.ndarray:
    """Effects on a loss of which each row counts only up to a bound.

    Args:
        loss: of each row, untouched. *Shape:* (row,).
        effects: on it. *Shape:* (variant, row).

    Returns:
        Effects on the clipped loss; NaN where `effects` is. *Shape:* (variant, row).
    """
    return np.minimum(loss + effects, clip) - np.minimum(loss, clip)


@dataclass(frozen=True)
class Race:
    """A race at some point. rows: of the task, all; taken: what was measured of them."""

    options: RaceOptions
    task: Task
    rows: Sequence[TaskRow]
    taken: Taken

    @cached_property
    def variants(self) -> list[Variant]:
        """What races, in the order of the heads."""
        return variants_of(self.options.what, self.options.heads, self.taken.layers, self.taken.heads)

    @cached_property
    def rules(self) -> Rules:
        """What verdicts are held to."""
        return rules_of(self.options, self.task, self.rows, len(self.variants))

    @cached_property
    def costs(self) -> np.ndarray:
        """What a row's effect of each variant costs, in passes of a row; the untouched pass is left out."""
        layers = self.taken.layers
        return np.array([
            capture.packed_rows.cost_of(variant.heads, layers) if self.taken.fast else 1.0 for variant in self.variants
        ])  # fmt: skip

    @cached_property
    def exact(self) -> np.ndarray:
        """Exact effects on the clipped loss in the order of the draw [variant, row]; NaN where not taken."""
        return self._drawn(clipped(self.taken.loss, self.taken.exact, self.rules.clip))

    @cached_property
    def first_order(self) -> np.ndarray:
        """First-order effects in the order of the draw [variant, row]; NaN where not taken."""
        return self._drawn(self.taken.first_order)

    def _drawn(self, effects: np.ndarray) -> np.ndarray:
        whole = np.full((len(self.variants), len(self.rows)), np.nan)
        whole[:, self.taken.rows.astype(int)] = effects
        return whole[:, draw(self.options, len(self.rows))]

    @property
    def has_begun(self) -> bool:
        """Whether the rows of the first look are all measured."""
        first = self.rules.first
        return bool(np.isfinite(self.exact[:, :first]).all() and np.isfinite(self.first_order[:, :first]).all())

    @cached_property
    def standings(self) -> Standings:
        """Where each variant stands."""
        return standings(self.exact, self.rules)

    def next(self) -> RaceStep:
        """What is to be measured next.

        Raises InterventionError where the operator did nothing to any row of the first look.
        """
        if self.has_begun and (np.abs(self.exact[:, : self.rules.first]) < LEAST).all():
            raise InterventionError(
                f"The operator {self.options.operator} changed the loss of none of the first {self.rules.first} rows, "
                "whatever it was done to; such a race says nothing: check the checkpoint (python -m core check), or "
                "choose another."
            )
        return next_step(self.exact, self.rules)

    @cached_property
    def left(self) -> tuple[np.ndarray, np.ndarray]:
        """Variants that matter, and the places of rows that some of them lack; none where the metric is not wanted of
        them."""
        matter = np.flatnonzero([verdict == "matters" for verdict in self.standings.verdicts])
        if not self.options.survivors or not len(matter):
            return matter[:0], matter[:0]
        lacking = np.isnan(self.exact[matter]).any(0)
        return matter, draw(self.options, len(self.rows))[lacking]


def check(options: RaceOptions, task: Task, rows: Sequence[TaskRow]) -> Rules:
    """The rules of a race of one head, for what can be refused before anything is opened. Raises InputError."""
    if options.what not in KINDS:
        raise InputError(f'What races is one of {", ".join(KINDS)}; "{options.what}" is none of them: choose one.')
    if has_parts(options.what, options.heads):
        raise InputError(
            f'Heads race, alone or in groups; "{options.heads[:60]}" names blocks or layers: leave them out, or sweep '
            "in full."
        )
    if options.what == "groups":
        groups_of(options.heads)
    return rules_of(options, task, rows, 1)


def merged(parts: Sequence[Taken]) -> Taken:
    """All that was measured, rows in the task's order.

    Args:
        parts: a row may be in several of them under different variants; of numbers that two have the later counts.
    """
    places = np.unique(np.concatenate([part.rows for part in parts])).astype(int)
    arrays: dict[str, np.ndarray] = {}
    for name in ("gold", "loss", "plain", "changed", "exact", "first_order"):
        shape = getattr(parts[0], name).shape[:-1]
        arrays[name] = np.full((*shape, len(places)), np.nan)
        for part in parts:
            where, values = np.searchsorted(places, part.rows), getattr(part, name)
            arrays[name][..., where] = np.where(np.isnan(values), arrays[name][..., where], values)
    first = parts[0]
    fast, rounds = all(part.fast for part in parts), max(part.rounds for part in parts)
    return Taken(rows=places, layers=first.layers, heads=first.heads, fast=fast, rounds=rounds, **arrays)
