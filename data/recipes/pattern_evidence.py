"""Whether more than its probability says when the classifier errs on an unseen source: a table for docs/results/data.

    python -m data.recipes.pattern_evidence

For each source of BERT's classes that is left out, a logistic regression is fitted to whether first choices were right
on the *other* sources, each of them left out in turn and weighing alike; it is then judged once on the source left out.
Kinds of evidence, beside the probability of the first choice after the temperature: how far all models
think otherwise, how many of the ten nearest training maps are of that class, how far off the map lies, and how near the
codebook's measurements of it are to their thresholds.
"""

from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors

from core import config
from core.codebook.measures import measured, sentences
from core.codebook.registry import borders, dispute
from core.patterns.evaluation import CONFIDENT, calibration_error
from core.patterns.forest import _distances, _heated, _HeldOut, _spread, _statistics, _temperature
from core.patterns.shapes import OF_ALL
from data.recipes.paired_sheets import folder_maps
from data.recipes.pattern_boosting import held_out
from data.recipes.pattern_figures import Labelled, labelled

NEIGHBOURS = 10
NONE = 0.05  # added to a distance before its logarithm
KINDS = {  # columns of the evidence, after that of the probability
    "the probability after the temperature": None,
    "the probability again": (0,),
    "and all models": (0, 1),
    "and nearest training maps": (0, 2),
    "and distance from the training maps": (0, 3),
    "and the codebook's thresholds": (0, 4, 5),
    "all": (0, 1, 2, 3, 4, 5),
}


@dataclass(frozen=True, eq=False)
class Judged:
    """Maps of a source that was left out: evidence [map, kind], and whether each first choice was right."""

    evidence: np.ndarray
    right: np.ndarray


def main() -> None:
    data = labelled("bert")
    columns, statistics = of_codebook(data), _statistics(data.maps)
    pairs: dict[tuple[str, str], _HeldOut] = {}
    for source in data.sources:
        for inner in data.sources:
            others = np.flatnonzero(~np.isin(data.origins, [source, inner]))
            pairs[source, inner] = held_out(data, statistics, others, np.flatnonzero(data.origins == inner))
    results: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {kind: [] for kind in KINDS}
    everywhere: list[Judged] = []
    for source in data.sources:
        inner = [name for name in data.sources if name != source]
        temperature, _ = _temperature([pairs[source, name] for name in inner], both=False)
        seen = [judged(data, statistics, columns, pairs[source, name], (source, name), temperature) for name in inner]
        new = judged(data, statistics, columns, pairs[source, source], (source, source), temperature)
        everywhere.append(new)
        for kind, chosen in KINDS.items():
            results[kind].append((trusted(seen, new, chosen), new.right))
    print("| evidence | ranks errors (area) | ECE | wrong, p > .8 |\n|---|---|---|---|")
    for kind, parts in results.items():
        likely, right = (np.concatenate(values) for values in zip(*parts, strict=True))
        print(f"| {kind} | {roc_auc_score(right, likely):.3f} | {calibration_error(likely, right):.3f} "
              f"| {(~right & (likely > CONFIDENT)).mean():.1%} |")  # fmt: skip
    outside = np.concatenate([one.evidence[:, 3] > np.log(1 + NONE) for one in everywhere])
    right = np.concatenate([one.right for one in everywhere])
    print(f"\n{outside.sum()} maps outside, right {right[outside].mean():.3f}; inside {right[~outside].mean():.3f}.")


def trusted(seen: list[Judged], new: Judged, chosen: tuple[int, ...] | None) -> np.ndarray:
    """How likely each new first choice is right, by what the sources `seen` say of the chosen evidence."""
    if chosen is None:
        return 1 / (1 + np.exp(-new.evidence[:, 0]))
    known, right = (np.concatenate(values) for values in ([one.evidence for one in seen], [one.right for one in seen]))
    weights = np.concatenate([np.full(len(one.right), len(right) / len(seen) / len(one.right)) for one in seen])
    centre, spread = known.mean(0), known.std(0) + 1e-6
    known, asked = (((values - centre) / spread)[:, list(chosen)] for values in (known, new.evidence))
    return LogisticRegression().fit(known, right, sample_weight=weights).predict_proba(asked)[:, 1]


def judged(
    data: Labelled, statistics: np.ndarray, columns: np.ndarray, found: _HeldOut, out: tuple[str, str], heat: float
) -> Judged:
    """The evidence on the maps of source out[1] by a fit without both sources; maps without one class left out."""
    maps = np.flatnonzero(data.origins == out[1])
    statistics = statistics[:, :OF_ALL]
    train = statistics[~np.isin(data.origins, out)]
    likely, rows = _heated(found.of_forest, heat), np.arange(len(maps))
    first, second = likely.argsort(1)[:, ::-1][:, :2].T
    other = found.of_forest if found.of_all is None else found.of_all
    spread = _spread(train)
    scaled = [(values - spread["centre"]) / spread["deviation"] for values in (train, statistics[maps])]
    near = NearestNeighbors(n_neighbors=NEIGHBOURS).fit(scaled[0]).kneighbors(scaled[1], return_distance=False)
    classes = data.truth[~np.isin(data.origins, out)]
    top = np.clip(likely[rows, first], 1e-4, 1 - 1e-4)
    evidence = [
        np.log(top / (1 - top)),
        other[rows, first] - likely[rows, first],
        (classes[near] == first[:, None]).mean(1),
        np.log(_distances(spread, statistics[maps]) / spread["farthest"] + NONE),
        columns[maps, first, first],
        columns[maps, first, second],
    ]
    clear = data.clear[maps]
    return Judged(np.stack(evidence, axis=1)[clear], (first == data.truth[maps])[clear])


def of_codebook(data: Labelled) -> np.ndarray:
    """Of each map and two classes how far its measurement lies from their border's threshold (1 where there is none);
    of a class and itself whether the codebook disputes it. [map, class, class]"""
    names = data.classes.names
    facts = {row["map_id"]: row for source in data.sources for row in folder_maps(config.ANNOTATIONS / source)[0]}
    found = np.ones((len(data.maps), len(names), len(names)))
    for k, (map_id, weights) in enumerate(zip(data.known.column("map_id"), data.maps, strict=True)):
        row = facts[map_id]
        measures = measured(weights, separators=row["separators"], causal=row["causal"])
        count = sentences(row["separators"], row["length"])
        for number, name in enumerate(names):
            found[k, number, number] = dispute("bert", name, measures, sentences=count) is not None
        for border in borders("bert"):
            if border.threshold is not None:
                low, high = (names.index(name) for name in border.classes)
                away = abs(border.measure(weights, row["separators"], row["causal"]) - border.threshold)
                found[k, low, high] = found[k, high, low] = min(found[k, low, high], away)
    return found


if __name__ == "__main__":
    main()
