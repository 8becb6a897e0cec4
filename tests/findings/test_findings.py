"""Pinned results: their numbers are the run's, their command gives the same job, and nothing in them becomes markup."""

import json
import re
import shlex
from dataclasses import fields, replace

import pytest
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

import core.__main__
from core import config
from core.attention import Head
from core.commands.jobs import _option
from core.drawing import theme
from core.drawing.page import MapsSource, grid_of
from core.errors import InputError, StoreError
from core.findings import export, pinning
from core.findings.export import result_page
from core.findings.figures import has_numbers, numbers_of, pictures_of
from core.report.records import REPORT, Records, ValueRecord, rows_of
from core.store import findings, runs
from core.store.database import Database
from core.store.findings import Number
from core.store.people import Person, RightsError
from core.store.runs import Provenance
from core.store.shipped_record import ABOUT
from core.studies.contract import as_json, identity
from core.studies.hypotheses.records import JudgedHypothesis
from core.studies.lookup import find_study
from pages.parts.shell import resources, shell
from tests.atlas.criteria_made import met
from tests.drawing.made import random_maps, random_pane
from tests.pages.opening import switched
from tests.spread import one_in

EVIL = "<img src=x onerror=window.owned=1></script>`${x}` {\\input|y}"
ROWS = [
    {
        "statistic": "entropy",
        "feature": None,
        "layer": layer,
        "head": head,
        "value": 0.1 * layer + 0.01 * head,
        "low": 0.1 * layer,
        "high": 0.1 * layer + 0.05,
        "n": 12,
        "q": 0.02,
        "checkpoint": "atlas-encoder",
        "task": "mrpc",
    }
    for layer in range(3)
    for head in range(4)
]


@pytest.fixture
def db(tmp_path):
    with Database(tmp_path / "atlas.duckdb") as opened:
        yield opened


def stored_run(db, **options):
    study = find_study("statistics")
    asked = study.read({"checkpoint": "atlas-encoder", "tasks": ["mrpc", "rte"], "limit": 7, "seed": 3} | options)
    about = Provenance(
        checkpoint="atlas-encoder", weights_hash="ab" * 32, task="mrpc", split="dev", row_ids=(1, 2, 3), seed=3
    )
    run = runs.record_run(db, "statistics", as_json(asked), about, title="Statistics of atlas-encoder")
    runs.store_rows(db, run, ROWS)
    return run, asked


def test_a_pinned_run_has_its_numbers_with_intervals_its_hash_and_the_command_that_gives_it_again(db):
    run, asked = stored_run(db)
    name = pinning.pin_run(db, run, "what it shows", annotator="ada")
    (one,) = findings.findings(db)
    assert (one.finding, one.run, one.note, one.annotator, one.weights_hash) == (
        name,
        run,
        "what it shows",
        "ada",
        "ab" * 32,
    )
    assert {number.name: (number.value, number.low, number.high, number.p, number.n) for number in one.numbers} == {
        f"L{row['layer'] + 1}H{row['head'] + 1}": (row["value"], row["low"], row["high"], 0.02, 12) for row in ROWS
    }
    assert "3 rows" in one.about
    words = shlex.split(one.command)
    assert words[:6] == ["python", "-m", "core", "jobs", "start", "statistics"]
    given = dict(_option(word.removeprefix("--set=")) for word in words[6:])
    assert set(given) == {"tasks", "limit", "seed"}  # what is as usual is not typed
    assert identity("statistics", find_study("statistics").read(given)) == identity("statistics", asked)


def test_a_finding_stays_when_its_run_is_deleted_and_goes_when_it_is_unpinned(db):
    run, _ = stored_run(db)
    name = pinning.pin_run(db, run, "")
    runs.delete_runs(db, [run])
    assert len(findings.findings(db)[0].numbers) == 12
    findings.unpin(db, name)
    assert findings.findings(db) == []
    with pytest.raises(StoreError, match="has been deleted"):
        findings.unpin(db, name)


