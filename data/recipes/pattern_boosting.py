"""Whether boosted trees beside the forest are worth it, chosen by inner cross-validation: a table for docs/patterns.md.

    python -m data.recipes.pattern_boosting
    python -m data.recipes.pattern_boosting --set gpt2

For each source that is left out, forms of classifier are compared on the *other* sources alone, each of them left out
in turn; the form with the best mean macro F1 there is then fitted to all of them and judged once on the source left
out. With two sources the inner parts are heads. A form is the forest as it ships, or the mean of its probabilities and
those of scikit-learn's gradient boosting.
"""

import argparse
import time
from collections.abc import Sequence

import numpy as np

from core.patterns.boosting import Examples, boosted_probabilities, fit_boosted
from core.patterns.classes import SHIPPED
from core.patterns.evaluation import enough_maps, macro_f1
from core.patterns.forest import Growth, _grown, _of_forest, parts
from core.patterns.planted import planted
from core.patterns.shapes import shapes
from data.recipes.pattern_figures import Labelled, labelled

FOREST = "forest"
ROUNDS = {FOREST: 0, "forest and 50 rounds": 50, "forest and 150 rounds": 150}  # of boosting
INNER_PARTS = 3  # of heads, where a single source is left


def probabilities(
    data: Labelled, measured: np.ndarray, train: Sequence[int], test: Sequence[int], rounds: Sequence[int]
) -> dict[int, np.ndarray]:
    """What each form says of the maps `test`, fitted to the maps `train`: rounds of boosting -> [map, class]."""
    names, truth = data.classes.names, data.truth[list(train)]
    extra, made = planted([data.maps[k] for k in train], [names[k] for k in truth], names)
    grown = _grown(measured[list(train)], parts(truth, len(names)), extra, made, names, Growth(rounds=0))
    of_forest = _of_forest(grown, measured[list(test)])
    every = np.concatenate([measured[list(train)], shapes(extra)])
    numbers = np.concatenate([truth, np.array([names.index(name) for name in made], dtype=int)])
    found = {0: of_forest}
    for count in sorted(set(rounds) - {0}):
        boosted = fit_boosted(Examples(every, numbers), len(names), rounds=count)
        likely = boosted_probabilities(boosted, measured[list(test)])
        found[count] = (of_forest + likely) / 2
    return found


def figures(truth: np.ndarray, predicted: np.ndarray, classes: int) -> tuple[float, float]:
    """Accuracy, and macro F1 over classes of at least ten maps."""
    confusion = np.zeros((classes, classes), dtype=int)
    np.add.at(confusion, (truth, predicted), 1)
    return float((truth == predicted).mean()), float(macro_f1(confusion[None], enough_maps(confusion))[0])


def inner_parts(data: Labelled, others: np.ndarray) -> list[np.ndarray]:
    """The maps that are left out in turn among those of the other sources."""
    origins = data.origins[others]
    if len(set(origins)) > 1:
        return [others[origins == name] for name in sorted(set(origins))]
    heads = {name: k % INNER_PARTS for k, name in enumerate(sorted(set(data.heads[others])))}
    part = np.array([heads[name] for name in data.heads[others]])
    return [others[part == k] for k in range(INNER_PARTS)]


def chosen(data: Labelled, measured: np.ndarray, others: np.ndarray) -> tuple[str, dict[str, float]]:
    """The form with the best mean macro F1 on parts of the other sources, and what each form had."""
    scored: dict[str, list[float]] = {form: [] for form in ROUNDS}
    for out in inner_parts(data, others):
        train = np.setdiff1d(others, out)
        found = probabilities(data, measured, train, out, list(ROUNDS.values()))
        for form, rounds in ROUNDS.items():
            scored[form].append(figures(data.truth[out], found[rounds].argmax(1), len(data.classes))[1])
    means = {form: float(np.mean(values)) for form, values in scored.items()}
    return max(means, key=lambda form: means[form]), means


def rows(data: Labelled) -> list[str]:
    """A line a source that is left out."""
    clear = np.arange(len(data.known.maps))
    measured = shapes(data.maps)
    table = [
        "| left out | maps | chosen on the others | inner macro F1, forest and chosen | forest | chosen "
        "| where raters agree, forest | chosen | seconds, forest and chosen |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for source in data.sources:
        out, others = (clear[(data.origins[clear] == source) == there] for there in (True, False))
        form, inner = chosen(data, measured, others)
        seconds, found = {}, {}
        for rounds in dict.fromkeys((0, ROUNDS[form])):
            begun = time.perf_counter()
            found |= probabilities(data, measured, others, out, [rounds])
            seconds[rounds] = time.perf_counter() - begun
        told = []
        for among in (out >= 0, data.agreed[out]):
            for rounds in (0, ROUNDS[form]):
                both = (
                    figures(data.truth[out[among]], found[rounds][among].argmax(1), len(data.classes))
                    if among.any()
                    else ()
                )
                told.append(" / ".join(f"{value:.3f}" for value in both) or "-")
        table.append(
            f"| {source} | {len(out)} | {form} | {inner[FOREST]:.3f}, {inner[form]:.3f} | {' | '.join(told)} "
            f"| {seconds[0]:.1f}, {seconds[ROUNDS[form]]:.1f} |"
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", choices=SHIPPED, default="bert")
    print("\n".join(rows(labelled(parser.parse_args().set))))


if __name__ == "__main__":
    main()
