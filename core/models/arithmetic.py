"""Which arithmetic this machine does fast."""

import torch


def has_bfloat16() -> bool:
    """Whether the CPU computes in bfloat16 itself; PyTorch emulates it elsewhere, ten times slower than float32."""
    return torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()


def arithmetic(device: torch.device, dtype: torch.dtype) -> torch.dtype:
    """The dtype to compute in where `dtype` is asked for: float32 on a CPU that would only emulate it."""
    native = dtype == torch.float64 or (dtype == torch.bfloat16 and has_bfloat16())
    return dtype if device.type != "cpu" or native else torch.float32
