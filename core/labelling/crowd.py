"""Labels of many people as one answer: whose votes count, what each truth makes of them, and which is worth it here."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
import pandas as pd
import scipy  # its parts load when they are used

from ..errors import InputError
from ..patterns.snapshot import known_class_set, present_names, standing_labels
from ..patterns.truth import Method, Truth, truth, votes
from ..store import projects
from ..store.database import Database

# -------------------- Do the people who label differ, in how often others agree with them, or in how often they


SHUFFLES = 200
LEVEL = 0.95


@dataclass(frozen=True)
class Spread:
    """Standard deviation over people beyond chance with its 95 % interval; NaN where nothing can be compared."""

    value: float
    low: float
    high: float


NOTHING = Spread(float("nan"), float("nan"), float("nan"))


def skill_spread(votes: pd.DataFrame, *, seed: int = 0) -> Spread:
    """How much people differ in the share of others who agree with them, among labels of the same class.

    Returns:
        The spread of shares, 0 to 1; NaN where no map has two votes, or fewer than two people's votes can be compared.
    """
    maps, _ = pd.factorize(votes["task"])
    labels, names = pd.factorize(votes["label"])
    counts = np.zeros((maps.max() + 1, len(names)))
    np.add.at(counts, (maps, labels), 1)
    others = counts[maps].sum(1) - 1
    compared = others > 0
    if not compared.any():
        return NOTHING
    agree = (counts[maps, labels] - 1)[compared] / others[compared]
    of_class = pd.Series(agree).groupby(labels[compared]).transform("mean").to_numpy()
    return _spread(votes["worker"].to_numpy()[compared], (agree - of_class)[:, None], seed)


def class_rate_spread(votes: pd.DataFrame, *, seed: int = 0) -> Spread:
    """How much people differ in how often they give each class: the length of the difference from everybody's shares.

    Returns:
        The spread of vectors of shares; NaN for fewer than two people.
    """
    indicators = pd.get_dummies(votes["label"]).to_numpy(float)
    return _spread(votes["worker"].to_numpy(), indicators - indicators.mean(0), seed)


def _spread(workers: np.ndarray, residuals: np.ndarray, seed: int) -> Spread:
    people, names = pd.factorize(workers)
    if len(names) < 2:
        return NOTHING
    chance = np.random.default_rng(seed)
    by_chance = float(np.mean([_between(chance.permutation(people), residuals) for _ in range(SHUFFLES)]))
    observed, freedom = _between(people, residuals), len(names) - 1
    tails = scipy.stats.chi2.isf([(1 - LEVEL) / 2, (1 + LEVEL) / 2], freedom)  # upper tails: the larger first
    low, high = (math.sqrt(max(0.0, observed * freedom / float(tail) - by_chance)) for tail in tails)
    return Spread(math.sqrt(max(0.0, observed - by_chance)), low, high)


def _between(people: np.ndarray, residuals: np.ndarray) -> float:
    """Mean over labels of the squared mean of their person."""
    counts = np.bincount(people)
    sums = np.stack([np.bincount(people, column) for column in residuals.T])
    return float((sums**2 / np.maximum(counts, 1)).sum() / counts.sum())


# ----------------------------------------------------------------


METHODS: dict[Method, str] = {"majority": "Majority", "dawid-skene": "Dawid-Skene", "mace": "MACE"}
SKILLS_DIFFER = 0.1  # lower end of the spread of agreement: simulated people with four of twenty guessing came above
RATES_DIFFER = 0.2  # of how often classes are given: with nine of twenty who always give one class, above
FEWEST_LABELS = 20  # a person
ALIKE = (
    "People who make the same mistakes look skilled to every method, and no count of votes shows it: gold maps do "
    "(Make a project, gold)."
)


def checked_method(name: str | None) -> Method | None:
    """A method by its name. InputError for another."""
    if name is not None and name not in get_args(Method):
        raise InputError(
            f"A truth from many labels is one of {', '.join(get_args(Method))}; {name[:40]!r} is none: choose one."
        )
    return name  # type: ignore[return-value]


def votes_of(db: Database, class_set: str, project: str | None = None, *, map_id: str | None = None) -> pd.DataFrame:
    """Labels as `core.patterns.truth` and `agreement` read them, classes as they are called now.

    Args:
        db: where labels are stored.
        project: only the labels given in it, surplus ones too, repeats as a second pass, with the adjudications of its
            maps; gold and exemplars, whose class is known, are left out. Of a project that is closed or archived what
            stood when it was closed. None for all that stand in the class set.

    Returns:
        A row a label, oldest first, with map_id, annotator, class and pass among the columns.
    """
    if project is None:
        return standing_labels(db, class_set, map_id=map_id)
    standing = standing_labels(db, class_set, map_id=map_id, last=projects.frozen_now(db, project))
    votes = projects.project_labels(db, project, purpose=None)
    votes = votes[(votes.kind == "label") & votes.purpose.isin(["label", "repeat"])]
    if map_id is not None:
        votes = votes[votes.map_id == map_id]
    votes = votes.assign(**{"class": votes["class"].map(present_names(db, class_set))}).dropna(subset=["class"])
    settled = standing[(standing.queue_order == "adjudication") & standing.map_id.isin(votes.map_id)]
    return pd.concat([votes, settled], ignore_index=True).sort_values("ordinal", ignore_index=True)


def truth_of(db: Database, class_set: str, method: Method, project: str | None = None) -> Truth:
    """The truth of the labels of a project or class set. InputError when there are none."""
    return truth(votes_of(db, class_set, project), known_class_set(db, class_set).names, method)


@dataclass(frozen=True)
class Advice:
    """Whether a learned truth is worth it: whether people differ enough. labels: median a person. skill: the spread of
    how often others agree with a person; rates: of how often each class is given."""

    worth: bool
    people: int
    labels: float
    skill: Spread
    rates: Spread

    @property
    def sentence(self) -> str:
        """What to tell people who choose."""
        if self.people < 3:
            return "Majority does as well: people are told apart only when there are three or more."
        if self.labels < FEWEST_LABELS:
            return (
                f"Majority does as well: people are told apart from {FEWEST_LABELS} labels each on, and the median "
                f"here is {self.labels:.0f}."
            )
        if np.isnan(self.skill.value):
            return "Majority does as well: no map has labels of two people, so that nobody can be compared."
        about = (
            f"beyond chance, agreement with others spreads over {self.people} people by {_with_interval(self.skill)}, "
            f"and how often they give a class by {_with_interval(self.rates)}"
        )
        if self.worth:
            return (
                f"People differ here ({about}): in simulations of such people Dawid-Skene and MACE had more maps right "
                f"than majority. {ALIKE}"
            )
        return (
            f"Majority does as well ({about}): of people who differ no more than this Dawid-Skene learns noise, and in "
            f"simulations it had no more maps right, often fewer. {ALIKE}"
        )


def _with_interval(spread: Spread) -> str:
    return f"{spread.value:.2f} ({spread.low:.2f} to {spread.high:.2f})"


def advice(labels: pd.DataFrame, names: Sequence[str]) -> Advice:
    """Whether a learned truth is worth it for these labels, as tests/simulations/many_people.py found. labels: as
    `votes_of` gives them."""
    vote_table = votes(labels, names)
    counts = vote_table["worker"].value_counts()
    skill, rates = skill_spread(vote_table), class_rate_spread(vote_table)
    enough = len(counts) >= 3 and counts.median() >= FEWEST_LABELS
    differ = skill.low >= SKILLS_DIFFER or rates.low >= RATES_DIFFER
    return Advice(bool(enough and differ), len(counts), float(counts.median()), skill, rates)


def people_table(judged: Truth, pace: pd.DataFrame) -> pd.DataFrame:
    """A row a person, the least skilled first: maps, skill, likeliest confusion, median seconds, labels an hour.

    pace: of `core.store.labels.pace`.
    """
    first = pace[pace["pass"] == 1].set_index("annotator")
    rows = []
    for person in judged.people:
        person_pace = first.loc[person.name] if person.name in first.index else None
        rows.append(
            {
                "person": person.name,
                "maps": person.maps,
                "skill": person.skill,
                "most confused": _most_confused(person.expected, list(judged.probabilities.columns)),
                "median seconds": None if person_pace is None else person_pace.median_seconds,
                "labels per hour": None if person_pace is None else person_pace.per_hour,
            }
        )
    return pd.DataFrame(rows)


def _most_confused(expected: pd.DataFrame, names: Sequence[str]) -> str:
    wrong = [(expected.loc[a, b], a, b) for a in names for b in names if a != b]
    count, true, confused_with = max(wrong, default=(0.0, "", ""))
    return f"{true} given as {confused_with}, {count:.1f} maps" if count >= 0.5 else ""
