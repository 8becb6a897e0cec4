"""Aggregation of labels from several annotators: majority, Dawid-Skene and MACE, with probabilities.

Labels have the columns map_id, annotator, pass, class, queue_order, oldest first. The vote of an annotator on a map is
the newest label in the first pass. Adjudications are not votes: the newest one decides the class and does not affect
estimated skills. Dawid-Skene (Dawid and Skene 1979, a confusion matrix per annotator) and MACE (Hovy et al. 2013, a
guessing rate per annotator) come from crowd-kit. With few labels per annotator, neither is always better than the
majority (tests/simulations/many_people.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pandas as pd
from scipy.special import softmax

from ..errors import InputError

Method = Literal["majority", "dawid-skene", "mace"]
ROUNDS = {"dawid-skene": 100, "mace": 50}
CONVERGED = 1e-4  # largest change of a posterior


@dataclass(frozen=True)
class Person:
    """The estimated skill of an annotator, and how often the annotator assigns each class to maps of each true class.

    Attributes:
        skill: for MACE the probability of not guessing; for Dawid-Skene the expected fraction of correct labels, in
            which their own votes count; for the majority the mean fraction of other annotators who gave the same label
            to the same map (NaN without another annotator).
        compared: maps that another annotator labelled too.
        expected: expected number of maps by true class (rows) and given class (columns).
    """

    name: str
    maps: int
    compared: int
    skill: float
    expected: pd.DataFrame

    @property
    def confusion(self) -> pd.DataFrame:
        """Return, for each true class (row), the probability that the annotator assigns each class (column)."""
        totals = self.expected.sum(axis=1)
        return self.expected.div(totals.where(totals > 0), axis=0)


@dataclass(frozen=True)
class Truth:
    """Labels that were aggregated over annotators. `probabilities` [map, class] are vote shares for majority voting and
    posterior probabilities for other methods."""

    method: Method
    probabilities: pd.DataFrame
    people: tuple[Person, ...]
    decisions: pd.Series = field(default_factory=lambda: pd.Series(dtype=object))

    @property
    def soft(self) -> pd.DataFrame:
        """Return the class probabilities of each map (soft labels) as a table [map, class]. An adjudicated class has
        probability 1."""
        names = self.probabilities.columns
        certain = [[float(name == decided) for name in names] for decided in self.decisions]
        settled = pd.DataFrame(certain, index=self.decisions.index, columns=names, dtype=float)
        votes_alone = self.probabilities[~self.probabilities.index.isin(settled.index)]
        return pd.concat([votes_alone, settled]).sort_index().rename_axis(index="map_id", columns="class")

    @property
    def adjudicated(self) -> pd.Series:
        soft = self.soft
        return pd.Series(soft.index.isin(self.decisions.index), index=soft.index, name="adjudicated")

    @property
    def ties(self) -> dict[str, tuple[str, ...]]:
        """Return the classes that are tied as the most likely class of a map, by map ID. Adjudicated maps are left
        out."""
        best = _best(self.soft)
        tied = best[best.sum(axis=1) > 1]
        return {str(name): tuple(tied.columns[row]) for name, row in zip(tied.index, tied.to_numpy(), strict=True)}

    @property
    def labels(self) -> pd.Series:
        """Return the most likely class of each map. The class is missing if several classes are tied."""
        soft = self.soft
        return soft.idxmax(axis=1).mask(_best(soft).sum(axis=1) > 1).rename("class")


def votes(labels: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return a table with one vote per annotator and attention map: task (the map), worker (the annotator) and label
    (the class).

    Raises InputError if there are none.
    """
    plain = labels[(labels["pass"] == 1) & (labels["queue_order"] != "adjudication")]
    if plain.empty:
        raise InputError(
            "Aggregating labels needs at least one label; got none (repeated labels and adjudications do not count). "
            "Label some maps."
        )
    unknown = sorted(set(plain["class"]) - set(names))
    if unknown:
        raise InputError(
            f"Every label must be one of {', '.join(names)}; got {', '.join(unknown)}. Choose the class set that was "
            "used to label these maps."
        )
    newest = plain.drop_duplicates(["map_id", "annotator"], keep="last")
    three = newest[["map_id", "annotator", "class"]]  # "task" in the store's frames is something else
    renamed = three.set_axis(["task", "worker", "label"], axis=1)
    return renamed.sort_values(["worker", "task"], ignore_index=True)


def truth(labels: pd.DataFrame, names: Sequence[str], method: Method) -> Truth:
    """Estimate the true class of each attention map from the labels of several annotators."""
    votes_of_maps = votes(labels, names)
    skills: dict[str, float] = {}
    others = agreement_with_others(votes_of_maps)
    if method == "majority":
        skills = {str(name): float(share) for name, share in others["share"].items()}
        probabilities = pd.crosstab(votes_of_maps["task"], votes_of_maps["label"], normalize="index")
    elif method == "dawid-skene":
        from crowdkit.aggregation import DawidSkene  # 1.6 s at start

        probabilities = DawidSkene(n_iter=ROUNDS["dawid-skene"]).fit(votes_of_maps).probas_
    else:
        probabilities, skills = _mace(votes_of_maps)
    probabilities = probabilities.reindex(columns=list(names), fill_value=0.0).sort_index()
    probabilities = probabilities.rename_axis(index="map_id", columns="class")
    people = [
        _person(str(name), person_votes, int(others["maps"].get(name, 0)), probabilities, skills.get(str(name)))
        for name, person_votes in votes_of_maps.groupby("worker")
    ]
    ranked = tuple(sorted(people, key=lambda person: (np.isnan(person.skill), person.skill, person.name)))
    settled = labels[(labels["queue_order"] == "adjudication") & labels["class"].isin(names)]
    newest = settled.drop_duplicates("map_id", keep="last").set_index("map_id")["class"]
    return Truth(method, probabilities, ranked, newest.sort_index().astype(object))


