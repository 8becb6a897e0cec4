"""Pictures of numbers as PNG, without an imaging library: the pixels are there already."""

import struct
import zlib

import numpy as np
from jaxtyping import UInt8

GREY, COLOUR = 0, 2  # the format's colour types


def png_bytes(pixels: UInt8[np.ndarray, "row column *rgb"]) -> bytes:
    """A PNG file of 8 bits a channel, each line unfiltered (W3C PNG specification, sections 5 and 11).

    Args:
        pixels: grey, or RGB where there is a third axis (of 3), rows downwards.
    """
    height, width = pixels.shape[:2]
    lines = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1).tobytes()
    kind = COLOUR if pixels.ndim == 3 else GREY
    parts = [
        (b"IHDR", struct.pack(">2I5B", width, height, 8, kind, 0, 0, 0)),
        (b"IDAT", zlib.compress(lines)),
        (b"IEND", b""),
    ]
    chunks = (struct.pack(">I", len(of)) + name + of + struct.pack(">I", zlib.crc32(name + of)) for name, of in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
