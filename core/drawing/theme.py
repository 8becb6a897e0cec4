"""The app's colours for files, notebooks and reports."""

import tomllib
from functools import cache
from typing import Any

from .. import config

PAGE = {"paper": "backgroundColor", "shade": "secondaryBackgroundColor", "ink": "textColor", "link": "linkColor",
        "line": "borderColor"}  # fmt: skip
WORKBENCH = {
    "st-text-color": "textColor",
    "st-background-color": "backgroundColor",
    "st-secondary-background-color": "secondaryBackgroundColor",
    "st-border-color": "borderColor",
    "st-primary-color": "primaryColor",
    "st-chart-sequential-colors": "chartSequentialColors",
    "st-chart-diverging-colors": "chartDivergingColors",
}


@cache
def theme() -> dict[str, Any]:
    """Read the theme of the app from .streamlit/config.toml."""
    file = config.PROJECT / ".streamlit" / "config.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))["theme"]


def of_saved_charts() -> dict[str, Any]:
    """Return the Vega config for exported charts, which use the background and colours of the light theme."""
    return {"background": theme()["light"]["backgroundColor"], "range": ranges()["light"]}


def ranges() -> dict[str, dict[str, Any]]:
    """Return the Vega colour schemes for the light and the dark theme."""
    return {
        mode: {
            "ramp": theme()[mode]["chartSequentialColors"],
            "heatmap": theme()[mode]["chartSequentialColors"],
            "diverging": theme()[mode]["chartDivergingColors"],
            "category": theme()["chartCategoricalColors"],
        }
        for mode in ("light", "dark")
    }


def variables(names: dict[str, str], mode: str) -> str:
    """Return CSS variables for theme colours. `names` maps the names of CSS variables to theme keys."""
    values = [(name, theme()[mode][key]) for name, key in names.items()]
    return ";".join(f"--{name}:{value if isinstance(value, str) else ','.join(value)}" for name, value in values)
