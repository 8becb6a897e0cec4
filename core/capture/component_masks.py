"""Heads and feed-forward sublayers as parts of the weights, and their importance for the loss.

A head is removed by setting its rows of the output projection to 0, and a feed-forward sublayer by setting its last
matrix and bias to 0. Importance is |d loss / d xi|, where xi = 1 is a gate on the output of the head or sublayer
(Michel et al. 2019; Prasanna et al. 2020).
"""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ..models.checkpoint import Checkpoint
from ..models.encoding import Encoding
from .blocks import writer
from .components import Component, LayerBlock, every_part
from .function import of_this_thread
from .importance import check_labels, gradients, importance, losses_of
from .pruning import output_projections, weights_of
from .running import BATCH_TOKENS, batches, prepared


def every_component(checkpoint: Checkpoint) -> list[Component]:
    """Return all heads of a model, layer by layer, then all its feed-forward sublayers."""
    heads = checkpoint.all_heads
    return [*heads, *every_part(checkpoint.layers, ["feedforward"])]


def masks_without(checkpoint: Checkpoint, gone: Iterable[Component]) -> dict[str, Bool[Tensor, "..."]]:
    """Return boolean masks for the weights of a model, by parameter name: False for the weights of removed components.

    Other parameters remain whole. Raises InterventionError if layers share an output projection, or sublayers cannot be
    found.
    """
    names = {id(module): name for name, module in checkpoint.model.named_modules()}
    projections, masks = output_projections(checkpoint), {}
    for component in gone:
        if isinstance(component, LayerBlock):
            module = writer(checkpoint, component)
            for name, value in module.named_parameters(recurse=False):
                masks[f"{names[id(module)]}.{name}"] = torch.zeros_like(value, dtype=torch.bool)
            continue
        module, name = projections[component.layer], f"{names[id(projections[component.layer])]}.weight"
        mask = masks.setdefault(name, torch.ones_like(module.weight, dtype=torch.bool))  # type: ignore[arg-type]
        mask[weights_of(component, module, checkpoint.heads)] = False
    return masks


def component_importance(
    checkpoint: Checkpoint, encodings: Sequence[Encoding], labels: Sequence[int | float]
) -> dict[Component, float]:
    """Return the importance of every head and feed-forward sublayer, 0 to 1, in the order of `every_component`.

    Importance is divided by the l2 norm over the heads of the layer (as in Michel et al.), or over all feed-forward
    sublayers. Raises CheckpointError without a classifier, InputError if inputs and labels differ in number, and
    InterventionError if components cannot be found.
    """
    heads = importance(gradients(checkpoint, encodings, labels))
    blocks = block_gradients(checkpoint, encodings, labels)
    blocks = blocks / (blocks.norm() + 1e-20)
    scores: dict[Component, float] = {}
    for component in every_component(checkpoint):
        index = component.layer if isinstance(component, LayerBlock) else (component.layer, component.head)
        scores[component] = float((blocks if isinstance(component, LayerBlock) else heads)[index])
    return scores


def block_gradients(
    checkpoint: Checkpoint, encodings: Sequence[Encoding], labels: Sequence[int | float]
) -> Float[Tensor, " layer"]:
    """Return the mean absolute gradient of the loss with respect to the gate of every feed-forward sublayer, float64,
    in units of the loss."""
    check_labels(checkpoint, encodings, labels)
    total = torch.zeros(checkpoint.layers, dtype=torch.float64)
    for chosen in batches(encodings, BATCH_TOKENS // 2):
        batch = [encodings[k] for k in chosen]
        gates = torch.ones(checkpoint.layers, len(batch), device=checkpoint.device, requires_grad=True)
        with torch.enable_grad(), prepared(checkpoint), ExitStack() as stack:
            for part in every_part(checkpoint.layers, ["feedforward"]):

                def gate(_: Any, __: Any, output: Tensor, scale: Tensor = gates[part.layer]) -> Tensor:
                    return output * scale[:, None, None]

                stack.callback(writer(checkpoint, part).register_forward_hook(of_this_thread(gate)).remove)
            logits = checkpoint.model(**checkpoint.inputs(batch)).logits.float()
            (moved,) = torch.autograd.grad(losses_of(logits, [labels[k] for k in chosen]).sum(), gates)
        total += moved.double().abs().sum(1).cpu()
    return total / max(1, len(encodings))
