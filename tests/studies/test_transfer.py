"""Representation and transfer by layer on a tiny classifier's checkpoint."""

import numpy as np
import pytest
import torch

from core.errors import InputError
from core.probing import layers
from core.studies.probing.representation import BEYOND, ENTROPY
from core.studies.probing.transfer import STUDY, Predicted, TransferPartial
from tests.capture.conftest import tiny
from tests.studies.figures import figures
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


def test_layers_are_compared_with_random_weights_with_the_last_and_with_no_frozen_layer():
    """Two layers and the embeddings; every wrong answer is on an even place, but for those of the last layer."""
    gold = np.tile([0, 1], 40)

    def wrong(count, *, odd=False):
        places = np.arange(odd, 80, 2)[:count]
        return np.where(np.isin(np.arange(80), places), 1 - gold, gold)

    def predicted(what, answers, *, source="trained", reading="", layer=0, seed=0):
        return Predicted(what, "sst2", source, reading, layer, 2, seed, gold, answers, 120, "negative", 0.5)

    made = [predicted("layer", wrong(count), reading="first", layer=layer) for layer, count in enumerate((20, 4))]
    made.append(predicted("layer", wrong(10, odd=True), reading="first", layer=2))
    made += [predicted("layer", wrong(30), source="random", reading="first", layer=layer) for layer in (0, 1)]
    made += [predicted("layer", wrong(8), reading="mean", layer=layer) for layer in range(3)]
    made += [
        predicted("freeze", wrong(count), layer=layer, seed=seed)
        for layer, seed, count in ((1, 0, 12), (0, 1, 2), (0, 0, 4), (1, 1, 16))
    ]
    results = STUDY.results(STUDY.read({"checkpoint": "x", "tasks": ["sst2"]}), TransferPartial(tuple(made[::-1])))
    (floor,) = (one for one in results if getattr(one, "kind", "") == "baseline")
    assert (floor.name, floor.value, floor.n, floor.metric) == ("always negative", 0.5, 80, "accuracy")
    classifiers = {(one.reading, one.layer): one for one in results if getattr(one, "kind", "") == "classifier"}
    shares = {("classifying token", 0): 60, ("classifying token", 1): 76, ("classifying token", 2): 70}
    shares |= {("mean over tokens", layer): 72 for layer in range(3)}
    assert {at: one.value for at, one in classifiers.items()} == pytest.approx({at: n / 80 for at, n in shares.items()})
    for (reading, layer), one in classifiers.items():
        assert (one.n, one.constant, one.train_rows) == (80, 0.5, 120)
        assert one.low < one.value < one.high
        if (reading, layer) in (("classifying token", 0), ("classifying token", 1)):
            assert (one.random_weights, one.gain) == pytest.approx((50 / 80, one.value - 50 / 80))
            assert one.gain_low < one.gain < one.gain_high
        else:
            assert (one.random_weights, one.gain) == (None, None)
    best, level = (one for one in results if type(one).__name__ == "BestLayer")
    assert (best.layer, best.reading, best.layers, best.n) == (2, "classifying token", 2, 40)  # all even places right
    assert (best.value, best.name) == (0, "layer 2 less the last")
    assert (level.layer, level.reading, level.value) == (0, "mean over tokens", 0)  # the first of equal ones
    none, one_frozen = (one for one in results if getattr(one, "kind", "") == "frozen")
    assert (none.frozen, none.seeds, none.value, none.change) == (0, 2, pytest.approx(77 / 80), 0)
    assert (one_frozen.frozen, one_frozen.layers, one_frozen.seeds) == (1, 2, 2)
    assert (one_frozen.value, one_frozen.change) == pytest.approx((66 / 80, -11 / 80))
    assert one_frozen.change_low < -11 / 80 < one_frozen.change_high
    said = STUDY.headline([one.as_row() for one in results])
    assert figures(said.sentence) == figures(
        "A classifier that reads the classifying token is best on layer 2, by its score on half of the dev examples. "
        "On the other half, it scores as much as the last layer."
    )
    assert figures(said.baseline) == figures("A constant prediction scores 50.0.")
    swapped = [one for one in made if one.layer != 2 or one.reading != "first"]
    swapped.append(predicted("layer", wrong(30), reading="first", layer=2))
    swapped[1] = predicted("layer", wrong(10, odd=True), reading="first", layer=1)
    results = STUDY.results(STUDY.read({"checkpoint": "x", "tasks": ["sst2"]}), TransferPartial(tuple(swapped)))
    (judged, _) = (one for one in results if type(one).__name__ == "BestLayer")
    assert (judged.layer, judged.value) == (1, -0.25)  # chosen on even places, judged on odd ones
    assert judged.low < -0.25 < judged.high
