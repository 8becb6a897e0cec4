"""The figures of docs/patterns.md: the pattern classifier on checkpoints, inputs and heads it never saw, as Markdown.

    python -m data.recipes.pattern_figures unseen     # each checkpoint by a classifier without any of its maps
    python -m data.recipes.pattern_figures shipped    # trained on all sources: inputs, and heads, it never saw
    python -m data.recipes.pattern_figures labels     # what 25, 50, 100 labels of a new checkpoint bring
    python -m data.recipes.pattern_figures unseen --set gpt2     # any of them for the decoders' classes

Works on the bundled annotations of a class set, BERT's by default. "Where raters agree" are the maps that two raters
gave one class.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from core import config
from core.patterns.classes import SHIPPED, ClassSet
from core.patterns.evaluation import calibration, macro_f1, scores
from core.patterns.forest import TREES
from core.patterns.suggestions import Judgement, judged
from core.patterns.training import Known, Recipe, fit, folds
from data.recipes.paired_sheets import folder_maps
from data.recipes.rater_agreement import source_labels

NEW_LABELS, DRAWS = (0, 25, 50, 100), 3
RECIPE = Recipe(kind="trees")


@dataclass(frozen=True, eq=False)
class Labelled:
    """Maps of all sources of a class set with the first rater's class. agreed: the second rater gave the same class."""

    classes: ClassSet
    sources: tuple[str, ...]
    maps: list[np.ndarray]
    labels: list[str]
    origins: np.ndarray
    inputs: np.ndarray
    heads: np.ndarray
    agreed: np.ndarray

    def fitted(self, chosen: Sequence[int]):
        """A classifier of these maps."""
        return fit(
            [self.maps[k] for k in chosen],
            [self.labels[k] for k in chosen],
            self.classes.names,
            RECIPE,
            known=Known(origins=[self.origins[k] for k in chosen]),
        )

    @property
    def truth(self) -> np.ndarray:
        return np.array([self.classes.names.index(name) for name in self.labels])


def labelled(class_set: str) -> Labelled:
    """The bundled annotations of a class set, first passes."""
    parts: dict[str, list] = {name: [] for name in ("maps", "labels", "origins", "inputs", "heads", "agreed")}
    for source in config.LABELLED[class_set]:
        rows, maps = folder_maps(config.ANNOTATIONS / source)
        given = source_labels(config.ANNOTATIONS / source)
        given = given[given["pass"] == 1]
        first, *others = (
            dict(given.loc[given["annotator"] == rater, ["map_id", "class"]].to_numpy())
            for rater in given["annotator"].value_counts().index  # who labelled most comes first
        )
        second = others[0] if others else {}
        for row in (row for row in rows if row["map_id"] in first):
            parts["maps"].append(maps[row["map_id"]])
            parts["labels"].append(first[row["map_id"]])
            parts["origins"].append(source)
            parts["inputs"].append(f"{source}/{row['task']}/{row['row_id']}")
            parts["heads"].append(f"{source}/{row['layer']}/{row['head']}")
            parts["agreed"].append(second.get(row["map_id"]) == first[row["map_id"]])
    arrays = {name: np.array(parts[name]) for name in ("origins", "inputs", "heads", "agreed")}
    return Labelled(SHIPPED[class_set], config.LABELLED[class_set], parts["maps"], parts["labels"], **arrays)


HEADER = [
    "| {} | maps | accuracy | macro F1 (95 %) | where raters agree | ECE | unsure | right when sure | outside |",
    "|---|---|---|---|---|---|---|---|---|",
]


def line(name: str, data: Labelled, chosen: np.ndarray, found: Judgement) -> str:
    """One row of a table: `found` are judgements of the maps `chosen`."""
    truth, predicted = data.truth[chosen], found.probabilities.argmax(1)
    whole = scores(truth, predicted, list(data.inputs[chosen]), data.classes.names)
    agreed, both = data.agreed[chosen], "-"
    if agreed.any():
        part = scores(truth[agreed], predicted[agreed], list(data.inputs[chosen][agreed]), data.classes.names)
        both = f"{part.accuracy:.3f} / {part.macro_f1:.3f} ({part.maps})"
    sure = ~found.unsure
    return (
        f"| {name} | {whole.maps} | {whole.accuracy:.3f} | {whole.macro_f1:.3f} ({whole.low:.3f} to {whole.high:.3f}) "
        f"| {both} | {calibration(found.probabilities, truth)[1]:.3f} | {1 - sure.mean():.3f} "
        f"| {(truth == predicted)[sure].mean():.3f} | {found.outside.mean():.3f} |"
    )


def joined(parts: Sequence[Judgement]) -> Judgement:
    """Judgements of several parts as one."""
    return Judgement(
        np.concatenate([part.probabilities for part in parts]), np.concatenate([part.outside for part in parts]), 0
    )


def unseen(data: Labelled) -> list[str]:
    """Each checkpoint by a classifier trained without any of its maps, and all together."""
    rows, every, judgements = [line.replace("{}", "checkpoint left out") for line in HEADER], [], []
    for source in data.sources:
        out = np.flatnonzero(data.origins == source)
        classifier = data.fitted(np.flatnonzero(data.origins != source))
        judgements.append(judged(classifier, [data.maps[k] for k in out]))
        every.append(out)
        rows.append(line(source, data, out, judgements[-1]))
    return [*rows, line("all", data, np.concatenate(every), joined(judgements))]


def shipped(data: Labelled) -> list[str]:
    """Trained on all sources, five folds: maps of inputs, and of heads, that the classifier never saw."""
    rows = [line.replace("{}", "never seen") for line in HEADER]
    for said, groups in (("inputs", data.inputs), ("heads", data.heads)):
        order, judgements = [], []
        for train, test in folds(data.labels, list(groups), count=5, seed=0):
            order.append(test)
            judgements.append(judged(data.fitted(train), [data.maps[k] for k in test]))
        every, whole = np.concatenate(order), joined(judgements)
        for source in data.sources:
            mine = data.origins[every] == source
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
    others, mine = np.flatnonzero(data.origins != source), np.flatnonzero(data.origins == source)
    outcomes: list[dict] = []
    before = data.fitted(others)
    for draw in range(DRAWS):
        rng = np.random.default_rng(draw)
        names = rng.permutation(np.unique(data.inputs[mine]))
        asked = np.isin(data.inputs[mine], names[: len(names) // 2])
        pool, test = mine[asked], mine[~asked]
        first_look = judged(before, [data.maps[k] for k in pool])
        for way, order in WAYS.items():
            ranked = pool[order(rng, first_look)]
            for count in NEW_LABELS:
                classifier = before if not count else data.fitted(np.concatenate([others, ranked[:count]]))
                predicted = judged(classifier, [data.maps[k] for k in test]).probabilities.argmax(1)
                confusion = np.zeros((1, len(data.classes), len(data.classes)), dtype=int)
                np.add.at(confusion[0], (data.truth[test], predicted), 1)
                right = float((predicted == data.truth[test]).mean())
                outcomes.append({"way": way, "count": count, "right": right, "f1": float(macro_f1(confusion)[0])})
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
