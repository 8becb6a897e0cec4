"""`python -m core labels` for a team: other tools' files, maps from elsewhere, one truth, erasure."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import core.__main__
from core.errors import AtlasError
from core.store import labels
from core.store.database import Database
from tests.store.labelling import a_map, event


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    with Database(tmp_path / "atlas.duckdb") as db:
        labels.store_maps(db, [a_map(f"m{k}", row_id=f"r{k}") for k in range(3)])
        for who, cls in (("ada", "block"), ("bob", "block"), ("cyd", "vertical")):
            labels.record_events(db, [event(k + 1, f"m{k}", cls, batch=who, annotator=who) for k in range(3)])
    return tmp_path


def typed(*words, status=0):
    done = CliRunner().invoke(core.__main__.app, ["labels", *map(str, words)])
    assert done.exit_code == status, (done.output, done.exception)
    return done


@pytest.mark.parametrize("name", ["a.json", "set"])
def test_labels_go_out_and_come_back(folder, monkeypatch, name):
    typed("export", folder / name, "--class-set", "bert")
    monkeypatch.setenv("ATLAS_DB", str(folder / "other.duckdb"))
    found = json.loads(typed("import", folder / name, "--json").stdout)
    assert (found["provenance"]["new"], found["rows"]) == (9, [])


@pytest.mark.thorough
def test_one_class_a_map_and_people(folder):
    rows = json.loads(typed("truth", "--method", "majority", "--json").stdout)["rows"]
    assert {row["class"] for row in rows} == {"block"}
    assert rows[0]["block"] == pytest.approx(2 / 3, abs=1e-3)
    people = json.loads(typed("truth", "--method", "majority", "--people", "--json").stdout)["rows"]
    assert people[0]["person"] == "cyd"


def test_maps_from_elsewhere(folder):
    np.savez(folder / "x.npz", a=np.full((3, 3), 1 / 3))
    (folder / "x.jsonl").write_text('{"key": "a", "checkpoint": "theirs", "layer": 0, "head": 1}')
    assert "1 maps, 1 of them new" in typed("maps", folder / "x.npz", folder / "x.jsonl").stdout


def test_a_person_is_taken_out(folder):
    assert "replaced by erased-1" in typed("erase", "ada").stdout
    with Database(folder / "atlas.duckdb") as db:
        assert {row["annotator"] for row in labels.all_events(db)} == {"erased-1", "bob", "cyd"}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["truth", "--method", "median"], "dawid-skene"),
        (["truth", "--project", "none"], "given by its title"),
        (["erase", "nobody"], "must belong to a person with stored labels"),
        (["export", "a.json"], "--class-set"),
        (["import", "a.json", "--person", "three"], "ID=NAME"),
    ],
)
def test_what_cannot_be_done_is_a_sentence(folder, words, said):
    done = CliRunner().invoke(core.__main__.app, ["labels", *words])
    assert isinstance(done.exception, AtlasError)
    assert said in str(done.exception)
