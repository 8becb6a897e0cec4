"""The study of layer probes on the bundled encoder, small."""

import numpy as np
import pytest
import torch
from scipy import stats

from core import config
from core.errors import InputError
from core.models.opening import open_checkpoint
from core.probing import layers
from core.studies.probing import probe
from core.studies.probing.probe import PROPERTIES, STUDY, Mixed, Probed, word_property
from tests.studies.through_json import rows_of

pytestmark = pytest.mark.skipif(
    not (config.BUNDLED_MODELS / "atlas-encoder").is_dir(), reason="the encoder is not in data/models"
)


@pytest.fixture(autouse=True)
def features(tmp_path, monkeypatch):
    torch.set_num_threads(1)
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    monkeypatch.setattr(layers, "LEAST_STEPS", 25)
    monkeypatch.setattr(layers, "REFITS", 2)
    monkeypatch.setattr(probe, "SIZES", {"train": 100, "agree": 30, "part": 40})


@pytest.mark.thorough
def test_every_probe_stands_beside_its_control_and_random_weights():
    asked = ["part of speech", "main auxiliary"]
    rows = rows_of("probe", {"checkpoint": "atlas-encoder", "limit": 60, "properties": asked})
    probes = [row for row in rows if row["kind"] == "probe"]
    names = ["part of speech", "main auxiliary", "main auxiliary, rules part"]
    assert {row["property"] for row in probes} == set(names)
    assert len(probes) == 3 * 2 * 7  # properties, probes, layers and the embeddings
    for row in probes:
        assert row["low"] <= row["value"] <= row["high"]
        assert row["selectivity"] == pytest.approx(row["value"] - row["control"])
        assert row["gain"] == pytest.approx(row["value"] - row["random_weights"])
    parted = [row for row in probes if "linear_rule" in row]
    assert {row["linear_rule"] for row in parted} == {0.0}
    tags = [row for row in probes if row["property"] == "part of speech" and row["probe"] == "linear"]
    assert max(row["value"] for row in tags) > tags[0]["majority"] + 0.2
    mixing = [row for row in rows if row["kind"] == "mixing" and row["property"] == "part of speech"]
    assert sum(row["value"] for row in mixing) == pytest.approx(1)
    (centre,) = [row for row in rows if row["kind"] == "centre" and row["property"] == "part of speech"]
    assert centre["value"] == pytest.approx(sum(row["layer"] * row["value"] for row in mixing))
    assert centre["low"] <= centre["value"] <= centre["high"]


def test_one_class_is_refused_by_name(tmp_path):
    line = "1\tdogs\t_\tNOUN\tNNS\t_\t2\tnsubj\t_\t_\n2\tcats\t_\tNOUN\tNNS\t_\t0\troot\t_\t_\n"
    for part in ("train", "dev", "test"):
        (tmp_path / f"own-{part}.conllu").write_text(line)
    given = {"checkpoint": "atlas-encoder", "treebank": str(tmp_path), "properties": ["part of speech"]}
    with pytest.raises(InputError, match="all words of train have the part of speech 'NOUN'"):
        rows_of("probe", given)


def test_an_unknown_property_is_refused():
    with pytest.raises(InputError, match='got "colour"'):
        rows_of("probe", {"checkpoint": "atlas-encoder", "properties": ["colour"]})
    assert len(PROPERTIES) == len(np.unique(PROPERTIES))


@pytest.mark.parametrize("drawn", [0, 1, 3])
def test_mixing_weights_balance_at_a_layer_with_students_reach_over_samples(drawn):
    weights = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5], [0.5, 0.5, 0.0]])[: 1 + drawn]
    options = STUDY.read({"checkpoint": "x"})
    (*layers_of, centre) = STUDY.results(options, Probed((), (Mixed("word order", weights),)))
    assert [(one.layer, one.value, one.uniform) for one in layers_of] == [(k, weights[0, k], 1 / 3) for k in range(3)]
    assert (centre.value, centre.uniform, centre.n) == (0.75, 1.0, drawn)
    if drawn < 2:
        assert (centre.low, centre.high) == (None, None)
    else:
        reach = stats.t.ppf(0.975, drawn - 1) * np.std([1, 1.25, 0.5], ddof=1)
        assert (centre.low, centre.high) == pytest.approx((0.75 - reach, 0.75 + reach))


def test_places_are_in_the_order_of_words_and_end_with_the_tenth(tmp_path):
    words = ["the", "dog", "saw", "the", "cat", "and", "the", "man", "saw", "the", "old", "house"]
    lines = [
        f"{k}\t{word}\t_\tNOUN\t_\t_\t{max(0, k - 1)}\t{'dep' if k > 1 else 'root'}\t_\t_\n"
        for k, word in enumerate(words, start=1)
    ]
    for part in ("train", "dev", "test"):
        (tmp_path / f"own-{part}.conllu").write_text("".join(lines) + "\n" + "".join(lines[:3]))
    found = word_property(open_checkpoint("atlas-encoder"), "word order", str(tmp_path), None)
    assert found.classes == tuple(str(place) for place in range(1, 11))
    ((_, test),) = found.tests
    assert test.labels.tolist() == [*range(10), *range(3)]
    assert found.train.types[:3] == ("the", "dog", "saw")
