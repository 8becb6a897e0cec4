"""The task's loss of every row, what each variant does to it, and what its gradient says it would do.

The loss is the cross-entropy of a classifier in nats, or the squared error of a score. An effect e is exact: the row's
loss under a variant less its loss untouched. A first-order effect g is the derivative of the row's loss as a head's
output goes from its own towards what the operator puts in its place: out(t) = (1 - t) own + t changed, g = d loss / d t
at t = 0. It is taken behind the softmax, along the change that the operator makes, and for all heads of all layers at
once from one forward and one backward pass.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..errors import CheckpointError, InputError
from ..models.checkpoint import Checkpoint
from ..models.encoding import Encoding
from .interventions import Given, StandInSource, operator_of, pointing, uniform, visible_keys
from .running import BATCH_TOKENS, batches, model_inputs, prepared
from .sweeping import Computing, Variant, heads_of, sweep


@dataclass(frozen=True)
class LabelledRows:
    """Encoded rows and their labels.

    Attributes:
        labels: one a row, outputs of the classifier (from 0), or scores.
        names: of the rows, for errors; empty: they are numbered.
    """

    encodings: Sequence[Encoding]
    labels: Sequence[int | float]
    names: Sequence[str] = ()


@dataclass(frozen=True)
class Effects:
    """Exact effects on the loss of each row.

    Attributes:
        plain: the loss untouched, float64; nats, or squared error of a score.
        exact: e, the loss under the variant less `plain`, float64; above 0 the variant does harm.
        logits: what `plain` comes from.
        changed: the logits under every variant.
    """

    plain: Float[Tensor, " input"]
    exact: Float[Tensor, "variant input"]
    logits: Float[Tensor, "input label"]
    changed: Float[Tensor, "variant input label"]
    fast: bool
    dtype: str


def row_losses(
    logits: Float[Tensor, "*variant input label"], labels: Sequence[int | float]
) -> Float[Tensor, "*variant input"]:
    """The loss of every row: cross-entropy in nats, or squared error where there is one output.

    Args:
        labels: one an input, outputs of the classifier (from 0), or scores.

    Returns:
        Float64. *Range:* 0 and up; NaN or infinite where a logit is.
    """
    wide = logits.double()
    if logits.shape[-1] == 1:
        wanted = torch.tensor(labels, dtype=torch.float64, device=logits.device)
        return (wide[..., 0] - wanted) ** 2
    chosen = torch.tensor(labels, device=logits.device).expand(logits.shape[:-1])
    return -torch.log_softmax(wide, -1).gather(-1, chosen[..., None])[..., 0]


def effects(
    checkpoint: Checkpoint,
    rows: LabelledRows,
    variants: Sequence[Variant],
    operator: str = "disable",
    *,
    source: StandInSource | None = None,
    dtype: str | None = None,
) -> Effects:
    """Exact effects of every variant on every row's loss.

    Args:
        dtype: arithmetic of the layers, as of `Computing`; None for the checkpoint's own.

    Returns:
        Variants and rows in the order given.

    Raises:
        InputError: not one label a row, or a row's loss is no number (the first such is named).
        CheckpointError, InterventionError: where `sweep` raises them.
    """
    labels = rows.labels
    if len(rows.encodings) != len(labels):
        raise InputError(f"Every row needs one label; seen {len(rows.encodings)} rows and {len(labels)} labels.")
    computing = Computing(dtype=dtype, packed=True)
    swept = sweep(checkpoint, rows.encodings, variants, operator, source=source, computing=computing)
    plain, changed = row_losses(swept.plain, labels), row_losses(swept.changed, labels)
    losses = torch.cat([plain[None], changed])
    unknown = torch.nonzero(~torch.isfinite(losses).all(0)).flatten().tolist()
    if unknown:
        row = rows.names[unknown[0]] if rows.names else f"number {unknown[0] + 1}"
        raise InputError(
            f"The loss of every row must be a number; that of row {row} is not ({len(unknown)} of {losses.shape[1]} "
            "rows): look at its label and text, or at the checkpoint's weights."
        )
    return Effects(plain, changed - plain, swept.plain, swept.changed, swept.fast, swept.dtype)


# ---------------------------------------------------------------- first-order effects


def first_order(
    checkpoint: Checkpoint,
    encodings: Sequence[Encoding],
    labels: Sequence[int | float],
    operator: str = "disable",
    *,
    source: StandInSource | None = None,
) -> Float[Tensor, "layer head input"]:
    """g of every head on every row: the loss's slope as the head goes towards what the operator puts in its place.

    Returns:
        Float64, in units of the loss; above 0 the change does harm, to first order.

    Raises:
        CheckpointError: without a classifier.
        InterventionError: the operator is undefined here, or the family's heads cannot be changed.
        InputError: there are no rows, or not one label a row.
    """
    operator_of(operator, causal=checkpoint.causal, source=source)
    if checkpoint.labels is None:
        raise CheckpointError(f"A loss needs a classifier; {checkpoint.name} has none: open a fine-tuned checkpoint.")
    if not encodings or len(encodings) != len(labels):
        raise InputError(f"Every row needs one label; seen {len(encodings)} rows and {len(labels)} labels.")
    slopes = torch.zeros(checkpoint.layers, checkpoint.heads, len(encodings), dtype=torch.float64)
    for inputs in batches(encodings, BATCH_TOKENS // 2):
        some = [encodings[k] for k in inputs]
        given = _Change(operator, None if source is None else source.given(some, inputs))
        slopes[:, :, inputs] = _of_batch(checkpoint, some, [labels[k] for k in inputs], given)
    return slopes


def _of_batch(
    checkpoint: Checkpoint, some: Sequence[Encoding], labels: Sequence[int | float], change: "_Change"
) -> Float[Tensor, "layer head input"]:
    t = torch.zeros(checkpoint.layers, len(some), checkpoint.heads, device=checkpoint.device, requires_grad=True)

    def mix(layer: int, own: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
        difference = (change.outputs(layer, own, values, mask) - own).detach()
        return own + t[layer][:, None, :, None].to(own.dtype) * difference

    with torch.enable_grad(), prepared(checkpoint, gates=torch.ones_like(t[:, 0])) as run:
        run.mixer = mix
        logits = checkpoint.model(**model_inputs(checkpoint, some)).logits
        (slopes,) = torch.autograd.grad(_summed(logits.float(), labels), t)
    return slopes.double().cpu().transpose(1, 2)


def _summed(logits: Float[Tensor, "input label"], labels: Sequence[int | float]) -> Float[Tensor, ""]:
    """Summed over rows: each row's gradient is then that of its own loss."""
    if logits.shape[-1] == 1:
        wanted = torch.tensor(labels, dtype=logits.dtype, device=logits.device)
        return nn.functional.mse_loss(logits[:, 0], wanted, reduction="sum")
    return nn.functional.cross_entropy(logits, torch.tensor(labels, device=logits.device), reduction="sum")


