"""Rows of any lengths in one pass, each under many variants, with nothing padded and nothing run twice.

Linear layers and norms work token by token, so tokens of rows of different lengths stand in one matrix; only attention
needs to know which tokens are one row, and runs once for each length. A variant branches off the untouched rows in the
layer where its first head is, and from there on its tokens stand below theirs. So each layer's weights are read once
for all rows and variants of a pack, however few rows have the same length and however few variants are left: half the
variants take half the time. What is computed is exact, as in `core.capture.sweeping`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ..attention import Head
from ..models.encoding import Encoding
from .interventions import Operator, StandInSource
from .stacks import Block, Stack
from .standins import StandIn, last_outputs, stand_in

PACK_TOKENS = 4096  # of all rows and variants of a pack, in the layers where every variant has begun

Masks = Bool[Tensor, "variant layer head"]


@dataclass(frozen=True)
class Rows:
    """The rows of one length in a pack."""

    encodings: Sequence[Encoding]
    length: int
    changed: StandIn

    @property
    def tokens(self) -> int:
        """How many tokens these rows have."""
        return len(self.encodings) * self.length


def packs(encodings: Sequence[Encoding], variants: int, pack_tokens: int = PACK_TOKENS) -> Iterator[list[int]]:
    """Inputs in packs, similar lengths together, longest first.

    Args:
        pack_tokens: tokens of a pack at most, times 1 + variants; one input at least.
    """
    order = sorted(range(len(encodings)), key=lambda k: (-len(encodings[k]), k))
    some: list[int] = []
    tokens = 0
    for k in order:
        size = len(encodings[k]) * (1 + variants)
        if some and tokens + size > pack_tokens:
            yield some
            some, tokens = [], 0
        some.append(k)
        tokens += size
    if some:
        yield some


def packed_logits(
    stack: Stack,
    encodings: Sequence[Encoding],
    variants: Sequence[Iterable[Head]],
    operator: Operator,
    pack_tokens: int = PACK_TOKENS,
    *,
    source: StandInSource | None = None,
) -> tuple[Float[Tensor, "input label"], Float[Tensor, "variant input label"]]:
    """Logits of every input, untouched and under every variant of heads.

    Args:
        variants: heads that are changed together; one at least in each.
        pack_tokens: of all rows and variants of a pack; one input at least.

    Returns:
        Untouched, then changed; inputs and variants in the order given; float32 at least, on the CPU.
    """
    masks = torch.zeros(len(variants), len(stack.blocks), stack.blocks[0].heads, dtype=torch.bool)
    for number, variant in enumerate(variants):
        for head in variant:
            masks[number, head.layer, head.head] = True
    plain, changed = [], []
    order = list(packs(encodings, len(masks), pack_tokens))
    with torch.no_grad():
        for some in order:
            groups = [list(numbers) for _, numbers in groupby(some, key=lambda k: len(encodings[k]))]
            rows = [[encodings[k] for k in numbers] for numbers in groups]
            inputs = [
                Rows(group, len(group[0]), stand_in(stack, group, numbers, operator, source))
                for group, numbers in zip(rows, groups, strict=True)
            ]
            own, others = _run_pack(stack, inputs, masks)
            plain.append(own.cpu())
            changed.append(others.cpu())
    back = torch.tensor([k for some in order for k in some]).argsort()
    return torch.cat(plain)[back], torch.cat(changed, 1)[:, back]


def _run_pack(
    stack: Stack, groups: Sequence[Rows], masks: Masks
) -> tuple[Float[Tensor, "input label"], Float[Tensor, "variant input label"]]:
    """Logits of a pack's inputs, untouched and under every variant."""
    begins = masks.any(2).int().argmax(1)
    x = torch.cat([stack.embed(group.encodings).flatten(0, 1) for group in groups])
    masks, streams = masks.to(x.device), [-1]  # -1: the untouched model; then numbers of variants
    for number, block in enumerate(stack.blocks[:-1]):
        new = torch.nonzero(begins == number).flatten().tolist()
        joined = _attended(stack, number, x, groups, _Branches(masks[:, number], streams, new))
        streams = streams + new
        x = block.after(joined)
    return _read(stack, x, groups, masks[:, -1], streams)


@dataclass(frozen=True)
class _Branches:
    """The variants at one layer. masks: the heads that each changes here; streams: those that have begun, after -1 for
    the untouched rows; new: those that begin here."""

    masks: Bool[Tensor, "variant head"]
    streams: Sequence[int]
    new: Sequence[int]


