"""Ablation sweeps: exact logits of a model for many ablation targets, without repeating shared computations.

A target ("variant") is a set of components: heads under one ablation method, or ablated sublayers and layers. Layers
before its first component run once for all targets. In that layer, Q, K and V are shared, and changing a head adds
(changed_h - own_h) W_h to the residual stream. The last layer computes only the token that the classifier reads.
Batches contain inputs of equal length, so nothing is padded.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from types import MappingProxyType

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from .. import unit_progress
from ..attention import Head, all_heads, attends
from ..errors import InputError, check_choice
from ..models.checkpoint import Checkpoint
from ..models.encoding import Encoding
from ..models.memory import arithmetic
from .blocks import PartChange
from .components import Component, LayerBlock
from .interventions import Intervention, Operator, StandInSource, check_source, operator_of
from .running import BATCH_TOKENS, Change, answers, batches, predict
from .stacks import BegunByHead, Block, Stack, stack_of
from .standins import StandIn, contributions, last_outputs, stand_in

# ---------------------------------------------------------------- inputs of any lengths in one pass


PACK_TOKENS = 4096  # limit for a pack: its rows' tokens times its variants


@dataclass(frozen=True)
class Rows:
    """Inputs of equal length that run together under one ablation method, and the head outputs after the ablation."""

    encodings: Sequence[Encoding]
    length: int
    changed: StandIn

    @property
    def tokens(self) -> int:
        return len(self.encodings) * self.length


def packs(encodings: Sequence[Encoding], variants: int, pack_tokens: int = PACK_TOKENS) -> Iterator[list[int]]:
    """Yield batches of inputs with similar length, as lists of indices, longest inputs first. A batch has at most
    `pack_tokens` / (1 + `variants`) tokens, unless it is a single input."""
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
    """Return the logits of every input, in float32 or float64, for the unmodified model and for every set of ablated
    heads."""
    masks = head_masks(variants, len(stack.blocks), stack.blocks[0].heads)
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
    stack: Stack, groups: Sequence[Rows], masks: Bool[Tensor, "variant layer head"]
) -> tuple[Float[Tensor, "input label"], Float[Tensor, "variant input label"]]:
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
    """The ablation targets at one layer: `masks` of the heads that each changes here, `streams` that have begun (-1:
    the unmodified model), and `new` ones that begin here."""

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
    """Return the residual stream after attention; rows of new variants follow, group by group."""
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
    """Return the outputs of heads [token, hidden] with the changes of targets that have begun, and for targets that
    begin here the original and changed outputs [token, head, dim]."""
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
    """Return the stream of variants that begin here: the unmodified one plus (changed_h - own_h) W_h by head."""
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
    """Compute the last layer at the positions that the classifier reads, for variants that have begun or begin here."""
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
    """Return the cost of computing one ablation target. The unit is one forward pass of the unmodified model.

    The feed-forward sublayer (two thirds of a layer) counts in the layer where the target begins, later layers count
    fully, and the last layer counts almost nothing.
    """
    begins = min(head.layer for head in variant)
    return max(0.0, layers - 1 - begins - 1 / 3) / max(1, layers - 1)


Variant = frozenset[Component]
How = tuple[Operator, StandInSource | None]
NONE: Mapping[int, Variant] = MappingProxyType({})
DTYPES = ("float32", "bfloat16", "float16", "float64")
CHECKED_EVERY = 16
BY_HEAD_FROM = 4  # tokens per dimension of a head from which the matrices of `BegunByHead` save time
BY_HEAD_BYTES = 2**29
AGREEMENT = {
    torch.float64: 1e-9,
    torch.float32: 1e-4,
    torch.bfloat16: 0.5,
    torch.float16: 0.1,
}  # stacks with a larger difference are not used


@dataclass(frozen=True)
class Sweep:
    """The logits of the unmodified model and of every ablation target, in at least float32. `fast` states whether the
    layers before the ablated layer ran only once for all targets."""

    plain: Float[Tensor, "input label"]
    changed: Float[Tensor, "variant input label"]
    fast: bool
    dtype: str = "float32"


@dataclass(frozen=True)
class Computing:
    """Settings for computing the logits of every ablation target.

    Attributes:
        dtype: of the layers ("float32", "bfloat16"); None: that of the checkpoint. float32 if the CPU has no
            instructions for it.
        packed: combine examples of all lengths in one matrix, for few examples or few variants of heads; results are
            equal.
        place: position at which a language model predicts (-1: the last); None for classifiers.
    """

    dtype: str | None = None
    batch_tokens: int = BATCH_TOKENS // 2
    packed: bool = False
    place: int | None = None


def every_head(layers: int, heads: int, attending: Sequence[int] = ()) -> list[Variant]:
    """Return one ablation target for each head, layer by layer. `attending` lists the layers to include (default:
    all)."""
    return [frozenset({head}) for head in all_heads(layers, heads, attending)]


def sweep(
    checkpoint: Checkpoint,
    encodings: Sequence[Encoding],
    variants: Sequence[Iterable[Component]],
    operator: str = "disable",
    *,
    source: StandInSource | None = None,
    computing: Computing = Computing(),
) -> Sweep:
    """Compute the logits of every input for the unmodified model and for every ablation target.

    Families without a stack run the whole model for each target, with equal results. Raises InterventionError if the
    method is unknown or undefined, InputError if inputs are missing or a dtype or component does not exist, and
    CheckpointError if nothing is predicted.

    Args:
        variants: sets of components that are changed together, at least one each.
        operator: ablation method for heads; only "zero" can be combined with sublayers and layers.
    """
    place = computing.place
    chosen = operator_of(operator, causal=checkpoint.causal, source=source)
    check_source(source, checkpoint.weights_hash)
    wanted = [_checked(variant, checkpoint, chosen) for variant in variants]
    if not encodings:
        raise InputError("An ablation needs at least one example; got none. Choose a task with examples.")
    checked = _to_check(encodings, getattr(checkpoint.model.config, "pad_token_id", None))
    plain = _predicted(checkpoint, [encodings[k] for k in checked], place)  # raises the error if nothing is predicted
    name = computing.dtype or checkpoint.dtype
    check_choice("The number format of an ablation", name, DTYPES)
    stack = stack_of(checkpoint, arithmetic(checkpoint.device, getattr(torch, name)))
    stack = stack if stack is None or place is None else replace(stack, place=place)
    with torch.no_grad():
        read = [stack.read(encoding) for encoding in encodings] if stack else []
        whole = all(len(encoded) == len(other) for encoded, other in zip(read, encodings, strict=False))
        shared = whole or source is None  # a source returns outputs for whole inputs
        if stack is None or not shared or not _agrees(stack, [read[k] for k in checked], plain):
            plain = _predicted(checkpoint, encodings, place)
            logits = plain.new_zeros(len(wanted), *plain.shape)
            for number, variant in enumerate(wanted):
                logits[number] = _predicted(checkpoint, encodings, place, changes_of(variant, chosen, source))
            return Sweep(plain, logits, fast=False, dtype=checkpoint.dtype)
        if computing.packed and all(isinstance(component, Head) for variant in wanted for component in variant):
            logits, changed = packed_logits(
                stack, read, [heads_of(without) for without in wanted], chosen, source=source
            )
            return Sweep(logits, changed, fast=True, dtype=_named(stack.dtype))
        return _by_stack(stack, read, wanted, (chosen, source), computing.batch_tokens)


def _predicted(
    checkpoint: Checkpoint, encodings: Sequence[Encoding], place: int | None, changes: Sequence[Change] = ()
) -> Float[Tensor, "input label"]:
    if place is None:
        return predict(checkpoint, encodings, interventions=changes)
    return answers(checkpoint, encodings, [place] * len(encodings), changes)


def _checked(variant: Iterable[Component], checkpoint: Checkpoint, operator: Operator) -> Variant:
    wanted = frozenset(component.within(checkpoint.layers, checkpoint.heads) for component in variant)
    for head in heads_of(wanted):
        attends(head, checkpoint.attending)
    if not wanted:
        raise InputError(
            "Every ablation target must contain at least one head or layer; one target is empty. Name heads "
            "such as L1H2."
        )
    parts = [component for component in wanted if isinstance(component, LayerBlock)]
    if parts and operator != "zero":
        raise InputError(
            f'Sublayers and layers can only be ablated with the method "zero"; got the method "{operator}" '
            f"for {min(parts)}. Choose zero."
        )
    return wanted


def heads_of(variant: Iterable[Component]) -> frozenset[Head]:
    """Return the heads in a set of heads, sublayers and layers."""
    return frozenset(component for component in variant if isinstance(component, Head))


def head_masks(variants: Sequence[Iterable[Component]], layers: int, heads: int) -> Bool[Tensor, "variant layer head"]:
    """Return a boolean mask of the heads in each ablation target."""
    masks = torch.zeros(len(variants), layers, heads, dtype=torch.bool)
    for number, variant in enumerate(variants):
        for head in heads_of(variant):
            masks[number, head.layer, head.head] = True
    return masks


def changes_of(variant: Iterable[Component], operator: Operator, source: StandInSource | None = None) -> list[Change]:
    """Return the interventions for an ablation target. Its sublayers add nothing, and its layers are the identity."""
    heads, parts = heads_of(variant), sorted(component for component in variant if isinstance(component, LayerBlock))
    return [*([Intervention(operator, heads, source)] if heads else []), *(PartChange(part) for part in parts)]


def _to_check(encodings: Sequence[Encoding], padding: int | None) -> list[int]:
    """The inputs on which the stack must reproduce the model: those with the padding token, the first, shortest,
    longest, and every CHECKED_EVERYth."""
    special = [k for k, encoding in enumerate(encodings) if padding in encoding.ids]
    lengths = sorted(range(len(encodings)), key=lambda k: len(encodings[k]))
    return sorted({*special, lengths[0], lengths[-1], *range(0, len(encodings), CHECKED_EVERY)})


def _agrees(stack: Stack, encodings: Sequence[Encoding], wanted: Float[Tensor, "input label"]) -> bool:
    """Return whether the stack reproduces the model, so that an unsupported option of a family is noticed."""
    predicted = _by_stack(stack, encodings, [], ("zero", None), BATCH_TOKENS // 2).plain
    bounds = AGREEMENT[stack.dtype] * wanted.abs().amax(1).clamp_min(1.0)
    return bool(((predicted - wanted).abs().amax(1) <= bounds).all())


def _by_stack(
    stack: Stack,
    encodings: Sequence[Encoding],
    variants: Sequence[Variant],
    how: How,
    batch_tokens: int,
) -> Sweep:
    walked = {k: variant for k, variant in enumerate(variants) if heads_of(variant) != variant}
    starts: dict[int, list[int]] = {}
    for number, variant in enumerate(variants):
        if number not in walked:
            starts.setdefault(min(component.layer for component in variant), []).append(number)
    shape = len(stack.blocks), stack.blocks[0].heads
    masks = {start: (head_masks([variants[k] for k in chosen], *shape), chosen) for start, chosen in starts.items()}
    together = max((len(begun) for begun in starts.values()), default=1)
    plain: Tensor | None = None
    changed = torch.empty(0)
    begin = _Beginning(stack, sum(map(len, encodings)))
    for inputs in batches(encodings, max(1, batch_tokens // together)):
        batch = [encodings[k] for k in inputs]
        # Logits of inputs of equal length [input, label] and by group of variants. walked: those with sublayers
        fixed = stand_in(stack, batch, inputs, *how)
        x = stack.embed(batch)
        length, last = x.shape[1], len(stack.blocks) - 1
        at_once = max(1, batch_tokens // (len(batch) * length))
        outcomes: Found = []
        for layer, block in enumerate(stack.blocks[:-1]):
            outcomes += _walks(stack, x, layer, walked)
            mixed, values = block.mixed_of(x, stack.causal)
            joined = block.joined(mixed, x)
            if layer in masks:
                rows, numbers = masks[layer]
                begun = begin(layer, mixed, fixed.outputs(layer, mixed, values), joined)
                for start in range(0, len(numbers), at_once):
                    part = rows[start : start + at_once].to(x.device)
                    y = begun(part[:, layer])  # variants outermost
                    logits = _finish(stack, y, layer + 1, part, fixed)
                    outcomes.append((numbers[start : start + at_once], logits.view(len(part), len(batch), -1)))
            x = block.after(joined)
            unit_progress.within(len(batch) * length * (layer + 1) / len(stack.blocks))
        outcomes += _walks(stack, x, last, walked)
        none = torch.zeros(1, last + 1, stack.blocks[0].heads, dtype=torch.bool, device=x.device)
        if last in masks:
            rows, numbers = masks[last]
            logits = _last(stack, x, rows.to(x.device)[:, last], fixed)
            outcomes.append((numbers, logits.view(len(numbers), len(batch), -1)))
        bucket_logits = _last(stack, x, none[:, last], fixed)
        if plain is None:
            plain = bucket_logits.new_zeros(len(encodings), bucket_logits.shape[-1])
            changed = bucket_logits.new_zeros(len(variants), *plain.shape)
        plain[inputs] = bucket_logits
        for numbers, logits in outcomes:
            changed[torch.tensor(numbers)[:, None], torch.tensor(inputs)] = logits
    assert plain is not None  # noqa: S101  there is at least one input
    return Sweep(plain.cpu(), changed.cpu(), fast=True, dtype=_named(stack.dtype))


class _Beginning:
    """Runs the layer in which ablation targets begin: the first feed-forward product of a target with one head is taken
    from the dimensions of that head if this saves time (enough tokens) and the matrices for it fit into memory."""

    def __init__(self, stack: Stack, tokens: int) -> None:
        heads, dim, hidden = stack.blocks[0].separate["out"].shape
        size = len(stack.blocks) * heads * dim * 4 * hidden * stack.dtype.itemsize
        self.stack, self.by_head = stack, dict[int, BegunByHead]()
        self.saves = tokens >= BY_HEAD_FROM * dim and size <= BY_HEAD_BYTES and stack.dtype.itemsize >= 4

    def __call__(
        self,
        layer: int,
        mixed: Float[Tensor, "batch length head dim"],
        changed: Float[Tensor, "batch length head dim"],
        joined: Float[Tensor, "batch length hidden"],
    ) -> Callable[[Bool[Tensor, "variant head"]], Float[Tensor, "variant_batch length hidden"]]:
        """Return a function from the heads that every target changes in this layer to the outputs of the layer."""
        block, added = self.stack.blocks[layer], list[Tensor]()

        def by_stream(chosen: Tensor) -> Tensor:
            if not added:
                added.append(contributions(block, mixed, changed))
            if bool((chosen.sum(1) == 1).all()):
                return block.after((added[0][chosen.int().argmax(1)] + joined).flatten(0, 1))
            changes = torch.einsum("vh,hblm->vblm", chosen.to(mixed.dtype), added[0]) + joined
            return block.after(changes.flatten(0, 1))

        if not self.saves:
            return by_stream
        if layer not in self.by_head:
            self.by_head[layer] = block.begun_by_heads()
        begun, stream = self.by_head[layer], joined.flatten(0, 1)
        differences, shared = (changed - mixed).flatten(0, 1).transpose(0, 1).contiguous(), block.widened(stream)

        def by_head(chosen: Tensor) -> Tensor:
            if not bool((chosen.sum(1) == 1).all()):
                return by_stream(chosen)
            heads = chosen.int().argmax(1).tolist()
            outcomes = [begun.after(stream, shared, differences[head], head) for head in heads]
            return torch.cat(outcomes).view(-1, *joined.shape[1:])

        return by_head


def _named(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


Masks = dict[int, tuple[Bool[Tensor, "variant layer head"], list[int]]]
Found = list[tuple[list[int], Float[Tensor, "some input label"]]]


def _walks(stack: Stack, x: Tensor, start: int, walked: Mapping[int, Variant]) -> Found:
    """Return the logits of variants with sublayers whose first component is in layer `start`."""
    outcomes: Found = []
    for number, variant in walked.items():
        if min(component.layer for component in variant) != start:
            continue
        y = x
        for layer in range(start, len(stack.blocks)):
            y = _layer_without(stack, y, layer, variant)
        outcomes.append(([number], stack.logits(y)[None]))
    return outcomes


def _layer_without(stack: Stack, y: Tensor, layer: int, variant: Variant) -> Tensor:
    """Run one layer without a variant's components; heads among them are zeroed."""
    block = stack.blocks[layer]
    kinds = {part.kind for part in variant if isinstance(part, LayerBlock) and part.layer == layer}
    heads = [head.head for head in heads_of(variant) if head.layer == layer]
    if "layer" in kinds:
        return y
    if "attention" in kinds:
        joined = y
    else:
        mixed = block.mixed_of(y, stack.causal)[0]
        mixed[:, :, heads] = 0
        joined = block.joined(mixed, y)
    return block.without_feedforward(joined) if "feedforward" in kinds else block.after(joined)


