"""Gates fitted on a task's loss: losses row by row, and the way one step goes, by finite differences."""

import numpy as np
import pytest
import torch

from core.capture.gating import RATE, GateFits, fit_gates, gated_losses
from core.models.checkpoint import Checkpoint
from core.scoring.circuits import class_shares, classes_of
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


# ---------------------------------------------------------------- a second implementation

OUTPUTS = {  # what a layer's heads go into, side by side
    "bert": lambda model: [layer.attention.output.dense for layer in model.bert.encoder.layer],
    "gpt2": lambda model: [block.attn.c_proj for block in model.transformer.h],
}


def fitted_by_hooks(checkpoint, family, counts, start, price, steps):
    """Causal head gating (arXiv 2505.13737) on the model's own modules, one row at a time, by Adam written out."""
    model, gates = checkpoint.model, []

    def gating(layer):
        def hook(module, inputs):
            heads = inputs[0].unflatten(-1, (start.shape[1], -1))
            return ((heads * gates[0][layer][:, None]).flatten(-2), *inputs[1:])

        return hook

    logits, mean, square = start.double(), torch.zeros_like(start).double(), torch.zeros_like(start).double()
    hooks = [module.register_forward_pre_hook(gating(k)) for k, module in enumerate(OUTPUTS[family](model))]
    try:
        for step in range(1, steps + 1):
            asked = logits.clone().requires_grad_()
            gates[:] = [torch.sigmoid(asked).float()]
            loss = price * torch.sigmoid(asked).sum()
            for row, label, count in zip(encodings(checkpoint), LABELS, counts.tolist(), strict=True):
                kinds = {"token_type_ids": torch.tensor([row.segments])} if family == "bert" else {}
                scores = model(input_ids=torch.tensor([row.ids]), **kinds).logits[0].double()
                loss = loss + count / float(counts.sum()) * (torch.logsumexp(scores, 0) - scores[label])
            (slope,) = torch.autograd.grad(loss, asked)
            mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
            logits = logits - RATE * mean / (1 - 0.9**step) / ((square / (1 - 0.999**step)).sqrt() + 1e-8)
    finally:
        for hook in hooks:
            hook.remove()
    return torch.sigmoid(logits)


@pytest.mark.thorough
@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_fitted_gates_are_those_of_a_second_implementation(family):
    """Pushed up and pushed down, of rows that count differently; small prices, so that the loss pulls too."""
    checkpoint = classifier(family)
    counts, prices = torch.tensor([[1.0, 0.0, 3.0], [2.0, 1.0, 1.0]]), torch.tensor([-0.002, 0.002])
    starts = torch.logit(gates_of(2, 3, 4))
    found = fit_gates(checkpoint, encodings(checkpoint), LABELS, GateFits(counts, starts, prices), steps=6)
    for fit in range(2):
        wanted = fitted_by_hooks(checkpoint, family, counts[fit], starts[fit], float(prices[fit]), 6)
        assert torch.allclose(found[fit].double(), wanted, atol=1e-5)
    moved = found - torch.sigmoid(starts)
    assert (moved > 0.05).any(), "the loss opens gates too"
    assert (moved < -0.05).any(), "and closes some"


def test_classes_are_those_of_a_second_implementation():
    """Counted fit by fit, as the paper names them."""
    generator = np.random.default_rng(4)
    up, down = np.where(generator.random((2, 40, 60)) < np.array([0.02, 0.5, 0.98])[:, None, None][[2, 0]], 0.9, 0.1)
    up[:, :20], down[:, 20:40] = generator.random((40, 20)), 0.9
    found = classes_of(class_shares(up, down))
    for head in range(60):
        fits = [(a > 0.5, b > 0.5) for a, b in zip(up[:, head], down[:, head], strict=True)]
        counts = {
            "facilitating": fits.count((True, True)),
            "interfering": fits.count((False, False)),
            "irrelevant": fits.count((True, False)),
        }
        name = max(counts, key=counts.__getitem__)
        assert found[head] == (name if counts[name] >= 38 else "undecided")
    assert len(set(found)) > 2
