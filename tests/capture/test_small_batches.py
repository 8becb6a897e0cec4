"""How many inputs share a pass changes no result: everything once more in batches of one or two inputs."""

from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
import torch
from transformers import AutoModelForSeq2SeqLM

from core.capture import (
    constants,
    contributions,
    edges,
    gating,
    importance,
    losses,
    outputs,
    pruning,
    running,
    translating,
    writes,
    zeroing,
)
from core.capture.sweeping import every_head, sweep
from core.models.checkpoint import Checkpoint, Encoding
from tests.capture import test_edges
from tests.capture.conftest import TEXT, translator
from tests.capture.conftest import writer as decoder
from tests.capture.test_interventions import classifier

LABELS = [0, 1, 1, 0, 1]
WITH_A_SIZE = (constants, contributions, gating, losses, pruning, translating, writes, zeroing)


def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in WITH_A_SIZE:
        monkeypatch.setattr(module, "BATCH_TOKENS", 24)
    monkeypatch.setattr(edges, "SENDERS_AT_ONCE", 2)
    for function in (running.batches, running.run, edges.edge_effects, edges.circuit_logits):
        named = function.__kwdefaults__ or {}
        monkeypatch.setattr(
            function, "__kwdefaults__", named | ({"batch_tokens": 24} if "batch_tokens" in named else {})
        )
    monkeypatch.setattr(running.batches, "__defaults__", (24,))


def encodings(checkpoint: Checkpoint) -> list[Encoding]:
    """Four inputs of one length, which share a batch, and another one among them."""
    first = checkpoint.encode(TEXT[0])
    turned = [(first.ids[0], *first.ids[k:-1], *first.ids[1:k], first.ids[-1]) for k in (1, 2, 4, 5)]
    alike = [replace(first, ids=ids) for ids in turned]
    return [*alike[:2], checkpoint.encode(TEXT[3]), *alike[2:]]


def leaves(value) -> list[np.ndarray]:
    """All numbers of a result, in order."""
    if is_dataclass(value):
        return [leaf for each in fields(value) for leaf in leaves(getattr(value, each.name))]
    if isinstance(value, dict | list | tuple):
        return [leaf for each in (value.values() if isinstance(value, dict) else value) for leaf in leaves(each)]
    return [np.asarray(value.detach().double())] if torch.is_tensor(value) else [np.asarray(value)]


def reading(checkpoint: Checkpoint):
    """What each input's queries and keys consist of, whatever its batch."""
    found = {}

    def take(inputs, numbers):
        for row, number in enumerate(numbers):
            found[inputs.layer, number] = inputs.scores[row], inputs.query[:, row], inputs.weights[row]

    contributions.take_head_inputs(checkpoint, encodings(checkpoint), take, by_head=True)
    return [found[key] for key in sorted(found)]


def states(checkpoint: Checkpoint):
    by_batch = [
        zip(batch, found.unbind(1), strict=True)
        for batch, found in outputs.layer_outputs(checkpoint, encodings(checkpoint))
    ]
    found = dict(pair for batch in by_batch for pair in batch)
    return [found[number] for number in sorted(found)]


def written(checkpoint: Checkpoint):
    found = {}
    rows = encodings(checkpoint)
    writes.text_writes(checkpoint, rows, [2, 3, 4, 5, 6], found.__setitem__)
    return [found[k] for k in range(len(rows))]


def fits(checkpoint: Checkpoint):
    starts = torch.linspace(-1, 1, 24).view(2, 3, 4)
    counts = gating.GateFits(
        torch.tensor([[1.0, 0.0, 3.0, 1.0, 2.0], [2.0, 1.0, 1.0, 0.0, 1.0]]), starts, torch.tensor([0.0, 0.01])
    )
    return gating.fit_gates(checkpoint, encodings(checkpoint), LABELS, counts, steps=2)


CLASSIFIER = {
    "constants": lambda c: constants.optimal_constants(c, encodings(c), LABELS, steps=2),
    "gates": fits,
    "first order": lambda c: losses.first_order(c, encodings(c), LABELS, "zero"),
    "effects": lambda c: losses.effects(c, losses.LabelledRows(encodings(c), LABELS), every_head(3, 4)[:5], "zero"),
    "components": lambda c: pruning.component_importance(c, encodings(c), LABELS),
    "importance": lambda c: importance.importance(importance.gradients(c, encodings(c), LABELS)),
    "outputs": lambda c: (states(c), outputs.mean_outputs(c, encodings(c))),
    "sweep": lambda c: sweep(c, encodings(c), every_head(3, 4)[3:6], "disable").changed,
    "queries": reading,
    "zeroing": lambda c: zeroing.value_zeroing(c, c.encode(TEXT[0])),
}


@pytest.mark.parametrize("name", CLASSIFIER)
def test_a_classifiers_results_do_not_depend_on_the_size_of_a_batch(name, monkeypatch):
    checkpoint = classifier("bert")
    compared(lambda: CLASSIFIER[name](checkpoint), monkeypatch)


def test_what_a_decoder_writes_does_not_depend_on_the_size_of_a_batch(monkeypatch):
    checkpoint = decoder("gpt2")
    compared(lambda: written(checkpoint), monkeypatch)


PAIRS = [(TEXT[0], "the old dog ran"), (TEXT[1], "nobody did"), (TEXT[0], "the old dog stop"), (TEXT[2], "a bag")]


def test_translations_do_not_depend_on_the_size_of_a_batch(monkeypatch):
    checkpoint = translator("bart", AutoModelForSeq2SeqLM)
    rows = translating.pairs_of(checkpoint, PAIRS)
    compared(
        lambda: [translating.part_importance(checkpoint, rows), translating.aligned_words(checkpoint, rows)],
        monkeypatch,
    )
    compared(lambda: translating.right(checkpoint, rows), monkeypatch)


def test_effects_of_edges_do_not_depend_on_how_many_are_computed_at_once(monkeypatch):
    run = test_edges.run_of(test_edges.double("bert"))
    some = run.graph.edges[::7]
    mask = torch.rand(3, run.graph.receivers, run.graph.senders, generator=torch.Generator().manual_seed(0)) < 0.5
    compared(lambda: edges.circuit_logits(run, mask), monkeypatch)
    compared(lambda: edges.edge_effects(run, some, test_edges.difference), monkeypatch)
    whole = edges.edge_effects(run, some, test_edges.difference)
    for number in (0, len(some) // 2, len(some) - 1):
        alone = edges.edge_effects(run, [some[number]], test_edges.difference)
        assert torch.allclose(alone[0], whole[number], atol=1e-9)


def compared(compute, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = leaves(compute())
    with monkeypatch.context() as patch:
        small(patch)
        parts = leaves(compute())
    assert len(whole) == len(parts) > 0
    for one, other in zip(whole, parts, strict=True):
        if one.dtype.kind in "fiub":
            np.testing.assert_allclose(other, one, rtol=1e-4, atol=2e-5)
        else:
            assert (one == other).all()
