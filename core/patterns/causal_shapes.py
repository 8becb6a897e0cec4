"""Features of decoder maps: columns in each of two sentences, and how far back attention goes.

The start of the second sentence is estimated as the position whose later rows look back least, relative to uniform
rows. The first row, which is always 1 on its own key, is ignored. Axes are `map query key`.
"""

import numpy as np
from jaxtyping import Float64

MARKS = (0.05, 0.1, 0.2, 0.4)  # thresholds for following a column
SPOTS = (0.1, 0.2, 0.3)  # thresholds for a spot
SMALLEST = 3  # least tokens of a sentence
FAR, ROW = 10, 12  # steps back that count as far
SHORT = 3  # least spots of a column
NAMES = (
    *("causal: sentences apart", "causal: second sentence begins", "causal: looks back to the first"),
    *("causal: looks back, least", "causal: looks back, mean", "causal: looks back, middle"),
    *(
        f"causal: column above {mark}, {where}"
        for mark in MARKS
        for where in ("first sentence", "second sentence", "weaker sentence", "weaker at any cut", "weaker, mean cut")
    ),
    *("causal: column in the first", "causal: column in the second", "causal: column from second to first"),
    *("causal: first key in the second", "causal: first key in the first", "causal: first key"),
    *("causal: steps back to length", "causal: steps back"),
    *(
        f"causal: {what} above {dark}"
        for dark in SPOTS
        for what in (
            *("spots a row", "steps back to length", "steps back", "spots within 2", "spots in one go"),
            *("longest column to length", "columns of three to length"),
        )
    ),
    *("causal: within 2, median", "causal: within 2, lower quarter", "causal: within 2, upper quarter"),
    "causal: rows with .5 within 2",
    *("causal: row maxima, median", "causal: row maxima, lower quarter", "causal: row maxima, upper quarter"),
    *("causal: later half looks at the earlier", "causal: the same without the first key"),
    *("causal: entropy", "causal: entropy median", "causal: entropy of the later half", "causal: log length"),
)
Stack = Float64[np.ndarray, "map query key"]
Columns = list[np.ndarray]  # one value for each map in each array


def causal_shapes(weights: Stack) -> Float64[np.ndarray, "map statistic"]:
    """Return shape statistics of causal (decoder) attention maps, in the order of NAMES. All maps must have the same
    size.

    All values are finite; 0 for maps with attention to later tokens, and for maps of at most SMALLEST tokens.
    """
    maps, length, _ = weights.shape
    found = np.zeros((maps, len(NAMES)))
    ahead = np.triu(np.ones((length, length), dtype=bool), 1)
    chosen = np.flatnonzero(~(weights[:, ahead] > 0).any(1))
    if length > SMALLEST and len(chosen):
        found[chosen] = np.stack(_measured(weights[chosen]), axis=1)
    return found


