"""The report of the record that ships, made from its rows alone."""

from io import BytesIO

import pandas as pd
import pytest
from typer.testing import CliRunner

import core.__main__
from core import config
from core.errors import InputError
from core.report import recorded
from core.report.records import records_of
from core.report.rendering import parquet
from core.store import shipped
from tests import record_report


@pytest.fixture
def evidence():
    return record_report.evidence()


def key(value):
    item = value.item.replace("word pieces", "tokens").replace("pieces", "tokens")  # the word of earlier reports
    return (value.exhibit, value.checkpoint, value.task, item, value.condition, value.source, value.position)


@pytest.mark.parametrize("number", [0, 1])
def test_its_numbers_are_those_of_the_report_that_the_record_keeps(number):
    kept = records_of(shipped.run_rows(shipped.runs(recorded.REPORT)["run"].iloc[number])).values
    before = {key(value): value.value for value in kept}
    now = {key(value): value.value for value in record_report.records().values}
    measured = [known for known in before if before[known] is not None]
    assert len(measured) > 100
    assert {known: now[known] for known in measured} == {known: before[known] for known in measured}


def test_the_record_is_of_a_real_encoder_first_and_of_the_bundled_one_second(evidence):
    assert [known.checkpoint for known in evidence] == ["all-MiniLM-L6-v2", "atlas-encoder"]
    assert [known.bundled for known in evidence] == [False, True]
    assert {"mrpc", "rte", "stsb"} <= set(evidence[0].official)


def test_it_needs_no_checkpoint_and_no_rows(evidence, monkeypatch, tmp_path):
    monkeypatch.setattr(config, "DATA", tmp_path)  # no samples, no models
    anew = recorded.recorded_evidence()
    assert [known.checkpoint for known in anew] == [known.checkpoint for known in evidence]
    assert all(len(known.results) for known in anew)
    assert not any(known.causal for known in anew)


def test_the_file_of_claims_has_their_numbers():
    records = record_report.records()
    table = pd.read_parquet(BytesIO(parquet.parquet_files(records)["claims.parquet"]))
    assert list(table["claim"]) == [one.claim for one in records.claims]
    assert {
        "claim", "checkpoint", "task", "outcome", "statistic", "low", "high", "margin", "n", "seeds", "needed",
    } <= set(table)  # fmt: skip
    tested = table[table["outcome"].isin(["holds", "does not hold"]) & table["low"].notna() & table["margin"].notna()]
    assert len(tested) > 60
    for name in ("statistic", "low", "high", "margin"):
        assert table[name].fillna(-9).tolist() == [
            -9 if getattr(one, name) is None else getattr(one, name) for one in records.claims
        ]
    undecided = table[table["outcome"] == "undecided"]
    assert (undecided["needed"].dropna() >= undecided["n"][undecided["needed"].notna()]).all()


def test_its_day_is_that_of_its_newest_numbers(evidence):
    about = recorded.about_record(evidence)
    assert about.title.endswith("from the record")
    results = [result for known in evidence for result in known.results]
    assert about.created.isoformat() == max(result.origin.created for result in results if result.run)


def test_what_the_record_has_no_report_on_is_said():
    with pytest.raises(InputError, match="none on another: choose among them"):
        recorded.recorded_evidence(["another"])


def test_an_empty_record_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(config, "RECORD", tmp_path)
    done = CliRunner().invoke(core.__main__.app, ["reproduce", "--from-record", "--out", str(tmp_path / "out")])
    assert isinstance(done.exception, InputError)
    assert "it has none" in str(done.exception)
    assert not (tmp_path / "out").exists()
