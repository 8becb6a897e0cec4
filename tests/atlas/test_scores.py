"""The atlas's frame: from the store by its newest runs, with what ships, or measured now; every row says where from."""

import json
import re

import duckdb
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from core import config
from core.__main__ import app
from core.atlas import scores
from core.atlas.scores import score_row
from core.store import runs, shipped_record
from core.store.backup import back_up_now
from core.store.database import Database
from core.store.runs import Provenance
from core.studies.lookup import label_of

NAME = "some-checkpoint"


@pytest.fixture
def db(tmp_path):
    database = Database(tmp_path / "atlas.duckdb")
    yield database
    database.close()


def head(value, layer=0, number=0, **others):
    return {
        "layer": layer,
        "head": number,
        "statistic": "previous",
        "value": value,
        "low": value - 0.1,
        "high": value + 0.1,
        "n": 9,
        **others,
    }


def stored(db, study, rows, **about):
    run = runs.record_run(db, study, {}, Provenance(**({"checkpoint": NAME, "task": "sst2"} | about)))
    runs.store_rows(db, run, rows)
    return run


def test_the_newest_run_wins_and_each_row_says_its_run(db):
    stored(db, "statistics", [head(0.2), head(0.3, number=1)])
    new = stored(db, "statistics", [head(0.5)])
    frame = scores.atlas(db, checkpoint=NAME, task="sst2", measure=False)
    assert tuple(frame.columns) == scores.COLUMNS
    assert frame.dtypes.astype(str).to_dict() == dict(scores.DTYPES)
    assert frame["value"].tolist() == [0.5, 0.3]
    assert frame["score"].tolist() == ["statistics/previous"] * 2
    assert f"run {new[:8]}" in frame["source"][0]
    assert (frame["low"] < frame["value"]).all()
    assert scores.atlas(db, checkpoint="other", measure=False).empty


def test_a_run_of_several_checkpoints_and_tasks_is_told_apart(db):
    rows = [
        head(value, checkpoint=name, task=task)
        for value, name, task in ((0.1, "a", "sst2"), (0.2, "a", "mrpc"), (0.3, "b", "sst2"), (9, "difference", "sst2"))
    ]
    stored(db, "statistics", rows, checkpoint="a, b", task="sst2, mrpc")
    stored(
        db,
        "change",
        [head(0.4, statistic="cosine", before="a", after="b", task="sst2", feature="sst2")],
        checkpoint="a and b",
    )
    assert scores.atlas(db, checkpoint="a", task="mrpc", measure=False)["value"].tolist() == [0.2]
    both = scores.atlas(db, checkpoint="b", measure=False).set_index("score")["value"]
    assert both.to_dict() == {"statistics/previous": 0.3, "change/cosine": 0.4}
    assert set(db.read("SELECT checkpoint FROM atlas")["checkpoint"]) == {"a", "b"}


def test_scores_of_other_weights_under_one_name_never_mix(db, monkeypatch):
    monkeypatch.setattr(scores, "present_weights", {NAME: "new", "other": "o"}.get)
    old, both = ({"checkpoint": NAME} | about for about in ({"weights_hash": "old"}, {"weights_hash": "new, o"}))
    stored(db, "statistics", [head(0.039), head(0.2, statistic="next")], **old)
    stored(db, "features", [head(0.9, statistic="max", q=0.1)])  # does not say of which
    stored(
        db,
        "statistics",
        [head(0.92, checkpoint=NAME), head(0.5, checkpoint="other")],
        **both | {"checkpoint": f"{NAME}, other"},
    )
    assert scores.atlas(db, checkpoint=NAME, measure=False)["value"].tolist() == [0.92]
    assert scores.atlas(db, checkpoint="other", measure=False)["value"].tolist() == [0.5]
    assert scores.left_out(db, NAME).startswith(f"3 stored scores of {NAME} are not shown")
    assert not scores.left_out(db, "other")
    stored(db, "statistics", [head(0.1, statistic="next")], **old)
    assert scores.atlas(db, checkpoint=NAME, measure=False)["value"].tolist() == [0.92]  # the newest run is not asked
    monkeypatch.setattr(scores, "present_weights", lambda name: None)  # not at hand: of the newest run alone
    assert scores.atlas(db, checkpoint=NAME, measure=False)["value"].tolist() == [0.1, 0.039]


