"""Saving of a checkpoint without some heads: their rows of the output projection are set to 0.

This has the effect of xi = 0 on the output of the head (Michel et al.) in any program that opens the folder.
`pruned_heads` in config.json lists the heads.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import cast

from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from ..attention import Head
from ..errors import CheckpointError, InputError, InterventionError
from ..models.checkpoint import Checkpoint
from ..models.classifier import POOLING_KEY
from ..models.pruned import KEY
from ..writing import write_whole
from .projections import output_modules


def pruned_heads(checkpoint: Checkpoint) -> list[Head]:
    """Return the heads that were pruned when a checkpoint was saved."""
    return [Head.parse(name) for name in getattr(checkpoint.model.config, KEY, None) or []]


def output_projections(checkpoint: Checkpoint) -> list[nn.Module]:
    """Return, for each layer, the linear module whose input is the concatenated outputs of the heads. Raises
    InterventionError if layers share a module."""
    projections = output_modules(checkpoint)
    if len(projections) != checkpoint.layers or len({id(projection) for projection in projections}) != len(projections):
        raise InterventionError(
            "Pruning needs a separate output projection in every layer, which "
            f'{checkpoint.family.model_type} models do not have. Use the ablation method "zero" instead.'
        )
    return projections


def weights_of(head: Head, projection: nn.Module, heads: int) -> tuple[slice, ...]:
    """Return the index of the weights of one head in an output projection."""
    into = 0 if isinstance(projection, Conv1D) else 1  # the weight of Conv1D is [in, out]
    width = cast(Tensor, projection.weight).shape[into] // heads
    return (*[slice(None)] * into, slice(head.head * width, (head.head + 1) * width))


def save_pruned(checkpoint: Checkpoint, heads: Iterable[Head], folder: str | Path) -> Path:
    """Write a checkpoint without some heads, and without those pruned earlier, to a new or empty folder.

    Raises InputError if there are no heads, a head does not exist, or the folder is not empty; CheckpointError for a
    custom pooling; InterventionError if the family cannot be pruned.
    """
    gone = sorted({head.within(checkpoint.layers, checkpoint.heads) for head in heads} | set(pruned_heads(checkpoint)))
    target = Path(folder).expanduser()
    if not gone:
        raise InputError("Pruning needs at least one head; got none. Name heads such as L1H2.")
    if target.exists() and any(target.iterdir()):
        raise InputError(
            f"The folder of a pruned checkpoint must be new or empty; {target} contains files. Choose another folder."
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