def _measured(weights: Stack) -> Columns:
    rows = weights.copy()
    rows[:, 0] = 0
    # Possible starts of a second sentence.
    length = weights.shape[1]
    cuts = np.arange(SMALLEST, length - SMALLEST + 1)
    cuts = cuts if len(cuts) else np.array([length // 2])
    # Mean weight of later rows on earlier keys for each cut [map, cut], and how far below that of uniform rows it is.
    by_key = weights.cumsum(2)  # cumulative weight over keys
    back = np.stack([by_key[:, cut:, cut - 1].mean(1) for cut in cuts], axis=1)
    even = np.array([(cut / np.arange(cut + 1, length + 1)).mean() for cut in cuts])
    apart = even - back
    place = apart.argmax(1)
    maps, cut = np.arange(len(weights)), cuts[place]
    return [
        *(apart[maps, place], cut / weights.shape[1], back[maps, place], back.min(1), back.mean(1)),
        back[:, len(cuts) // 2],
        *(column for mark in MARKS for column in _followed(rows >= mark, cuts, place)),
        *_strongest(rows, cut),
        *_steps(rows),
        *_near(rows),
    ]


def _followed(marks: np.ndarray, cuts: np.ndarray, place: np.ndarray) -> Columns:
    """Return the largest fraction of rows marked in one column: in each sentence and in the weaker one at the chosen
    cut; in the weaker one at the best cut and on average."""
    length, maps = marks.shape[1], np.arange(len(marks))
    above = marks.cumsum(1)  # [map, query, key]
    first = above[:, cuts - 1].max(2) / np.maximum(cuts - 1, 1)  # without the first row; later keys have no mark
    later = np.arange(length) >= cuts[:, None]  # [cut, key]
    second = ((above[:, -1, None] - above[:, cuts - 1]) * later).max(2) / (length - cuts)
    weaker = np.minimum(first, second)
    return [first[maps, place], second[maps, place], weaker[maps, place], weaker.max(1), weaker.mean(1)]


def _strongest(rows: Stack, cut: np.ndarray) -> Columns:
    """Return the mean weight of the strongest column in each sentence, from second to first, and of key 0."""
    length = rows.shape[1]
    late = np.arange(length) >= cut[:, None]  # [map, place]
    early = ~late
    of_first = (rows * early[:, :, None]).sum(1) / np.maximum(cut - 1, 1)[:, None]
    of_second = (rows * late[:, :, None]).sum(1) / (length - cut)[:, None]
    return [
        of_first.max(1),
        (of_second * late).max(1),
        (of_second * early).max(1),
        of_second[:, 0],
        of_first[:, 0],
        rows[:, :, 0].sum(1) / (length - 1),
    ]


def _steps(rows: Stack) -> Columns:
    """Return how far back weight and spots are, ignoring the first key."""
    length = rows.shape[1]
    steps = np.clip(np.arange(length)[:, None] - np.arange(length), 0, None)
    inner = rows.copy()
    inner[:, :, 0] = 0
    mass = inner.sum((1, 2)) + 1e-9
    found = [(inner * steps).sum((1, 2)) / mass / length, (inner * np.minimum(steps, FAR)).sum((1, 2)) / mass]
    for dark in SPOTS:
        spots = inner >= dark
        count, by_key = spots.sum((1, 2)), spots.sum(1)
        some = np.maximum(count, 1)
        begun = spots[:, 0].sum(1) + (spots[:, 1:] & ~spots[:, :-1]).sum((1, 2))
        found += [
            count / length,
            (spots * steps).sum((1, 2)) / some / length,
            (spots * np.minimum(steps, ROW)).sum((1, 2)) / some,
            (spots & (steps <= 2)).sum((1, 2)) / some,
            count / np.maximum(begun, 1),
            by_key.max(1) / length,
            (by_key >= SHORT).sum(1) / length,
        ]
    return found


def _near(rows: Stack) -> Columns:
    """Return the weight near the diagonal, row maxima, the weight of the later half on the earlier, and entropy."""
    length = rows.shape[1]
    steps = np.arange(length)[:, None] - np.arange(length)
    beside = (steps >= 0) & (steps <= 2)
    near, largest = (rows * beside).sum(2)[:, 1:], rows[:, 1:].max(2)
    half = length // 2
    lower, middle, upper = (np.quantile(near, share, axis=1) for share in (0.25, 0.5, 0.75))
    entropy = -(rows * np.log(np.clip(rows, 1e-12, None))).sum(2)[:, 1:] / np.log(np.arange(2, length + 1))
    return [
        *(middle, lower, upper, (near > 0.5).mean(1)),
        *(np.quantile(largest, share, axis=1) for share in (0.5, 0.25, 0.75)),
        rows[:, half:, :half].sum((1, 2)) / (length - half),
        rows[:, half:, 1:half].sum((1, 2)) / (length - half),
        *(entropy.mean(1), np.median(entropy, 1), entropy[:, entropy.shape[1] // 2 :].mean(1)),
        np.full(len(rows), np.log(length)),
    ]
