"""What patching says of one head: what it brings back of a difference, and what a later head reads of it."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy  # its parts load when they are used

from ...attention import Head
from ...capture.edge_names import edge_name
from ...scoring.few_inputs import FEWEST
from ...scoring.recovered_share import FLOOR
from .predicates import Hypothesis
from .readings import Evidence, Reading, effect_estimate, halves_of, number_of, reading

ONE = Head(0, 0)  # where `effect_estimate` keeps the one number that it has


def property_evidence(hypothesis: Hypothesis, partial: Any, head: Head) -> Evidence:
    """Share of the logit difference that the head's own output brings back; explained: beyond its layer's other heads;
    specific: beyond pairs whose answer stays the same."""
    head.within(partial.layers, partial.heads)
    made = partial.made.astype(bool) & (np.abs(partial.first - partial.second) >= FLOOR)
    turn, whole = np.sign(partial.first - partial.second), np.abs(partial.first - partial.second)
    brought = (partial.patched - partial.second) * turn
    moved = made & (partial.second <= 0)  # B's own answer is another one
    own_number, layer = head.layer * partial.heads + head.head, head.layer * partial.heads
    others = [k for k in range(layer, layer + partial.heads) if k != own_number]
    return _of_pairs("difference that comes back", brought[own_number], whole, brought[others], (moved, made & ~moved),
                     hypothesis.least)  # fmt: skip


def edge_evidence(hypothesis: Hypothesis, partial: Any, head: Head) -> Evidence:
    """Share of the logit difference that the edge carries; explained: beyond the edges from its layer's other heads;
    specific: beyond pairs of the same answer."""
    reader, kind = hypothesis.parameter("reader"), hypothesis.parameter("input")
    names = list(partial.names)
    own_index = names.index(edge_name(head, reader, kind))
    beside = [edge_name(Head(head.layer, k), reader, kind) for k in range(partial.heads) if k != head.head]
    turn, same = np.sign(partial.gap), partial.same.astype(bool)
    effects = partial.effects * turn
    return _of_pairs("difference that the edge carries", effects[own_index], np.abs(partial.gap),
                     effects[[names.index(name) for name in beside]], (~same, same),
                     hypothesis.least)  # fmt: skip


def _of_pairs(
    of: str,
    brought: np.ndarray,
    whole: np.ndarray,
    others: np.ndarray,
    sides: tuple[np.ndarray, np.ndarray],
    least: float,
) -> Evidence:
    """brought, whole: logits by pair; others: of the other heads [head, pair]; sides: pairs of different and of the
    same answer. A share is a ratio of means over the first."""
    moved, same = sides
    if moved.sum() < FEWEST:
        nothing = f"a share takes {FEWEST} pairs whose answers differ, and there are {int(moved.sum())}"
        return Evidence(nothing, nothing, nothing, nothing, nothing)
    unit = whole[moved].mean()
    beyond = (brought[moved] - least * whole[moved]) / unit
    effect = _shifted(f"share of the {of}", beyond, least)
    explained: Reading | str = "its layer has no other head"
    if len(others):
        beside = (brought[moved] - others[:, moved].mean(0)) / unit
        explained = reading("that less the mean of its layer's other heads", effect_estimate(beside).result(), ONE)
    halves = halves_of(f"share of the {of}, beyond {least:g}", effect_estimate(beyond), 0, ONE)
    return Evidence(effect, explained, _beyond_same(brought, whole, moved, same), halves, effect)


def _shifted(measure: str, beyond: np.ndarray, least: float) -> Reading | str:
    """A mean beyond `least`, told with it."""
    shifted = reading(measure, effect_estimate(beyond).result(), ONE)
    if isinstance(shifted, str):
        return shifted
    value, low, high = (None if end is None else end + least for end in (shifted.value, shifted.low, shifted.high))
    return Reading(measure, value, low, high, shifted.n, shifted.p, least, least)


def _beyond_same(brought: np.ndarray, whole: np.ndarray, moved: np.ndarray, same: np.ndarray) -> Reading | str:
    """The share less that on pairs of the same answer, with Welch's interval on what each pair adds to its ratio."""
    if same.sum() < FEWEST:
        return f"{int(same.sum())} pairs have the same answer, and a comparison takes {FEWEST}"
    shares, errors = [], []
    for side in (moved, same):
        share = brought[side].sum() / whole[side].sum()
        influence = (brought[side] - share * whole[side]) / whole[side].mean()
        shares.append(share)
        errors.append(influence.var(ddof=1) / side.sum())
    apart, error, n = shares[0] - shares[1], float(np.sqrt(sum(errors))), int(min(moved.sum(), same.sum()))
    reach = float(scipy.stats.t.ppf(0.975, n - 1)) * error
    return Reading("share less that on pairs of the same answer", float(apart), number_of(apart - reach),
                   number_of(apart + reach), n, baseline=float(shares[1]))  # fmt: skip


READERS: Mapping[str, Callable[[Hypothesis, Any, Head], Evidence]] = MappingProxyType(
    {
        "property": property_evidence,
        "read-by": edge_evidence,
    }
)
