"""Matrix products of long passes by oneDNN's packed kernels, with the weights laid out once for this CPU."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from .stacks import Linear, packs

FEWEST = 2048  # tokens of a pass from which laying out the weights pays
SMALLEST = 2**19  # weights of a matrix
MOST = 2**30  # bytes of all copies


class _PackedProducts(TorchFunctionMode):
    """Replaces products with large float32 parameters, in this thread only."""

    def __init__(self) -> None:
        super().__init__()
        self._bytes = 0
        self._laid_out: dict[int, tuple[Tensor, Linear]] = {}  # with the parameter, so that its ID stays its own

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is nn.functional.linear and not kwargs:
            x, weight, bias = (*args, None)[:3]
            layer = self._layer(x, weight, weight, bias)
        elif func is torch.addmm and not kwargs:  # transformers' Conv1D
            bias, x, weight = args
            layer = self._layer(x, weight, weight.t(), bias)
        else:
            layer = None
        return func(*args, **(kwargs or {})) if layer is None else layer(x)

    def _layer(self, x: Tensor, weight: Tensor, rows: Tensor, bias: Tensor | None) -> Linear | None:
        if id(weight) in self._laid_out:
            return self._laid_out[id(weight)][1]
        if not isinstance(weight, nn.Parameter) or weight.dtype != torch.float32 or x.dtype != torch.float32:
            return None
        if weight.numel() < SMALLEST or self._bytes + weight.nbytes > MOST:
            return None
        self._bytes += weight.nbytes
        self._laid_out[id(weight)] = weight, Linear(rows, bias, torch.float32)
        return self._laid_out[id(weight)][1]


@contextmanager
def packed(device: torch.device, tokens: int) -> Iterator[None]:
    """Use packed products within this context, if a pass has enough tokens to pay for laying out the weights. Gradients
    are not supported."""
    if tokens < FEWEST or not packs(device, torch.float32):
        yield
        return
    with _PackedProducts():
        yield
