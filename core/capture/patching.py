"""Run one input with components' outputs taken from another: how much of the difference does each bring back?

Heads are patched before W_O, blocks where they add to the residual stream, layers as what they hand on. All heads of
many pairs go through the sweep, with shared prefixes; blocks, layers and language models run whole. `first_order` is
the linear estimate of all heads from one forward and backward (attribution patching): a picture, never a verdict.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from core.capture.blocks import PartChange, parts_kept
from core.capture.components import Component, Part
from core.capture.interventions import Intervention
from core.capture.outputs import Alignment, Patched, head_outputs
from core.capture.running import Change, batches, model_inputs, prepared, run
from core.capture.sweeping import heads_of, sweep
from core.errors import CheckpointError, InputError
from core.models.checkpoint import Checkpoint
from core.models.encoding import Encoding

Variant = frozenset[Component]


@dataclass(frozen=True)
class Pairs:
    """Inputs A and B and how they are aligned; places: the position of each B (and A) that is predicted, None for
    classifiers. Raises InputError for unequal numbers, and for pairs that share no position or name one outside."""

    firsts: tuple[Encoding, ...]
    seconds: tuple[Encoding, ...]
    alignments: tuple[Alignment, ...]
    places: tuple[tuple[int, int], ...] | None = None

    def __post_init__(self) -> None:
        if not self.firsts or not len(self.firsts) == len(self.seconds) == len(self.alignments):
            raise InputError(
                f"Patching needs pairs of inputs with an alignment each; seen {len(self.firsts)} first, "
                f"{len(self.seconds)} second and {len(self.alignments)} alignments."
            )
        for first, second, alignment in zip(self.firsts, self.seconds, self.alignments, strict=True):
            alignment.within(first, second)


@dataclass(frozen=True)
class Patches:
    """Logits of A, of B, and of B under every variant."""

    first: Float[Tensor, "pair choice"]
    second: Float[Tensor, "pair choice"]
    patched: Float[Tensor, "variant pair choice"]


def everywhere(first: Encoding, second: Encoding) -> Alignment:
    """All positions of two inputs of one length; InputError for unequal ones."""
    if len(first) != len(second):
        raise InputError(
            f"Positions are taken one to one from inputs of one length; these have {len(first)} and {len(second)} "
            "pieces: align them by words instead."
        )
    return Alignment(tuple((k, k) for k in range(len(first))))


def patch(checkpoint: Checkpoint, pairs: Pairs, variants: Sequence[Variant]) -> Patches:
    """Logits of every B with the outputs of a variant's components taken from its A at the aligned positions."""
    wanted = [frozenset(one.within(checkpoint.layers, checkpoint.heads) for one in variant) for variant in variants]
    places = pairs.places or ((0, 0),) * len(pairs.firsts)
    first = answers(checkpoint, pairs.firsts, [place for place, _ in places])
    second = answers(checkpoint, pairs.seconds, [place for _, place in places])
    patched = second.expand(len(wanted), *second.shape).clone()
    of_heads = [k for k, variant in enumerate(wanted) if variant and heads_of(variant) == variant]
    source = taken_from(checkpoint, pairs) if any(map(heads_of, wanted)) else None
    if of_heads and checkpoint.labels is not None:
        swept = sweep(checkpoint, pairs.seconds, [wanted[k] for k in of_heads], "patch", source=source)
        patched[of_heads] = swept.changed.to(patched)
    whole = [k for k, variant in enumerate(wanted) if variant and not (k in of_heads and checkpoint.labels is not None)]
    kinds = {one for k in whole for one in wanted[k] if isinstance(one, Part)}
    parts = part_changes(checkpoint, pairs, sorted(kinds))
    for k in whole:
        heads = heads_of(wanted[k])
        changes: list[Change] = [Intervention("patch", heads, source)] if heads else []
        changes += [parts[one] for one in sorted(one for one in wanted[k] if isinstance(one, Part))]
        patched[k] = answers(checkpoint, pairs.seconds, [place for _, place in places], changes)
    return Patches(first, second, patched)


def taken_from(checkpoint: Checkpoint, pairs: Pairs) -> Patched:
    """The As' heads' outputs, to stand in at the aligned positions of the Bs."""
    outputs = head_outputs(checkpoint, pairs.firsts)
    return Patched(outputs, pairs.alignments, weights_hash=checkpoint.weights_hash)


