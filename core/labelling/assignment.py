"""Assignment of maps to the annotators of a project: a state that is rebuilt from events, without clock or database.

Each map needs labels from `k` different people. A *reservation* (`Claimed`) holds a slot of a map until it expires;
each answer renews the reservations of its author. A label fills a free slot; otherwise it is an *extra annotation*,
stored but not counted. Reservations of people who have not labelled in this project do not block others, because names
can be made up if nobody signs in. Nobody gets a map again after answering it, except for planned repeats. *Gold* maps
and *exemplars* (maps with a known class) are assigned to everybody.
"""

import hashlib
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

# ---------------------------------------------------------------- rules and events of a project


Purpose = Literal["label", "gold", "repeat", "training"]
Phase = Literal["training", "labelling", "paused"]
# Reason for a pause: not a member, paused by an admin, too few correct
Cause = Literal["", "people", "admin", "gold", "exemplars"]
ORDERS = ("random", "uncertain", "disagreement", "clusters")


@dataclass(frozen=True)
class Rules:
    """The rules of a labelling project.

    Attributes:
        k: number of labels for each map, from different people.
        lapse: seconds until a reservation expires.
        ahead: number of maps reserved for a person at once.
        gold_rate, repeat_rate: fractions of the assigned maps that are gold or repeats.
        pass_mark: fraction of exemplars that must be right.
        threshold: a person is paused if a smaller fraction of recent gold answers is right.
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
    """An attention map assigned to an annotator, with the labelling pass and the purpose of the label."""

    map_id: str
    purpose: Purpose = "label"
    passing: int = 1


@dataclass(frozen=True, slots=True)
class Claimed:
    """An event that reserves an attention map for one person. The reservation ends at the Unix time `until`."""

    person: str
    choice: Choice
    until: float


@dataclass(frozen=True, slots=True)
class Answered:
    """An event in which a person labels a map with the class `given`, or skips the map if `given` is None."""

    event: str
    person: str
    choice: Choice
    given: str | None
    counted: bool
    at: float


@dataclass(frozen=True, slots=True)
class Undone:
    """An event that retracts an answer of an annotator, at a Unix time in seconds."""

    event: str
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """An event in which an admin admits a person to the labelling project, or excludes the person."""

    person: str
    admitted: bool


Happening = Claimed | Answered | Undone | Judged


@dataclass(frozen=True)
class AnnotatorStatus:
    """The status of an annotator in a labelling project.

    Attributes:
        golds, right: number of recent gold answers, and of right ones.
        exemplars, trained: number of exemplars answered in this round, and of right ones.
        round: training round, from 1.
    """

    phase: Phase
    why: str = ""
    golds: int = 0
    right: int = 0
    exemplars: int = 0
    trained: int = 0
    round: int = 1
    cause: Cause = ""


# ---------------------------------------------------------------- state of a map and of an annotator


RECENT = 200  # answers of a person that can be undone


@dataclass(slots=True)
class Slot:
    """A map of a labelling project, with its reservations and answers.

    Attributes:
        place: index in the order of assignment.
        held: expiry of the reservation by person.
        answers: (event, class or None for a skip, counted) by person, oldest first.
    """

    place: int
    held: dict[str, float] = field(default_factory=dict)
    answers: dict[str, list[tuple[str, str | None, bool]]] = field(default_factory=dict)

    def votes(self) -> dict[str, str]:
        """Return the class that each person gave to this map. Labels that do not count are left out."""
        last = ((person, stack[-1]) for person, stack in self.answers.items())
        return {person: class_name for person, (_, class_name, counted) in last if counted and class_name is not None}

    def live(self, now: float, latest: float) -> list[str]:
        """Return the people who have reserved this map and have not answered yet. Reservations that have expired or end
        after `latest` are ignored."""
        return [
            person for person, until in self.held.items() if holds(until, now, latest) and person not in self.answers
        ]

    def annotators(self, now: float, latest: float) -> set[str]:
        """Return the people whose label of this map counts or who have a valid reservation of the map."""
        return {*self.votes(), *self.live(now, latest)}


def holds(until: float, now: float, latest: float) -> bool:
    """Return True if a reservation is valid now. A reservation that ends after `latest` was made with a wrong clock and
    is invalid."""
    return now < until <= latest


@dataclass(slots=True)
class Participant:
    """The state of an annotator in a labelling project.

    Attributes:
        open: expiry of unanswered reservations by map.
        special: expiry by assigned gold map, repeat or exemplar.
        recent: answers that have not been undone, except those on exemplars.
        handed: number of maps assigned so far.
    """

    open: dict[str, float] = field(default_factory=dict)
    special: dict[Choice, float] = field(default_factory=dict)
    done: set[Choice] = field(default_factory=set)  # answered gold maps, repeats and exemplars
    labelled: list[str] = field(default_factory=list)
    repeated: set[str] = field(default_factory=set)
    gold: list[tuple[str, str]] = field(default_factory=list)  # (map, class given) since an admin admitted the person
    again: dict[str, str | None] = field(default_factory=dict)  # map -> class given in the repeat
    training: dict[tuple[int, str], str | None] = field(default_factory=dict)  # (round, map) -> class given
    recent: deque[tuple[str, Choice, str | None]] = field(default_factory=lambda: deque(maxlen=RECENT))
    round: int = 1
    handed: int = 0
    has_labelled: bool = False  # in this project, for any purpose, even if retracted
    verdict: bool | None = None  # by an admin: True admitted, False excluded
    last: float = 0.0


ROUNDS = 2  # training rounds before a person is paused
FEWEST_GOLD = 5  # gold answers before a person can be paused
RECENT_GOLD = 20  # newest gold answers that are checked
REPEAT_AFTER = 10  # other answers of the person between a map and its repeat
REPEAT_PASS = 2
CLOCKS_APART = 10.0  # seconds that a reservation may start in the future, because clocks differ a little


class Board:
    """The state of a labelling project, rebuilt from events. It tracks which maps are labelled, reserved or still
    available.

    `maps` are in the order of assignment; `gold` and `exemplars` have the known class of each map. `present` maps
    stored class names to current names, so that merged classes compare equal; it may be replaced.
    """

    def __init__(
        self,
        rules: Rules,
        maps: Sequence[str],
        gold: Mapping[str, str] | None = None,
        exemplars: Mapping[str, str] | None = None,
    ):
        self.rules, self.gold, self.exemplars = rules, dict(gold or {}), dict(exemplars or {})
        self.present: Mapping[str, str] = {}
        self._names = list(maps)
        self._slots = {name: Slot(position) for position, name in enumerate(self._names)}
        self._open = list(range(len(self._names)))  # sorted indices of maps with fewer than k counted labels
        self._disputed: set[int] = set()
        self._people: dict[str, Participant] = {}
        self._events: dict[str, tuple[str, str]] = {}  # labels and skips of ordinary maps: event -> (map, person)
        self._by: dict[str, str] = {}  # author of every answer, by event
        self._bulk = False
        self.counted = 0
        self._sizes = [len(self._names)] + [0] * rules.k  # maps with 0, 1, ..., k counted labels
        self.demoted: list[str] = []  # labels restored by an undo after their slot was filled: to be stored as surplus

    # ------------------------------------------------------------ applying events

    def apply(self, happening: Happening) -> None:
        """Update the state of the project with one event. Events must be applied in order."""
        if isinstance(happening, Claimed):
            self._claimed(happening)
        elif isinstance(happening, Answered):
            self._answered(happening)
        elif isinstance(happening, Undone):
            self._undone(happening.event, happening.at)
        elif isinstance(happening, Judged):
            person = self._person(happening.person)
            person.verdict = happening.admitted
            if happening.admitted:
                person.gold.clear()

    def set_handed(self, person: str, count: int) -> None:
        """Set the number of maps that were assigned to a person. The number that was counted from events may be too
        small."""
        self._person(person).handed = count

    @contextmanager
    def counting_after(self) -> Iterator[None]:
        """Return a context manager that postpones the counting of labels to its end. Inside the context, the state must
        not be queried."""
        self._bulk = True
        yield
        self._bulk = False
        votes = [slot.votes() for slot in self._slots.values()]
        self.counted = sum(map(len, votes))
        self._sizes = [0] * (self.rules.k + 1)
        for slot_votes in votes:
            self._sizes[min(self.rules.k, len(slot_votes))] += 1
        self._open = [position for position, slot_votes in enumerate(votes) if len(slot_votes) < self.rules.k]
        self._disputed = {position for position in self._open if len(set(votes[position].values())) > 1}

    def _person(self, name: str) -> Participant:
        if name not in self._people:
            self._people[name] = Participant()
        return self._people[name]

    def _claimed(self, claim: Claimed) -> None:
        person, choice = self._person(claim.person), claim.choice
        person.handed += 1
        if choice.purpose == "label":
            held = self._slots[choice.map_id].held
            held.pop(claim.person, None)  # a renewed reservation goes to the end of the queue
            held[claim.person] = claim.until
            person.open[choice.map_id] = claim.until
            return
        person.special[choice] = claim.until
        if choice.purpose == "repeat":
            person.repeated.add(choice.map_id)

    def _answered(self, answer: Answered) -> None:
        person = self._person(answer.person)
        person.has_labelled |= answer.given is not None
        self._renew(answer.person, person, answer.at)
        if answer.event not in self._by and answer.choice.purpose != "training":
            person.recent.append((answer.event, answer.choice, answer.given))
        self._by[answer.event] = answer.person
        if answer.choice.purpose == "label":
            self._ordinary(answer, person)
        else:
            self._special(answer, person)

    def _renew(self, name: str, person: Participant, at: float) -> None:
        """Extend a person's valid reservations after an answer; expired ones stay expired."""
        person.last, until = max(person.last, at), at + self.rules.lapse
        for map_id, before in person.open.items():
            if at < before < until:
                person.open[map_id] = self._slots[map_id].held[name] = until
        for choice, before in person.special.items():
            if at < before < until:
                person.special[choice] = until

    def _ordinary(self, answer: Answered, person: Participant) -> None:
        map_id = answer.choice.map_id
        slot = self._slots[map_id]
        before = 0 if self._bulk else len(slot.votes())
        stack = slot.answers.setdefault(answer.person, [])
        if answer.event in self._events:  # the same event again, with a changed `counted`
            stack[:] = [old if old[0] != answer.event else (*old[:2], answer.counted) for old in stack]
            self._recount(slot, before)
            return
        stack.append((answer.event, answer.given, answer.counted))
        self._events[answer.event] = (map_id, answer.person)
        person.open.pop(map_id, None)
        if answer.given is None:
            slot.held.pop(answer.person, None)
        elif map_id not in person.labelled[-REPEAT_AFTER:]:
            person.labelled.append(map_id)
        self._recount(slot, before)

    def _special(self, answer: Answered, person: Participant) -> None:
        """Evaluate the first answer only: corrections after feedback say nothing about the annotator."""
        choice = answer.choice
        if choice in person.done:
            return
        person.done.add(choice)
        person.special.setdefault(choice, 0.0)
        if choice.purpose == "repeat":
            person.repeated.add(choice.map_id)
            person.again[choice.map_id] = answer.given
        if choice.purpose == "gold" and answer.given is not None:
            person.gold.append((choice.map_id, answer.given))
        elif choice.purpose == "training":
            person.training[choice.passing, choice.map_id] = answer.given
            finished = sum(number == person.round for number, _ in person.training) == len(self.exemplars)
            if finished and not self._passed(person) and person.round < ROUNDS:
                person.round += 1

    def _undone(self, event: str, at: float | None) -> None:
        if event in self._by:
            recent = self._person(self._by[event]).recent
            for answer in [candidate for candidate in recent if candidate[0] == event]:
                recent.remove(answer)
        if event not in self._events:
            return
        map_id, name = self._events.pop(event)
        slot = self._slots[map_id]
        before = len(slot.votes())
        remaining = [answer for answer in slot.answers[name] if answer[0] != event]
        if remaining:
            slot.answers[name] = remaining
        else:
            del slot.answers[name]
            if name in slot.held:
                self._person(name).open[map_id] = slot.held[name]
        places = len(slot.votes()) + (0 if at is None else len(self._firm(slot, at)))
        if places > self.rules.k and remaining:  # an older label is restored, but its slot has been filled
            slot.answers[name][-1] = (*remaining[-1][:2], False)
            self.demoted.append(remaining[-1][0])
        self._recount(slot, before)

    def _recount(self, slot: Slot, before: int) -> None:
        if self._bulk:
            return
        votes = slot.votes()
        self.counted += len(votes) - before
        self._sizes[min(self.rules.k, before)] -= 1
        self._sizes[min(self.rules.k, len(votes))] += 1
        full, was_full = len(votes) >= self.rules.k, before >= self.rules.k
        if full and not was_full:
            del self._open[bisect_left(self._open, slot.place)]
        elif was_full and not full:
            insort(self._open, slot.place)
        if not full and len(set(votes.values())) > 1:
            self._disputed.add(slot.place)
        else:
            self._disputed.discard(slot.place)

    # ------------------------------------------------------------ choosing maps

    def counts(self, person: str, map_id: str, now: float) -> bool:
        """Return True if a label by this person would now count as one of the k labels that the map needs. Surplus
        labels are stored as extra annotations.

        Free slots belong to the earliest valid reservations of people who have labelled in this project before.
        """
        slot = self._slots[map_id]
        free = self.rules.k - len(slot.votes().keys() - {person})
        firm = self._firm(slot, now)
        before = firm[: firm.index(person)] if person in firm else firm
        return len(before) < free

    def _firm(self, slot: Slot, now: float) -> list[str]:
        """Return the people with a valid reservation who have labelled in this project."""
        return [person for person in slot.live(now, self._latest(now)) if self._person(person).has_labelled]

    def _latest(self, now: float) -> float:
        """Return the latest valid expiry of a reservation that starts now, with a tolerance for clocks."""
        return now + self.rules.lapse + CLOCKS_APART

    def _holds(self, until: float, now: float) -> bool:
        return holds(until, now, self._latest(now))

    def given(self, person: str, map_id: str, passing: int) -> Choice | None:
        """Return the assignment of a map to a person, with its purpose. Return None if the map was not assigned to this
        person."""
        participant = self._people.get(person)
        if participant is None:
            return None
        slot = self._slots.get(map_id)
        if passing == 1 and slot and (person in slot.held or person in slot.answers):
            return Choice(map_id)
        return next((c for c in participant.special if c.map_id == map_id and c.passing == passing), None)

    def claimed(self, person: str, now: float) -> list[Choice]:
        """Return the maps that a person has reserved but not answered yet. Gold maps, repeats and exemplars come before
        ordinary maps, and older reservations before newer ones."""
        participant = self._people.get(person)
        if participant is None:
            return []
        special = [
            c for c, until in participant.special.items() if self._holds(until, now) and c not in participant.done
        ]
        return special + [Choice(map_id) for map_id, until in participant.open.items() if self._holds(until, now)]

    def undoable(self, person: str, most: int) -> list[tuple[str, Choice, str | None]]:
        """Return the latest answers that a person can still undo, as (event, assignment, class). The most recent answer
        comes last."""
        participant = self._people.get(person)
        return list(participant.recent)[-most:] if participant else []

    def choose(self, person: str, now: float, count: int) -> list[Choice]:
        """Choose up to `count` new maps to assign to a person."""
        participant, status = self._people.get(person) or Participant(), self.status(person)
        if status.phase == "paused" or count < 1:
            return []
        if status.phase == "training":
            round_ = (Choice(name, "training", participant.round) for name in self.exemplars)
            return [
                c for c in round_ if c not in participant.done and not self._holds(participant.special.get(c, 0), now)
            ][:count]
        ordinary = self._ordinary_for(person, participant, now)
        chosen: list[Choice] = []
        upcoming = next(ordinary, None)
        while upcoming is not None and len(chosen) < count:
            extra = self._extra(person, participant, participant.handed + len(chosen), chosen)
            chosen.append(extra or Choice(upcoming))
            if extra is None:
                upcoming = next(ordinary, None)
        if not chosen and not self.claimed(person, now):
            return self._held_by_newcomers(person, now)
        return chosen

    def _held_by_newcomers(self, person: str, now: float) -> list[Choice]:
        """Return a map whose free slots are all reserved by people without labels, so that fake names block nobody."""
        for position in self._open:
            name = self._names[position]
            slot = self._slots[name]
            if person not in slot.answers and len(slot.votes()) + len(self._firm(slot, now)) < self.rules.k:
                return [Choice(name)]
        return []

    def _ordinary_for(self, person: str, participant: Participant, now: float) -> Iterator[str]:
        """Yield the maps with a free slot in order; with differing labels first if the project's order says so."""
        first = sorted(self._disputed) if self.rules.order == "disagreement" else []
        passed_over = set(first)
        ordinary = (position for position in self._open if position not in passed_over) if first else iter(self._open)
        for places in (first, ordinary):
            for position in places:
                name = self._names[position]
                slot = self._slots[name]
                if person in slot.answers or self._holds(participant.open.get(name, 0), now):
                    continue
                few = len(slot.held) + len(slot.answers) < self.rules.k
                if few or len(slot.annotators(now, self._latest(now))) < self.rules.k:
                    yield name

    def _extra(self, person: str, participant: Participant, number: int, chosen: Sequence[Choice]) -> Choice | None:
        """Return a gold map or a repeat in place of an ordinary map, drawn from seed, person and number."""
        # A reproducible uniform number in [0, 1)
        digest = hashlib.blake2b(f"{self.rules.seed}:{person}:{number}".encode(), digest_size=8).digest()
        draw = int.from_bytes(digest, "big") / 2**64
        if draw < self.rules.gold_rate:
            unseen = [Choice(name, "gold") for name in self.gold]
            unseen = [choice for choice in unseen if choice not in participant.special and choice not in chosen]
            return unseen[int(draw / self.rules.gold_rate * len(unseen))] if unseen else None
        draw -= self.rules.gold_rate
        if draw < self.rules.repeat_rate:
            early = [name for name in participant.labelled[:-REPEAT_AFTER] if name not in participant.repeated]
            again = [Choice(name, "repeat", REPEAT_PASS) for name in early]
            again = [choice for choice in again if choice not in chosen]
            return again[int(draw / self.rules.repeat_rate * len(again))] if again else None
        return None

    # ------------------------------------------------------------ status of annotators and of the project

    def right(self, known: str, given: str | None) -> bool:
        """Return True if the assigned class is the known class. Merged classes count as one class."""
        return given is not None and self.present.get(given, given) == self.present.get(known, known)

    def _passed(self, person: Participant) -> bool:
        answers = {name: answer for (number, name), answer in person.training.items() if number == person.round}
        right = sum(self.right(expected, answers.get(name)) for name, expected in self.exemplars.items())
        return len(answers) == len(self.exemplars) and right >= self.rules.pass_mark * len(self.exemplars)

    def status(self, person: str) -> AnnotatorStatus:
        """Return the state of a person in this project (training, labelling or paused), and the reason."""
        participant = self._people.get(person) or Participant()
        training, recent = participant.training, participant.gold[-RECENT_GOLD:]
        right = sum(self.right(self.gold[name], answer) for name, answer in recent)
        answers = [(name, answer) for (number, name), answer in training.items() if number == participant.round]
        trained = sum(self.right(self.exemplars[name], answer) for name, answer in answers)
        status = AnnotatorStatus("training", "", len(recent), right, len(answers), trained, participant.round)
        phase, why, cause = self._phase(person, participant, status)
        return replace(status, phase=phase, why=why, cause=cause)

    def _phase(self, name: str, participant: Participant, facts: AnnotatorStatus) -> tuple[Phase, str, Cause]:
        rules, exemplars = self.rules, len(self.exemplars)
        if rules.people and name not in rules.people:
            reason = "You are not on the list of annotators of this project. Ask an admin to add you."
            return "paused", reason, "people"
        if participant.verdict is False:
            return "paused", "An admin has paused you in this project. Ask an admin before you continue.", "admin"
        if facts.golds >= FEWEST_GOLD and facts.right < rules.threshold * facts.golds:
            reason = (
                f"You are paused: {facts.right} of your last {facts.golds} gold maps were right, and this project "
                f"requires {rules.threshold:.0%}. Read the codebook and ask an admin to admit you again."
            )
            return "paused", reason, "gold"
        if participant.verdict or not exemplars or self._passed(participant):
            return "labelling", "", ""
        if facts.exemplars == exemplars and facts.round >= ROUNDS:
            reason = (
                f"You are paused: {facts.trained} of {exemplars} exemplars were right in round {facts.round}, and "
                f"this project requires {rules.pass_mark:.0%}. Read the codebook and ask an admin to admit you."
            )
            return "paused", reason, "exemplars"
        return "training", "", ""

    @property
    def people(self) -> list[str]:
        """Return the people who were assigned a map of this project, or whom an admin admitted or excluded."""
        return sorted(self._people)

    @property
    def open_maps(self) -> list[str]:
        """Return the maps of the project with fewer than k labels, in the order of assignment."""
        return [self._names[position] for position in self._open]

    @property
    def needed(self) -> int:
        """Return the total number of labels that the project needs, which is k for each map."""
        return self.rules.k * len(self._names)

    @property
    def complete(self) -> bool:
        """Return True if every attention map of the project has the required number k of labels."""
        return not self._open

    def labels_by_map(self) -> dict[str, dict[str, str]]:
        """Return each person's class for each map. Skipped maps and surplus labels are left out."""
        return {name: slot.votes() for name, slot in self._slots.items()}

    def histogram(self) -> tuple[int, ...]:
        """Return how many attention maps of the project have 0, 1, ..., k labels."""
        return tuple(self._sizes)

    def repeats(self, person: str) -> tuple[int, int]:
        """Count the maps that a person answered twice. Return the number with equal classes, and the total number."""
        participant = self._people.get(person) or Participant()
        first = {name: self._slots[name].answers.get(person) for name in participant.again}
        judged = [(stack[-1][1], participant.again[name]) for name, stack in first.items() if stack]
        return sum(before is not None and self.right(before, after) for before, after in judged), len(judged)

    def waiting(self, now: float) -> int:
        """Return the number of valid reservations of ordinary maps that have not been answered yet."""
        return sum(self._holds(until, now) for person in self._people.values() for until in person.open.values())
