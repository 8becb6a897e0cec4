"""What opening a checkpoint takes, read from the headers of its files, and what the machine has free.

Weights are counted in the dtype that they will have; maps are those of one input, float32 in the program and uint16 on
their way to a page. What does not fit is refused in a sentence, instead of by the system's killer.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import torch

from ..errors import CheckpointError, InputError
from .weights import tensors_in

# ---------------------------------------------------------------- which arithmetic this machine does fast


def has_bfloat16() -> bool:
    """Whether the CPU computes in bfloat16 itself; PyTorch emulates it elsewhere, ten times slower than float32."""
    return torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()


def arithmetic(device: torch.device, dtype: torch.dtype) -> torch.dtype:
    """The dtype to compute in where `dtype` is asked for: float32 on a CPU that would only emulate it."""
    native = dtype == torch.float64 or (dtype == torch.bfloat16 and has_bfloat16())
    return dtype if device.type != "cpu" or native else torch.float32


# ----------------------------------------------------------------


LARGE = 500_000_000  # parameters; from here on "auto" keeps half precision, whose weights are half as many bytes
HEADROOM = 300_000_000  # bytes for activations and buffers of one input, beside weights
WHOLE = 256  # tokens of an input whose maps are kept whole; longer ones are kept as block maxima
A_WEIGHT = 6  # bytes of one attention weight: float32, and uint16 for the page
_HALF = {"F16": "float16", "BF16": "bfloat16"}
_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


@dataclass(frozen=True)
class Stored:
    """Weights as their files hold them: how many, and the dtype of most floating numbers as torch names it."""

    parameters: int
    dtype: str

    def opened_as(self, dtype: str) -> str:
        """The dtype to open them in: "stored" is the file's, "auto" too where the model is large, else float32.

        Any other is itself.
        """
        if dtype == "auto":
            dtype = "stored" if self.parameters >= LARGE else "float32"
        return self.dtype if dtype == "stored" else dtype

    def bytes_as(self, dtype: str) -> int:
        """Bytes of the weights in memory."""
        return self.parameters * _BYTES[dtype]


def stored_weights(files: Sequence[Path]) -> Stored:
    """Read the headers of safetensors files. What cannot be read counts as nothing: opening it says why."""
    counts: dict[str, int] = {}
    for kind, shape in tensors_in(files).values():
        counts[kind] = counts.get(kind, 0) + math.prod(shape)
    most = max(counts, key=counts.__getitem__, default="F32")
    return Stored(sum(counts.values()), _HALF.get(most, "float32"))


def free_bytes(device: str) -> int:
    """Bytes that a new model may take on a device without pushing anything out."""
    if device.startswith("cuda"):
        return int(torch.cuda.mem_get_info(device)[0])
    return int(psutil.virtual_memory().available)


def maps_bytes(layers: int, heads: int, length: int) -> int:
    """Bytes that all maps of one input of `length` tokens take, on their way to a page too."""
    return layers * heads * length**2 * A_WEIGHT


def shown(size: int) -> str:
    """Bytes for people: "2.1 GB", "12 MB"."""
    return f"{size / 1e9:.1f} GB" if size >= 5e8 else f"{max(1, round(size / 1e6))} MB"


def refuse_whole_maps(subject: str, length: int, maps: int, device: str) -> None:
    """Refuse what needs whole maps of an input where they would not fit into memory.

    Args:
        maps: bytes that its maps and what is made of them take at once.
        device: where they are.

    Raises:
        InputError: they take more than is free.
    """
    if maps > (free := free_bytes(device)):
        raise InputError(
            f"{subject} need whole maps, which must fit into memory; those of {length:,} tokens take {shown(maps)}, "
            f"and {shown(free)} are free: shorten the input, or measure what needs no whole maps (see docs/reference)."
        )


def refuse_too_large(name: str, stored: Stored, dtype: str, device: str, *, maps: int = 0) -> str:
    """Refuse a checkpoint that would not fit into memory.

    Args:
        device: where it will run.
        maps: bytes of the maps that are asked for.

    Raises:
        CheckpointError: it is more than is free.
    """
    weights, free = stored.bytes_as(dtype), free_bytes(device)
    if weights + maps + HEADROOM > free:
        half = stored.bytes_as("bfloat16")
        smaller = f"open it as bfloat16 ({shown(half)}), " if dtype == "float32" and half + HEADROOM <= free else ""
        raise CheckpointError(
            f"A checkpoint and its maps must fit into memory; {name} takes {shown(weights)} as {dtype}, its maps "
            f"{shown(maps)} and {shown(HEADROOM)} more are needed to run it, but {shown(free)} are free: {smaller}"
            "close other programs, or use a machine with more."
        )
    beside = f" and {shown(maps)} of maps" if maps else ""
    return f"{shown(weights)} of weights as {dtype}{beside}; {shown(free)} are free."
