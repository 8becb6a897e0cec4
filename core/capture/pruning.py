"""Removal of heads and feed-forward sublayers from the weights, and their importance for the loss.

A head is removed by setting its rows of the output projection to 0, which has the effect of xi = 0 on its output
(Michel et al. 2019) in any program that opens the saved folder. A feed-forward sublayer is removed by setting its last
matrix and bias to 0. Importance is |d loss / d xi|, where xi = 1 is a gate on the output of the head or sublayer
(Prasanna et al. 2020). `pruned_heads` in config.json lists the removed heads.
"""

import json
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from ..attention import Head
from ..errors import CheckpointError, InputError, InterventionError
from ..models.checkpoint import Checkpoint
from ..models.classifier import POOLING_KEY
from ..models.encoding import Encoding
from ..models.pruned import KEY
from ..writing import write_whole
from .blocks import writer
from .components import Component, LayerBlock, every_part
from .function import of_this_thread
from .importance import check_labels, gradients, importance, losses_of
from .projections import output_modules
from .running import BATCH_TOKENS, batches, prepared


def pruned_heads(checkpoint: Checkpoint) -> list[Head]:
    """Return the heads that had been pruned when a checkpoint was saved."""
    return [Head.parse(name) for name in getattr(checkpoint.model.config, KEY, None) or []]


def output_projections(checkpoint: Checkpoint) -> list[nn.Module]:
    """Return, for each layer, the linear module that projects the concatenated outputs of its heads. Raises
    InterventionError if layers share a module, or a module cannot be found."""
    projections = output_modules(checkpoint)
    if len(projections) != checkpoint.layers or len({id(projection) for projection in projections}) != len(projections):
        raise InterventionError(
            "Pruning needs a separate output projection in every layer, which "
            f'{checkpoint.family.model_type} models do not have. Use the ablation method "zero" instead.'
        )
    return projections


def weights_of(head: Head, projection: nn.Module, heads: int) -> tuple[slice, ...]:
    """Return an index into an output projection that selects the weights of one head."""
    into = 0 if isinstance(projection, Conv1D) else 1  # the weight of Conv1D is [in, out]
    width = cast(Tensor, projection.weight).shape[into] // heads
    return (*[slice(None)] * into, slice(head.head * width, (head.head + 1) * width))


def save_pruned(checkpoint: Checkpoint, heads: Iterable[Head], folder: str | Path) -> Path:
    """Write a checkpoint to a new or empty folder, without the given heads and without previously pruned heads.

    Raises InputError if there are no heads, a head does not exist, or the folder is not empty; CheckpointError for a
    custom pooling; InterventionError if the family cannot be pruned.
    """
    gone = sorted({head.within(checkpoint.layers, checkpoint.heads) for head in heads} | set(pruned_heads(checkpoint)))
    target = Path(folder).expanduser()
    if not gone:
        raise InputError("Pruning needs at least one head; got none. Name heads such as L1H2.")
    if target.is_file() or (target.exists() and any(target.iterdir())):
        state = "is a file" if target.is_file() else "contains files"
        raise InputError(
            f"The folder of a pruned checkpoint must be new or empty; {target} {state}. Choose another folder."
        )
    if getattr(checkpoint.model.config, POOLING_KEY, None):
        raise CheckpointError(
            "Checkpoints with custom pooling cannot be pruned; only pooling by [CLS] or the last token is "
            "supported. Choose another checkpoint."
        )
    # All weights, copied where heads are removed.
    weights = dict(checkpoint.model.state_dict())
    names = {id(module): name for name, module in checkpoint.model.named_modules()}
    modules = output_projections(checkpoint)
    for head in gone:
        module = modules[head.layer]
        name = f"{names[id(module)]}.weight"
        weights[name] = weights[name].clone()
        weights[name][weights_of(head, module, checkpoint.heads)] = 0
    before = getattr(checkpoint.model.config, KEY, [])
    setattr(checkpoint.model.config, KEY, [str(head) for head in gone])
    try:
        checkpoint.model.save_pretrained(target, state_dict=weights, safe_serialization=True)
    finally:
        setattr(checkpoint.model.config, KEY, before)
    checkpoint.tokenizer.save_pretrained(target)
    facts = {"kind": "pruned", "base": checkpoint.name, "base_hash": checkpoint.weights_hash}
    write_whole(target / "pruned.json", json.dumps(facts | {"heads": [str(head) for head in gone]}, indent=1))
    return target


def every_component(checkpoint: Checkpoint) -> list[Component]:
    """Return all heads of a model, layer by layer, then all its feed-forward sublayers."""
    heads = checkpoint.all_heads
    return [*heads, *every_part(checkpoint.layers, ["feedforward"])]


def masks_without(checkpoint: Checkpoint, gone: Iterable[Component]) -> dict[str, Bool[Tensor, "..."]]:
    """Return a dictionary from parameter names to boolean masks, which are False for the weights of removed components.

    Other parameters remain whole. Raises InterventionError if layers share an output projection, or modules cannot be
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
    """Return the importance (0 to 1) of every head and feed-forward sublayer, in the order of `every_component`.

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
    """Return the mean absolute gradient of the loss with respect to each feed-forward gate, float64. A gate is a factor
    on the output of a feed-forward sublayer."""
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
