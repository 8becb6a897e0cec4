"""The recipe of the bundled checkpoints: what Muon updates, the learning rate, and a run that was interrupted."""

import itertools
import json

import pytest
import torch
from safetensors.torch import load_file

from data.recipes import pretrain, token_corpus
from data.recipes.pretrain import Optimizers, Recipe, build, log_shares, share_of_peak
from data.recipes.token_corpus import BERT_SPECIALS, END_OF_TEXT, Corpus

SMALL = {"layers": 2, "heads": 2, "hidden": 16, "vocabulary": 300, "positions": 128, "batch_tokens": 256}


def recipe(kind: str, **changes) -> Recipe:
    return Recipe(kind, **SMALL, **({"tokens": 256 * 12, "warm_up_steps": 2} | changes))


@pytest.fixture(params=["encoder", "decoder"])
def corpus(request, tmp_path):
    text = tmp_path / "corpus.txt"
    nouns = ("lamp", "river", "teacher", "window", "garden", "letter", "engine", "ticket")
    lines = [f"The {a} near the {b} was seen by number {k}." for k in range(40) for a in nouns for b in nouns]
    text.write_text("\n".join(line + ("\n" if k % 8 == 7 else "") for k, line in enumerate(lines)))
    tokenizer = token_corpus.train_tokenizer(request.param, text, SMALL["vocabulary"])
    token_corpus.tokenize(tokenizer, request.param, text, tmp_path)
    names = BERT_SPECIALS if request.param == "encoder" else [END_OF_TEXT]
    return request.param, Corpus(tmp_path), {name: tokenizer.token_to_id(name) for name in names}


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_muon_updates_the_matrices_of_the_blocks_and_nothing_else(kind):
    model = build(recipe(kind))
    adam, muon = (optimizer for optimizer, _ in Optimizers(model, recipe(kind)).each)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    updated = {names[id(p)] for group in muon.param_groups for p in group["params"]}
    assert updated
    assert all(name.endswith("weight") and ("layer." in name or "h." in name) for name in updated)
    assert not any("embed" in name or "wte" in name or "wpe" in name or "ln_" in name for name in updated)
    others = {names[id(p)] for group in adam.param_groups for p in group["params"]}
    assert updated | others == set(names.values())
    assert not updated & others


def test_the_rate_rises_stays_and_falls_to_zero():
    chosen = recipe("encoder", tokens=256 * 1000, warm_up_steps=10)
    shares = [share_of_peak(step, chosen) for step in range(1001)]
    assert shares[0] == pytest.approx(0.1)
    assert shares[9:801] == [1.0] * 792
    assert shares[900] == pytest.approx(0.5)
    assert shares[1000] == 0.0


def test_snapshots_on_a_log_scale_begin_at_random_weights_and_end_with_the_run():
    shares = log_shares(20)
    assert len(set(shares)) == 20
    assert (shares[0], shares[1], shares[-1]) == (0.0, 0.001, 1.0)
    ratios = [late / early for early, late in itertools.pairwise(shares[1:])]
    assert max(ratios) / min(ratios) == pytest.approx(1, abs=0.01)
    with pytest.raises(SystemExit, match="at least 3"):
        log_shares(1)


class StoppedError(Exception):
    """The run was cut off."""


@pytest.mark.thorough
def test_a_run_that_was_interrupted_ends_with_the_same_weights(corpus, tmp_path, monkeypatch):
    kind, rows, specials = corpus
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    whole.mkdir()
    parts.mkdir()
    expected = pretrain.train(recipe(kind), rows, specials, whole, 6).state_dict()
    calls, losses = iter(range(100)), pretrain.losses

    def until_eight(model, batch):
        if torch.is_grad_enabled() and next(calls) == 8:
            raise StoppedError
        return losses(model, batch)

    monkeypatch.setattr(pretrain, "losses", until_eight)
    with pytest.raises(StoppedError):
        pretrain.train(recipe(kind), rows, specials, parts, 6)
    monkeypatch.setattr(pretrain, "losses", losses)
    resumed = pretrain.train(recipe(kind), rows, specials, parts, 6).state_dict()
    assert all(torch.equal(expected[name], resumed[name]) for name in expected)
    assert [json.loads(line)["step"] for line in (parts / "log.jsonl").read_text().splitlines()] == [6, 12]
    last = load_file(whole / "snapshots" / "1.safetensors")
    assert all(torch.equal(tensor, expected[name].half()) for name, tensor in last.items())


def test_a_run_begins_at_the_weights_of_a_checkpoint(tmp_path):
    whole = recipe("encoder")
    model = build(whole)
    torch.nn.init.constant_(model.bert.embeddings.word_embeddings.weight, 0.25)
    pretrain.snapshot(model, tmp_path, 1.0)
    (tmp_path / "snapshots" / "1.safetensors").rename(tmp_path / "model.safetensors")
    begun = build(whole)
    pretrain.load_weights(begun, tmp_path)
    assert torch.equal(begun.cls.predictions.decoder.weight, begun.bert.embeddings.word_embeddings.weight)
    for name, tensor in model.state_dict().items():
        assert torch.allclose(begun.state_dict()[name], tensor, atol=1e-3), name  # the file is float16


def test_weights_of_another_design_are_refused_by_name(tmp_path):
    pretrain.snapshot(build(recipe("decoder")), tmp_path, 1.0)
    (tmp_path / "snapshots" / "1.safetensors").rename(tmp_path / "model.safetensors")
    with pytest.raises(SystemExit, match="other weights than this recipe's"):
        pretrain.load_weights(build(recipe("encoder")), tmp_path)
