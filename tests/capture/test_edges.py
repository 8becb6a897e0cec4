"""Edges between components: equal to hooks on the model's own modules, exactly those that were planted, their sums."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from core.capture.components import Edge, Graph
from core.capture.edges import (
    AlignedPairs,
    checked_stack,
    circuit_logits,
    edge_attributions,
    edge_effects,
    run_pairs,
)
from core.capture.outputs import Alignment
from core.capture.patching import everywhere
from core.capture.stacks import Block, LayerNorm, Linear, Stack, stack_of
from core.errors import InputError, InterventionError
from tests.capture.conftest import TEXT
from tests.capture.test_components import double

GRAPH = Graph(3, 4)


def difference(logits):
    return logits[..., 1] - logits[..., 0]


def pairs_of(checkpoint):
    """Two pairs: a B of the same length, and one that lacks two tokens at its end."""
    first = checkpoint.encode(TEXT[0])
    ids = list(first.ids)
    ids[2], ids[5] = ids[5], ids[2]
    other = replace(first, ids=tuple(ids))
    some = Alignment(tuple((k, k) for k in range(len(first) - 3)))
    return AlignedPairs([first, first], [other, other.up_to(len(first) - 2)], [everywhere(first, other), some])


def run_of(checkpoint):
    return run_pairs(stack_of(checkpoint, torch.float64), pairs_of(checkpoint))


# ---------------------------------------------------------------- a second implementation: hooks on the model's modules


class Hooked:
    """A model whose modules are watched and changed by hooks: nothing of core.capture.edges is used."""

    def __init__(self, checkpoint):
        self.checkpoint, self.model = checkpoint, checkpoint.model
        self.model.set_attn_implementation("eager")
        self.is_bert = self.model.config.model_type == "bert"
        body = self.model.base_model.encoder.layer if self.is_bert else self.model.base_model.h
        self.layers = [self._layer(layer) for layer in body]

    def _layer(self, layer):
        if self.is_bert:
            own = layer.attention.self
            return SimpleNamespace(
                inputs=[own.query, own.key, own.value],
                out=layer.attention.output.dense,
                wide=layer.intermediate,
                narrow=layer.output.dense,
                norms=[layer.attention.output.LayerNorm, layer.output.LayerNorm],
                whole=layer,
            )
        return SimpleNamespace(
            inputs=[layer.attn.c_attn],
            out=layer.attn.c_proj,
            wide=layer.mlp,
            narrow=layer.mlp,
            norms=[layer.ln_1, layer.ln_2],
            whole=layer,
        )

    def forward(self, encoding, hooks=()):
        handles = [
            module.register_forward_pre_hook(hook) if before else module.register_forward_hook(hook)
            for module, before, hook in hooks
        ]
        with torch.no_grad():
            logits = self.model(**self.checkpoint.inputs([encoding])).logits[0]
        for handle in handles:
            handle.remove()
        return logits

    def added(self, encoding):
        """What each sender adds [position, hidden], then each layer's constant; embeddings first."""
        seen = {}

        def keep(name, before):
            def hook(module, arguments, output=None):
                seen[name] = (arguments[0] if before else output)[0]

            return hook

        hooks = []
        for number, layer in enumerate(self.layers):
            hooks += [
                (layer.whole, True, keep(("x", number), True)),
                (layer.out, True, keep(("z", number), True)),
                (layer.narrow, False, keep(("fed", number), False)),
            ]
        self.forward(encoding, hooks)
        senders, constants = [seen["x", 0]], []
        for number, layer in enumerate(self.layers):
            weight = layer.out.weight.T if self.is_bert else layer.out.weight
            width = weight.shape[0] // 4
            for head in range(4):
                part = slice(head * width, (head + 1) * width)
                senders.append(seen["z", number][:, part] @ weight[part])
            senders.append(seen["fed", number])
            constants.append(layer.out.bias)
        return senders, constants

    def stream(self, senders, constants, layer, with_heads):
        """What a receiver reads, from what every sender adds."""
        x, count = senders[0], 1
        for number in range(layer + with_heads):
            x = x + sum(senders[count : count + 4]) + constants[number]
            x = self.layers[number].norms[0](x) if self.is_bert else x
            if number < layer:
                x = x + senders[count + 4]
                x = self.layers[number].norms[1](x) if self.is_bert else x
            count += 5
        return x

    def effect(self, first, second, alignment, edge):
        own, constants = self.added(first)
        theirs, _ = self.added(second)
        changed = list(own)
        changed[edge.sender] = own[edge.sender].clone()
        for place, other in alignment.pairs:
            changed[edge.sender][place] = theirs[edge.sender][other]
        layer, place = divmod(edge.receiver, 13)
        with torch.no_grad():
            x = self.stream(changed, constants, layer, place == 12 and layer < 3)
            hooks = [self._reader(layer, place, x)]
        return float(difference(self.forward(first)) - difference(self.forward(first, hooks)))

    def _reader(self, layer, place, x):
        if layer == 3 and self.is_bert:
            return self.layers[-1].whole, False, lambda module, arguments, output: x[None]
        if layer == 3:
            return self.model.base_model.ln_f, True, lambda module, arguments: (x[None],)
        if place == 12:
            read = x if self.is_bert else self.layers[layer].norms[1](x)
            return self.layers[layer].wide, True, lambda module, arguments: (read[None],)
        head, kind = divmod(place, 3)
        module = self.layers[layer].inputs[kind if self.is_bert else 0]
        projected = module(x if self.is_bert else self.layers[layer].norms[0](x)[None])
        projected = projected if self.is_bert else projected[0]
        width = projected.shape[-1] // (4 if self.is_bert else 12)
        part = (
            slice(head * width, (head + 1) * width)
            if self.is_bert
            else slice((kind * 4 + head) * width, (kind * 4 + head + 1) * width)
        )

        def put(module, arguments, output):
            output = output.clone()
            output[..., part] = projected[..., part]
            return output

        return module, False, put


