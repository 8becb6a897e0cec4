"""A frozen linear layer with its weights laid out once for this CPU.

PyTorch's own F.linear hands float32 to MKL, which on other makers' processors runs its slow path; oneDNN's packed
kernels reach two to three times its rate there, and add the activation or the residual before the result leaves the
registers. The numbers differ from F.linear only by rounding.
"""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

Activation = Literal["gelu", "gelu_new", "relu"]
_POINTWISE = {"gelu": ("gelu", "none"), "gelu_new": ("gelu", "tanh"), "relu": ("relu", "")}


def packs(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether oneDNN's packed kernels exist here: on a CPU, float32, or bfloat16 where the CPU has it."""
    if device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return False
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return False
    return dtype == torch.float32 or (dtype == torch.bfloat16 and torch.ops.mkldnn._is_mkldnn_bf16_supported())


class Linear:
    """y = x W^T + b, without gradients. weight [out, in], bias [out] or None; both are copied in `dtype`."""

    def __init__(
        self, weight: Float[Tensor, "out into"], bias: Float[Tensor, " out"] | None, dtype: torch.dtype
    ) -> None:
        self.bias = None if bias is None else bias.detach().to(dtype)
        plain = weight.detach().to(dtype).contiguous()
        self.packed = packs(weight.device, dtype)
        self.weight = torch.ops.mkldnn._reorder_linear_weight(plain, None) if self.packed else plain

    def __call__(
        self,
        x: Float[Tensor, "*rows into"],
        *,
        activation: Activation | None = None,
        plus: Float[Tensor, "*rows out"] | None = None,
    ) -> Float[Tensor, "*rows out"]:
        """activation(x W^T + b), or x W^T + b + plus."""
        if not self.packed:
            y = nn.functional.linear(x, self.weight, self.bias)
            y = _activated(y, activation) if activation else y
            return y if plus is None else y + plus
        if plus is not None:
            return torch.ops.mkldnn._linear_pointwise.binary(x, plus, self.weight, self.bias, "add")
        kind, algorithm = _POINTWISE[activation] if activation else ("none", "")
        return torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, kind, [], algorithm)


def _activated(y: Tensor, activation: Activation) -> Tensor:
    if activation == "relu":
        return torch.relu(y)
    return nn.functional.gelu(y, approximate="tanh" if activation == "gelu_new" else "none")