@dataclass(frozen=True)
class _Change:
    """What heads would give out under an operator; given: where a source says so."""

    operator: str
    given: Given | None = None

    def outputs(
        self, layer: int, own: Tensor, values: Float[Tensor, "batch head key dim"], mask: Tensor | None
    ) -> Float[Tensor, "batch query head dim"]:
        """A fixed map times the values, nothing, or what was given."""
        if self.given is not None:
            outputs = self.given.outputs[layer].to(own)
            places = self.given.places
            return outputs if places is None else torch.where(places.to(own.device)[:, :, None, None], outputs, own)
        if self.operator == "zero":
            return torch.zeros_like(own)
        length = values.shape[2]
        visible = visible_keys(mask, values.new_zeros(1, 1, length, length))
        fixed = uniform(visible) if self.operator == "disable" else pointing(self.operator, visible)
        return torch.matmul(fixed.to(values.dtype), values).transpose(1, 2)


def slopes_of(variants: Sequence[Variant], slopes: Float[Tensor, "layer head input"]) -> Float[Tensor, "variant input"]:
    """First-order effects of sets of heads: to first order they add up.

    Args:
        variants: components that are changed together; blocks and layers among them count nothing.
        slopes: g of every head (`first_order`).

    Returns:
        Their sums, in the dtype of `slopes`.
    """
    masks = torch.zeros(len(variants), *slopes.shape[:2], dtype=slopes.dtype)
    for number, variant in enumerate(variants):
        for head in heads_of(variant):
            masks[number, head.layer, head.head] = 1
    return torch.einsum("vlh,lhi->vi", masks, slopes)
