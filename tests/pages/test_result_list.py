"""The table of all results: found by a word, cited, compared, deleted and restored; and jobs that lead to theirs."""

import pandas as pd
import pytest

from core.findings.pinning import finding_of_run
from core.store import jobs, runs
from core.store.findings import Number, findings, pin
from core.store.runs import Provenance, record_run, store_rows
from pages.parts.reports.result_list import numbers_beside
from tests.pages.opening import opened


def swept(db, *, change: float, checkpoint: str = "atlas-encoder", task: str = "sst2") -> str:
    """The run of a sweep in which one head's loss changes accuracy by so much."""
    told = {"task": task, "n": 40}
    rows = [
        told | {"kind": "baseline", "name": "untouched", "what": "heads", "operator": "zero", "accuracy": 0.8},
        told | {"kind": "variant", "name": "L1H1", "layer": 0, "head": 0, "heads": "L1H1", "accuracy": 0.8 + change,
                "accuracy_change": change, "accuracy_low": change - 0.1, "accuracy_high": change + 0.1, "flipped": 6,
                "mcnemar": 0.1, "p": 0.01},
    ]  # fmt: skip
    options = {"checkpoint": checkpoint, "task": task}
    run = record_run(db, "disable", options, Provenance(checkpoint, task=task, split="dev"), title="A sweep")
    store_rows(db, run, rows)
    return run


def said(app) -> str:
    return "\n".join(one.value for kind in (app.markdown, app.caption) for one in kind).replace("\\", "")


def table(app):
    return next((one.value for one in app.dataframe if "run" in one.value), pd.DataFrame({"run": []}))


def listed(app) -> set[str]:
    """The runs whose lines are shown."""
    return set(table(app)["run"])


def select(app, *runs):
    """Select the rows of these results."""
    rows = [list(table(app)["run"]).index(run) for run in runs]
    app.session_state["results|1|all studies|"] = {"selection": {"rows": rows, "columns": [], "cells": []}}
    return app.run()


def test_an_empty_list_says_what_will_stand_there(db):
    (said,) = opened("results/all").info
    assert "No result is stored yet" in said.value


@pytest.mark.thorough
def test_a_result_is_found_by_its_checkpoint_task_study_and_date(db):
    mine = swept(db, change=-0.25)
    other = swept(db, change=-0.5, checkpoint="atlas-decoder", task="mrpc")
    app = opened("results/all")
    assert listed(app) == {mine, other}
    assert set(opened("results/all", of_study="disable").dataframe[0].value["model"]) == {
        "atlas-encoder",
        "atlas-decoder",
    }
    day = f"{table(app)['date'][0]:%d %B %Y}"
    for words, found in (("atlas-decoder", {other}), ("SST-2", {mine}), ("disable", {mine, other}),
                         ("disable mrpc", {other}), ("atlas-decoder sst-2", set())):  # fmt: skip
        app = opened("results/all", search=words)
        assert (words, listed(app)) == (words, found)
        assert f"{len(found)} of 2 results" in said(app)
    assert listed(opened("results/all", search=day)) == {mine, other}
    assert listed(opened("results/all", search="1 January 1999")) == set()


def test_the_only_result_that_a_search_finds_needs_no_selection(db):
    swept(db, change=-0.25)
    other = swept(db, change=-0.5, checkpoint="atlas-decoder", task="mrpc")
    app = opened("results/all")
    assert not [button for button in app.button if button.label == "Delete"]
    app = opened("results/all", search="mrpc")
    assert [button.key for button in app.button if button.label == "Delete"] == [f"delete_{other}"]


def test_a_result_opens_in_its_view_with_its_context(db):
    run = swept(db, change=-0.25, task="mrpc")
    (link,) = [one.proto for one in select(opened("results/all"), run).get("page_link") if one.proto.label == "Open"]
    assert link.page == "interventions"
    for part in (f"run={run}", "checkpoint=atlas-encoder", "rows=mrpc"):
        assert part in link.query_string


@pytest.mark.thorough
def test_a_result_is_cited_by_its_command_and_an_entry(db):
    run = swept(db, change=-0.25)
    app = select(opened("results/all"), run)
    command, entry = (one.value for one in app.code)
    assert {button.label for button in app.get("download_button")} >= {"SVG", "CSV"}, "no further menu to open"
    assert command.startswith("python -m core jobs start disable")
    assert entry.startswith("@software{")
    assert run[:12] in entry


def test_two_results_are_compared_second_minus_first(db):
    first, second = swept(db, change=-0.25), swept(db, change=-0.5, checkpoint="atlas-decoder")
    app = opened("results/all")
    assert "two rows to compare them" in said(app)
    select(app, first, second)
    shown = app.dataframe[0].value.set_index("of")
    by_name = [{one.name: one.value for one in finding_of_run(db, run).numbers} for run in (first, second)]
    assert shown.index.tolist()
    for name, row in shown.iterrows():
        assert (row["first"], row["second"]) == (by_name[0][name], by_name[1][name])
        assert row["second minus first"] == pytest.approx(row["second"] - row["first"])
    select(app)
    assert len(app.dataframe) == 1


def test_what_lies_furthest_apart_is_first_and_nothing_shared_leaves_both_as_they_are():
    sides = [
        (Number("L1H1", "accuracy", 0.5), Number("L1H2", "accuracy", 0.5), Number("L9H9", "accuracy", 1.0)),
        (Number("L1H1", "accuracy", 0.6), Number("L1H2", "accuracy", 0.2)),
    ]
    table = numbers_beside(*sides)
    assert table["of"].tolist() == ["L1H2", "L1H1"]
    assert table["second minus first"].tolist() == pytest.approx([-0.3, 0.1])
    apart = numbers_beside(sides[0], (Number("L1H1", "entropy", 1.5),))
    assert apart["result"].tolist() == ["first"] * 3 + ["second"]


def test_a_deleted_result_comes_back_with_its_rows(db):
    run = swept(db, change=-0.25)
    rows = runs.run_rows(db, run)
    app = select(opened("results/all"), run)
    app.button(key=f"delete_{run}").click().run()
    assert listed(app) == set()
    assert "Deleted: A sweep" in said(app)
    app.button(key="undo_removal").click().run()
    assert listed(app) == {run}
    assert runs.run_rows(db, run) == rows
    assert "Deleted" not in said(app)


def test_an_unpinned_finding_comes_back_with_its_note_and_picture(db):
    run = swept(db, change=-0.25)
    pinned = finding_of_run(db, run)
    name = pin(db, pinned)
    (before,) = findings(db)
    app = opened("results/pinned")
    assert [one.proto.label for one in app.get("page_link") if "live view" in one.proto.label]
    app.button(key=f"unpin|{name}").click().run()
    assert findings(db) == []
    app.button(key="undo_removal").click().run()
    assert findings(db) == [before]


def test_a_finished_job_leads_to_its_result_and_a_stopped_one_is_resumed(db):
    run = swept(db, change=-0.25)
    finished, stopped = (jobs.add_job(db, "disable", "A sweep", {"checkpoint": "atlas-encoder"}) for _ in range(2))
    jobs.set_state(db, finished, "done", run=run)
    jobs.set_state(db, stopped, "cancelled")
    app = opened("results/jobs")
    (link,) = [one.proto for one in app.get("page_link") if one.proto.label == "Open the result"]
    assert (link.page, f"run={run}" in link.query_string) == ("interventions", True)
    assert f"resume_line_{stopped}" in {button.key for button in app.button}
    assert f"resume_line_{finished}" not in {button.key for button in app.button}
