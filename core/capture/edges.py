"""Exact effects of edges: one receiver reads the contribution of one sender from another input.

The contributions of every sender in a run on A and in a run on B (at aligned positions) are stored. The input of a
receiver in A is computed with the contribution of one sender from B, and everything after this receiver runs normally.
LayerNorms in the stream (BERT) are recomputed for this receiver only. Later receivers share the changed streams, and
nothing before a receiver runs twice. The module also estimates these effects to first order, and runs whole circuits.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ..errors import InterventionError
from ..models.checkpoint import Checkpoint
from ..models.encoding import Encoding
from ..models.memory import arithmetic
from .components import Edge, Graph
from .outputs import Alignment, check_pairs
from .running import BATCH_TOKENS, answers, predict
from .stacks import Block, Stack, stack_of
from .standins import single_position

# ---------------------------------------------------------------- the layers of a stack as they run


@dataclass(frozen=True)
class LayerRun:
    """The intermediate results of one layer in a forward pass, for a batch of inputs."""

    x: Float[Tensor, "pair position hidden"]
    query: Float[Tensor, "pair head position dim"]
    key: Float[Tensor, "pair head position dim"]
    value: Float[Tensor, "pair head position dim"]
    mixed: Float[Tensor, "pair position head dim"]
    joined: Float[Tensor, "pair position hidden"]
    middle: Float[Tensor, "pair position hidden"]
    fed: Float[Tensor, "pair position hidden"]


def attend(
    stack: Stack,
    query: Float[Tensor, "batch head position dim"],
    key: Float[Tensor, "batch head position dim"],
    value: Float[Tensor, "batch head position dim"],
) -> Float[Tensor, "batch head position dim"]:
    """Return the attention outputs of every head. `query` has not been scaled by 1 / sqrt(dim)."""
    return nn.functional.scaled_dot_product_attention(query, key, value, is_causal=stack.causal)


def run_layer(stack: Stack, block: Block, x: Float[Tensor, "pair position hidden"]) -> LayerRun:
    """Run one layer of a model and return its intermediate results."""
    batch, length, hidden = x.shape
    shared = block.qkv(block.seen(x)).view(batch, length, 3, block.heads, hidden // block.heads)
    query, key, value = shared.permute(2, 0, 3, 1, 4)
    mixed = attend(stack, query, key, value).transpose(1, 2)
    joined = block.joined(mixed, x)
    middle = joined if block.norm_first else block.norms[0](joined)  # to which the feed-forward sublayer adds
    fed = feed(block, block.norms[1](middle) if block.norm_first else middle)
    return LayerRun(x, query, key, value, mixed, joined, middle, fed)


def feed(block: Block, states: Float[Tensor, "*rows hidden"]) -> Float[Tensor, "*rows hidden"]:
    """Return the output of a feed-forward sublayer, without its LayerNorms and residual connection."""
    return block.narrow(block.wide(states, activation=block.activation))


def after_feed(block: Block, middle: Tensor, fed: Float[Tensor, "*rows hidden"]) -> Float[Tensor, "*rows hidden"]:
    """Return the output of a layer, given the residual stream `middle` before its feed-forward sublayer and the output
    `fed` of this sublayer. The two tensors are broadcast to a common shape."""
    return middle + fed if block.norm_first else block.norms[1](middle + fed)


def run_all(
    stack: Stack, x: Float[Tensor, "pair position hidden"]
) -> tuple[tuple[LayerRun, ...], Float[Tensor, "pair position hidden"]]:
    """Run every layer of a model, and return the results of each layer and the output of the last layer."""
    layers = []
    for block in stack.blocks:
        layers.append(run_layer(stack, block, x))
        x = after_feed(block, layers[-1].middle, layers[-1].fed)
    return tuple(layers), x


def contributions(stack: Stack, layers: Sequence[LayerRun]) -> Float[Tensor, "sender pair position hidden"]:
    """Return what every sender adds to the residual stream: the embeddings, and the heads and feed-forward sublayer of
    each layer."""
    parts = [layers[0].x[None]]
    for block, layer in zip(stack.blocks, layers, strict=True):
        parts += [torch.einsum("blhd,hdi->hbli", layer.mixed, block.separate["out"]), layer.fed[None]]
    return torch.cat(parts)


SENDERS_AT_ONCE = 16
AGREEMENT = 1e-3  # relative to the largest logit
Difference = Callable[[Float[Tensor, "*variant pair choice"]], Float[Tensor, "*variant pair"]]


@dataclass(frozen=True)
class AlignedPairs:
    """Pairs of inputs A and B, with pairs of aligned positions (position in A, position in B). All inputs A have the
    same length.

    Raises InputError if the numbers of inputs differ, or a pair has no aligned position or one outside the input.
    """

    firsts: Sequence[Encoding]
    seconds: Sequence[Encoding]
    alignments: Sequence[Alignment]

    def __post_init__(self) -> None:
        check_pairs("Edges need", self.firsts, self.seconds, self.alignments)


@dataclass(frozen=True)
class PairRun:
    """The results of a forward pass on inputs A, with the sender outputs for the paired inputs B.

    `own` and `other` contain what each sender adds to the residual stream for A and for B, at positions of A. They are
    equal at positions that are not aligned.
    """

    stack: Stack
    layers: tuple[LayerRun, ...]
    last: Float[Tensor, "pair position hidden"]
    own: Float[Tensor, "sender pair position hidden"]
    other: Float[Tensor, "sender pair position hidden"]

    @property
    def graph(self) -> Graph:
        return Graph(len(self.stack.blocks), self.stack.blocks[0].heads)

    def logits(self) -> Float[Tensor, "pair choice"]:
        return self.stack.logits(self.last)


def run_pairs(stack: Stack, pairs: AlignedPairs) -> PairRun:
    """Run the model on inputs A, which must have equal length, and on the paired inputs B."""
    layers, last = run_all(stack, stack.embed(pairs.firsts))
    outputs = contributions(stack, layers)
    other = outputs.clone()
    for row, (second, alignment) in enumerate(zip(pairs.seconds, pairs.alignments, strict=True)):
        theirs = contributions(stack, run_all(stack, stack.embed([second]))[0])
        first_places, second_places = (list(side) for side in zip(*alignment.pairs, strict=True))
        other[:, row, first_places] = theirs[:, 0, second_places]
    return PairRun(stack, layers, last, outputs, other)


# ---------------------------------------------------------------- streams with one sender's contribution from B


@dataclass(frozen=True)
class Streams:
    """Copies of the residual stream of inputs A at one layer, one for each earlier sender. In each copy, the output of
    that sender is replaced by its output on the paired inputs B.

    Attributes:
        attention: input of the attention sublayer, for every sender before its heads.
        feed_forward: input of the feed-forward sublayer, for these senders and the heads of the layer.
    """

    attention: Float[Tensor, "earlier pair position hidden"]
    feed_forward: Float[Tensor, "sender pair position hidden"]


def streams(run: PairRun) -> Iterator[Streams | Float[Tensor, "sender pair position hidden"]]:
    """Yield, for each layer, copies of the residual stream of inputs A, one for each earlier sender. In each copy, the
    output of that sender is replaced by its output on the paired inputs B.

    The last value is the input of the output layer.
    """
    moved, graph = run.other - run.own, run.graph
    stream = (run.layers[0].x + moved[0])[None]
    for number, (block, layer) in enumerate(zip(run.stack.blocks, run.layers, strict=True)):
        first, second = block.norms
        start = graph.before_head(number)
        heads = layer.joined + moved[start : start + graph.heads]
        joined = torch.cat([stream + (layer.joined - layer.x), heads])
        if block.norm_first:
            yield Streams(first(stream), second(joined))
            stream = torch.cat([joined + layer.fed, (layer.joined + layer.fed + moved[start + graph.heads])[None]])
        else:
            middle = first(joined)
            yield Streams(stream, middle)
            whole = layer.middle + layer.fed + moved[start + graph.heads]
            stream = second(torch.cat([middle + layer.fed, whole[None]]))
    yield stream


# ---------------------------------------------------------------- exact effects


def edge_effects(
    run: PairRun, edges: Sequence[Edge], difference: Difference, *, batch_tokens: int = BATCH_TOKENS
) -> Float[Tensor, "edge pair"]:
    """Return the effect of every edge on every pair of inputs (A, B), as float64. The effect is how much the logit
    difference m on A falls if this edge carries the output of its sender on B.

    Args:
        difference: m as a function of logits [..., pair, choice].
        batch_tokens: tokens of edges and pairs that run together; at least one edge.
    """
    graph, effects = run.graph, torch.zeros(len(edges), run.last.shape[0], dtype=torch.float64)
    wanted: dict[int, dict[int, list[tuple[int, int]]]] = {}  # by layer and receiver: (sender, number)
    for number, edge in enumerate(edges):
        layer, index = divmod(edge.receiver, 3 * graph.heads + 1)
        wanted.setdefault(layer, {}).setdefault(index, []).append((edge.sender, number))
    whole = difference(run.logits())
    with torch.no_grad():
        for layer, layer_streams in enumerate(streams(run)):
            here = wanted.get(layer, {})
            if isinstance(layer_streams, Tensor):
                logits = run.stack.logits(layer_streams)
                for sender, number in here.get(0, []):
                    effects[number] = (whole - difference(logits[sender])).double().cpu()
                continue
            for numbers, logits in _of_layer(run, layer, layer_streams, here, batch_tokens):
                effects[numbers] = (whole - difference(logits)).double().cpu()
    return effects


Found = Iterator[tuple[list[int], Float[Tensor, "some pair choice"]]]


def _of_layer(
    run: PairRun, layer: int, layer_streams: Streams, here: dict[int, list[tuple[int, int]]], batch_tokens: int
) -> Found:
    graph, pairs, length = run.graph, *run.last.shape[:2]
    at_once = max(1, batch_tokens // (pairs * length))
    blocks = here.pop(3 * graph.heads, [])
    for start in range(0, len(blocks), at_once):
        group = blocks[start : start + at_once]
        fed = feed(run.stack.blocks[layer], layer_streams.feed_forward[[sender for sender, _ in group]])
        out = after_feed(run.stack.blocks[layer], run.layers[layer].middle, fed)
        yield [number for _, number in group], _finish(run, out, layer + 1)
    by_sender: dict[int, list[tuple[int, int]]] = {}
    for place, group in here.items():
        for sender, number in group:
            by_sender.setdefault(sender, []).append((place, number))
    ordered = sorted(by_sender)
    for start in range(0, len(ordered), SENDERS_AT_ONCE):
        senders = ordered[start : start + SENDERS_AT_ONCE]
        moved = head_changes(run, layer, layer_streams.attention[senders])
        every = [(row, place, number) for row, sender in enumerate(senders) for place, number in by_sender[sender]]
        for begin in range(0, len(every), at_once):
            part = every[begin : begin + at_once]
            yield [number for _, _, number in part], _joined(run, layer, moved, part)


def head_changes(
    run: PairRun, layer: int, changed_streams: Float[Tensor, "sender pair position hidden"]
) -> Float[Tensor, "input sender pair position head dim"]:
    """Return how head outputs (before W_O) change if the query, key or value of each head has another input.
    `changed_streams` contains these inputs of the attention sublayer, one for each sender that was changed."""
    block, own = run.stack.blocks[layer], run.layers[layer]
    senders, pairs, length, hidden = changed_streams.shape
    shared = block.qkv(changed_streams.flatten(0, 1)).view(-1, length, 3, block.heads, hidden // block.heads)
    query, key, value = shared.permute(2, 0, 3, 1, 4)
    plain = [part.repeat(senders, 1, 1, 1) for part in (own.query, own.key, own.value)]
    changed = []
    for kind, part in enumerate((query, key, value)):
        states = [*plain[:kind], part, *plain[kind + 1 :]]
        mixed = attend(run.stack, *states)
        changed.append(mixed.transpose(1, 2).unflatten(0, (senders, pairs)) - own.mixed)
    return torch.stack(changed)


def _joined(run: PairRun, layer: int, moved: Tensor, part: Sequence[tuple[int, int, int]]) -> Tensor:
    """Return the logits for edges into heads, given as (index among the senders, index of the receiver, number)."""
    block, last = run.stack.blocks[layer], layer + 1 == len(run.stack.blocks)
    rows, places = [row for row, _, _ in part], [place for _, place, _ in part]
    heads, kinds = [place // 3 for place in places], [place % 3 for place in places]
    position = run.stack.position(run.last.shape[1]) if last else None
    where = slice(None) if position is None else [position]
    outputs = moved[kinds, rows, :, :, heads][:, :, where]
    added = torch.einsum("vbld,vdi->vbli", outputs, block.separate["out"][heads])
    out = block.after(run.layers[layer].joined[:, where] + added)
    if last:
        return run.stack.classify(out.flatten(0, 1)).unflatten(0, out.shape[:2])
    return _finish(run, out, layer + 1)


def _finish(run: PairRun, out: Float[Tensor, "variant pair position hidden"], layer: int) -> Tensor:
    """Return the logits of every variant from the inputs of `layer` on."""
    stack, y, position = run.stack, out.flatten(0, 1), run.stack.position(out.shape[2])
    for block in stack.blocks[layer:] if position is None else stack.blocks[layer:-1]:
        y = block.after(block.joined(block.mixed_of(y, stack.causal)[0], y))
    if position is None or layer == len(stack.blocks):
        return stack.logits(y).unflatten(0, out.shape[:2])
    block = stack.blocks[-1]
    none = y.new_zeros(y.shape[1], y.shape[1], dtype=torch.float32)
    mixed, _ = single_position(block, y, position, none)
    last = block.after(block.joined(mixed[:, None], y[:, position, None]))
    return stack.classify(last).unflatten(0, out.shape[:2])


def checked_stack(
    checkpoint: Checkpoint, encoding: Encoding, *, place: int | None = None, gradients: bool = False
) -> Stack:
    """Return a checkpoint as a stack of layers, after checking that the stack reproduces the logits of the model.
    Raises InterventionError if it does not, or if the model is not supported.

    Args:
        encoding: the input; logits may differ by AGREEMENT of the largest logit.
        place: the position of the prediction of a language model; None for classifiers.
        gradients: whether gradients flow through the layers.
    """
    stack = stack_of(checkpoint, arithmetic(checkpoint.device, getattr(torch, checkpoint.dtype)), gradients=gradients)
    kind = checkpoint.family.model_type
    stack = stack if stack is None or place is None else replace(stack, place=place)
    if stack is not None and len(stack.read(encoding)) == len(encoding):
        with torch.no_grad():
            own = stack.logits(run_all(stack, stack.embed([encoding]))[1])
        wanted = predict(checkpoint, [encoding]) if place is None else answers(checkpoint, [encoding], [place])
        if float((own - wanted).abs().max()) <= AGREEMENT * max(1.0, float(wanted.abs().max())):
            return stack
    raise InterventionError(
        "Circuits need a classifier or language model with the published architecture of BERT, RoBERTa, ELECTRA or "
        f"GPT-2; the logits of this {kind} model cannot be reproduced by running its layers one by one. Choose another "
        "checkpoint."
    )


# ---------------------------------------------------------------- effects to first order


POINTS = 5


def edge_attributions(
    run: PairRun, slopes_of: Stack, edges: Sequence[Edge], difference: Difference
) -> Float[Tensor, "edge pair"]:
    """Estimate the first-order effect of every edge on every pair of inputs (edge attribution patching).

    The estimate is the change of the receiver's input if the sender's contribution comes from B, times the gradient of
    m, summed over positions (Syed et al. 2023, arXiv 2310.10348). The gradient is averaged over POINTS points between
    the embeddings of B and A (Hanna et al. 2024, arXiv 2403.17806). Only what follows the receiver's projection is
    linearised, so edges into the output are exact. Float64, in units of m; positive if the edge supports the answer of
    A.
    """
    graph, moved = run.graph, run.other[0] - run.own[0]
    estimates = torch.zeros(graph.receivers, graph.senders, run.last.shape[0], dtype=torch.float64)
    sums: list[tuple[Tensor, Tensor]] = []
    for k in range(POINTS):
        # Gradients of m by every layer's queries, keys and values, and by the input of its feed-forward sublayer.
        x = run.layers[0].x + moved * (1 - (k + 0.5) / POINTS)
        kept: list[Tensor] = []
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            for block in slopes_of.blocks:
                batch, length = x.shape[:2]
                shared = block.qkv(block.seen(x))
                query, key, value = shared.view(batch, length, 3, block.heads, -1).permute(2, 0, 3, 1, 4)
                joined = block.joined(attend(slopes_of, query, key, value).transpose(1, 2), x)
                middle = joined if block.norm_first else block.norms[0](joined)
                read = (block.norms[1](middle) if block.norm_first else middle) + 0.0  # a separate node of the graph
                kept += [shared, read]
                x = after_feed(block, middle, feed(block, read))
            m = difference(slopes_of.logits(x))
            slopes = torch.autograd.grad(m.sum(), kept)
        there = list(zip(slopes[::2], slopes[1::2], strict=True))
        sums = [(a + b, c + d) for (a, c), (b, d) in zip(sums, there, strict=True)] if sums else there
    whole = difference(run.logits())
    with torch.no_grad():
        for number, layer_streams in enumerate(streams(run)):
            if isinstance(layer_streams, Tensor):
                estimates[graph.block_receiver(number)] = (
                    (whole - difference(run.stack.logits(layer_streams))).double().cpu()
                )
                continue
            # Into the heads of a layer [receiver, sender, pair] and its feed-forward sublayer [sender, pair], signed
            slopes = sums[number]
            block, layer_run = run.stack.blocks[number], run.layers[number]
            senders, pairs, length, hidden = layer_streams.attention.shape
            split = (3, block.heads, hidden // block.heads)
            shared = block.qkv(layer_streams.attention.flatten(0, 1)).view(senders, pairs, length, *split)
            plain = torch.stack([layer_run.query, layer_run.key, layer_run.value]).permute(1, 3, 0, 2, 4)
            into_heads = torch.einsum("sblchd,blchd->hcsb", shared - plain, slopes[0].view(pairs, length, *split))
            into_heads = into_heads.flatten(0, 1)
            read = block.norms[1](layer_run.middle) if block.norm_first else layer_run.middle
            into_block = torch.einsum("sbli,bli->sb", layer_streams.feed_forward - read, slopes[1])
            first = graph.receiver(number, 0, 0)
            estimates[first : first + 3 * graph.heads, : into_heads.shape[1]] = -into_heads.double().cpu() / POINTS
            estimates[graph.block_receiver(number), : into_block.shape[0]] = -into_block.double().cpu() / POINTS
    return torch.stack([estimates[edge.receiver, edge.sender] for edge in edges])


# ---------------------------------------------------------------- a model run as a circuit


def circuit_logits(
    run: PairRun, circuits: Bool[Tensor, "circuit receiver sender"], *, batch_tokens: int = BATCH_TOKENS
) -> Float[Tensor, "circuit pair choice"]:
    """Return the logits of inputs A for every circuit. Edges in the circuit carry values from A, and all other edges
    carry values from B.

    Senders in the circuit contribute what they compute in this run. With all edges, the result is the logits of A;
    without edges, and for B of equal length, those of B. `circuits` is as `Graph.mask`.
    """
    pairs, length = run.last.shape[:2]
    at_once = max(1, batch_tokens // (pairs * length))
    with torch.no_grad():
        parts = [_Circuits(run, batch).logits() for batch in circuits.to(run.last.device).split(at_once)]
    return torch.cat(parts).cpu()


@dataclass
class _Circuits:
    """Circuits that run in parallel; `added` grows as senders run."""

    run: PairRun
    circuits: Bool[Tensor, "circuit receiver sender"]

    def logits(self) -> Float[Tensor, "circuit pair choice"]:
        run, graph = self.run, self.run.graph
        count = len(self.circuits)
        self.added = run.own[:1].unsqueeze(1).expand(-1, count, *run.own.shape[1:])  # [sender, circuit, pair, ...]
        for layer, block in enumerate(run.stack.blocks):
            first = graph.receiver(layer, 0, 0)
            read = block.seen(self.streams(list(range(first, first + 3 * graph.heads)), layer, with_heads=False))
            states = [self._projected(read[kind::3], layer, kind) for kind in range(3)]
            mixed = attend(run.stack, *states)
            mixed = mixed.unflatten(0, (count, -1)).transpose(2, 3)  # [circuit, pair, position, head, dim]
            heads = torch.einsum("cblhd,hdi->hcbli", mixed, block.separate["out"])
            self.added = torch.cat([self.added, heads])
            middle = self.streams([graph.block_receiver(layer)], layer, with_heads=True)[0]
            fed = feed(block, block.norms[1](middle) if block.norm_first else middle)
            self.added = torch.cat([self.added, fed[None]])
        last = self.streams([graph.block_receiver(graph.layers)], graph.layers, with_heads=False)[0]
        return run.stack.logits(last)

    def streams(self, receivers: Sequence[int], layer: int, *, with_heads: bool) -> Tensor:
        """Return the residual stream that each receiver reads in each circuit. The axes are [receiver, circuit, pair,
        position, hidden]. If `with_heads`, the stream includes the outputs of the heads in `layer`."""
        run, graph = self.run, self.run.graph
        stream = self._heard(receivers, 0, 1)
        for number in range(layer + with_heads):
            block, layer_run, start = run.stack.blocks[number], run.layers[number], graph.before_head(number)
            constant = layer_run.joined - layer_run.x - run.own[start : start + graph.heads].sum(0)
            stream = stream + self._heard(receivers, start, start + graph.heads) + constant
            if not block.norm_first:
                stream = block.norms[0](stream)
            if number < layer:
                stream = stream + self._heard(receivers, start + graph.heads, start + graph.heads + 1)
                if not block.norm_first:
                    stream = block.norms[1](stream)
        return stream

    def _heard(self, receivers: Sequence[int], start: int, stop: int) -> Tensor:
        """Return the sum of what these senders add for each receiver."""
        other, chosen = self.run.other[start:stop], self.circuits[:, receivers, start:stop].to(self.run.own)
        moved = self.added[start:stop] - other[:, None]
        return torch.einsum("crs,scbli->rcbli", chosen, moved) + other.sum(0)

    def _projected(self, read: Float[Tensor, "head circuit pair position hidden"], layer: int, kind: int) -> Tensor:
        """Return the queries, keys or values of each head. *Shape:* (circuit x pair, head, position, dim)."""
        raw, name = self.run.stack.blocks[layer].separate, ("query", "key", "value")[kind]
        states = torch.einsum("hcbli,hdi->cbhld", read, raw[name]) + raw[f"{name}_bias"][:, None]
        return states.flatten(0, 1)
