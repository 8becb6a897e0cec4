"""Edges' effects to first order, all from a few passes: edge attribution with gradients averaged along the way to B.

The estimate of an edge is (its receiver's input with the sender's contribution from B, less A's) times the gradient of
m there, summed over positions (Syed et al. 2023, arXiv 2310.10348), where the gradient is the mean of those at points
on the way from B's embeddings to A's (Hanna et al. 2024, arXiv 2403.17806). The changed input is exact up to the
receiver's projection; only what follows is linear. It proposes and never decides.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from .edge_names import Edge
from .edges import Difference, PairRun, Streams, streams
from .layer_runs import after_feed, attend, feed
from .stacks import Stack

POINTS = 5


def edge_attributions(
    run: PairRun, slopes_of: Stack, edges: Sequence[Edge], difference: Difference, *, points: int = POINTS
) -> Float[Tensor, "edge pair"]:
    """The first-order effect of every edge on every pair.

    Args:
        difference: m of logits [..., pair, choice].
        points: on the way from B to A at which gradients are taken; 1 or more.

    Returns:
        Float64, in units of m, on the CPU; above 0 the edge carries what speaks for A's answer. Edges into the output
        are exact.
    """
    graph, moved = run.graph, run.other[0] - run.own[0]
    estimates = torch.zeros(graph.receivers, graph.senders, run.last.shape[0], dtype=torch.float64)
    sums: list[tuple[Tensor, Tensor]] = []
    for k in range(points):
        # Gradients of m by every layer's queries, keys and values, and by the input of its feed-forward sublayer.
        x = run.layers[0].x + moved * (1 - (k + 0.5) / points)
        kept: list[Tensor] = []
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            for block in slopes_of.blocks:
                batch, length = x.shape[:2]
                shared = block.qkv(block.seen(x))
                query, key, value = shared.view(batch, length, 3, block.heads, -1).permute(2, 0, 3, 1, 4)
                joined = block.joined(attend(slopes_of, query, key, value).transpose(1, 2), x)
                middle = joined if block.norm_first else block.norms[0](joined)
                read = (block.norms[1](middle) if block.norm_first else middle) + 0.0  # a node of its own
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
            into_heads, into_block = _of_layer(run, number, layer_streams, sums[number])
            first = graph.receiver(number, 0, 0)
            estimates[first : first + 3 * graph.heads, : into_heads.shape[1]] = -into_heads.double().cpu() / points
            estimates[graph.block_receiver(number), : into_block.shape[0]] = -into_block.double().cpu() / points
    return torch.stack([estimates[edge.receiver, edge.sender] for edge in edges])


def _of_layer(
    run: PairRun, number: int, layer_streams: Streams, slopes: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """Into a layer's heads [receiver, sender, pair] and its feed-forward block [sender, pair], signs as they are."""
    block, layer_run = run.stack.blocks[number], run.layers[number]
    senders, pairs, length, hidden = layer_streams.attention.shape
    split = (3, block.heads, hidden // block.heads)
    shared = block.qkv(layer_streams.attention.flatten(0, 1)).view(senders, pairs, length, *split)
    plain = torch.stack([layer_run.query, layer_run.key, layer_run.value]).permute(1, 3, 0, 2, 4)
    into_heads = torch.einsum("sblchd,blchd->hcsb", shared - plain, slopes[0].view(pairs, length, *split))
    read = block.norms[1](layer_run.middle) if block.norm_first else layer_run.middle
    into_block = torch.einsum("sbli,bli->sb", layer_streams.feed_forward - read, slopes[1])
    return into_heads.flatten(0, 1), into_block
