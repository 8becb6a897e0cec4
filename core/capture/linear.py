"""A frozen linear layer with its weights laid out once for this CPU.

PyTorch's own F.linear hands float32 to MKL, which uses AVX-512 only on its own maker's processors; oneDNN's packed
kernels reach two to three times its rate on the others, and add the activation or the residual before the result
leaves the registers. Without AVX-512 it is MKL that is ahead, by a tenth. The numbers differ only by rounding.
"""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from core.models.arithmetic import has_bfloat16

Activation = Literal["gelu", "gelu_new", "relu"]
_POINTWISE = {"gelu": ("gelu", "none"), "gelu_new": ("gelu", "tanh"), "relu": ("relu", "")}


def packs(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether oneDNN's packed kernels serve here: on a CPU with AVX-512, or with bfloat16 for that."""
    if device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return False
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return False
    if dtype == torch.float32:
        return torch.backends.cpu.get_cpu_capability() == "AVX512"
    return dtype == torch.bfloat16 and has_bfloat16()


class Linear:
    """A frozen linear layer: y = x W^T + b.

    Args:
        weight: W, which is copied in `dtype`.
        bias: b, which is copied in `dtype`; None: there is none.
        gradients: whether x needs gradients, which the packed kernels do not give.
    """

    def __init__(
        self,
        weight: Float[Tensor, "out into"],
        bias: Float[Tensor, " out"] | None,
        dtype: torch.dtype,
        *,
        gradients: bool = False,
    ) -> None:
        self.bias = None if bias is None else bias.detach().to(dtype)
        plain = weight.detach().to(dtype).contiguous()
        self.packed = not gradients and packs(weight.device, dtype)
        self.weight = torch.ops.mkldnn._reorder_linear_weight(plain, None) if self.packed else plain

    def __call__(
        self,
        x: Float[Tensor, "*rows into"],
        *,
        activation: Activation | None = None,
        plus: Float[Tensor, "*rows out"] | None = None,
    ) -> Float[Tensor, "*rows out"]:
        """The layer's output, and what follows it in the same pass.

        Args:
            activation: what is applied to the output; None: nothing.
            plus: added to the output; not beside an activation. None: nothing.

        Returns:
            activation(x W^T + b), or x W^T + b + plus.
        """
        if not self.packed:
            y = nn.functional.linear(x, self.weight, self.bias)
            y = _activated(y, activation) if activation else y
            return y if plus is None else y.add_(plus)
        if plus is not None:
            return torch.ops.mkldnn._linear_pointwise.binary(x, plus, self.weight, self.bias, "add")
        kind, algorithm = _POINTWISE[activation] if activation else ("none", "")
        return torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, kind, [], algorithm)


def _activated(y: Tensor, activation: Activation) -> Tensor:
    """In place: the layer's own output, which nothing else holds."""
    if activation == "relu":
        return y.relu_()
    return torch.ops.aten.gelu_(y, approximate="tanh" if activation == "gelu_new" else "none")