def test_a_viewer_pins_nothing_and_nobody_takes_away_what_another_pinned(db):
    run, _ = stored_run(db)
    with pytest.raises(RightsError, match="role annotator is required"):
        pinning.pin_run(db.acting_as(Person("eve@x", "viewer")), run, "")
    name = pinning.pin_run(db.acting_as(Person("ada@x", "annotator")), run, "", annotator="somebody else")
    assert findings.findings(db)[0].annotator == "ada@x"
    with pytest.raises(RightsError, match="role admin is required"):
        findings.unpin(db.acting_as(Person("bob@x", "annotator")), name)
    with pytest.raises(InputError, match="must have at most"):
        pinning.pin_run(db, run, "x" * 5001)


def test_changes_of_a_sweep_are_numbers_too():
    change = {"accuracy": 0.9, "accuracy_change": -0.02, "accuracy_low": -0.04, "accuracy_high": 0.0, "p": 0.3}
    rows = [
        {"kind": "variant", "name": "layer 1", "layer": 0, "n": 100} | change,
        {"kind": "baseline", "accuracy": 0.92, "n": 100},
    ]
    assert numbers_of("disable", rows) == (Number("layer 1", "change of accuracy", -0.02, -0.04, 0.0, 0.3, 100),)
    assert numbers_of("disable", [{"note": "no number"}]) == ()
    assert numbers_of("a study that is gone", rows) == ()
    assert not has_numbers("disable", rows[1:])
    assert has_numbers("disable", rows)
    assert pictures_of("disable", ()) == ()


def test_a_number_says_what_was_measured_once_and_whose_it_is():
    """Words that say nothing, or the same again, are left out; p is the corrected one where there are two."""
    score = {"statistic": "cosine", "feature": "sst2", "task": "sst2", "layer": 1, "head": 2, "value": 0.5, "n": 9}
    (number,) = numbers_of("statistics", [score | {"low": 0.4, "high": 0.6, "p": 0.01, "q": 0.04}])
    assert number == Number("L2H3", "cosine sst2", 0.5, 0.4, 0.6, 0.04, 9)
    undefined = [score | {"value": None}, score | {"value": float("nan")}]
    assert numbers_of("statistics", undefined) == ()
    steps = [
        {"kind": "step", "order": "random 1", "metric": "f1", "n": 8, "baseline": 1.0, "removed": 3, "share": 0.25,
         "score": 0.5, "change": -0.5, "low": 0.25, "high": 0.75},
    ]  # fmt: skip
    assert numbers_of("prune", steps) == (
        Number("25% of heads", "f1, heads removed by random 1", 0.5, 0.25, 0.75, n=8),
    )


def test_a_report_has_the_numbers_that_it_compares_with_printed_ones():
    blank = dict.fromkeys(column.name for column in fields(ValueRecord))
    ours = {
        "exhibit": "shares",
        "checkpoint": "atlas-encoder",
        "task": "sst2",
        "item": "vertical",
        "condition": "tuned",
    }
    value = ValueRecord(**blank | ours | {"value": 0.8, "low": 0.7, "high": 0.9, "n": 60})
    rows = rows_of(Records(values=[value, replace(value, value=None)]))
    assert numbers_of(REPORT, rows) == (Number("vertical tuned sst2", "shares, atlas-encoder", 0.8, 0.7, 0.9, n=60),)
    assert has_numbers(REPORT, rows)
    assert len(pictures_of(REPORT, rows)) == 1
    assert numbers_of(REPORT, [{"kind": "note"}]) == ()


@pytest.mark.thorough
@pytest.mark.shipped
@pytest.mark.parametrize("study", one_in(3, json.loads((config.RECORD / ABOUT).read_text(encoding="utf-8"))["studies"]))
def test_every_kind_of_result_has_a_figure_an_entry_and_a_command_that_one_can_type(db, study):
    known = next(runs.known_runs(db, study).itertuples())
    finding = replace(pinning.finding_of_run(db, known.run), stored=known.created, finding=known.run[:12])
    figures, cited = export.svgs([finding]), export.bibtex([finding])
    assert figures, "nothing to put beside a text"
    for figure in figures.values():
        assert figure.startswith("<svg")
        assert figure.count("<path") > 2, "an empty picture"
        assert f'fill="{theme.theme()["light"]["backgroundColor"]}"' in figure  # on paper, whatever the screen is
    assert cited.count("@software{") == cited.count("@misc{") == 1
    assert "weights nan" not in cited
    assert not isinstance(known.weights_hash, str) or known.weights_hash in cited
    assert 0 < len(finding.command) < 1500


