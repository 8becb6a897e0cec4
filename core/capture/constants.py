"""Optimal constants: the constant output of a head that increases the loss least (Li and Janson 2024, 2409.09951).

For each head alone, gradient descent fits one constant per class of position (first, separator, other) to minimise the
mean loss on training examples, starting from the mean output, or from zero if that is better. The heads of a layer are
fitted together, because the inputs of the layer are computed once.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..attention import Head
from ..errors import CheckpointError
from ..models.checkpoint import Checkpoint
from ..models.encoding import Encoding
from .importance import check_labels, losses_of
from .outputs import ByClass, classes_of, mean_outputs
from .running import BATCH_TOKENS, batches
from .stacks import Block, Stack, stack_of

STEPS = 20
STEP_SIZE = 0.1  # as a multiple of the standard deviation of the layer's mean outputs


@dataclass(frozen=True)
class Fitted:
    """The constant output fitted for every head, with mean losses on the fitting examples. Losses are cross-entropy in
    nats or squared error; NaN for heads that were not fitted.

    Attributes:
        mean, zero: loss with only this head set to its mean output, or to 0.
        fitted: loss with only this head set to its constant; never above `mean` and `zero`.
    """

    source: ByClass
    mean: Float[Tensor, "layer head"]
    zero: Float[Tensor, "layer head"]
    fitted: Float[Tensor, "layer head"]

    def stuck(self) -> list[tuple[int, int]]:
        """Return the heads (layer, head) for which the mean output or 0 is at least as good as the fitted constant."""
        start = torch.minimum(self.mean, self.zero)
        return [(int(layer), int(head)) for layer, head in (self.fitted >= start).nonzero().tolist()]


@dataclass(frozen=True)
class _Bucket:
    """Inputs of one length at a layer: the input of the layer, and what does not depend on the constants."""

    x: Float[Tensor, "batch length hidden"]
    classes: Int[Tensor, "batch length"]
    labels: Tensor


def optimal_constants(
    checkpoint: Checkpoint,
    encodings: Sequence[Encoding],
    labels: Sequence[int | float],
    *,
    steps: int = STEPS,
    heads: Collection[Head] | None = None,
) -> Fitted:
    """Fit the constant output of each head of a BERT- or GPT-2-like classifier by gradient descent on the mean loss.

    If `heads` is given, other heads have their mean output, and NaN as losses. Raises InputError if examples and labels
    do not match, and CheckpointError if the layers of the family cannot be computed separately.
    """
    check_labels(checkpoint, encodings, labels, 'The ablation method "constant" needs')
    stack = stack_of(checkpoint, getattr(torch, checkpoint.dtype), gradients=True)
    if stack is None:
        raise CheckpointError(
            'The ablation method "constant" needs a classifier with the architecture of BERT or GPT-2; '
            f'{checkpoint.name} is not one. Choose the method "mean" instead.'
        )
    means = mean_outputs(checkpoint, encodings)
    buckets = []
    for batch in batches(encodings):
        some = [encodings[k] for k in batch]
        with torch.no_grad():
            x = stack.embed(some)
        classes = torch.stack([classes_of(encoding) for encoding in some])
        buckets.append(_Bucket(x, classes.to(x.device), torch.tensor([labels[k] for k in batch], device=x.device)))
    constants, losses = [], []
    for layer, block in enumerate(stack.blocks):
        wanted = [head for head in range(block.heads) if heads is None or Head(layer, head) in heads]
        best, figures = means.outputs[layer].clone(), torch.full((3, block.heads), float("nan"))
        if wanted:
            best[:, wanted], descended = _descend(stack, layer, buckets, means.outputs[layer], steps, wanted)
            figures = figures.to(descended)
            figures[:, wanted] = descended
        constants.append(best)
        losses.append(figures)

        if heads is not None and layer >= max((head.layer for head in heads), default=0):
            losses += [torch.full_like(figures, float("nan"))] * (len(stack.blocks) - layer - 1)
            constants += list(means.outputs[layer + 1 :])
            break
        with torch.no_grad():
            buckets = [
                _Bucket(_next(block, bucket.x, stack.causal), bucket.classes, bucket.labels) for bucket in buckets
            ]
    mean, zero, fitted = torch.stack(losses, 1).unbind(0)
    return Fitted(
        ByClass("constant", torch.stack(constants), means.n, weights_hash=checkpoint.weights_hash), mean, zero, fitted
    )


def _next(block: Block, x: Tensor, causal: bool) -> Tensor:
    return block.after(block.joined(block.mixed_of(x, causal)[0], x))


def _descend(
    stack: Stack,
    layer: int,
    buckets: Sequence[_Bucket],
    every: Float[Tensor, "class head dim"],
    steps: int,
    wanted: list[int],
) -> tuple[Float[Tensor, "class some dim"], Float[Tensor, "three some"]]:
    """Return the best constants of some heads of a layer, and the losses of mean, zero and best."""
    means = every[:, wanted]
    mean, zero = (
        _losses(stack, layer, buckets, values, wanted, slopes=False) for values in (means, torch.zeros_like(means))
    )
    start = torch.where((zero < mean)[None, :, None], 0.0, means)
    constants = start.clone().requires_grad_()
    best, lowest = start.clone(), torch.minimum(mean, zero)
    size = STEP_SIZE * float(every.std()) if every.numel() > 1 else STEP_SIZE
    optimizer = torch.optim.Adam([constants], lr=max(size, 1e-6))
    for step in range(steps + 1):
        optimizer.zero_grad()
        losses = _losses(stack, layer, buckets, constants, wanted, slopes=step < steps)
        better = losses < lowest
        best = torch.where(better[None, :, None], constants.detach(), best)
        lowest = torch.where(better, losses, lowest)
        if step < steps:
            optimizer.step()
    return best, torch.stack([mean, zero, lowest])


def _losses(
    stack: Stack,
    layer: int,
    buckets: Sequence[_Bucket],
    constants: Float[Tensor, "class some dim"],
    wanted: list[int],
    *,
    slopes: bool,
) -> Float[Tensor, " some"]:
    """Return the mean loss over all examples with each head alone at its constant; `slopes` adds the gradient."""
    rows, total = sum(len(group.labels) for group in buckets), torch.zeros(constants.shape[1], dtype=torch.float64)
    with torch.set_grad_enabled(slopes):
        for bucket in buckets:
            heads = constants.shape[1]
            at_once = max(1, BATCH_TOKENS // (heads * bucket.x.shape[1]))
            for start in range(0, len(bucket.labels), at_once):
                part = slice(start, start + at_once)
                # Losses of examples with one head at a time replaced by its constant
                block, x, labels = stack.blocks[layer], bucket.x[part], bucket.labels[part]
                with torch.no_grad():
                    mixed = block.mixed_of(x, stack.causal)[0]
                    joined = block.joined(mixed, x)
                difference = constants[bucket.classes[part]] - mixed[:, :, wanted]
                difference = difference.permute(2, 0, 1, 3)  # [head, row, position, dim]
                added = torch.einsum("hbtd,hdi->hbti", difference, block.separate["out"][wanted])
                y = block.after((joined + added).flatten(0, 1))
                for later in stack.blocks[layer + 1 :]:
                    y = _next(later, y, stack.causal)
                losses = losses_of(stack.logits(y), labels.repeat(len(added))).view(len(added), len(labels))
                if slopes:  # gradients of the constants only, even if the model's weights require some
                    (slope,) = torch.autograd.grad(losses.sum() / rows, constants)
                    constants.grad = slope if constants.grad is None else constants.grad + slope
                total += losses.detach().double().sum(1).cpu() / rows
    return total.to(constants.device, torch.promote_types(constants.dtype, torch.float32))
