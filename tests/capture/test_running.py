"""Capture in every family: equal to eager, alone and in batches; nothing kept, nothing padded."""

import numpy as np
import pytest
import torch

from core.attention import Head
from core.capture.interventions import Intervention
from core.capture.long_maps import window
from core.capture.running import batches, capture, predict, prepared, run
from core.capture.selfcheck import eager_parts, run_checks
from core.errors import CheckpointError
from tests.capture.conftest import TEXT, tiny, translator


@pytest.mark.thorough
def test_every_family_passes_its_self_check(checkpoint):
    failed = [finding for finding in run_checks(checkpoint) if not finding.passed]
    assert not failed


def test_maps_equal_eager_output_attentions(checkpoint):
    for text, pair in ((TEXT[0], None), (TEXT[1], TEXT[2]), ("it", None)):
        encoding = checkpoint.encode(text, pair)
        off = np.abs(capture(checkpoint, encoding).weights - eager_parts(checkpoint, encoding)[0]).max()
        assert off <= 1e-6


@pytest.mark.thorough
def test_a_batch_of_mixed_lengths_gives_the_maps_of_single_inputs(checkpoint):
    encodings = [checkpoint.encode(text) for text in (TEXT[0], TEXT[3], TEXT[0], "a dog", TEXT[2])]
    seen = {}

    class Keep:
        def update(self, layer, weights, inputs):
            for row, k in enumerate(inputs):
                seen[k, layer] = weights[row].numpy().copy()

    run(checkpoint, encodings, [Keep()])
    assert len(seen) == len(encodings) * checkpoint.layers
    for k, encoding in enumerate(encodings):
        single = capture(checkpoint, encoding)
        together = np.stack([seen[k, layer] for layer in range(checkpoint.layers)])
        assert np.abs(single.weights - together).max() <= 1e-6


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_padded_and_unpadded_agree(family):
    checkpoint = tiny(family)
    short, long = checkpoint.encode(TEXT[3]), checkpoint.encode(TEXT[2], TEXT[1])
    alone = capture(checkpoint, short).weights
    inputs = checkpoint.inputs([short])
    room = len(long) - len(short)
    padded = {name: torch.nn.functional.pad(one, (0, room)) for name, one in inputs.items()}
    checkpoint.model.set_attn_implementation("eager")
    with torch.no_grad():
        output = checkpoint.model(**padded, output_attentions=True)
    cropped = torch.stack([one[0, :, : len(short), : len(short)] for one in output.attentions]).numpy()
    assert np.abs(cropped - alone).max() <= 1e-6


def test_batches_hold_equal_lengths_and_every_input_once():
    checkpoint = tiny("bert")
    encodings = [checkpoint.encode(" ".join(["dog"] * n)) for n in (5, 2, 5, 9, 2, 2, 5)]
    found = list(batches(encodings, batch_tokens=2 * len(encodings[0])))
    assert sorted(k for batch in found for k in batch) == list(range(7))
    assert all(len({len(encodings[k]) for k in batch}) == 1 for batch in found)
    assert max(len(batch) * len(encodings[batch[0]]) for batch in found) <= 2 * len(encodings[0])


def test_a_layer_that_nobody_watches_is_not_computed_as_a_map(monkeypatch):
    checkpoint, computed = tiny("bert"), []
    import core.capture.function as function

    honest = function.attention_weights
    monkeypatch.setattr(function, "attention_weights", lambda *a, **k: computed.append(1) or honest(*a, **k))

    class Look:
        def update(self, layer, weights, inputs):
            assert layer == 1

    run(checkpoint, [checkpoint.encode(TEXT[0])], [Look()], layers=[1])
    assert len(computed) == 1


def test_the_model_is_left_as_it_was():
    checkpoint, encoding = tiny("gpt2"), tiny("gpt2").encode(TEXT[0])
    before = {name: value.clone() for name, value in checkpoint.model.state_dict().items()}
    with torch.no_grad():
        plain = checkpoint.model(**checkpoint.inputs([encoding]))[0]
    capture(checkpoint, encoding, [Intervention("disable", frozenset({Head(0, 1)}))])
    with torch.no_grad():
        again = checkpoint.model(**checkpoint.inputs([encoding]))[0]
    assert torch.allclose(plain, again, atol=1e-6)
    assert all(torch.equal(before[name], value) for name, value in checkpoint.model.state_dict().items())


