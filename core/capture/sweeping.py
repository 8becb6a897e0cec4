"""Sweeps: the logits of a model under many interventions, each exact, without running what they share.

A variant is a set of components (heads under one operator; blocks and layers off). Layers below its first touched
layer are those of the untouched model, so they run once; in that layer Q, K and V are shared by all variants, and
changing a head adds (changed_h - own_h) W_h to the residual stream; the last layer computes only the token that the
classifier reads. Inputs are batched with others of exactly their length: nothing is padded.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from .. import unit_progress
from ..attention import Head, all_heads, attends
from ..errors import InputError
from ..models.arithmetic import arithmetic
from ..models.checkpoint import Checkpoint
from ..models.encoding import Encoding
from .blocks import PartChange
from .components import Component, LayerBlock
from .head_replacement import contributions
from .interventions import Intervention, Operator, StandInSource, check_source, operator_of
from .logits import answers
from .packed_rows import packed_logits
from .running import Change, batches, predict
from .stacks import Stack, stack_of
from .standins import StandIn, last_outputs, stand_in

Variant = frozenset[Component]
How = tuple[Operator, StandInSource | None]
NONE: Mapping[int, Variant] = MappingProxyType({})
BATCH_TOKENS = 2048  # tokens x variants run together: enough for full speed, small enough for the cache
DTYPES = ("float32", "bfloat16", "float16", "float64")
CHECKED_EVERY = 16
AGREEMENT = {
    torch.float64: 1e-9,
    torch.float32: 1e-4,
    torch.bfloat16: 0.5,
    torch.float16: 0.1,
}  # a stack off by more is not used


@dataclass(frozen=True)
class Sweep:
    """Logits of a model untouched and under every variant, on the CPU.

    Attributes:
        plain: untouched; float32 at least.
        fast: whether prefixes were shared.
    """

    plain: Float[Tensor, "input label"]
    changed: Float[Tensor, "variant input label"]
    fast: bool
    dtype: str = "float32"


@dataclass(frozen=True)
class Computing:
    """How a sweep computes.

    Attributes:
        dtype: arithmetic of the layers ("float32", "bfloat16"); None for the checkpoint's own; float32 where the CPU
            has no instructions for it.
        packed: whether rows of all lengths stand in one matrix (core.capture.packed_rows), for few rows or few variants
            of heads: the same numbers.
        place: the position whose logits of a language model are read; None for classifiers.
    """

    dtype: str | None = None
    batch_tokens: int = BATCH_TOKENS
    packed: bool = False
    place: int | None = None


def every_head(layers: int, heads: int, attending: Sequence[int] = ()) -> list[Variant]:
    """Each head of a model as a variant of its own, layer by layer. attending: as of `AttentionMaps`."""
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
    """Logits of every input under every variant, in the order given: a classifier's, or a language model's at a place.

    Families without a stack run the whole model once a variant, in the checkpoint's dtype: the same numbers, later.

    Args:
        encodings: inputs of any lengths, one at least.
        variants: components that are changed together, one at least in each.
        operator: of heads; parts of layers are off, and stand beside heads only under "zero".
        source: where the outputs of "mean", "resample", "constant" and "patch" come from.
        computing: how it is computed, and where a language model is read.

    Returns:
        The logits, and how they were computed.

    Raises:
        InterventionError: the operator is unknown or undefined here.
        InputError: there are no inputs, the dtype is unknown, or a component does not exist.
        CheckpointError: nothing is predicted.
    """
    place = computing.place
    chosen = operator_of(operator, causal=checkpoint.causal, source=source)
    check_source(source, checkpoint.weights_hash)
    wanted = [_checked(variant, checkpoint, chosen) for variant in variants]
    if not encodings:
        raise InputError("A sweep needs at least one row; there is none: choose a task with rows.")
    checked = _to_check(encodings, getattr(checkpoint.model.config, "pad_token_id", None))
    plain = _predicted(checkpoint, [encodings[k] for k in checked], place)  # also says when nothing is predicted
    name = computing.dtype or checkpoint.dtype
    if name not in DTYPES:
        raise InputError(f'A sweep computes in {", ".join(DTYPES)}; "{name}" is none of them: choose one.')
    stack = stack_of(checkpoint, arithmetic(checkpoint.device, getattr(torch, name)))
    stack = stack if stack is None or place is None else replace(stack, place=place)
    with torch.no_grad():
        read = [stack.read(encoding) for encoding in encodings] if stack else []
        whole = all(len(encoded) == len(other) for encoded, other in zip(read, encodings, strict=False))
        shared = whole or source is None  # a source gives outputs for whole inputs
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
        raise InputError("A variant of a sweep changes at least one head; one has none: name heads like L1H2.")
    parts = [component for component in wanted if isinstance(component, LayerBlock)]
    if parts and operator != "zero":
        raise InputError(
            f'Blocks and layers are taken out whole, which is the operator "zero"; "{operator}" was asked for '
            f"{min(parts)}: choose zero."
        )
    return wanted


def heads_of(variant: Iterable[Component]) -> frozenset[Head]:
    """The heads among components."""
    return frozenset(component for component in variant if isinstance(component, Head))


def changes_of(variant: Iterable[Component], operator: Operator, source: StandInSource | None = None) -> list[Change]:
    """A variant as interventions on the whole model: its heads under the operator, its blocks and layers off."""
    heads, parts = heads_of(variant), sorted(component for component in variant if isinstance(component, LayerBlock))
    return [*([Intervention(operator, heads, source)] if heads else []), *(PartChange(part) for part in parts)]


def _to_check(encodings: Sequence[Encoding], padding: int | None) -> list[int]:
    """Inputs on which the stack must give the model's logits: those that hold the padding piece (models read them in
    their own way), the first, shortest and longest, and every CHECKED_EVERYth."""
    special = [k for k, encoding in enumerate(encodings) if padding in encoding.ids]
    lengths = sorted(range(len(encodings)), key=lambda k: len(encodings[k]))
    return sorted({*special, lengths[0], lengths[-1], *range(0, len(encodings), CHECKED_EVERY)})


def _agrees(stack: Stack, encodings: Sequence[Encoding], wanted: Float[Tensor, "input label"]) -> bool:
    """Whether the stack reproduces the model: an unusual option of a family must not pass unseen."""
    predicted = _by_stack(stack, encodings, [], ("zero", None), BATCH_TOKENS).plain
    bounds = AGREEMENT[stack.dtype] * wanted.abs().amax(1).clamp_min(1.0)
    return bool(((predicted - wanted).abs().amax(1) <= bounds).all())


def _by_stack(
    stack: Stack,
    encodings: Sequence[Encoding],
    variants: Sequence[Variant],
    how: How,
    batch_tokens: int,
) -> Sweep:
    starts: dict[int, list[int]] = {}
    for number, variant in enumerate(variants):
        if not any(isinstance(component, LayerBlock) for component in variant):
            starts.setdefault(min(component.layer for component in variant), []).append(number)
    masks = {start: (_masks(stack, [variants[k] for k in chosen]), chosen) for start, chosen in starts.items()}
    walked = {
        k: variant
        for k, variant in enumerate(variants)
        if any(isinstance(component, LayerBlock) for component in variant)
    }
    together = max((len(begun) for begun in starts.values()), default=1)
    plain: Tensor | None = None
    changed = torch.empty(0)
    for inputs in batches(encodings, max(1, batch_tokens // together)):
        batch = [encodings[k] for k in inputs]
        bucket_logits, others = _run_bucket(
            stack, batch, masks, stand_in(stack, batch, inputs, *how), batch_tokens, walked
        )
        if plain is None:
            plain = bucket_logits.new_zeros(len(encodings), bucket_logits.shape[-1])
            changed = bucket_logits.new_zeros(len(variants), *plain.shape)
        plain[inputs] = bucket_logits
        for numbers, logits in others:
            changed[torch.tensor(numbers)[:, None], torch.tensor(inputs)] = logits
    assert plain is not None  # noqa: S101  there is at least one input
    return Sweep(plain.cpu(), changed.cpu(), fast=True, dtype=_named(stack.dtype))


def _named(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _masks(stack: Stack, variants: Sequence[Variant]) -> Bool[Tensor, "variant layer head"]:
    masks = torch.zeros(len(variants), len(stack.blocks), stack.blocks[0].heads, dtype=torch.bool)
    for row, variant in enumerate(variants):
        for head in heads_of(variant):
            masks[row, head.layer, head.head] = True
    return masks


Masks = dict[int, tuple[Bool[Tensor, "variant layer head"], list[int]]]
Found = list[tuple[list[int], Float[Tensor, "some input label"]]]


def _run_bucket(
    stack: Stack,
    encodings: Sequence[Encoding],
    masks: Masks,
    fixed: StandIn,
    batch_tokens: int,
    walked: Mapping[int, Variant] = NONE,
) -> tuple[Tensor, Found]:
    """Logits of inputs of one length: untouched [input, label], and per group of variants; walked: those with parts."""
    x = stack.embed(encodings)
    length, last = x.shape[1], len(stack.blocks) - 1
    at_once = max(1, batch_tokens // (len(encodings) * length))
    outcomes: Found = []
    for layer, block in enumerate(stack.blocks[:-1]):
        outcomes += _walks(stack, x, layer, walked)
        mixed, values = block.mixed_of(x, stack.causal)
        joined = block.joined(mixed, x)
        if layer in masks:
            rows, numbers = masks[layer]
            added = contributions(block, mixed, fixed.outputs(layer, mixed, values))
            for start in range(0, len(numbers), at_once):
                part = rows[start : start + at_once].to(x.device)
                y = block.after(_with_changes(joined, added, part[:, layer]))
                logits = _finish(stack, y, layer + 1, part, fixed)
                outcomes.append((numbers[start : start + at_once], logits.view(len(part), len(encodings), -1)))
        x = block.after(joined)
        unit_progress.within(len(encodings) * length * (layer + 1) / len(stack.blocks))
    outcomes += _walks(stack, x, last, walked)
    none = torch.zeros(1, last + 1, stack.blocks[0].heads, dtype=torch.bool, device=x.device)
    if last in masks:
        rows, numbers = masks[last]
        logits = _last(stack, x, rows.to(x.device)[:, last], fixed)
        outcomes.append((numbers, logits.view(len(numbers), len(encodings), -1)))
    return _last(stack, x, none[:, last], fixed), outcomes


def _walks(stack: Stack, x: Tensor, start: int, walked: Mapping[int, Variant]) -> Found:
    """Logits of the variants with parts whose first component lies in layer `start`, from that layer's inputs."""
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
    """One layer without a variant's components in it; heads among them are zeroed."""
    block, kinds = (
        stack.blocks[layer],
        {component.kind for component in variant if isinstance(component, LayerBlock) and component.layer == layer},
    )
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


