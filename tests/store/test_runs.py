"""Runs come back as they were given, with where they came from."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.config import code_version
from core.errors import StoreError
from core.store import migrations, runs
from core.store.rows import from_json, plain, to_json
from core.store.runs import Provenance, atlas_rows

FROM = Provenance(
    checkpoint="atlas-encoder",
    weights_hash="ab12",
    task="sst2",
    split="dev",
    row_ids=(3, 1, 2),
    seed=5,
    dtype="float32",
    operator="disable",
    device="cpu",
)
SCORES = [
    {"statistic": "to_next", "layer": 0, "head": 1, "value": 0.25, "low": 0.2, "high": 0.3, "n": 12},
    {"statistic": "to_next", "layer": 0, "head": 2, "value": float("nan"), "n": 0},
    {
        "statistic": "relation",
        "feature": "nsubj",
        "layer": 1,
        "head": 0,
        "value": 0.5,
        "baseline": 0.1,
        "p": 0.01,
        "q": 0.04,
        "n": 9,
    },
]

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.thorough
@given(st.dictionaries(st.text(), values, max_size=5))
def test_rows_come_back_bit_for_bit(row):
    assert from_json(to_json(row)) == row


def test_numpy_and_undefined_numbers():
    row = {"a": np.float32(0.5), "b": np.int64(3), "c": np.array([[1, 2]]), "d": math.nan, "e": -math.inf, "f": {2, 1}}
    assert plain(row) == {"a": 0.5, "b": 3, "c": [[1, 2]], "d": None, "e": None, "f": [1, 2]}


@pytest.mark.parametrize("kind", [set, frozenset])
def test_a_set_is_stored_in_order(kind):
    assert list({16, 1}) == [16, 1]  # the order in which Python has these numbers
    assert plain(kind([16, 1])) == [1, 16]
    assert plain((16, 1)) == [16, 1]


def test_a_run_keeps_its_provenance_options_and_rows(db):
    run = runs.record_run(db, "heads", {"task": "sst2", "limit": 3}, FROM, title="Heads of SST-2")
    rows = [{"token": "naïve \x00 'quoted'; DROP TABLE run", "value": 0.1 + 0.2}, {"token": "b", "extra": [1]}]
    runs.store_rows(db, run, rows)
    runs.store_rows(db, run, [{"token": "c"}])
    assert runs.run_rows(db, run) == [*rows, {"token": "c"}]
    assert [row["token"] for row in runs.run_rows(db, run)][1:] == ["b", "c"]
    known = runs.one_run(db, run)
    assert known["options"] == {"task": "sst2", "limit": 3}
    assert known["row_ids"] == [3, 1, 2]
    assert known["code_version"] == code_version()
    assert {name: known[name] for name in ("checkpoint", "weights_hash", "seed", "operator", "device")} == {
        "checkpoint": "atlas-encoder",
        "weights_hash": "ab12",
        "seed": 5,
        "operator": "disable",
        "device": "cpu",
    }


def test_runs_are_listed_newest_first_and_found_by_what_they_are_about(db):
    first = runs.record_run(db, "heads", {}, FROM)
    second = runs.record_run(db, "heads", {}, FROM.with_changes({"task": "mrpc", "nonsense": 1}))
    third = runs.record_run(db, "relations", {}, FROM)
    runs.store_rows(db, second, [{"a": 1}, {"a": 2}])
    listed = runs.runs(db)
    assert listed["run"].tolist() == [third, second, first]
    assert listed["rows"].tolist() == [0, 2, 0]
    assert runs.runs(db, "heads")["run"].tolist() == [second, first]
    assert runs.latest_run(db, "heads", task="sst2") == first
    assert runs.latest_run(db, "heads", task="qqp") is None


def test_head_scores_can_be_asked_across_runs(db):
    run = runs.record_run(db, "heads", {}, FROM)
    assert not runs.any_rows(db)
    runs.store_rows(db, run, [*SCORES, {"note": "no score"}])
    assert runs.any_rows(db)
    found = runs.head_scores(db, statistic="to_next", task="sst2")
    assert found[["layer", "head"]].values.tolist() == [[0, 1], [0, 2]]
    assert found["value"].tolist()[0] == 0.25
    assert math.isnan(found["value"].tolist()[1])
    assert found["feature"].isna().all()
    relation = runs.head_scores(db, feature="nsubj")
    assert relation[["run", "checkpoint", "q", "n"]].values.tolist() == [[run, "atlas-encoder", 0.04, 9]]
    assert runs.head_scores(db, task="mrpc").empty
    assert runs.head_scores(db, statistic="' OR 1=1 --").empty


def test_deleting_runs_takes_their_rows_along_and_no_others(db):
    kept, gone = (runs.record_run(db, "heads", {}, FROM) for _ in range(2))
    for run in (kept, gone):
        runs.store_rows(db, run, SCORES)
    runs.delete_runs(db, [gone])
    assert runs.runs(db)["run"].tolist() == [kept]
    assert set(runs.head_scores(db)["run"]) == {kept}
    assert runs.run_rows(db, gone) == []


def test_an_unknown_run_is_one_sentence(db):
    with pytest.raises(StoreError, match=r"got 'nope'\. Choose a run from the list of runs\."):
        runs.one_run(db, "nope")


def test_provenance_fits_in_json():
    assert json.loads(json.dumps(FROM.as_row()))["row_ids"] == [3, 1, 2]


def test_heads_of_an_encoder_decoder_are_told_apart_by_their_part(db):
    run = runs.record_run(db, "translate", {}, runs.Provenance())
    same = {"statistic": "importance", "layer": 0, "head": 1}
    rows = [same | {"value": 0.1, "part": "encoder"}, same | {"value": 0.2, "part": "cross"}]
    runs.store_rows(db, run, [*rows, {"statistic": "importance", "layer": 0, "head": 0, "value": 0.3}])
    found = runs.head_scores(db, run=run).set_index("value")["part"]
    assert (found[0.1], found[0.2]) == ("encoder", "cross")
    assert found.isna()[0.3]


def test_a_part_that_is_no_set_of_heads_keeps_a_score_among_those_of_all_heads(db):
    run = runs.record_run(db, "classify-maps", {}, Provenance(checkpoint="a", task="sst2"))
    row = {"statistic": "class share", "feature": "Diagonal", "part": "head share", "layer": 0, "head": 1, "value": 0.9}
    runs.store_rows(db, run, [row])
    assert atlas_rows(db, checkpoint="a", weights=None)["score"].tolist() == ["pattern-shares/class share/Diagonal"]
    with db.write() as cursor:  # as versions before the step 011 kept it
        cursor.execute("INSERT INTO part_score BY NAME SELECT *, 'head' AS part FROM head_score")
        cursor.execute("DELETE FROM head_score")
        step = next(step for step in migrations.known() if step.name == "head_scores_with_a_part")
        cursor.execute(step.sql)
    assert atlas_rows(db, checkpoint="a", weights=None)["value"].tolist() == [0.9]


@pytest.mark.parametrize(
    ("own", "stored"),
    [
        ({}, None), ({"checkpoint": "one"}, "one"), ({"after": "two"}, "two"), ({"checkpoint": 7}, "7"),
        ({"checkpoint": "one", "after": "two"}, "one"), ({"checkpoint": "", "after": "two"}, "two"),
    ],
)  # fmt: skip
def test_a_score_names_the_checkpoint_of_its_row(db, own, stored):
    run = runs.record_run(db, "change", {}, Provenance(checkpoint="of the run", task="sst2"))
    runs.store_rows(db, run, [{"statistic": "entropy", "layer": 0, "head": 1, "value": 0.5, "feature": 3} | own])
    found = db.rows("SELECT run, checkpoint, task, feature FROM head_score")
    assert found == [(run, stored, None, "3")]


def test_scores_of_other_and_of_unknown_weights_under_a_name_are_counted(db):
    for checkpoint, weights, count in (("c", "w", 1), ("c", "v", 2), ("c", None, 3), ("d", "v", 1)):
        run = runs.record_run(db, "statistics", {}, Provenance(checkpoint, weights), title="T")
        runs.store_rows(db, run, [SCORES[0] | {"layer": layer} for layer in range(count)])
    for checkpoint, weights, others in (("c", "w", 5), ("c", "v", 4), ("c", "u", 6), ("d", "v", 0), ("e", "v", 0)):
        assert runs.other_scores(db, checkpoint=checkpoint, weights=weights) == others, (checkpoint, weights)
    assert runs.other_scores(db, checkpoint="c", weights=None) == 0