@pytest.mark.parametrize("family", ["bert", "gpt2", "bert mean", pytest.param("gpt2 mean", marks=pytest.mark.slow)])
def test_effects_equal_those_of_hooks_on_the_models_own_modules(family):
    checkpoint = double(family)
    pairs, every = pairs_of(checkpoint), GRAPH.edges
    found = edge_effects(run_of(checkpoint), every, difference, batch_tokens=200)
    hooked = Hooked(double(family))
    chosen = [*range(0, len(every), 11), *range(len(every) - 17, len(every))]
    for number in chosen:
        for row in range(2):
            wanted = hooked.effect(pairs.firsts[row], pairs.seconds[row], pairs.alignments[row], every[number])
            name = GRAPH.sender_name(every[number].sender), GRAPH.receiver_name(every[number].receiver)
            assert abs(float(found[number, row]) - wanted) < 1e-6, name
    assert (found.abs() > 1e-7).float().mean() > 0.8


@pytest.mark.parametrize("family", ["bert", "gpt2", pytest.param("bert mean", marks=pytest.mark.slow)])
def test_an_edge_is_the_circuit_of_all_others_and_ends_are_a_and_b(family):
    checkpoint = double(family)
    run, every = run_of(checkpoint), list(GRAPH.edges)
    whole = torch.from_numpy(GRAPH.mask(every))
    some = [every[k] for k in range(0, len(every), 29)]
    masks = torch.stack([whole, torch.zeros_like(whole), *(whole.clone() for _ in some)])
    for mask, edge in zip(masks[2:], some, strict=True):
        mask[edge.receiver, edge.sender] = False
    logits = circuit_logits(run, masks, batch_tokens=300)
    with torch.no_grad():
        pairs = pairs_of(checkpoint)
        own = checkpoint.model(**checkpoint.inputs([pairs.firsts[0]])).logits[0]
        other = checkpoint.model(**checkpoint.inputs([pairs.seconds[0]])).logits[0]
    assert torch.allclose(logits[0], own.expand(2, -1), atol=1e-6)
    assert torch.allclose(logits[1, 0], other, atol=1e-6)
    effects = edge_effects(run, some, difference)
    assert torch.allclose(difference(logits[0]) - difference(logits[2:]), effects, atol=1e-6)


