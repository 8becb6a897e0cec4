"""One label a map from the labels of many people: majority, Dawid-Skene and MACE, with how sure each is.

Frames of labels have the columns map_id, annotator, pass, class, queue_order, in the order they were given. A person
has one vote a map: the newest label of the first pass; second, blind passes are no votes. Adjudications are none
either: the newest of a map decides its class above every truth, and counts for nobody's skill. Dawid-Skene
(Dawid and Skene 1979: a confusion matrix per person) and MACE (Hovy et al. 2013: per person how often they guess) are
crowd-kit's. With few labels a person neither is always better than majority (tests/simulations/many_people.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pandas as pd

from ..errors import InputError

Method = Literal["majority", "dawid-skene", "mace"]
ROUNDS = {"dawid-skene": 100, "mace": 50}


@dataclass(frozen=True)
class Person:
    """One person under a truth.

    Attributes:
        skill: 0 to 1. By MACE the probability that they do not guess, else the expected share of their labels that are
            right (their own vote counts in that truth, so a little high).
        expected: how many of their maps of each true class (rows) they gave each class (columns).
    """

    name: str
    maps: int
    skill: float
    expected: pd.DataFrame

    @property
    def confusion(self) -> pd.DataFrame:
        """Probability of each given class (columns) by true class (rows); NaN where no map of a class is expected."""
        totals = self.expected.sum(axis=1)
        return self.expected.div(totals.where(totals > 0), axis=0)


@dataclass(frozen=True)
class Truth:
    """What the votes and the adjudications say of each map.

    Attributes:
        probabilities: what the votes say, [map, class]: rows sum to 1; by majority shares of votes, else posteriors.
    """

    method: Method
    probabilities: pd.DataFrame
    people: tuple[Person, ...]
    decisions: pd.Series = field(default_factory=lambda: pd.Series(dtype=object))

    @property
    def soft(self) -> pd.DataFrame:
        """Soft labels for training, [map, class]: what the votes say, and for an adjudicated map its class alone."""
        names = self.probabilities.columns
        certain = [[float(name == decided) for name in names] for decided in self.decisions]
        settled = pd.DataFrame(certain, index=self.decisions.index, columns=names, dtype=float)
        votes_alone = self.probabilities[~self.probabilities.index.isin(settled.index)]
        return pd.concat([votes_alone, settled]).sort_index().rename_axis(index="map_id", columns="class")

    @property
    def adjudicated(self) -> pd.Series:
        """Whether somebody decided on each map of `soft`."""
        soft = self.soft
        return pd.Series(soft.index.isin(self.decisions.index), index=soft.index, name="adjudicated")

    @property
    def ties(self) -> dict[str, tuple[str, ...]]:
        """Maps whose best classes are equally likely and that nobody decided on, with those classes."""
        best = _best(self.soft)
        tied = best[best.sum(axis=1) > 1]
        return {str(name): tuple(tied.columns[row]) for name, row in zip(tied.index, tied.to_numpy(), strict=True)}

    @property
    def labels(self) -> pd.Series:
        """The most likely class of each map; missing where classes tie, so that nobody takes a coin's word for it."""
        soft = self.soft
        return soft.idxmax(axis=1).mask(_best(soft).sum(axis=1) > 1).rename("class")


