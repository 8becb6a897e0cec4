"""What role a head plays: where its weight goes, against a baseline, and once more with the sink taken out.

The mean over the queries that have a target of the weight on it; range 0 to 1. Targets and baselines:

    previous, next   the neighbour; a head that spreads evenly over the keys it may see
    first            the first token ([CLS] or the start token); likewise
    separator        all separators together; the head's own mean weight on other keys at the same distance
    duplicate        from the second occurrence of a token to the first; the same cells of a control without repeats
    prefix           from the second occurrence to the token after the first (Olsson et al. 2022); likewise
    rare             how often the largest weight is on the least frequent word; a draw among the keys that are seen
    dependency       from a word to its governor and dependents; the head's own mean on others at the same distance

The first token is where heads look when they have nothing to look at (the sink). Taken out: its column is dropped and
what is left of each row is scaled to sum to 1, so that a head that looks at the previous token when it looks at all is
found, and one that looks at the first token is not called positional. A row with less than LEAST left counts as 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from jaxtyping import Bool, Float

from ..errors import InputError
from .corrections import q_values
from .intervals import Means, StatisticEstimate

Role = Literal["previous", "next", "first", "separator", "duplicate", "prefix", "rare", "dependency"]
ROLES: tuple[Role, ...] = get_args(Role)
OWN_DISTANCE = ("separator", "dependency")  # whose baseline is the head's own weight at the same distance
TIMES = 3.0  # a head has a role when its weight is above so many times the baseline's (Pande et al.'s sieve)
LEAST = 0.01  # of a row's weight: scaled up from less, it would be noise


@dataclass(frozen=True)
class RolePositions:
    """Where an input's targets are.

    Attributes:
        repeat: (start, period) of tokens that come twice in a row; None: there are none.
        causal: whether queries see only keys up to their own.
    """

    length: int
    first: int = 0
    separators: tuple[int, ...] = ()
    repeat: tuple[int, int] | None = None
    causal: bool = False
    rare: tuple[int, ...] = ()
    links: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        start, period = self.repeat or (0, 1)
        end = start + 2 * period if self.repeat else 0
        named = (self.first, *self.separators, *self.rare, *(k for link in self.links for k in link))
        if not all(0 <= k < self.length for k in named) or end > self.length or period < 1:
            raise InputError(
                f"Tokens and both halves of a repeat lie inside an input of {self.length} tokens; seen "
                f"{self.first}, {self.separators}, {self.rare} and {self.repeat}."
            )

    def seen(self) -> Bool[np.ndarray, "query key"]:
        """Which keys a query may look at; none for a decoder's first query, which has no choice."""
        visible = np.ones((self.length, self.length), dtype=bool)
        return np.tril(visible) & (np.arange(self.length) > 0)[:, None] if self.causal else visible

    def targets(self, role: Role) -> Bool[np.ndarray, "query key"]:
        """The cells of a role that its queries may look at.

        Returns:
            True at targets; nowhere where the input has no such thing.
        """
        cells = np.zeros((self.length, self.length), dtype=bool)
        if role in ("previous", "next"):
            cells = np.eye(self.length, k=1 if role == "next" else -1, dtype=bool)
        elif role in ("first", "separator"):
            cells[:, [self.first] if role == "first" else list(self.separators)] = True
        elif role == "rare":
            cells[np.ix_([k for k in range(self.length) if k not in self.rare], self.rare)] = True
        elif role == "dependency":
            for first, counterpart in self.links:
                cells[first, counterpart] = cells[counterpart, first] = first != counterpart
        elif self.repeat:
            start, period = self.repeat
            second = np.arange(start + period, start + 2 * period)
            cells[second, second - period + (role == "prefix")] = True
        return cells & self.seen()


@dataclass(frozen=True)
class RoleScore:
    """A role of every head on one input, NaN where the input has no target.

    Attributes:
        weight, baseline: weight on the role's targets, and the baseline's. *Range:* 0 to 1.
        without_sink, baseline_without_sink: the same without the sink; NaN for targets on the sink alone.
        left: mean share of the rows' weight that does not lie on the sink. *Range:* 0 to 1.
    """

    weight: Float[np.ndarray, "*heads"]
    baseline: Float[np.ndarray, "*heads"]
    without_sink: Float[np.ndarray, "*heads"]
    baseline_without_sink: Float[np.ndarray, "*heads"]
    left: Float[np.ndarray, "*heads"]


