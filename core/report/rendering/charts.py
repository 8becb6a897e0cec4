"""The plots of a report in Altair: measured values with intervals, and published values."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import altair as alt
import pandas as pd

from ...attention import Head
from ...codebook.registry import COLOURS
from ...tasks.glue import task_name
from ..ids import ExhibitId
from ..published_values import Exhibit
from ..records import Records, ValueRecord
from .words import short

WIDE, NARROW, TALL = 300, 210, 190  # pixels of one panel
CELL = 15  # pixels of a head in a small picture
PRINTED = "printed: "
DASHES = alt.Scale(domain=[True, False], range=[[1, 0], [5, 3]])  # measured, printed


@dataclass(frozen=True)
class Mark:
    """One number in a plot of the report, measured or published."""

    item: str
    position: float | None
    condition: str
    task: str
    note: str
    n: int | None
    value: float
    low: float | None
    high: float | None
    series: str
    ours: bool
    panel: str = ""
    line: str = ""


def chart_of(item: Exhibit, records: Records) -> alt.TopLevelMixin | None:
    """Draw the plot of a figure or table, or return None if there is nothing to draw."""
    if item.chart == "heads":
        if not records.heads:
            return None
        values = [head.value for head in records.heads if head.value is not None]
        diverging, label = min(values, default=0.0) < 0, records.heads[0].label.partition(" of ")[0]
        most = max(map(abs, values), default=0.0) or 1.0
        ends = [-most, most] if diverging else [0.0, most]
        scale = alt.Scale(range="diverging" if diverging else "ramp", domain=ends)
        legend = alt.Legend(gradientLength=90, format=".2~g")
        charts = []
        for checkpoint, task in dict.fromkeys((head.checkpoint, head.task) for head in records.heads):
            task_heads = [head for head in records.heads if (head.checkpoint, head.task) == (checkpoint, task)]
            title = ", ".join(part for part in (short(checkpoint), task_name(task)) if part)
            numbers = [asdict(replace(head, layer=head.layer + 1, head=head.head + 1)) for head in task_heads]
            table = pd.DataFrame(numbers).assign(name=[str(Head(head.layer, head.head)) for head in task_heads])
            charts.append(
                alt.Chart(table, title=alt.TitleParams(title, fontSize=12))
                .mark_rect(stroke="gray", strokeOpacity=0.25)
                .encode(
                    x=alt.X("head:O", title="head", axis=alt.Axis(labelAngle=0)),
                    y=alt.Y("layer:O", title="layer"),
                    color=alt.Color("value:Q", title=label, scale=scale, legend=legend),
                    tooltip=["name", alt.Tooltip("value:Q", format=".4f", title=label),
                             alt.Tooltip("low:Q", format=".4f"), alt.Tooltip("high:Q", format=".4f"), "n"],
                )
                .properties(width=alt.Step(CELL), height=alt.Step(CELL))
            )  # fmt: skip
        return alt.concat(*charts, columns=4).resolve_scale(color="shared")
    first: dict[tuple[Any, ...], Mark] = {}
    for mark in (mark for value in records.values for mark in (_measured(value), _printed(value)) if mark is not None):
        first.setdefault((mark.series, mark.task, mark.item, mark.condition, mark.ours, mark.value), mark)
    marks = list(first.values())
    if not any(mark.ours for mark in marks):
        return None
    return {"stacked": _stacked, "layers": _layers, "lengths": _lengths, "dots": _dots}[item.chart](item, marks)


def series_of(value: ValueRecord, *, printed: bool) -> str:
    """Return a legend entry such as "printed: Kovaleva et al. 2019, fine-tuned"."""
    who = f"{PRINTED}{value.source}" if printed else short(value.checkpoint)
    return ", ".join(part for part in (who, value.condition) if part)


def _measured(value: ValueRecord) -> Mark | None:
    if value.value is None:
        return None
    about = (value.item, value.position, value.condition, task_name(value.task), value.note or "", value.n)
    return Mark(*about, value.value, value.low, value.high, series_of(value, printed=False), ours=True)


def _printed(value: ValueRecord) -> Mark | None:
    if value.published is None:
        return None
    number, error = value.published, value.reading_error or 0.0
    about = (value.item, value.position, value.condition, task_name(value.task), value.why, value.n)
    return Mark(*about, number, number - error, number + error, series_of(value, printed=True), ours=False)


def _table(marks: Sequence[Mark]) -> pd.DataFrame:
    return pd.DataFrame([asdict(mark) for mark in marks])


# ---------------------------------------------------------------- kinds


def _stacked(exhibit: Exhibit, marks: Sequence[Mark]) -> alt.TopLevelMixin:
    drawn = _table(marks).assign(percent=[100 * mark.value for mark in marks])
    order = list(dict.fromkeys(mark.item for mark in marks))
    return (
        alt.Chart(drawn)
        .mark_bar()
        .encode(
            x=alt.X("task:N", title=None, sort=None, axis=alt.Axis(labelAngle=-40)),
            y=alt.Y("percent:Q", title="% of maps", stack="zero", scale=alt.Scale(domain=[0, 100])),
            color=alt.Color("item:N", title="class", sort=order, scale=classes_scale(order)),
            tooltip=["series", "task", "item", alt.Tooltip("percent:Q", format=".1f"), "n"],
            facet=_facet("series", columns=3),
        )
        .properties(width=NARROW, height=TALL)
    )


def classes_scale(names: Sequence[str]) -> alt.Scale:
    """Return a colour scale for pattern classes. If any name is unknown, all classes have the default colours."""
    colours = [COLOURS[name] for name in names if name in COLOURS]
    return alt.Scale(range=colours if len(colours) == len(names) else "category", domain=list(names))


def _layers(exhibit: Exhibit, marks: Sequence[Mark]) -> alt.TopLevelMixin:
    special = {"separator": "[SEP]", "start": "[CLS]", "noun": "nouns"}
    drawn = [
        replace(
            mark,
            panel=f"{mark.task} {special.get(mark.item.partition(',')[0], '')}".strip(),
            position=100 * mark.position,
        )
        for mark in marks
        if mark.position is not None
    ]
    return _lines(drawn, "depth in the model, %", exhibit.quantity)


def _lengths(exhibit: Exhibit, marks: Sequence[Mark]) -> alt.TopLevelMixin:
    drawn = [replace(mark, panel=mark.task) for mark in marks if mark.position is not None]
    return _lines(drawn, "maximum input length (tokens)", exhibit.quantity)


def _lines(marks: Sequence[Mark], x_title: str, y_title: str) -> alt.TopLevelMixin:
    base = alt.Chart(_table(marks)).encode(
        x=alt.X("position:Q", title=x_title),
        color=alt.Color("series:N", title=None, sort=None, scale=alt.Scale(range="category"), legend=_legend()),
    )
    tips = ["series", "item", alt.Tooltip("value:Q", format=".3f"), alt.Tooltip("low:Q", format=".3f"),
            alt.Tooltip("high:Q", format=".3f"), "n"]  # fmt: skip
    y = alt.Y("value:Q", title=y_title, scale=alt.Scale(zero=False))
    band = base.mark_area(opacity=0.15, aria=False).encode(y=alt.Y("low:Q", title=y_title), y2="high:Q")
    line = base.mark_line(point=True).encode(
        y=y, strokeDash=alt.StrokeDash("ours:N", scale=DASHES, legend=None), tooltip=tips
    )
    return alt.layer(band, line).properties(width=WIDE, height=TALL).facet(facet=_facet("panel"), columns=3)


def _dots(exhibit: Exhibit, marks: Sequence[Mark]) -> alt.TopLevelMixin:
    arrange, columns = ARRANGED.get(exhibit.id, (_by_task, 2))
    arranged = [placed for mark in marks if (placed := arrange(mark)) is not None]
    panels = {mark.panel for mark in arranged if mark.ours}
    base = alt.Chart(_table([mark for mark in arranged if mark.panel in panels])).encode(
        y=alt.Y("line:N", title=None, sort=None, axis=alt.Axis(labelLimit=260)),
        yOffset=alt.YOffset("series:N", sort=None),
        color=alt.Color("series:N", title=None, sort=None, scale=alt.Scale(range="category"), legend=_legend()),
    )
    tips = ["series", "line", alt.Tooltip("value:Q", format=".4~g"), alt.Tooltip("low:Q", format=".4~g"),
            alt.Tooltip("high:Q", format=".4~g"), "n", "note"]  # fmt: skip
    measured = exhibit.quantity
    x = alt.X("value:Q", title=measured, scale=alt.Scale(zero=False))
    rule = base.mark_rule(strokeWidth=1.5, aria=False).encode(x=alt.X("low:Q", title=measured), x2="high:Q")
    shape = alt.Shape("ours:N", scale=alt.Scale(domain=[True, False], range=["circle", "diamond"]), legend=None)
    dot = base.mark_point(filled=True, size=55, opacity=1).encode(x=x, shape=shape, tooltip=tips)
    drawn = alt.layer(rule, dot).properties(width=WIDE)
    if panels == {""}:  # all of it is one panel, which needs no name
        return drawn
    return drawn.facet(facet=_facet("panel"), columns=columns).resolve_scale(x="independent", y="independent")


def _by_task(mark: Mark) -> Mark:
    return replace(mark, panel=mark.task, line=mark.item)


def _by_score(mark: Mark) -> Mark:
    """The condition is a line, so the series does not name it."""
    panel, series = f"{mark.task}, {mark.item}", mark.series.rpartition(", ")[0]
    return replace(mark, panel=panel, line=mark.condition, series=series)


def _by_dependency(mark: Mark) -> Mark:
    label, _, quantity = mark.item.rpartition(", ")
    return replace(mark, panel=quantity, line=label)


def _by_statistic(mark: Mark) -> Mark:
    return replace(mark, panel=mark.item, line=task_name(mark.note) if mark.ours else "printed")


def _without_heads(mark: Mark) -> Mark | None:
    return None if mark.item.startswith("L") else replace(mark, panel="", line=mark.item)


Placed = Callable[[Mark], Mark | None]
# The function that places a mark, or leaves it out, and how many panels stand side by side
ARRANGED: dict[ExhibitId, tuple[Placed, int]] = {
    ExhibitId.TABLE_1: (_by_score, 3),
    ExhibitId.DEPENDENCIES: (_by_dependency, 3),
    ExhibitId.STATISTICS: (_by_statistic, 2),
    ExhibitId.PRUNE: (lambda mark: replace(mark, panel="", line=mark.task), 2),
    ExhibitId.IMPORTANCE: (lambda mark: replace(mark, panel=mark.item, line=mark.task), 2),
    ExhibitId.SINK: (_without_heads, 1),
}


# ---------------------------------------------------------------- behind them


def _facet(column: str, **settings: Any) -> Any:
    header = alt.Header(labelFontSize=12, labelLimit=400)
    return alt.Facet(f"{column}:N", title=None, sort=None, header=header, **settings)


def _legend() -> Any:
    return alt.Legend(orient="bottom", columns=2, labelLimit=420, symbolOpacity=1)
