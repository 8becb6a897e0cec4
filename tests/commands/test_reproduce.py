"""The whole report from a terminal, on tiny checkpoints and rows of our own: every part runs, nothing is lost."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import core.__main__
from core.errors import InputError
from core.report.published_values import exhibits
from core.report.rendering.words import About, command_of
from core.store import jobs, runs
from core.store.database import Database
from tests.capture.conftest import TEXT, tiny

SIZES = ["--limit", "8", "--sweep-limit", "10", "--effective-limit", "2", "--train-limit", "16", "--tree-limit", "8"]


def write_data(folder: Path) -> Path:
    """RTE in GLUE's form, 12 rows a split, and a treebank of 8 trees a part."""
    (folder / "glue" / "RTE").mkdir(parents=True)
    for split in ("train", "dev"):
        lines = ["index\tsentence1\tsentence2\tlabel"]
        for k in range(12):
            first, second = TEXT[k % len(TEXT)], TEXT[(k * (k % 2) + 1) % len(TEXT)]
            lines.append(f"{k}\t{first}\t{second}\t{('entailment', 'not_entailment')[k % 2]}")
        (folder / "glue" / "RTE" / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    (folder / "ud").mkdir()
    words = [
        ("the", "DET", 3, "det"),
        ("old", "ADJ", 3, "amod"),
        ("dog", "NOUN", 4, "nsubj"),
        ("ran", "VERB", 0, "root"),
    ]
    numbered = enumerate(words, 1)
    lines = (f"{k}\t{word}\t{word}\t{tag}\t_\t_\t{head}\t{label}\t_\t_\n" for k, (word, tag, head, label) in numbered)
    tree = "# text = the old dog ran\n" + "".join(lines)
    for part in ("dev", "test"):
        (folder / "ud" / f"xx-{part}.conllu").write_text((tree + "\n") * 8)
    return folder


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder in which a report on two tiny checkpoints was made."""
    folder = tmp_path_factory.mktemp("report")
    for kind in ("bert", "gpt2"):
        checkpoint = tiny(kind)
        checkpoint.model.save_pretrained(folder / f"tiny-{kind}")
        checkpoint.tokenizer.save_pretrained(folder / f"tiny-{kind}")
    write_data(folder / "data")
    done = command(folder)
    assert done.exit_code == 0, done.output
    return folder


def command(folder, *more):
    names = [str(folder / f"tiny-{kind}") for kind in ("bert", "gpt2")]
    asked = ["reproduce", *names, "--data", str(folder / "data"), "--out", str(folder / "out"), *SIZES]
    asked += ["--folder", str(folder / "tuned"), "--json", *more]
    environment = {"ATLAS_DB": str(folder / "atlas.duckdb"), "ATLAS_WORKERS": "1"}
    return CliRunner().invoke(core.__main__.app, asked, env=environment, catch_exceptions=False)


@pytest.fixture
def db(made):
    database = Database(made / "atlas.duckdb")
    yield database
    database.close()


@pytest.fixture
def rows(db):
    return runs.run_rows(db, runs.latest_run(db, "reproduce"))


def of(rows, kind, **wanted):
    return [row for row in rows if row["kind"] == kind and all(row[name] == value for name, value in wanted.items())]


def test_every_step_ran(rows):
    steps = of(rows, "step")
    assert [(row["title"], row["error"]) for row in steps if row["error"]] == []
    assert {row["part"] for row in steps} >= {"frames", "tuning", "change", "heads", "prune", "dependencies"}
    assert all(row["seconds"] is not None and row["code_version"] for row in steps)


def test_every_exhibit_has_our_numbers(rows):
    measured = {row["exhibit"] for row in of(rows, "value") if row["value"] is not None}
    assert measured == {item.id for item in exhibits()} - {"sink"}  # the replication's list is not in this data
    for row in of(rows, "value"):
        assert row["n"] or row["value"] is None
        assert row["verdict"] == "cannot be compared" or row["published"] is None


def test_the_reports_numbers_are_the_stores(db, rows):
    """Recomputed here from the rows of the run that each number names."""
    values = [row for row in of(rows, "value") if row["value"] is not None]
    assert all(row["run"] for row in values)
    stored = {run: runs.run_rows(db, run) for run in {row["run"] for row in values}}
    checked = 0
    for row in values:
        there = expected(row, stored[row["run"]])
        if there is not None:
            assert row["value"] == pytest.approx(there, abs=1e-12), row
            checked += 1
    assert checked > 60
    for row in of(rows, "head", exhibit="frames"):
        heads = [one for one in stored[row["run"]] if one["kind"] == "head"]
        mine = next(one for one in heads if (one["layer"], one["head"]) == (row["layer"], row["head"]))
        assert [row[name] for name in ("value", "low", "high", "n")] == [
            mine[name] for name in ("value", "low", "high", "n")
        ]


def expected(row, stored):
    """What the store says of a row of the report, by another road than the report's."""
    item, exhibit = row["item"], row["exhibit"]
    frame = pd.DataFrame(stored)
    layer = re.search(r"layer (\d+) of", item)
    if exhibit == "change":
        mine = frame[
            (frame["kind"] == "layer") & (frame["statistic"] == "cosine") & (frame["layer"] == int(layer[1]) - 1)
        ]
        return mine["value"].item()
    if exhibit == "shares":
        tuned = row["condition"] == "fine-tuned"
        mine = frame[(frame["part"] == "share") & (frame["class"] == item)]
        return mine[(mine["checkpoint"] != row["checkpoint"]) == tuned]["share"].item()
    if exhibit == "features" and layer:
        mine = frame[(frame["statistic"] == "max") & (frame["feature"] == item.split(",")[0])]
        mine = mine[(mine["checkpoint"] != row["checkpoint"]) == (row["condition"] == "fine-tuned")]
        mine = mine[(mine["checkpoint"] != "difference") & (mine["layer"] == int(layer[1]) - 1)]
        return np.mean(mine["value"])
    if exhibit == "heads" and item in ("best head", "worst head", "mean over heads"):
        changes = frame[frame["kind"] == "variant"]["accuracy_change"]
        return {"best head": changes.max(), "worst head": changes.min(), "mean over heads": changes.mean()}[item]
    if exhibit == "table-1":
        mine = frame[(frame["kind"] == "run") & (frame["initialisation"] == row["condition"])]
        return mine[item].mean()
    if exhibit == "frames" and item == "mean over heads":
        return frame[frame["kind"] == "head"]["value"].mean()
    return None


def test_the_files_hold_the_same_rows_and_ask_for_nothing(made, rows):
    names = {"value": "values", "claim": "claims", "head": "heads", "step": "steps"}
    for kind, name in names.items():
        found = pd.read_parquet(made / "out" / f"{name}.parquet")
        assert len(found) == len(of(rows, kind))
    found = pd.read_parquet(made / "out" / "values.parquet")
    assert found["value"].dropna().tolist() == [row["value"] for row in of(rows, "value") if row["value"] is not None]
    page = (made / "out" / "report.html").read_text(encoding="utf-8")
    assert "class='maps'" in page  # the heads of its checkpoints, to explore
    shown = re.sub("<script.*?</script>", "", page, flags=re.DOTALL)
    assert not re.findall(r"(?:src|href)=(?!['\"]#)", shown)  # links lead to places on the page alone
    data = json.loads(re.search(r"id='figures'>(.*?)</script>", page, re.DOTALL)[1])
    assert set(data["specs"]) == {item.id for item in exhibits()} - {"sink"}
    for item in exhibits():
        assert (f"<section id='{item.id}'>" in page) == any(row.get("exhibit") == item.id for row in rows)
    for row in of(rows, "claim"):
        assert f"<tr id='claim-{row['claim']}'>" in page


def test_given_again_the_command_runs_nothing_and_says_the_same(made, rows):
    with Database(made / "atlas.duckdb") as db:
        before, report = len(jobs.jobs(db)), runs.latest_run(db, "reproduce")
    done = command(made)
    assert "running" not in done.stderr
    assert done.stderr.count("stored already") == before
    with Database(made / "atlas.duckdb") as db:
        assert len(jobs.jobs(db)) == before
        assert runs.latest_run(db, "reproduce") == report
    claims = json.loads(done.stdout.strip().splitlines()[-1])["rows"]
    assert [row["outcome"] for row in claims] == [row["outcome"] for row in of(rows, "claim")]


def test_a_part_alone_takes_what_is_stored(made):
    done = command(made, "--part", "change", "--stored")
    claims = json.loads(done.stdout.strip().splitlines()[-1])["rows"]
    untested = {row["claim"] for row in claims if row["outcome"] == "cannot be tested"}
    assert untested == {"keeps-its-heads"}  # of the same exhibit, but of a part that was not asked for
    assert {row["claim"] for row in claims} - untested == {"last-two-layers", "gpt2-changes", "little-change"}


def test_the_command_on_the_page_makes_the_report_again(db):
    said = command_of(About.of(runs.one_run(db, runs.latest_run(db, "reproduce"))).options)
    assert "--sweep-limit 10" in said
    assert "--seeds" not in said  # as by default


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--data", "/nowhere"], "--data must name a folder"),
        (["--part", "everything"], "A part of a report must be one of"),
        (["--task", "qqp"], "dev examples of the requested tasks"),
    ],
)
def test_what_cannot_be_is_one_sentence(tmp_path, more, sentence):
    asked = ["reproduce", "atlas-encoder", *more, "--out", str(tmp_path / "out")]
    if "--data" not in more:
        asked += ["--data", str(write_data(tmp_path / "data"))]
    with pytest.raises(InputError, match=sentence):
        CliRunner().invoke(
            core.__main__.app, asked, env={"ATLAS_DB": str(tmp_path / "atlas.duckdb")}, catch_exceptions=False
        )
