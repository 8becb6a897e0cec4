"""Queries and keys as sums of named contributions: they add up in every family, and planted heads are told."""

import copy
import gc

import numpy as np
import pytest
import torch

from core.capture import contributions, running
from core.capture.running import capture
from core.errors import InputError, InterventionError
from core.models.checkpoint import Checkpoint
from core.studies.explanation import why
from tests.capture import conftest as tiny

# families that compute in float64 throughout; transformers turns the others' positions or scales their norms in
# float32, which rounds the scores themselves at 2e-7
ALL_FLOAT64 = ["bert", "roberta", "albert", "electra", "distilbert", "gpt2", "opt", "xlm-roberta"]
ROTARY = [
    "modernbert",
    "eurobert",
    "llama",
    "mistral",
    "qwen2",
    "qwen3",
    "gemma",
    "gemma3_text",
    "phi",
    "phi3",
    "olmo2",
]
CLAIMED = [*ALL_FLOAT64, *ROTARY, "gpt_neox"]
REFUSED = ["mobilebert", "gemma2", "deberta", "xlnet", "gpt_neo", "falcon"]


def opened(name: str):
    in_new = name in tiny.NEW_FAMILIES and name not in tiny.FAMILIES
    return tiny.newer(name) if in_new else tiny.tiny(name)


def read(checkpoint, *, part: str = "", by_head: bool = False, norms: bool = False):
    """Every layer's inputs of two short sentences, by (layer, input), and the encodings."""
    encodings = [checkpoint.encode(text, None) for text in tiny.TEXT[:2]]
    layers = {}

    def take(inputs, numbers):
        for row, number in enumerate(numbers):
            layers[inputs.layer, number] = (inputs, row)

    contributions.take_head_inputs(checkpoint, encodings, take, part=part, by_head=by_head, norms=norms)
    return layers, encodings


@pytest.mark.parametrize(
    ("name", "by_head"),
    [
        *((name, True) for name in CLAIMED),
        ("bert", False),
        *(
            pytest.param(name, False, marks=pytest.mark.slow) for name in CLAIMED if name != "bert"
        ),  # a sum of the others
    ],
)
def test_contributions_add_up_to_the_maps_of_every_family(name, by_head):
    checkpoint = opened(name)
    layers, encodings = read(checkpoint, by_head=by_head)
    for number, encoding in enumerate(encodings):
        maps = capture(checkpoint, encoding).weights
        for layer in range(checkpoint.layers):
            inputs, row = layers[layer, number]
            assert inputs.weights[row].numpy() == pytest.approx(maps[layer], abs=3e-6)
    kinds = {component.kind for component in layers[checkpoint.layers - 1, 0][0].query_components}
    assert {"token", "head" if by_head else "attention", "feed-forward"} <= kinds


@pytest.mark.thorough
@pytest.mark.parametrize("name", CLAIMED)
def test_they_add_up_to_the_scores_in_float32(name):
    checkpoint = opened(name)
    assert largest_gap(checkpoint, checkpoint.encode(tiny.TEXT[0], None)) < 1e-5


@pytest.mark.parametrize("name", [*ALL_FLOAT64, "phi", "gpt_neox"])
def test_they_add_up_to_the_scores_in_float64(name):
    checkpoint = opened(name)
    checkpoint.model.double()
    assert largest_gap(checkpoint, checkpoint.encode(tiny.TEXT[0], None)) < 1e-10


def largest_gap(checkpoint, encoding, part=""):
    """Between the sums and the scores that the model itself computes, over a row's largest |score|."""
    summed, gaps, heads = [], [], checkpoint.head_set(part)
    contributions.take_head_inputs(checkpoint, [encoding], lambda inputs, _: summed.append(inputs.scores), part=part)
    every = scores_by_the_model(checkpoint, encoding)
    for ours, call in zip(summed, heads.calls, strict=True):
        largest = every[call].abs().amax(-1, keepdim=True).clamp(min=1e-30)  # a row of zeros must be one of zeros
        gaps.append(float(((ours - every[call]).abs() / largest).max()))
    assert len(gaps) == heads.layers
    return max(gaps)


