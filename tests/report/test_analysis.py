"""Analyse a model: what the plan lists, what it costs, and a job that is stopped and goes on after a restart."""

import json

import pytest
from typer.testing import CliRunner

import core.__main__
from core.errors import InputError
from core.jobs import api
from core.report import analysis
from core.report.analysis import JOB, QUICK_SECONDS, AnalysisPlan, PlannedStudy, plan_analysis
from core.store import runs
from core.store.database import Database
from core.studies.contract import as_json
from core.studies.lookup import find_study

CLASSIFYING = {"importance", "disable", "separators", "knockout", "operators", "prune", "perturb", "patch",
               "sequential-test", "gates", "pairs", "shapley", "circuit"}  # fmt: skip
READING = {"statistics", "features", "relations", "pattern-shares", "budget", "roles", "norms", "redundancy",
           "effective", "frame-heads", "dependencies", "probe", "syntax", "representation", "sinks",
           "writes"}  # fmt: skip


@pytest.fixture
def db(tmp_path):
    with Database(tmp_path / "a.duckdb") as opened:
        yield opened


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("checkpoint", "listed"),
    [
        ("atlas-encoder", READING | {"why"}),  # no output head of a task
        ("atlas-decoder", READING),  # no separators either
        ("atlas-encoder-sst2", READING | {"why"} | CLASSIFYING),
    ],
)
def test_a_plan_lists_only_studies_that_apply(db, checkpoint, listed):
    plan = plan_analysis(db, checkpoint, "sst2")
    assert {planned.study for planned in plan.studies} == listed
    for planned in plan.studies:
        assert find_study(planned.study).read(planned.options)
        assert planned.shows
        assert planned.seconds is None or planned.seconds > 0
        assert planned.memory > 400e6
    assert plan.seconds(plan.quick) <= QUICK_SECONDS
    assert {"statistics", "features"} <= set(plan.quick)


def test_a_classifier_is_analysed_on_its_own_task_alone(db):
    plan = plan_analysis(db, "atlas-encoder-sst2", "mrpc")
    assert not {planned.study for planned in plan.studies} & CLASSIFYING


def test_an_encoder_decoder_is_told_of_its_own_study(db):
    with pytest.raises(InputError, match=r"encoder-decoder\. Run the study of translation instead"):
        plan_analysis(db, "atlas-translator", "sst2")


def made(*seconds, cores=1):
    studies = [PlannedStudy(f"s{k}", {}, "something", took, 10**9) for k, took in enumerate(seconds)]
    return AnalysisPlan("one", "sst2", tuple(studies), cores)


def test_the_quick_plan_takes_in_their_order_what_fits():
    assert made(400, 300, 150, None).quick == ("s0", "s2")
    assert made(400, 300, 150, cores=2).quick == ("s0", "s1", "s2")
    assert made(400, 300, cores=2).seconds(["s0", "s1"]) == 350
    assert made(QUICK_SECONDS + 1).quick == ()


def test_what_is_not_in_the_plan_is_refused():
    with pytest.raises(InputError, match=r"that apply to this checkpoint and task \(s0, s1\); got 'gates'"):
        made(1, 2).of(["gates"])
    with pytest.raises(InputError, match="at least one study"):
        made(1).job([])


@pytest.mark.thorough
def test_a_stopped_analysis_goes_on_after_a_restart_and_leaves_a_result_of_each_study(tmp_path, monkeypatch):
    monkeypatch.setattr(analysis, "ROWS", 40)
    file = tmp_path / "a.duckdb"
    with Database(file) as db:
        plan = plan_analysis(db, "atlas-encoder", "sst2")
        asked = as_json(plan.job(["statistics", "budget"]))
        job = api.start(db, JOB, asked, plan.title(["statistics", "budget"]))
        while not api.status(db, job).done and api.status(db, job).active:
            api.wait(db, job, 0.02)
        api.cancel(db, job)
        stopped = api.wait(db, job, 60)
        api.runner(db).close()
    assert stopped.state == "cancelled"
    with Database(file) as db:
        assert api.unfinished_like(db, JOB, asked) == job
        before = api.status(db, job).done
        api.resume(db, job)
        done = api.wait(db, job, 120)
        assert (done.state, done.done) == ("done", done.units)
        assert before >= 1
        assert {"statistics", "budget"} <= set(runs.runs(db)["study"])
        assert done.title == "Analysis of atlas-encoder on SST-2: 2 studies"
        api.runner(db).close()


@pytest.mark.thorough
def test_the_command_prints_the_plan_and_runs_nothing(tmp_path):
    words = ["analyse", "atlas-encoder", "--task", "sst2", "--plan", "--study", "budget", "--json"]
    done = CliRunner().invoke(core.__main__.app, words, env={"ATLAS_DB": str(tmp_path / "a.duckdb")})
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)["rows"]
    assert [row["study"] for row in rows if row["run"]] == ["budget"]
    assert {row["study"] for row in rows} == READING | {"why"}
    with Database(tmp_path / "a.duckdb") as db:
        assert runs.runs(db).empty
