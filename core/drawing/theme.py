"""The app's colours for whatever is drawn outside it: files, notebooks, reports."""

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
    """The app's theme, as .streamlit/config.toml holds it."""
    file = config.PROJECT / ".streamlit" / "config.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))["theme"]


def of_saved_charts() -> dict[str, Any]:
    """Vega's config of pictures in files: the light theme's ground and ranges."""
    return {"background": theme()["light"]["backgroundColor"], "range": ranges()["light"]}


def ranges() -> dict[str, dict[str, Any]]:
    """Vega's ranges of colours in the light and in the dark theme."""
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
    """CSS declarations of the theme's colours.

    Args:
        names: the theme's key by the variable's name, without its dashes.
    """
    return ";".join(f"--{name}:{_css(theme()[mode][key])}" for name, key in names.items())


def _css(value: str | list[str]) -> str:
    return value if isinstance(value, str) else ",".join(value)
