"""Handing out: counts with twenty people at once, labels that come late, and an order that changes on the way."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from core.errors import InputError
from core.labelling import assignment_service
from core.labelling.assignment import Rules
from core.labelling.progress import progress
from core.labelling.projects import ProjectRecipe, make_project, order_anew
from core.store import labels, projects
from core.store.people import Person, RightsError
from core.store.projects import Heading
from core.store.rows import now
from tests.labelling.test_projects import START, Hand, label_all

PEOPLE = [f"person{k:02d}" for k in range(20)]


@pytest.mark.thorough
def test_counts_are_exact_with_twenty_people_at_once(db):
    project = make_project(db, Heading("p", "bert"), ProjectRecipe(count=24), Rules(k=3, ahead=2))
    hands = [Hand(db, project, person) for person in PEOPLE]

    def work(hand):
        while choices := hand.holds():
            for choice in choices:
                hand.say(choice)

    with ThreadPoolExecutor(len(hands)) as everybody:
        list(everybody.map(work, hands))
    label_all(db, project, PEOPLE, now=now() + timedelta(hours=1))  # who found nothing free had gone
    given = projects.label_times(db, project)
    assert not given.duplicated(["map_id", "annotator"]).any()
    assert set(given[given["counted"]].groupby("map_id").size()) == {3}
    assert given["map_id"].nunique() == 24
    assert len(labels.all_events(db)) == len(given)


def test_a_label_whose_place_was_given_away_is_kept_as_surplus(db):
    project = make_project(db, Heading("p", "bert"), ProjectRecipe(count=2), Rules(k=1, lapse=60.0, ahead=1))
    late, prompt = Hand(db, project, "ada"), Hand(db, project, "bob")
    (first,) = late.holds(now=START)
    late.say(first, now=START)
    (choice,) = late.holds(now=START)
    assert prompt.holds(now=START) == []
    after = START + timedelta(seconds=61)
    (again,) = prompt.holds(now=after)
    prompt.say(again, now=after)
    assert progress(db, project, after).surplus == 0
    late.say(choice, "block", now=after)
    found = projects.project_labels(db, project)
    found = found[found["map_id"] == choice.map_id].set_index("annotator")
    assert found["counted"].to_dict() == {"bob": True, "ada": False}
    assert found["class"].to_dict() == {"bob": "vertical", "ada": "block"}
    assert progress(db, project, after).surplus == 1


@pytest.mark.thorough
def test_the_most_uncertain_maps_come_first_anew(db):
    project = make_project(db, Heading("p", "bert", annotator="ada"), ProjectRecipe(count=24), Rules(k=1, ahead=1))
    hand = Hand(db, project, "ada")
    (first,) = hand.holds()
    hand.say(first)
    facts = labels.map_facts(db).set_index("map_id")
    one_head = facts[(facts["checkpoint"] == "one") & (facts["layer"] == 0) & (facts["head"] == 1)].index
    margins = dict.fromkeys(facts.index, 1.0) | {name: 0.01 * k for k, name in enumerate(one_head)}
    hints = lambda names: {name: ("block", 0.5, margins[name]) for name in names}  # noqa: E731
    assert order_anew(db, project, hints, annotator="ada") == 23
    expected = [name for name in one_head if name != first.map_id]
    said = []
    while choices := hand.holds():
        said.append(choices[0].map_id)
        hand.say(choices[0])
    assert [name for name in said if name in expected] == expected
    assert said[0] == expected[0]
    assert len(said) == 23
    assignment_service.forget(db)
    assert assignment_service.board_of(db, project).complete
    with pytest.raises(InputError, match="has all its labels"):
        order_anew(db, project, hints, annotator="ada")


def test_an_order_needs_a_classifier_and_an_admin(db):
    project = make_project(db, Heading("p", "bert"), ProjectRecipe(count=4), Rules())
    with pytest.raises(InputError, match="needs a classifier that suggests classes"):
        order_anew(db, project, None)
    with pytest.raises(RightsError):
        order_anew(db.acting_as(Person("bob", "annotator")), project, lambda _: {})


def test_the_end_is_expected_at_the_pace_of_the_last_hour(db):
    project = make_project(db, Heading("p", "bert"), ProjectRecipe(count=24), Rules(k=2))
    hand = Hand(db, project, "ada")
    choices = hand.holds(now=START)
    for minute, choice in enumerate(choices):
        hand.say(choice, now=START + timedelta(minutes=minute))
    found = progress(db, project, START + timedelta(minutes=8))
    assert (found.counted, found.needed) == (8, 48)
    assert found.hourly == pytest.approx(60)
    assert found.end == START + timedelta(minutes=48)
    assert progress(db, project, START + timedelta(days=1)).end > START + timedelta(days=1)


# ---------------------------------------------------------------- what takes no place


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "counted"), [(None, 1), ("pause", 1), ("close", 0), ("archive", 0)])
def test_labels_of_maps_handed_out_before_a_project_ended_are_kept_as_surplus(db, kind, counted):
    project = make_project(db, Heading("p", "bert"), ProjectRecipe(count=1), Rules(k=1))
    hand = Hand(db, project, "ada")
    (choice,) = hand.holds()
    if kind:
        projects.change_project(db, project, kind, annotator="admin")
    hand.say(choice)
    assert assignment_service.board_of(db, project).counted == counted
    assignment_service.forget(db)
    assert assignment_service.board_of(db, project).counted == counted
    assert len(labels.all_events(db)) == 1


def test_labels_of_somebody_excluded_are_kept_as_surplus(db):
    project = make_project(db, Heading("p", "bert"), ProjectRecipe(count=2), Rules(k=1))
    hand = Hand(db, project, "ada")
    first, second = hand.holds()
    projects.judge_person(db, project, "ada", admitted=False, annotator="admin")
    assert hand.say(first).statuses[project].phase == "paused"
    projects.judge_person(db, project, "ada", admitted=True, annotator="admin")
    hand.say(second)
    assert projects.project_labels(db, project)["counted"].tolist() == [False, True]


@pytest.mark.thorough
def test_labels_of_another_class_set_complete_no_project(db):
    project = make_project(db, Heading("p", "gpt2"), ProjectRecipe(count=6), Rules(k=1))
    hand = Hand(db, project, "ada")
    for choice in hand.holds():
        for kind in ("label", "skip", "note", "flag"):
            with pytest.raises(InputError, match="must use the class set 'gpt2'"):
                hand.say(choice, "vertical", kind=kind)
    assert labels.all_events(db) == []
    assert not assignment_service.board_of(db, project).complete
    choice = hand.holds()[0]
    hand.say(choice, "block", class_set="gpt2")
    assert assignment_service.board_of(db, project).counted == 1


def test_names_that_label_nothing_stop_nobody(db):
    project = make_project(db, Heading("p", "bert"), ProjectRecipe(count=6), Rules(k=1))
    for number in range(5):
        Hand(db, project, f"invented-{number}").holds()
    label_all(db, project, ["ada"])
    assert assignment_service.board_of(db, project).complete


@pytest.mark.parametrize("name", ["", " ", "\0", "a\u202eb", "\ud800", "x" * 201, "\u200b", "e\u0301", "a\nb"])
def test_maps_are_handed_to_names_that_one_can_read(db, name):
    project = make_project(db, Heading("p", "bert"), ProjectRecipe(count=6), Rules(k=1))
    with pytest.raises(InputError):
        assignment_service.next_maps(db, project, name)
    assert projects.handed(db.cursor(), project) == {}


@pytest.mark.parametrize("said", ["9998-12-31T00:00:00Z", "2099-01-01T00:00:00", "1970-01-01T00:00:00Z"])
def test_a_browser_whose_clock_is_wrong_labels_at_the_time_its_labels_arrive(db, said):
    project = make_project(db, Heading("p", "bert"), ProjectRecipe(count=1), Rules(k=1))
    hand = Hand(db, project, "ada")
    hand.say(hand.holds(now=START)[0], now=START, happened=said)
    assert labels.all_events(db)[0]["happened"] == START


def test_a_label_that_waited_in_a_browser_keeps_its_time(db):
    project = make_project(db, Heading("p", "bert"), ProjectRecipe(count=1), Rules(k=1))
    hand = Hand(db, project, "ada")
    hand.say(hand.holds(now=START)[0], now=START, happened="2025-06-01T10:00:00Z")
    assert str(labels.all_events(db)[0]["happened"]) == "2025-06-01 10:00:00"