def answers(
    checkpoint: Checkpoint, encodings: Sequence[Encoding], places: Sequence[int], changes: Sequence[Change] = ()
) -> Float[Tensor, "input choice"]:
    """Logits of a classifier, or of a language model at one position of each input. Raises CheckpointError where the
    checkpoint predicts neither."""
    rows: dict[int, Tensor] = {}

    def keep(inputs: list[int], output: object) -> None:
        logits = getattr(output, "logits", None)
        if logits is None:
            raise CheckpointError(
                f"Patching compares logits; {checkpoint.name} has no head that gives any: open a fine-tuned "
                "classifier or a language model."
            )
        for row, k in enumerate(inputs):
            rows[k] = logits[row] if logits.dim() == 2 else logits[row, places[k]]

    run(checkpoint, encodings, [], interventions=changes, on_batch=keep)
    exact = torch.promote_types(getattr(torch, checkpoint.dtype), torch.float32)
    return torch.stack([rows[k] for k in range(len(encodings))]).to(exact).cpu()


def part_changes(checkpoint: Checkpoint, pairs: Pairs, parts: Sequence[Part]) -> dict[Part, PartChange]:
    """For each part its change in the Bs: outputs of the As at aligned positions."""
    outputs: dict[Part, list[Tensor]] = {part: [] for part in parts}
    placed = [_places(alignment, len(b)) for alignment, b in zip(pairs.alignments, pairs.seconds, strict=True)]
    for first, second, alignment in zip(pairs.firsts, pairs.seconds, pairs.alignments, strict=True) if parts else ():
        theirs, own = (list(side) for side in zip(*alignment.pairs, strict=True))
        with torch.no_grad(), parts_kept(checkpoint, parts) as kept, prepared(checkpoint):
            checkpoint.model(**model_inputs(checkpoint, [first]))
        for part, values in kept.items():
            moved = values.new_zeros(len(second), values.shape[-1])
            moved[own] = values[0, theirs]
            outputs[part].append(moved)
    return {part: PartChange(part, tuple(values), tuple(placed)) for part, values in outputs.items()}


def _places(alignment: Alignment, length: int) -> Tensor:
    places = torch.zeros(length, dtype=torch.bool)
    places[[own for _, own in alignment.pairs]] = True
    return places


def first_order(
    checkpoint: Checkpoint,
    pairs: Pairs,
    objective: Callable[[Float[Tensor, "input choice"], Sequence[int]], Float[Tensor, " input"]],
) -> Float[Tensor, "pair layer head"]:
    """How far the objective of each B would move if each head's output moved all the way to A's, by its gradient at B.

    sum over positions and dims of d objective / d z (z_A - z_B); objective(logits, numbers of the inputs) [input].
    """
    source = taken_from(checkpoint, pairs)
    places = pairs.places or ((0, 0),) * len(pairs.firsts)
    estimates = torch.zeros(len(pairs.seconds), checkpoint.layers, checkpoint.heads)
    for inputs in batches(pairs.seconds):
        some = [pairs.seconds[k] for k in inputs]
        given = source.given(some, inputs)
        kept: list[Tensor] = []
        gates = torch.ones(checkpoint.layers, checkpoint.heads, device=checkpoint.device, requires_grad=True)
        with torch.enable_grad(), prepared(checkpoint, gates=gates) as running:
            running.reporter = kept.append
            logits = checkpoint.model(**model_inputs(checkpoint, some)).logits
            if logits.dim() == 3:
                logits = logits[torch.arange(len(some)), [places[k][1] for k in inputs]]
            slopes = torch.autograd.grad(objective(logits.float(), inputs).sum(), kept)
        own = torch.stack([one.detach() for one in kept])
        where = torch.ones(own.shape[1:3], dtype=torch.bool) if given.places is None else given.places
        moved = torch.where(where.to(own.device)[None, :, :, None, None], given.outputs.to(own) - own, 0.0)
        estimates[inputs] = (torch.stack(slopes) * moved).sum((2, 4)).transpose(0, 1).float().cpu()
    return estimates
