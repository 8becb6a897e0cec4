"""Pictures of a race: intervals against the margin, rows that each head took, the gradient beside exact effects."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from core.attention import Head
from core.studies.ablation.race import left_over
from core.studies.ablation.records import RaceLook, RaceSummary, RaceVerdict
from pages.parts.charts.curves import points
from pages.parts.charts.encoding import Axes, Layers, Shade
from pages.parts.charts.heads import head_picture

NAMED = 40  # heads of which each is named where the page is narrow; of more, as many as have room
VERDICTS = ("matters", "does not matter", "open")


def verdict_counts(race: RaceSummary) -> str:
    """ "2 matter, 130 do not, 12 are open"."""
    return f"{race.matters} {'matters' if race.matters == 1 else 'matter'}, {left_over(race)}"


def intervals(verdicts: Sequence[RaceVerdict], margin: float) -> Layers:
    """Every head's interval, least effect first, with the margin as lines."""
    lines = []
    for verdict in verdicts:
        low, high = verdict.effect_low, verdict.effect_high
        middle = float("nan") if low is None or high is None else (low + high) / 2
        line = {"name": verdict.name, "verdict": verdict.verdict, "rows": verdict.rows}
        lines.append(line | {"low": low, "high": high, "middle": middle})
    drawn = pd.DataFrame(lines).astype(dict.fromkeys(("low", "high"), float)).sort_values("middle")
    name_axis = alt.Axis(labelAngle=-90, labelOverlap=len(drawn) > NAMED)
    x = alt.X("name:N", sort=list(drawn.name), title=None, axis=name_axis)
    colour = alt.Color("verdict:N", sort=list(VERDICTS), scale=alt.Scale(domain=list(VERDICTS)), title=None)
    tips = [alt.Tooltip(name) for name in ("name", "verdict", "rows", "low", "high")]
    base = alt.Chart(drawn).encode(x=x, color=colour, tooltip=tips)
    title = "mean change of the loss"
    bars = base.mark_rule(strokeWidth=3).encode(y=alt.Y("low:Q", title=title), y2="high:Q")
    middles = base.mark_point(filled=True, size=20).encode(y="middle:Q")
    dashed = alt.Chart(pd.DataFrame({"margin": [-margin, margin]})).mark_rule(strokeDash=[4, 3], color="gray")
    dashed = dashed.encode(y="margin:Q")
    return alt.layer(dashed, bars, middles).properties(title="Intervals against the margin", height=260)


def rows_taken(verdicts: Sequence[RaceVerdict]) -> Any:
    """Rows that each head took, layer by head; outlined: those that matter."""
    columns = ["layer", "head", "rows", "verdict", "effect"]
    sure = [verdict for verdict in verdicts if verdict.verdict == "matters"]
    return head_picture(
        pd.DataFrame(verdicts, columns=columns),
        Shade("rows"),
        title="Rows each head took; outlined: matters",
        highlight=[Head(int(verdict.layer or 0), int(verdict.head or 0)) for verdict in sure],
        tooltip=("verdict", "effect"),
    )


def gradient_beside(verdicts: Sequence[RaceVerdict], race: RaceSummary) -> Any:
    """First-order against exact means on the rows of the first look."""
    rho = race.gradient_spearman
    correlation = "undefined" if rho is None else f"{rho:.2f}"
    columns = ["gradient_first", "exact_first", "name", "verdict"]
    drawn = pd.DataFrame(verdicts, columns=columns).astype(dict.fromkeys(columns[:2], float))
    return points(
        drawn,
        Axes(
            x="gradient_first",
            y="exact_first",
            x_title="change of the loss by its gradient",
            y_title="change of the loss, measured",
        ),
        tooltip=("name", "verdict"),
        title=f"The gradient is no answer: first look, Spearman {correlation}, n = {len(verdicts)}",
    )


def looks(race_looks: Sequence[RaceLook]) -> pd.DataFrame:
    """What every look settled."""
    column_titles = {
        "rows": "look after rows",
        "open": "heads open before",
        "settled": "settled",
        "matters": "of them matter",
    }
    return pd.DataFrame(race_looks, columns=list(column_titles)).rename(columns=column_titles)
