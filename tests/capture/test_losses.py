"""Losses and effects of rows against torch's own losses, one pass per variant, and finite differences."""

import pytest
import torch
from torch.nn import functional
from transformers import AutoModelForSequenceClassification, BertConfig

from core.attention import Head
from core.capture.interventions import OPERATORS, Given, Intervention, pointing, uniform
from core.capture.losses import LabelledRows, effects, first_order, row_losses, slopes_of
from core.capture.outputs import head_outputs, mean_outputs
from core.capture.running import predict, prepared
from core.capture.sweeping import every_head
from core.errors import CheckpointError, InputError, InterventionError
from core.models.checkpoint import Checkpoint
from tests.capture.conftest import tiny
from tests.capture.test_interventions import INTERCEPTABLE, classifier
from tests.capture.test_sweeping import encodings, one_by_one

LABELS = [0, 1, 1, 0, 1, 0]


def test_losses_are_torchs_own():
    logits = torch.randn(3, 6, 2, generator=torch.Generator().manual_seed(0))
    found = row_losses(logits, LABELS)
    for variant in range(3):
        wanted = functional.cross_entropy(logits[variant].double(), torch.tensor(LABELS), reduction="none")
        assert torch.allclose(found[variant], wanted)
    scores = row_losses(logits[..., :1], [0.5] * 6)
    assert torch.allclose(scores, (logits[..., 0].double() - 0.5) ** 2)


@pytest.mark.thorough
@pytest.mark.parametrize("family", ["bert", "gpt2", "distilbert"])
def test_effects_are_differences_of_losses(family):
    checkpoint = classifier(family)
    some, variants = encodings(checkpoint), every_head(3, 4)[::5]
    found = effects(checkpoint, LabelledRows(some, LABELS), variants, "zero")
    plain = row_losses(predict(checkpoint, some), LABELS)
    assert torch.allclose(found.plain, plain, atol=1e-5)
    wanted = row_losses(one_by_one(checkpoint, some, variants, "zero"), LABELS) - plain
    assert torch.allclose(found.exact, wanted, atol=2e-5)


@pytest.mark.thorough
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_first_order_effects_are_finite_differences(family, operator):
    """Each head's output mixed with a little of what the operator puts there, in float64, row by row."""
    checkpoint = classifier(family)
    if operator == "next" and checkpoint.causal:
        with pytest.raises(InterventionError, match="next"):
            first_order(checkpoint, encodings(checkpoint), LABELS, operator)
        return
    checkpoint.model.double()
    some = encodings(checkpoint)[:3]
    found = first_order(checkpoint, some, LABELS[:3], operator)
    for head in (Head(0, 1), Head(1, 3), Head(2, 0)):
        for row, encoding in enumerate(some):
            ends = [_mixed_loss(checkpoint, encoding, LABELS[row], head, operator, t) for t in (1e-4, -1e-4)]
            assert float(found[head.layer, head.head, row]) == pytest.approx(
                (ends[0] - ends[1]) / 2e-4, rel=1e-3, abs=1e-7
            )


def _mixed_loss(checkpoint, encoding, label, head, operator, share):
    """The loss with one head's weights (1 - t) own + t fixed; for zero, its output times 1 - t."""
    length = len(encoding)

    def mixer(layer, own, values, mask):
        if layer != head.layer:
            return own
        visible = torch.ones(1, 1, length, length, dtype=torch.bool)
        visible = visible.tril() if checkpoint.causal else visible
        if operator == "zero":
            fixed = torch.zeros(length, length)
        else:
            fixed = (uniform(visible) if operator == "disable" else pointing(operator, visible))[0, 0]
        mixed = own.clone()
        for query in range(length):
            there = sum(fixed[query, key] * values[0, head.head, key] for key in range(length))
            mixed[0, query, head.head] = (1 - share) * own[0, query, head.head] + share * there
        return mixed

    with torch.no_grad(), prepared(checkpoint, gates=torch.ones(3, 4)) as run:
        run.mixer = mixer
        logits = checkpoint.model(**checkpoint.inputs([encoding])).logits
    return float(row_losses(logits, [label])[0])


