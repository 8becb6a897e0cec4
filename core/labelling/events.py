"""What a project asks, and what happens in it: the records that `core.labelling.assignment` keeps books of."""

from dataclasses import dataclass
from typing import Literal

Purpose = Literal["label", "gold", "repeat", "training"]
Phase = Literal["training", "labelling", "paused"]
Cause = Literal["", "people", "admin", "gold", "exemplars"]  # of a pause: not named, an admin, too few right
ORDERS = ("random", "uncertain", "disagreement")


@dataclass(frozen=True)
class Rules:
    """What a project asks.

    Attributes:
        lapse: seconds that a claim holds.
        gold_rate, repeat_rate: shares of what is handed out, 0 to 1.
        pass_mark: share of the exemplars that must be right, 0 to 1.
        threshold: share of recent gold below which a person is paused, 0 to 1.
        people: who may label; empty for everybody.
    """

    k: int = 3
    lapse: float = 900.0
    ahead: int = 8
    order: str = "random"
    seed: int = 0
    gold_rate: float = 0.0
    repeat_rate: float = 0.0
    pass_mark: float = 0.7
    threshold: float = 0.6
    people: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """A map for somebody: why, and the pass its label carries."""

    map_id: str
    purpose: Purpose = "label"
    passing: int = 1


@dataclass(frozen=True, slots=True)
class Claimed:
    """A map was handed to a person. until: seconds since 1970."""

    person: str
    choice: Choice
    until: float


@dataclass(frozen=True, slots=True)
class Answered:
    """A person's label (given: its class) or skip (None). counted: it took a place; at: seconds since 1970."""

    event: str
    person: str
    choice: Choice
    given: str | None
    counted: bool
    at: float


@dataclass(frozen=True, slots=True)
class Undone:
    """An answer was taken back. at: seconds since 1970; None where what became of the place is on record already."""

    event: str
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """An admin lets a person label again, or no longer."""

    person: str
    admitted: bool


Happening = Claimed | Answered | Undone | Judged


@dataclass(frozen=True)
class Standing:
    """How a person stands in a project.

    Attributes:
        exemplars, trained: exemplars, and how many are right in the present round.
        round: of training, from 1.
    """

    phase: Phase
    why: str = ""
    golds: int = 0
    right: int = 0
    exemplars: int = 0
    trained: int = 0
    round: int = 1
    cause: Cause = ""
