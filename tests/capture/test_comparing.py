"""One input with and without a change: what the model says either way, and how far each head's map moves."""

import numpy as np
import pytest
import torch

from core.attention import Head
from core.capture.comparing import OutputChange, compare, predicted, predictions
from core.capture.interventions import Intervention
from tests.capture.conftest import TEXT, writer
from tests.capture.test_interventions import classifier

DISABLED = Intervention("disable", frozenset({Head(0, 1)}))


def shares(checkpoint, encoding):
    with torch.no_grad():
        logits = checkpoint.model(**checkpoint.inputs([encoding])).logits[0].float()
    return torch.softmax(logits if checkpoint.labels else logits[-1], -1).tolist()


def test_a_classifiers_classes_before_and_after_and_the_maps_that_move():
    checkpoint = classifier("bert")
    encoding = checkpoint.encode(TEXT[0])
    found = compare(checkpoint, encoding, [DISABLED])
    assert [choice.name for choice in found.choices] == list(checkpoint.labels.values())
    assert [choice.before for choice in found.choices] == pytest.approx(shares(checkpoint, encoding), abs=1e-5)
    assert [choice.after for choice in found.choices] != pytest.approx(shares(checkpoint, encoding), abs=1e-5)
    assert sum(choice.after for choice in found.choices) == pytest.approx(1.0)
    assert found.place is None
    far = [
        [
            np.mean([np.abs(after - before).sum() / 2 for before, after in zip(*pair, strict=True)])
            for pair in zip(*both, strict=True)
        ]
        for both in zip(found.maps_before.weights, found.maps_after.weights, strict=True)
    ]
    assert found.moved == pytest.approx(np.array(far), abs=1e-6)
    assert found.moved[0, [0, 2, 3]].max() == 0  # other heads of its layer see what they saw
    assert found.moved[1:].max() > 0
    told = predictions(checkpoint, (encoding, ()), (encoding, [DISABLED]))
    assert [(choice.name, choice.after) for choice in told] == [
        (choice.name, pytest.approx(choice.after, abs=1e-5)) for choice in found.choices
    ]
    same = compare(checkpoint, encoding, [])
    assert same.moved.max() == 0
    assert all(choice.before == choice.after for choice in same.choices)


def test_a_decoders_next_pieces_likeliest_first_of_two_inputs():
    checkpoint = writer("gpt2")
    first, second = checkpoint.encode(TEXT[0]), checkpoint.encode(TEXT[1])
    assert compare(checkpoint, first, [DISABLED]).place == len(first) - 1
    found = predictions(checkpoint, (first, ()), (second, ()))
    assert 0 < len(found) <= 10
    before, after = shares(checkpoint, first), shares(checkpoint, second)
    assert [choice.before for choice in found] == sorted((choice.before for choice in found), reverse=True)
    likely = sorted(range(len(before)), key=lambda k: -max(before[k], after[k]))[: len(found)]
    assert sorted(choice.before for choice in found) == pytest.approx(sorted(before[k] for k in likely), abs=1e-6)
    assert sorted(choice.after for choice in found) == pytest.approx(sorted(after[k] for k in likely), abs=1e-6)
    names = {checkpoint.tokenizer.decode([k]).strip() or f"[{k}]" for k in likely}
    assert {choice.name for choice in found} == names


def test_the_likeliest_of_two_runs_is_none_for_a_score_and_for_a_run_that_predicts_nothing():
    def choice(name, before, after):
        return OutputChange(name=name, logit_before=before, logit_after=after, before=0.5, after=0.5)

    first, then = predicted([choice("yes", 2.0, -1.0), choice("no", 1.0, 3.0)])
    assert (first.name, then.name) == ("yes", "no")
    assert predicted([choice("score", 2.0, 1.0)]) is None
    nan = float("nan")
    assert predicted([choice("yes", nan, 2.0), choice("no", nan, 1.0)]) is None
    first, _ = predicted([choice("yes", nan, 2.0), choice("no", 1.0, nan)])
    assert first.name == "no"
