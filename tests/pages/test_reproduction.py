"""The Reproduction page: empty, starting a report, showing one, and its downloads."""

import json
import re
import zipfile
from io import BytesIO

import pandas as pd
import pytest
from playwright.sync_api import expect
from streamlit.testing.v1 import AppTest

from core.jobs import api, chain
from core.report import report
from core.report.claims.outcomes import HOLDS
from core.report.data import Facts, find_data
from core.report.plan import ReportOptions, plan
from core.report.records import HeadRecord, Records, StepRecord, records_of
from core.report.rendering.html import parquet_files
from core.report.rendering.words import numbers_of
from core.store import jobs, runs
from pages.parts.shell import shell
from pages.parts.widgets.files import zipped
from tests.pages.browsing import PATIENCE, serving, until, visit
from tests.pages.opening import switched
from tests.report.evidence_made import head_rows, layer_rows

OPTIONS = ReportOptions(checkpoints=["atlas-encoder"], tasks=["rte", "qqp"], parts=["change", "frames"])


def stored(db):
    """A report on rows made by hand, stored as the command stores it; returns its run."""
    data, facts = find_data(None), {"atlas-encoder": Facts(causal=False, preset="small")}
    steps = plan(db, OPTIONS, data, facts)
    heads = [row | {"kind": "head", "survives": False, "baseline": 0.1} for row in head_rows([[0.1, 0.3], [0.2, 0.1]])]
    summary = {
        "kind": "summary",
        "layers": 2,
        "heads": 2,
        "above_99": 1,
        "survivors": [],
        "beat_places": [],
        "n": 50,
        "links": 50,
        "links_before": 40,
        "average": "sentences",
        "line_99": 0.29,
    }
    rows = {"frames": [summary, *heads], "change": layer_rows((0.9, 0.9, 0.5, 0.4))}
    ended = []
    for step in steps:
        if step.part not in rows:
            ended.append((None, "left out here"))
            continue
        run = runs.record_run(db, step.study, step.asked, runs.Provenance(checkpoint=step.checkpoint))
        runs.store_rows(db, run, rows[step.part])
        ended.append((run, "") if step.task != "qqp" else (None, "no such <b>rows</b>"))
    return report.finish(db, report.Report(OPTIONS, data, facts, steps), ended)


def opened(**query) -> AppTest:
    page = AppTest.from_file(shell.__file__, default_timeout=120).run()
    return switched(page, "reproduction", **query).run()


@pytest.mark.slow  # 5 CPU seconds of measuring
@pytest.mark.shipped
def test_the_time_of_a_report_is_the_sum_of_what_like_steps_took(db):
    page = opened()
    page.multiselect(key="checkpoints").set_value(["atlas-encoder"])
    page.multiselect(key="tasks").set_value(["sst2"])
    page.multiselect(key="parts").set_value(["features", "heads"]).run()
    next(one for one in page.button if one.label == "Estimate the time").click().run()
    said = next(one.value for one in page.caption if " steps: about " in one.value)
    assert re.fullmatch(
        r"3 steps: about .+ of work for 3 of them\. Steps with stored results are not run again\.", said
    )
    assert not chain.at_work(db)


def test_an_empty_page_says_what_to_do(db):
    assert "press “Make the report”" in opened().info[0].value


@pytest.mark.thorough
def test_a_report_opens_on_a_grid_of_claims_and_tasks_that_is_filtered(db):
    records = records_of(runs.run_rows(db, stored(db)))
    page = opened()
    assert not page.exception
    assert not page.header, "the document is behind it"
    frame = page.dataframe[0].value
    assert set(frame["claim"]) == {claimed.sentence for claimed in records.claims}
    line = frame[frame["claim"].str.contains("last two layers")].iloc[0]
    (of_rte,) = [one for one in records.claims if one.sentence == line["claim"] and one.task == "rte"]
    assert line["RTE"] == of_rte.outcome == HOLDS
    assert records.claims[0].said in [text.replace("\\", "") for text in page.table[0].value["measured"]]
    assert any("A cosine of 1 means" in one.value for one in page.caption) == (
        "cosine" in numbers_of(records.claims[0])
    )
    page.query_params["outcomes"] = HOLDS
    page = switched(page, "reproduction", outcomes=HOLDS).run()
    page.button_group(key="outcomes").set_value([HOLDS]).run()
    holding = {claimed.sentence for claimed in records.claims if claimed.outcome == HOLDS}
    assert set(page.dataframe[0].value["claim"]) == holding != set(frame["claim"])


