"""The event log: nothing acknowledged is lost, nothing sent twice counts twice."""

import json
import os
import signal
import subprocess
import sys
import threading
import uuid
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.errors import InputError
from core.store import labels as store
from core.store.database import Database
from tests.store.labelling import SET, a_map, event

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def filled(db):
    assert store.store_maps(db, [a_map(f"m{k}", head=k) for k in range(1, 6)]) == 5
    return db


def standing(db, annotator="ada"):
    return store.decided(db, SET, annotator)


def test_a_map_is_kept_once_with_its_weights_bit_for_bit(db):
    one = a_map("m1")
    assert [store.store_maps(db, [one]) for _ in range(2)] == [1, 0]
    (found,) = store.maps_of(db, ["m1", "none"])
    assert found == one


def test_weights_of_another_size_are_refused(db):
    with pytest.raises(InputError, match="72 bytes"):
        store.store_maps(db, [a_map("m1") | {"weights": b"xx"}])


def test_the_newest_label_stands_and_says_what_it_supersedes(filled):
    store.record_events(filled, [event(1), event(2, cls="block")])
    store.record_events(filled, [event(3, cls="diagonal")])
    assert standing(filled) == {"m1": "diagonal"}
    assert [row["supersedes"] for row in store.all_events(filled)] == [None, "tab:1", "tab:2"]


def test_undo_brings_back_what_stood_before_any_number_of_steps(filled):
    store.record_events(
        filled,
        [
            event(1),
            event(2, cls="block"),
            event(3, "m2"),
            event(4, "m2", kind="undo", undoes="tab:3"),
            event(5, kind="undo", undoes="tab:2"),
        ],
    )
    assert standing(filled) == {"m1": "vertical"}
    assert [row["event"] for row in store.undoable(filled, SET, "ada")] == ["tab:1"]
    store.record_events(filled, [event(6, kind="undo", undoes="tab:1"), event(7, cls="diagonal")])
    assert standing(filled) == {"m1": "diagonal"}
    assert store.all_events(filled)[-1]["supersedes"] is None
    again = [event(8, cls="block"), event(9, kind="undo", undoes="tab:8"), event(10, cls="block")]
    store.record_events(filled, again)
    assert store.all_events(filled)[-1]["supersedes"] == "tab:7"


def test_skips_flags_and_notes_are_data_and_no_labels(filled):
    store.record_events(
        filled, [event(1, kind="skip"), event(2, "m2", kind="flag"), event(3, "m2", kind="note", note="<b>odd</b>")]
    )
    assert standing(filled) == {"m1": None}
    assert store.labels(filled, SET).empty
    assert store.flagged(filled, SET)["note"].dropna().tolist() == ["<b>odd</b>"]
    kind = {"checkpoint": "atlas-encoder", "task": "mrpc", "layer": 0, "causal": False, "maps": 5}
    assert store.map_kinds(filled).to_dict("records") == [kind]


def test_sending_the_whole_outbox_again_changes_nothing(filled):
    outbox = [event(k, f"m{k}") for k in range(1, 4)]
    assert store.record_events(filled, outbox[:2]) == store.Saved(2, 2)
    assert store.record_events(filled, outbox) == store.Saved(1, 3)
    assert store.record_events(filled, outbox) == store.Saved(0, 3)
    assert len(store.all_events(filled)) == 3


