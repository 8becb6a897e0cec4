"""`python -m core study features ...`: rows as JSON and as a table of what stands out; bad input in a sentence."""

import json
from itertools import product

import pytest
from typer.testing import CliRunner

from core.__main__ import app
from core.errors import AtlasError
from core.studies.attention.records import BEST, outstanding

TEXT = ["--text", "The old dog never bit the small child.", "--text", "She said he saw it."]


@pytest.fixture(autouse=True)
def own_database(tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    monkeypatch.setenv("ATLAS_WORKERS", "1")


@pytest.mark.slow
def test_features_as_json():
    found = CliRunner().invoke(app, ["study", "features", "atlas-encoder", *TEXT, "--feature", "noun", "--json"])
    assert found.exit_code == 0, found.output
    printed = json.loads(found.stdout)
    assert printed["study"] == "features"
    assert printed["provenance"]["checkpoint"] == "atlas-encoder"
    assert printed["provenance"]["weights_hash"]
    heads = [row for row in printed["rows"] if row["statistic"] == "max"]
    assert len(heads) == 36
    assert all(row["feature"] == "noun" and 0 <= row["value"] <= 1 for row in heads)


def test_a_wrong_feature_is_one_sentence():
    found = CliRunner().invoke(app, ["study", "features", "atlas-encoder", *TEXT, "--feature", "adverbs"])
    assert isinstance(found.exception, AtlasError)
    assert "Choose one" in str(found.exception)


@pytest.mark.slow
def test_a_definition_is_chosen_by_name_and_a_line_may_be_a_pair():
    asked = ["--text", "The dog bit. | It ran.", "--feature", "separator", "--definition", "sum", "--json"]
    found = CliRunner().invoke(app, ["study", "features", "atlas-encoder", *asked])
    assert found.exit_code == 0, found.output
    rows = json.loads(found.stdout)["rows"]
    assert {row["statistic"] for row in rows} == {"sum"}
    assert len(rows) == 36
    found = CliRunner().invoke(app, ["study", "features", "atlas-encoder", *TEXT, "--definition", "median"])
    assert isinstance(found.exception, AtlasError)
    assert 'one of max, sum, max-visible, classifying; "median" is not' in str(found.exception)


@pytest.mark.parametrize("study", ["relations", "statistics", "effective"])
@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", ["atlas-encoder", "atlas-decoder"])
def test_the_other_studies_say_something_of_every_head(study, checkpoint):
    found = CliRunner().invoke(app, ["study", study, checkpoint, *TEXT, "--json"])
    assert found.exit_code == 0, found.output
    rows = json.loads(found.stdout)["rows"]
    assert {(row["layer"], row["head"]) for row in rows if "layer" in row} == set(product(range(6), repeat=2))
    found = CliRunner().invoke(app, ["study", study, checkpoint, *TEXT])
    assert found.exit_code == 0, found.output
    assert "L1H1" in found.stdout or "L6H" in found.stdout


def test_a_treebank_must_be_one():
    found = CliRunner().invoke(app, ["study", "dependencies", "atlas-encoder", "--treebank", "nowhere"])
    assert isinstance(found.exception, AtlasError)
    assert "Choose a folder of Universal Dependencies" in str(found.exception)


def test_a_table_keeps_the_rows_that_stand_out():
    rows = [
        {
            "checkpoint": "c",
            "task": "t",
            "statistic": "max",
            "feature": feature,
            "layer": 0,
            "head": k,
            "effect": k / 10,
            "value": 0.5,
            "q": 0.01,
        }
        for feature in ("noun", "verb")
        for k in range(6)
    ]
    rows.append({"checkpoint": "c", "task": "t", "statistic": "max", "feature": "pronoun", "n": 0, "note": "none"})
    rows += [row | {"checkpoint": "difference", "effect": None, "value": -row["effect"]} for row in rows[:6]]
    rows.append({"checkpoint": "c", "task": "t", "statistic": "correlation by length", "length_from": 1, "mean": 0.9})
    found, note = outstanding(rows, "effect")
    assert note == "pronoun: none"
    assert len(found) == 3 * BEST + 1
    assert [row["head"] for row in found[:BEST]] == ["L1H6", "L1H5", "L1H4"]
    assert [row["head"] for row in found[2 * BEST : 3 * BEST]] == ["L1H6", "L1H5", "L1H4"]
