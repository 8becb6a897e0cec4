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
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import vl_convert
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from . import theme
from .packing import MOST_BYTES, Grid, pack_together
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
