"""gpt-oss: a sink takes a part of every row. What comes out is exact, watched or not; maps have it as a last column."""

import numpy as np
import pytest
import torch

from core.attention import Head
from core.capture.function import AttentionRun, running
from core.capture.interventions import Intervention, Knockout
from core.capture.running import capture, run
from core.capture.selfcheck import run_checks
from core.capture.words import word_maps
from core.errors import CheckpointError, InterventionError
from core.models.opening import open_checkpoint
from tests.capture.conftest import SINKS, TEXT, WINDOW, built


@pytest.fixture
def checkpoint():
    return built("gpt_oss", SINKS, encodes=False)


@pytest.fixture
def encoding(checkpoint):
    return checkpoint.encode(TEXT[0])


def states(checkpoint, encoding, *interventions):
    kept = []
    run(checkpoint, [encoding], [], interventions=interventions, on_batch=lambda _, output: kept.append(output[0][0]))
    return kept[0]


def eager(checkpoint, encoding):
    checkpoint.model.set_attn_implementation("eager")
    with torch.no_grad():
        return checkpoint.model(**checkpoint.inputs([encoding]), output_attentions=True)


def watched(checkpoint, encoding, **wanted):
    """Every layer's weights, and the last hidden states."""
    kept = []
    checkpoint.model.set_attn_implementation("atlas")
    asked = AttentionRun(3, watcher=lambda _, weights: kept.append(weights[0]), watched=frozenset(range(3)), **wanted)
    with torch.no_grad(), running(asked):
        output = checkpoint.model(**checkpoint.inputs([encoding]))
    return torch.stack(kept), output[0][0]


def test_rows_sum_to_1_with_the_sinks_column_and_the_others_equal_eager(checkpoint, encoding):
    weights, _ = watched(checkpoint, encoding)
    wanted = torch.stack([layer[0] for layer in eager(checkpoint, encoding).attentions])
    assert weights.shape == (3, 4, len(encoding), len(encoding) + 1)
    assert torch.allclose(weights.sum(-1), torch.ones(3, 4, len(encoding)), atol=1e-5)
    assert torch.allclose(weights[..., :-1], wanted, atol=1e-6)
    assert weights[..., -1].min() > 0


def test_a_pass_equals_eager_watched_or_not(checkpoint, encoding):
    plain, (_, seen) = states(checkpoint, encoding), watched(checkpoint, encoding)
    wanted = eager(checkpoint, encoding)[0][0]
    assert torch.allclose(plain, wanted, atol=1e-4)
    assert torch.allclose(seen, wanted, atol=1e-4)


def test_a_disabled_head_is_uniform_over_its_window_and_leaves_the_sink_nothing(checkpoint, encoding):
    from core.capture.interventions import head_changes_of

    every = [Intervention("disable", frozenset({Head(layer, 1) for layer in range(3)}))]
    weights, _ = watched(checkpoint, encoding, head_changes=head_changes_of(every, layers=3, heads=4, causal=True))
    away = torch.arange(len(encoding))[:, None] - torch.arange(len(encoding))
    for layer, kind in enumerate(checkpoint.model.config.layer_types):
        seen = ((away >= 0) & (away < (WINDOW if kind == "sliding_attention" else len(encoding)))).float()
        assert torch.allclose(weights[layer, 1, :, :-1], seen / seen.sum(-1, keepdim=True))
    assert (weights[:, 1, :, -1] == 0).all()
    assert (weights[:, 0, :, -1] > 0).all()


def test_every_head_bites(checkpoint, encoding):
    plain = states(checkpoint, encoding)
    for layer in range(3):
        for head in range(4):
            changed = states(checkpoint, encoding, Intervention("disable", frozenset({Head(layer, head)})))
            assert (changed - plain).abs().max() > 1e-6


@pytest.mark.parametrize("renormalised", [True, False])
def test_edges_are_cut_beside_a_sink(checkpoint, encoding, renormalised):
    def before(encoding):
        return torch.arange(len(encoding))[:, None] - torch.arange(len(encoding)) == 1

    cut = Knockout(before, frozenset({0, 1, 2}), renormalised)
    assert not torch.allclose(states(checkpoint, encoding, cut), states(checkpoint, encoding), atol=1e-4)


def test_captured_maps_have_the_sink_as_one_more_key(checkpoint, encoding):
    maps = capture(checkpoint, encoding)
    wanted = torch.stack([layer[0] for layer in eager(checkpoint, encoding).attentions]).numpy()
    assert maps.keys == (*encoding.tokens, "sink")
    assert maps.sink
    assert np.allclose(maps.weights.sum(-1), 1, atol=1e-5)
    assert np.allclose(maps.weights[..., :-1], wanted, atol=1e-6)
    assert maps.windows == tuple(
        WINDOW if kind == "sliding_attention" else None for kind in checkpoint.model.config.layer_types
    )


def test_it_passes_its_self_check(checkpoint):
    assert [finding for finding in run_checks(checkpoint) if not finding.passed] == []


def test_statistics_of_weights_among_tokens_are_refused_in_a_sentence(checkpoint, encoding):
    class Statistic:
        def update(self, layer, weights, inputs):
            raise AssertionError

    with pytest.raises(InterventionError, match="in gpt_oss models, part of every sum goes to an attention sink"):
        run(checkpoint, [encoding], [Statistic()])


def test_words_keep_the_sink_and_rows_sum_to_1(checkpoint, encoding):
    maps = word_maps(capture(checkpoint, encoding), encoding)
    assert maps.keys == (*maps.tokens, "sink")
    assert np.allclose(maps.weights.sum(-1), 1, atol=1e-5)


def test_a_file_without_its_sinks_is_refused(checkpoint, tmp_path):
    kept = {name: value for name, value in checkpoint.model.state_dict().items() if "sinks" not in name}
    checkpoint.model.save_pretrained(tmp_path, state_dict=kept)
    checkpoint.tokenizer.save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match=r"lacks 3 of them, such as layers.\d.self_attn.sinks"):
        open_checkpoint(str(tmp_path), device="cpu")


def test_a_saved_one_opens(checkpoint, encoding, tmp_path):
    checkpoint.model.save_pretrained(tmp_path)
    checkpoint.tokenizer.save_pretrained(tmp_path)
    opened = open_checkpoint(str(tmp_path), device="cpu")
    assert torch.allclose(states(opened, encoding), states(checkpoint, encoding), atol=1e-4)
