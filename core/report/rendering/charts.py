"""The report's pictures: ours with intervals beside the printed numbers, in Altair; colours by the theme's ranges.

A chart is made from an exhibit's records alone, so the page and the HTML draw the same.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import altair as alt
import pandas as pd

from core.attention import Head
from core.report.exhibits import Exhibit
from core.report.ids import ExhibitId
from core.report.records import HeadRecord, Records, ValueRecord
from core.report.rendering.words import short, task_name

WIDE, NARROW, TALL = 300, 210, 190  # pixels of one panel
CELL = 15  # pixels of a head in a small picture
PRINTED = "printed: "


def chart_of(item: Exhibit, records: Records) -> alt.TopLevelMixin | None:
    """The exhibit's picture, or None where there is nothing to draw. records: about this exhibit."""
    if item.chart == "heads":
        return _heads(records.heads)
    frame = _frame(records.values)
    if frame.empty or frame["ours"].sum() == 0:
        return None
    return {"stacked": _stacked, "layers": _layers, "lengths": _lengths, "dots": _dots}[item.chart](item, frame)


def series_of(value: ValueRecord, *, printed: bool) -> str:
    """ "atlas-encoder, fine-tuned", or "printed: Kovaleva et al. 2019, fine-tuned"."""
    who = f"{PRINTED}{value.source}" if printed else short(value.checkpoint)
    return ", ".join(part for part in (who, value.condition) if part)


def _frame(values: Sequence[ValueRecord]) -> pd.DataFrame:
    """One row a measured and one a printed number (a printed one that stands beside several of ours, once)."""
    rows: list[dict[str, Any]] = []
    for one in values:
        about = {"item": one.item, "position": one.position, "condition": one.condition, "checkpoint": one.checkpoint}
        about |= {"task": task_name(one.task), "note": one.note or "", "n": one.n}
        if one.value is not None:
            ends = {"value": one.value, "low": one.low, "high": one.high}
            rows.append(about | ends | {"series": series_of(one, printed=False), "ours": True})
        if one.published is not None:
            number, error = one.published, one.reading_error or 0.0
            ends = {"value": number, "low": number - error, "high": number + error}
            rows.append(about | ends | {"series": series_of(one, printed=True), "ours": False, "note": one.why})
    frame = pd.DataFrame(rows)
    keys = ["series", "task", "item", "condition", "ours", "value"]
    return frame.drop_duplicates(keys) if len(frame) else pd.DataFrame({"ours": []})


# ---------------------------------------------------------------- kinds


def _stacked(item: Exhibit, frame: pd.DataFrame) -> alt.TopLevelMixin:
    drawn = frame.assign(percent=100 * frame["value"])
    order = list(dict.fromkeys(drawn["item"]))
    return (
        alt.Chart(drawn)
        .mark_bar()
        .encode(
            x=alt.X("task:N", title=None, sort=None, axis=alt.Axis(labelAngle=-40)),
            y=alt.Y("percent:Q", title="% of maps", stack="zero", scale=alt.Scale(domain=[0, 100])),
            color=alt.Color("item:N", title="class", sort=order, scale=alt.Scale(range="category", domain=order)),
            tooltip=["series", "task", "item", alt.Tooltip("percent:Q", format=".1f"), "n"],
            facet=_facet("series", columns=3),
        )
        .properties(width=NARROW, height=TALL)
    )


def _layers(item: Exhibit, frame: pd.DataFrame) -> alt.TopLevelMixin:
    drawn = frame[frame["position"].notna()]
    special = {"separator": "[SEP]", "start": "[CLS]", "noun": "nouns"}
    group = drawn["item"].str.partition(",")[0].map(special).fillna("")
    drawn = drawn.assign(panel=(drawn["task"] + " " + group).str.strip(), position=100 * drawn["position"])
    return _lines(
        drawn, "depth in the model, %", {"change": "cosine", "features": "weight"}.get(item.id, "change of the score")
    )


def _lengths(item: Exhibit, frame: pd.DataFrame) -> alt.TopLevelMixin:
    drawn = frame[frame["position"].notna()]
    return _lines(drawn.assign(panel=drawn["task"]), "pieces of the input, up to", "r of raw and effective")


def _lines(frame: pd.DataFrame, x_title: str, y_title: str) -> alt.TopLevelMixin:
    base = alt.Chart(frame).encode(
        x=alt.X("position:Q", title=x_title),
        color=alt.Color("series:N", title=None, sort=None, scale=alt.Scale(range="category"), legend=_legend()),
    )
    tips = ["series", "item", alt.Tooltip("value:Q", format=".3f"), alt.Tooltip("low:Q", format=".3f"),
            alt.Tooltip("high:Q", format=".3f"), "n"]  # fmt: skip
    y = alt.Y("value:Q", title=y_title, scale=alt.Scale(zero=False))
    band = base.mark_area(opacity=0.15).encode(y=alt.Y("low:Q", title=y_title), y2="high:Q")
    line = base.mark_line(point=True).encode(
        y=y, strokeDash=alt.StrokeDash("ours:N", scale=_dashes(), legend=None), tooltip=tips
    )
    return alt.layer(band, line).properties(width=WIDE, height=TALL).facet(facet=_facet("panel"), columns=3)


