"""Head scores on the maps page for inputs that are too long for whole maps, from sums of each layer (core.map_sums)."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from ..map_sums import MapSums
from . import heads
from .heads import SpecialPositions, SumBatch
from .registry import HEAD_SCORES


def long_scores(
    sums: Sequence[MapSums], at: SpecialPositions, windows: Sequence[int | None], *, causal: bool, sink: bool = False
) -> dict[str, Float[np.ndarray, "layer head"]]:
    """Return all HEAD_SCORES of one long input by name, from sums over its maps; NaN if undefined.

    Args:
        sums: of each layer, as requested by `special_needs`.
        windows: number of keys that a query of each layer sees (None: all); empty if no layer has a window.
        sink: whether rows have a sink as last key.
    """
    batches = [SumBatch([layer_sums], [at], causal) for layer_sums in sums]
    scores = {
        name: np.stack([score.of(batch)[0] for batch in batches])
        for name, score in HEAD_SCORES.items()
        if score.of and score.of_sums
    }
    if windows or sink:
        length = sums[0].entropies.shape[1]
        visible = np.stack(
            [_counts(length, window, causal=causal) + sink for window in (windows or (None,) * len(sums))]
        )
        rows = np.stack([layer_sums.entropies for layer_sums in sums])
        scores["normalised entropy"] = heads.normalised_mean(rows, causal=causal, visible_keys=visible[:, None])
    return scores


def long_even_scores(
    length: int, at: SpecialPositions, windows: Sequence[int | None], *, causal: bool, sink: bool = False
) -> dict[str, Float[np.ndarray, " layer"]]:
    """Return the HEAD_SCORES of uniform attention on a long input: one value for each layer, or one if layers have no
    windows."""
    layers = [_even(length, at, window, causal=causal, sink=sink) for window in windows or (None,)]
    return {name: np.array([layer[name] for layer in layers]) for name in layers[0]}


def _even(length: int, at: SpecialPositions, window: int | None, *, causal: bool, sink: bool) -> dict[str, float]:
    share = 1 / (_counts(length, window, causal=causal) + sink)
    neighbour = float("nan") if length < 2 else 1.0

    def to_keys(keys: Sequence[int]) -> float:
        start = max(1, min(keys)) if causal and keys else 0
        if not keys or start >= length:
            return float("nan")
        return float((sum(_sees(length, key, window, causal=causal) for key in keys) * share)[start:].mean())

    narrow = window is not None and (window if causal else window // 2 + 1) < 2
    return {
        "normalised entropy": 1.0,
        "previous": neighbour * (0.0 if narrow else float(share[1:].sum() / max(length - 1, 1))),
        "next": float("nan") if causal else neighbour * float(share[:-1].sum() / max(length - 1, 1)) * (not narrow),
        "first": to_keys((at.first,)),
        "separator": to_keys(at.separators),
    }


def _counts(length: int, window: int | None, *, causal: bool) -> Int[np.ndarray, " query"]:
    """The number of tokens that each query sees."""
    position = np.arange(length)
    if causal:
        return np.minimum(position + 1, window or length)
    side = length if window is None else window // 2
    return np.minimum(position, side) + np.minimum(length - 1 - position, side) + 1


def _sees(length: int, key: int, window: int | None, *, causal: bool) -> Bool[np.ndarray, " query"]:
    away = np.arange(length) - key
    is_visible = away >= 0 if causal else np.ones(length, dtype=bool)
    if window is not None:
        is_visible = is_visible & ((away < window) if causal else (np.abs(away) <= window // 2))
    return is_visible
