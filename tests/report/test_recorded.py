"""The report of the record that ships, made from its rows alone."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

import core.__main__
from core import config
from core.errors import InputError
from core.report import recorded, report
from core.report.claims.registry import claim
from core.report.discoveries import together
from core.report.records import records_of
from core.report.rendering.markdown import cell
from core.store import shipped


@pytest.fixture(scope="module")
def evidence():
    return recorded.recorded_evidence()


def key(value):
    item = value.item.replace("word pieces", "tokens").replace("pieces", "tokens")  # the word of earlier reports
    return (value.exhibit, value.checkpoint, value.task, item, value.condition, value.source, value.position)


def test_its_numbers_are_those_of_the_report_that_the_record_keeps(evidence):
    (run,) = shipped.runs(recorded.REPORT)["run"]
    before = {key(value): value.value for value in records_of(shipped.run_rows(run)).values}
    now = {key(value): value.value for value in report.records_of(evidence).values}
    measured = [known for known in before if before[known] is not None]
    assert len(measured) > 100
    assert {known: now[known] for known in measured} == {known: before[known] for known in measured}


def test_it_needs_no_checkpoint_and_no_rows(evidence, monkeypatch, tmp_path):
    monkeypatch.setattr(config, "DATA", tmp_path)  # no samples, no models
    anew = recorded.recorded_evidence()
    assert [known.checkpoint for known in anew] == [known.checkpoint for known in evidence]
    assert all(len(known.results) for known in anew)
    assert not anew[0].causal
    assert anew[0].bundled


def test_its_day_is_that_of_its_newest_numbers(evidence):
    about = recorded.about_record(evidence)
    assert about.title.endswith("from the record")
    assert about.created.isoformat() == max(result.origin.created for result in evidence[0].results if result.run)


DOCS = Path(__file__).parents[2] / "docs" / "reproduction.md"


def test_the_docs_have_todays_verdicts_of_the_record(evidence):
    records, lines = report.records_of(evidence), []
    for id, mine in records.by_claim().items():
        known = claim(id)
        lines.append(f"| {id} | {known.sentence} | {cell(mine)} |".replace("[", "\\["))
    assert "\n".join(lines) in DOCS.read_text()
    assert together(records.claims) in DOCS.read_text().replace("\n", " ")


def test_what_the_record_has_no_report_on_is_said():
    with pytest.raises(InputError, match="none on another: choose among them"):
        recorded.recorded_evidence(["another"])


def test_an_empty_record_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(config, "RECORD", tmp_path)
    done = CliRunner().invoke(core.__main__.app, ["reproduce", "--from-record", "--out", str(tmp_path / "out")])
    assert isinstance(done.exception, InputError)
    assert "it has none" in str(done.exception)
    assert not (tmp_path / "out").exists()