def votes(labels: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Columns task (map), worker (person), label (class): one row per person and map, sorted by person, then map."""
    plain = labels[(labels["pass"] == 1) & (labels["queue_order"] != "adjudication")]
    if plain.empty:
        raise InputError("A truth from many labels needs labels of a first pass; there are none: label some maps.")
    unknown = sorted(set(plain["class"]) - set(names))
    if unknown:
        raise InputError(
            f"Every label must be one of {', '.join(names)}; {', '.join(unknown)} was given too: choose the class set "
            "that these maps were labelled with."
        )
    newest = plain.drop_duplicates(["map_id", "annotator"], keep="last")
    three = newest[["map_id", "annotator", "class"]]  # frames of the store have a "task" of their own
    renamed = three.set_axis(["task", "worker", "label"], axis=1)
    return renamed.sort_values(["worker", "task"], ignore_index=True)


def truth(labels: pd.DataFrame, names: Sequence[str], method: Method) -> Truth:
    """The truth of every map that has a vote or a decision, over the classes `names`; a class nobody gave has
    probability 0."""
    votes_of_maps = votes(labels, names)
    skills: dict[str, float] = {}
    if method == "majority":
        probabilities = _shares(votes_of_maps)
    elif method == "dawid-skene":
        probabilities = _dawid_skene(votes_of_maps)
    else:
        probabilities, skills = _mace(votes_of_maps)
    probabilities = probabilities.reindex(columns=list(names), fill_value=0.0).sort_index()
    probabilities = probabilities.rename_axis(index="map_id", columns="class")
    people = [
        _person(str(name), person_votes, probabilities, skills.get(name))
        for name, person_votes in votes_of_maps.groupby("worker")
    ]
    ranked = tuple(sorted(people, key=lambda person: (person.skill, person.name)))
    return Truth(method, probabilities, ranked, _decisions(labels, names))


def _decisions(labels: pd.DataFrame, names: Sequence[str]) -> pd.Series:
    """The class that the newest adjudication gave each map; of a class of the set."""
    settled = labels[(labels["queue_order"] == "adjudication") & labels["class"].isin(names)]
    newest = settled.drop_duplicates("map_id", keep="last").set_index("map_id")["class"]
    return newest.sort_index().astype(object)


def _best(probabilities: pd.DataFrame) -> pd.DataFrame:
    """Whether each class [map, class] is as likely as the likeliest, rounding of sums apart."""
    return probabilities.ge(probabilities.max(axis=1) - 1e-9, axis=0)


def _shares(votes_of_maps: pd.DataFrame) -> pd.DataFrame:
    """Share of a map's votes [map, class]."""
    return pd.crosstab(votes_of_maps["task"], votes_of_maps["label"], normalize="index")


def _dawid_skene(votes_of_maps: pd.DataFrame) -> pd.DataFrame:
    """Posterior [map, class] of expectation maximisation that starts from the shares of votes."""
    from crowdkit.aggregation import DawidSkene  # 1.6 s of start-up

    return DawidSkene(n_iter=ROUNDS["dawid-skene"]).fit(votes_of_maps).probas_


def _mace(votes_of_maps: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, float]]:
    """Posterior [map, class], and per person the probability that a label is not guessed (variational inference).

    crowd-kit's MACE numbers people and classes by first appearance in one place and by sorted name in another, so it
    gets numbers, given in the order of first appearance. Its restarts all draw the same start: one is enough.
    """
    from crowdkit.aggregation import MACE  # 1.6 s of start-up

    coded = {column: pd.factorize(votes_of_maps[column]) for column in ("task", "worker", "label")}
    fitted = MACE(n_restarts=1, n_iter=ROUNDS["mace"]).fit(pd.DataFrame({c: codes for c, (codes, _) in coded.items()}))
    coded_posterior: pd.DataFrame = fitted.probas_
    probabilities = coded_posterior.set_axis(coded["task"][1][coded_posterior.index], axis=0)
    probabilities = probabilities.set_axis(coded["label"][1][coded_posterior.columns], axis=1)
    return probabilities, dict(zip(coded["worker"][1], fitted.spamming_[:, 1].tolist(), strict=True))


def _person(name: str, person_votes: pd.DataFrame, probabilities: pd.DataFrame, skill: float | None) -> Person:
    """A person's expected confusions under the truth's probabilities."""
    names = probabilities.columns
    chosen = (person_votes["label"].to_numpy()[:, None] == names.to_numpy()[None, :]).astype(
        float
    )  # [vote, given class]
    counts = probabilities.loc[person_votes["task"]].to_numpy().T @ chosen  # [true class, given class]
    expected = pd.DataFrame(counts, index=names.rename("true"), columns=names.rename("given"))
    return Person(
        name, len(person_votes), float(np.trace(counts) / len(person_votes)) if skill is None else skill, expected
    )
