"""Studies of roles, norms and redundancy through JSON as jobs run them, against what is computed by hand."""

import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from core.capture.norms import norm_maps
from core.capture.projections import copying, output_projections, share, value_weights
from core.capture.running import capture
from core.errors import InputError
from core.models.opening import open_checkpoint
from core.scoring.mean_patterns import resized
from core.scoring.roles import ROLES
from core.studies.attention import norms, redundancy, roles
from tests.capture.conftest import tiny
from tests.studies.through_json import rows_of

TEXTS = ["The old dog never stopped.", "Did the dog hear it?", ["She saw the man.", "He did not see her."]]
FEW = {"texts": TEXTS, "sequences": 4, "period": 5}


@pytest.fixture(scope="module", params=["atlas-encoder", "atlas-decoder"])
def checkpoint(request):
    return open_checkpoint(request.param)


def values(rows, statistic, feature=None):
    some = [row for row in rows if row["statistic"] == statistic and row.get("feature") == feature and "value" in row]
    table = np.full((6, 6), np.nan)
    for row in some:
        table[row["layer"], row["head"]] = row["value"]
    return table


@pytest.mark.thorough
def test_roles_of_rows_and_of_random_words(checkpoint):
    rows = rows_of("roles", FEW | {"checkpoint": checkpoint.name}, random.Random(0))  # noqa: S311 - no secret
    whole = rows_of("statistics", {"checkpoint": checkpoint.name, "texts": TEXTS})
    np.testing.assert_allclose(values(rows, "previous"), values(whole, "previous"), atol=1e-6)
    np.testing.assert_allclose(values(rows, "first"), values(whole, "first"), atol=1e-6)
    known = {row["statistic"]: row for row in rows if "value" in row}
    assert known["duplicate"]["n"] == known["prefix without sink"]["n"] == 4
    assert known["previous"]["n"] == 3
    told = {row["statistic"] for row in rows}
    assert told == {*ROLES, *(f"{role} without sink" for role in ROLES), "copying"}
    for row in rows:
        if "has" in row:
            assert row["baseline"] == pytest.approx(row["value"] - row["effect"])
            assert row["has"] == (row["q"] is not None and row["q"] < 0.05)
    if not checkpoint.causal:  # the bundled encoder's L1H4 looks at the piece before
        assert values(rows, "previous")[1, 4] > 0.6


def test_copying_is_the_share_of_positive_eigenvalues_of_the_whole_circuit():
    checkpoint = tiny("gpt2")
    weight = checkpoint.model.get_input_embeddings().weight.detach().double().numpy()
    mine = copying(checkpoint)
    values_of, out = value_weights(checkpoint), output_projections(checkpoint)
    for layer, head in ((0, 0), (2, 3)):
        circuit = weight @ values_of[layer][head] @ out[layer].weight[head].double().numpy() @ weight.T
        eigenvalues = np.linalg.eigvals(circuit)
        assert mine[layer, head] == pytest.approx(eigenvalues.sum().real / np.abs(eigenvalues).sum(), abs=1e-6)
    assert share(np.eye(4)) == 1
    assert share(-np.eye(4)) == -1
    checkpoint.model.config.tie_word_embeddings = False
    assert copying(checkpoint) is None


def test_norms_measure_what_weights_do_and_the_length_of_what_is_read(checkpoint):
    rows = rows_of("norms", {"checkpoint": checkpoint.name, "texts": TEXTS[:1], "features": ["noun"]})
    encoding = checkpoint.encode(TEXTS[0])
    maps = norm_maps(checkpoint, encoding).heads
    own = maps / maps.sum(-1, keepdims=True)
    previous = np.diagonal(own, -1, 2, 3).mean(-1)
    np.testing.assert_allclose(values(rows, "previous"), previous, atol=1e-5)
    weights = capture(checkpoint, encoding).weights
    lengths = (maps / np.maximum(weights, 1e-12))[..., -1, :]  # |f(x_j)|, from the last query, which sees all
    lengths = lengths / lengths.mean(-1, keepdims=True)
    np.testing.assert_allclose(values(rows, "vector norm", "start"), lengths[..., 0], rtol=1e-3)
    looked = own[..., 1:, :] if checkpoint.causal else own  # a decoder's first query has no choice
    dog = [k for k, token in enumerate(encoding.tokens) if "dog" in token]
    np.testing.assert_allclose(values(rows, "max", "noun"), looked.mean(2)[..., dog].max(-1), atol=1e-5)


