"""The report of the record that ships, made from its rows alone."""

from dataclasses import replace
from io import BytesIO

import pandas as pd
import pytest
from typer.testing import CliRunner

import core.__main__
from core import config
from core.errors import InputError
from core.report import recorded_report, report
from core.report.claims import claims
from core.report.plan import CUT_WORDS
from core.report.published_values import exhibits
from core.report.records import StepRecord, records_of
from core.report.rendering import charts, html
from core.store import shipped_record
from core.store.rows import to_json
from tests import record_report


@pytest.fixture
def evidence():
    return record_report.evidence()


def key(value):
    item = value.item.replace("word pieces", "tokens").replace("pieces", "tokens")  # the word of earlier reports
    return (value.exhibit, value.checkpoint, value.task, item, value.condition, value.source, value.position)


@pytest.mark.parametrize("number", [0, 1])
def test_its_numbers_are_those_of_the_report_that_the_record_keeps(number):
    kept = records_of(shipped_record.run_rows(shipped_record.runs(recorded_report.REPORT)["run"].iloc[number])).values
    before = {key(value): value.value for value in kept}
    now = {key(value): value.value for value in record_report.records().values}
    measured = [known for known in before if before[known] is not None]
    assert len(measured) > 100
    assert {known: now[known] for known in measured} == {known: before[known] for known in measured}


def test_the_record_is_of_a_real_encoder_first_and_of_the_bundled_one_second(evidence):
    assert [known.checkpoint for known in evidence] == ["all-MiniLM-L6-v2", "atlas-encoder"]
    assert [known.bundled for known in evidence] == [False, True]
    assert {"mrpc", "rte", "stsb"} <= set(evidence[0].official)


def test_it_needs_no_checkpoint_and_no_rows(evidence):
    """tests/record_report.py makes it where there are no samples and no models."""
    assert all(len(known.results) for known in evidence)
    assert not any(known.causal for known in evidence)


def measured_axes(specification):
    """Every quantitative x and y of a chart and what it is made of."""
    if isinstance(specification, list):
        return [axis for part in specification for axis in measured_axes(part)]
    if not isinstance(specification, dict):
        return []
    own = [specification.get("encoding", {}).get(name, {}) for name in ("x", "y")]
    return [axis for axis in own if axis.get("type") == "quantitative"] + measured_axes(list(specification.values()))


@pytest.mark.thorough
def test_every_measured_axis_of_its_pictures_says_what_it_is():
    assert all(item.quantity for item in exhibits() if item.chart in ("dots", "layers", "lengths"))
    pictures = [charts.chart_of(item, record_report.records().about(item.id)) for item in exhibits()]
    axes = [measured_axes(picture.to_dict()) for picture in pictures if picture is not None]
    assert len([found for found in axes if found]) > 8
    assert all(axis.get("title") for found in axes for axis in found)


def test_the_file_of_claims_has_their_numbers():
    records = record_report.records()
    table = pd.read_parquet(BytesIO(html.parquet_files(records)["claims.parquet"]))
    assert list(table["claim"]) == [one.claim for one in records.claims]
    assert {
        "claim",
        "checkpoint",
        "task",
        "outcome",
        "statistic",
        "low",
        "high",
        "margin",
        "n",
        "seeds",
        "needed",
    } <= set(table)
    tested = table[table["outcome"].isin(["holds", "does not hold"]) & table["low"].notna() & table["margin"].notna()]
    assert len(tested) > 60
    for name in ("statistic", "low", "high", "margin"):
        assert table[name].fillna(-9).tolist() == [
            -9 if getattr(one, name) is None else getattr(one, name) for one in records.claims
        ]
    undecided = table[table["outcome"] == "undecided"]
    assert (undecided["needed"].dropna() >= undecided["n"][undecided["needed"].notna()]).all()


def planted(monkeypatch, *made):
    """A record that has these runs of their studies alone, which commands made: (run, study, checkpoint, options,
    rows)."""
    rows = {run: rows for run, *_, rows in made}
    like = shipped_record.runs("relations").iloc[:1]
    known = {
        name: pd.concat(
            like.assign(run=run, study=study, checkpoint=checkpoint, task="sst2", options=to_json(options))
            for run, study, checkpoint, options, _ in made
            if study == name
        )
        for name in {study for _, study, *_ in made}
    }
    of_study, of_run = shipped_record.runs, shipped_record.run_rows
    monkeypatch.setattr(shipped_record, "runs", lambda name=None: known[name] if name in known else of_study(name))
    beyond = ("redundancy", "word-links")  # a report of the record has the record's own runs of these
    monkeypatch.setattr(
        shipped_record,
        "run_rows",
        lambda run: rows[run] if run in rows else [row for row in of_run(run) if row.get("part") not in beyond],
    )


