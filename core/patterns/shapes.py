"""Length-independent features of attention maps.

Lines near the diagonal, columns, blocks, and similarity of neighbouring rows, for the map and for the residual after
removing the usual weight of each key, so that a line next to a strong [CLS] or [SEP] column is found. Axes are `map
query key`.
"""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float, Float64

from ..codebook import measures as codebook_measures
from ..codebook.measures import CLEAN, FAINT, MARK, STRONG
from . import causal_shapes

OFFSETS = (-2, -1, 0, 1, 2)  # key minus query
NEAR = (-5, -4, -3, 3, 4, 5)  # offsets compared with a line's, relative to it
REACH = max(NEAR) + max(OFFSETS)
DARK = (0.05, 0.1, 0.2, 0.3, 0.5)  # thresholds that the eye distinguishes on the absolute scale
BATCH = 2**17  # weights processed together
SMALLEST_BLOCK = 3
LINE_NAMES = (
    *(f"line at {k:+d}" for k in OFFSETS),
    *("line", "line median", "line above .1", "line above .2", "line above .4", "line, weakest third"),
    *("line, middle third", "line less its surroundings", "line to its surroundings"),
    *(f"within {k} of the diagonal" for k in (1, 2, 3)),
    *("row's mass within 2, median", "rows with .3 within 2", "rows with .5 within 2"),
    *(f"largest at {k:+d}" for k in (-1, 0, 1)),
    "largest within 2",
)
NAMES = (
    *("first column", "last column", "first and last", "strongest column", "second column", "third column"),
    *("four columns", "column median", "second column median", "third column median", "column's lower quarter"),
    *("second column's lower quarter", "first column median", "last column median", "first and last median"),
    *(f"rows above {t} in column {k}" for t in DARK for k in (1, 2, 3)),
    *(f"rows above {t} in the {k} column" for k in ("first", "last") for t in (0.1, 0.3)),
    *("strongest column to uniform", "second column to uniform", "columns above 3x uniform", "columns' spread"),
    *("entropy", "entropy median", "entropy's spread", "largest", "log largest", "row maxima", "row maxima median"),
    *("row maxima, lowest tenth", "row maxima, highest tenth", "inner row maxima, highest tenth", "inner largest"),
    *("inner 98 %", "inner 90 %", "inner mass", "dark places a row", "very dark places a row"),
    *LINE_NAMES,
    *("next rows alike", "next rows alike, shifted", "third rows alike", "third rows alike, shifted"),
    *("left without columns", "left without columns, median"),
    *(f"left: {name}" for name in LINE_NAMES),
    *("left: row maxima", "left: row maxima median", "left: next rows alike", "left: next rows alike, shifted"),
    *("rows that share a largest key", "two keys", "three keys"),
    *("two blocks", "left: two blocks", "rows' spread", "spread from uniform", "rows' spread to that from uniform"),
    *("codebook: column", "codebook: rows with .15 in it", "codebook: rows with .3 in it"),
    *("codebook: rows with .15 in one of two columns", "codebook: clean columns"),
    *("codebook: line", "codebook: line's marked rows", "codebook: line's weakest third"),
)
OF_ALL = len(NAMES)  # statistics of every map; those of causal maps follow
NAMES += causal_shapes.NAMES
OF_A_SENTENCE = (
    *("most frequent column", "second most frequent column", "rows with .3 in it", "strongest column", "second column"),
    *("its weakest row", "its lower quarter", "mass within the sentence", "entropy", "line", "dark places a row"),
)
SENTENCE_NAMES = tuple(f"{end} of the sentences: {name}" for end in ("least", "most") for name in OF_A_SENTENCE)

Map = Float[np.ndarray, "_query _key"]  # square; each map has its own length
Stack = Float64[np.ndarray, "map query key"]
Columns = list[np.ndarray]  # one value for each map in each array


def shapes(maps: Sequence[Map]) -> Float64[np.ndarray, "map statistic"]:
    """Return shape statistics of attention maps, in the order of NAMES. Nearly all of them are independent of the size
    of the map.

    Statistics from OF_ALL on describe causal maps; they are 0 if there is attention to later tokens.
    """
    return _by_length(maps, _measured, len(NAMES))