@pytest.mark.thorough
def test_a_stored_report_is_shown_in_order_with_its_claims(db):
    stored(db)
    page = opened(mode="Document")
    assert not page.exception
    assert not page.error
    assert [one.value for one in page.header] == [
        "Claims and whether they hold for these models",
        "Heads on frame-semantic links",
        "Change in attention after fine-tuning",
    ]
    table = next(one.value for one in page.markdown if one.value.startswith("| claim"))
    line = next(one for one in table.splitlines() if "last two layers" in one)
    assert "(#change)" in line
    assert ":green[holds] RTE" in line
    assert "Known error: Among any 144 different numbers, two exceed the 99th percentile" in table
    values = next(one.value for one in page.dataframe if "verdict" in one.value and (one.value["item"] == "L1H2").any())
    row = values[values["item"] == "L1H2"].iloc[0]
    assert (row["ours"], row["published"], row["verdict"]) == (0.3, 0.201, "cannot be compared")
    assert "the checkpoints differ" in row["why"]
    assert any("no such" in str(one.value) for one in page.dataframe)
    assert any("python -m core reproduce atlas-encoder" in one.value for one in page.code)


def test_a_report_is_begun_with_what_was_chosen(db, monkeypatch):
    asked = []
    monkeypatch.setattr(chain, "begin", lambda db, steps, then: asked.extend(steps))
    page = opened()
    page.multiselect[0].set_value(["atlas-encoder"]).run()
    next(one for one in page.multiselect if one.label == "Parts").set_value(["frames"]).run()
    next(one for one in page.button if one.label == "Make the report").click().run()
    assert not page.error
    assert [one.study for one in asked] == ["frame-heads"]
    assert asked[0].options["checkpoint"] == "atlas-encoder"


def test_a_report_under_way_shows_its_step(db):
    step = chain.JobRequest("tests.jobs.tiny", {"count": 40, "seconds": 0.1}, "Report: squares")
    state = chain.begin(db, [step, step], lambda ended: None)
    until(lambda: state.job is not None)
    page = opened()
    assert not page.exception
    assert any("Step 1 of 2" in str(one.proto.text) for one in page.get("progress"))
    assert all(one.label != "Make the report" for one in page.button)

    api.cancel(db, state.job)
    until(lambda: state.over)
    page.run()
    assert "was cancelled" in page.error[0].value


def test_parquet_files_travel_as_one(db):
    step = StepRecord("heads", "disable", "a", None, "t", None, "", {"a": [1]})
    head = HeadRecord("heads", "a", "rte", "cosine", None, 0, 1, 1.5, None, None, 8)
    with zipfile.ZipFile(BytesIO(zipped(parquet_files(Records([step], (), (), [head]))))) as archive:
        assert pd.read_parquet(BytesIO(archive.read("heads.parquet")))["value"].tolist() == [1.5]
        assert json.loads(pd.read_parquet(BytesIO(archive.read("steps.parquet")))["options"][0]) == {"a": [1]}


@pytest.mark.slow  # 11 CPU seconds, a server of its own; the report's file is in tests/report
@pytest.mark.browser
def test_a_claim_leads_to_its_figure_and_the_report_opens_alone(page, tmp_path):
    from core.store.database import Database

    with Database(tmp_path / "atlas.duckdb") as db:
        stored(db)
        assert not len(jobs.jobs(db))
    with serving(tmp_path) as address:
        visit(page, f"{address}/reproduction?mode=Document")
        page.get_by_role("link", name="Fine-tuning BERT changes attention most in the last two layers").first.click()
        page.wait_for_function("location.hash === '#change'")
        page.get_by_text("Details", exact=True).last.click()
        with page.expect_download(timeout=PATIENCE) as download:
            page.get_by_role("button", name="Report as HTML").click()
        file = tmp_path / "report.html"
        download.value.save_as(file)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())  # the server is gone
    page.locator("#chart-change svg.marks").wait_for(timeout=PATIENCE)
    assert [one for one in asked if not re.match("file:|data:|blob:", one)] == []
    assert page.locator("#claims tbody tr").count() >= 4
    expect(page.locator("b >> text=rows")).to_have_count(0)  # texts from errors are escaped