def test_two_heads_together_are_no_head():
    effects = {"first": 0.1, "second": 0.2, "both": 0.4, "loss_interaction": 0.0, "verdict": "open", "p": 0.5}
    rows = [
        effects
        | {
            "kind": "pair",
            "name": f"L1H1 and L2H{k}",
            "first_head": "L1H1",
            "second_head": f"L2H{k}",
            "operator": "zero",
            "interaction": k / 9,
            "low": 0.0,
            "high": 1.0,
            "n": 9,
        }
        for k in range(1, 3)
    ]
    assert [(number.name, number.value) for number in numbers_of("pairs", rows)] == [
        ("L1H1 and L2H2", 2 / 9),
        ("L1H1 and L2H1", 1 / 9),
    ]
    (picture,) = pictures_of("pairs", rows)
    assert "interaction of two heads" in json.dumps(picture)


@pytest.mark.shipped
def test_shares_are_made_again_by_their_own_command(db):
    for known in runs.known_runs(db, "pattern-shares").itertuples():
        words = shlex.split(pinning.finding_of_run(db, known.run).command)
        options = json.loads(known.options)
        limit = ["--limit", "60"] if options["limit"] else []
        data = ["--data", options["data"]] if options["data"] else []
        asked = ["--task", options["task"], *limit, "--split", "dev", *data, "--class-set", "bert"]
        assert words == ["python", "-m", "core", "study", "shares", *options["checkpoints"], *asked]


@pytest.fixture
def pinned(db):
    run, _ = stored_run(db)
    pinning.pin_run(db, run, EVIL, annotator=EVIL[:40], title=EVIL)
    source = MapsSource("atlas-encoder", "a cat", weights_hash="cd" * 32).with_command()
    grid = grid_of([random_pane(2, 3, 6)], source, head="L2H1")
    pinning.pin_maps(db, grid, source, random_maps(2, 3, 6), pinning.Remark("maps"))
    return findings.findings(db)


def test_the_dossier_of_a_head_is_a_finding_with_its_hypotheses(db):
    criterion = met(EVIL, subject="L2H1")
    known = pinning.HeadFacts(
        "class: Diagonal.", [Number("L2H1", "previous", 0.9, n=60)], [JudgedHypothesis(EVIL, [criterion])]
    )
    source = MapsSource("atlas-encoder", "", weights_hash="cd" * 32, command="python -m core atlas atlas-encoder")
    pinning.pin_head(db, Head(1, 0), source, known, pinning.Remark("look"))
    (one,) = findings.findings(db)
    assert one.title == "L2H1 of atlas-encoder"
    assert "meets held out" in one.about
    assert [(number.what, number.value) for number in one.numbers] == [("previous", 0.9), ("held out", 0.75)]
    page = export.html([one])
    assert "0.7 to 0.8" in page
    assert EVIL not in page


def test_one_page_has_every_finding_and_no_text_becomes_markup(pinned):
    page = export.html(pinned)
    assert "<img src=x" not in page
    assert page.count("class='maps'") == 1
    assert page.count("class='chart wide'") == 2
    for one in pinned:
        assert one.weights_hash in page
    assert "python -m core jobs start statistics" in page
    assert "python -m core maps atlas-encoder" in page
    assert "0.2 to 0.25" in page


