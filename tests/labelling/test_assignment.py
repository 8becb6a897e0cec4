"""Who gets which map: the books of a project under any order of what people do, against a model that counts."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from core.labelling.assignment import (
    FEWEST_GOLD,
    REPEAT_AFTER,
    ROUNDS,
    Answered,
    Board,
    Choice,
    Claimed,
    Judged,
    Rules,
    Undone,
)

PEOPLE = ("ada", "bob", "cyd", "dan")
MAPS = tuple(f"m{k}" for k in range(6))
LAPSE = 100.0


class Books(RuleBasedStateMachine):
    """People take maps, answer on time or late, skip and undo; the books are lost and read anew at any moment."""

    def __init__(self):
        super().__init__()
        self.rules = Rules(k=2, lapse=LAPSE, ahead=2)
        self.board, self.log, self.now, self.number = Board(self.rules, MAPS), [], 0.0, 0
        self.stacks = {}  # (person, map) -> standing events, newest last
        self.handed = {}  # (person, map) -> answered when it was handed

    def happen(self, happening):
        self.log.append(happening)
        self.board.apply(happening)
        self.settle()

    def settle(self):
        for event in self.board.demoted:
            old = next(one for one in self.log if isinstance(one, Answered) and one.event == event)
            self.log.append(Answered(event, old.person, old.choice, old.given, False, old.at))
        self.board.demoted.clear()

    @rule(person=st.sampled_from(PEOPLE))
    def take(self, person):
        free = self.rules.ahead - len(self.board.claimed(person, self.now))
        for choice in self.board.choose(person, self.now, free):
            assert not self.stacks.get((person, choice.map_id)), "a map was given twice to one person"
            votes, places = self.votes(choice.map_id), self.places(choice.map_id)
            firm = self.people_who_labelled() & (places - votes)  # claims of newcomers hold no place against others
            assert len(votes) + len(firm) < self.rules.k
            self.handed[person, choice.map_id] = True
            self.happen(Claimed(person, choice, self.now + LAPSE))

    @rule(data=st.data(), given=st.sampled_from(["a", "b", None]))
    def answer(self, data, given):
        if self.handed:
            person, name = data.draw(st.sampled_from(sorted(self.handed)))
            counted = given is not None and self.board.counts(person, name, self.now)
            self.number += 1
            event = f"e{self.number}"
            self.stacks.setdefault((person, name), []).append(event)
            self.happen(Answered(event, person, Choice(name), given, counted, self.now))

    @rule(data=st.data())
    def undo(self, data):
        there = sorted(key for key, stack in self.stacks.items() if stack)
        if there:
            stack = self.stacks[data.draw(st.sampled_from(there))]
            self.happen(Undone(stack.pop(data.draw(st.integers(0, len(stack) - 1))), self.now))

    @rule(seconds=st.sampled_from([1.0, LAPSE / 2, 2 * LAPSE]))
    def time_passes(self, seconds):
        self.now += seconds

    def places(self, name):
        return self.board._slots[name].annotators(self.now, self.board._latest(self.now))

    def votes(self, name):
        return self.board._slots[name].votes().keys()

    def people_who_labelled(self):
        return {one.person for one in self.log if isinstance(one, Answered) and one.given is not None}

    @invariant()
    def no_map_has_more_than_k_places(self):
        """Labels that count, and claims of people who have labelled: of those, as many would count as there is room."""
        for name in MAPS:
            votes = self.votes(name)
            firm = (self.places(name) - votes) & self.people_who_labelled()
            assert len(votes) <= self.rules.k
            assert len(votes) + sum(self.board.counts(person, name, self.now) for person in firm) <= self.rules.k

    @invariant()
    def the_books_are_what_the_record_says(self):
        again = Board(self.rules, MAPS)
        with again.counting_after():
            for happening in self.log:
                again.apply(happening)
        assert again.labels_by_map() == self.board.labels_by_map()
        assert (again.counted, again._open, again._disputed) == (
            self.board.counted,
            self.board._open,
            self.board._disputed,
        )
        assert again.counted == sum(map(len, again.labels_by_map().values()))
        for person in PEOPLE:
            assert set(again.claimed(person, self.now)) == set(self.board.claimed(person, self.now))

    @invariant()
    def what_nobody_took_back_can_be(self):
        for person in PEOPLE:
            mine = [event for (who, _), stack in self.stacks.items() if who == person for event in stack]
            found = [event for event, _, _ in self.board.undoable(person, 99)]
            assert found == sorted(mine, key=lambda event: int(event[1:]))

    def teardown(self):
        """People who never came before finish the project: each map then has exactly k labels."""
        self.now += 10 * LAPSE
        for person in ("eve", "fay"):
            while choices := self.board.choose(person, self.now, 2):
                for choice in choices:
                    self.happen(Claimed(person, choice, self.now + LAPSE))
                    assert self.board.counts(person, choice.map_id, self.now)
                    self.number += 1
                    self.happen(Answered(f"e{self.number}", person, choice, "a", True, self.now))
        assert self.board.complete
        assert {len(votes) for votes in self.board.labels_by_map().values()} == {self.rules.k}


TestBooks = Books.TestCase
TestBooks.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def label(board, person, choice, given, *, now=0.0, counted=True):
    board.apply(Claimed(person, choice, now + 1000))
    board.apply(Answered(f"{person}:{choice}", person, choice, given, counted, now))


def test_a_late_label_takes_a_free_place_and_is_surplus_without_one():
    board = Board(Rules(k=1, lapse=LAPSE), ["m", "before"])
    for person in ("ada", "bob"):
        board.apply(Answered(f"{person}-before", person, Choice("before"), "a", person == "ada", 0.0))
    board.apply(Claimed("ada", Choice("m"), LAPSE))
    assert board.choose("bob", LAPSE - 1, 1) == []
    assert board.choose("bob", LAPSE + 1, 1) == [Choice("m")]
    assert board.counts("ada", "m", LAPSE + 1)
    board.apply(Claimed("bob", Choice("m"), 2 * LAPSE + 1))
    assert not board.counts("ada", "m", LAPSE + 1)
    assert board.counts("bob", "m", LAPSE + 1)


@pytest.mark.parametrize("ahead", [LAPSE / 2, 2 * 86_400.0])
def test_a_reservation_that_begins_in_the_future_has_expired(ahead):
    board = Board(Rules(k=1, lapse=LAPSE, ahead=1), ["m"], exemplars={"e": "a"})
    for choice in (Choice("m"), Choice("e", "training")):
        board.apply(Claimed("ada", choice, ahead + LAPSE))
    assert board.choose("bob", 0.0, 1) == [Choice("e", "training")]
    board.apply(Judged("bob", admitted=True))
    assert board.choose("bob", 0.0, 1) == [Choice("m")]
    assert board.claimed("ada", 0.0) == []
    assert board.choose("ada", 0.0, 1) == [Choice("e", "training")]
    assert board.waiting(0.0) == 0


def test_a_clock_that_was_set_back_a_little_takes_no_place_away():
    board = Board(Rules(k=1, lapse=LAPSE, ahead=1), ["m", "before"])
    board.apply(Answered("before", "ada", Choice("before"), "a", True, 0.0))
    board.apply(Claimed("ada", Choice("m"), LAPSE + 5))
    assert board.claimed("ada", 0.0) == [Choice("m")]
    assert board.choose("bob", 0.0, 1) == []


def test_a_label_that_an_undo_brings_back_is_surplus_where_its_place_was_given_away():
    board = Board(Rules(k=1, lapse=LAPSE), ["m", "before"])
    label(board, "bob", Choice("before"), "block")
    label(board, "ada", Choice("m"), "block")
    board.apply(Answered("skip", "ada", Choice("m"), None, False, 1.0))
    assert board.choose("bob", 2.0, 1) == [Choice("m")]
    board.apply(Claimed("bob", Choice("m"), LAPSE))
    board.apply(Undone("skip", 3.0))
    assert board.demoted == ["ada:Choice(map_id='m', purpose='label', passing=1)"]
    assert board.counts("bob", "m", 4.0)
    assert board.labels_by_map() == {"m": {}, "before": {"bob": "block"}}


def test_whoever_answers_keeps_their_other_claims():
    board = Board(Rules(k=1, lapse=LAPSE), ["m", "n"])
    for name in ("m", "n"):
        board.apply(Claimed("ada", Choice(name), LAPSE))
    board.apply(Answered("e", "ada", Choice("m"), "a", True, LAPSE - 1))
    assert board.claimed("ada", 1.5 * LAPSE) == [Choice("n")]
    assert board.choose("bob", 1.5 * LAPSE, 1) == []


def test_names_that_label_nothing_take_no_place_from_those_who_do():
    board = Board(Rules(k=1, lapse=LAPSE), ["m", "n"])
    for number in range(9):
        for choice in board.choose(f"invented-{number}", 0.0, 8):
            board.apply(Claimed(f"invented-{number}", choice, LAPSE))
    assert board.choose("ada", 1.0, 8) == [Choice("m")]
    board.apply(Claimed("ada", Choice("m"), LAPSE))
    assert board.counts("ada", "m", 1.0)
    board.apply(Answered("e", "ada", Choice("m"), "a", True, 1.0))
    assert board.choose("ada", 2.0, 8) == [Choice("n")]
    board.apply(Claimed("ada", Choice("n"), LAPSE))
    assert board.choose("bob", 3.0, 8) == []  # somebody who works here holds it
    assert not board.counts("invented-0", "n", 3.0)


def test_maps_that_nobody_was_handed_come_before_those_of_newcomers():
    board = Board(Rules(k=1, lapse=LAPSE), ["m", "n"])
    board.apply(Claimed("ada", Choice("m"), LAPSE))
    assert board.choose("bob", 1.0, 8) == [Choice("n")]
    board.apply(Claimed("bob", Choice("n"), LAPSE))
    assert board.choose("bob", 1.0, 8) == []  # who holds a map of their own goes on with it


def test_of_two_newcomers_at_one_place_the_first_in_turn_has_it_once_both_work():
    board = Board(Rules(k=1, lapse=LAPSE), ["m", "x", "y"])
    board.apply(Claimed("ada", Choice("m"), LAPSE))
    board.apply(Claimed("bob", Choice("m"), LAPSE))
    assert board.counts("ada", "m", 1.0)
    assert board.counts("bob", "m", 1.0)
    for person, name in (("ada", "x"), ("bob", "y")):
        board.apply(Answered(f"{person}-first", person, Choice(name), "a", True, 1.0))
    assert board.counts("ada", "m", 2.0)
    assert not board.counts("bob", "m", 2.0)


def test_maps_in_dispute_come_first_where_the_project_says_so():
    for order, first in (("random", "a"), ("disagreement", "c")):
        board = Board(Rules(k=3, order=order), ["a", "b", "c"])
        label(board, "ada", Choice("c"), "block")
        label(board, "bob", Choice("c"), "vertical")
        assert board.choose("cyd", 0.0, 1) == [Choice(first)]


def test_gold_and_repeats_come_at_their_rates_and_repeats_in_pass_2():
    rules = Rules(k=1, gold_rate=0.1, repeat_rate=0.2, ahead=1)
    board = Board(rules, [f"m{k}" for k in range(1000)], {f"g{k}": "block" for k in range(200)})
    seen = []
    for _ in range(1000):
        (choice,) = board.choose("ada", 0.0, 1) or [None]
        seen.append(choice)
        label(board, "ada", choice, "block")
    share = {purpose: sum(one.purpose == purpose for one in seen) / len(seen) for purpose in ("gold", "repeat")}
    assert share["gold"] == pytest.approx(0.1, abs=0.03)
    assert share["repeat"] == pytest.approx(0.2, abs=0.04)
    assert {one.passing for one in seen if one.purpose == "repeat"} == {2}
    ordinary = [one.map_id for one in seen if one.purpose == "label"]
    for place, one in enumerate(seen):
        if one.purpose == "repeat":
            done = [earlier.map_id for earlier in seen[:place] if earlier.purpose == "label"]
            assert one.map_id in done[:-REPEAT_AFTER]
    assert len(set(seen)) == len(seen)
    assert len(set(ordinary)) == len(ordinary)


def test_too_little_gold_right_pauses_with_a_word_until_an_admin_lets_in():
    gold = {f"g{k}": "block" for k in range(2 * FEWEST_GOLD)}
    board = Board(Rules(threshold=0.6), ["m"], gold)
    for k in range(FEWEST_GOLD - 1):
        label(board, "ada", Choice(f"g{k}", "gold"), "vertical")
    assert board.status("ada").phase == "labelling"
    label(board, "ada", Choice(f"g{FEWEST_GOLD}", "gold"), "block")
    found = board.status("ada")
    assert found.phase == "paused"
    assert "1 of your last 5 gold maps were right" in found.why
    assert board.choose("ada", 0.0, 1) == []
    board.apply(Judged("ada", admitted=True))
    assert board.status("ada").phase == "labelling"
    board.apply(Judged("ada", admitted=False))
    assert "An admin has paused you" in board.status("ada").why


def test_exemplars_come_first_and_a_second_round_before_a_pause():
    exemplars = {"x": "block", "y": "vertical"}
    board = Board(Rules(pass_mark=1.0, ahead=8), ["m"], {}, exemplars)
    for round_ in range(1, ROUNDS + 1):
        found = board.choose("ada", 0.0, 8)
        assert found == [Choice(name, "training", round_) for name in exemplars]
        for choice in found:
            label(board, "ada", choice, "block")
    assert "1 of 2 exemplars were right in round 2" in board.status("ada").why
    for choice in board.choose("bob", 0.0, 8):
        label(board, "bob", choice, exemplars[choice.map_id])
    assert board.choose("bob", 0.0, 8) == [Choice("m")]


def test_the_first_answer_on_an_exemplar_is_the_one_that_counts():
    board = Board(Rules(), ["m"], {}, {"x": "block"})
    label(board, "ada", Choice("x", "training"), "vertical")
    board.apply(Answered("later", "ada", Choice("x", "training"), "block", False, 0.0))
    assert board.status("ada").round == 2


def test_a_merged_class_is_the_class_it_became():
    board = Board(Rules(), ["m"], {"g": "block"})
    board.present = {"block": "heterogeneous", "heterogeneous": "heterogeneous"}
    assert board.right("block", "heterogeneous")
    assert not board.right("block", "vertical")


def test_only_named_people_label_where_people_are_named():
    board = Board(Rules(people=("ada",)), ["m"])
    assert board.choose("ada", 0.0, 1)
    assert board.choose("bob", 0.0, 1) == []
    assert "not on the list of annotators" in board.status("bob").why