def _by_length(
    maps: Sequence[Map], measure: Callable[[Stack], np.ndarray], statistics: int
) -> Float64[np.ndarray, "map statistic"]:
    """Return what `measure` returns for stacks of maps of the same length, in the order of `maps`."""
    measures = np.zeros((len(maps), statistics))
    by_length: dict[int, list[int]] = {}
    for number, weights in enumerate(maps):
        by_length.setdefault(len(weights), []).append(number)
    for length, numbers in by_length.items():
        count = max(1, BATCH // length**2)
        for start in range(0, len(numbers), count):
            part = numbers[start : start + count]
            measures[part] = measure(np.stack([maps[k] for k in part]).astype(np.float64))
    return measures


def _measured(weights: Stack) -> Float64[np.ndarray, "map statistic"]:
    ordered = np.sort(weights, axis=1)
    # Each weight above its key's median, without the first and last key.
    left = np.clip(weights - _quantile(ordered, 0.5)[:, None], 0, None)
    left[:, :, [0, -1]] = 0
    mass = left.sum(2)
    left = left / (mass[..., None] + 0.05)
    largest = left.max(2)
    columns = [
        *_columns(weights, ordered),
        *_spread(weights),
        *_lines(weights),
        *_likeness(weights, (1, 3)),
        mass.mean(1),
        np.median(mass, 1),
        *_lines(left),
        largest.mean(1),
        np.median(largest, 1),
        *_likeness(left, (1,)),
        *_shared_keys(weights),
        *_evenness(weights),
        *_codebook(weights),
    ]
    return np.concatenate([np.stack(columns, axis=1), causal_shapes.causal_shapes(weights)], axis=1)


def _quantile(ordered: np.ndarray, share: float) -> np.ndarray:
    """Return a quantile of sorted values along axis 1, interpolated like numpy's."""
    index = share * (ordered.shape[1] - 1)
    low = int(index)
    high = min(low + 1, ordered.shape[1] - 1)
    return ordered[:, low] + (index - low) * (ordered[:, high] - ordered[:, low])


def _ordered(values: np.ndarray, count: int) -> Columns:
    """Return the `count` largest values of each row of [map, key], padded with 0."""
    ordered = np.sort(values, axis=1)[:, ::-1][:, :count]
    return list(np.pad(ordered, ((0, 0), (0, count - ordered.shape[1]))).T)


def _columns(weights: Stack, by_query: Stack) -> Columns:
    """Return statistics of columns. by_query: weights of each key in ascending order."""
    length = weights.shape[2]
    means, medians = weights.mean(1), _quantile(by_query, 0.5)
    ordered = _ordered(means, 4)
    ends = weights[:, :, 0] + weights[:, :, -1]
    columns = [means[:, 0], means[:, -1], means[:, 0] + means[:, -1], *ordered[:3], sum(ordered)]
    columns += [*_ordered(medians, 3), *_ordered(_quantile(by_query, 0.25), 2)]
    columns += [medians[:, 0], medians[:, -1], np.median(ends, 1)]
    for dark in DARK:
        columns += _ordered((weights > dark).mean(1), 3)
    columns += [(weights[:, :, k] > dark).mean(1) for k in (0, -1) for dark in (0.1, 0.3)]
    columns += [np.minimum(10, share * length) / 10 for share in ordered[:2]]
    return [*columns, (means > 3 / length).mean(1), np.minimum(5, means.std(1) * length)]


def _spread(weights: Stack) -> Columns:
    length = weights.shape[2]
    entropy = -(weights * np.log(np.clip(weights, 1e-12, None))).sum(2) / np.log(max(length, 2))
    largest, top = weights.max(2), weights.max((1, 2))
    inner = weights[:, 1:-1, 1:-1] if length > 4 else weights
    flat = np.sort(inner.reshape(len(inner), -1), axis=1)
    rows = weights[:, 1:-1].max(2) if length > 2 else largest
    return [
        entropy.mean(1),
        np.median(entropy, 1),
        entropy.std(1),
        top,
        np.log(top + 1e-3),
        largest.mean(1),
        np.median(largest, 1),
        *np.quantile(largest, [0.1, 0.9], axis=1),
        np.quantile(rows, 0.9, axis=1),
        flat[:, -1],
        _quantile(flat, 0.98),
        _quantile(flat, 0.9),
        flat.sum(1) / length,
        *((weights > dark).mean((1, 2)) * length for dark in (0.1, 0.3)),
    ]


def _diagonal(weights: Stack, offset: int) -> Float64[np.ndarray, "map place"]:
    """Return the weights at key = query + offset; one 0 if there are none."""
    line = np.diagonal(weights, offset, 1, 2) if abs(offset) < weights.shape[1] else weights[:, 0, :0]
    return line if line.shape[1] else np.zeros((len(weights), 1))


def _lines(weights: Stack) -> Columns:
    length = weights.shape[1]
    lines = {k: _diagonal(weights, k) for k in range(-REACH, REACH + 1)}
    means = np.stack([lines[k].mean(1) for k in OFFSETS], 1)
    best = means.argmax(1)
    measures = [means[:, k] for k in range(len(OFFSETS))]
    each = np.stack([np.stack(_line(lines, k, length)) for k in OFFSETS])  # [offset, statistic, map]
    measures += list(each[best, :, np.arange(len(weights))].T)
    places = np.arange(length)
    apart = np.abs(places[:, None] - places[None])
    measures += [(weights * (apart <= k)).sum((1, 2)) / length for k in (1, 2, 3)]
    near = (weights * (apart <= 2)).sum(2)
    measures += [np.median(near, 1), (near > 0.3).mean(1), (near > 0.5).mean(1)]
    step = weights.argmax(2) - places
    return [*measures, *((step == k).mean(1) for k in (-1, 0, 1)), (np.abs(step) <= 2).mean(1)]


def _line(lines: dict[int, np.ndarray], offset: int, length: int) -> Columns:
    line = lines[offset]
    thirds = np.sort(np.stack([(part if part.size else line).mean(1) for part in np.array_split(line, 3, axis=1)]), 0)
    around = np.concatenate([lines[offset + k] for k in NEAR], axis=1).mean(1)
    mean = line.mean(1)
    return [
        mean,
        np.median(line, 1),
        *((line > dark).mean(1) for dark in (0.1, 0.2, 0.4)),
        thirds[0],
        thirds[1],
        mean - around,
        mean / (mean + around + 1 / length),
    ]


def _likeness(weights: Stack, steps: Sequence[int]) -> Columns:
    """Return the mean cosine of rows `step` apart, unshifted and shifted along the diagonal; 0 for too few rows."""

    def cosine(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if not a.shape[1] or not a.shape[2]:
            return np.zeros(len(a))
        norms = np.sqrt((a * a).sum(2) * (b * b).sum(2) + 1e-12)
        return ((a * b).sum(2) / norms).mean(1)

    return [
        likeness
        for k in steps
        for likeness in (cosine(weights[:, k:], weights[:, :-k]), cosine(weights[:, k:, k:], weights[:, :-k, :-k]))
    ]


def _shared_keys(weights: Stack) -> Columns:
    """Return the fraction of rows whose largest weight is on the one, two and three most frequent such keys."""
    length = weights.shape[2]
    counts = (weights.argmax(2)[:, :, None] == np.arange(length)).sum(1) / length
    return list(np.cumsum(_ordered(counts, 3), axis=0))


def _evenness(weights: Stack) -> Columns:
    length = weights.shape[2]
    inner = weights.copy()
    inner[:, :, [0, -1]] = 0
    inner /= inner.sum(2, keepdims=True) + 0.05
    columns = ((weights - weights.mean(1, keepdims=True)) ** 2).mean((1, 2)) * length
    uniform = ((weights - 1 / length) ** 2).mean((1, 2)) * length
    return [two_blocks(weights), two_blocks(inner), columns, uniform, columns / (uniform + 1e-3)]


def _codebook(weights: Stack) -> Columns:
    """Return column and line statistics as in `core.codebook.measures`."""
    maps = np.arange(len(weights))
    faint, means = weights >= FAINT, weights.mean(1)
    best = (faint.mean(1) + means).argmax(1)
    column = np.take_along_axis(weights, best[:, None, None], 2)[:, :, 0]
    either = (faint | (column >= FAINT)[:, :, None]).mean(1).max(1)
    columns = [means[maps, best], (column >= FAINT).mean(1), (column >= STRONG).mean(1), either]
    columns.append((faint.mean(1) >= CLEAN).sum(1).astype(float))
    lines = [_diagonal(weights, k) for k in codebook_measures.OFFSETS]
    strongest = np.stack([line.mean(1) for line in lines]).argmax(0)
    each = np.stack([np.stack(_marks(line)) for line in lines])  # [offset, statistic, map]
    return [*columns, *each[strongest, :, maps].T]


def _marks(line: np.ndarray) -> Columns:
    marks = line >= MARK
    thirds = [part.mean(1) for part in np.array_split(marks, 3, axis=1) if part.shape[1]]
    return [line.mean(1), marks.mean(1), np.min(thirds, axis=0)]


def two_blocks(weights: Stack) -> Float64[np.ndarray, " map"]:
    """Return the attention inside two diagonal blocks of each map, minus its chance level. The blocks are chosen to
    maximise this difference.

    0 for maps too short for two blocks of SMALLEST_BLOCK tokens.
    """
    return _gains(weights).max(1) if weights.shape[1] >= 2 * SMALLEST_BLOCK else np.zeros(len(weights))


def _gains(weights: Stack) -> Float64[np.ndarray, "map cut"]:
    """Return the gain of `two_blocks` for each split, the first of which is after SMALLEST_BLOCK tokens."""
    length = weights.shape[1]
    total = np.zeros((len(weights), length + 1, length + 1))
    total[:, 1:, 1:] = weights.cumsum(1).cumsum(2)
    cuts = np.arange(SMALLEST_BLOCK, length - SMALLEST_BLOCK + 1)
    inside = 2 * total[:, cuts, cuts] + total[:, -1:, -1] - total[:, cuts, -1] - total[:, -1, cuts]
    chance = (cuts**2 + (length - cuts) ** 2) / length
    return (inside - chance) / length


# ---------------------------------------------------------------- two sentences


def statistics(maps: Sequence[Map]) -> Float64[np.ndarray, "map statistic"]:
    """Return the statistics that `shapes` computes, followed by the statistics named in SENTENCE_NAMES."""
    return np.concatenate([shapes(maps), sentence_shapes(maps)], axis=1)


def sentence_shapes(maps: Sequence[Map]) -> Float64[np.ndarray, "map statistic"]:
    """Return statistics of the two sentences in each map. The first columns are the smaller values of the two
    sentences, and the other columns the larger values, both in the order of SENTENCE_NAMES.

    The border between the sentences is estimated from the map by the split of `two_blocks`. A map that is too short
    for two blocks is one sentence.
    """
    return _by_length(maps, _of_sentences, len(SENTENCE_NAMES))


def _of_sentences(weights: Stack) -> Float64[np.ndarray, "map statistic"]:
    length = weights.shape[1]
    is_first = np.ones((len(weights), length), dtype=bool)
    if length >= 2 * SMALLEST_BLOCK:
        is_first = np.arange(length) < (SMALLEST_BLOCK + _gains(weights).argmax(1))[:, None]
    both = [_of_sentence(weights, rows) for rows in (is_first, ~is_first if not is_first.all() else is_first)]
    return np.concatenate([np.min(both, axis=0), np.max(both, axis=0)], axis=1)


def _of_sentence(weights: Stack, rows: np.ndarray) -> Float64[np.ndarray, "map statistic"]:
    """Return statistics of chosen rows [map, query] of each map, in the order of OF_A_SENTENCE."""
    maps, length = np.arange(len(weights)), weights.shape[1]
    count = rows.sum(1)

    def mean(values: np.ndarray) -> np.ndarray:
        return np.einsum("mq...,mq->m...", values, rows / count[:, None])

    often, means = mean((weights >= FAINT).astype(float)), mean(weights)
    column = weights[maps, :, (often + means).argmax(1)]
    ordered = np.sort(np.where(rows, column, np.inf), axis=1)
    place = 0.25 * (count - 1)
    low = place.astype(int)
    below, above = ordered[maps, low], ordered[maps, np.minimum(low + 1, count - 1)]
    entropy = -(weights * np.log(np.clip(weights, 1e-12, None))).sum(2) / np.log(max(length, 2))
    lines = []
    for offset in (-1, 0, 1):
        inside = np.diagonal(rows[:, :, None] & rows[:, None], offset, 1, 2)
        lines.append(((np.diagonal(weights, offset, 1, 2) >= MARK) & inside).sum(1) / np.maximum(inside.sum(1), 1))
    columns = [
        *_ordered(often, 2),
        mean((column >= STRONG).astype(float)),
        *_ordered(means, 2),
        ordered[:, 0],
        below + (place - low) * (above - below),
        mean((weights * rows[:, None]).sum(2)),
        mean(entropy),
        np.max(lines, axis=0),
        mean(((weights > MARK) & rows[:, None]).sum(2).astype(float)),
    ]
    return np.stack(columns, axis=1)