@pytest.mark.parametrize("family", ["bert", "gpt2", pytest.param("bert mean", marks=pytest.mark.slow)])
def test_attribution_is_the_slope_of_the_exact_effect(family):
    """Edges whose sender hardly moves: what is left is of second order. Edges into the output are exact."""
    checkpoint = double(family)
    run = run_of(checkpoint)
    near = replace(run, other=run.own + 1e-4 * (run.other - run.own))
    slopes = stack_of(checkpoint, torch.float64, gradients=True)
    exact = edge_effects(near, GRAPH.edges, difference)
    found = edge_attributions(near, slopes, GRAPH.edges, difference)
    assert (found - exact).abs().max() < 1e-3 * exact.abs().max()
    far = edge_attributions(run, slopes, GRAPH.edges, difference)
    assert torch.equal(far[-GRAPH.senders :], edge_effects(run, GRAPH.edges, difference)[-GRAPH.senders :])


# ---------------------------------------------------------------- planted: an induction model written by hand


class Same(LayerNorm):
    """Stands for a norm that changes nothing."""

    def __init__(self):
        pass

    def __call__(self, x):
        return x

    def held(self, x, own):
        return x


TOKENS, PLACES = 6, 8
WORD, PLACE, BEFORE, ANSWER = (slice(0, 6), slice(6, 14), slice(14, 20), slice(20, 26))
WIDTH = 32  # 26 are used, 16 a head


def induction():
    """Two layers of two heads without norms or feed-forward: L1H1 copies the previous token to BEFORE, L2H1 looks for
    the token whose BEFORE is its own and writes that token as ANSWER. L1H2 and L2H2 write nothing."""
    blocks = []
    for layer in range(2):
        raw = {name: torch.zeros(2, 16, WIDTH, dtype=torch.float64) for name in ("query", "key", "value")}
        out = torch.zeros(2, 16, WIDTH, dtype=torch.float64)
        eye = torch.eye(16, dtype=torch.float64)
        if layer == 0:  # the query at place i asks for place i - 1
            raw["query"][0, : PLACES - 1, PLACE.start + 1 : PLACE.stop] = 400 * eye[: PLACES - 1, : PLACES - 1]
            raw["key"][0, :PLACES, PLACE] = eye[:PLACES, :PLACES]
            raw["value"][0, :TOKENS, WORD] = eye[:TOKENS, :TOKENS]
            out[0, :TOKENS, BEFORE] = eye[:TOKENS, :TOKENS]
        else:
            raw["query"][0, :TOKENS, WORD] = 400 * eye[:TOKENS, :TOKENS]
            raw["key"][0, :TOKENS, BEFORE] = eye[:TOKENS, :TOKENS]
            raw["value"][0, :TOKENS, WORD] = eye[:TOKENS, :TOKENS]
            out[0, :TOKENS, ANSWER] = eye[:TOKENS, :TOKENS]
        raw["query"][1] = raw["key"][1] = torch.randn(
            16, WIDTH, dtype=torch.float64, generator=torch.manual_seed(layer)
        )
        separate = raw | {f"{name}_bias": torch.zeros(2, 16, dtype=torch.float64) for name in raw} | {"out": out}
        qkv = torch.cat([raw[name].reshape(WIDTH, WIDTH) for name in ("query", "key", "value")])
        none = torch.zeros(4, WIDTH, dtype=torch.float64)
        linear = [Linear(weight, None, torch.float64) for weight in (qkv, out.reshape(WIDTH, WIDTH).T, none, none.T)]
        blocks.append(Block(2, True, (Same(), Same()), *linear, "relu", separate))

    def embedded(inputs):
        x = torch.zeros(*inputs["ids"].shape, WIDTH, dtype=torch.float64)
        x[..., WORD] = torch.nn.functional.one_hot(inputs["ids"], TOKENS).double()
        x[..., PLACE] = torch.eye(PLACES, dtype=torch.float64)[: x.shape[1]]
        return x

    return Stack(
        tuple(blocks),
        True,
        torch.float64,
        None,
        embedded,
        lambda read: read[:, 0, ANSWER],
        lambda some: {"ids": torch.tensor([one.ids for one in some])},
        reads="last",
    )


