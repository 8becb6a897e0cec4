"""PNG images from arrays, without an imaging library."""

import struct
import zlib

import numpy as np
from jaxtyping import Float, UInt8

# ---------------------------------------------------------------- pixels of a map


INK = np.array([[246, 247, 248], [198, 218, 236], [125, 174, 214], [52, 118, 179], [17, 63, 118], [8, 38, 79]])
SIDE = 160  # pixels of a map
MARGIN = 8  # white pixels on its right


def map_picture(
    weights: Float[np.ndarray, "query key"], *, side: int = SIDE, own_scale: bool = False
) -> UInt8[np.ndarray, "row column rgb"]:
    """Draw a map as RGB pixels with a white right margin. The darkest colour is 1, or the maximum (`own_scale`)."""
    level = np.clip(weights / max(float(weights.max()), 1e-9) if own_scale else weights, 0, 1)
    stops = np.linspace(0, 1, len(INK))
    pixels = np.stack([np.interp(level, stops, INK[:, k]) for k in range(3)], -1).astype(np.uint8)
    places = np.arange(side) * len(weights) // side
    return np.pad(pixels[places][:, places], ((0, 0), (0, MARGIN), (0, 0)), constant_values=255)


GREY, COLOUR = 0, 2  # PNG colour types


def png_bytes(pixels: UInt8[np.ndarray, "row column *rgb"]) -> bytes:
    """Encode grey or RGB pixels as an unfiltered PNG with 8 bits per channel."""
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
