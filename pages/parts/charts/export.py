"""Charts as files, in the colours of the light theme."""

from collections.abc import Sequence
from typing import Any, Literal

import altair as alt

from core.drawing import conversion, theme


def together(drawn: Sequence[Any]) -> Any:
    """Combine several charts into one for a file, three per row."""
    return drawn[0] if len(drawn) == 1 else alt.concat(*drawn, columns=3).resolve_scale(color="independent")


def exported(chart: alt.TopLevelMixin, kind: Literal["svg", "png"]) -> bytes:
    """Return the chart as a file in the colours of the light theme; PNG at twice the size."""
    specification = chart.to_dict() | {"background": theme.theme()["light"]["backgroundColor"]}
    specification.setdefault("config", {})["range"] = theme.ranges()["light"]
    if kind == "svg":
        return conversion.svgs_of([specification])[0].encode()
    return conversion.png_of(specification, scale=2)
