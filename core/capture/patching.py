"""Activation patching: one input runs with the outputs of components taken from another input.

Heads are patched before W_O, sublayers where they add to the residual stream, and layers at their output. Patches of
heads share the computation of earlier layers; sublayers and layers need whole passes. `first_order` is a linear
estimate for all heads from one forward and backward pass (attribution patching); no verdict depends on it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..errors import InputError
from ..models.checkpoint import Checkpoint
from ..models.encoding import Encoding
from .blocks import PartChange, parts_kept
from .components import Component, LayerBlock
from .interventions import Intervention
from .outputs import Alignment, Patched, check_pairs, outputs_reported
from .running import Change, answers, batches, by_layer, logits_at, prepared, stacked
from .sweeping import Computing, heads_of, sweep

Variant = frozenset[Component]


@dataclass(frozen=True)
class InputPairs:
    """Pairs of inputs A and B for activation patching, with aligned positions.

    `places` are the positions of the predictions of each A and B (None for classifiers). Raises InputError if the
    numbers of inputs differ, or a pair has no aligned position or one outside the input.
    """

    firsts: tuple[Encoding, ...]
    seconds: tuple[Encoding, ...]
    alignments: tuple[Alignment, ...]
    places: tuple[tuple[int, int], ...] | None = None

    def __post_init__(self) -> None:
        check_pairs("Patching needs", self.firsts, self.seconds, self.alignments)


@dataclass(frozen=True)
class Untouched:
    """The logits of inputs A and B without patches, and the head outputs for A that replace those for B."""

    first: Float[Tensor, "pair choice"]
    second: Float[Tensor, "pair choice"]
    source: Patched


@dataclass(frozen=True)
class Patches:
    """The logits of inputs A, of inputs B, and of inputs B after component outputs are replaced by those for A."""

    first: Float[Tensor, "pair choice"]
    second: Float[Tensor, "pair choice"]
    patched: Float[Tensor, "variant pair choice"]


def everywhere(first: Encoding, second: Encoding) -> Alignment:
    """Align each position of an input with the same position of another input. Raises InputError if the inputs differ
    in length."""
    if len(first) != len(second):
        raise InputError(
            f"Inputs must have the same number of tokens to be aligned by position; got {len(first)} and "
            f"{len(second)} tokens. Align them by words instead."
        )
    return Alignment(tuple((k, k) for k in range(len(first))))


def untouched(checkpoint: Checkpoint, pairs: InputPairs) -> Untouched:
    """Run every input A and B once without patches. Raises InterventionError if head outputs are not available, and
    CheckpointError if the model returns no logits."""
    firsts, seconds = _places_of(pairs)
    outputs: dict[int, Tensor] = {}
    rows: dict[int, Tensor] = {}
    for inputs in batches(pairs.firsts):
        with outputs_reported(checkpoint) as kept:
            output = checkpoint.model(**checkpoint.inputs([pairs.firsts[k] for k in inputs]))
        every = by_layer(checkpoint, kept)
        outputs |= {k: every[:, row] for row, k in enumerate(inputs)}
        rows |= logits_at(checkpoint, output, inputs, firsts)
    source = Patched([outputs[k] for k in range(len(outputs))], pairs.alignments, weights_hash=checkpoint.weights_hash)
    return Untouched(stacked(checkpoint, rows), answers(checkpoint, pairs.seconds, seconds), source)


def patch(
    checkpoint: Checkpoint, pairs: InputPairs, variants: Sequence[Variant], before: Untouched | None = None
) -> Patches:
    """Return the logits of each input B after the outputs of components at aligned positions are replaced by those for
    its partner A.

    Each variant is a set of components that are patched together; an empty one leaves B unchanged. Raises InputError if
    a component does not exist, InterventionError if outputs are not available, and CheckpointError if nothing is
    predicted.
    """
    wanted = [
        frozenset(component.within(checkpoint.layers, checkpoint.heads) for component in variant)
        for variant in variants
    ]
    if before is None and any(map(heads_of, wanted)):
        before = untouched(checkpoint, pairs)
    firsts, seconds = _places_of(pairs)
    first = answers(checkpoint, pairs.firsts, firsts) if before is None else before.first
    second = answers(checkpoint, pairs.seconds, seconds) if before is None else before.second
    patched = second.expand(len(wanted), *second.shape).clone()
    of_heads = [k for k, variant in enumerate(wanted) if variant and heads_of(variant) == variant]
    if of_heads and before is not None:
        patched[of_heads] = _heads_patched(checkpoint, pairs, [wanted[k] for k in of_heads], before).to(patched)
    whole = [k for k, variant in enumerate(wanted) if heads_of(variant) != variant]
    kinds = {part for k in whole for part in wanted[k] if isinstance(part, LayerBlock)}
    parts = part_changes(checkpoint, pairs, sorted(kinds))
    for k in whole:
        changes: list[Change] = [
            parts[part] for part in sorted(component for component in wanted[k] if isinstance(component, LayerBlock))
        ]
        if before is not None and (heads := heads_of(wanted[k])):
            changes.append(Intervention("patch", heads, before.source))
        patched[k] = answers(checkpoint, pairs.seconds, seconds, changes)
    return Patches(first, second, patched)


def _heads_patched(
    checkpoint: Checkpoint, pairs: InputPairs, variants: Sequence[Variant], before: Untouched
) -> Float[Tensor, "variant pair choice"]:
    """One sweep for all pairs of a classifier; one for each pair of a language model, because positions differ."""
    if checkpoint.labels is not None:
        return sweep(checkpoint, pairs.seconds, variants, "patch", source=before.source).changed
    _, places = _places_of(pairs)
    swept = [
        sweep(
            checkpoint,
            [second],
            variants,
            "patch",
            source=before.source.of_input(k),
            computing=Computing(place=places[k]),
        ).changed
        for k, second in enumerate(pairs.seconds)
    ]
    return torch.cat(swept, 1)


def _places_of(pairs: InputPairs) -> tuple[list[int], list[int]]:
    """Return the positions where each A and each B is predicted; ignored for classifiers."""
    places = pairs.places or ((0, 0),) * len(pairs.firsts)
    return [place for place, _ in places], [place for _, place in places]


def part_changes(
    checkpoint: Checkpoint, pairs: InputPairs, parts: Sequence[LayerBlock]
) -> dict[LayerBlock, PartChange]:
    """Return a patch for each sublayer or layer: its outputs for inputs B are replaced by those for inputs A at aligned
    positions. Raises InterventionError if outputs are not available."""
    outputs: dict[LayerBlock, list[Tensor]] = {part: [] for part in parts}
    placed: list[Tensor] = []
    for first, second, alignment in zip(pairs.firsts, pairs.seconds, pairs.alignments, strict=True) if parts else ():
        theirs, own = (list(side) for side in zip(*alignment.pairs, strict=True))
        placed.append(torch.zeros(len(second), dtype=torch.bool))
        placed[-1][own] = True
        with torch.no_grad(), parts_kept(checkpoint, parts) as kept, prepared(checkpoint):
            checkpoint.model(**checkpoint.inputs([first]))
        for part, values in kept.items():
            moved = values.new_zeros(len(second), values.shape[-1])
            moved[own] = values[0, theirs]
            outputs[part].append(moved)
    return {part: PartChange(part, tuple(values), tuple(placed)) for part, values in outputs.items()}


def first_order(
    checkpoint: Checkpoint,
    pairs: InputPairs,
    objective: Callable[[Float[Tensor, "input choice"], Sequence[int]], Float[Tensor, " input"]],
    before: Untouched | None = None,
) -> Float[Tensor, "pair layer head"]:
    """Estimate how a quantity on an input B would change if the output of each head were replaced by its output on the
    paired input A (attribution patching).

    The estimate is the sum over aligned positions and dims of d objective / d z (z_A - z_B). `objective` maps logits
    and the indices of their pairs to one value per pair.
    """
    source = untouched(checkpoint, pairs).source if before is None else before.source
    _, places = _places_of(pairs)
    estimates = torch.zeros(len(pairs.seconds), checkpoint.layers, checkpoint.heads)
    for inputs in batches(pairs.seconds):
        some = [pairs.seconds[k] for k in inputs]
        given = source.given(some, inputs)
        kept: list[Tensor] = []
        gates = torch.ones(checkpoint.layers, checkpoint.heads, device=checkpoint.device, requires_grad=True)
        with torch.enable_grad(), prepared(checkpoint, gates=gates) as running:
            running.reporter = kept.append
            logits = checkpoint.model(**checkpoint.inputs(some)).logits
            if logits.dim() == 3:
                logits = logits[torch.arange(len(some)), [places[k] for k in inputs]]
            slopes = torch.autograd.grad(objective(logits.float(), inputs).sum(), kept)
        own = by_layer(checkpoint, [outputs.detach() for outputs in kept])
        where = torch.ones(own.shape[1:3], dtype=torch.bool) if given.places is None else given.places
        moved = torch.where(where.to(own.device)[None, :, :, None, None], given.outputs.to(own) - own, 0.0)
        estimates[inputs] = (by_layer(checkpoint, slopes) * moved).sum((2, 4)).transpose(0, 1).float().cpu()
    return estimates