def scores_by_the_model(checkpoint, encoding):
    """Every layer's scores from the queries and keys that the model itself hands over."""
    scores = []

    def keep(call, query, key, mask, about):
        scaling = about["scaling"] or query.shape[-1] ** -0.5
        bias = about.get("position_bias")
        scores.append(query @ key.repeat_interleave(query.shape[1] // key.shape[1], 1).mT * scaling)
        scores[-1] = scores[-1] if bias is None else scores[-1] + bias

    with torch.no_grad(), running.prepared(checkpoint) as run:
        run.opener = keep
        checkpoint.model(**checkpoint.inputs([encoding]))
    return scores


@pytest.mark.thorough
@pytest.mark.parametrize("name", tiny.TRANSLATORS)
def test_an_encoder_decoder_has_all_three_sets(name):
    checkpoint = tiny.translator(name)
    for heads in checkpoint.sets:
        layers, encodings = read(checkpoint, part=heads.part)
        maps = capture(checkpoint, encodings[0], part=heads.part).weights
        for layer in range(heads.layers):
            inputs, row = layers[layer, 0]
            assert inputs.weights[row].numpy() == pytest.approx(maps[layer], abs=3e-6)
        assert largest_gap(checkpoint, encodings[0], heads.part) < 1e-5
    exact = Checkpoint(checkpoint.name, copy.deepcopy(checkpoint.model).double(), checkpoint.tokenizer)
    for heads in exact.sets:
        assert largest_gap(exact, encodings[0], heads.part) < 1e-10
    cross = layers[0, 0][0]
    assert {component.part for component in cross.key_components if component.layer is not None} == {"encoder"}


@pytest.mark.parametrize("name", REFUSED)
def test_a_family_that_is_not_exact_is_refused_in_a_sentence(name):
    with pytest.raises(InterventionError, match=r"[Cc]hoose a(nother)? checkpoint"):
        read(opened(name))


def test_half_precision_is_refused():
    checkpoint = opened("bert")
    checkpoint.model.to(torch.bfloat16)
    with pytest.raises(InterventionError, match="Open it in float32"):
        read(checkpoint)


class Int8Linear(torch.nn.Module):
    """A linear layer whose weights, and inputs where that is asked, are rounded to 8 bits."""

    def __init__(self, linear, *, rounds_inputs):
        super().__init__()
        self.scale, self.rounds_inputs = linear.weight.detach().abs().max() / 127, rounds_inputs
        self.steps, self.bias = (linear.weight.detach() / self.scale).round().to(torch.int8), linear.bias

    def forward(self, states):
        if self.rounds_inputs:
            step = states.abs().max() / 127
            states = (states / step).round() * step
        return torch.nn.functional.linear(states, self.steps * self.scale, self.bias)


def test_terms_of_8_bit_weights_are_those_of_the_weights_as_they_are_used_and_rounded_inputs_are_refused():
    for rounds_inputs in (False, True):
        checkpoint = opened("bert")
        for layer in checkpoint.model.encoder.layer:
            own = layer.attention.self
            own.query = Int8Linear(own.query, rounds_inputs=rounds_inputs)
        if rounds_inputs:
            with pytest.raises(InterventionError, match="only if contributions by components add up to the scores"):
                read(checkpoint)
            with pytest.raises(InterventionError, match="only if contributions by components add up to the scores"):
                why.share_sums(checkpoint, [checkpoint.encode(tiny.TEXT[0], None)])
        else:
            assert largest_gap(checkpoint, checkpoint.encode(tiny.TEXT[0], None)) < 1e-5


def test_the_model_is_as_it_was_afterwards():
    checkpoint = opened("llama")
    encoding = checkpoint.encode(tiny.TEXT[0], None)
    before = capture(checkpoint, encoding).weights
    read(checkpoint, norms=True)
    assert np.array_equal(capture(checkpoint, encoding).weights, before)
    assert not any(module._forward_hooks for module in checkpoint.model.modules())


def test_layers_above_the_last_wanted_are_not_taken_apart():
    checkpoint, taken = opened("bert"), []
    encoding = checkpoint.encode(tiny.TEXT[0], None)
    contributions.take_head_inputs(checkpoint, [encoding], lambda inputs, _: taken.append(inputs.layer), layers=[1])
    assert taken == [1]


# ---------------------------------------------------------------- planted heads


def planted():
    """A GPT-2 of two layers whose heads are set by hand; words, places and copies live in rooms of their own.

    L1H1 looks at the token before, by place, and writes its word into the third room. L1H2 looks at the same word.
    L2H1 looks where the word before a key is the query's: induction. L2H2 sees nothing.
    """
    room, width, head = 16, 48, 24
    checkpoint = tiny.built("gpt2", {"n_embd": width, "n_layer": 2, "n_head": 2, "n_positions": 32}, encodes=False)
    generator = torch.Generator().manual_seed(3)
    body = checkpoint.model
    for parameter in body.parameters():
        torch.nn.init.zeros_(parameter)
    for module in body.modules():
        if isinstance(module, torch.nn.LayerNorm):
            torch.nn.init.ones_(module.weight)

    def rows(count):  # of no mean, so that a LayerNorm leaves each room to itself
        drawn = torch.randn(count, room, generator=generator)
        return torch.nn.functional.normalize(drawn - drawn.mean(1, keepdim=True), dim=1) * 4

    body.wte.weight.data[:, :room] = rows(body.wte.weight.shape[0])
    places = rows(body.wpe.weight.shape[0])
    body.wpe.weight.data[:, room : 2 * room] = places
    eye, before = torch.eye(room), torch.linalg.pinv(places[1:]) @ places[:-1]  # place i -> place i - 1

    def set_head(layer, number, reads_query, reads_key, query, key, value=None):
        matrix, out = body.h[layer].attn.c_attn.weight.data, body.h[layer].attn.c_proj.weight.data
        start = number * head
        matrix[reads_query * room : (reads_query + 1) * room, start : start + room] = query
        matrix[reads_key * room : (reads_key + 1) * room, width + start : width + start + room] = key
        if value is not None:
            matrix[:room, 2 * width + start : 2 * width + start + room] = eye
            out[start : start + room, 2 * room :] = eye * value

    set_head(0, 0, 1, 1, before * 3, eye, value=1.0)
    set_head(0, 1, 0, 0, eye * 3, eye)
    set_head(1, 0, 0, 2, eye * 3, eye)
    return checkpoint


def test_planted_heads_are_told_by_their_shares():
    checkpoint = planted()
    text = "old bag old dog heavy old bag dog heavy bag"
    layers = why.share_sums(checkpoint, [checkpoint.encode(text, None)], by_head=True)
    found = {(sums.layer, sums.weighting): sums for sums in layers}

    def share(layer, head, level, query_part, key_part):
        sums = found[layer, "even"]
        return sums.moments.ratios().value[head, sums.names.index(why.PartName(level, query_part, key_part))]

    assert share(0, 0, "pair", "position", "position") == pytest.approx(1, abs=0.02)
    assert share(0, 1, "pair", "token", "token") == pytest.approx(1, abs=0.02)
    assert share(1, 0, "pair", "token", "heads of L1") == pytest.approx(1, abs=0.02)
    assert share(1, 0, "key head", why.ANY, "L1H1") == pytest.approx(1, abs=0.02)
    assert share(1, 0, "sort", "earlier heads", why.ANY) == pytest.approx(0.5, abs=0.02)


def test_shares_by_part_add_up_to_one_in_a_real_family():
    checkpoint = opened("bert")
    encodings = [checkpoint.encode(text, None) for text in tiny.TEXT]
    for sums in why.share_sums(checkpoint, encodings, by_head=True):
        ratios = sums.moments.ratios()
        for level in ("pair", "query", "key", "sort"):
            columns = [number for number, name in enumerate(sums.names) if name.level == level]
            assert ratios.value[:, columns].sum(1) == pytest.approx(1, abs=1e-6)


def shares_both_ways(checkpoint, encodings, part=""):
    """Score shares with every contribution computed, and with one on each side told by difference, layer by layer."""
    direct = why.ShareSums()
    contributions.take_head_inputs(checkpoint, encodings, direct.take, part=part, by_head=True)
    found = why.share_sums(checkpoint, encodings, part=part, by_head=True)
    for sums, shares in zip((direct.layers[key] for key in sorted(direct.layers)), found, strict=True):
        assert sums.names == shares.names
        yield sums.moments.ratios().value, shares.moments.ratios().value


@pytest.mark.thorough
@pytest.mark.parametrize("name", CLAIMED)
def test_a_contribution_told_by_difference_has_the_shares_that_it_has_when_computed(name):
    checkpoint = opened(name)
    encodings = [checkpoint.encode(tiny.TEXT[0], None)] * 2  # of a batch's first input it is computed all the same
    for direct, by_difference in shares_both_ways(checkpoint, encodings):
        assert by_difference == pytest.approx(direct, abs=1e-5, nan_ok=True)


@pytest.mark.thorough
@pytest.mark.parametrize("name", tiny.TRANSLATORS)
def test_in_every_set_of_an_encoder_decoder_it_has_them_too(name):
    """In float64: random Marian weights hardly tell keys apart, and shares of next to nothing round at 1e-5."""
    checkpoint = tiny.translator(name)
    exact = Checkpoint(checkpoint.name, copy.deepcopy(checkpoint.model).double(), checkpoint.tokenizer)
    for heads in exact.sets:
        for direct, by_difference in shares_both_ways(exact, [exact.encode(tiny.TEXT[0], None)] * 2, heads.part):
            assert by_difference == pytest.approx(direct, abs=1e-8, nan_ok=True)


@pytest.mark.parametrize("name", ["bert", "gpt_neox"])
def test_in_float64_a_contribution_told_by_difference_has_its_shares_to_10_digits(name):
    checkpoint = opened(name)
    checkpoint.model.double()
    encodings = [checkpoint.encode(tiny.TEXT[0], None)] * 2
    for direct, by_difference in shares_both_ways(checkpoint, encodings):
        assert by_difference == pytest.approx(direct, abs=1e-10, nan_ok=True)


def test_contributions_are_told_by_difference_where_that_is_asked():
    checkpoint, places = opened("bert"), []
    encodings = [checkpoint.encode(tiny.TEXT[0], None)] * 2
    for by_difference in (False, True):
        contributions.take_head_inputs(
            checkpoint, encodings, lambda inputs, _: places.append(inputs.left_over), by_difference=by_difference
        )
    assert places == [None] * checkpoint.layers + [(0, 0)] * checkpoint.layers


@pytest.mark.parametrize("name", ["mobilebert", "gemma2"])
def test_shares_by_difference_refuse_a_family_that_is_not_exact(name):
    checkpoint = opened(name)
    with pytest.raises(InterventionError, match=r"[Cc]hoose a(nother)? checkpoint"):
        why.share_sums(checkpoint, [checkpoint.encode(tiny.TEXT[0], None)])


def bytes_left(checkpoint, encodings, *, by_head, sums):
    """Bytes of the tensors of a pass that are there after it, its sums held, without a collection of garbage."""
    gc.disable()
    gc.freeze()  # what was there before is not looked at: in a whole session that is a million objects
    try:
        contributions.take_head_inputs(checkpoint, encodings, sums.take, by_head=by_head)
        tensors = [one.untyped_storage() for one in gc.get_objects() if type(one) is torch.Tensor]
    finally:
        gc.enable()
    return sum({storage.data_ptr(): storage.nbytes() for storage in tensors}.values())


class LeakySums(why.ShareSums):
    """Sums that hold what they were handed."""

    def __init__(self):
        super().__init__()
        self.queries = []

    def take(self, inputs, numbers):
        super().take(inputs, numbers)
        self.queries.append(inputs.query)


@pytest.mark.parametrize("by_head", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_memory_does_not_grow_with_rows(monkeypatch, by_head):
    monkeypatch.setattr(contributions, "BATCH_TOKENS", 128)
    checkpoint = opened("bert")
    encodings = [checkpoint.encode(tiny.TEXT[0], None)]
    few, many, held = (
        bytes_left(checkpoint, encodings * count, by_head=by_head, sums=sums())
        for count, sums in ((4, why.ShareSums), (12, why.ShareSums), (12, LeakySums))
    )
    assert many == few
    assert held > few  # what is held is counted


def test_removing_what_a_head_reads_changes_its_map_and_nothing_else_does():
    checkpoint = planted()
    text = "old bag old dog heavy old bag dog heavy bag"
    first = why.removal(checkpoint, [checkpoint.encode(text, None)])[0]
    place, word = (first.names.index(f"{name} in the query") for name in ("position", "token"))
    assert first.held[place, 0] > 0.3 > 0.01 > first.held[word, 0]
    assert first.held[word, 1] > 0.1 > 0.01 > first.held[place, 1]
    assert np.isfinite(first.recomputed).all()


def test_removal_is_refused_where_positions_are_no_contribution():
    checkpoint = opened("llama")
    with pytest.raises(InputError, match="encode positions in the attention scores"):
        why.removal(checkpoint, [checkpoint.encode(tiny.TEXT[0], None)])
