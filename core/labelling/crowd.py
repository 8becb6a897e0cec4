"""Labels of many people as one answer: whose votes count, what each truth makes of them, and which is worth it here."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import pandas as pd

from core.errors import InputError
from core.patterns.snapshot import known_class_set, present_names, standing_labels
from core.patterns.truth import Method, Truth, truth
from core.store import projects
from core.store.database import Database

METHODS: dict[Method, str] = {"majority": "Majority", "dawid-skene": "Dawid-Skene", "mace": "MACE"}
WORTH = 0.775  # median skill by Dawid-Skene: simulated people right .75 of the time came below, those of .85 above
FEWEST_LABELS = 20  # a person


def checked_method(name: str | None) -> Method | None:
    """A method by its name. InputError for another."""
    if name is not None and name not in get_args(Method):
        raise InputError(
            f"A truth from many labels is one of {', '.join(get_args(Method))}; {name[:40]!r} is none: choose one."
        )
    return name  # type: ignore[return-value]


def votes_of(db: Database, class_set: str, project: str | None = None) -> pd.DataFrame:
    """Labels as `core.patterns.truth` and `agreement` read them, classes as they are called now.

    project: the labels given in it, surplus ones too, repeats as a second pass, with the adjudications of its maps;
    gold and exemplars, whose class is known, are left out. None: all that stand in the class set.
    """
    standing = standing_labels(db, class_set)
    if project is None:
        return standing
    votes = projects.project_labels(db, project, purpose=None)
    votes = votes[(votes.kind == "label") & votes.purpose.isin(["label", "repeat"])]
    votes = votes.assign(**{"class": votes["class"].map(present_names(db, class_set))}).dropna(subset=["class"])
    settled = standing[(standing.queue_order == "adjudication") & standing.map_id.isin(votes.map_id)]
    return pd.concat([votes, settled], ignore_index=True).sort_values("ordinal", ignore_index=True)


def truth_of(db: Database, class_set: str, method: Method, project: str | None = None) -> Truth:
    """The truth of the labels of a project or class set. InputError when there are none."""
    return truth(votes_of(db, class_set, project), known_class_set(db, class_set).names, method)


@dataclass(frozen=True)
class Advice:
    """Whether a learned truth is worth it. skill: median by Dawid-Skene, 0 to 1; labels: median a person."""

    worth: bool
    skill: float
    labels: float
    people: int

    @property
    def sentence(self) -> str:
        """What to tell people who choose."""
        about = f"the median skill of {self.people} people is {self.skill:.2f}, from {self.labels:.0f} labels each"
        if self.people < 3:
            return f"Majority does as well: {about}, and people are told apart only when there are three or more."
        if self.worth:
            return (
                f"Dawid-Skene and MACE are worth it here ({about}): in simulations they had more maps right than "
                "majority."
            )
        return (
            f"Majority does as well as Dawid-Skene here ({about}), which in simulations with people like these had no "
            "more maps right on average; MACE had some more where errors went evenly to all classes."
        )


def advice(judged: Truth) -> Advice:
    """What tests/simulations/many_people.py says of labels like these. judged: by Dawid-Skene."""
    skills = pd.Series([person.skill for person in judged.people], dtype=float)
    labels = pd.Series([person.maps for person in judged.people], dtype=float)
    worth = len(skills) >= 3 and skills.median() >= WORTH and labels.median() >= FEWEST_LABELS
    return Advice(bool(worth), float(skills.median()), float(labels.median()), len(skills))


def people_table(judged: Truth, pace: pd.DataFrame) -> pd.DataFrame:
    """A row a person, the least skilled first: maps, skill, likeliest confusion, median seconds, labels an hour.

    pace: of `core.store.labels.pace`.
    """
    first = pace[pace["pass"] == 1].set_index("annotator")
    rows = []
    for person in judged.people:
        own = first.loc[person.name] if person.name in first.index else None
        rows.append(
            {
                "person": person.name,
                "maps": person.maps,
                "skill": person.skill,
                "most confused": _most_confused(person.expected, list(judged.probabilities.columns)),
                "median seconds": None if own is None else own.median_seconds,
                "labels per hour": None if own is None else own.per_hour,
            }
        )
    return pd.DataFrame(rows)


def _most_confused(expected: pd.DataFrame, names: Sequence[str]) -> str:
    wrong = [(expected.loc[a, b], a, b) for a in names for b in names if a != b]
    count, true, given = max(wrong, default=(0.0, "", ""))
    return f"{true} given as {given}, {count:.1f} maps" if count >= 0.5 else ""