def _dots(item: Exhibit, frame: pd.DataFrame) -> alt.TopLevelMixin:
    drawn, panels = _arranged(item, frame)
    drawn = drawn[drawn["panel"].isin(drawn.loc[drawn["ours"], "panel"])]
    base = alt.Chart(drawn).encode(
        y=alt.Y("line:N", title=None, sort=None, axis=alt.Axis(labelLimit=260)),
        yOffset=alt.YOffset("series:N", sort=None),
        color=alt.Color("series:N", title=None, sort=None, scale=alt.Scale(range="category"), legend=_legend()),
    )
    tips = ["series", "line", alt.Tooltip("value:Q", format=".4~g"), alt.Tooltip("low:Q", format=".4~g"),
            alt.Tooltip("high:Q", format=".4~g"), "n", "note"]  # fmt: skip
    x = alt.X("value:Q", title=None, scale=alt.Scale(zero=False))
    rule = base.mark_rule(strokeWidth=1.5).encode(x=alt.X("low:Q", title=None), x2="high:Q")
    shape = alt.Shape("ours:N", scale=alt.Scale(domain=[True, False], range=["circle", "diamond"]), legend=None)
    dot = base.mark_point(filled=True, size=55, opacity=1).encode(x=x, shape=shape, tooltip=tips)
    drawn_panels = alt.layer(rule, dot).properties(width=WIDE).facet(facet=_facet("panel"), columns=panels)
    return drawn_panels.resolve_scale(x="independent", y="independent")


def _arranged(item: Exhibit, frame: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """The frame with its panels and lines, and how many panels stand side by side."""
    if item.id == ExhibitId.TABLE_1:
        drawn = frame.assign(panel=frame["task"] + ", " + frame["item"], line=frame["condition"])
        return drawn.assign(series=[one.rpartition(", ")[0] for one in drawn["series"]]), 3
    if item.id == ExhibitId.DEPENDENCIES:
        label, _, what = (frame["item"].str.rpartition(", ")[k] for k in (0, 1, 2))
        return frame.assign(panel=what, line=label), 3
    if item.id == ExhibitId.STATISTICS:
        return frame.assign(panel=frame["item"], line=frame["note"].where(frame["ours"], "printed")), 2
    if item.id in (ExhibitId.PRUNE, ExhibitId.IMPORTANCE):
        return frame.assign(panel="" if item.id == ExhibitId.PRUNE else frame["item"], line=frame["task"]), 2
    if item.id == ExhibitId.SINK:
        return frame[~frame["item"].str.startswith("L")].assign(panel="", line=lambda one: one["item"]), 1
    return frame.assign(panel=frame["task"], line=frame["item"]), 2


def _heads(heads: Sequence[HeadRecord]) -> alt.TopLevelMixin | None:
    """A small picture a checkpoint and task, three beside each other; each exhibit on one scale."""
    if not heads:
        return None
    frame = pd.DataFrame([asdict(one) for one in heads])
    frame["name"] = [str(Head(int(a), int(b))) for a, b in zip(frame["layer"], frame["head"], strict=True)]
    frame = frame.assign(
        layer=frame["layer"] + 1, head=frame["head"] + 1, label=frame["label"].str.partition(" of ")[0]
    )
    diverging, label = bool((frame["value"] < 0).any()), str(frame["label"].iloc[0])
    most = float(frame["value"].abs().max()) or 1.0
    ends = [-most, most] if diverging else [0.0, most]
    scale = alt.Scale(range="diverging" if diverging else "ramp", domain=ends)
    legend = alt.Legend(gradientLength=90, format=".2~g")
    charts = []
    for (checkpoint, task), mine in frame.groupby(["checkpoint", frame["task"].fillna("")], sort=False):
        title = ", ".join(part for part in (short(str(checkpoint)), task_name(str(task))) if part)
        charts.append(
            alt.Chart(mine, title=alt.TitleParams(title, fontSize=12))
            .mark_rect(stroke="gray", strokeOpacity=0.25)
            .encode(
                x=alt.X("head:O", title="head", axis=alt.Axis(labelAngle=0)),
                y=alt.Y("layer:O", title="layer"),
                color=alt.Color("value:Q", title=label, scale=scale, legend=legend),
                tooltip=["name", alt.Tooltip("value:Q", format=".4f", title=label), alt.Tooltip("low:Q", format=".4f"),
                         alt.Tooltip("high:Q", format=".4f"), "n"],
            )
            .properties(width=alt.Step(CELL), height=alt.Step(CELL))
        )  # fmt: skip
    return alt.concat(*charts, columns=4).resolve_scale(color="shared")


# ---------------------------------------------------------------- behind them


def _facet(column: str, **more: Any) -> Any:
    header = alt.Header(labelFontSize=12, labelLimit=400)
    return alt.Facet(f"{column}:N", title=None, sort=None, header=header, **more)


def _legend() -> Any:
    return alt.Legend(orient="bottom", columns=2, labelLimit=420, symbolOpacity=1)


def _dashes() -> Any:
    return alt.Scale(domain=[True, False], range=[[1, 0], [5, 3]])
