"""The figures of docs/results/data: the pattern classifier on checkpoints, inputs and heads it never saw, as Markdown.

    python -m data.recipes.pattern_figures unseen     # each checkpoint by a classifier without any of its maps
    python -m data.recipes.pattern_figures shipped    # trained on all sources: inputs, and heads, it never saw
    python -m data.recipes.pattern_figures labels     # what 25, 50, 100 labels of a new checkpoint bring
    python -m data.recipes.pattern_figures unseen --set gpt2     # any of them for the decoders' classes

Works on the bundled annotations of a class set, BERT's by default, by the rule, the splits and the fits of `patterns
train`. "Where raters agree" are the maps that two raters gave one class, of those who labelled maps drawn at random or
spread, not disputed ones; "first rater, all" are all maps with the first rater's class, ties too. "ECE if calibrated"
is what chance alone causes: mean and 95 % quantile, if the probabilities of these maps are right.
"""

import argparse
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from core import config
from core.codebook.classes import ClassSet
from core.codebook.registry import SHIPPED, labelled_folders
from core.patterns.classifier_registry import bundled_labels
from core.patterns.evaluation import (
    RESAMPLES,
    calibration,
    calibration_error,
    calibration_interval,
    enough_maps,
    macro_f1,
    scores,
    sure_errors,
)
from core.patterns.forest import TREES
from core.patterns.shapes import statistics
from core.patterns.snapshot import Snapshot, snapshot
from core.patterns.suggestions import UNSURE, Judgement, judged
from core.patterns.training import Classifier, ClassifierRecipe, Known, fit
from core.store.database import Database
from core.store.rows import Row
from core.studies.contract import TrainingUnit
from core.studies.patterns.train_patterns import TrainPatternsOptions, split_of
from data.recipes.disputed_sheets import first_labels
from data.recipes.paired_sheets import folder_maps

NEW_LABELS, DRAWS = (0, 25, 50, 100), 3
RECIPE = ClassifierRecipe(kind="trees")


@dataclass(frozen=True, eq=False)
class Labelled:
    """Maps of all sources of a class set, as they are trained on. clear: those with one class, not a tie. first: class
    by the source's first rater; agreed: two raters who labelled without looking for disputes gave one class. heads:
    checkpoint, layer and number.
    """

    classes: ClassSet
    sources: tuple[str, ...]
    known: Snapshot
    maps: list[np.ndarray]
    first: list[str]
    origins: np.ndarray
    heads: np.ndarray
    agreed: np.ndarray
    clear: np.ndarray

    def fitted(self, chosen: Sequence[int]) -> Classifier:
        """A classifier of these maps, as `patterns train` fits it."""
        rows = sorted(int(k) for k in chosen)
        labels, origins, heads = self.known.column("class"), self.known.column("checkpoint"), self.known.heads
        return fit(
            [self.maps[k] for k in rows],
            [labels[k] for k in rows],
            self.classes.names,
            RECIPE,
            known=Known(
                None if self.known.soft is None else self.known.soft[rows],
                [origins[k] for k in rows],
                [heads[k] for k in rows],
                self.measured[rows],
            ),
        )

    def judged(self, classifier: Classifier, chosen: Sequence[int]) -> Judgement:
        """What a classifier says of these maps."""
        return judged(classifier, [self.maps[k] for k in chosen], measured=self.measured[list(chosen)])

    @cached_property
    def measured(self) -> np.ndarray:
        """The statistics of all maps."""
        return statistics(self.maps)

    @property
    def truth(self) -> np.ndarray:
        """Class numbers of the maps; of a tie the first of the classes that tie."""
        return np.array([self.classes.names.index(name) for name in self.known.column("class")])

    @property
    def firsts(self) -> np.ndarray:
        """Class numbers by the first raters, of all maps."""
        return np.array([self.classes.names.index(name) for name in self.first])


