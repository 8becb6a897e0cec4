"""What came in from a file is marked as imported, and kept apart from what was measured here."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from core.atlas import scores
from core.attention import Head
from core.jobs import api
from core.models.present import present_weights
from core.store import exchange, hypotheses, runs
from core.store.database import Database
from core.store.jobs import add_job, set_state
from core.store.runs import Provenance
from core.studies.contract import as_json
from core.studies.hypotheses.hypothesis import STUDY, RowChoice
from core.studies.hypotheses.records import CRITERIA, Criterion
from core.studies.hypotheses.registering import Proposal, batch_of, options_of, register

ROW = {
    "kind": "score",
    "statistic": "previous",
    "layer": 0,
    "head": 0,
    "value": 0.99,
    "n": 5,
    "checkpoint": "atlas-encoder",
}


@pytest.fixture
def db(tmp_path):
    with Database(tmp_path / "a.duckdb") as opened:
        yield opened


def run_file(folder, rows, *, study="statistics", options=None, **said):
    told = {"run": "invented", "options": options or {"checkpoint": "atlas-encoder"}, "checkpoint": "atlas-encoder",
            "weights_hash": present_weights("atlas-encoder"), "row_ids": None} | said  # fmt: skip
    return exchange.write_run(folder / "run.jsonl", study, "Invented", told, rows)


def test_a_run_from_elsewhere_says_so_and_never_stands_for_a_measurement(db, tmp_path):
    run = api.take_in(db, run_file(tmp_path, [ROW]))
    known = runs.known_runs(db, "statistics")
    assert dict(zip(known["run"], known["source"], strict=True))[run] == "imported"
    assert runs.is_imported(db, run)
    assert runs.latest_run(db, "statistics") is None
    assert runs.one_run(db, run)["code_version"] == "unknown"
    sources = scores.atlas(db, checkpoint="atlas-encoder", measure=False)
    mine = sources[(sources["score"] == "statistics/previous") & (sources["value"] == 0.99)]
    assert all("imported" in source for source in mine["source"])
    others = sources[(sources["score"] == "statistics/previous") & (sources["value"] != 0.99)]
    assert not any("imported" in source for source in others["source"])


def test_a_measured_score_is_not_replaced_by_a_newer_imported_one(db, tmp_path):
    about = Provenance("atlas-encoder", present_weights("atlas-encoder"))
    own = runs.record_run(db, "statistics", {}, about)
    runs.store_rows(db, own, [ROW | {"value": 0.25, "statistic": "of_this_test"}])
    api.take_in(db, run_file(tmp_path, [ROW | {"statistic": "of_this_test"}]))
    frame = scores.atlas(db, checkpoint="atlas-encoder", measure=False)
    mine = frame[frame["score"] == "statistics/of_this_test"]
    assert list(mine["value"]) == [0.25]


def test_what_a_terminal_beside_the_app_measured_is_sealed_and_a_changed_line_breaks_the_seal(db, tmp_path):
    for change in ("", "0.99", "title"):
        told = {"run": f"r{change}", "options": {}, "checkpoint": "atlas-encoder"}
        file = exchange.write_run(tmp_path / "own.jsonl", "statistics", "T", told, [ROW], database=db.path)
        if change == "title":
            file.write_text(file.read_text("utf-8").replace('"T"', '"U"'), "utf-8")
        elif change:
            file.write_text(file.read_text("utf-8").replace(change, "0.5"), "utf-8")
        assert runs.is_imported(db, exchange.import_run(db, file)) == bool(change)
    assert (db.path.with_name(db.path.name + ".key").stat().st_mode & 0o077) == 0


def test_a_seal_of_another_database_is_none(db, tmp_path):
    told = {"run": "r", "options": {}, "checkpoint": "atlas-encoder"}
    file = exchange.write_run(tmp_path / "x.jsonl", "statistics", "T", told, [ROW], database=tmp_path / "b.duckdb")
    assert runs.is_imported(db, exchange.import_run(db, file))


def registered(db):
    batch, (one,) = register(
        db, "atlas-encoder", [Proposal(Head(2, 2), "offset", {"offset": "first"})],
        thought=RowChoice("sst2", "dev", 20), judged=RowChoice("rte", "dev", 20),
    )  # fmt: skip
    return options_of(*batch_of(db, batch)), one


def all_met(one):
    return [
        Criterion(hypothesis=one, subject="L3H3", sentence="s", criterion=name, state="met").as_row()
        for name in CRITERIA
    ]


def test_an_imported_test_meets_no_criterion_of_what_is_registered_here(db, tmp_path):
    options, one = registered(db)
    api.take_in(db, run_file(tmp_path, all_met(one), study="hypothesis", options=as_json(options)))
    (stored,) = hypotheses.hypotheses(db)
    assert (stored.criteria, stored.run) == ((), None)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "change",
    [{"level": 0.05}, {"registered": 2}, {"batch": "other"}, {"weights": "0" * 64}, {"seen": 1},
     {"judged": RowChoice("rte", "dev", 21)}, {"thought": RowChoice("sst2", "dev", 21)}],
    ids=str,
)  # fmt: skip
def test_a_test_of_something_else_than_was_registered_meets_nothing(db, change):
    options, one = registered(db)
    run = SimpleNamespace(options=replace(options, **change), rows=all_met(one), run="r", partials=lambda: iter(()))
    STUDY.keep(db, run)
    assert hypotheses.hypotheses(db)[0].criteria == ()
    STUDY.keep(db, SimpleNamespace(**{**vars(run), "options": options}))
    assert len(hypotheses.hypotheses(db)[0].criteria) == 7


def test_a_whole_export_comes_in_as_imported(db, tmp_path):
    own = runs.record_run(db, "statistics", {"checkpoint": "atlas-encoder"}, Provenance("atlas-encoder", "abc"))
    runs.store_rows(db, own, [ROW])
    job = add_job(db, "statistics", "T", {"checkpoint": "atlas-encoder"})
    set_state(db, job, "done", run=own)
    exchange.export_all(db, tmp_path / "out")
    with Database(tmp_path / "b.duckdb") as other:
        exchange.import_all(other, tmp_path / "out")
        assert runs.is_imported(other, own)
        assert api.finished_like(other, "statistics", {"checkpoint": "atlas-encoder"}) is None