def role_scores(
    weights: Float[np.ndarray, "*heads query key"],
    places: RolePositions,
    *,
    control: Float[np.ndarray, "*heads query key"] | None = None,
    only: Sequence[Role] = ROLES,
) -> dict[Role, RoleScore]:
    """Roles of every head on one input.

    Args:
        weights: the input's maps, rows sum to 1.
        places: where its targets are.
        control: maps of an input as long without repeats; None only where `places` has no repeat.

    Raises:
        InputError: `places` has a repeat and there is no control.
    """
    if places.repeat and control is None:
        raise InputError("Roles on repeated tokens need maps of a control of the same length without repeats: give it.")
    sink, visible = places.first, places.seen()
    looked = _InputMaps(np.asarray(weights, dtype=float), control, visible)
    rest_seen = visible & (np.arange(places.length) != sink)
    its_rest = None if control is None else without_sink(control, sink)
    without = _InputMaps(without_sink(weights, sink), its_rest, rest_seen)
    rows = visible.any(-1)
    left = 1 - looked.weights[..., rows, sink].mean(-1) if rows.any() else np.full(weights.shape[:-2], np.nan)
    scores: dict[Role, RoleScore] = {}
    for role in only:
        cells = places.targets(role)
        scores[role] = RoleScore(*looked.score(role, cells), *without.score(role, cells), left)
    return scores


def without_sink(weights: Float[np.ndarray, "*heads query key"], sink: int) -> Float[np.ndarray, "*heads query key"]:
    """Weights with the sink's column 0 and every row scaled to sum to 1.

    Args:
        weights: maps, rows sum to 1; not written to.

    Returns:
        float64; rows with less than LEAST left are 0.
    """
    without = weights.astype(float)
    without[..., sink] = 0
    left = without.sum(-1, keepdims=True)
    return np.where(left >= LEAST, without / np.maximum(left, LEAST), 0.0)


