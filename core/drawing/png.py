"""Pictures of numbers as PNG, without an imaging library: the pixels are there already."""

import struct
import zlib

import numpy as np
from jaxtyping import Float, UInt8

# ---------------------------------------------------------------- A map as pixels, as the app draws it in lists


INK = np.array([[246, 247, 248], [198, 218, 236], [125, 174, 214], [52, 118, 179], [17, 63, 118], [8, 38, 79]])
SIDE = 160  # pixels of a map
MARGIN = 8  # white pixels at its right


def map_picture(
    weights: Float[np.ndarray, "query key"], *, side: int = SIDE, own_scale: bool = False
) -> UInt8[np.ndarray, "row column rgb"]:
    """A map as pixels, enlarged without smoothing.

    Args:
        weights: of one head, with as many queries as keys. *Range:* 0 to 1.
        own_scale: whether its largest weight is darkest; else 1 is.

    Returns:
        RGB, queries downwards; `side` rows of `side` pixels with MARGIN white ones at their right.
    """
    level = np.clip(weights / max(float(weights.max()), 1e-9) if own_scale else weights, 0, 1)
    stops = np.linspace(0, 1, len(INK))
    pixels = np.stack([np.interp(level, stops, INK[:, k]) for k in range(3)], -1).astype(np.uint8)
    places = np.arange(side) * len(weights) // side
    return np.pad(pixels[places][:, places], ((0, 0), (0, MARGIN), (0, 0)), constant_values=255)


# ----------------------------------------------------------------


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
