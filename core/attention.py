"""Basic types: heads, axes, and checked attention maps.

Rows are queries and sum to 1; a vertical stripe is a key column. Layers, heads and tokens are zero-based here and in
the database; only text for people ("L1 H2") is one-based, as in papers.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from .errors import InputError

AXES = ("layer", "head", "query", "key")
ROW_SUM_TOLERANCE = 1e-3  # float16 maps of 512 keys stay within it; dropout and padding do not

PARTS = {"encoder": "Enc", "decoder": "Dec", "cross": "Cross"}  # the stacks of heads of an encoder-decoder
SINK = "sink"  # text of the key column of an attention sink

_NAME = re.compile(r"^\s*(?:(Enc|Dec|Cross)\s*)?L\s*(\d{1,9})\s*[-. ]?\s*H\s*(\d{1,9})\s*$", re.IGNORECASE)


class Head(tuple[int, int]):
    """An attention head, identified by its zero-based layer and head indices. `str(Head(6, 5))` is "L7H6".

    Arrays [layer, head, ...] can be indexed with it. `part` names the stack of an encoder-decoder (see PARTS) and is ""
    for other models. Heads of different stacks are never equal.
    """

    part: str

    def __new__(cls, layer: int, head: int, part: str = "") -> "Head":
        made = super().__new__(cls, (layer, head))
        made.part = part
        return made

    @classmethod
    def _make(cls, items: Iterable[int]) -> "Head":
        layer, head = items
        return cls(layer, head)

    @property
    def layer(self) -> int:
        return self[0]

    @property
    def head(self) -> int:
        return self[1]

    def __eq__(self, other: object) -> bool:
        return tuple(self) == other if not isinstance(other, Head) else self._key == other._key

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: Any) -> bool:
        return tuple(self) < other if not isinstance(other, Head) else self._key < other._key

    def __gt__(self, other: Any) -> bool:
        return tuple(self) > other if not isinstance(other, Head) else self._key > other._key

    def __hash__(self) -> int:
        return hash(self._key if self.part else tuple(self))

    def __getnewargs__(self) -> tuple[int, int, str]:
        return (*self, self.part)

    def __repr__(self) -> str:
        return f"Head(layer={self.layer}, head={self.head}{f', part={self.part!r}' if self.part else ''})"

    @property
    def _key(self) -> tuple[str, int, int]:
        return (self.part, *self)

    def __str__(self) -> str:
        name = f"L{self.layer + 1}H{self.head + 1}"
        return f"{PARTS[self.part]} {name}" if self.part else name

    @classmethod
    def parse(cls, name: str) -> "Head":
        """Parse the name of a head, such as "L7H6" or "Enc L7H6" (one-based, any case, spaces allowed)."""
        match = _NAME.match(name)
        if not match or "0" in (match[2].lstrip("0") or "0", match[3].lstrip("0") or "0"):
            raise InputError(
                f'A head must be named by its layer and number, counted from 1, such as L7H6; got "{name}". '
                "Correct the name."
            )
        parts = {short.lower(): part for part, short in PARTS.items()}
        return cls(int(match[2]) - 1, int(match[3]) - 1, parts[match[1].lower()] if match[1] else "")

    def within(self, layers: int, heads: int) -> "Head":
        """Return this head. Raises InputError unless a model with these numbers of layers and heads per layer has
        it."""
        if not (0 <= self.layer < layers and 0 <= self.head < heads):
            raise InputError(
                f"A head of this checkpoint must be from {Head(0, 0, self.part)} to "
                f"{Head(layers - 1, heads - 1, self.part)}; got {self}. Choose another head."
            )
        return self


def attends(head: Head, attending: Sequence[int]) -> Head:
    """Check that the layer of this head has attention, and return the head. Raises InputError otherwise. If `attending`
    is empty, all layers have attention."""
    if attending and head.layer not in attending:
        numbers = ", ".join(str(layer + 1) for layer in attending)
        raise InputError(
            f"A head must be in a layer with attention; {head} is in layer {head.layer + 1}, which has no attention in "
            f"this checkpoint. Choose a head of layer {numbers}."
        )
    return head


def all_heads(layers: int, heads: int, attending: Sequence[int] = (), *, part: str = "") -> list[Head]:
    """Return all heads of one stack, layer by layer. If `attending` is not empty, only these layers are included."""
    return [Head(layer, head, part) for layer in attending or range(layers) for head in range(heads)]


def parse_heads(names: str) -> list[Head]:
    """Parse comma-separated names of heads, such as "L1H2,L7H6". An empty text gives an empty list."""
    return [Head.parse(name) for name in names.split(",") if name.strip()]


def visible_keys(
    queries: Int[np.ndarray, " query"], keys: int, *, causal: bool, window: int | None
) -> Bool[np.ndarray, "query key"]:
    """Return a mask of the keys that each query can attend to. `keys` is the number of keys without attention sinks."""
    away = queries[:, None] - np.arange(keys)
    seen = away >= 0 if causal else np.ones_like(away, dtype=bool)
    if window is None:
        return seen
    return seen & ((away < window) if causal else (np.abs(away) <= window // 2))


@dataclass(frozen=True)
class AttentionMaps:
    """The attention maps of one input. The input has no padding, and the maps are checked on construction.

    Attributes:
        weights: float32; each row sums to 1. *Shape:* (layer, head, query, key).
        tokens: text of each query.
        segments: sentence of each query, 0 or 1; 2 for XLNet's [CLS].
        causal: whether queries cannot see later keys.
        key_tokens: text of each key, if the keys differ from the queries (cross attention) or include a sink.
        part: stack of the heads, as in `Head`.
        windows: for each layer, the largest number of keys that a query sees (None: all); empty without windows.
        attending: layers with attention, in a hybrid model whose other layers are NaN; empty: all layers.
    """

    weights: np.ndarray  # shape checked below
    tokens: tuple[str, ...]
    segments: tuple[int, ...]
    causal: bool = False
    key_tokens: tuple[str, ...] | None = None
    part: str = ""
    windows: tuple[int | None, ...] = ()
    attending: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        shape = self.weights.shape
        if len(shape) != 4 or (self.key_tokens is None and shape[2] != shape[3]):
            raise InputError(
                f"Attention maps must have the axes {AXES}{' with as many queries as keys' * (self.key_tokens is None)}"
                f"; got the shape {shape}. Pass the maps of a single input."
            )
        if not len(self.tokens) == len(self.segments) == shape[2] or len(self.keys) != shape[3]:
            raise InputError(
                f"Maps with {shape[2]} queries and {shape[3]} keys need {shape[2]} tokens, {shape[2]} "
                f"segments and {shape[3]} key tokens; got {len(self.tokens)}, {len(self.segments)} and "
                f"{len(self.keys)}. Give one token and segment per query, and one key token per key."
            )
        sums = self.seen.sum(-1, dtype=np.float64)
        off = np.abs(sums - 1)
        if not off.max(initial=0) <= ROW_SUM_TOLERANCE:
            layer, head, query = np.unravel_index(np.nanargmax(np.where(np.isnan(off), np.inf, off)), off.shape)
            own = self.attending[layer] if self.attending else int(layer)
            raise InputError(
                f"Every row of an attention map must sum to 1; the row of query {query + 1} in "
                f"{Head(own, int(head), self.part)} sums to {sums[layer, head, query]:.3f}. Turn off "
                "dropout, and remove padding tokens."
            )

    @property
    def seen(self) -> Float[np.ndarray, "layer head query key"]:
        """Return the attention weights of all layers that have attention, in layer order."""
        return self.weights[list(self.attending)] if self.attending else self.weights

    @property
    def layers(self) -> int:
        return self.weights.shape[0]

    @property
    def heads(self) -> int:
        return self.weights.shape[1]

    @property
    def keys(self) -> tuple[str, ...]:
        return self.tokens if self.key_tokens is None else self.key_tokens

    @property
    def sink(self) -> bool:
        """Return whether the last key column belongs to an attention sink instead of a token."""
        return self.key_tokens is not None and self.key_tokens == (*self.tokens, SINK)

    @property
    def sees(self) -> str:
        return sight_sentence(self.part, self.keys, self.windows, causal=self.causal, sink=self.sink)

    def visible(self, layer: int) -> Bool[np.ndarray, "query key"]:
        """Return a mask of the keys that each query can attend to in a layer.

        Causal queries see their own and earlier positions. With a window, they see the keys within the window (for
        encoders, half of the window on each side). A sink is always visible.
        """
        queries, keys = self.weights.shape[2:]
        window = self.windows[layer] if self.windows else None
        seen = visible_keys(np.arange(queries), keys - self.sink, causal=self.causal, window=window)
        return np.pad(seen, ((0, 0), (0, int(self.sink))), constant_values=True)

    def __len__(self) -> int:
        return self.weights.shape[2]

    def of(self, head: Head) -> Float[np.ndarray, "query key"]:
        """Return the attention map of one head as a view of the weights. Raises InputError if there is no such head."""
        return self.weights[attends(head.within(self.layers, self.heads), self.attending)]


def sight_sentence(
    part: str, keys: Sequence[str], windows: Sequence[int | None], *, causal: bool, sink: bool = False
) -> str:
    """Return a sentence that states which keys a query can attend to."""
    if part == "cross":
        return f"cross-attention, a query of the target sees all {len(keys)} tokens of the source"
    said = "decoder, a query sees only keys up to itself" if causal else "encoder, a query sees every key"
    local = [str(layer + 1) for layer, window in enumerate(windows) if window is not None]
    if local:
        widest = next(window for window in windows if window is not None)
        which = "in all layers" if len(local) == len(windows) else f"in layers {', '.join(local)}"
        said += f", {which} at most {widest}: there “uniform” is over those"
    return said + (", and a sink takes a part of every row" if sink else "")