def test_first_order_effects_of_outputs_from_a_reference_are_finite_differences():
    """Between a head's own output and the mean's: a source that gives (1 - t) own + t mean."""
    checkpoint = classifier("bert")
    checkpoint.model.double()
    some = encodings(checkpoint)[:1]
    mean = mean_outputs(checkpoint, encodings(checkpoint))
    own = head_outputs(checkpoint, some)[0][:, None]
    found = first_order(checkpoint, some, LABELS[:1], "mean", source=mean)
    given = mean.given(some, [0]).outputs
    for head in (Head(0, 1), Head(1, 3), Head(2, 0)):
        ends = []
        for t in (1e-3, -1e-3):
            part = ByMixture(Given((1 - t) * own + t * given))
            logits = predict(checkpoint, some, interventions=[Intervention("mean", frozenset({head}), part)])
            ends.append(float(row_losses(logits, LABELS[:1])[0]))
        slope = (ends[0] - ends[1]) / 2e-3
        assert float(found[head.layer, head.head, 0]) == pytest.approx(slope, rel=0.01, abs=5e-4)


class ByMixture:
    """A source that gives what it was made with."""

    operator = "mean"

    def __init__(self, outputs):
        self.outputs = outputs

    def given(self, encodings, inputs):
        return self.outputs


@pytest.mark.parametrize("family", INTERCEPTABLE)
def test_first_order_effects_of_every_family(family):
    """Where a small change is nearly linear, g is near e: heads' outputs are made small."""
    checkpoint = classifier(family)
    found = first_order(checkpoint, encodings(checkpoint)[:2], LABELS[:2], "zero")
    assert found.shape == (3, 4, 2)
    assert bool(torch.isfinite(found).all())
    assert bool((found != 0).any((1, 2)).all())


def test_sets_of_heads_add_up():
    slopes = torch.arange(24.0).double().view(2, 3, 4)
    found = slopes_of([frozenset({Head(0, 1)}), frozenset({Head(0, 0), Head(1, 2)})], slopes)
    assert torch.equal(found, torch.stack([slopes[0, 1], slopes[0, 0] + slopes[1, 2]]))


def test_a_row_whose_loss_is_no_number_is_named():
    bare = tiny("bert")
    model = AutoModelForSequenceClassification.from_config(
        BertConfig(**bare.model.config.to_dict() | {"num_labels": 1})
    )
    checkpoint = Checkpoint(name="scorer", model=model.eval(), tokenizer=bare.tokenizer)
    rows = LabelledRows(encodings(checkpoint)[:2], [0.5, float("nan")], names=["dev-3", "dev-7"])
    with pytest.raises(InputError, match=r"1 of 2 examples have a NaN or infinite loss, such as example dev-7"):
        effects(checkpoint, rows, [frozenset({Head(0, 0)})], "zero")


def test_weights_that_are_no_numbers_are_refused_before_any_loss():
    checkpoint = classifier("bert")
    some = encodings(checkpoint)[:2]
    checkpoint.model.get_input_embeddings().weight.requires_grad_(False)[some[1].ids[1]] = float("nan")
    with pytest.raises(CheckpointError, match=r"L\d+H\d+ has a NaN or infinite value"):
        effects(checkpoint, LabelledRows(some, [0, 1]), [frozenset({Head(0, 0)})], "zero")


def test_what_cannot_be_asked():
    checkpoint = classifier("bert")
    with pytest.raises(InputError, match="one label"):
        first_order(checkpoint, encodings(checkpoint), [0])
    with pytest.raises(InputError, match="one label"):
        effects(checkpoint, LabelledRows(encodings(checkpoint), [0]), [frozenset({Head(0, 0)})])
    with pytest.raises(InterventionError, match='got "unknown"'):
        first_order(checkpoint, encodings(checkpoint), LABELS, "unknown")
    with pytest.raises(CheckpointError, match="classifier"):
        first_order(tiny("bert"), encodings(checkpoint), LABELS)
