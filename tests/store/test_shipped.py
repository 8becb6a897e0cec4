"""The record that ships: made from a database, read beside a user's own, and never naming a folder of a machine."""

import base64
import json
import shutil

import pandas as pd
import pytest

from core import config
from core.errors import InputError
from core.store import runs, shipped_record
from core.store.database import Database
from core.store.runs import Provenance, record_run, store_rows
from data.recipes import record
from data.recipes.record import joined, made


def with_run(db, value=1.0, **options):
    run = record_run(db, "statistics", options, Provenance(checkpoint="atlas-encoder", task="sst2"), title="Heads")
    store_rows(db, run, [{"statistic": "entropy", "layer": 0, "head": 0, "value": value, "n": 4}])
    return run


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project folder with the database of a report, whose record lies in another."""
    (tmp_path / "project" / "data").mkdir(parents=True)
    monkeypatch.setattr(config, "RECORD", tmp_path / "record")
    return tmp_path / "project"


def test_a_record_is_read_beside_ones_own_which_come_first(project, tmp_path):
    with Database(project / "data" / "atlas.duckdb") as db:
        recorded = with_run(db, 0.25, classifier=f"{project}/data/snapshots/c.safetensors")
    assert made([project / "data" / "atlas.duckdb"], config.RECORD, "small") == {"runs": 1, "rows": 1}
    with Database(tmp_path / "mine.duckdb") as db:
        assert list(runs.known_runs(db, "statistics")["source"]) == ["shipped"]
        assert runs.one_run(db, recorded)["options"] == {"classifier": "data/snapshots/c.safetensors"}
        assert runs.run_rows(db, recorded)[0]["value"] == 0.25
        assert runs.runs(db).empty  # a record is no part of the database
        mine = with_run(db)
        known = runs.known_runs(db, "statistics")
        assert list(known["run"]) == [mine, recorded]
        assert list(known["source"]) == ["yours", "shipped"]
        assert runs.holder(db, mine) == db.id
        assert runs.holder(db, recorded) == shipped_record.version()
        runs.delete_runs(db, [recorded])
        assert recorded in set(runs.known_runs(db, "statistics")["run"])  # read only
    assert shipped_record.about()["note"] == "small"


def test_rows_are_read_in_their_order_however_the_file_has_them(project):
    with Database(project / "data" / "atlas.duckdb") as db:
        recorded = [with_run(db), with_run(db, seed=1)]
        for run in recorded:
            store_rows(db, run, [{"value": value, "of": run} for value in (2.0, 3.0)])
    made([project / "data" / "atlas.duckdb"], config.RECORD, "")
    before = shipped_record.version()
    file = config.RECORD / shipped_record.ROWS
    pd.read_parquet(file).sort_values("position", ascending=False).to_parquet(file)
    (config.RECORD / shipped_record.ABOUT).unlink()  # its hashes are those of the file before
    for run in recorded:
        assert [row["value"] for row in shipped_record.run_rows(run)] == [1.0, 2.0, 3.0]
        assert {row["of"] for row in shipped_record.run_rows(run)[1:]} == {run}
    assert shipped_record.version() != before


def test_a_record_is_made_of_several_databases(project, tmp_path):
    files = [project / "data" / "atlas.duckdb", project / "data" / "other.duckdb"]
    recorded = []
    for limit, file in enumerate(files):
        with Database(file) as db:
            with_run(db, 0.5, limit=7, classifier=f"{limit}")  # by a better classifier again: the newest stays
            recorded.append(with_run(db, 0.25, limit=limit))
    assert made(files, config.RECORD, "") == {"runs": 3, "rows": 3}
    with Database(tmp_path / "mine.duckdb") as db:
        known = runs.known_runs(db, "statistics")
        assert set(recorded) < set(known["run"])
        assert all(runs.run_rows(db, run)[0]["value"] == 0.25 for run in recorded)
        assert [json.loads(text)["classifier"] for text in known["options"] if "classifier" in text] == ["1"]


def test_runs_are_added_to_a_record_and_those_measured_anew_are_replaced(project, tmp_path):
    files = [project / "data" / "atlas.duckdb", project / "data" / "other.duckdb"]
    with Database(files[0]) as db:
        former, stays = with_run(db, 0.25), with_run(db, 0.5, limit=3)
    made(files[:1], config.RECORD, "first")
    with Database(files[1]) as db:
        anew = with_run(db, 0.75)
    assert made(files[1:], config.RECORD, "second", add=True) == {"runs": 2, "rows": 2}
    with Database(tmp_path / "mine.duckdb") as db:
        assert set(runs.known_runs(db, "statistics")["run"]) == {anew, stays}
        assert [runs.run_rows(db, run)[0]["value"] for run in (anew, stays)] == [0.75, 0.5]
        assert former not in set(runs.known_runs(db, "statistics")["run"])


def test_a_run_that_is_added_again_has_its_rows_once(project, tmp_path):
    file = project / "data" / "atlas.duckdb"
    with Database(file) as db:
        run = with_run(db, 0.25)
    made([file], config.RECORD, "")
    assert made([file], config.RECORD, "", add=True) == {"runs": 1, "rows": 1}
    with Database(tmp_path / "mine.duckdb") as db:
        assert [row["value"] for row in runs.run_rows(db, run)] == [0.25]


@pytest.mark.thorough
@pytest.mark.shipped
def test_every_run_of_the_record_has_the_rows_that_it_says(tmp_path):
    with Database(tmp_path / "mine.duckdb") as db:
        for known in shipped_record.runs().itertuples():
            assert len(runs.run_rows(db, known.run)) == known.rows, known.title


@pytest.mark.parametrize("elsewhere", ["/home/somebody/rows.csv", "/srv/models/bert"])
def test_a_record_names_no_folder_of_a_machine(project, elsewhere):
    with Database(project / "data" / "atlas.duckdb") as db:
        with_run(db, data=elsewhere)
    with pytest.raises(InputError, match="names no folder of a machine"):
        made([project / "data" / "atlas.duckdb"], config.RECORD, "")


def with_exemplar(db, **row):
    run = record_run(db, "discover", {}, Provenance(checkpoint="atlas-decoder", task="sst2"), title="Patterns")
    store_rows(db, run, [{"part": "exemplar", "row_id": "dev-1", "side": 16} | row])
    return run


def test_an_image_in_base64_is_no_path(project, tmp_path):
    """The image of a map whose first token has all weight on itself begins with /wAA."""
    levels = base64.b64encode(bytes([255, 0, 0, 255, 240] + [0] * 251)).decode()
    assert record.ELSEWHERE.search(f'"{levels}"')
    with Database(project / "data" / "atlas.duckdb") as db:
        run = with_exemplar(db, levels=levels, row_id=f"{project}/rows/dev-1")
        made([project / "data" / "atlas.duckdb"], config.RECORD, "")
        assert shipped_record.run_rows(run) == [runs.run_rows(db, run)[0] | {"row_id": "rows/dev-1"}]


@pytest.mark.parametrize(
    "row",
    [
        {"levels": "/home/somebody/rows1"},  # base64 of 15 bytes
        {"levels": "/home/some body/rows"},
        {"levels": "/srv/models/bert", "side": "4"},
        {"levels": "/srv/models/bert", "side": None},
        {"levels": None, "row_id": "/srv/models/bert"},
        {"levels": base64.b64encode(bytes([255] + [0] * 255)).decode(), "row_id": "/srv/models/bert"},
    ],
)
def test_a_path_in_a_row_with_or_without_an_image_is_refused(project, row):
    with Database(project / "data" / "atlas.duckdb") as db:
        with_exemplar(db, **row)
    with pytest.raises(InputError, match="names no folder of a machine"):
        made([project / "data" / "atlas.duckdb"], config.RECORD, "")


def test_no_text_of_rows_that_are_not_ours_goes_into_a_record(project, tmp_path):
    sentence = {
        "kind": "sentence",
        "id": "k3",
        "text": "A secret of theirs",
        "target": "secret",
        "elements": ["A"],
        "frame": "Secrecy",
        "links": 1,
    }
    with Database(project / "data" / "atlas.duckdb") as db:
        theirs = record_run(db, "frame-heads", {"sentences": f"{project}/rows/473.json"}, Provenance(), title="Theirs")
        ours = record_run(db, "frame-heads", {"sentences": None, "data": None}, Provenance(), title="Ours")
        for run in (theirs, ours):
            store_rows(db, run, [sentence])
    made([project / "data" / "atlas.duckdb"], config.RECORD, "")
    assert "secret" not in str(shipped_record.run_rows(theirs)).lower()
    assert {"kind": "sentence", "id": "k3", "links": 1}.items() <= shipped_record.run_rows(theirs)[0].items()
    assert shipped_record.run_rows(ours) == [sentence]


@pytest.mark.thorough
@pytest.mark.shipped
def test_several_reports_on_a_checkpoint_become_one_by_todays_rules(tmp_path, monkeypatch):
    shutil.copytree(config.RECORD, tmp_path / "record")
    monkeypatch.setattr(config, "RECORD", tmp_path / "record")
    monkeypatch.setattr(record, "LEVEL", 1)
    file = tmp_path / "record" / shipped_record.RUNS
    known = pd.read_parquet(file)
    (whole,) = known[(known["study"] == "reproduce") & (known["checkpoint"] == "atlas-encoder")]["run"]
    twice = known[known["run"] == whole].assign(run="another", task="sst2")
    pd.concat([known, twice]).to_parquet(file)
    (tmp_path / "record" / shipped_record.ABOUT).unlink()  # its hashes are those of the record that ships
    counts = joined(config.RECORD, "atlas-encoder", "joined")
    after, rows = pd.read_parquet(file), pd.read_parquet(tmp_path / "record" / shipped_record.ROWS)
    assert counts["runs"] == len(known)
    (one,) = after[(after["study"] == "reproduce") & (after["checkpoint"] == "atlas-encoder")].to_dict("records")
    assert one["task"] == "qnli, sst2"
    assert one["rows"] == sum(rows["run"] == one["run"]) > 100


def test_without_a_record_there_is_nothing_but_ones_own(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "RECORD", tmp_path / "nowhere")
    with Database(tmp_path / "mine.duckdb") as db:
        assert runs.known_runs(db, "statistics").empty
        assert shipped_record.about() is None


def test_large_runs_keep_numbers_of_seven_digits():
    rows = shipped_record.run_rows(shipped_record.runs("features")["run"].iloc[0])
    numbers = [value for row in rows for value in row.values() if isinstance(value, float)]
    assert numbers == [float(f"{value:.7g}") for value in numbers]
    assert max(abs(value - float(f"{value:.6g}")) for value in numbers) > 0  # of six there are fewer


def test_runs_of_the_checkpoint_that_is_named_first_come_first_and_further_seeds_after_the_first():
    folder = "data/runs/finetuned/a-sst2-pretrained-s{}-1"
    known = pd.DataFrame(
        {
            "run": ["other", "train", "older", "newer", "seed 1"],
            "checkpoint": ["b", "a", "a", "a", "a"],
            "options": ["{}", '{"split": "train"}', folder.format(0), '{"split": "dev"}', folder.format(1)],
            "created": pd.to_datetime(["2026-11-25", "2026-11-25", "2026-11-23", "2026-11-24", "2026-11-25"]),
        }
    )
    assert record._ordered(known, "a")["run"].tolist() == ["newer", "older", "train", "seed 1", "other"]
    assert record._ordered(known, "")["run"].tolist() == ["other", "newer", "older", "train", "seed 1"]
