"""`python -m tests.simulations.many_people`: a table on standard output (about ten minutes on a free core).

Twenty people label 300 maps of five classes, three a map; four answer at random. Errors of the honest go evenly to the
other classes, or mostly (four of five) to one class per true class, as people confuse real classes.
"""

import argparse
import sys
from dataclasses import dataclass

import numpy as np
import pandas as pd

from core.patterns.truth import Method, Truth, truth

CLASSES = ("vertical", "diagonal", "vertical_diagonal", "block", "heterogeneous")
PEOPLE, RANDOM, VOTES, MAPS = 20, 4, 3, 300
LEARNED: tuple[Method, ...] = ("dawid-skene", "mace")


def drawn(accuracy: float, errors: str, seed: int) -> tuple[pd.DataFrame, pd.Series]:
    """Labels as the store gives them, and the true class of each map; people 0 to 3 answer at random."""
    rng = np.random.default_rng([seed, round(accuracy * 100)])
    true = rng.integers(0, len(CLASSES), (MAPS, 1))
    who = np.stack([rng.permutation(PEOPLE)[:VOTES] for _ in range(MAPS)])  # [map, vote]
    steps = rng.integers(1, len(CLASSES), who.shape)
    if errors == "mostly to one class":
        steps = np.where(rng.random(who.shape) < 0.8, 1, steps)
    honest = np.where(rng.random(who.shape) < accuracy, true, (true + steps) % len(CLASSES))
    given = np.where(who < RANDOM, rng.integers(0, len(CLASSES), who.shape), honest)
    maps = np.repeat([f"map{k:03d}" for k in range(MAPS)], VOTES)
    people = [f"person{k:02d}" for k in who.ravel()]
    labels = pd.DataFrame({"map_id": maps, "annotator": people, "pass": 1, "queue_order": "random"})
    labels["class"] = np.array(CLASSES)[given.ravel()]
    return labels, pd.Series(np.array(CLASSES)[true[:, 0]], index=[f"map{k:03d}" for k in range(MAPS)])


WORLDS = (
    "all honest",
    "four answer at random",
    "each weak at two classes",
    "nine always give one class",
    "two of three err alike",
)


def world(name: str, seed: int, *, accuracy: float = 0.85) -> tuple[pd.DataFrame, pd.Series]:
    """As `drawn`, of other people: twenty, three labels a map."""
    rng = np.random.default_rng([seed, WORLDS.index(name)])
    count, truths = len(CLASSES), rng.integers(0, len(CLASSES), (MAPS, 1))
    who = np.stack([rng.permutation(PEOPLE)[:VOTES] for _ in range(MAPS)])
    skills = np.full((PEOPLE, count), accuracy)
    if name == "four answer at random":
        skills[:RANDOM] = 1 / count
    if name == "each weak at two classes":
        skills = np.where((np.arange(PEOPLE)[:, None] - np.arange(count)) % count < 2, 0.45, 0.95)
    wrong = (truths + rng.integers(1, count, who.shape)) % count
    given = np.where(rng.random(who.shape) < skills[who, truths], truths, wrong)
    if name == "nine always give one class":
        given = np.where(who < 9, count - 1, given)
    if name == "two of three err alike":
        given = np.where(who % 3 < 2, (truths + 1 + truths % 2) % count, given)
    maps = np.repeat([f"map{k:03d}" for k in range(MAPS)], VOTES)
    labels = pd.DataFrame({"map_id": maps, "annotator": [f"person{k:02d}" for k in who.ravel()]})
    labels = labels.assign(queue_order="random", **{"pass": 1, "class": np.array(CLASSES)[given.ravel()]})
    return labels, pd.Series(np.array(CLASSES)[truths[:, 0]], index=[f"map{k:03d}" for k in range(MAPS)])


def right(judged: Truth, true: pd.Series) -> float:
    """Share of maps whose best class is the true one; of tied classes each counts its part."""
    p = judged.probabilities.loc[true.index].to_numpy()
    best = p >= p.max(axis=1, keepdims=True) - 1e-9
    hit = best[np.arange(len(true)), judged.probabilities.columns.get_indexer(true)]
    return float((hit / best.sum(axis=1)).mean())


@dataclass(frozen=True)
class Outcome:
    """One method in one seed, beside majority on the same votes. last: the four at random have the lowest skills."""

    method: Method
    right: float
    majority: float
    last: bool


def simulate(accuracy: float, errors: str, seed: int) -> list[Outcome]:
    """Both learned methods on one draw."""
    labels, true = drawn(accuracy, errors, seed)
    majority = right(truth(labels, CLASSES, "majority"), true)
    outcomes = []
    for method in LEARNED:
        judged = truth(labels, CLASSES, method)
        last = {person.name for person in judged.people[:RANDOM]} == {f"person{k:02d}" for k in range(RANDOM)}
        outcomes.append(Outcome(method, right(judged, true), majority, last))
    return outcomes


def lines(accuracy: float, errors: str, seeds: int) -> list[str]:
    """Markdown rows, one a method."""
    outcomes = [outcome for seed in range(seeds) for outcome in simulate(accuracy, errors, seed)]
    rows = []
    for method in LEARNED:
        own = [outcome for outcome in outcomes if outcome.method == method]
        means = [np.mean([getattr(outcome, name) for outcome in own]) for name in ("majority", "right")]
        wins, last = sum(outcome.right > outcome.majority for outcome in own), sum(outcome.last for outcome in own)
        rows.append(
            f"| {accuracy:.2f} | {errors} | {method} | {means[0]:.1%} | {means[1]:.1%} | {wins} of {seeds} | "
            f"{last} of {seeds} |"
        )
    return rows


def main() -> None:
    """Write the page, a row as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--accuracies", type=float, nargs="+", default=[0.85, 0.75])
    parser.add_argument("--errors", nargs="+", default=["even", "mostly to one class"])
    wanted = parser.parse_args()
    sys.stdout.write(_INTRODUCTION)
    for errors in wanted.errors:
        for accuracy in wanted.accuracies:
            sys.stdout.write("\n".join(lines(accuracy, errors, wanted.seeds)) + "\n")
            sys.stdout.flush()


_INTRODUCTION = """# Whether a learned truth beats the majority

`core/patterns/truth.py` makes one label a map from many people's by majority, Dawid-Skene or MACE. This table is by

    python -m tests.simulations.many_people

Simulated: 300 maps of five classes, three labels a map, twenty people, four of whom answer at random. *Errors* says
where the honest go wrong: evenly to the other classes, or four times of five to one class per true class. *Wins* are
seeds in which the method has more maps right than majority (each of tied classes counts its part); *last* are seeds in
which the four have the lowest skills. Real people share some errors, which none of the three methods can see.

| honest accuracy | errors | method | majority right | method right | wins | last |
|---|---|---|---|---|---|---|
"""

if __name__ == "__main__":
    main()