def test_a_second_checkpoint_of_a_run_has_weights_of_its_own(db, monkeypatch):
    monkeypatch.setattr(scores, "present_weights", {NAME: "a", "beside": "b"}.get)
    run = runs.record_run(db, "features", {"compare": "beside"}, Provenance(NAME, "a, b", "sst2"))
    runs.store_rows(db, run, [head(0.1, checkpoint=NAME), head(0.2, checkpoint="beside")])
    assert scores.atlas(db, checkpoint=NAME, measure=False)["value"].tolist() == [0.1]
    assert scores.atlas(db, checkpoint="beside", measure=False)["value"].tolist() == [0.2]


def test_the_corrected_p_of_a_sweep_is_its_q(db):
    stored(db, "disable", [head(0.2, statistic="disable heads", p=0.4)])
    stored(db, "features", [head(0.2, statistic="max", p=0.01, q=0.3)])
    frame = scores.atlas(db, checkpoint=NAME, measure=False).set_index("score")
    assert frame["q"].to_dict() == {"disable/disable heads": 0.4, "features/max": 0.3}
    assert score_row("operators", head(0.2, checkpoint=NAME, p=0.4), "now").q == 0.4


def test_scores_without_a_task_come_with_any_and_features_are_named(db):
    stored(db, "frame-heads", [head(0.7, statistic="frames", feature="later_to_earlier")], task=None)
    stored(db, "features", [head(0.6, statistic="max", feature="noun")])
    frame = scores.atlas(db, checkpoint=NAME, task="sst2", measure=False)
    assert sorted(frame["score"]) == ["features/max/noun", "frame-heads/frames/later_to_earlier"]
    assert label_of("features/max/noun") == "to feature (max) · noun"
    assert scores.atlas(db, checkpoint=NAME, task="rte", measure=False)["score"].tolist() == [
        "frame-heads/frames/later_to_earlier"
    ]


def test_the_view_answers_in_sql_from_a_copy_that_is_only_read(db, tmp_path):
    stored(db, "statistics", [head(0.2), head(0.9, number=1)])
    db.close()
    with duckdb.connect(str(tmp_path / "atlas.duckdb"), read_only=True) as copy:
        best = copy.execute(
            "SELECT layer + 1, head + 1, value FROM atlas WHERE score = 'statistics/previous' "
            "ORDER BY value DESC LIMIT 1"
        ).fetchall()
    assert best == [(1, 2, 0.9)]


def test_what_ships_fills_in_what_the_store_lacks(db, tmp_path, monkeypatch):
    weights = shipped_record.hash_of(config.BUNDLED_MODELS / "atlas-encoder" / "model.safetensors")
    row = {
        "checkpoint": "atlas-encoder",
        "weights_file": weights,
        "task": "sst2",
        "layer": 0,
        "head": 0,
        "value": 0.1,
        "low": 0.0,
        "high": 0.2,
        "n": 5,
        "baseline": None,
        "q": None,
    }
    rows = [row | {"score": key, "source": "shipped"} for key in ("statistics/previous", "statistics/next")]
    file = tmp_path / "scores.parquet"
    pd.DataFrame(rows).to_parquet(file)
    monkeypatch.setattr(scores, "FILE", file)
    monkeypatch.setattr(scores, "FOLDER", tmp_path)
    monkeypatch.setattr(config, "RECORD", tmp_path / "no-record")
    stored(db, "statistics", [head(0.5)], checkpoint="atlas-encoder", weights_hash=weights)
    frame = scores.atlas(db, checkpoint="atlas-encoder", task="sst2", measure=False).set_index("score")
    assert frame["value"].to_dict() == {"statistics/previous": 0.5, "statistics/next": 0.1}
    pd.DataFrame([one | {"weights_file": "of other weights"} for one in rows]).to_parquet(file)
    assert scores.bundled_rows("atlas-encoder").empty


