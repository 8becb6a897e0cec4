"""Self-contained HTML pages with interactive maps, charts, tables and text, without a server or any request.

The page is a Jinja template that escapes all text; tokens are in the compressed data and only ever drawn or set as
text. The content security policy allows only the scripts of the file, by their hashes, and no requests.
"""

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
MOST_ROWS = 2000  # rows of a table on a page; further ones are only counted


@dataclass(frozen=True)
class Words:
    """Text on an HTML page, with an optional heading, optional paragraphs and an optional command."""

    title: str = ""
    text: str = ""
    command: str = ""


@dataclass(frozen=True)
class Chart:
    """A chart on an HTML page, as a Vega-Lite specification."""

    specification: dict[str, Any]


@dataclass(frozen=True)
class Table:
    """A table on an HTML page, whose rows contain printable values."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]] = field(default_factory=tuple)
    title: str = ""


@dataclass(frozen=True)
class PackedMaps:
    """Attention maps on an HTML page, packed as base64, with a caption."""

    text: str
    caption: str = ""


@dataclass(frozen=True)
class GridTabs:
    """Several grids of attention maps on an HTML page, with buttons to switch between them."""

    grids: Mapping[str, Grid]
    title: str = ""
    caption: str = ""


Part = Words | Chart | Table | Grid | PackedMaps | GridTabs


@dataclass(frozen=True)
class _Placed:
    """A part as the template needs it: kind, number on the page, and packed maps."""

    kind: str
    number: int
    part: Part
    maps: Sequence[str] = ()


def html_page(title: str, parts: Iterable[Part], *, lead: str = "", most: int = MOST_BYTES) -> str:
    """Create a self-contained HTML page of text, charts, tables and maps. Raises InputError if maps are too large."""
    parts = list(parts)
    packed = iter(pack_together([grid for part in parts for grid in _grids_of(part)], most))
    placed = [
        _Placed(
            type(part).__name__,
            number,
            part,
            [part.text] if isinstance(part, PackedMaps) else [next(packed).text for _ in _grids_of(part)],
        )
        for number, part in enumerate(parts)
    ]
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


def _grids_of(part: Part) -> list[Grid]:
    if isinstance(part, GridTabs):
        return list(part.grids.values())
    return [part] if isinstance(part, Grid) else []


@cache
def _template() -> Any:
    return page_template("page.html.j2", TEMPLATES)


def page_template(name: str, folder: Path, filters: Mapping[str, Callable[..., Any]] = MappingProxyType({})) -> Any:
    """Load a Jinja template that escapes all text and refuses undefined names. `filters` are additional filters."""
    environment = Environment(loader=FileSystemLoader([folder, TEMPLATES]), autoescape=True, undefined=StrictUndefined)
    environment.filters |= {"cell": written_cell, **filters}  # before the template is compiled
    return environment.get_template(name)


def scripts_of(*, maps: bool, charts: bool) -> list[str]:
    """Return the scripts that an HTML page with attention maps or charts needs."""
    drawn = [workbench_script() + script("in_file")] if maps else []
    return [*drawn, vega_script() + "\n" + script("charts")] if charts else drawn


@cache
def vega_script() -> str:
    """Return the source code of Vega, Vega-Lite and Vega-Embed, so that pages need no network requests."""
    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").replace("</script", "<\\/script")


def as_script_data(value: Any) -> str:
    """Convert a value to JSON that is safe inside a script element."""
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")


def policy(scripts: Sequence[str], *, charts: bool = False) -> str:
    """Create a content security policy that allows no requests and only the given scripts. With `charts`, it also
    allows eval, which Vega needs."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" for script in scripts
    )
    run = f"{hashes} 'unsafe-eval'" if charts else hashes or "'none'"
    return (
        f"default-src 'none'; script-src {run}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; "
        "form-action 'none'"
    )


def style() -> str:
    """Return the CSS of a self-contained page in the colours of the app, for light and dark themes."""
    light, dark = (
        theme.variables(theme.PAGE, mode) + ";" + theme.variables(theme.WORKBENCH, mode) for mode in ("light", "dark")
    )
    own = (SCRIPTS / "page.css").read_text(encoding="utf-8")
    return f"{colours(light, dark)}\n{own}\n{controls_style()}"


def colours(light: str, dark: str) -> str:
    """Return CSS that uses the dark theme if the reader's system prefers dark colours, otherwise the light theme."""
    return (
        f":root{{color-scheme:light dark;--st-font:system-ui,sans-serif;{light}}}\n"
        f"@media(prefers-color-scheme:dark){{:root{{{dark}}}}}"
    )


def controls_style() -> str:
    """Return the CSS for the buttons of attention maps and for enlarged charts."""
    return (SCRIPTS / "controls.css").read_text(encoding="utf-8")


def written_cell(value: Any) -> str:
    """Format the value of a table cell: decimals with four significant digits, and missing values as a dash."""
    if value is None or (isinstance(value, float) and value != value):
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else re.sub(r"\s+", " ", str(value))


# ---------------------------------------------------------------- a page with the maps of one input


@dataclass(frozen=True)
class MapsSource:
    """The source of some attention maps: the input and the checkpoint.

    Attributes:
        pair: second sentence, or None.
        weights_hash: of the checkpoint; "" if unknown.
        words: whether maps are between words instead of tokens.
        part: stack of an encoder-decoder; "" for other models.
        command: reproduces the maps; "" if no command does, as for a model in memory.
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
        return self.text if self.pair is None else f"{self.text} | {self.pair}"

    def with_command(self, out: str = "maps.html") -> "MapsSource":
        """Return a copy with the terminal command that saves these attention maps to the file `out`."""
        words = ["maps", self.checkpoint, "--text", self.text]
        words += ["--pair", self.pair] if self.pair is not None else []
        words += ["--revision", self.revision] if self.revision else []
        words += ["--part", self.part] if self.part else []
        words += ["--words"] if self.words else []
        return replace(self, command=command_line(*words, "--out", out))


def grid_of(
    panes: Sequence[Pane],
    source: MapsSource,
    *,
    head: str = "none",
    opened: Mapping[str, Any] | None = None,
    note: str = "",
) -> Grid:
    """Combine several stacks of attention maps into a grid for a page."""
    return Grid(panes, source.input[:200], head, dict(opened or {}), note)


def described(panes: Sequence[Pane], source: MapsSource) -> Words:
    """Return a text that describes the checkpoint and the input of the attention maps on a page."""
    first, unit = panes[0], "words" if source.words else "tokens"
    known = f" · weights {source.weights_hash[:16]}" if source.weights_hash else ""
    text = (
        f"{source.checkpoint} · {first.layers} layers of {first.heads} heads · {len(first.tokens)} {unit} · "
        f"{first.sees} · n = 1 input · {date.today():%d %B %Y}{known}\nL1H1 is the first head of the first layer. Rows "
        "are queries and sum to 1; columns are keys. Click a map or use the arrow keys to enlarge it, hover over "
        "it to read weights, and choose Lines to see attention between words."
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
    """Create a self-contained HTML page of attention maps. If the weights do not fit, the page says what is omitted."""
    grid = grid_of(panes, source, head=head, opened=opened, note=note)
    return html_page(f"Attention maps: {source.input[:120]}", [grid, described(panes, source)], most=most)
