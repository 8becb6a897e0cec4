"""Knockout of edges: equal to forwards with those edges cut by hand; refused where a query is left no key."""

import numpy as np
import pytest
import torch

from core.attention import Head
from core.capture.interventions import Intervention, Knockout
from core.capture.knockout import EDGES, between, edges_of
from core.capture.running import predict, run
from core.errors import InputError, InterventionError
from tests.capture import by_hand
from tests.capture.conftest import TEXT
from tests.capture.test_components import double
from tests.capture.test_interventions import INTERCEPTABLE, classifier


def cut_by_hand(encoding, kind, query, key):
    """Whether an edge is of a kind, spelled out."""
    if kind == "separators":
        return key in encoding.separators
    if kind == "first":
        return key == encoding.first
    if kind == "across":
        both = encoding.sentence[query], encoding.sentence[key]
        return None not in both and both[0] != both[1]
    return key == query + {"current": 0, "previous": -1, "next": 1}[kind]


def knocked_by_hand(encoding, kind, layers, renormalised, causal, heads=None):
    def change(layer, what, tensor, before=None):
        if what != "weights" or layer not in layers:
            return tensor
        tensor = tensor.copy()
        for head in range(len(tensor)):
            if heads is not None and (layer, head) not in heads:
                continue
            for query, row in enumerate(tensor[head]):
                for key in range(len(row)):
                    spared = causal and query == key == 0
                    if cut_by_hand(encoding, kind, query, key) and not spared:
                        row[key] = 0
                if renormalised:
                    row /= row.sum()
        return tensor

    return change


@pytest.mark.thorough
@pytest.mark.parametrize("family", ["bert", "gpt2"])
@pytest.mark.parametrize("kind", list(EDGES))
@pytest.mark.parametrize("renormalised", [True, False])
def test_every_kind_equals_a_forward_with_those_edges_cut_by_hand(family, kind, renormalised):
    checkpoint = double(family)
    if kind == "next" and family == "gpt2":
        with pytest.raises(InputError, match="do not exist in a causal model"):
            edges_of(kind, causal=True)
        return
    encoding = checkpoint.encode(TEXT[0], TEXT[3])
    knockout = Knockout(edges_of(kind, causal=checkpoint.causal), frozenset({0, 2}), renormalised)
    change = knocked_by_hand(encoding, kind, (0, 2), renormalised, checkpoint.causal)
    wanted = torch.from_numpy(by_hand.logits(checkpoint, encoding, change))
    found = predict(checkpoint, [encoding], interventions=[knockout])[0]
    assert (found - wanted).abs().max() < 1e-9
    assert (found - predict(checkpoint, [encoding])[0]).abs().max() > 1e-6


def test_some_heads_and_another_operator_beside_them():
    checkpoint = double("bert")
    encoding = checkpoint.encode(TEXT[0], TEXT[3])
    heads = frozenset({Head(0, 1), Head(2, 3)})
    knockout = Knockout(edges_of("separators", causal=False), frozenset({0, 1, 2}), heads=heads)
    cut = knocked_by_hand(encoding, "separators", (0, 1, 2), True, False, heads)

    def both(layer, what, tensor, before=None):
        tensor = cut(layer, what, tensor)
        if what == "heads" and layer == 1:
            tensor = tensor.copy()
            tensor[:, 0] = 0
        return tensor

    wanted = torch.from_numpy(by_hand.logits(checkpoint, encoding, both))
    found = predict(checkpoint, [encoding], interventions=[knockout, Intervention("zero", frozenset({Head(1, 0)}))])[0]
    assert (found - wanted).abs().max() < 1e-9


def test_maps_that_are_watched_lack_the_edges():
    checkpoint, kept = classifier("bert"), {}
    encoding = checkpoint.encode(TEXT[0], TEXT[3])

    class Keep:
        def update(self, layer, weights, inputs):
            kept[layer] = weights[0].clone()

    run(checkpoint, [encoding], [Keep()], interventions=[Knockout(between([1, 2], [3]), frozenset({1}))])
    assert float(kept[1][:, [1, 2], 3].abs().max()) == 0.0
    assert float(kept[1][:, 4, 3].min()) > 0
    assert torch.allclose(kept[1].sum(-1), torch.ones(4, len(encoding)), atol=1e-5)


@pytest.mark.thorough
@pytest.mark.parametrize("family", INTERCEPTABLE)
def test_every_family_in_a_batch_of_mixed_lengths(family):
    checkpoint = classifier(family)
    some = [checkpoint.encode(TEXT[0], TEXT[3]), checkpoint.encode(TEXT[2]), checkpoint.encode(TEXT[3], TEXT[0])]
    chosen = [Knockout(edges_of("previous", causal=checkpoint.causal), frozenset({0, 1}))]
    together = predict(checkpoint, some, interventions=chosen)
    alone = torch.cat([predict(checkpoint, [one], interventions=chosen) for one in some])
    assert torch.allclose(together, alone, atol=1e-5)
    assert (together - predict(checkpoint, some)).abs().max() > 1e-5


def test_a_sentence_alone_has_no_edges_across():
    checkpoint = classifier("bert")
    some = [checkpoint.encode(TEXT[0])]
    found = predict(checkpoint, some, interventions=[Knockout(edges_of("across", causal=False), frozenset({0, 1, 2}))])
    assert np.allclose(found, predict(checkpoint, some), atol=1e-6)


def test_what_cannot_be_cut_is_refused_in_a_sentence():
    checkpoint = classifier("bert")
    encoding = checkpoint.encode(TEXT[0])
    every = between([2], range(len(encoding)))
    with pytest.raises(InterventionError, match=r'leave every query at least one key; the query "##h" \(position 3\)'):
        predict(checkpoint, [encoding], interventions=[Knockout(every, frozenset({0}))])
    predict(checkpoint, [encoding], interventions=[Knockout(every, frozenset({0}), renormalised=False)])
    with pytest.raises(InterventionError, match="from 1 to 3; got 8"):
        predict(checkpoint, [encoding], interventions=[Knockout(edges_of("first", causal=False), frozenset({7}))])
    with pytest.raises(InputError, match='got "middle"'):
        edges_of("middle", causal=False)
    with pytest.raises(InputError, match="at least one of the two lists is empty"):
        between([], [1])
    with pytest.raises(InputError, match=f"got {len(encoding) + 1}"):
        between([len(encoding)], [0])(encoding)
    with pytest.raises(InputError, match=f"1 to {len(encoding)}; got 0"):
        between([0], [-1])(encoding)