def test_a_result_card_saves_its_run_as_a_page_with_command_and_hash(db):
    run, _ = stored_run(db)
    page = result_page(db, run)
    assert "<title>Statistics of atlas-encoder</title>" in page
    assert "python -m core jobs start statistics" in page
    assert "ab" * 32 in page
    assert "Pinned" not in page
    assert "atlas-encoder" in page
    assert page.count("class='maps'") == 1  # its heads, to explore
    assert len(page.encode()) <= 2_000_000
    assert findings.findings(db) == []


def test_a_picture_has_every_head_where_the_table_has_the_largest(db):
    kinds = [
        ROWS[0] | {"statistic": f"s{kind}", "layer": k // 12, "head": k % 12, "value": 1 - k / 1000}
        for kind in range(30)
        for k in range(144)
    ]
    heads, intervals = pictures_of("statistics", kinds)
    assert len(heads["data"]["values"]) == 144
    assert len(intervals["data"]["values"]) == 20
    numbers = numbers_of("statistics", kinds)
    assert len(numbers) <= 400
    assert {one.what for one in numbers} == {f"s{kind} mrpc" for kind in range(30)}


def test_markdown_and_bibtex_hold_the_same_and_escape_it(pinned):
    text, cited = export.markdown(pinned, "pictures"), export.bibtex(pinned)
    assert "<img src=x" not in text
    assert "| L3H4 | entropy mrpc | 0.23 | 0.2 to 0.25 | 0.02 | 12 |" in text
    links = re.findall(r"\]\(pictures/([^)]+)\)", text)
    assert sorted(links) == sorted(export.svgs(pinned))
    assert len(links) == 3
    for one in pinned:
        assert one.weights_hash in text
        assert one.weights_hash in cited
        assert f"@misc{{finding-{one.finding}," in cited
    bare = re.sub(r"\\[{}]", "", cited)
    assert bare.count("{") == bare.count("}")
    assert "\\input" not in cited


def test_the_terminal_writes_what_is_asked_for(pinned, db, tmp_path, monkeypatch):
    path = db.path
    db.close()
    monkeypatch.setenv("ATLAS_DB", str(path))
    names = ["findings", "export", "--html", "f.html", "--md", "f.md", "--bib", "f.bib", "--json"]
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(core.__main__.app, names)
    assert done.exit_code == 0, done.output
    assert [row["file"] for row in json.loads(done.stdout)["rows"]] == ["f.html", "f.md", "f.bib"]
    assert len(list((tmp_path / "f-pictures").glob("*.svg"))) == 3
    listed = CliRunner().invoke(core.__main__.app, ["findings", "list", "--json"])
    assert len(json.loads(listed.stdout)["rows"]) == 2
    nothing = CliRunner().invoke(core.__main__.app, ["findings", "export"])
    assert isinstance(nothing.exception, InputError)
    assert "Add --html, --md or --bib" in str(nothing.exception)
    none = CliRunner().invoke(core.__main__.app, ["findings", "export", "--md", "x.md", "--only", "unknown"])
    assert "At least one pinned result" in str(none.exception)


@pytest.mark.thorough
def test_a_stored_run_is_pinned_on_its_page_and_stands_among_the_findings(db, monkeypatch):
    stored_run(db)
    path = db.path
    db.close()
    monkeypatch.setenv("ATLAS_DB", str(path))
    resources.database.clear()
    app = AppTest.from_file(shell.__file__, default_timeout=120)
    app.query_params["inputs"] = "task rows"
    app.run()
    switched(app, "statistics").run()
    app.text_area(key="pin_run_statistics_note").set_value("look *here*")
    app.button(key="pin_run_statistics_pin").click().run()
    assert not app.exception
    assert "Pinned." in [one.value for one in app.success]
    switched(app, "results/pinned").run()
    assert "look *here*" in [one.value for one in app.text]
    assert any("jobs start statistics" in one.value for one in app.code)
    assert any(link.proto.label == "Open the live view" for link in app.get("page_link"))
    app.button[-1].click().run()
    assert "No result has been pinned yet" in app.info[0].value
    app.button(key="undo_removal").click().run()
    assert "look *here*" in [one.value for one in app.text], "note and picture are back"
    assert app.get("vega_lite_chart")
    resources.database.clear()