def _finish(
    stack: Stack, y: Tensor, layer: int, masks: Bool[Tensor, "variant layer head"], fixed: StandIn
) -> Float[Tensor, "rows label"]:
    """Run from the inputs of `layer` to the logits; rows are variants x inputs."""
    inputs = y.shape[0] // len(masks)
    for number in range(layer, len(stack.blocks) - 1):
        block, chosen = stack.blocks[number], masks[:, number]
        mixed, values = block.mixed_of(y, stack.causal)
        if bool(chosen.any()):
            rows = chosen.repeat_interleave(inputs, 0)[:, None, :, None]
            mixed = torch.where(rows, fixed.outputs(number, mixed, values), mixed)
        y = block.after(block.joined(mixed, y))
    return _last(stack, y, masks[:, -1], fixed, shared=False)


def _last(
    stack: Stack, x: Tensor, chosen: Bool[Tensor, "variant head"], fixed: StandIn, *, shared: bool = True
) -> Float[Tensor, "rows label"]:
    """Run the last layer at the positions that the classifier reads. shared: x [input, ...] serves every variant."""
    block, times = stack.blocks[-1], len(chosen) if shared else 1
    output, replaced = last_outputs(stack, fixed, x)
    rows = chosen.repeat_interleave(len(x) * times // len(chosen), 0)[:, None, :, None]
    mixed = torch.where(rows, replaced.repeat(times, 1, 1, 1), output.repeat(times, 1, 1, 1))
    return stack.classify(block.after(block.joined(mixed, stack.read_of(x).repeat(times, 1, 1))))