@pytest.mark.thorough
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["label", "skip", "undo"]), st.integers(1, 3), st.integers(0, 9)), max_size=20),
    st.integers(1, 5),
)
def test_any_history_in_any_pieces_gives_what_a_replay_gives(filled, steps, piece):
    batch = uuid.uuid4().hex
    annotator = batch
    events, stacks = [], {}
    for number, (kind, which, choice) in enumerate(steps, start=1):
        name = f"m{which}"
        one = event(number, name, ["vertical", "block"][choice % 2], batch=batch, annotator=annotator, kind=kind)
        stack = stacks.setdefault(name, [])
        if kind == "undo" and not stack:
            continue  # there is nothing to take back
        if kind == "undo":
            one["undoes"] = stack.pop()["event"]
        else:
            stack.append(one | {"event": f"{batch}:{number}"})
        events.append(one)
    for start in range(0, len(events), piece):
        store.record_events(filled, events[max(0, start - 2) : start + piece])  # some are sent twice
    expected = {name: stack[-1].get("class") for name, stack in stacks.items() if stack}
    assert standing(filled, annotator) == expected


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "guess"}, "label, skip"),
        ({"class": ""}, '"class"'),
        ({"map_id": "m99"}, "m99"),
        ({"annotator": None}, '"annotator"'),
        ({"happened": "noon"}, "2026-01-31"),
        ({"scale": "log"}, "absolute"),
        ({"queue_order": "first"}, "random"),
    ],
)
def test_an_event_that_cannot_be_kept_says_why_and_nothing_is_kept(filled, change, said):
    with pytest.raises(InputError, match=said):
        store.record_events(filled, [event(1), event(2) | change])
    assert store.all_events(filled) == []


def test_text_is_never_sql(filled):
    nasty = "x'); DROP TABLE label_event; --"
    store.change_class(
        filled, SET, store.ClassChange("add", nasty, eye=nasty, colour="#000000", key="6"), annotator=nasty
    )
    store.record_events(filled, [event(1, cls=nasty, annotator=nasty, note=nasty)])
    assert store.decided(filled, SET, nasty) == {"m1": nasty}


@pytest.mark.thorough
def test_two_people_at_once_lose_nothing(filled):
    errors = []

    def work(annotator):
        try:
            for number in range(1, 41):
                store.record_events(filled, [event(number, f"m{number % 5 + 1}", batch=annotator, annotator=annotator)])
        except Exception as error:  # a thread's error must reach the test
            errors.append(error)

    people = [threading.Thread(target=work, args=(name,)) for name in ("ada", "bob", "cyd")]
    [one.start() for one in people]
    [one.join() for one in people]
    assert not errors
    found = store.all_events(filled)
    assert sorted((row["annotator"], row["sequence"]) for row in found) == sorted(
        (name, number) for name in ("ada", "bob", "cyd") for number in range(1, 41)
    )


def test_two_people_keep_their_own_opinion_and_passes_do_not_mix(filled):
    store.record_events(filled, [event(1), event(2, cls="block", **{"pass": 2})])
    store.record_events(filled, [event(1, cls="diagonal", batch="other", annotator="bob")])
    found = store.labels(filled, SET)
    assert sorted(zip(found["annotator"], found["pass"], found["class"], strict=True)) == [
        ("ada", 1, "vertical"),
        ("ada", 2, "block"),
        ("bob", 1, "diagonal"),
    ]
    assert store.labels(filled, SET, annotator="bob")["class"].tolist() == ["diagonal"]


KILLED = """
import sys, os
sys.path.insert(0, ".")
from core.store.database import Database
from core.store import labels as store
from tests.store.labelling import a_map, event
db = Database(sys.argv[1])
store.store_maps(db, [a_map("m1")])
for number in range(1, 10_000):
    saved = store.record_events(db, [event(number, cls="block" if number % 2 else "vertical")])
    print(saved.acknowledged, flush=True)
"""


