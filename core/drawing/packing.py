"""Packing of maps for a self-contained page: 16 bits per weight if they fit, otherwise 8, otherwise block maxima."""

import base64
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import UInt16

from ..errors import InputError
from .panes import Pane, header_of

MOST_BYTES = 2_000_000  # limit for the maps of one page, as text
LEAST_BYTES = 20_000  # least size of one of several grids, for tokens and scores
MIDDLE = 32767  # zero difference in a signed pane
HOPELESS = 12  # compression has never made maps this many times smaller
SAMPLED, ROUGH = 12, 1.5  # maps sampled to estimate the size of a stack, and the tolerance of the estimate


@dataclass(frozen=True)
class Grid:
    """A grid of attention maps for a page, before it is packed."""

    panes: Sequence[Pane]
    caption: str = ""
    head: str = "none"
    opened: dict[str, object] | None = None
    note: str = ""


@dataclass(frozen=True)
class Packed:
    """A grid of attention maps that is packed as base64, with a sentence that states what was omitted."""

    text: str
    left_out: str


def pack(grid: Grid, most: int = MOST_BYTES) -> Packed:
    """Pack a grid of maps into at most `most` bytes, as precisely as possible. Raises InputError if they do not fit."""
    for bits, block in _ways(grid.panes, most):
        # Estimate the packed size in bytes from a sample of each stack
        guess = 0.0
        for pane in grid.panes:
            numbers = _numbers(pane)
            some = numbers[:: max(1, len(numbers) // SAMPLED)]
            if bits == 16:
                data = _high_and_low(some.ravel())
            else:
                data = _eight(_greatest(some, block, pane.signed).ravel(), pane.signed)
            guess += len(zlib.compress(data, 1)) * len(numbers) / len(some) * 4 / 3
        if guess > ROUGH * most:
            continue
        left_out = _said(grid.panes, bits, block, most)
        panes = [_in_blocks(pane, block) for pane in grid.panes]
        note = " ".join(part for part in (grid.note, left_out) if part)
        header = header_of(panes, caption=grid.caption, head=grid.head, opened=grid.opened, note=note) | {"bits": bits}
        for kept, whole in zip(header["panes"], grid.panes, strict=True):
            kept["tokensAll"] = len(whole.tokens)
        text = json.dumps(header, separators=(",", ":")).encode()
        flat = [_numbers(pane).ravel() for pane in panes]
        if bits == 16:
            body = _high_and_low(np.concatenate(flat))
        else:
            body = b"".join(_eight(kept, pane.signed) for kept, pane in zip(flat, panes, strict=True))
        made = base64.b64encode(zlib.compress(len(text).to_bytes(4, "little") + text + body, 9)).decode()
        if len(made) <= most:
            return Packed(made, left_out)
    raise InputError(
        f"The size limit must leave room for tokens and scores; {most / 1e6:g} MB is too small for these "
        "maps. Raise the limit, show fewer heads, or shorten the text."
    )


def pack_together(grids: Sequence[Grid], most: int = MOST_BYTES) -> list[Packed]:
    """Pack several grids of attention maps into at most `most` bytes. Raises InputError if they do not fit."""
    least = min(LEAST_BYTES, most // max(1, len(grids)))
    sizes = [sum(len(pane.weights) for pane in grid.panes) for grid in grids]
    room = most - least * len(grids)
    return [pack(grid, least + room * size // max(1, sum(sizes))) for grid, size in zip(grids, sizes, strict=True)]


def _ways(panes: Sequence[Pane], most: int) -> Iterator[tuple[int, int]]:
    """Yield (bits per weight, tokens per block) from high to low precision, without those that cannot fit."""
    count = sum(len(pane.weights) // 2 for pane in panes)
    longest = max(len(pane.tokens) for pane in panes)
    for bits, block in [(16, 1), *((8, block) for block in range(1, longest + 1))]:
        if count * bits / 8 / block**2 <= HOPELESS * most:
            yield bits, block


def _said(panes: Sequence[Pane], bits: int, block: int, most: int) -> str:
    if block > 1:
        heads, length = max((pane.layers * pane.heads, len(pane.tokens)) for pane in panes)
        return (
            f"{heads} heads of {length} tokens do not fit into {most / 1e6:g} MB: each row and column represents "
            f"{block} tokens and shows their largest weight. The other weights are not in this file."
        )
    if bits == 8:
        return f"To stay below {most / 1e6:g} MB, weights in this file are rounded to steps of 1/255."
    return ""


def _numbers(pane: Pane) -> UInt16[np.ndarray, "head query key"]:
    return np.frombuffer(pane.weights, "<u2").reshape(-1, len(pane.tokens), len(pane.keys))


def _high_and_low(numbers: UInt16[np.ndarray, " number"]) -> bytes:
    """Return all high bytes, then all low bytes, which compresses better."""
    return (numbers >> 8).astype(np.uint8).tobytes() + (numbers & 255).astype(np.uint8).tobytes()


def _eight(numbers: UInt16[np.ndarray, " number"], signed: bool) -> bytes:
    """Round 16 bits to 8: 255 is a weight of 1; in a difference 127 is zero and 254 is 1."""
    top, steps = (2 * MIDDLE, 254) if signed else (65535, 255)
    return np.rint(numbers.astype(np.float32) * (steps / top)).astype(np.uint8).tobytes()


def _in_blocks(pane: Pane, block: int) -> Pane:
    """Return the pane with a row and column for each `block` tokens: the largest weight (or absolute difference)."""
    if block == 1:
        return pane
    kept = _greatest(_numbers(pane), block, pane.signed)
    keys = None if pane.key_tokens is None else _names(pane.key_tokens, block)
    return replace(
        pane, tokens=_names(pane.tokens, block), key_tokens=keys, weights=kept.astype("<u2").tobytes(), block=block
    )


def _names(tokens: tuple[str, ...], block: int) -> tuple[str, ...]:
    parts = [tokens[k : k + block] for k in range(0, len(tokens), block)]
    return tuple(part[0] if len(part) == 1 else f"{part[0]} … {part[-1]}" for part in parts)


def _greatest(
    numbers: UInt16[np.ndarray, "head query key"], block: int, signed: bool
) -> UInt16[np.ndarray, "head queries keys"]:
    over = [(0, -size % block) for size in numbers.shape[1:]]
    whole = np.pad(numbers, ((0, 0), *over), constant_values=MIDDLE if signed else 0)
    rows, columns = (size // block for size in whole.shape[1:])
    tiles = whole.reshape(len(whole), rows, block, columns, block)
    kept = tiles.max((2, 4))
    if not signed:
        return kept
    least = tiles.min((2, 4))
    return np.where(MIDDLE - least.astype(np.int32) > kept.astype(np.int32) - MIDDLE, least, kept)
