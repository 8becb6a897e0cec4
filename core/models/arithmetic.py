"""Which arithmetic this machine does fast."""

import torch


def has_bfloat16(device: torch.device | str = "cpu") -> bool:
    """Whether `device` computes in bfloat16 itself; PyTorch emulates it elsewhere, ten times slower than float32."""
    if torch.device(device).type != "cpu":
        return torch.device(device).type == "cuda" and torch.cuda.is_bf16_supported()
    return torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()


def half_or_single(device: torch.device | str = "cpu") -> torch.dtype:
    """bfloat16 where the device has it, float32 elsewhere."""
    return torch.bfloat16 if has_bfloat16(device) else torch.float32
