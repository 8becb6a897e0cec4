"""The output projection W_O of every layer, and the module of the layer, found by a forward pass.

W_O is the first linear module after attention whose input is the concatenated outputs of heads. No table of families is
needed, and modules shared by layers (ALBERT) are found. Layers that first scale or normalise the outputs of heads (the
gate of Qwen3-Next) have no such module.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from ..models.checkpoint import Checkpoint
from ..models.encoding import Encoding
from .function import of_this_thread
from .reach import is_interceptable
from .running import prepared

_ANY = Encoding("", None, (1, 2), (0, 0), ("", ""), (None, None), (None, None), None, ())  # any settings of an input


def output_modules(checkpoint: Checkpoint) -> list[nn.Module]:
    """Return the output projection of every layer that has attention, in order; empty if none can be found."""
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
    """Return the module of each layer with attention: the closest ancestor of the output projection in a module
    list."""
    names = {id(module): name for name, module in checkpoint.model.named_modules()}
    layers = [_listed(checkpoint.model, names[id(module)]) for module in output_modules(checkpoint)]
    return [] if None in layers else list(dict.fromkeys(layer for layer in layers if layer is not None))


def _listed(model: nn.Module, name: str) -> nn.Module | None:
    path: Sequence[str] = name.split(".")
    for end in range(len(path) - 1, 0, -1):
        if isinstance(model.get_submodule(".".join(path[: end - 1])), nn.ModuleList):
            return model.get_submodule(".".join(path[:end]))
    return None