def labelled(class_set: str) -> Labelled:
    """The bundled annotations of a class set."""
    with tempfile.TemporaryDirectory() as folder:
        db = Database(Path(folder) / "labels.duckdb")
        bundled_labels(db, class_set)
        known = snapshot(db, class_set)
        db.close()
    facts: dict[str, Row] = {}
    for source in labelled_folders()[class_set]:
        rows, maps = folder_maps(config.ANNOTATIONS / source)
        given = first_labels(config.ANNOTATIONS / source)
        raters = given["annotator"].value_counts().index  # who labelled most comes first
        first, second = (
            dict(given.loc[given["annotator"] == rater, ["map_id", "class"]].to_numpy()) if rater else {}
            for rater in (*raters[:1], *raters[1:2], None)[:2]
        )
        for row in (row for row in rows if row["map_id"] in first):
            name = row["map_id"]
            facts[name] = {"map": maps[name], "first": first[name], "origin": source, "layer": row["layer"]}
            facts[name] |= {"head": f"{row['checkpoint']}/{row['layer']}/{row['head']}"}
            facts[name]["agreed"] = second.get(name) == first[name]
    order = known.column("map_id")
    columns = {key: [facts[name][key] for name in order] for key in ("map", "first", "origin", "head", "agreed")}
    return Labelled(
        SHIPPED[class_set],
        labelled_folders()[class_set],
        known,
        columns["map"],
        columns["first"],
        *(np.array(columns[key]) for key in ("origin", "head", "agreed")),
        ~np.array(known.column("tied")),
    )


HEADER = [
    "| {} | maps | accuracy | macro F1 (95 %) | over all | where raters agree | first rater, all | ECE (95 %) "
    "| ECE if calibrated (95 % below) | wrong, p > .8 | unsure | right when sure | outside |",
    "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
]


def calibrated_error(confidence: np.ndarray, *, seed: int = 0) -> tuple[float, float]:
    """Mean and 95 % quantile of the expected calibration error if each prediction is right with its confidence: above
    0, because the accuracy in a bin of few maps differs from its mean confidence by chance."""
    drawn = np.random.default_rng(seed).random((RESAMPLES, len(confidence))) < confidence
    errors = [calibration_error(confidence, right) for right in drawn]
    return float(np.mean(errors)), float(np.quantile(errors, 0.95))


def line(name: str, data: Labelled, chosen: np.ndarray, found: Judgement) -> str:
    """One row of a table: `found` are judgements of the maps `chosen`, of which those without one class count for the
    first rater alone."""
    one = data.clear[chosen]
    rows, groups, names = chosen[one], data.known.column("group"), data.classes.names
    truth, likely = data.truth[rows], found.probabilities[one]
    predicted, inputs = likely.argmax(1), [groups[k] for k in rows]
    whole, agreed, both = scores(truth, predicted, inputs, names), data.agreed[rows], "-"
    if agreed.sum() > 1:
        part = scores(truth[agreed], predicted[agreed], [inputs[k] for k in np.flatnonzero(agreed)], names)
        both = f"{part.accuracy:.3f} / {part.macro_f1:.3f} ({part.maps})"
    everything = scores(data.firsts[chosen], found.probabilities.argmax(1), [str(k) for k in chosen], names)
    low, high = calibration_interval(likely, truth, [data.heads[k] for k in rows])
    by_chance, most = calibrated_error(likely.max(1))
    sure = likely.max(1) >= UNSURE
    return (
        f"| {name} | {whole.maps} | {whole.accuracy:.3f} | {whole.macro_f1:.3f} ({whole.low:.3f} to {whole.high:.3f}) "
        f"| {whole.macro_f1_all:.3f} | {both} "
        f"| {everything.accuracy:.3f} / {everything.macro_f1:.3f} ({everything.maps}) "
        f"| {calibration(likely, truth)[1]:.3f} ({low:.3f} to {high:.3f}) "
        f"| {by_chance:.3f} ({most:.3f}) | {sure_errors(likely, truth):.1%} "
        f"| {1 - sure.mean():.3f} | {(truth == predicted)[sure].mean():.3f} | {found.outside[one].mean():.3f} |"
    )


def joined(parts: Sequence[Judgement]) -> Judgement:
    """Judgements of several parts as one."""
    return Judgement(
        np.concatenate([part.probabilities for part in parts]), np.concatenate([part.outside for part in parts]), 0
    )


def _parts(data: Labelled, part: str, split: str) -> list[tuple[list[int], list[int]]]:
    """The (train, test) maps of each fit of a part of `patterns train`."""
    count = len(set(data.known.column("checkpoint"))) if split == "checkpoint" else RECIPE.folds
    units = [TrainingUnit(kind=part, split=split, fold=k) for k in range(count)]
    return [split_of(data.known, TrainPatternsOptions(), unit) for unit in units]