def _attended(
    stack: Stack,
    layer: int,
    x: Float[Tensor, "token hidden"],
    groups: Sequence[Rows],
    branches: _Branches,
) -> Float[Tensor, "more hidden"]:
    """The residual stream after attention; variants that begin here stand below those there were, group by group."""
    block, sizes = stack.blocks[layer], [len(branches.streams) * group.tokens for group in groups]
    shared = block.qkv(block.seen(x)).split(sizes)
    parts = [_mixed(stack, layer, part, group, branches) for part, group in zip(shared, groups, strict=True)]
    joined = block.out(torch.cat([own for own, _, _ in parts]), plus=x).split(sizes)
    if not branches.new:
        return torch.cat(joined)
    below = []
    for own, (_, mixed, changed), group in zip(joined, parts, groups, strict=True):
        base = own[: group.tokens]
        below += [own, _branched(block, base, mixed, changed, branches.masks[list(branches.new)]).flatten(0, 1)]
    return torch.cat(below)


def _mixed(
    stack: Stack,
    layer: int,
    shared: Float[Tensor, "token three"],
    group: Rows,
    branches: _Branches,
) -> tuple[Tensor, Tensor, Tensor]:
    """What the heads of one group give out [token, hidden], with earlier variants' heads of this layer changed; then
    the untouched rows' own and changed outputs [token, head, dim], for the variants that begin here."""
    rows, block, masks = len(group.encodings), stack.blocks[layer], branches.masks
    width = shared.shape[1] // 3 // block.heads
    query, key, value = shared.view(-1, group.length, 3, block.heads, width).permute(2, 0, 3, 1, 4)
    own = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=stack.causal).transpose(1, 2)
    kept, none = own, own[:0].flatten(0, 1)
    changed = group.changed.outputs(layer, own[:rows], value[:rows]).flatten(0, 1) if branches.new else none
    touched = masks[list(branches.streams[1:])]
    if bool(touched.any()):
        chosen = torch.cat([masks.new_zeros(1, masks.shape[1]), touched]).repeat_interleave(rows, 0)[:, None, :, None]
        kept = torch.where(chosen, group.changed.outputs(layer, own, value), own)
    return kept.reshape(len(shared), -1), own[:rows].flatten(0, 1) if branches.new else none, changed


def _branched(
    block: Block,
    base: Float[Tensor, "token hidden"],
    mixed: Float[Tensor, "token head dim"],
    changed: Float[Tensor, "token head dim"],
    chosen: Bool[Tensor, "variant head"],
) -> Float[Tensor, "variant token hidden"]:
    """The residual stream of variants that begin here: the untouched rows' and (changed_h - own_h) W_h of each head."""
    used = torch.nonzero(chosen.any(0)).flatten()
    difference = (changed - mixed)[:, used].transpose(0, 1)
    added = torch.bmm(difference, block.separate["out"][used])
    if bool((chosen.sum(1) == 1).all()):
        return added[chosen[:, used].int().argmax(1)].add_(base)
    return torch.einsum("vh,htm->vtm", chosen[:, used].to(added.dtype), added).add_(base)


def _read(
    stack: Stack,
    x: Float[Tensor, "token hidden"],
    groups: Sequence[Rows],
    masks: Bool[Tensor, "variant head"],
    streams: Sequence[int],
) -> tuple[Tensor, Tensor]:
    """The last layer where the classifier reads, for what has begun, and for variants that begin here."""
    block, count = stack.blocks[-1], len(masks)
    late = sorted(set(range(count)) - set(streams))
    chosen = torch.cat([masks.new_zeros(1, masks.shape[1]), masks[[*streams[1:], *late]]])
    mixed: list[Tensor] = []
    residual: list[Tensor] = []
    sizes = [len(streams) * group.tokens for group in groups]
    for part, group in zip(x.split(sizes), groups, strict=True):
        rows, lines = len(group.encodings), part.view(-1, group.length, part.shape[1])
        parts = (*last_outputs(stack, group.changed, lines), stack.read_of(lines))
        own, replaced, read = (torch.cat([t, t[:rows].repeat(len(late), *[1] * (t.dim() - 1))]) for t in parts)
        mixed.append(torch.where(chosen.repeat_interleave(rows, 0)[:, None, :, None], replaced, own).flatten(0, 1))
        residual.append(read)
    tokens = [read.flatten(0, 1) for read in residual]
    after = block.after(block.joined(torch.cat(mixed)[None], torch.cat(tokens)[None])[0]).split(
        [len(input_tokens) for input_tokens in tokens]
    )
    logits = [stack.classify(some.view(read.shape)) for some, read in zip(after, residual, strict=True)]
    every = torch.cat(
        [outcome.view(1 + count, len(g.encodings), -1) for outcome, g in zip(logits, groups, strict=True)], 1
    )
    back = torch.tensor([*streams[1:], *late], dtype=torch.long, device=every.device).argsort()
    return every[0], every[1:][back]


def cost_of(variant: Iterable[Head], layers: int) -> float:
    """What a variant of one row costs here, in passes of that row through the untouched model: the feed-forward part
    (two thirds of a layer's products) where it begins, whole layers above, and of the last layer next to nothing."""
    begins = min(head.layer for head in variant)
    return max(0.0, layers - 1 - begins - 1 / 3) / max(1, layers - 1)
