"""Streamlit components that share one drawing code (core/drawing)."""

from pathlib import Path
from typing import Any

import streamlit as st

from core.drawing.payload import script, workbench_script, workbench_style

HERE = Path(__file__).resolve().parent


def drawing_component(name: str, folder: Path, *parts: str) -> Any:
    """Register the component of <name>.js and <name>.css in `folder`, after the shared code and the scripts in
    `parts`."""
    scripts = "".join((folder / f"{part}.js").read_text(encoding="utf-8") for part in (*parts, name))
    return _component(name, script("map_drawing") + scripts, (folder / f"{name}.css").read_text(encoding="utf-8"))


def workbench_component() -> Any:
    """Register the map workbench: in_streamlit.js after the drawing code."""
    return _component(
        "maps_grid", workbench_script() + (HERE / "in_streamlit.js").read_text(encoding="utf-8"), workbench_style()
    )


def _component(name: str, source: str, style: str) -> Any:
    return st.components.v2.component(f"atlas_{name}", js=source, css=style, html='<div class="root"></div>\n')