@pytest.mark.thorough
def test_nothing_acknowledged_is_lost_when_the_server_is_killed(tmp_path):
    path = tmp_path / "atlas.duckdb"
    child = subprocess.Popen([sys.executable, "-c", KILLED, str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    acknowledged = 0
    for line in child.stdout:
        acknowledged = int(line)
        if acknowledged >= 30:
            break
    os.kill(child.pid, signal.SIGKILL)
    acknowledged = max([acknowledged, *(int(line) for line in child.stdout if line.strip().isdigit())])
    child.wait()
    db = Database(path)
    kept = [row["sequence"] for row in store.all_events(db)]
    assert kept[:acknowledged] == list(range(1, acknowledged + 1))
    outbox = [event(k, cls="block" if k % 2 else "vertical") for k in range(1, acknowledged + 5)]
    store.record_events(db, outbox)  # the tab sends its outbox to the restarted server
    assert {row["sequence"] for row in store.all_events(db)} >= set(range(1, acknowledged + 5))
    db.close()


def test_classes_change_by_events_and_labels_keep_their_name(filled):
    names = ["vertical", "block"]
    store.record_events(filled, [event(1, cls="block")])
    store.change_class(filled, SET, store.ClassChange("rename", "block", title="Squares"), annotator="ada", taken=names)
    store.change_class(filled, SET, store.ClassChange("merge", "block", into="vertical"), annotator="ada", taken=names)
    assert [(row["kind"], row["class"], row["into"]) for row in store.class_events(filled)] == [
        ("rename", "block", None),
        ("merge", "block", "vertical"),
    ]
    assert store.labels(filled, SET)["class"].tolist() == ["block"]


def test_a_set_is_described_as_a_whole_and_a_class_has_its_name_for_a_title(filled):
    changes = [store.ClassChange("set", "own", title="Own set", eye="Whatever."), store.ClassChange("rename", "block")]
    store.change_classes(filled, SET, changes, annotator="ada", taken=["block"])
    found = [(row["kind"], row["class"], row["title"], row["eye"]) for row in store.class_events(filled)]
    assert found == [("set", "own", "Own set", "Whatever."), ("rename", "block", "block", None)]


@pytest.mark.parametrize(
    ("kind", "name", "other"),
    [
        ("add", "block", {"eye": "x"}),
        ("add", "new", {}),
        ("rename", "none", {}),
        ("merge", "block", {"into": "none"}),
        ("merge", "block", {"into": "block"}),
    ],
)
def test_class_changes_that_make_no_sense_are_refused(filled, kind, name, other):
    with pytest.raises(InputError):
        store.change_class(
            filled, SET, store.ClassChange(kind, name, **other), annotator="ada", taken=["block", "vertical"]
        )


def test_labels_per_hour(filled):
    store.record_events(filled, [event(k, f"m{k}", seconds=2.0) for k in range(1, 5)])
    (row,) = store.pace(filled, SET).to_dict("records")
    assert (row["n"], row["per_hour"], row["median_seconds"]) == (4, 1800, 2)


def test_a_pause_counts_as_a_minute_and_no_more(filled):
    store.record_events(filled, [event(1, "m1", seconds=20.0), event(2, "m2", seconds=3000.0)])
    (row,) = store.pace(filled, SET).to_dict("records")
    assert row["per_hour"] == pytest.approx(3600 / ((20 + 60) / 2))


def test_an_undo_takes_back_labels_of_its_own_pass_alone(filled):
    store.record_events(filled, [event(1, **{"pass": 1}), event(2, "m2", **{"pass": 2})])
    assert [row["event"] for row in store.undoable(filled, SET, "ada", passing=1)] == ["tab:1"]
    assert [row["event"] for row in store.undoable(filled, SET, "ada", passing=2)] == ["tab:2"]


def test_labels_that_were_not_timed_have_no_pace(filled):
    store.record_events(filled, [event(k, f"m{k}", seconds=None) for k in range(1, 5)])
    assert store.pace(filled, SET)["per_hour"].isna().all()


def test_events_travel_as_json(filled):
    store.record_events(filled, json.loads(json.dumps([event(1, happened="2026-11-20T14:00:00.123Z")])))
    assert store.all_events(filled)[0]["happened"].isoformat() == "2026-11-20T14:00:00.123000"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"class": "wavy"}, "must be one of the classes"),
        ({"class": "Vertical"}, "must be one of the classes"),
        ({"class_set": "mine"}, "class set"),
        ({"kind": "undo", "undoes": "tab:9"}, "must refer to a stored event"),  # in advance
        ({"kind": "undo", "undoes": "tab:2"}, "itself"),
        ({"kind": "undo", "undoes": "other:1"}, "by 'bob'"),
        ({"kind": "undo", "undoes": "tab:1", "map_id": "m2"}, "must have the map, class set and pass"),
        ({"kind": "undo", "undoes": "tab:1", "pass": 2}, "must have the map, class set and pass"),
        ({"probability": 7}, '"probability" of a label must be from 0 to 1; got'),
        ({"probability": -0.1}, '"probability" of a label must be from 0 to 1; got'),
        ({"seconds": -3}, '"seconds" of a label must be from 0 to 31622400; got -3'),
        ({"seconds": 10**400}, "a finite number"),
        ({"annotator": "ada\x07"}, "visible letters"),
        ({"annotator": "a\u200bda"}, "visible letters"),
        ({"annotator": "ade\u0301"}, "NFC"),
        ({"batch": "tab\n2"}, "visible letters"),
        ({"happened": "99999-01-01"}, "2026-01-31"),
        ({"sequence": 1, "class": "block"}, "stored with another content"),
    ],
)
def test_what_contradicts_the_store_is_refused_and_nothing_is_kept(filled, change, said):
    store.record_events(filled, [event(1)])
    store.record_events(filled, [event(1, batch="other", annotator="bob")])
    before = store.all_events(filled)
    with pytest.raises(InputError, match=said):
        store.record_events(filled, [event(3), event(2) | change])
    assert store.all_events(filled) == before


