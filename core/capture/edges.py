"""Effects of edges: a receiver's own input with one sender's contribution taken from another input, exactly.

A run of A is kept with what every sender added to its residual stream; so is what they add in a run of B, at the
positions of A that stand for positions of B. In the run of A one receiver's input is then computed with one sender's
contribution taken from B, all else as in A, and everything after the receiver runs on freely. Where LayerNorms stand in
the stream (BERT) they are computed again along it, for this receiver only. Senders' changed streams are shared by all
receivers above them, and what lies below a receiver is not run again.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from ..errors import InterventionError
from ..models.arithmetic import arithmetic
from ..models.checkpoint import Checkpoint
from ..models.encoding import Encoding
from .edge_names import Edge, Graph
from .head_replacement import single_position
from .layer_runs import LayerRun, after_feed, attend, contributions, feed, run_all
from .logits import answers
from .outputs import Alignment, check_pairs
from .running import predict
from .stacks import Stack, stack_of

BATCH_TOKENS = 4096
SENDERS_AT_ONCE = 16
AGREEMENT = 1e-3  # of the largest logit
Difference = Callable[[Float[Tensor, "*variant pair choice"]], Float[Tensor, "*variant pair"]]


@dataclass(frozen=True)
class AlignedPairs:
    """Inputs A of one length, and their Bs.

    Attributes:
        alignments: which positions stand for each other: (of A, of B).

    Raises:
        InputError: unequal numbers, or a pair that shares no position or names one outside.
    """

    firsts: Sequence[Encoding]
    seconds: Sequence[Encoding]
    alignments: Sequence[Alignment]

    def __post_init__(self) -> None:
        check_pairs("Edges need", self.firsts, self.seconds, self.alignments)


@dataclass(frozen=True)
class PairRun:
    """A run of A, and who adds what to the stream in A and (at A's positions) in B.

    Attributes:
        other: what it adds in B; at positions of A that stand for none of B, what it adds in A.
    """

    stack: Stack
    layers: tuple[LayerRun, ...]
    last: Float[Tensor, "pair position hidden"]
    own: Float[Tensor, "sender pair position hidden"]
    other: Float[Tensor, "sender pair position hidden"]

    @property
    def graph(self) -> Graph:
        """The nodes and edges of its model."""
        return Graph(len(self.stack.blocks), self.stack.blocks[0].heads)

    def logits(self) -> Float[Tensor, "pair choice"]:
        """Logits of A."""
        return self.stack.logits(self.last)


def run_pairs(stack: Stack, pairs: AlignedPairs) -> PairRun:
    """The runs of As of one length and of their Bs, which may have others."""
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
    """The stream at a layer with each earlier sender's contribution taken from B.

    Attributes:
        attention: what the layer's attention reads, for every sender before its heads.
        feed_forward: what its feed-forward block reads, for these senders and the layer's heads.
    """

    attention: Float[Tensor, "earlier pair position hidden"]
    feed_forward: Float[Tensor, "sender pair position hidden"]


def streams(run: PairRun, *, held: bool = False) -> Iterator[Streams | Float[Tensor, "sender pair position hidden"]]:
    """The stream with one sender's contribution taken from B, for every sender, layer by layer.

    Args:
        held: whether LayerNorms keep the scale that they have in A, so that contributions only add up (and are an
            approximation).

    Yields:
        What each layer reads; at last the stream that the output reads, for all senders.
    """
    moved, graph = run.other - run.own, run.graph
    stream = (run.layers[0].x + moved[0])[None]
    for number, (block, layer) in enumerate(zip(run.stack.blocks, run.layers, strict=True)):
        first, second = (_normed(norm, held) for norm in block.norms)
        start = graph.before_head(number)
        heads = layer.joined + moved[start : start + graph.heads]
        joined = torch.cat([stream + (layer.joined - layer.x), heads])
        if block.norm_first:
            yield Streams(first(stream, layer.x), second(joined, layer.joined))
            stream = torch.cat([joined + layer.fed, (layer.joined + layer.fed + moved[start + graph.heads])[None]])
        else:
            middle, whole = first(joined, layer.joined), layer.middle + layer.fed
            yield Streams(stream, middle)
            stream = torch.cat([middle + layer.fed, (whole + moved[start + graph.heads])[None]])
            stream = second(stream, whole)
    yield stream


def _normed(norm: Callable[[Tensor], Tensor], held: bool) -> Callable[[Tensor, Tensor], Tensor]:
    """A LayerNorm of a changed stream beside the one of A."""
    if held:
        return lambda x, own: norm.held(x, own)  # type: ignore[attr-defined]
    return lambda x, own: norm(x)


# ---------------------------------------------------------------- exact effects


def edge_effects(
    run: PairRun, edges: Sequence[Edge], difference: Difference, *, batch_tokens: int = BATCH_TOKENS
) -> Float[Tensor, "edge pair"]:
    """m(A) less m with the edge's contribution taken from B, of every edge and pair.

    Args:
        difference: m of logits [..., pair, choice].
        batch_tokens: tokens of edges and pairs run together; one edge at least.

    Returns:
        Float64, in units of m, on the CPU. Above 0 the edge carries what speaks for A's answer.
    """
    graph, effects = run.graph, torch.zeros(len(edges), run.last.shape[0], dtype=torch.float64)
    wanted: dict[int, dict[int, list[tuple[int, int]]]] = {}  # by layer, by receiver's place: sender, number
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
    """Logits of the edges into one layer."""
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
    """How each head's output moves when its query, its key, or its value is that of a changed stream.

    Args:
        layer: whose heads, from 0.
        changed_streams: what the layer's attention reads, one stream for each sender.

    Returns:
        The changed output less A's, before W_O; inputs are query, key and value in this order.
    """
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
    """Logits of edges into heads: (place among the senders, place of the receiver, number)."""
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
    """Logits of every variant from the inputs of `layer` on."""
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
    """The checkpoint's layers taken apart, which must give its own logits.

    Args:
        encoding: an input on which logits are compared; they may differ by AGREEMENT of the largest.
        place: the position where a language model is read; None for classifiers.
        gradients: whether something flows back through the layers.

    Returns:
        The stack, read at `place`.

    Raises:
        InterventionError: its family, its classifier or an option of it cannot be taken apart.
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
        f"Edges are followed through classifiers like BERT, RoBERTa, ELECTRA and GPT-2 as published; this "
        f"{kind} gives other logits when it is taken apart (another family, pooling or option): choose another."
    )
