"""The layers of a stack as they run: what each computes on the way, and what each of its senders adds to the stream."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from .stacks import Block, Stack


@dataclass(frozen=True)
class LayerRun:
    """A layer as it ran."""

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
    """The heads' outputs, by softmax attention over all positions, or of a causal stack over earlier ones and the own.

    Args:
        stack: says whether queries see later keys.
        query: not scaled yet; the scale is 1 / sqrt(dim).
    """
    return nn.functional.scaled_dot_product_attention(query, key, value, is_causal=stack.causal)


def run_layer(stack: Stack, block: Block, x: Float[Tensor, "pair position hidden"]) -> LayerRun:
    """One layer, with what it computed on the way."""
    batch, length, hidden = x.shape
    shared = block.qkv(block.seen(x)).view(batch, length, 3, block.heads, hidden // block.heads)
    query, key, value = shared.permute(2, 0, 3, 1, 4)
    mixed = attend(stack, query, key, value).transpose(1, 2)
    joined = block.joined(mixed, x)
    middle, fed = fed_forward(block, joined)
    return LayerRun(x, query, key, value, mixed, joined, middle, fed)


def fed_forward(
    block: Block, joined: Float[Tensor, "*rows hidden"]
) -> tuple[Float[Tensor, "*rows hidden"], Float[Tensor, "*rows hidden"]]:
    """The feed-forward half of a layer, in its two parts.

    Returns:
        What the feed-forward block's output is added to (BERT: behind the first LayerNorm), and that output.
    """
    middle = joined if block.norm_first else block.norms[0](joined)
    return middle, feed(block, block.norms[1](middle) if block.norm_first else middle)


def feed(block: Block, states: Float[Tensor, "*rows hidden"]) -> Float[Tensor, "*rows hidden"]:
    """The feed-forward block alone, without LayerNorms and residual."""
    return block.narrow(block.wide(states, activation=block.activation))


def after_feed(block: Block, middle: Tensor, fed: Float[Tensor, "*rows hidden"]) -> Float[Tensor, "*rows hidden"]:
    """The layer's output: the residual sum, in BERT's order behind its LayerNorm.

    Args:
        middle: what the output is added to. *Shape:* (..., hidden), which may broadcast over the axes before it.
    """
    return middle + fed if block.norm_first else block.norms[1](middle + fed)


def run_all(
    stack: Stack, x: Float[Tensor, "pair position hidden"]
) -> tuple[tuple[LayerRun, ...], Float[Tensor, "pair position hidden"]]:
    """Every layer as it ran, and the stream behind the last.

    Returns:
        The layers in order, and the last one's output.
    """
    layers = []
    for block in stack.blocks:
        layers.append(run_layer(stack, block, x))
        x = after_feed(block, layers[-1].middle, layers[-1].fed)
    return tuple(layers), x


def added_by_heads(
    block: Block, mixed: Float[Tensor, "pair position head dim"]
) -> Float[Tensor, "head pair position hidden"]:
    """What each head adds to the stream; the bias of W_O is no head's.

    Returns:
        Their sum and the bias are what the attention block adds.
    """
    return torch.einsum("blhd,hdi->hbli", mixed, block.separate["out"])


def contributions(stack: Stack, layers: Sequence[LayerRun]) -> Float[Tensor, "sender pair position hidden"]:
    """What every sender adds to the stream, in the order of the graph.

    Returns:
        The embeddings, then of each layer its heads and its feed-forward block.
    """
    parts = [layers[0].x[None]]
    for block, layer in zip(stack.blocks, layers, strict=True):
        parts += [added_by_heads(block, layer.mixed), layer.fed[None]]
    return torch.cat(parts)
