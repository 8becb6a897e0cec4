"""The maps of one input as a page in one file: with what they are of, and the command that makes them again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from ..config import command_line
from .packing import MOST_BYTES, Grid
from .page import Words, html_page
from .panes import Pane


@dataclass(frozen=True)
class MapsSource:
    """What maps are of.

    Attributes:
        pair: the second of a pair, or None.
        weights_hash: of the checkpoint, "" where it is not known.
        words: whether maps are between words, not pieces.
        part: the set of heads of an encoder-decoder, "" of others.
        revision: of the checkpoint on the hub, or None.
        command: what gives the maps again; "" where no command does, as for a model that only a program holds.
    """

    checkpoint: str
    text: str
    pair: str | None = None
    weights_hash: str = ""
    words: bool = False
    part: str = ""
    revision: str | None = None
    command: str = ""

    @property
    def input(self) -> str:
        """The sentence or pair in one line."""
        return self.text if self.pair is None else f"{self.text} | {self.pair}"

    def with_command(self, out: str = "maps.html") -> "MapsSource":
        """This source with the command of the terminal that writes its maps to `out`."""
        words = ["maps", self.checkpoint, "--text", self.text]
        words += ["--pair", self.pair] if self.pair is not None else []
        words += ["--revision", self.revision] if self.revision else []
        words += ["--part", self.part] if self.part else []
        words += ["--words"] if self.words else []
        return MapsSource(**{**self.__dict__, "command": command_line(*words, "--out", out)})


def grid_of(
    panes: Sequence[Pane],
    source: MapsSource,
    *,
    head: str = "none",
    opened: Mapping[str, Any] | None = None,
    note: str = "",
) -> Grid:
    """The maps as a part of any page; head, opened and note as `header_of` takes them."""
    return Grid(panes, source.input[:200], head, dict(opened or {}), note)


def described(panes: Sequence[Pane], source: MapsSource) -> Words:
    """Where the maps come from, in words."""
    first, unit = panes[0], "words" if source.words else "pieces"
    sees = first.sees
    known = f" · weights {source.weights_hash[:16]}" if source.weights_hash else ""
    text = (
        f"{source.checkpoint} · {first.layers} layers of {first.heads} heads · {len(first.tokens)} {unit} · {sees} · "
        f"n = 1 input · {date.today():%d %B %Y}{known}\n"
        "L1H1 is the first head of the first layer. Rows are queries and sum to 1, columns are keys. Click a map or "
        "use the arrow keys to enlarge it, point at it to read a weight, and choose Lines to see it between words."
    )
    return Words(text=text, command=source.command)


def maps_page(
    panes: Sequence[Pane],
    source: MapsSource,
    *,
    head: str = "none",
    opened: Mapping[str, Any] | None = None,
    note: str = "",
    most: int = MOST_BYTES,
) -> str:
    """A whole page of maps as text.

    Args:
        head: as of `header_of`.
        opened: as of `header_of`.
        note: as of `header_of`.
        most: bytes of the maps; what does not fit is left out, and the page says what.

    Raises:
        InputError: where nothing fits.
    """
    grid = grid_of(panes, source, head=head, opened=opened, note=note)
    return html_page(f"Attention maps: {source.input[:120]}", [grid, described(panes, source)], most=most)
