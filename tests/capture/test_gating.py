"""Gates fitted on a task's loss: losses row by row, and the way one step goes, by finite differences."""

import pytest
import torch

from core.capture.gating import RATE, GateFits, fit_gates, gated_losses
from core.models.checkpoint import Checkpoint
from tests.capture.conftest import TEXT
from tests.capture.test_importance import LABELS, encodings, loss_with
from tests.capture.test_interventions import classifier


def gates_of(*shape):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_losses_under_gates_are_those_of_each_row_alone(family):
    checkpoint, gates = classifier(family), gates_of(2, 3, 4)
    rows = encodings(checkpoint)
    alone = [[loss_with(checkpoint, row, label, one) for row, label in zip(rows, LABELS, strict=True)] for one in gates]
    assert torch.allclose(gated_losses(checkpoint, rows, LABELS, gates), torch.tensor(alone), atol=1e-5)


def test_of_a_score_the_loss_is_its_squared_error():
    checkpoint = classifier("bert")
    model = type(checkpoint.model)(
        type(checkpoint.model.config)(**{**checkpoint.model.config.to_dict(), "num_labels": 1})
    )
    scored = Checkpoint(name="tiny-score", model=model.eval(), tokenizer=checkpoint.tokenizer)
    row = scored.encode(TEXT[0])
    with torch.no_grad():
        score = float(model(torch.tensor([row.ids])).logits)
    found = gated_losses(scored, [row], [2.5], torch.ones(1, 3, 4))
    assert float(found) == pytest.approx((score - 2.5) ** 2, rel=1e-4)


def test_the_first_step_goes_down_the_mean_loss_of_its_rows_plus_the_price_of_open_gates():
    checkpoint = classifier("bert")
    rows, weights, prices = (
        encodings(checkpoint),
        torch.tensor([[1.0, 0.0, 3.0], [1.0, 1.0, 1.0]]),
        torch.tensor([0.0, 9.0]),
    )
    starts = torch.logit(gates_of(2, 3, 4))
    found = fit_gates(checkpoint, rows, LABELS, GateFits(weights, starts, prices), steps=1)

    def target(fit, logits):
        gates = torch.sigmoid(logits)
        losses = gated_losses(checkpoint, rows, LABELS, gates[None])[0]
        return float((losses * weights[fit]).sum() / weights[fit].sum() + prices[fit] * gates.sum())

    for fit, layer, head in [(0, 0, 1), (0, 1, 3), (0, 2, 0), (1, 0, 0)]:
        ends = []
        for step in (0.05, -0.05):
            moved = starts[fit].clone()
            moved[layer, head] += step
            ends.append(target(fit, moved))
        downhill = starts[fit, layer, head] - RATE * (1 if ends[0] > ends[1] else -1)
        assert float(found[fit, layer, head]) == pytest.approx(float(torch.sigmoid(downhill)), abs=1e-3)
    assert (found[1] < torch.sigmoid(starts[1])).all()  # at that price every gate closes
    assert (
        fit_gates(checkpoint, rows, LABELS, GateFits(weights, starts, -prices), steps=1)[1] > torch.sigmoid(starts[1])
    ).all()
