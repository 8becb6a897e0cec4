"""Handing out: counts with twenty people at once, labels that come late, and an order that changes on the way."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from core.errors import InputError
from core.labelling import handing
from core.labelling.happenings import Rules
from core.labelling.progress import progress
from core.labelling.projects import Recipe, make_project, order_anew
from core.store import labels, projects
from core.store.database import Database
from core.store.label_checks import now
from core.store.people import Person, RightsError
from core.store.projects import Heading
from tests.labelling.test_projects import START, Hand, fill, label_all

PEOPLE = [f"person{k:02d}" for k in range(20)]


@pytest.fixture
def db(tmp_path):
    database = Database(tmp_path / "atlas.duckdb")
    fill(database, 24)
    yield database
    database.close()


def test_counts_are_exact_with_twenty_people_at_once(db):
    project = make_project(db, Heading("p", "bert"), Recipe(count=24), Rules(k=3, ahead=2))
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
    project = make_project(db, Heading("p", "bert"), Recipe(count=1), Rules(k=1, lapse=60.0))
    late, prompt = Hand(db, project, "ada"), Hand(db, project, "bob")
    (choice,) = late.holds(now=START)
    assert prompt.holds(now=START) == []
    after = START + timedelta(seconds=61)
    (again,) = prompt.holds(now=after)
    prompt.say(again, now=after)
    late.say(choice, "block", now=after)
    found = projects.project_labels(db, project).set_index("annotator")
    assert found["counted"].to_dict() == {"bob": True, "ada": False}
    assert found["class"].to_dict() == {"bob": "vertical", "ada": "block"}
    assert progress(db, project, after).surplus == 1


def test_the_most_uncertain_maps_come_first_anew(db):
    project = make_project(db, Heading("p", "bert", annotator="ada"), Recipe(count=24), Rules(k=1, ahead=1))
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
    handing.forget(db)
    assert handing.board_of(db, project).complete
    with pytest.raises(InputError, match="all have theirs"):
        order_anew(db, project, hints, annotator="ada")


def test_an_order_needs_a_classifier_and_an_admin(db):
    project = make_project(db, Heading("p", "bert"), Recipe(count=4), Rules())
    with pytest.raises(InputError, match="only when a classifier suggests"):
        order_anew(db, project, None)
    with pytest.raises(RightsError):
        order_anew(db.acting_as(Person("bob", "annotator")), project, lambda _: {})


def test_the_end_is_expected_at_the_pace_of_the_last_hour(db):
    project = make_project(db, Heading("p", "bert"), Recipe(count=24), Rules(k=2))
    hand = Hand(db, project, "ada")
    choices = hand.holds(now=START)
    for minute, choice in enumerate(choices):
        hand.say(choice, now=START + timedelta(minutes=minute))
    found = progress(db, project, START + timedelta(minutes=8))
    assert (found.counted, found.needed) == (8, 48)
    assert found.hourly == pytest.approx(60)
    assert found.end == START + timedelta(minutes=48)
    assert progress(db, project, START + timedelta(days=1)).end > START + timedelta(days=1)
