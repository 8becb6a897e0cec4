"""Registered hypotheses in the store: batches, their hypotheses and events, as they were given and in their order."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from core.errors import StoreError
from core.store import hypotheses
from core.store.hypotheses import StoredBatch
from core.store.people import Person, RightsError
from core.store.rows import now

BATCH = StoredBatch(
    checkpoint="c", weights_hash="w", thought={"task": "sst2", "limit": 9}, judged={"task": "mrpc", "limit": 4},
    thought_rows=(("t1", "h1"),), judged_rows=(("j1", "h2", "m1"), ("j2", "h3")), number=2, level=0.05,
    runs=({"run": "r1", "inputs": 3}, {"run": "r2", "inputs": 0}, {"run": "r3", "inputs": 1}), annotator="ada",
)  # fmt: skip
ASKED = [(1, 2, "attends", (("feature", "nsubj"), ("most", "0.1"))), (0, 3, "matters", ())]


def test_a_batch_comes_back_as_it_was_given(db):
    before = now()
    name, ids = hypotheses.add_batch(db, BATCH, ASKED)
    other, more = hypotheses.add_batch(db.acting_as(Person("eve", "annotator")), replace(BATCH, weights_hash="v"), [])
    first, second = hypotheses.batches(db)
    assert replace(first, stored=None) == replace(BATCH, batch=name)
    assert replace(second, stored=None) == replace(BATCH, batch=other, weights_hash="v", annotator="eve")
    assert before <= first.stored <= second.stored <= now()
    assert (first.seen, more, len({name, other, *ids})) == (2, [], 4)
    assert [len(one) for one in (name, other, *ids)] == [12] * 4
    found = hypotheses.hypotheses(db)
    assert [(one.hypothesis, one.batch, one.layer, one.head, one.predicate, one.parameters) for one in found] == [
        (identifier, name, *asked) for identifier, asked in zip(ids, ASKED, strict=True)
    ]
    assert {(one.withdrawn, one.criteria, one.run, one.imported) for one in found} == {(None, (), None, False)}


def test_hypotheses_and_batches_are_counted_by_weights_and_shared_inputs(db):
    for weights, asked in (("w", ASKED), ("w", ASKED[:1]), ("v", ASKED)):
        hypotheses.add_batch(db, replace(BATCH, weights_hash=weights), asked)
    assert [hypotheses.ever_registered(db, weights) for weights in ("w", "v", "u")] == [3, 2, 0]
    for rows, count in (
        ((("x", "h2"),), 2), ((("x", "m1"),), 2), ((("x", "y"), ("z", "h3")), 2), ((("j1", "y"),), 0), ((), 0),
    ):  # fmt: skip
        assert hypotheses.earlier_batches(db, "w", rows) == count, rows
    assert hypotheses.earlier_batches(db, "v", BATCH.judged_rows) == 1


def test_the_last_test_and_the_withdrawal_of_a_hypothesis_are_told(db):
    _, (first, second) = hypotheses.add_batch(db, BATCH, ASKED)
    with db.write() as cursor:
        hypotheses.add_event(cursor, first, "tested", run="r1", criteria=[{"name": "p", "met": False}])
        hypotheses.add_event(cursor, first, "tested", run="r2", criteria=[{"name": "p", "met": True}])
        hypotheses.add_event(cursor, second, "tested", run="r3")
    hypotheses.withdraw(db, second, "n" * 1200, annotator="ada")
    one, other = hypotheses.hypotheses(db)
    assert (one.run, one.criteria, one.withdrawn) == ("r2", ({"name": "p", "met": True},), None)
    assert (other.run, other.criteria) == (None, ())  # a test without criteria tells nothing
    assert timedelta(0) <= now() - other.withdrawn < timedelta(minutes=5)
    events = db.records("SELECT * EXCLUDE (ordinal, stored) FROM hypothesis_event ORDER BY ordinal")
    assert events[-1] == {"hypothesis": second, "kind": "withdrawn", "run": None, "criteria": None,
                          "note": "n" * 1000, "annotator": "ada", "imported": None}  # fmt: skip
    assert [event["note"] for event in events[:3]] == [""] * 3
    with db.write() as cursor:
        cursor.execute("UPDATE hypothesis_event SET imported = ? WHERE run = 'r2'", [datetime(2026, 1, 1)])
    assert [one.imported for one in hypotheses.hypotheses(db)] == [True, False]


@pytest.mark.parametrize(("asked", "says"), [("none", 'got "none"'), ("twice", "can be withdrawn only once")])
def test_what_cannot_be_withdrawn_is_said(db, asked, says):
    _, (first, _) = hypotheses.add_batch(db, BATCH, ASKED)
    hypotheses.withdraw(db.acting_as(Person("eve", "annotator")), first)
    with pytest.raises(StoreError, match=says):
        hypotheses.withdraw(db, first if asked == "twice" else asked)
    assert db.rows("SELECT hypothesis, annotator, note FROM hypothesis_event") == [(first, "eve", "")]


def test_viewers_neither_register_nor_withdraw(db):
    _, (first, _) = hypotheses.add_batch(db, BATCH, ASKED)
    viewer = db.acting_as(Person("eve", "viewer"))
    for step in (lambda: hypotheses.add_batch(viewer, BATCH, ASKED), lambda: hypotheses.withdraw(viewer, first)):
        with pytest.raises(RightsError):
            step()
    assert len(hypotheses.batches(viewer)) == 1
