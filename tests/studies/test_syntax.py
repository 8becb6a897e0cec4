"""The study of syntax in attention on the bundled encoder and a few sentences of the bundled treebank."""

import json

import pytest
import torch

from core import config
from core.errors import InputError
from core.studies.probing import probe_features
from core.studies.probing.syntax import ATTENTION, BASELINES, FRESH, QUIET, SHUFFLED, WITH_WORDS
from core.tasks.conllu import read_part
from tests.studies.through_json import rows_of

pytestmark = pytest.mark.skipif(
    not (config.BUNDLED_MODELS / "atlas-encoder").is_dir(), reason="the encoder is not in data/models"
)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATLAS_DB", str(tmp_path_factory.mktemp("features") / "atlas.duckdb"))
        yield rows_of("syntax", {"checkpoint": "atlas-encoder", "limit": 60})


@pytest.mark.thorough
def test_probes_stand_beside_baselines_and_random_weights(rows):
    by_name = {row["name"]: row for row in rows if row["kind"] in ("probe", "baseline")}
    wanted = [ATTENTION, WITH_WORDS, SHUFFLED, ATTENTION + FRESH, WITH_WORDS + FRESH, *BASELINES]
    assert set(by_name) == set(wanted)
    assert len({row["n"] for row in by_name.values()}) == 1  # all on the same words of test
    for row in by_name.values():
        assert row["low"] <= row["value"] <= row["high"]
    assert by_name[ATTENTION]["low"] > by_name[ATTENTION + FRESH]["high"]
    offset = by_name["one fixed offset"]
    assert by_name[SHUFFLED]["low"] <= offset["high"]


@pytest.mark.thorough
def test_heads_are_scores_of_the_store_and_the_best_is_chosen_on_dev(rows):
    heads = [row for row in rows if row["kind"] == "head"]
    assert len(heads) == 36
    (best,) = [row for row in rows if row["kind"] == "best head"]
    chosen = max(heads, key=lambda row: row["dev"])
    assert best["name"] == chosen["name"]
    assert best["value"] == pytest.approx(chosen["value"])
    (more,) = [row for row in rows if row["kind"] == "difference"]
    together = next(row for row in rows if row["name"] == ATTENTION)
    assert more["value"] == pytest.approx(together["undirected"] - best["value"])


def test_drawn_trees_have_one_root(rows):
    drawn = [row for row in rows if row["kind"] == "tree"]
    assert drawn
    for row in drawn:
        assert sum(head == k for k, head in enumerate(row["drawn"])) == 1
        assert all(0 <= chance <= 1 for chance in row["probability"])
        assert len(row["gold"]) == len(row["words"]) == len(row["relations"])
    assert "tree" in QUIET
    json.dumps(rows)


def test_sentences_longer_than_the_checkpoint_reads_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    encoder = probe_features.open_source("atlas-encoder", random=False, seed=0)
    words = read_part(None, "test", 3).sentences
    long = " ".join(["word"] * 200)
    from core.tasks.conllu import GoldSentence
    from core.tasks.features import TaggedWord

    tagged = tuple(TaggedWord("word", 5 * k, 5 * k + 4, "NN", "NOUN", "dep", 0) for k in range(200))
    part = probe_features.readable(encoder, "test", [*words, GoldSentence(long, tagged)])
    assert len(part.sentences) == 3
    assert part.left_out[0].reason == probe_features.TOO_LONG
    assert part.left_out[0].names == ('4 "word word word word word word "',)


def test_features_are_computed_once_in_float16_and_forgotten_oldest_first(tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    monkeypatch.setattr(probe_features, "KEPT", 2)
    encoder = probe_features.open_source("atlas-encoder", random=False, seed=0)
    part = probe_features.readable(encoder, "test", read_part(None, "test", 2).sentences)
    first = probe_features.word_maps_of(encoder, part)
    assert first.get(0).dtype == "float16"
    sums = first.get(0).astype("float32")[:, 1:-1].sum(-1)
    assert sums == pytest.approx(1, abs=5e-3)  # words, [CLS] and [SEP] are all there is
    monkeypatch.setattr(probe_features, "run", None)  # a second look computes nothing
    assert (probe_features.word_maps_of(encoder, part).get(1) == first.get(1)).all()
    probe_features.word_embeddings_of(encoder, part)
    probe_features.word_vectors_of(encoder, part)
    assert len(list(probe_features.features_folder().iterdir())) == 2


def test_a_treebank_without_a_train_part_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"must have exactly one file \*-train\.conllu; .* has 0 such files\."):
        rows_of("syntax", {"checkpoint": "atlas-encoder", "treebank": str(tmp_path)})