def test_an_undo_in_advance_takes_nothing_back_even_where_it_is_stored_already(filled):
    """As a database of before may hold one."""
    with filled.write() as cursor:
        cursor.execute(
            "INSERT INTO label_event (event, batch, sequence, kind, class_set, map_id, annotator, pass, undoes, "
            "happened, stored) VALUES ('eve:1', 'eve', 1, 'undo', 'bert', 'm1', 'eve', 1, 'tab:1', now(), now()), "
            "('ada:1', 'ada', 1, 'undo', 'bert', 'm1', 'ada', 1, 'tab:1', now(), now())"
        )
    store.record_events(filled, [event(1)])
    assert standing(filled) == {"m1": "vertical"}
    assert len(store.undoable(filled, SET, "ada")) == 1


def test_a_batch_belongs_to_the_browser_that_sent_it_first(filled):
    store.record_events(filled, [event(1)], secret="ada's browser")
    for secret in ("another", ""):
        with pytest.raises(InputError, match="belongs to somebody else"):
            store.record_events(filled, [event(2)], secret=secret)
    assert store.record_events(filled, [event(1), event(2)], secret="ada's browser").new == 1


def test_an_outbox_from_before_owners_were_kept_goes_on_under_its_own_name(filled):
    store.record_events(filled, [event(1)])  # as the terminal does, which owns no batch
    with pytest.raises(InputError, match="belongs to somebody else"):
        store.record_events(filled, [event(2, annotator="eve")], secret="eve")
    assert store.record_events(filled, [event(1), event(2)], secret="ada").acknowledged == 2


@pytest.mark.parametrize("change", [{"head": 5}, {"tokens": ["x"] * 6}, {"weights_hash": "other"}, {"causal": True}])
def test_a_map_that_contradicts_the_stored_one_is_refused(filled, change):
    with pytest.raises(InputError, match="cannot change"):
        store.store_maps(filled, [a_map("m1", head=1) | change])


@pytest.mark.parametrize("name", ["vertical ", "Vertical", "verti\u200bcal", "\uff56ertical"])
def test_a_class_that_only_looks_new_is_refused(filled, name):
    with pytest.raises(InputError):
        store.change_class(
            filled,
            SET,
            store.ClassChange("add", name, eye="x", colour="#000000", key="6"),
            annotator="ada",
            taken=("vertical",),
        )
