"""The task loss of every example, its change by each ablation, and the change that gradients predict.

The loss is cross-entropy in nats, or the squared error of a score. The exact effect is the loss with the ablation minus
the loss of the unmodified model. The first-order effect is d loss / d t at t = 0 with out(t) = (1 - t) own + t changed,
where "changed" is the output of the head under the ablation method. One forward and backward pass yields it for all
heads.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..errors import InputError
from ..models.checkpoint import Checkpoint
from ..models.encoding import Encoding
from .importance import check_labels, losses_of
from .interventions import Given, StandInSource, operator_of, pointing, uniform, visible_keys
from .running import BATCH_TOKENS, batches, prepared
from .sweeping import Computing, Variant, head_masks, sweep


@dataclass(frozen=True)
class LabelledRows:
    """Encoded examples with their labels (class indices or scores), and the names of the examples for error
    messages."""

    encodings: Sequence[Encoding]
    labels: Sequence[int | float]
    names: Sequence[str] = ()


@dataclass(frozen=True)
class Effects:
    """The exact effects of ablations on the loss of each example.

    Attributes:
        plain: loss of the unmodified model, float64, in nats or as squared error.
        exact: loss with the ablation minus `plain`, float64; positive if the ablation is harmful.
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
    """Return the loss of every example, as float64: cross-entropy in nats, or squared error for one output. If a logit
    is NaN or +infinity, the loss is NaN or infinite."""
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
    """Return the exact effect of every ablation target on the loss of every example.

    `dtype` is that of the layers. Raises InputError if labels do not match or a loss is NaN or infinite, and the errors
    of `sweep`.
    """
    labels = rows.labels
    check_labels(checkpoint, rows.encodings, labels, "Effects on the loss need")
    computing = Computing(dtype=dtype, packed=True)
    swept = sweep(checkpoint, rows.encodings, variants, operator, source=source, computing=computing)
    plain, changed = row_losses(swept.plain, labels), row_losses(swept.changed, labels)
    losses = torch.cat([plain[None], changed])
    unknown = torch.nonzero(~torch.isfinite(losses).all(0)).flatten().tolist()
    if unknown:
        row = rows.names[unknown[0]] if rows.names else f"number {unknown[0] + 1}"
        raise InputError(
            f"The loss of every example must be a finite number; {len(unknown)} of {losses.shape[1]} examples have a "
            f"NaN or infinite loss, such as example {row}. Check the label and text of this example, and the weights "
            "of the checkpoint."
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
    """Return the first-order effect of ablating each head on the loss of each example. Positive values mean that
    ablation raises the loss.

    Raises CheckpointError without a classifier, InterventionError if the method is undefined or heads cannot be
    changed, and InputError if examples and labels do not match.
    """
    operator_of(operator, causal=checkpoint.causal, source=source)
    check_labels(checkpoint, encodings, labels, "First-order effects need")
    slopes = torch.zeros(checkpoint.layers, checkpoint.heads, len(encodings), dtype=torch.float64)
    for inputs in batches(encodings, BATCH_TOKENS // 2):
        some = [encodings[k] for k in inputs]
        given = None if source is None else source.given(some, inputs)
        slopes[:, :, inputs] = _of_batch(checkpoint, some, [labels[k] for k in inputs], operator, given)
    return slopes


def _of_batch(
    checkpoint: Checkpoint, some: Sequence[Encoding], labels: Sequence[int | float], operator: str, given: Given | None
) -> Float[Tensor, "layer head input"]:
    t = torch.zeros(checkpoint.layers, len(some), checkpoint.heads, device=checkpoint.device, requires_grad=True)

    def mix(layer: int, own: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
        difference = (_changed(operator, given, layer, own, values, mask) - own).detach()
        return own + t[layer][:, None, :, None].to(own.dtype) * difference

    with torch.enable_grad(), prepared(checkpoint, gates=torch.ones_like(t[:, 0])) as run:
        run.mixer = mix
        logits = checkpoint.model(**checkpoint.inputs(some)).logits
        (slopes,) = torch.autograd.grad(losses_of(logits.float(), labels).sum(), t)
    return slopes.double().cpu().transpose(1, 2)


def _changed(
    operator: str, given: Given | None, layer: int, own: Tensor, values: Tensor, mask: Tensor | None
) -> Float[Tensor, "batch query head dim"]:
    """Return the outputs of ablated heads: a fixed map times the values, zero, or replacement outputs."""
    if given is not None:
        outputs, places = given.outputs[layer].to(own), given.places
        return outputs if places is None else torch.where(places.to(own.device)[:, :, None, None], outputs, own)
    if operator == "zero":
        return torch.zeros_like(own)
    length = values.shape[2]
    visible = visible_keys(mask, values.new_zeros(1, 1, length, length))
    fixed = uniform(visible) if operator == "disable" else pointing(operator, visible)
    return torch.matmul(fixed.to(values.dtype), values).transpose(1, 2)


def slopes_of(variants: Sequence[Variant], slopes: Float[Tensor, "layer head input"]) -> Float[Tensor, "variant input"]:
    """Return the first-order effect of ablating each target: the sum of the effects of its heads."""
    masks = head_masks(variants, *slopes.shape[:2])
    return torch.einsum("vlh,lhi->vi", masks.to(slopes.dtype), slopes)