QUESTIONS = re.findall(
    r"```sql\n(.+?)```", (config.PROJECT / "docs" / "how-to" / "query-scores.md").read_text(encoding="utf-8"), re.DOTALL
)


def test_what_the_docs_ask_in_sql_is_answered_from_a_copy_that_is_only_read(db, tmp_path):
    about = {"checkpoint": "atlas-encoder", "row_ids": ("a", "b"), "split": "dev", "seed": 3}
    stored(db, "roles", [head(0.9, q=0.01), head(0.2, number=1, q=0.6)], **about)
    stored(db, "statistics", [head(0.3, statistic="separator"), head(0.4, number=1, statistic="separator")], **about)
    stored(db, "disable", [head(-0.1, statistic="disable heads", feature="sst2 accuracy")], **about)
    tuned = about | {"checkpoint": "my-classifier"}
    stored(db, "statistics", [head(0.3, statistic="separator"), head(0.4, number=1, statistic="separator")], **tuned)
    stored(db, "disable", [head(-0.2, statistic="disable heads", feature="sst2 accuracy")], **tuned)
    back_up_now(tmp_path / "atlas.duckdb", tmp_path / "copy.duckdb")
    with duckdb.connect(str(tmp_path / "copy.duckdb"), read_only=True) as copy:
        first, roles, beside, joined = (copy.execute(question).fetchall() for question in QUESTIONS)
        with pytest.raises(duckdb.Error, match="read-only"):
            copy.execute("DELETE FROM head_score")
        columns = {name for (name, *_) in copy.execute("DESCRIBE atlas").fetchall()}
    assert [row[:2] for row in first] == [("L1H1", 0.9), ("L1H2", 0.2)]
    assert roles == [(0, 0, ["previous"])]
    assert beside == [(0, 0, 0.3, -0.2)]
    assert [row[:4] for row in joined] == [
        (score, "dev", 3, 2)
        for score in (*["disable/disable heads/sst2 accuracy"] * 2, "roles/previous", *["statistics/separator"] * 2)
    ]
    told = (config.PROJECT / "docs" / "how-to" / "query-scores.md").read_text(encoding="utf-8")
    assert not [name for name in columns if f"`{name}`" not in told], "a column that the docs do not name"


@pytest.mark.skipif(not (config.RECORD / "run.parquet").is_file(), reason="no record ships")
def test_recorded_scores_are_those_that_the_other_pages_open_with(db, monkeypatch, tmp_path):
    monkeypatch.setattr(scores, "FILE", tmp_path / "none.parquet")
    monkeypatch.setattr(scores, "FOLDER", tmp_path)
    known = runs.known_runs(db, "statistics")
    about = known[known["checkpoint"].str.startswith("atlas-encoder")].iloc[0]
    rows = pd.DataFrame(runs.run_rows(db, about["run"]))
    rows = rows[(rows["statistic"] != "place") & (rows["checkpoint"] == "atlas-encoder")]
    frame = scores.atlas(db, checkpoint="atlas-encoder", measure=False)
    frame = frame[frame["score"].str.startswith("statistics/") & ~frame["score"].str.contains("place")]
    assert set(frame["source"]) == {f"statistics, shipped record, {about['created']:%Y-%m-%d}"}
    keys = ["task", "layer", "head", "score"]
    theirs = rows.assign(score="statistics/" + rows["statistic"])[[*keys, "value", "low", "high"]]
    both = frame.merge(theirs, on=keys, suffixes=("", "_theirs"), how="outer")
    assert len(both) == len(frame) == len(theirs)
    for name in ("value", "low", "high"):
        np.testing.assert_array_equal(both[name], both[f"{name}_theirs"].astype(float))
    monkeypatch.setattr(config, "RECORD", tmp_path / "none")
    assert scores.atlas(db, checkpoint="atlas-encoder", measure=False).empty


