"""Encoder-decoders: three sets of heads, maps equal eager, operators bite in each, and what they refuse."""

import numpy as np
import pytest
import torch
from transformers import AutoModelForSeq2SeqLM

from core.attention import Head
from core.capture.function import NAME
from core.capture.interventions import Intervention
from core.capture.outputs import mean_outputs
from core.capture.running import capture, captured_parts, run
from core.capture.selfcheck import eager_parts, run_checks
from core.capture.words import word_maps
from core.errors import CheckpointError, InterventionError
from core.models.opening import open_checkpoint
from tests.capture.conftest import TEXT, TRANSLATORS, tiny, translator

SHAPES = {"encoder": (3, 4), "decoder": (2, None), "cross": (2, None)}


@pytest.fixture(params=TRANSLATORS)
def checkpoint(request):
    return translator(request.param)


def states(checkpoint, encoding, *interventions):
    kept = []
    run(checkpoint, [encoding], [], interventions=interventions, on_batch=lambda _, output: kept.append(output[0][0]))
    return kept[0]


def every_head(checkpoint):
    return [
        Head(layer, head, own.part)
        for own in checkpoint.sets
        for layer in range(own.layers)
        for head in range(own.heads)
    ]


def test_names_of_heads_tell_the_sets_apart():
    assert [str(Head(0, 1, part)) for part in ("encoder", "decoder", "cross", "")] == [
        "Enc L1H2",
        "Dec L1H2",
        "Cross L1H2",
        "L1H2",
    ]
    assert [Head.parse(name) for name in ("enc l1h2", "Cross L1-H2")] == [Head(0, 1, "encoder"), Head(0, 1, "cross")]


def test_every_translator_passes_its_self_check(checkpoint):
    assert [finding for finding in run_checks(checkpoint) if not finding.passed] == []


def test_maps_of_all_sets_equal_eager(checkpoint):
    encoding = checkpoint.encode(TEXT[0], TEXT[1])
    heads = checkpoint.sets[1].heads
    for maps, eager in zip(captured_parts(checkpoint, encoding), eager_parts(checkpoint, encoding), strict=True):
        assert np.abs(maps.weights - eager).max() <= 1e-6
        layers, own = SHAPES[maps.part]
        queries = encoding if maps.part == "encoder" else encoding.target
        assert maps.weights.shape[:3] == (layers, own or heads, len(queries))
        assert maps.keys == (encoding.target if maps.part == "decoder" else encoding).tokens


@pytest.mark.thorough
@pytest.mark.parametrize("family", ["bart", "t5"])
def test_every_head_of_every_set_bites(family):
    checkpoint = translator(family)
    encoding = checkpoint.encode(TEXT[0], TEXT[2])
    plain = states(checkpoint, encoding)
    for head in every_head(checkpoint):
        for operator in ("disable", "zero"):
            changed = states(checkpoint, encoding, Intervention(operator, frozenset({head})))
            assert (changed - plain).abs().max() > 1e-6, (operator, str(head))


@pytest.mark.parametrize("family", ["bart", "t5"])
def test_a_disabled_head_is_uniform_over_what_its_set_sees(family):
    checkpoint = translator(family)
    encoding = checkpoint.encode(TEXT[0], TEXT[2])
    heads = frozenset(Head(1, 1, part) for part in ("encoder", "decoder", "cross"))
    for maps, plain in zip(
        captured_parts(checkpoint, encoding, [Intervention("disable", heads)]),
        captured_parts(checkpoint, encoding),
        strict=True,
    ):
        seen = np.ones(maps.weights.shape[2:])
        seen = np.tril(seen) if maps.part == "decoder" else seen
        assert np.allclose(maps.weights[1, 1], seen / seen.sum(-1, keepdims=True), atol=1e-6)
        assert np.allclose(maps.weights[0], plain.weights[0], atol=1e-6) == (maps.part != "cross")


def test_inputs_of_other_lengths_do_not_share_a_batch_and_give_what_they_give_alone():
    checkpoint = translator("bart")
    some = [checkpoint.encode(TEXT[k], TEXT[j]) for k, j in ((0, 1), (0, 2), (1, 0), (0, 3))]
    together = {}

    def keep(inputs, output):
        together.update({k: output[0][row] for row, k in enumerate(inputs)})

    run(checkpoint, some, [], on_batch=keep)
    for k, encoding in enumerate(some):
        assert torch.allclose(together[k], states(checkpoint, encoding), atol=1e-5)


def test_the_attention_function_is_in_every_stack():
    checkpoint = translator("t5")
    capture(checkpoint, checkpoint.encode(TEXT[0], TEXT[1]))
    stacks = (checkpoint.model.config, checkpoint.model.encoder.config, checkpoint.model.decoder.config)
    assert {config._attn_implementation for config in stacks} == {NAME}


def test_a_text_alone_is_read_by_the_encoder():
    checkpoint = translator("t5")
    maps = capture(checkpoint, checkpoint.encode(TEXT[0]))
    assert maps.part == "encoder"
    assert maps.weights.shape[:2] == (checkpoint.layers, checkpoint.heads)


def test_words_of_cross_attention_are_of_two_sentences():
    checkpoint = translator("bart")
    encoding = checkpoint.encode(TEXT[3], TEXT[2])
    maps = word_maps(capture(checkpoint, encoding, part="cross"), encoding)
    assert maps.weights.shape[2:] == (len(maps.tokens), len(maps.keys))
    assert np.allclose(maps.weights.sum(-1), 1, atol=1e-5)
    assert maps.tokens[1:4] == ("isn't", "it", "strange")


def test_what_has_no_place_in_a_set_is_refused_in_a_sentence():
    checkpoint = translator("bart")
    encoding = checkpoint.encode(TEXT[0], TEXT[1])
    with pytest.raises(InterventionError, match='"previous" is undefined for cross-attention'):
        states(checkpoint, encoding, Intervention("previous", frozenset({Head(0, 0, "cross")})))
    with pytest.raises(InterventionError, match="cannot attend to the next token"):
        states(checkpoint, encoding, Intervention("next", frozenset({Head(0, 0, "decoder")})))
    source = mean_outputs(tiny("bert"), [tiny("bert").encode(text) for text in TEXT])
    with pytest.raises(InterventionError, match="an encoder-decoder has two"):
        states(checkpoint, encoding, Intervention("mean", frozenset({Head(0, 0, "encoder")}), source))
    with pytest.raises(CheckpointError, match="one set of heads"):
        capture(tiny("bert"), tiny("bert").encode(TEXT[0]), part="cross")


def test_a_saved_one_opens_and_one_without_a_start_is_refused(tmp_path):
    checkpoint = translator("t5", AutoModelForSeq2SeqLM)
    checkpoint.model.save_pretrained(tmp_path)
    checkpoint.tokenizer.save_pretrained(tmp_path)
    opened = open_checkpoint(str(tmp_path), device="cpu", head="language")
    pairs = [captured_parts(one, one.encode(TEXT[0], TEXT[1])) for one in (opened, checkpoint)]
    assert all(np.allclose(a.weights, b.weights, atol=1e-6) for a, b in zip(*pairs, strict=True))
    opened.model.config.decoder_start_token_id = None
    with pytest.raises(CheckpointError, match=r"has no decoder_start_token_id\. Add it"):
        opened.encode(TEXT[0], TEXT[1])
