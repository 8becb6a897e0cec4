"""The gradient of the loss by one attention weight is the slope of a forward by hand with that weight moved."""

import numpy as np
import pytest

from core.capture.importance import separator_slopes, weight_slopes
from core.capture.norms import norm_maps, separator_norms
from core.errors import InputError
from tests.capture import by_hand
from tests.capture.conftest import TEXT, tiny
from tests.capture.test_components import double
from tests.capture.test_interventions import classifier


def loss_by_hand(logits, label):
    return float(np.log(np.exp(logits - logits.max()).sum()) + logits.max() - logits[label])


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_slopes_are_finite_differences(family):
    checkpoint, step = double(family), 1e-5
    encoding = checkpoint.encode(TEXT[0], TEXT[3])
    slopes, weights = weight_slopes(checkpoint, [encoding], [1])
    assert float((weights.sum(-1) - 1).abs().max()) < 1e-6
    for layer, head, query, key in (
        (0, 1, 3, 0),
        (1, 3, 5, 2),
        (2, 0, len(encoding) - 1 if family == "gpt2" else 0, 1),
    ):

        def change(at, what, tensor, before=None, place=(layer, head, query, key)):
            if what == "weights" and at == place[0]:
                tensor = tensor.copy()
                tensor[place[1:]] += step
            return tensor

        ends = [loss_by_hand(by_hand.logits(checkpoint, encoding, one), 1) for one in (change, by_hand.unchanged)]
        wanted = (ends[0] - ends[1]) / step
        assert float(slopes[layer, 0, head, query, key]) == pytest.approx(wanted, rel=1e-2, abs=1e-4)


def test_means_over_separators_and_the_rest_spelled_out():
    checkpoint = classifier("bert")
    some = [checkpoint.encode(TEXT[0], TEXT[3]), checkpoint.encode(TEXT[3])]
    found = separator_slopes(checkpoint, some, [0, 1])
    for k, encoding in enumerate(some):
        slopes, weights = weight_slopes(checkpoint, [encoding], [k])
        for layer in range(3):
            both = {True: [], False: []}
            for head in range(4):
                for query in range(len(encoding)):
                    for key in range(len(encoding)):
                        both[key in encoding.separators].append(abs(float(slopes[layer, 0, head, query, key])))
            assert float(found.to_separator[layer, k]) == pytest.approx(np.mean(both[True]), rel=1e-4)
            assert float(found.to_other[layer, k]) == pytest.approx(np.mean(both[False]), rel=1e-4)
            mass = weights[layer, 0][:, :, list(encoding.separators)].sum(-1).mean()
            assert float(found.weight[layer, k]) == pytest.approx(float(mass), rel=1e-4)


def test_the_separators_share_of_norms_spelled_out():
    checkpoint = classifier("bert")
    some = [checkpoint.encode(TEXT[0], TEXT[3]), checkpoint.encode(TEXT[3])]
    shares = separator_norms(checkpoint, some)
    for k, encoding in enumerate(some):
        norms = norm_maps(checkpoint, encoding).heads
        for layer in range(3):
            rows = [
                norms[layer, head, query, list(encoding.separators)].sum() / norms[layer, head, query].sum()
                for head in range(4)
                for query in range(len(encoding))
            ]
            assert float(shares[layer, k]) == pytest.approx(np.mean(rows), rel=1e-4)
    without = classifier("gpt2")
    assert bool(separator_norms(without, [without.encode(TEXT[0])]).isnan().all())
    assert bool(separator_norms(tiny("xlnet"), [tiny("xlnet").encode(TEXT[0])]).isnan().all())


def test_inputs_without_separators_are_unknown_and_labels_are_needed():
    checkpoint = classifier("gpt2")
    assert bool(separator_slopes(checkpoint, [checkpoint.encode(TEXT[0])], [0]).to_separator.isnan().all())
    with pytest.raises(InputError, match="got 1 examples and 0 labels"):
        separator_slopes(checkpoint, [checkpoint.encode(TEXT[0])], [])