def unseen(data: Labelled) -> list[str]:
    """Each checkpoint by a classifier trained without any of its maps, and all together, as `patterns train` does."""
    rows, every, judgements = [line.replace("{}", "checkpoint left out") for line in HEADER], [], []
    by_source = {}
    for train, test in _parts(data, "checkpoints", "checkpoint"):
        source, out = data.origins[test[0]], np.array(test)
        judgements.append(data.judged(data.fitted(train), test))
        every.append(out)
        by_source[source] = line(source, data, out, judgements[-1])
    rows += [by_source[source] for source in data.sources]
    return [*rows, line("all", data, np.concatenate(every), joined(judgements))]


def shipped(data: Labelled) -> list[str]:
    """Trained on all sources, five folds: maps of inputs, and of heads, that the classifier never saw."""
    rows = [line.replace("{}", "never seen") for line in HEADER]
    for said, split in (("inputs", "group"), ("heads", "heads")):
        order, judgements = [], []
        for train, test in _parts(data, "fold", split):
            order.append(np.array(test))
            judgements.append(data.judged(data.fitted(train), test))
        every, whole = np.concatenate(order), joined(judgements)
        for source in (*data.sources, "all"):
            mine = (data.origins[every] == source) | (source == "all")
            part = Judgement(whole.probabilities[mine], whole.outside[mine], 0)
            rows.append(line(f"{said}, {source}", data, every[mine], part))
    return rows


def _random(rng: np.random.Generator, found: Judgement) -> np.ndarray:
    return rng.permutation(len(found.probabilities))


def _uncertain(_: np.random.Generator, found: Judgement) -> np.ndarray:
    ordered = np.sort(found.probabilities, axis=1)
    return np.argsort(ordered[:, -1] - ordered[:, -2])


WAYS: dict[str, Callable[[np.random.Generator, Judgement], np.ndarray]] = {
    "random": _random,
    "uncertain first": _uncertain,
}


def new_labels(data: Labelled, source: str) -> list[str]:
    """Accuracy and macro F1 on half of a new checkpoint's inputs, with labels of maps of the other half."""
    others = np.flatnonzero(data.origins != source)
    mine = np.flatnonzero((data.origins == source) & data.clear)
    inputs, truth = np.array(data.known.column("group")), data.truth
    outcomes: list[dict] = []
    before = data.fitted(others)
    for draw in range(DRAWS):
        rng = np.random.default_rng(draw)
        names = rng.permutation(np.unique(inputs[mine]))
        asked = np.isin(inputs[mine], names[: len(names) // 2])
        pool, test = mine[asked], mine[~asked]
        first_look = data.judged(before, pool)
        for way, order in WAYS.items():
            ranked = pool[order(rng, first_look)]
            for count in NEW_LABELS:
                classifier = before if not count else data.fitted(np.concatenate([others, ranked[:count]]))
                predicted = data.judged(classifier, test).probabilities.argmax(1)
                confusion = np.zeros((1, len(data.classes), len(data.classes)), dtype=int)
                np.add.at(confusion[0], (truth[test], predicted), 1)
                f1 = float(macro_f1(confusion, enough_maps(confusion[0]))[0])
                right = float((predicted == truth[test]).mean())
                outcomes.append(
                    {
                        "way": way,
                        "count": count,
                        "right": right,
                        "f1": f1,
                    }
                )
    means = pd.DataFrame(outcomes).groupby(["way", "count"]).mean()
    return [
        f"| {source} | {way} | "
        + " | ".join(f"{means.loc[(way, n), 'right']:.3f} / {means.loc[(way, n), 'f1']:.3f}" for n in NEW_LABELS)
        + " |"
        for way in WAYS
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", choices=["unseen", "shipped", "labels"])
    parser.add_argument("--source", default="bert-base-sst2", help="the new checkpoint of `labels`")
    parser.add_argument("--set", choices=SHIPPED, default="bert")
    arguments = parser.parse_args()
    data = labelled(arguments.set)
    if arguments.table == "labels":
        head = ["| new checkpoint | maps chosen | " + " | ".join(f"{n} labels" for n in NEW_LABELS) + " |"]
        rows = [*head, "|---|---|" + "---|" * len(NEW_LABELS), *new_labels(data, arguments.source)]
    else:
        rows = unseen(data) if arguments.table == "unseen" else shipped(data)
    print("\n".join([*rows, "", f"{TREES} trees; {len(data.maps)} maps; labels by an AI model."]))


if __name__ == "__main__":
    main()
