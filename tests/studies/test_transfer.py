"""Representation and transfer by layer on a tiny classifier's checkpoint."""

import pytest
import torch

from core.errors import InputError
from core.probing import layers
from core.studies.probing.representation import BEYOND, ENTROPY
from tests.capture.conftest import tiny
from tests.studies.planted import write_rows
from tests.studies.through_json import rows_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("tiny")
    checkpoint = tiny("bert")
    checkpoint.model.save_pretrained(folder / "checkpoint")
    checkpoint.tokenizer.save_pretrained(folder / "checkpoint")
    write_rows(folder / "data", rows=120)
    return folder


@pytest.fixture
def options(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    monkeypatch.setattr(layers, "LEAST_STEPS", 100)
    return {"checkpoint": str(folder / "checkpoint"), "data": str(folder / "data")}


@pytest.mark.thorough
def test_similarity_by_layer_with_entropy_beside_it(options):
    rows = rows_of("representation", options | {"limit": 40})
    by_name = {(row["similarity"], row["layer"]): row for row in rows}
    assert len(by_name) == len(rows) == 5 * 4 + 3  # kinds on embeddings and three layers; entropy on the layers
    for layer in range(4):
        more = by_name["same word" + BEYOND, layer]["value"]
        assert more <= by_name["same word", layer]["value"] + 1e-9 or by_name["random pairs", layer]["value"] < 0
        assert by_name["random pairs", layer]["low"] <= by_name["random pairs", layer]["value"]
    assert all(0 <= by_name[ENTROPY, layer]["value"] <= 1 for layer in (1, 2, 3))
    assert by_name["same word", 0]["value"] > by_name["random pairs", 0]["value"]
    with pytest.raises(InputError, match="At least two inputs must be compared; got 1"):
        rows_of("representation", options | {"limit": 1})


@pytest.mark.thorough
def test_a_classifier_on_every_layer_and_frozen_layers(options):
    given = options | {"tasks": ["sst2"], "settings": {"epochs": 1, "train_limit": 120, "dev_limit": 40}}
    rows = rows_of("transfer", given)
    classifiers = [row for row in rows if row["kind"] == "classifier"]
    assert {(row["reading"], row["layer"]) for row in classifiers} == {
        (reading, layer) for reading in ("classifying token", "mean over tokens") for layer in range(4)
    }
    mean = [row for row in classifiers if row["reading"] == "mean over tokens" and row["layer"] == 0]
    assert mean[0]["value"] > 0.7  # whether a semicolon stands there can be read off the mean of the embeddings
    frozen = [row for row in rows if row["kind"] == "frozen"]
    assert [row["frozen"] for row in frozen] == [0, 1, 2, 3]
    assert frozen[0]["change"] == 0
    (baseline,) = [row for row in rows if row["kind"] == "baseline"]
    assert 0.4 < baseline["value"] < 0.6
    best = [row for row in rows if row["kind"] == "best layer"]
    assert all(row["n"] == 20 for row in best)


@pytest.mark.thorough
def test_what_is_frozen_stays(options):
    from core.models.opening import open_checkpoint
    from core.studies.probing import trials
    from core.tasks.glue import task_of
    from core.tuning.recipe import Recipe

    base = open_checkpoint(options["checkpoint"])
    recipe = Recipe.of("small", {"epochs": 1, "train_last": 1, "train_limit": 20, "dev_limit": 20})
    on = trials.bench(base, task_of("sst2"), recipe, options["data"])
    model, predicted = trials.trial(on, recipe, 0, "frozen")
    assert predicted.shape == (20,)
    before, after = base.model.state_dict(), model.base_model.state_dict()
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert moved
    assert all(".2." in name or "pooler" in name for name in moved)


def test_one_class_in_a_split_is_refused(options, tmp_path):
    (tmp_path / "SST-2").mkdir()
    for split in ("train", "dev"):
        (tmp_path / "SST-2" / f"{split}.tsv").write_text("sentence\tlabel\n" + "good one\t1\n" * 4)
    with pytest.raises(InputError, match="all 4 train examples of SST-2 have the label 'positive'"):
        rows_of("transfer", options | {"data": str(tmp_path)})
