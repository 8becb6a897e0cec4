"""Whether further models beside the forest are worth it, by inner cross-validation: a table for docs/results/data.

    python -m data.recipes.pattern_boosting
    python -m data.recipes.pattern_boosting --set gpt2

For each source that is left out, two forms of classifier are compared on the *other* sources alone, each of them left
out in turn: the forest, and its mean with further models, which are a kernel and a logistic regression. The form with
the least loss there, after its temperature, is then fitted to all of them and judged once on the source left out. With
two sources the inner parts are heads.
"""

import argparse

import numpy as np

from core.codebook.registry import SHIPPED
from core.patterns.evaluation import enough_maps, macro_f1
from core.patterns.forest import (
    Growth,
    _grown,
    _HeldOut,
    _of_all,
    _of_forest,
    _statistics,
    _temperature,
    parts,
    planted,
)
from data.recipes.pattern_figures import Labelled, labelled

FORMS = {False: "forest", True: "forest and further models"}
INNER_PARTS = 3  # of heads, where a single source is left


def held_out(data: Labelled, measured: np.ndarray, train: np.ndarray, test: np.ndarray) -> _HeldOut:
    """What both forms say of the maps `test`, fitted to the maps `train`."""
    names, truth = data.classes.names, data.truth
    known = parts(truth, len(names), data.known.soft)
    extra, made = planted([data.maps[k] for k in train], [names[truth[k]] for k in train], names)
    grown = _grown(measured[train], known.of(train), extra, made, names, Growth())
    of_forest = _of_forest(grown, measured[test])
    return _HeldOut(of_forest, _of_all(grown, measured[test], of_forest), known.shares(len(truth), len(names))[test])


def figures(truth: np.ndarray, predicted: np.ndarray, classes: int) -> str:
    """Accuracy, and macro F1 over classes of at least ten maps."""
    confusion = np.zeros((classes, classes), dtype=int)
    np.add.at(confusion, (truth, predicted), 1)
    f1 = float(macro_f1(confusion[None], enough_maps(confusion))[0])
    return f"{(truth == predicted).mean():.3f} / {f1:.3f}"


def inner_parts(data: Labelled, others: np.ndarray) -> list[np.ndarray]:
    """The maps that are left out in turn among those of the other sources."""
    origins = data.origins[others]
    if len(set(origins)) > 1:
        return [others[origins == name] for name in sorted(set(origins))]
    heads = {name: k % INNER_PARTS for k, name in enumerate(sorted(set(data.heads[others])))}
    part = np.array([heads[name] for name in data.heads[others]])
    return [others[part == k] for k in range(INNER_PARTS)]


def rows(data: Labelled) -> list[str]:
    """A line a source that is left out."""
    measured = _statistics(data.maps)
    table = [
        "| left out | maps | loss on the others, forest | with further models | chosen | forest | with further models "
        "| where raters agree, forest | with further models |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for source in data.sources:
        out, others = (np.flatnonzero((data.origins == source) == there) for there in (True, False))
        inner = [held_out(data, measured, np.setdiff1d(others, part), part) for part in inner_parts(data, others)]
        losses = {boosts: _temperature(inner, both=boosts)[1] for boosts in FORMS}
        found, told = held_out(data, measured, others, out), []
        for among in (data.clear[out], data.agreed[out] & data.clear[out]):
            for boosts in FORMS:
                predicted = found.of(boosts)[among].argmax(1)
                told.append(figures(data.truth[out][among], predicted, len(data.classes)) if among.any() else "-")
        table.append(
            f"| {source} | {data.clear[out].sum()} | {losses[False]:.3f} | {losses[True]:.3f} "
            f"| {FORMS[losses[True] < losses[False]]} | {' | '.join(told)} |"
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", choices=SHIPPED, default="bert")
    print("\n".join(rows(labelled(parser.parse_args().set))))


if __name__ == "__main__":
    main()