@dataclass(frozen=True)
class _InputMaps:
    """One input's maps, as they are or without the sink, and which keys a query may look at."""

    weights: np.ndarray
    control: np.ndarray | None
    seen: np.ndarray

    def score(self, role: Role, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The weight on the role's cells, and the baseline's."""
        cells = cells & self.seen
        if not cells.any():
            nothing = np.full(self.weights.shape[:-2], np.nan)
            return nothing, nothing
        on = _largest_on if role == "rare" else on_targets
        return on(self.weights, cells), _baseline(role, self.weights, self.control, cells, self.seen)


def _largest_on(weights: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Share of the queries that have a target whose largest weight is on one; of rows without weight none is."""
    rows = cells.any(-1)
    shown, targets = weights[..., rows, :], cells[rows]
    chosen = shown.argmax(-1)
    return np.asarray((targets[np.arange(len(targets)), chosen] & (shown.max(-1) > 0)).mean(-1))


def on_targets(
    weights: Float[np.ndarray, "*heads query key"], cells: Bool[np.ndarray, "query key"]
) -> Float[np.ndarray, "*heads"]:
    """Mean over the queries that have a target of the weight on their targets.

    Returns:
        *Range:* 0 to 1; NaN where no query has a target.
    """
    rows = int(cells.any(-1).sum())
    if not rows:
        return np.full(weights.shape[:-2], np.nan)
    queries, keys = np.nonzero(cells)
    return np.asarray(weights[..., queries, keys].sum(-1) / rows)


def _baseline(
    role: Role, weights: np.ndarray, control: np.ndarray | None, cells: np.ndarray, visible: np.ndarray
) -> np.ndarray:
    even = visible / np.maximum(visible.sum(-1, keepdims=True), 1)
    if role in OWN_DISTANCE:
        return _at_the_distance(weights, cells, visible, even)
    if role in ("duplicate", "prefix"):
        return np.full(weights.shape[:-2], np.nan) if control is None else on_targets(control, cells)
    return np.broadcast_to(on_targets(even, cells), weights.shape[:-2]).copy()


def _at_the_distance(weights: np.ndarray, cells: np.ndarray, visible: np.ndarray, even: np.ndarray) -> np.ndarray:
    """The baseline of OWN_DISTANCE: each target counts what the head gives to other cells at its distance, in the mean.

    Where there is no such cell that a query may look at, it counts what a head that spreads evenly gives.
    """
    length, elsewhere = len(cells), visible & ~cells
    queries, keys = np.nonzero(cells)
    at = keys - queries + length - 1
    slanted = np.zeros((*weights.shape[:-2], length, 2 * length))  # row q begins at length - 1 - q: distances below
    slanted[..., :length] = (weights * elsewhere)[..., ::-1, :]  # each other, once a row is one shorter
    flat = slanted.reshape(*weights.shape[:-2], -1)[..., : length * (2 * length - 1)]
    sums = flat.reshape(*weights.shape[:-2], length, 2 * length - 1).sum(-2)
    offset = np.arange(length) - np.arange(length)[:, None] + length - 1
    counts = np.bincount(offset[elsewhere], minlength=2 * length - 1)
    expected = np.where(counts[at] > 0, sums[..., at] / np.maximum(counts[at], 1), even[queries, keys])
    return np.asarray(expected.sum(-1) / cells.any(-1).sum())


# ---------------------------------------------------------------- over many inputs


@dataclass(frozen=True)
class RoleEstimate:
    """A role's weight and effect (weight less baseline), as they are and without the sink; each [layer, head, 1]."""

    weight: StatisticEstimate
    effect: StatisticEstimate
    without_sink: StatisticEstimate
    effect_without_sink: StatisticEstimate


class RoleMeans:
    """Accumulator: every role of every head, its mean over inputs and how sure it is."""

    def __init__(self, layers: int, heads: int):
        self.means = Means(layers, heads, 4 * len(ROLES))

    def update(
        self,
        weights: Float[np.ndarray, "layer head query key"],
        places: RolePositions,
        number: int,
        *,
        control: Float[np.ndarray, "layer head query key"] | None = None,
    ) -> None:
        """Add one input.

        Args:
            weights: its maps, rows sum to 1.
            places: where its targets are.
            number: of the input in the whole study, stable between runs.
            control: maps of an input as long without repeats, where `places` has a repeat.
        """
        for layer, of_layer in enumerate(weights):
            its = None if control is None else control[layer][None]
            self.update_layer(layer, of_layer[None], places, [number], control=its)

    def update_layer(
        self,
        layer: int | slice,
        weights: Float[np.ndarray, "batch head query key"],
        places: RolePositions,
        numbers: Sequence[int],
        *,
        control: Float[np.ndarray, "batch head query key"] | None = None,
        only: Sequence[Role] = ROLES,
    ) -> None:
        """Add one layer of inputs whose targets are in the same places.

        Args:
            layer: zero-based; EVERY_LAYER: `weights` has all layers' heads one after another.
            weights: the inputs' maps, rows sum to 1.
            places: where their targets are.
            numbers: of the inputs in the whole study, stable between runs.
            control: maps of inputs as long without repeats, where `places` has a repeat.
        """
        columns = np.full((*weights.shape[:-2], 4 * len(ROLES)), np.nan)
        for role, score in role_scores(weights, places, control=control, only=only).items():
            without_sink, at = score.without_sink, 4 * ROLES.index(role)
            four = (
                score.weight,
                score.weight - score.baseline,
                without_sink,
                without_sink - score.baseline_without_sink,
            )
            columns[..., at : at + 4] = np.stack(four, -1)
        self.add(layer, columns, numbers)

    def add(
        self,
        layer: int | slice,
        sums: Float[np.ndarray, "batch head statistic"],
        numbers: Sequence[int],
    ) -> None:
        """Add one layer's numbers of every role.

        Args:
            layer: zero-based, or EVERY_LAYER.
            sums: of each role in order its weight, effect, and both without the sink; NaN where there is no target.
        """
        self.means.update(layer, sums, (~np.isnan(sums)).all(1).astype(float), numbers)

    def result(self) -> dict[Role, RoleEstimate]:
        """The estimates of every role; NaN where no input had its targets."""
        estimate = self.means.result()
        return {
            role: RoleEstimate(*(estimate.part(4 * number + index) for index in range(4)))
            for number, role in enumerate(ROLES)
        }


def role_q(means: RoleMeans, *, times: float = TIMES) -> dict[Role, Float[np.ndarray, "layer head"]]:
    """q that a head's weight is above `times` its role's baseline, corrected over heads and roles together.

    Without the sink, where the role has such a score. Pande et al. 2021 (arXiv 2101.09115) test each head and role on
    its own, which among 144 heads and 8 roles finds some by luck; here Benjamini-Hochberg over all of them.

    Args:
        times: how many times the baseline's weight a head's must be above.

    Returns:
        Of each role. *Range:* 0 to 1; NaN where no input, or too few, had the role's targets.
    """
    above = Means(*means.means.sums.shape[1:3], 2 * len(ROLES))
    for name in ("sums", "counts", "inputs"):
        values = getattr(means.means, name)
        weight, effect = values[..., ::2], values[..., 1::2]  # of each role: as it is, then without the sink
        setattr(above, name, (1 - times) * weight + times * effect if name == "sums" else weight)
    estimate = above.result()
    p = []
    for index in range(0, 2 * len(ROLES), 2):
        part = estimate.part(index + 1)
        p.append((part if part.n[0] else estimate.part(index)).p_above()[..., 0])
    q, heads = q_values(np.concatenate(p, 1)), p[0].shape[1]
    return {role: q[:, k * heads : (k + 1) * heads] for k, role in enumerate(ROLES)}
