"""Exponentials, logarithms and dot products of many numbers in a tensor.

On the processor numpy's take half as long as torch's (2.4 beside 2.14); on a GPU they are torch's.
"""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor


def exp_into(target: "Tensor", numbers: "Tensor") -> "Tensor":
    """Exponentials of a tensor, written into another or into itself.

    Args:
        target: what is written to. *Shape:* that of `numbers`.
        numbers: of any floating dtype, on any device; `target` may be the same tensor. *Shape:* (*axes).

    Returns:
        `target`. *Shape:* (*axes).
    """
    if _is_torchs(numbers):
        return target.copy_(numbers.exp())
    np.exp(numbers.numpy(), out=target.numpy())
    return target


def log_into(target: "Tensor", numbers: "Tensor") -> "Tensor":
    """Natural logarithms of a tensor, written into another or into itself.

    Args:
        target: what is written to. *Shape:* that of `numbers`.
        numbers: of any floating dtype, on any device, above 0 where the logarithm shall be finite; `target` may be the
            same tensor. *Shape:* (*axes).

    Returns:
        `target`. *Shape:* (*axes).
    """
    if _is_torchs(numbers):
        return target.copy_(numbers.log())
    np.log(numbers.numpy(), out=target.numpy())
    return target


def row_dots(first: "Tensor", second: "Tensor") -> "Tensor":
    """Dot products along the last axis of two tensors, whose other axes are broadcast.

    Args:
        first: of any floating dtype, on any device. *Shape:* (*axes, number).
        second: of the same dtype, on the same device. *Shape:* (*axes, number).

    Returns:
        Of the same dtype. *Shape:* (*axes).
    """
    if _is_torchs(first):
        return (first * second).sum(-1)
    import torch  # of a tensor's user it is loaded

    return torch.from_numpy(np.vecdot(first.numpy(), second.numpy()))


def _is_torchs(numbers: "Tensor") -> bool:
    return bool(numbers.device.type != "cpu" or numbers.requires_grad or numbers.element_size() < 4)
