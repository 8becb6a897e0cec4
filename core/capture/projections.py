"""The output and value projections of heads, W_O and W_V, the modules of layers, and OV copying.

W_O is found by a forward pass: it is the first linear module after attention whose input is the concatenated outputs of
heads. No table of families is needed, and modules shared by layers (ALBERT) are found. Layers that first scale or
normalise the outputs of heads (the gate of Qwen3-Next) have no such module.

Value vectors for effective attention lack the bias (Brunner et al. 2020), because rows of effective attention do not
sum to 1, so a bias would not cancel.

OV copying is whether attending to a token makes the same token more likely (Elhage et al. 2021). The circuit W_E W_V
W_O W_U maps an attended token to logits of the vocabulary. Positive eigenvalues mean that tokens raise their own logit.
Positions, LayerNorms, biases, feed-forward sublayers and the transformation before a masked-language-model head are
ignored. The unembedding must be the transposed embedding.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from ..errors import InputError
from ..models.checkpoint import Checkpoint
from ..models.encoding import Encoding
from ..models.memory import maps_bytes, refuse_whole_maps
from .function import of_this_thread
from .reach import is_interceptable
from .running import by_layer, prepared

_ANY = Encoding("", None, (1, 2), (0, 0), ("", ""), (None, None), (None, None), None, ())  # any settings of an input


def output_modules(checkpoint: Checkpoint) -> list[nn.Module]:
    """Return the output projection of every layer that has attention, in order. Empty if they cannot be found."""
    if not is_interceptable(checkpoint) or len(checkpoint.sets) > 1:
        return []
    seen: list[nn.Module] = []
    waiting: list[Tensor] = []

    def attended(_: int, output: Tensor, __: Tensor, ___: Tensor | None) -> Tensor:
        waiting[:] = [output.flatten(2)]
        return output

    def before(module: nn.Module, arguments: tuple[Any, ...]) -> None:
        if waiting and arguments:
            if torch.equal(arguments[0].reshape(-1), waiting[0].reshape(-1)):
                seen.append(module)
            waiting.clear()

    with torch.no_grad(), ExitStack() as stack:
        for module in checkpoint.model.modules():
            if isinstance(module, nn.Linear | Conv1D):
                stack.callback(module.register_forward_pre_hook(of_this_thread(before)).remove)
        stack.enter_context(prepared(checkpoint)).mixer = attended
        checkpoint.model(**checkpoint.inputs([_ANY]))
    return seen if len(seen) == checkpoint.calls else []


def layer_modules(checkpoint: Checkpoint) -> list[nn.Module]:
    """Return the module of each layer that has attention. The module is the closest ancestor of the output projection
    in a ModuleList."""
    names = {id(module): name for name, module in checkpoint.model.named_modules()}
    layers = [_listed(checkpoint.model, names[id(module)]) for module in output_modules(checkpoint)]
    return [] if None in layers else list(dict.fromkeys(layer for layer in layers if layer is not None))


def _listed(model: nn.Module, name: str) -> nn.Module | None:
    path: Sequence[str] = name.split(".")
    for end in range(len(path) - 1, 0, -1):
        if isinstance(model.get_submodule(".".join(path[: end - 1])), nn.ModuleList):
            return model.get_submodule(".".join(path[:end]))
    return None


@dataclass(frozen=True)
class OutputProjection:
    """The output projection W_O of one layer, split by head, and its bias (0 if it has none), in at least float32.
    `triangle` is R^T from the QR decomposition W_O^T = Q R, so that |v R^T| = |v W_O| for any v."""

    weight: Float[Tensor, "head dim hidden"]
    triangle: Float[Tensor, "head dim dim"]
    bias: Float[Tensor, " hidden"]


def output_projections(checkpoint: Checkpoint) -> list[OutputProjection]:
    """Return the output projection W_O of every layer with attention. Raises InputError if one cannot be found."""
    modules = output_modules(checkpoint)
    if not modules:
        raise InputError(
            "Norm-based attention and the circuits of heads need the output projection of every head, which cannot be "
            f"read from {checkpoint.family.model_type} models. Choose a checkpoint like BERT or GPT-2."
        )
    return [_projection(module, checkpoint) for module in modules]


def _projection(module: nn.Module, checkpoint: Checkpoint) -> OutputProjection:
    own = cast(Tensor, module.weight).detach()
    exact = torch.promote_types(own.dtype, torch.float32)
    weight = own.to(exact)
    weight = weight.t() if isinstance(module, nn.Linear) else weight  # GPT-2's Conv1D is [in, out]
    bias = getattr(module, "bias", None)
    bias = weight.new_zeros(weight.shape[1]) if bias is None else bias.detach().to(exact)
    by_head = weight.reshape(checkpoint.heads, -1, weight.shape[1])
    return OutputProjection(by_head, torch.linalg.qr(by_head.mT, mode="r").R.mT, bias)


# ---------------------------------------------------------------- value projections


EXACT_MAPS = 6  # memory in units of float32 maps: kept, stacked, and effective in float64
_OWN = ("value", "v_proj", "v_lin")  # modules that project to values alone
_FUSED = ("c_attn", "Wqkv")  # query, key and value of all heads one after another
_BY_HEAD = ("query_key_value",)  # query, key and value of each head together


def maps_and_values(
    checkpoint: Checkpoint, encoding: Encoding
) -> tuple[Float[np.ndarray, "layer head query column"], Float[np.ndarray, "layer head key dim"]]:
    """Return the attention weights of one input and the value vectors x W_V without bias, as float64. If there is a
    sink, it is the last key.

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
    """Return the value projection W_V of every layer, split by head, as float64. Layers without a known value
    projection are left out. Each head has its own copy, even if heads share a projection."""
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


# ---------------------------------------------------------------- OV copying


def copying(checkpoint: Checkpoint) -> Float[np.ndarray, "layer head"] | None:
    """Return the copying score of each head: sum(lambda) / sum(|lambda|) over the eigenvalues of its OV circuit. A
    score of 1 means pure copying, and the minimum is -1.

    The eigenvalues are those of W_O (W_E^T W_E) W_V, a matrix of the head dimension. NaN in layers without attention;
    None if weights cannot be found or the embeddings are not tied.
    """
    model = checkpoint.model
    if not getattr(model.config, "tie_word_embeddings", False):
        return None
    try:
        projections = output_projections(checkpoint)
    except InputError:
        return None
    module = model.get_input_embeddings()
    weight = getattr(module, "weight", None)
    embedding = None if weight is None else weight.detach().to(torch.promote_types(weight.dtype, torch.float32))
    values = value_weights(checkpoint)
    hidden = projections[0].weight.shape[-1]
    if len(values) != len(projections) or embedding is None or embedding.shape[1] != hidden:
        return None
    spread = (embedding.T @ embedding).double().cpu().numpy()
    copied = np.full((checkpoint.layers, checkpoint.heads), np.nan)
    for number, layer, mine in zip(checkpoint.sets[0].numbers, projections, values, strict=True):
        pairs = zip(layer.weight, mine, strict=True)
        copied[number] = [share(out.double().cpu().numpy() @ spread @ value) for out, value in pairs]
    return copied


def share(circuit: Float[np.ndarray, "dim _"]) -> float:
    """Return the sum of the eigenvalues of a matrix divided by the sum of their absolute values; 0 for a zero
    matrix."""
    eigenvalues = np.linalg.eigvals(circuit)
    size = float(np.abs(eigenvalues).sum())
    return float(eigenvalues.sum().real) / size if size else 0.0