def test_a_recorded_score_comes_from_the_first_run_with_the_current_weights(monkeypatch, tmp_path):
    monkeypatch.setattr(config, "RECORD", tmp_path)
    created = [pd.Timestamp(f"2026-01-0{day}") for day in (3, 2, 1)]
    recorded = pd.DataFrame({"run": ["c", "b", "a"], "study": "statistics", "created": created, "checkpoint": "x",
                             "task": "rte", "weights_hash": ["other", "now", "now"]})  # fmt: skip
    monkeypatch.setattr(shipped_record, "runs", lambda: recorded)
    monkeypatch.setattr(
        shipped_record,
        "run_rows",
        lambda run: [{"statistic": "entropy", "layer": 0, "head": 0, "value": float("abc".index(run))}],
    )
    for weights, value in (("now", 1.0), ("other", 2.0), (None, 2.0)):
        monkeypatch.setattr(scores, "present_weights", lambda name, weights=weights: weights)
        assert list(scores.recorded_rows("x")["value"]) == [value]


@pytest.mark.thorough
def test_the_command_measures_where_nothing_is_stored(monkeypatch, tmp_path):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "none.duckdb"))
    monkeypatch.setattr(scores, "FILE", tmp_path / "none.parquet")
    monkeypatch.setattr(scores, "FOLDER", tmp_path)
    monkeypatch.setattr(scores, "STUDIES", ("statistics",))
    monkeypatch.setattr(scores, "LIMIT", 4)
    found = CliRunner().invoke(app, ["atlas", "atlas-decoder", "--task", "rte", "--json"])
    assert found.exit_code == 0, found.output
    rows = json.loads(found.stdout)["rows"]
    assert {"layer", "head", "score", "value", "low", "high", "n", "source"} <= rows[0].keys()
    assert {(row["layer"], row["head"]) for row in rows} == {(a, b) for a in range(6) for b in range(6)}
    assert {row["task"] for row in rows} == {"rte"}
    assert all(row["source"] == "statistics, measured now" for row in rows)
    alone = [row for row in rows if not row["score"].startswith("statistics/place")]  # places are told from more rows
    assert {row["n"] for row in alone} == {4}


@pytest.mark.parametrize("checkpoint", [config.ENCODER, config.DECODER, config.CLASSIFIER])
def test_the_hypotheses_that_ship_say_how_much_is_known_of_each_head(checkpoint, monkeypatch):
    crate = json.loads((config.DATA / "hypotheses" / checkpoint / "hypotheses.json").read_text(encoding="utf-8"))
    met = {
        (one["layer"], one["head"]): sum(row["state"] == "met" for row in one["criteria"])
        for one in crate["batches"][0]["hypotheses"]
    }
    frame = scores.atlas(None, checkpoint=checkpoint, task="sst2", measure=False)
    mine = frame[frame["score"] == "hypothesis/criteria met"]
    assert {(row.layer, row.head): row.value for row in mine.itertuples()} == met
    assert set(mine["source"]) == {"hypothesis, shipped crate"}
    both = frame[(frame["score"] == "hypothesis/held out and causal") & (frame["value"] == 1)]
    hypotheses = [
        {row["criterion"]: row["state"] for row in one["criteria"]} for one in crate["batches"][0]["hypotheses"]
    ]
    assert len(both) == sum(states["held out"] == states["causal"] == "met" for states in hypotheses)
    causal = [states for states in hypotheses if states["causal"] == "met"]
    assert len(causal) == (checkpoint == config.CLASSIFIER)  # which alone can be asked what happens without a head
    assert all(states["held out"] == "not met" for states in causal)  # so `both` is empty
    monkeypatch.setattr(scores, "present_weights", lambda name: "others")
    assert scores.hypothesis_rows(checkpoint).empty
