"""Memory needed to open a checkpoint, from the headers of its files, and free memory of the machine.

Weights count in the dtype that they will have; maps are those of one input, float32 in the program and uint16 for
pages. What would not fit is refused with an error, instead of being killed by the system.
"""

import math
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil
import torch

from ..errors import CheckpointError, InputError
from ..reading import read_bytes
from .weights import tensors_in

# ---------------------------------------------------------------- which arithmetic this machine does fast


def has_bfloat16() -> bool:
    """Return whether the CPU has native instructions for bfloat16."""
    return torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()


@cache
def is_intel() -> bool:
    """Return whether the CPU is made by Intel. MKL, which PyTorch uses for matrix products, is slow on other CPUs."""
    if (processors := Path("/proc/cpuinfo")).is_file():
        return b"GenuineIntel" in read_bytes(processors)
    return "Intel" in platform.processor()


def arithmetic(device: torch.device, dtype: torch.dtype) -> torch.dtype:
    """Return the requested dtype, or float32 if the device is a CPU without native instructions for that dtype."""
    native = dtype == torch.float64 or (dtype == torch.bfloat16 and has_bfloat16())
    return dtype if device.type != "cpu" or native else torch.float32


LARGE = 500_000_000  # parameters from which "auto" keeps half precision, to halve the memory
HEADROOM = 300_000_000  # bytes for activations and buffers of one input, beside weights
WHOLE = 256  # tokens of an input whose maps are kept whole; longer ones are kept as block maxima
A_WEIGHT = 6  # bytes of one attention weight: float32, and uint16 for the page
_HALF = {"F16": "float16", "BF16": "bfloat16"}
_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


@dataclass(frozen=True)
class Stored:
    """The number of parameters in a set of weight files, and the torch dtype that most of them have."""

    parameters: int
    dtype: str

    def opened_as(self, dtype: str) -> str:
        """Return the dtype that the weights have after loading with a dtype option, such as "auto" or "stored"."""
        if dtype == "auto":
            dtype = "stored" if self.parameters >= LARGE else "float32"
        return self.dtype if dtype == "stored" else dtype

    def bytes_as(self, dtype: str) -> int:
        return self.parameters * _BYTES[dtype]


def stored_weights(files: Sequence[Path]) -> Stored:
    """Count the parameters in safetensors files by reading only their headers. Unreadable files are ignored."""
    counts: dict[str, int] = {}
    for kind, shape in tensors_in(files).values():
        counts[kind] = counts.get(kind, 0) + math.prod(shape)
    most = max(counts, key=counts.__getitem__, default="F32")
    return Stored(sum(counts.values()), _HALF.get(most, "float32"))


def free_bytes(device: str) -> int:
    """Return how many bytes of memory are free on a device for a new model."""
    if device.startswith("cuda"):
        return int(torch.cuda.mem_get_info(device)[0])
    return int(psutil.virtual_memory().available)


def maps_bytes(layers: int, heads: int, length: int) -> int:
    """Return how many bytes of memory the attention maps of all heads take for one input."""
    return layers * heads * length**2 * A_WEIGHT


def shown(size: int) -> str:
    """Format a number of bytes as text, such as "2.1 GB" or "12 MB"."""
    return f"{size / 1e9:.1f} GB" if size >= 5e8 else f"{max(1, round(size / 1e6))} MB"


def refuse_whole_maps(subject: str, length: int, maps: int, device: str) -> None:
    """Raise InputError if attention maps with a total size of `maps` bytes do not fit into memory."""
    if maps > (free := free_bytes(device)):
        raise InputError(
            f"{subject} need full attention maps, which must fit into memory; maps of {length:,} tokens take "
            f"{shown(maps)}, but only {shown(free)} are free. Shorten the input, or choose a measurement that does not "
            "need full maps."
        )


def refuse_too_large(name: str, stored: Stored, dtype: str, device: str, *, maps: int = 0) -> str:
    """Return a sentence about how much memory a checkpoint needs. Raises CheckpointError if memory is too small."""
    weights, free = stored.bytes_as(dtype), free_bytes(device)
    if weights + maps + HEADROOM > free:
        half = stored.bytes_as("bfloat16")
        advice = (
            f"Open it as bfloat16 ({shown(half)}), close other programs"
            if dtype == "float32" and half + HEADROOM <= free
            else "Close other programs"
        )
        raise CheckpointError(
            f"A checkpoint and its maps must fit into memory; {name} needs {shown(weights)} for its weights as "
            f"{dtype}, {shown(maps)} for its maps and {shown(HEADROOM)} for activations, but only {shown(free)} "
            f"are free. {advice}, or use a machine with more memory."
        )
    beside = f" and {shown(maps)} of maps" if maps else ""
    return f"{shown(weights)} of weights as {dtype}{beside}; {shown(free)} are free."
