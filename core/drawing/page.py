"""A page in one file: maps to explore, charts, tables and words, with no server and no request to anywhere.

The page is a Jinja template, which escapes every text; tokens lie in the compressed payload and are only ever drawn or
set as text. Its content security policy lets the browser run the scripts of this file, known by their hashes, and
fetch nothing at all.
"""

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import vl_convert
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ..config import command_line
from . import theme
from .packing import MOST_BYTES, Grid, pack_together
from .panes import Pane
from .payload import SCRIPTS, script, workbench_script, workbench_style

TEMPLATES = Path(__file__).with_name("templates")
MOST_ROWS = 2000  # of a table on a page; more are counted


@dataclass(frozen=True)
class Words:
    """A heading, paragraphs, and what to type, each where it is not empty."""

    title: str = ""
    text: str = ""
    command: str = ""


@dataclass(frozen=True)
class Chart:
    """A picture by Vega-Lite, as Altair's `to_dict` gives it."""

    specification: dict[str, Any]


@dataclass(frozen=True)
class Table:
    """Rows of values that can be written as text."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]] = field(default_factory=tuple)
    title: str = ""


@dataclass(frozen=True)
class PackedMaps:
    """Maps that `pack` made small before, as their text in base64, with a caption under them."""

    text: str
    caption: str = ""


@dataclass(frozen=True)
class GridTabs:
    """Maps in one workbench, one grid at a time, by what their buttons say; the first one is open."""

    grids: Mapping[str, Grid]
    title: str = ""
    caption: str = ""


Part = Words | Chart | Table | Grid | PackedMaps | GridTabs


@dataclass(frozen=True)
class _Placed:
    """A part as the template has it: its kind, its number on the page, and its maps as text."""

    kind: str
    number: int
    part: Part
    maps: Sequence[str] = ()


def html_page(title: str, parts: Iterable[Part], *, lead: str = "", most: int = MOST_BYTES) -> str:
    """A whole page in one file, as text.

    Args:
        parts: what it shows, in order.
        lead: a paragraph under the title, or "".
        most: bytes that all maps of the page may take together.

    Returns:
        HTML that needs no other file and makes no request.

    Raises:
        InputError: where the maps cannot be made so small.
    """
    placed = _placed(list(parts), most)
    grids = any(placed_part.maps for placed_part in placed)
    charts = {
        placed_part.number: placed_part.part.specification
        for placed_part in placed
        if isinstance(placed_part.part, Chart)
    }
    scripts = scripts_of(maps=grids, charts=bool(charts))
    return _template().render(
        title=title,
        lead=lead,
        parts=placed,
        most_rows=MOST_ROWS,
        style=style(),
        policy=policy(scripts, charts=bool(charts)),
        figures=as_script_data({"specs": charts, "ranges": theme.ranges()}) if charts else "",
        workbench=workbench_style() if grids else "",
        scripts=scripts,
    )


def _placed(parts: Sequence[Part], most: int) -> list[_Placed]:
    packed = iter(pack_together([grid for part in parts for grid in _grids_of(part)], most))
    return [
        _Placed(
            type(part).__name__,
            number,
            part,
            [part.text] if isinstance(part, PackedMaps) else [next(packed).text for _ in _grids_of(part)],
        )
        for number, part in enumerate(parts)
    ]


def _grids_of(part: Part) -> list[Grid]:
    if isinstance(part, GridTabs):
        return list(part.grids.values())
    return [part] if isinstance(part, Grid) else []


@cache
def _template() -> Any:
    return page_template("page.html.j2", TEMPLATES)


def page_template(name: str, folder: Path, filters: Mapping[str, Callable[..., Any]] = MappingProxyType({})) -> Any:
    """A template that escapes every text and knows no undefined name. filters: beyond Jinja's, by name."""
    environment = Environment(loader=FileSystemLoader([folder, TEMPLATES]), autoescape=True, undefined=StrictUndefined)
    environment.filters |= {"cell": written_cell, **filters}  # before the template is compiled
    return environment.get_template(name)


def scripts_of(*, maps: bool, charts: bool) -> list[str]:
    """The scripts that draw what a page in one file has."""
    drawn = [workbench_script() + script("in_file")] if maps else []
    return [*drawn, vega_script() + "\n" + script("charts")] if charts else drawn


@cache
def vega_script() -> str:
    """Vega, Vega-Lite and Vega-Embed as vl-convert holds them, so that no page asks for them."""
    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").replace("</script", "<\\/script")


def as_script_data(value: Any) -> str:
    """JSON that may stand inside a script element: no text in it can end the element."""
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")


def policy(scripts: Sequence[str], *, charts: bool = False) -> str:
    """The content security policy of a page in one file: these scripts, no request, no frame, no form.

    charts: Vega compiles its expressions and writes its own style element, so both are let through.
    """
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" for script in scripts
    )
    run = f"{hashes} 'unsafe-eval'" if charts else hashes or "'none'"
    return (
        f"default-src 'none'; script-src {run}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; "
        "form-action 'none'"
    )


def style() -> str:
    """The page's CSS in the app's colours, light and dark."""
    light, dark = (
        theme.variables(theme.PAGE, mode) + ";" + theme.variables(theme.WORKBENCH, mode) for mode in ("light", "dark")
    )
    own = (SCRIPTS / "page.css").read_text(encoding="utf-8")
    return f"{colours(light, dark)}\n{own}\n{controls_style()}"


def colours(light: str, dark: str) -> str:
    """The declarations of the two themes as CSS: the dark one where the reader's system asks for it."""
    return (
        f":root{{color-scheme:light dark;--st-font:system-ui,sans-serif;{light}}}\n"
        f"@media(prefers-color-scheme:dark){{:root{{{dark}}}}}"
    )


def controls_style() -> str:
    """The CSS of what every page in one file has: the buttons of maps, and enlarged charts."""
    return (SCRIPTS / "controls.css").read_text(encoding="utf-8")


def written_cell(value: Any) -> str:
    """A value as a table shows it: four digits of a number, a dash for none."""
    if value is None or (isinstance(value, float) and value != value):
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else re.sub(r"\s+", " ", str(value))


# ---------------------------------------------------------------- the maps of one input as a page in one file


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