@pytest.mark.thorough
def test_redundancy_names_the_nearest_head_groups_and_what_tasks_share(checkpoint):
    asked = {"checkpoint": checkpoint.name, "tasks": ["sst2", "mrpc"], "limit": 8, "groups": 3}
    rows = rows_of("redundancy", asked, random.Random(1))  # noqa: S311 - no secret
    heads = [row for row in rows if row["kind"] == "head"]
    assert len(heads) == 72
    assert {row["group"] for row in heads} == {1, 2, 3}
    kept = [row for row in rows if row["kind"] == "kept"]
    assert [(row["between"], row["task"], row["other_task"]) for row in kept] == [("task", "mrpc", "sst2")]
    assert kept[0]["low"] <= kept[0]["r"] <= kept[0]["high"]
    shapes = [np.array(row["pattern"]) for row in rows if row["kind"] == "group"]
    assert all(abs(shape.sum(-1) - 1).max() < 1e-3 for shape in shapes)
    alone = rows_of("redundancy", asked | {"tasks": [], "texts": TEXTS[:1], "groups": 40})
    mine = resized(capture(checkpoint, checkpoint.encode(TEXTS[0])).weights.astype(float)).reshape(36, 12, 12)
    for row in (row for row in alone if row["kind"] == "group" and row["heads"] == 1):
        number = next(
            6 * one["layer"] + one["head"] for one in alone if one["kind"] == "head" and one["group"] == row["group"]
        )
        np.testing.assert_allclose(row["pattern"], mine[number], atol=1e-4)


@pytest.mark.parametrize(
    ("study", "given", "said"),
    [
        (roles, {"sequences": 1}, "option sequences of the study roles must be at least 2; got 1"),
        (roles, {"times": 0.5}, "option times of the study roles must be at least 1; got 0.5"),
        (redundancy, {"groups": 1}, "option groups of the study redundancy must be at least 2; got 1"),
        (norms, {"features": ["adverbish"]}, "adverbish"),
    ],
)
def test_options_that_cannot_be_get_one_sentence(study, given, said):
    with pytest.raises(InputError, match=said):
        study.STUDY.units(study.STUDY.read({"texts": ["a b"]} | given))


def test_a_vocabulary_without_words_is_refused():
    measure = roles.STUDY.measure(roles.STUDY.read({}), tiny("bert"))
    torch.manual_seed(0)
    with pytest.raises(InputError, match=r"Repeated tokens with|whole words"):
        measure.repeats(sequences=2, period=5000, seed=0)


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        (["Ġcat", "Ġof", "dog", "Ġa1b", "Ġnaïve", "▁bird", "Ġ", "<s>", "Ġx-ray"], ["Ġcat", "▁bird"]),
        (["cat", "of", "##dog", "a1b", "naïve", "[CLS]", "bird", "."], ["cat", "bird"]),
    ],
)
def test_sequences_consist_of_whole_words_of_three_letters_or_more(pieces, words):
    vocabulary = {piece: number for number, piece in reversed(list(enumerate(pieces)))}
    checkpoint = SimpleNamespace(name="c", tokenizer=SimpleNamespace(get_vocab=lambda: vocabulary))
    assert roles.whole_words(checkpoint) == sorted(vocabulary[word] for word in words)
    with pytest.raises(InputError, match="vocabulary of c has none"):
        roles.whole_words(SimpleNamespace(name="c", tokenizer=SimpleNamespace(get_vocab=lambda: {"of": 0})))
