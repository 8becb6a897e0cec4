"""What the books of a project hold of one map and of one person; `core.labelling.assignment` keeps them."""

from collections import deque
from dataclasses import dataclass, field

from core.labelling.events import Choice

RECENT = 200  # answers of a person that can be taken back


@dataclass(slots=True)
class Slot:
    """One map. held: person -> until; answers: person -> (event, class or None for a skip, counted), oldest first."""

    place: int
    held: dict[str, float] = field(default_factory=dict)
    answers: dict[str, list[tuple[str, str | None, bool]]] = field(default_factory=dict)

    def votes(self) -> dict[str, str]:
        """Class by person, of the labels that count."""
        last = ((person, stack[-1]) for person, stack in self.answers.items())
        return {person: class_name for person, (_, class_name, counted) in last if counted and class_name is not None}

    def live(self, now: float, latest: float) -> list[str]:
        """Whose claims hold without an answer, in the order in which they were handed the map.

        latest: as in `holds`.
        """
        return [
            person for person, until in self.held.items() if holds(until, now, latest) and person not in self.answers
        ]

    def taken(self, now: float, latest: float) -> set[str]:
        """Who has a place, or was handed the map and may take one: labels that count, and live claims."""
        return {*self.votes(), *self.live(now, latest)}


def holds(until: float, now: float, latest: float) -> bool:
    """Whether a claim holds now. latest: when one ends that begins now; a later end is of a claim that begins in the
    future, because a clock was ahead when it was made."""
    return now < until <= latest


@dataclass(slots=True)
class Participant:
    """One person. open: claims without an answer; special: gold, repeats and exemplars they were given, with until;
    recent: answers that nobody took back, but for exemplars'."""

    open: dict[str, float] = field(default_factory=dict)
    special: dict[Choice, float] = field(default_factory=dict)
    done: set[Choice] = field(default_factory=set)  # special ones that were answered
    labelled: list[str] = field(default_factory=list)
    repeated: set[str] = field(default_factory=set)
    gold: list[tuple[str, str]] = field(default_factory=list)  # (map, given) since they were admitted
    again: dict[str, str | None] = field(default_factory=dict)  # map -> class given when it came again
    training: dict[tuple[int, str], str | None] = field(default_factory=dict)  # (round, map) -> given
    recent: deque[tuple[str, Choice, str | None]] = field(default_factory=lambda: deque(maxlen=RECENT))
    round: int = 1
    handed: int = 0
    has_labelled: bool = False  # in this project, whatever for and whether or not it was taken back
    verdict: bool | None = None  # an admin's: True admitted, False excluded
    last: float = 0.0
