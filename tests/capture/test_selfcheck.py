"""The self-check finds what it looks for: a layer whose heads reach nothing, and few forward passes tell it."""

import torch

from core.attention import Head
from core.capture import selfcheck
from core.capture.interventions import Intervention
from core.capture.running import run
from core.capture.selfcheck import Check, run_checks
from tests.capture.conftest import tiny


def last(found: list[Check]) -> Check:
    assert found[-1].name == "disabling a head changes the output"
    return found[-1]


def test_a_head_that_reaches_nothing_is_found_whichever_layer_it_is_in():
    for layer in range(2):
        checkpoint = tiny("bert")
        width = checkpoint.model.config.hidden_size // checkpoint.heads
        with torch.no_grad():
            checkpoint.model.encoder.layer[layer].attention.output.dense.weight[:, :width] = 0
        failed = last(list(run_checks(checkpoint)))
        assert not failed.passed
        assert failed.seen == f"disabling L{layer + 1}H1 changed nothing"


def test_the_change_of_each_layer_is_that_of_disabling_it_alone():
    checkpoint = tiny("bert")
    encoding = checkpoint.encode(selfcheck.SHORT)
    states = selfcheck._each_disabled(checkpoint, encoding)
    for layer in range(checkpoint.layers):
        alone = []
        disabled = Intervention("disable", frozenset({Head(layer, 0)}))
        run(
            checkpoint,
            [encoding],
            [],
            interventions=[disabled],
            on_batch=lambda _, output, to=alone: to.append(output[0]),
        )
        assert float((states[layer + 1] - alone[0][0]).abs().max()) < 1e-5
        assert float((states[layer + 1] - states[0]).abs().max()) > 1e-4


def test_a_check_takes_five_forward_passes_whatever_the_number_of_layers(monkeypatch):
    checkpoint, passes = tiny("bert"), []
    forward = checkpoint.model.forward
    monkeypatch.setattr(checkpoint.model, "forward", lambda *a, **k: passes.append(1) or forward(*a, **k))
    found = list(run_checks(checkpoint))
    assert all(one.passed for one in found)
    assert any(one.seen.startswith("declared bidirectional; most weight on later tokens") for one in found)
    assert len(passes) == 5  # maps, eager, one row, two rows, and every layer's head in one batch


def test_findings_come_one_by_one():
    steps = run_checks(tiny("bert"))
    assert [next(steps).name, next(steps).name] == ["shape", "rows sum to 1"]
