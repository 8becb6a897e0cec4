"""Aggregation of labels from several annotators, and advice on whether a learned aggregation is worth it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
import pandas as pd
import scipy  # its parts load when they are used

from ..errors import check_choice
from ..interval import Interval
from ..patterns.snapshot import current_labels, known_class_set, present_names
from ..patterns.truth import Method, Truth, truth, votes
from ..scoring.corrections import CONFIDENCE
from ..store import projects
from ..store.database import Database

# ---------------------------------------------------------------- differences between annotators


SHUFFLES = 200

NOTHING = Interval(None)


def skill_spread(votes: pd.DataFrame) -> Interval:
    """Measure how much annotators differ in their agreement with others. The result is a standard deviation, with
    chance variation removed.

    Agreement is compared between labels of the same class. The value is None if no map has two labels, or if fewer
    than two annotators can be compared.
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
    return _spread(votes["worker"].to_numpy()[compared], (agree - of_class)[:, None])


def class_rate_spread(votes: pd.DataFrame) -> Interval:
    """Measure how much class frequencies differ between annotators. The result is a standard deviation, with chance
    variation removed."""
    indicators = pd.get_dummies(votes["label"]).to_numpy(float)
    return _spread(votes["worker"].to_numpy(), indicators - indicators.mean(0))


