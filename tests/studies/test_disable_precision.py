"""A sweep of a score in bfloat16 claims what float32 claims: heads near the threshold are computed again.

Small random regression checkpoints, on which bfloat16 alone loses a claim (seeds 1 and 3) or makes one up (seed 5).
The CPU may lack bfloat16, so PyTorch emulates it here.
"""

import random

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification

from core.capture import sweeping
from core.capture.running import predict
from core.models.opening import open_checkpoint
from core.scoring import effects
from core.studies.ablation import disable
from core.studies.ablation.disable import STUDY
from tests.capture.conftest import TEXT, wordpiece
from tests.studies.through_json import rows_of

ROWS, CLAIM = 60, 0.05


@pytest.fixture(autouse=True)
def emulated(monkeypatch):
    torch.set_num_threads(1)
    monkeypatch.setattr(sweeping, "arithmetic", lambda device, dtype: dtype)


def scored(folder, seed):
    """A random regression checkpoint, and rows whose scores are its own with noise."""
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(wordpiece()),
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=0.15,
        num_labels=1,
    )
    BertForSequenceClassification(config).save_pretrained(folder / "checkpoint")
    wordpiece().save_pretrained(folder / "checkpoint")
    chance = random.Random(seed)  # noqa: S311 - test rows
    words = [word for text in TEXT for word in text.split()]
    texts = [" ".join(chance.choices(words, k=chance.randint(4, 9))) for _ in range(ROWS)]
    checkpoint = open_checkpoint(str(folder / "checkpoint"), head="classifier")
    own = predict(checkpoint, [checkpoint.encode(text) for text in texts])[:, 0].numpy()
    gold = np.clip(2.5 + (own - own.mean()) / own.std() + [chance.gauss(0, 0.3) for _ in texts], 0, 5)
    lines = [f'"{text}",{score:.3f},dev' for text, score in zip(texts, gold, strict=True)]
    lines += [f'"{text}",2.5,train' for text in texts[:3]]
    (folder / "rows.csv").write_text("\n".join(["sentence,score,split", *lines]) + "\n")
    return {"checkpoint": str(folder / "checkpoint"), "task": str(folder / "rows.csv"), "limit": None}


def variants(rows):
    return {row["name"]: row for row in rows if row["kind"] == "variant"}


def claimed(rows):
    return {name for name, row in variants(rows).items() if row["p"] <= CLAIM}


@pytest.mark.parametrize(("seed", "alone_has_others"), [(1, True), pytest.param(3, False, marks=pytest.mark.slow)])
def test_claims_are_those_of_float32_though_bfloat16_alone_may_have_others(
    tmp_path, monkeypatch, seed, alone_has_others
):
    options = scored(tmp_path, seed)
    exact, low = rows_of("disable", options), rows_of("disable", options | {"dtype": "bf16"})
    assert claimed(low) == claimed(exact)
    assert all(variants(low)[name]["float32"] for name in claimed(low))
    within = low[0]["effect_within"]
    for name, row in variants(exact).items():
        assert abs(variants(low)[name]["pearson_change"] - row["pearson_change"]) <= within
    assert low[0]["pearson"] == pytest.approx(exact[0]["pearson"])
    assert "effect_within" not in exact[0]
    monkeypatch.setattr(disable, "possible_claims", lambda *a, **k: [])
    monkeypatch.setattr(disable, "mixed_precision", lambda low, exact: low)
    others = claimed(rows_of("disable", options | {"dtype": "bf16"})) != claimed(exact)
    assert others == alone_has_others  # what it is there for


def test_what_is_asked_again_is_what_might_be_claimed():
    chance = np.random.default_rng(0)
    exact = chance.normal(0, 1, (12, 200))
    exact[5] += 0.25
    low = exact + chance.normal(0, 0.5, exact.shape)
    first = np.where(np.isin(np.arange(12), disable.sampled_variants(12))[:, None], exact, np.nan)
    assert 5 not in disable.sampled_variants(12)
    asked = disable.possible_claims(low, first, seed=0)
    assert 5 in asked
    assert len(asked) < 8  # not simply all
    first[asked] = exact[asked]
    p = effects.max_t(np.zeros(200), disable.mixed_precision(low, first), seed=0)
    assert (p <= CLAIM).tolist() == (effects.max_t(np.zeros(200), exact, seed=0) <= CLAIM).tolist()


def test_the_deviation_is_twice_the_largest_that_was_seen():
    exact = np.zeros((3, 4))
    exact[2] = np.nan
    low = np.array([[0.0, 0, 0, 0.4], [0.2, 0, 0, 0], [9, 9, 9, 9]])
    seen = disable.deviation_of(low, exact)
    assert seen.effect == pytest.approx(2 * 0.1)
    assert seen.variants == 2
    assert seen.t == pytest.approx(2 / np.sqrt(3))  # one row that changed, beside two unseen ones of its size


def test_without_deviation_nothing_is_asked_again_but_claims():
    exact = np.random.default_rng(1).normal(0, 1, (12, 100))
    first = np.where(np.isin(np.arange(12), disable.sampled_variants(12))[:, None], exact, np.nan)
    p = effects.max_t(np.zeros(100), exact, seed=0)
    assert disable.possible_claims(exact, first, seed=0) == [
        k for k in np.flatnonzero(p <= CLAIM) if np.isnan(first[k]).any()
    ]


@pytest.mark.thorough
def test_a_sweep_in_float32_has_no_second_round(tmp_path):
    options = STUDY.read(scored(tmp_path, 1))
    parts = [STUDY.run(options, unit).partial for unit in STUDY.units(options)]
    assert parts[0].in_float32 == ()
    assert STUDY.more(options, parts) == []
