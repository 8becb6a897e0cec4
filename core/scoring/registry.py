"""Descriptions of head scores, and the scores that are computed from maps alone. Does not import torch.

Scores of a study are declared by the study (`Study.head_scores`). To add a score of maps, write a function of a
MapBatch, a record here (`of`), and a test; the statistics study measures it, and the atlas shows it. For inputs that
are too long for whole maps, scores are computed from sums of each layer (core.map_sums).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Int

from ..attention import AttentionMaps, visible_keys
from ..map_sums import MapSums
from . import heads
from .heads import MapBatch, SpecialPositions, SumBatch

Need = Literal["weights", "values", "tokens", "tags", "links", "labels", "gradients", "classifier", "tuned"]
CLARK, KOVALEVA = "Clark et al. 2019", "Kovaleva et al. 2019"


@dataclass(frozen=True)
class HeadScore:
    """The description of a head score: its name, formula, range and required data.

    Attributes:
        low, high: range; None if unbounded.
        causal: whether decoders have it.
        about: what a row's `feature` names, if one score has several.
        of: the score of every head on some inputs' maps (batch, head), for scores that need nothing else.
        of_sums: whether `of` also takes sums; otherwise, maps of long inputs are computed whole.
    """

    name: str
    label: str
    formula: str
    needs: tuple[Need, ...]
    low: float | None
    high: float | None
    source: str
    causal: bool = True
    about: str = ""
    of: Callable[[Any], Any] | None = None
    of_sums: bool = False


def _of_maps(
    name: str, label: str, formula: str, of: Callable[[Any], Any], high: float | None = 1.0, **fields: Any
) -> HeadScore:
    return HeadScore(name, label, formula, ("weights",), 0.0, high, CLARK, of=of, **fields)


MAP_SCORES = (
    _of_maps("entropy", "entropy, nats",
             "mean over queries of -sum p ln p, in nats (decoders: without the first query, which sees itself alone)",
             lambda maps: heads.mean_of_rows(maps.row_entropies, causal=maps.causal), None, of_sums=True),
    _of_maps("normalised entropy", "entropy", "entropy over ln of the number of keys that the query sees, 0 to 1",
             lambda maps: heads.normalised_mean(maps.row_entropies, causal=maps.causal), of_sums=True),
    _of_maps("classifying entropy", "entropy of the classifying token",
             "entropy of the classifying token's row, in nats", heads.classifying_entropy, None, of_sums=True),
    _of_maps("previous", "to previous", "mean weight on the token before the query", lambda maps: maps.to_offset(-1),
             of_sums=True),
    _of_maps("current", "to itself",
             "mean weight on the query's own token (decoders: without the first query)", lambda maps: maps.to_offset(0),
             of_sums=True),
    _of_maps("next", "to next", "mean weight on the token after the query (not in causal models)",
             lambda maps: maps.to_offset(1), causal=False, of_sums=True),
    _of_maps("first", "to first", "mean weight on the first position ([CLS], or the start token)",
             lambda maps: maps.to_set(0), of_sums=True),
    _of_maps("separator", "to separator", "mean weight on all separators together", lambda maps: maps.to_set(1),
             of_sums=True),
    _of_maps("distance", "distance",
             "mean of |query - key| weighted by attention, in tokens (decoders: without the first query)",
             lambda maps: maps.mean_distance, None, of_sums=True),
)  # fmt: skip


def _feature(name: str, formula: str, source: str = KOVALEVA) -> HeadScore:
    needs: tuple[Need, ...] = ("weights", "tags")
    return HeadScore(name, f"to feature ({name})", formula, needs, 0.0, 1.0, source, about="feature")


FEATURE_SCORES = (
    _feature("max", "mean over queries, the largest of the feature's tokens (Kovaleva et al.)"),
    _feature("sum", "mean over queries, all of the feature's tokens together (Clark et al.)", CLARK),
    _feature("max-visible", "mean over the queries that see the token, the largest of the feature's tokens"),
    _feature("classifying", "from the classifying token, the largest of the feature's tokens (Kovaleva et al., Fig 7)"),
)


def link_score(name: str, label: str, formula: str) -> HeadScore:
    """Create the description of a score that measures attention along links between words, from 0 to 1."""
    return HeadScore(name, label, formula, ("weights", "links"), 0.0, 1.0, KOVALEVA, about="relation")


ON_MAPS = ("previous", "next", "first", "separator", "normalised entropy")  # that the maps page sorts by
HEAD_SCORES = {score.name: score for score in MAP_SCORES if score.name in ON_MAPS}


def head_scores(
    weights: Float[Any, "*heads query key"], *, first: int | None, separators: Sequence[int], causal: bool
) -> dict[str, Float[Any, "*heads"]]:
    """Return a dictionary of all HEAD_SCORES for one input; NaN if undefined. `first` is the position of [CLS] or the
    start token; None means position 0."""
    places = [SpecialPositions(first or 0, tuple(separators), first or 0)]
    maps = MapBatch(weights, places, causal)
    return {name: score.of(maps) for name, score in HEAD_SCORES.items() if score.of}


def map_scores(
    maps: AttentionMaps, *, first: int | None, separators: Sequence[int]
) -> dict[str, Float[np.ndarray, "layer head"]]:
    """Return a dictionary of all HEAD_SCORES for some maps; NaN if undefined, as for neighbours in cross attention.

    Entropy is over the keys that the layer sees, including a sink.
    """
    scores = head_scores(maps.weights, first=first, separators=separators, causal=maps.causal)
    if maps.windows or maps.sink:
        visible = np.stack([maps.visible(layer).sum(-1) for layer in range(maps.layers)])[:, None]
        rows = heads.row_entropies(maps.weights)
        scores["normalised entropy"] = heads.normalised_mean(rows, causal=maps.causal, visible_keys=visible)
    if maps.part == "cross":
        nowhere = np.full(maps.weights.shape[:2], np.nan)
        scores |= {"previous": nowhere, "next": nowhere}
        scores["normalised entropy"] = heads.row_entropies(maps.weights).mean(-1) / np.log(max(len(maps.keys), 2))
    return scores


def even_scores(
    maps: AttentionMaps, *, first: int | None, separators: Sequence[int]
) -> dict[str, Float[np.ndarray, " layer"]]:
    """Return a dictionary of all HEAD_SCORES for uniform attention. There is one value per layer if layers have
    attention windows, otherwise one value."""
    layers = range(maps.layers if maps.windows else 1)
    visible = np.stack([maps.visible(layer) for layer in layers])[:, None].astype(np.float32)
    evenly = replace(
        maps,
        weights=visible / visible.sum(-1, keepdims=True),
        windows=tuple(maps.windows[layer] for layer in layers) if maps.windows else (),
        attending=(),
    )
    return {name: values[:, 0] for name, values in map_scores(evenly, first=first, separators=separators).items()}


# ---------------------------------------------------------------- long inputs


def long_scores(
    sums: Sequence[MapSums], at: SpecialPositions, windows: Sequence[int | None], *, causal: bool, sink: bool = False
) -> dict[str, Float[np.ndarray, "layer head"]]:
    """Compute all HEAD_SCORES of one long input from sums over its maps. Returns a dictionary; NaN if undefined.

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
    """Return a dictionary of all HEAD_SCORES for uniform attention on a long input. There is one value per layer if
    layers have attention windows, otherwise one value."""
    layers = [_even(length, at, window, causal=causal, sink=sink) for window in windows or (None,)]
    return {name: np.array([layer[name] for layer in layers]) for name in layers[0]}


def _even(length: int, at: SpecialPositions, window: int | None, *, causal: bool, sink: bool) -> dict[str, float]:
    share = 1 / (_counts(length, window, causal=causal) + sink)
    neighbour = float("nan") if length < 2 else 1.0

    def to_keys(keys: Sequence[int]) -> float:
        start = max(1, min(keys)) if causal and keys else 0
        if not keys or start >= length:
            return float("nan")
        seen = (visible_keys(np.arange(length) - key, 1, causal=causal, window=window)[:, 0] for key in keys)
        return float((sum(seen) * share)[start:].mean())

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
