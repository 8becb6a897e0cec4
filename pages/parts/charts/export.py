"""Charts as files: several as one, with the colours of the light theme."""

from collections.abc import Sequence
from typing import Any, Literal

import altair as alt

from core.drawing import conversion, theme


def together(drawn: Sequence[Any]) -> Any:
    """Several pictures as one for a file, three a row."""
    return drawn[0] if len(drawn) == 1 else alt.concat(*drawn, columns=3).resolve_scale(color="independent")


def exported(chart: alt.TopLevelMixin, kind: Literal["svg", "png"]) -> bytes:
    """The chart as a file, in the light theme's colours; PNG at twice the size."""
    specification = chart.to_dict() | {"background": theme.theme()["light"]["backgroundColor"]}
    specification.setdefault("config", {})["range"] = theme.ranges()["light"]
    if kind == "svg":
        return conversion.svgs_of([specification])[0].encode()
    return conversion.png_of(specification, scale=2)
