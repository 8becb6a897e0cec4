"""Who labels which map next in a project: bookkeeping without clock or store, rebuilt from what happened.

Each map goes to `k` different people, first come. A *claim* holds a place at a map until it lapses; whoever answers
keeps their live claims alive. A label takes a place while one is free, and is *surplus* otherwise: kept, not counted.
Claims of somebody who has labelled nothing here yet hold no place against others: names are free where nobody signs in.
Nobody is given a map again that they answered, apart from deliberate repeats; *gold* and *exemplars* (maps whose class
is known) go to everybody.
"""

import hashlib
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

# ---------------------------------------------------------------- what a project asks, and what happens in it


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


# ----------------------------------------------------------------


# -------------------- What the books of a project hold of one map and of one person


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


ROUNDS = 2  # of exemplars, before a person is paused
FEWEST_GOLD = 5  # answers on gold before they can pause anybody
RECENT_GOLD = 20  # answers on gold that count
REPEAT_AFTER = 10  # own answers between a map and its repeat
REPEAT_PASS = 2
CLOCKS_APART = 10.0  # seconds that a claim may begin in the future: a clock that was set back a little


class Board:
    """The state of one project. maps: in the order they are handed out; gold, exemplars: map -> known class.

    present: class name -> what it is called now, so that merged classes compare equal; may be replaced.
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
        self._open = list(range(len(self._names)))  # places of maps with fewer than k counted labels, sorted
        self._disputed: set[int] = set()
        self._people: dict[str, Participant] = {}
        self._events: dict[str, tuple[str, str]] = {}  # ordinary answers: event -> (map, person)
        self._by: dict[str, str] = {}  # every answer: event -> person
        self._bulk = False
        self.counted = 0
        self.demoted: list[str] = []  # labels that an undo brought back without a place: to be stored as surplus

    # ------------------------------------------------------------ what happened

    def apply(self, happening: Happening) -> None:
        """Take in one thing that happened, in the order in which they happened."""
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
        """How many maps this person was handed; for books that were rebuilt without the claims that are answered."""
        self._person(person).handed = count

    @contextmanager
    def counting_after(self) -> Iterator[None]:
        """Where much is taken in at once, maps are counted once, at the end; what comes next is asked for after it."""
        self._bulk = True
        yield
        self._bulk = False
        votes = [slot.votes() for slot in self._slots.values()]
        self.counted = sum(map(len, votes))
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
            held.pop(claim.person, None)  # whoever comes back is the last in turn
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
        """Whoever answers is at work: their live claims hold anew; those that lapsed stay lapsed."""
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
        if answer.event in self._events:  # said again, with another word on whether it counts
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
        """The first answer is the one that is judged: what was corrected after feedback shows nothing."""
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
        if places > self.rules.k and remaining:  # an older label stands again, and its place was given away
            slot.answers[name][-1] = (*remaining[-1][:2], False)
            self.demoted.append(remaining[-1][0])
        self._recount(slot, before)

    def _recount(self, slot: Slot, before: int) -> None:
        if self._bulk:
            return
        votes = slot.votes()
        self.counted += len(votes) - before
        full, was_full = len(votes) >= self.rules.k, before >= self.rules.k
        if full and not was_full:
            del self._open[bisect_left(self._open, slot.place)]
        elif was_full and not full:
            insort(self._open, slot.place)
        if not full and len(set(votes.values())) > 1:
            self._disputed.add(slot.place)
        else:
            self._disputed.discard(slot.place)

    # ------------------------------------------------------------ what comes next

    def counts(self, person: str, map_id: str, now: float) -> bool:
        """Whether a label of this person would take a place at this map now; otherwise it is surplus.

        Of those who were handed the map and have labelled here before, the first have the places that are free.
        """
        slot = self._slots[map_id]
        free = self.rules.k - len(slot.votes().keys() - {person})
        firm = self._firm(slot, now)
        before = firm[: firm.index(person)] if person in firm else firm
        return len(before) < free

    def _firm(self, slot: Slot, now: float) -> list[str]:
        """Whose live claims hold a place against others: of people who have labelled here."""
        return [person for person in slot.live(now, self._latest(now)) if self._person(person).has_labelled]

    def _latest(self, now: float) -> float:
        """When a claim ends that begins now, or a little later."""
        return now + self.rules.lapse + CLOCKS_APART

    def _holds(self, until: float, now: float) -> bool:
        return holds(until, now, self._latest(now))

    def given(self, person: str, map_id: str, passing: int) -> Choice | None:
        """What this person was handed this map for, or None when they never were."""
        participant = self._people.get(person)
        if participant is None:
            return None
        slot = self._slots.get(map_id)
        if passing == 1 and slot and (person in slot.held or person in slot.answers):
            return Choice(map_id)
        return next((c for c in participant.special if c.map_id == map_id and c.passing == passing), None)

    def claimed(self, person: str, now: float) -> list[Choice]:
        """What this person was handed and has not answered, their live claims, oldest first."""
        participant = self._people.get(person)
        if participant is None:
            return []
        special = [
            c for c, until in participant.special.items() if self._holds(until, now) and c not in participant.done
        ]
        return special + [Choice(map_id) for map_id, until in participant.open.items() if self._holds(until, now)]

    def undoable(self, person: str, most: int) -> list[tuple[str, Choice, str | None]]:
        """The newest answers of this person that can be taken back, oldest of them first: event, what for, class."""
        participant = self._people.get(person)
        return list(participant.recent)[-most:] if participant else []

    def choose(self, person: str, now: float, count: int) -> list[Choice]:
        """Up to `count` maps to hand to this person now, none of which they hold or have answered."""
        participant, standing = self._people.get(person) or Participant(), self.standing(person)
        if standing.phase == "paused" or count < 1:
            return []
        if standing.phase == "training":
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
        """One map, where all free places are held by people who have labelled nothing here: nobody goes away empty
        because of names that do not work."""
        for position in self._open:
            name = self._names[position]
            slot = self._slots[name]
            if person not in slot.answers and len(slot.votes()) + len(self._firm(slot, now)) < self.rules.k:
                return [Choice(name)]
        return []

    def _ordinary_for(self, person: str, participant: Participant, now: float) -> Iterator[str]:
        """Maps with a free place, in order: those in dispute first where the project says so."""
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
                if few or len(slot.taken(now, self._latest(now))) < self.rules.k:
                    yield name

    def _extra(self, person: str, participant: Participant, number: int, chosen: Sequence[Choice]) -> Choice | None:
        """Gold or a repeat in the place of an ordinary map, by chance that seed, person and number fix."""
        draw = _chance(self.rules.seed, person, number)
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

    # ------------------------------------------------------------ how people and the project stand

    def right(self, known: str, given: str | None) -> bool:
        """Whether a class given is the known one, both as they are called now."""
        return given is not None and self.present.get(given, given) == self.present.get(known, known)

    def _passed(self, person: Participant) -> bool:
        answers = {name: answer for (number, name), answer in person.training.items() if number == person.round}
        right = sum(self.right(expected, answers.get(name)) for name, expected in self.exemplars.items())
        return len(answers) == len(self.exemplars) and right >= self.rules.pass_mark * len(self.exemplars)

    def standing(self, person: str) -> Standing:
        """Whether this person trains, labels or is paused, and why."""
        participant = self._people.get(person) or Participant()
        training, recent = participant.training, participant.gold[-RECENT_GOLD:]
        right = sum(self.right(self.gold[name], answer) for name, answer in recent)
        answers = [(name, answer) for (number, name), answer in training.items() if number == participant.round]
        trained = sum(self.right(self.exemplars[name], answer) for name, answer in answers)
        standing = Standing("training", "", len(recent), right, len(answers), trained, participant.round)
        phase, why, cause = self._phase(person, participant, standing)
        return replace(standing, phase=phase, why=why, cause=cause)

    def _phase(self, name: str, participant: Participant, facts: Standing) -> tuple[Phase, str, Cause]:
        rules, exemplars = self.rules, len(self.exemplars)
        if rules.people and name not in rules.people:
            reason = "This project is for named people, and you are not among them: ask an admin to be added."
            return "paused", reason, "people"
        if participant.verdict is False:
            return "paused", "An admin has paused you in this project: ask them before you go on.", "admin"
        if facts.golds >= FEWEST_GOLD and facts.right < rules.threshold * facts.golds:
            reason = (
                f"You are paused: of the last {facts.golds} maps whose class is known you gave {facts.right} the right "
                f"one, and this project asks for {rules.threshold:.0%}; read the codebook and ask an admin to let you "
                "go on."
            )
            return "paused", reason, "gold"
        if participant.verdict or not exemplars or self._passed(participant):
            return "labelling", "", ""
        if facts.exemplars == exemplars and facts.round >= ROUNDS:
            reason = (
                f"You are paused: {facts.trained} of {exemplars} exemplars were right in round {facts.round}, and this "
                f"project asks for {rules.pass_mark:.0%}; read the codebook and ask an admin to let you go on."
            )
            return "paused", reason, "exemplars"
        return "training", "", ""

    @property
    def people(self) -> list[str]:
        """Everybody who was handed a map here."""
        return sorted(self._people)

    @property
    def open_maps(self) -> list[str]:
        """Maps with fewer than k labels, in the order they are handed out."""
        return [self._names[position] for position in self._open]

    @property
    def needed(self) -> int:
        """Labels until the project is complete: k for each map."""
        return self.rules.k * len(self._names)

    @property
    def complete(self) -> bool:
        """Whether every map has its k labels."""
        return not self._open

    def labels_by_map(self) -> dict[str, dict[str, str]]:
        """Class by person of each map, of the labels that count."""
        return {name: slot.votes() for name, slot in self._slots.items()}

    def histogram(self) -> tuple[int, ...]:
        """How many maps have 0, 1, ... k labels that count."""
        counts = [0] * (self.rules.k + 1)
        for slot in self._slots.values():
            counts[min(self.rules.k, len(slot.votes()))] += 1
        return tuple(counts)

    def repeats(self, person: str) -> tuple[int, int]:
        """How many of the maps that came again this person gave the class they gave first, and how many came again."""
        participant = self._people.get(person) or Participant()
        first = {name: self._slots[name].answers.get(person) for name in participant.again}
        judged = [(stack[-1][1], participant.again[name]) for name, stack in first.items() if stack]
        return sum(before is not None and self.right(before, after) for before, after in judged), len(judged)

    def waiting(self, now: float) -> int:
        """Places that live claims hold."""
        return sum(self._holds(until, now) for person in self._people.values() for until in person.open.values())


def _chance(seed: int, person: str, number: int) -> float:
    """A number from 0 to 1 that depends on nothing else."""
    digest = hashlib.blake2b(f"{seed}:{person}:{number}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64