def claimed(claim, evidence):
    """What the report says of one claim."""
    (asked,) = [one for one in claims() if one.id == claim]
    return [one for known in evidence for one in report.outcomes(asked, known)]


LINKS = {"kind": "link contrast", "task": "sst2", "first": "noun-adjective", "other": "noun-preposition", "value": 0.1,
         "low": 0.05, "high": 0.15, "first_moves": 0.3, "other_moves": 0.2, "links": 80, "n": 40}  # fmt: skip
REPEATS = [{"kind": kind, "checkpoint": "all-MiniLM-L6-v2", "task": "mrpc", "n": 100, "share": share, "low": low,
            "high": high} | draw for kind, share, low, high, draw in (
                ("repeats", 0.9, 0.8, 1.0, {}), ("repeats at random", 0.2, 0.1, 0.3, {"draw": 1}))]  # fmt: skip


def cutting(edges, checkpoint=config.CLASSIFIER):
    return {"checkpoint": checkpoint, "task": "sst2", "edges": edges}


@pytest.mark.thorough
def test_a_run_that_a_command_left_in_the_record_is_read_for_its_claim_and_no_other(monkeypatch):
    planted(
        monkeypatch,
        ("words", "knockout", config.CLASSIFIER, cutting(CUT_WORDS), [LINKS]),
        ("of other edges", "knockout", config.CLASSIFIER, cutting(["separators"]), [LINKS]),
        ("of another checkpoint", "knockout", "another", cutting(CUT_WORDS, "another"), [LINKS]),
        ("at random", "redundancy", "all-MiniLM-L6-v2", {"random": 1}, REPEATS),
        ("without random weights", "redundancy", "all-MiniLM-L6-v2", {}, REPEATS),
    )
    evidence = recorded_report.recorded_evidence()
    found = {
        (claim, one.checkpoint, one.run)
        for claim in ("adjectives-matter", "repeated-patterns")
        for one in claimed(claim, evidence)
        if one.outcome == "holds"
    }
    assert found == {
        ("adjectives-matter", "atlas-encoder", "words"),
        ("repeated-patterns", "all-MiniLM-L6-v2", "at random"),
    }
    read = {result.run for known in evidence for result in known.results}
    assert not read & {"of other edges", "of another checkpoint", "without random weights"}


def test_a_run_whose_options_this_version_cannot_read_says_so(monkeypatch):
    planted(monkeypatch, ("planted", "knockout", config.CLASSIFIER, {"edges": CUT_WORDS}, [LINKS]))
    (one,) = claimed("adjectives-matter", recorded_report.recorded_evidence([config.ENCODER]))
    assert (one.outcome, "checkpoint" in one.said) == ("cannot be tested", True)


def test_no_run_is_read_twice_and_of_steps_that_differ_in_rows_alone_the_one_of_most_is(evidence):
    for known in evidence:
        read = [result.run for result in known.results if result.run]
        assert len(read) == len(set(read))
    step = StepRecord("effective", "effective", "a", None, "", "run", "", {"limit": 30}, created="2026-11-24")
    more = replace(step, run="more", options={"limit": None}, created="2026-11-23")
    without = replace(step, run=None, options={"limit": None})
    other = replace(step, run="other", options={"limit": 30, "seed": 1})
    of_both = replace(step, run="both", options={"limit": None, "split": "unseen"}, created="2026-11-22")
    assert [one.run for one in recorded_report._newest([more, of_both, step])] == ["both"]
    assert recorded_report._newest([step, more, without, other]) == [more, other]


def test_its_day_is_that_of_its_newest_numbers(evidence):
    about = recorded_report.about_record(evidence)
    assert about.title.endswith("from the record")
    results = [result for known in evidence for result in known.results]
    assert about.created.isoformat() == max(result.origin.created for result in results if result.run)


def test_what_the_record_has_no_report_on_is_said():
    with pytest.raises(InputError, match=r"got another\. Choose one of these checkpoints"):
        recorded_report.recorded_evidence(["another"])


def test_an_empty_record_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(config, "RECORD", tmp_path)
    done = CliRunner().invoke(core.__main__.app, ["reproduce", "--from-record", "--out", str(tmp_path / "out")])
    assert isinstance(done.exception, InputError)
    assert "they contain none" in str(done.exception)
    assert not (tmp_path / "out").exists()