def _with_changes(
    joined: Float[Tensor, "batch length hidden"],
    added: Float[Tensor, "head batch length hidden"],
    chosen: Bool[Tensor, "variant head"],
) -> Float[Tensor, "rows length hidden"]:
    """The residual stream of every variant, variants outermost."""
    if bool((chosen.sum(1) == 1).all()):
        changes = added[chosen.int().argmax(1)] + joined
    else:
        changes = torch.einsum("vh,hblm->vblm", chosen.to(added.dtype), added) + joined
    return changes.flatten(0, 1)


def _finish(
    stack: Stack, y: Tensor, layer: int, masks: Bool[Tensor, "variant layer head"], fixed: StandIn
) -> Float[Tensor, "rows label"]:
    """From the inputs of `layer` to the logits; rows are variants x inputs."""
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
    """The last layer where the classifier reads. shared: x [input, ...] serves every variant; else it is theirs."""
    block, times = stack.blocks[-1], len(chosen) if shared else 1
    output, replaced = last_outputs(stack, fixed, x)
    rows = chosen.repeat_interleave(len(x) * times // len(chosen), 0)[:, None, :, None]
    mixed = torch.where(rows, replaced.repeat(times, 1, 1, 1), output.repeat(times, 1, 1, 1))
    return stack.classify(block.after(block.joined(mixed, stack.read_of(x).repeat(times, 1, 1))))