# Pseudo-labels: of a rater's class in favour of the true one, and of a rater's matrix for that of one checkpoint
RIGHT, ANY, POOLED = 6.0, 0.3, 10.0


def posteriors(labels: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return the posterior class probabilities [map, class] from a Dawid-Skene model. The model has one confusion
    matrix for each combination of annotator and checkpoint.

    Each matrix is shrunk to that of the annotator over all checkpoints. Classes that an annotator often confuses become
    uncertain, even if nobody else labelled the map. `labels` also has the column checkpoint.
    """
    given = votes(labels, names)
    maps, order = pd.factorize(given["task"], sort=True)
    checkpoint = labels.drop_duplicates("map_id").set_index("map_id")["checkpoint"]
    place, checkpoints = pd.factorize(checkpoint.reindex(order), sort=True)
    raters, people = pd.factorize(given["worker"], sort=True)
    chosen = given["label"].map({name: number for number, name in enumerate(names)}).to_numpy()
    count = len(names)
    found = np.zeros((len(order), count))
    np.add.at(found, (maps, chosen), 1.0)
    found /= found.sum(1, keepdims=True)
    for _ in range(ROUNDS["dawid-skene"]):
        prior = np.ones((len(checkpoints), count))
        np.add.at(prior, place, found)
        # [rater, checkpoint, given class, true class]
        counted = np.zeros((len(people), len(checkpoints), count, count))
        np.add.at(counted, (raters, place[maps], chosen), found[maps])
        pooled = counted.sum(1) + RIGHT * np.eye(count) + ANY
        confused = counted + POOLED * (pooled / pooled.sum(1, keepdims=True))[:, None]
        confused /= confused.sum(2, keepdims=True)
        likely = np.log(prior / prior.sum(1, keepdims=True))[place]
        np.add.at(likely, maps, np.log(confused[raters, place[maps], chosen]))
        before, found = found, softmax(likely, axis=1)
        if np.abs(found - before).max() < CONVERGED:
            break
    return pd.DataFrame(found, index=pd.Index(order, name="map_id"), columns=pd.Index(names, name="class"))


def agreement_with_others(votes_of_maps: pd.DataFrame) -> pd.DataFrame:
    """Return how often each annotator (row) agrees with other annotators. `maps` is the number of maps that others
    also labelled. `share` is the fraction of other annotators who chose the same class, averaged over these maps."""
    same = votes_of_maps.groupby(["task", "label"])["worker"].transform("size") - 1
    others = votes_of_maps.groupby("task")["worker"].transform("size") - 1
    shares = (same / others.where(others > 0)).groupby(votes_of_maps["worker"])
    return pd.DataFrame({"share": shares.mean(), "maps": shares.count()})


def _best(probabilities: pd.DataFrame) -> pd.DataFrame:
    """Return whether each class [map, class] is among the most likely, up to rounding."""
    return probabilities.ge(probabilities.max(axis=1) - 1e-9, axis=0)


def _mace(votes_of_maps: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, float]]:
    """Return posteriors [map, class] and the probability of not guessing for each annotator (variational inference).

    crowd-kit's MACE numbers annotators and classes inconsistently, so it receives integers in order of first
    appearance. One restart is enough, because all use the same start.
    """
    from crowdkit.aggregation import MACE  # 1.6 s at start

    coded = {column: pd.factorize(votes_of_maps[column]) for column in ("task", "worker", "label")}
    fitted = MACE(n_restarts=1, n_iter=ROUNDS["mace"]).fit(pd.DataFrame({c: codes for c, (codes, _) in coded.items()}))
    coded_posterior: pd.DataFrame = fitted.probas_
    probabilities = coded_posterior.set_axis(coded["task"][1][coded_posterior.index], axis=0)
    probabilities = probabilities.set_axis(coded["label"][1][coded_posterior.columns], axis=1)
    return probabilities, dict(zip(coded["worker"][1], fitted.spamming_[:, 1].tolist(), strict=True))


def _person(
    name: str, person_votes: pd.DataFrame, compared: int, probabilities: pd.DataFrame, skill: float | None
) -> Person:
    names = probabilities.columns
    # [vote, given class]
    chosen = (person_votes["label"].to_numpy()[:, None] == names.to_numpy()[None, :]).astype(float)
    counts = probabilities.loc[person_votes["task"]].to_numpy().T @ chosen  # [true class, given class]
    expected = pd.DataFrame(counts, index=names.rename("true"), columns=names.rename("given"))
    share = float(np.trace(counts) / len(person_votes))
    return Person(name, len(person_votes), compared, share if skill is None else skill, expected)