@pytest.mark.parametrize("family", ["xlnet", "gpt_neo"])
def test_families_outside_the_interface_capture_and_take_interventions(family):
    checkpoint = tiny(family)
    encoding = checkpoint.encode(TEXT[0])
    disabled = capture(checkpoint, encoding, [Intervention("disable", frozenset({Head(0, 0)}))])
    seen = disabled.visible(0)
    assert len(disabled) == len(encoding)
    assert np.allclose(disabled.of(Head(0, 0)), seen / seen.sum(-1, keepdims=True), atol=1e-6)


def test_predictions_need_a_classifier():
    checkpoint = tiny("bert")
    with pytest.raises(CheckpointError, match="classification head"):
        predict(checkpoint, [checkpoint.encode(TEXT[0])])


def test_two_threads_with_different_interventions_share_one_model():
    from concurrent.futures import ThreadPoolExecutor

    checkpoint = tiny("bert")
    encoding = checkpoint.encode(TEXT[0], TEXT[1])
    alone = {
        h: capture(checkpoint, encoding, [Intervention("disable", frozenset({Head(0, h)}))]).weights for h in range(4)
    }

    def once(k):
        h = k % 4
        return np.array_equal(
            capture(checkpoint, encoding, [Intervention("disable", frozenset({Head(0, h)}))]).weights, alone[h]
        )

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(once, range(24)))


def test_a_pass_of_another_thread_meets_hooks_that_are_being_added_or_removed():
    from concurrent.futures import ThreadPoolExecutor

    checkpoint = tiny("bert")
    tensors = checkpoint.inputs([checkpoint.encode(TEXT[0], TEXT[1])])
    alone = checkpoint.model(**tensors).last_hidden_state
    with prepared(checkpoint), ThreadPoolExecutor(1) as pool:
        # torch adds a hook before, and removes it after, the note that it takes keyword arguments
        checkpoint.model._forward_hooks_with_kwargs.clear()
        output = pool.submit(lambda: checkpoint.model(**tensors)).result()
    assert torch.equal(output.last_hidden_state, alone)


class Kept:
    """Keeps each layer's maps."""

    def __init__(self):
        self.maps = {}

    def update(self, layer, weights, inputs):
        self.maps[layer] = weights.clone()


def modules_run(checkpoint, work):
    """The names of the model's modules that finished while `work` ran."""
    finished: list[str] = []
    handles = [
        module.register_forward_hook(lambda *_, name=name: finished.append(name))
        for name, module in checkpoint.model.named_modules()
    ]
    try:
        work()
    finally:
        for handle in handles:
            handle.remove()
    return finished


@pytest.mark.parametrize("family", ["bert", "gpt2", "gpt_neo", "xlnet"])
def test_a_pass_ends_where_nobody_looks_at_what_follows(family):
    checkpoint = tiny(family)
    encoding, kept, whole = checkpoint.encode(TEXT[0]), Kept(), Kept()
    ended = modules_run(checkpoint, lambda: run(checkpoint, [encoding], [kept]))
    outputs = []
    finished = modules_run(
        checkpoint, lambda: run(checkpoint, [encoding], [whole], on_batch=lambda _, output: outputs.append(output))
    )
    assert "" in finished
    assert "" not in ended
    assert len(ended) < len(finished)
    assert torch.isfinite(outputs[0][0]).all()
    assert list(kept.maps) == list(whole.maps) == list(range(checkpoint.layers))
    assert all(torch.equal(kept.maps[layer], whole.maps[layer]) for layer in kept.maps)


def test_a_pass_for_the_first_layer_computes_no_other():
    checkpoint, kept = tiny("gpt2"), Kept()
    encoding = checkpoint.encode(TEXT[0])
    for work in (
        lambda: run(checkpoint, [encoding], [kept], layers=[0]),
        lambda: window(checkpoint, encoding, Head(0, 1), (0, 3), (0, 3)),
    ):
        assert not [name for name in modules_run(checkpoint, work) if name.startswith("h.1")]
    assert list(kept.maps) == [0]


def test_the_maps_of_an_encoder_need_no_decoder():
    checkpoint = translator("t5")
    finished = modules_run(checkpoint, lambda: run(checkpoint, [checkpoint.encode(TEXT[0], TEXT[1])], [Kept()]))
    assert finished
    assert not [name for name in finished if name.startswith("decoder")]