def _spread(workers: np.ndarray, residuals: np.ndarray) -> Interval:
    people, names = pd.factorize(workers)
    if len(names) < 2:
        return NOTHING
    chance = np.random.default_rng(0)
    by_chance = float(np.mean([_between(chance.permutation(people), residuals) for _ in range(SHUFFLES)]))
    observed, freedom = _between(people, residuals), len(names) - 1
    # Upper tails: the larger quantile comes first
    tails = scipy.stats.chi2.isf([(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], freedom)
    low, high = (math.sqrt(max(0.0, observed * freedom / float(tail) - by_chance)) for tail in tails)
    return Interval(math.sqrt(max(0.0, observed - by_chance)), low, high)


def _between(people: np.ndarray, residuals: np.ndarray) -> float:
    """Mean over labels of the squared mean of their annotator."""
    counts = np.bincount(people)
    sums = np.stack([np.bincount(people, column) for column in residuals.T])
    return float((sums**2 / np.maximum(counts, 1)).sum() / counts.sum())


METHODS: dict[Method, str] = {"majority": "Most votes", "dawid-skene": "Dawid-Skene", "mace": "MACE"}
SKILLS_DIFFER = (
    0.1  # lower confidence limit of the spread of agreement; reached in simulations with 4 of 20 annotators guessing
)
RATES_DIFFER = 0.2  # of how often classes are given: with nine of twenty who always give one class, above
FEWEST_LABELS = 20  # labels of each annotator
ALIKE = (
    "No aggregation method can detect annotators who make the same mistakes. Add gold maps to the project to detect "
    "these annotators."
)


def checked_method(name: str | None) -> Method | None:
    """Return the name of a label aggregation method. Raises InputError if the name is unknown."""
    if name is not None:
        check_choice("An aggregation method", name, get_args(Method))
    return name  # type: ignore[return-value]


def votes_of(db: Database, class_set: str, project: str | None = None, *, map_id: str | None = None) -> pd.DataFrame:
    """Load the labels of a project or class set with current class names, oldest first.

    With `project`, only its labels, including extra annotations, with repeats as a second pass and with adjudications
    of its maps, but without gold and exemplars; for a closed project, those at the time of closing.
    """
    if project is None:
        return current_labels(db, class_set, map_id=map_id)
    current = current_labels(db, class_set, map_id=map_id, last=projects.frozen_now(db, project))
    votes = projects.project_labels(db, project, purpose=None)
    votes = votes[(votes.kind == "label") & votes.purpose.isin(["label", "repeat"])]
    if map_id is not None:
        votes = votes[votes.map_id == map_id]
    votes = votes.assign(**{"class": votes["class"].map(present_names(db, class_set))}).dropna(subset=["class"])
    settled = current[(current.queue_order == "adjudication") & current.map_id.isin(votes.map_id)]
    return pd.concat([votes, settled], ignore_index=True).sort_values("ordinal", ignore_index=True)


def truth_of(db: Database, class_set: str, method: Method, project: str | None = None) -> Truth:
    """Aggregate the labels of all annotators in a project or class set. Raises InputError if there are no labels."""
    return truth(votes_of(db, class_set, project), known_class_set(db, class_set).names, method)


@dataclass(frozen=True)
class Advice:
    """Advice on whether a learned model, such as Dawid-Skene, aggregates labels better than majority voting.

    Attributes:
        labels: median number of labels of an annotator.
        skill: spread between annotators of how often others agree with them.
        rates: spread between annotators of how often they use each class.
    """

    worth: bool
    people: int
    labels: float
    skill: Interval
    rates: Interval

    @property
    def sentence(self) -> str:
        if self.people < 3:
            return "Use the method “Most votes”: annotators can be compared only if there are at least three of them."
        if self.labels < FEWEST_LABELS:
            return (
                "Use the method “Most votes”. The annotators have too few labels to be compared: their median number "
                f"of labels is {self.labels:g}, but it must be at least {FEWEST_LABELS}."
            )
        if self.skill.value is None:
            return (
                "Use the method “Most votes”: no map has labels from two annotators, so annotators cannot be compared."
            )
        about = (
            f"The rates of agreement with others have a standard deviation of {_with_interval(self.skill)} over the "
            f"{self.people} annotators. The rates of using a class have a standard deviation of "
            f"{_with_interval(self.rates)}. Variation due to chance is excluded from both values."
        )
        if self.worth:
            return (
                f"Annotators differ significantly. {about} In simulations of annotators with such differences, the "
                f"models Dawid-Skene and MACE labelled more maps correctly than the method “Most votes”. {ALIKE}"
            )
        return (
            f"Use the method “Most votes”. {about} In simulations with differences of this size or smaller, "
            "the Dawid-Skene model labelled fewer maps correctly than “Most votes”, or only slightly more. "
            f"{ALIKE}"
        )


def _with_interval(spread: Interval) -> str:
    return f"{spread.value:.2f} (95 % CI {spread.low:.2f} to {spread.high:.2f})"


def advice(labels: pd.DataFrame, names: Sequence[str]) -> Advice:
    """Advise whether a learned model, such as Dawid-Skene, is likely to aggregate these labels better than majority
    voting. The advice depends on how much the annotators differ."""
    vote_table = votes(labels, names)
    counts = vote_table["worker"].value_counts()
    skill, rates = skill_spread(vote_table), class_rate_spread(vote_table)
    enough = len(counts) >= 3 and counts.median() >= FEWEST_LABELS
    differ = (skill.low or 0.0) >= SKILLS_DIFFER or (rates.low or 0.0) >= RATES_DIFFER
    return Advice(bool(enough and differ), len(counts), float(counts.median()), skill, rates)


def people_table(judged: Truth, pace: pd.DataFrame) -> pd.DataFrame:
    """Create a table with one row per annotator, least skilled first. `judged` contains the aggregated labels, and
    `pace` the labelling speeds."""
    first = pace[pace["pass"] == 1].set_index("annotator")
    rows = []
    for person in judged.people:
        person_pace = first.loc[person.name] if person.name in first.index else None
        names = list(judged.probabilities.columns)
        wrong = [(person.expected.loc[a, b], a, b) for a in names for b in names if a != b]
        count, true, confused_with = max(wrong, default=(0.0, "", ""))
        rows.append(
            {
                "person": person.name,
                "maps": person.maps,
                "skill": person.skill,
                "most confused": (f"{true} labelled as {confused_with}, {count:.1f} maps" if count >= 0.5 else ""),
                "median seconds": None if person_pace is None else person_pace.median_seconds,
                "labels per hour": None if person_pace is None else person_pace.per_hour,
            }
        )
    return pd.DataFrame(rows)
