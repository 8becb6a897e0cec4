"""What every head does whatever the words are, and how alike heads are (Clark et al. 2019, section 3 and Fig 6).

Rows: one a head and statistic, with value, 95% bootstrap interval over inputs and n; and one a head with statistic
"place": x and y in the picture of distances between heads, kind (what the head mostly does), and distance, the mean
Jensen-Shannon distance to all other heads. stress says how well the picture keeps the distances.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from core.scoring.definitions import STATISTICS, kind_of
from core.studies import passes
from core.studies.features import classifying, estimate
from core.studies.study import Options, Row, Study, Unit

if TYPE_CHECKING:
    from core.capture.running import Observer
    from core.studies.passes import Prepared

DEFAULTS: Options = {name: value for name, value in passes.DEFAULTS.items() if name != "pipeline"} | {
    "pipeline": None,  # not used: no words are looked at
    "queries": 4,  # rows of each input that distances between heads compare; None: all
}


class StatisticsMeasure:
    """Head statistics and distances between heads on one checkpoint."""

    def __init__(self, layers: int, heads: int, *, causal: bool, queries: int | None, seed: int):
        from core.scoring.distances import HeadDistances
        from core.scoring.statistics import HeadStatistics

        self.shape, self.causal, self.queries, self.seed = (layers, heads), causal, queries, seed
        self.statistics = HeadStatistics(layers, heads, causal=causal)
        self.distances = HeadDistances(layers, heads, queries=queries, seed=seed)

    def take(self, inputs: "Sequence[Prepared]") -> "list[Observer]":
        from core.scoring.statistics import Places

        places = [
            Places(one.encoding.first or 0, one.encoding.separators, classifying(one.encoding, causal=self.causal))
            for one in inputs
        ]
        numbers = [one.number for one in inputs]
        return [self.statistics.take(places, numbers), self.distances.take(numbers)]

    def merge(self, other: "StatisticsMeasure") -> None:
        self.statistics.merge(other.statistics)
        self.distances.merge(other.distances)

    def packed(self) -> Row:
        return {
            "shape": list(self.shape),
            "causal": self.causal,
            "queries": self.queries,
            "seed": self.seed,
            "means": self.statistics.means.packed(),
            "sums": self.distances.sums.tolist(),
            "rows": self.distances.rows,
        }


def make(checkpoint: Any, options: Options) -> StatisticsMeasure:
    """The measure of one checkpoint."""
    return StatisticsMeasure(
        checkpoint.layers,
        checkpoint.heads,
        causal=checkpoint.causal,
        queries=options["queries"],
        seed=options["seed"],
    )


def unpack(packed: Row) -> StatisticsMeasure:
    """What `StatisticsMeasure.packed` gave."""
    from core.scoring.intervals import Means

    found = StatisticsMeasure(*packed["shape"], causal=packed["causal"], queries=packed["queries"], seed=packed["seed"])
    found.statistics.means = Means.unpacked(packed["means"])
    found.distances.sums, found.distances.rows = np.array(packed["sums"]), packed["rows"]
    return found


def units(options: Options) -> list[Unit]:
    """Chunks of rows."""
    from core.errors import InputError

    if options["queries"] is not None and options["queries"] < 1:
        raise InputError(
            f"Distances between heads compare at least one row of each input; {options['queries']} were asked for: "
            "raise it."
        )
    return passes.units(options)


def run(options: Options, unit: Unit) -> list[Row]:
    """The sums of one unit's inputs, which add up over units."""
    return passes.run_unit(options, unit, make, tagged=False)


def summarize(options: Options, rows: list[Row]) -> list[Row]:
    """Add the units up and turn them into rows: one a head and statistic, by checkpoint and task."""
    out = []
    for (checkpoint, task), measure in passes.merged(rows, unpack).items():
        out += rows_of(measure, {"checkpoint": checkpoint, "task": task}, seed=options["seed"])
    return out


def rows_of(measure: StatisticsMeasure, facts: Row, *, seed: int) -> list[Row]:
    """Rows of every statistic, then the places of the heads."""
    whole, rows = measure.statistics.means.result(), []
    for number, name in enumerate(STATISTICS):
        found, known = whole.part(number), facts | {"statistic": name}
        if not found.n[0]:
            rows.append(known | {"n": 0, "note": "not defined on these inputs"})
        else:
            rows += [known | estimate(found, layer, head) for layer, head in np.ndindex(*measure.shape)]
    return rows + _places(measure, whole, facts, seed)


def _places(measure: StatisticsMeasure, whole: Any, facts: Row, seed: int) -> list[Row]:
    from core.scoring.distances import picture

    distances = measure.distances.result()
    if np.isnan(distances).any() or len(distances) < 2:
        return []
    places, stress = picture(distances, seed=seed)
    others = distances.sum(1) / (len(distances) - 1)
    rows = []
    for number, (layer, head) in enumerate(np.ndindex(*measure.shape)):
        values: dict[str, float | None] = {
            name: float(whole.value[layer, head, k]) for k, name in enumerate(STATISTICS)
        }
        rows.append(
            facts
            | {"statistic": "place", "layer": layer, "head": head, "value": float(others[number])}
            | {"n": measure.distances.rows, "x": float(places[number, 0]), "y": float(places[number, 1])}
            | {"kind": kind_of(values), "stress": stress, "sum": float(others[number] * measure.distances.rows)}
        )
    return rows


STUDY = Study("statistics", DEFAULTS, units, run, summarize)
