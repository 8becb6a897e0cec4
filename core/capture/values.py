"""Value vectors of every head without their bias, for effective attention.

Brunner et al. (2020) leave the bias out, because rows of effective attention do not sum to 1, so a bias would not
cancel.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..errors import InputError
from ..models.checkpoint import Checkpoint
from ..models.encoding import Encoding
from ..models.memory import maps_bytes, refuse_whole_maps
from .function import of_this_thread
from .running import by_layer, prepared

EXACT_MAPS = 6  # memory in units of float32 maps: kept, stacked, and effective in float64
_OWN = ("value", "v_proj", "v_lin")  # modules that project to values alone
_FUSED = ("c_attn", "Wqkv")  # query, key and value of all heads one after another
_BY_HEAD = ("query_key_value",)  # query, key and value of each head together


def maps_and_values(
    checkpoint: Checkpoint, encoding: Encoding
) -> tuple[Float[np.ndarray, "layer head query column"], Float[np.ndarray, "layer head key dim"]]:
    """Return the attention weights of one input (with a sink as last key) and the value vectors x W_V without bias,
    float64.

    Values shared by heads are repeated. Raises InputError if maps or values are not available or do not fit into
    memory.
    """
    length = len(encoding)
    maps = EXACT_MAPS * maps_bytes(checkpoint.layers, checkpoint.heads, length)
    refuse_whole_maps("Effective weights", length, maps, str(checkpoint.device))
    weights: list[np.ndarray] = []

    def watch(_: int, maps: Tensor) -> None:
        weights.append(maps[0].double().cpu().numpy())

    with torch.no_grad(), _projections(checkpoint) as values, prepared(checkpoint, watcher=watch):
        checkpoint.model(**checkpoint.inputs([encoding]))
    if not weights or len(weights) != len(values):
        raise InputError(
            "Effective attention needs the value vectors of every head, which cannot be read from "
            f"{checkpoint.family.model_type} models. Choose a checkpoint like BERT or GPT-2."
        )
    heads = weights[0].shape[0]
    repeated = [np.repeat(vectors, heads // len(vectors), axis=0) for vectors in values]
    maps_stacked, values_stacked = (
        by_layer(checkpoint, [torch.from_numpy(one) for one in every]).numpy() for every in (weights, repeated)
    )
    return maps_stacked, values_stacked


def value_weights(checkpoint: Checkpoint) -> list[Float[np.ndarray, "head hidden dim"]]:
    """Return the value projection W_V of every layer by head, float64, repeated if heads share it. The list lacks
    layers in which no value projection is found."""
    slices = []
    for name, layer in _value_layers(checkpoint):
        if isinstance(layer.weight, Tensor):
            weight = layer.weight.detach()
            weight = weight.t() if isinstance(layer, nn.Linear) else weight  # Conv1D is [in, out]
            values = _by_head(weight, name, checkpoint)
            slices.append(np.repeat(values, checkpoint.heads // len(values), axis=0))
    return slices


def _value_layers(checkpoint: Checkpoint) -> list[tuple[str, nn.Module]]:
    """Return the modules that project to values, each with its name."""
    names = (*_OWN, *_FUSED, *_BY_HEAD)
    named = [(name, getattr(module, name, None)) for module in checkpoint.model.modules() for name in names]
    return [(n, own) for n, own in named if isinstance(own, nn.Module) and getattr(own, "weight", None) is not None]


@contextmanager
def _projections(checkpoint: Checkpoint) -> Iterator[list[np.ndarray]]:
    """Collect the values [head, key, dim] of each layer that runs in this thread within the context."""
    projected: list[np.ndarray] = []
    with ExitStack() as stack:
        for name, layer in _value_layers(checkpoint):

            def keep(layer: nn.Module, _: tuple[Any, ...], states: Tensor, name: str = name) -> None:
                bias = getattr(layer, "bias", None)
                projected.append(_by_head(states[0] if bias is None else states[0] - bias, name, checkpoint))

            stack.callback(layer.register_forward_hook(of_this_thread(keep)).remove)
        yield projected


def _by_head(states: Tensor, name: str, checkpoint: Checkpoint) -> np.ndarray:
    """Return the output of a projection [key, width] as values [head, key, dim]."""
    values, length = states.double().cpu().numpy(), len(states)
    if name in _OWN:
        heads = getattr(checkpoint.model.config, "num_key_value_heads", None) or checkpoint.heads
        return values.reshape(length, heads, -1).transpose(1, 0, 2)
    if name in _FUSED:
        return values.reshape(length, 3, checkpoint.heads, -1)[:, 2].transpose(1, 0, 2)
    return values.reshape(length, checkpoint.heads, 3, -1)[:, :, 2].transpose(1, 0, 2)
