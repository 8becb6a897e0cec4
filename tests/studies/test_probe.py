"""The study of layer probes on the bundled encoder, small."""

import numpy as np
import pytest
import torch

from core import config
from core.errors import InputError
from core.probing import layers
from core.studies.probing.probe import PROPERTIES
from core.tasks import diagnostic
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
    monkeypatch.setattr(diagnostic, "SIZES", {"train": 100, "agree": 30, "part": 40})


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
    with pytest.raises(InputError, match="'colour' is none"):
        rows_of("probe", {"checkpoint": "atlas-encoder", "properties": ["colour"]})
    assert len(PROPERTIES) == len(np.unique(PROPERTIES))