def test_an_induction_circuit_has_exactly_the_edges_that_were_planted():
    """A: 1 2 ... 1 -> 2. B: the first 1 is another token, so that nothing stood before 2."""
    stack, graph = induction(), Graph(2, 2)
    some = double("gpt2").encode(TEXT[0]).up_to(7)
    a, b = (replace(some, ids=ids) for ids in ((0, 1, 2, 3, 4, 0, 1), (0, 5, 2, 3, 4, 0, 1)))
    pairs = AlignedPairs([a], [b], [Alignment(tuple((k, k) for k in range(7)))])
    run = run_pairs(stack, pairs)
    assert int(run.logits()[0].argmax()) == 2
    found = edge_effects(run, graph.edges, lambda logits: logits[..., 2] - logits[..., 4])
    important = {
        (graph.sender_name(edge.sender), *graph.receiver_name(edge.receiver))
        for edge, effect in zip(graph.edges, found[:, 0], strict=True)
        if abs(effect) > 1e-9
    }
    assert important == {("embeddings", "L1H1", "v"), ("L1H1", "L2H1", "k"), ("L2H1", "output", "")}
    whole = run.logits()[0, 2] - run.logits()[0, 4]
    other = stack.logits(run_pairs(stack, AlignedPairs([b], [a], pairs.alignments)).last)[0]
    into_output = found[[k for k, edge in enumerate(graph.edges) if edge.receiver == graph.receivers - 1]].sum()
    assert torch.isclose(into_output, whole - (other[2] - other[4]), atol=1e-9)  # m(A) - m(B)
    circuit = graph.mask([edge for edge, effect in zip(graph.edges, found[:, 0], strict=True) if abs(effect) > 1e-9])
    kept = circuit_logits(run, torch.from_numpy(circuit)[None])[0, 0]
    assert torch.isclose(kept[2] - kept[4], whole, atol=1e-9)


def test_heads_that_hear_nothing_of_each_other_have_no_edge():
    checkpoint = double("gpt2")
    for layer in checkpoint.model.transformer.h:
        layer.attn.c_proj.weight.data.zero_()
    run = run_of(checkpoint)
    edges = [edge for edge in GRAPH.edges if GRAPH.kind(edge) == "head to head"]
    assert len(edges) == 3 * 4 * 4 * 3
    # An effect is a difference of two logit differences, summed by kernels that may add up in different orders.
    rounding = 64 * torch.finfo(torch.float64).eps * float(run.logits().detach().abs().max())
    assert float(edge_effects(run, edges, difference).abs().max()) <= rounding


def test_the_graph_of_six_by_six_has_the_edges_that_were_counted():
    graph = Graph(6, 6)
    kinds = [graph.kind(edge) for edge in graph.edges]
    assert len(kinds) == 2188
    assert kinds.count("head to head") == 1620
    assert kinds.count("embeddings to head") == 108
    assert kinds.count("feed-forward to head") == 270
    assert sum(kind.endswith("to feed-forward") for kind in kinds) == 147
    assert sum(kind.endswith("to output") for kind in kinds) == 43
    assert graph.edges[-1] == Edge(graph.senders - 1, graph.receivers - 1)


def test_pairs_without_an_alignment_are_refused():
    first = double("bert").encode(TEXT[0])
    with pytest.raises(InputError, match="alignment per pair"):
        AlignedPairs([first], [first], [])
    with pytest.raises(InputError, match="must have corresponding tokens"):
        AlignedPairs([first], [first], [Alignment(())])


def test_a_head_that_reads_the_separator_is_refused_in_a_sentence():
    checkpoint = double("bert sep")
    with pytest.raises(InterventionError, match=r"by running its layers one by one\. Choose another"):
        checked_stack(checkpoint, checkpoint.encode(TEXT[0]))
