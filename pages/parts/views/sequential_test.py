"""Sequential test: which heads matter to the task's loss beyond a margin, asked of as few rows as it takes."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.attention import Head
from core.jobs import api
from core.studies.ablation.race import RaceOptions, left_over, verdict_sentence
from core.studies.ablation.records import RaceLook, RaceSummary, RaceVerdict
from core.studies.contract import declared
from core.studies.estimate import Estimate
from pages.parts.charts.curves import points
from pages.parts.charts.encoding import Axes, Layers, Shade
from pages.parts.charts.heads import head_picture
from pages.parts.disable.live import SWEPT
from pages.parts.disable.stand_ins import mean_by
from pages.parts.disable.sweeps import WHAT, shared_options
from pages.parts.reports.at_chance import warn_by_other_run
from pages.parts.reports.stored_runs import drawer, pick_run
from pages.parts.shell import resources, url
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets import job_progress
from pages.parts.widgets.tables import show_table

# ---------------------------------------------------------------- pictures of a race


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


SAID = declared(RaceOptions)
KINDS = [kind for kind in WHAT if kind != "duplicates"]


def show(tools: DeltaGenerator) -> None:
    """Start a test; see its running intervals; read its verdicts."""
    with drawer("Test heads of another checkpoint or task", "race"):
        _start()
    for job in job_progress.jobs_under_way("race")[:2]:
        now = job_progress.show_job(job, rows=False)
        st.fragment(_under_way, run_every=3.0 if now.active else None)(job)
    with clear_errors():
        _results()


def _start() -> None:
    shared = shared_options()
    left, middle, right = st.columns(3)
    unit_kind = url.pick(left.selectbox, "What is tested", KINDS, key="race_what", format_func=WHAT.__getitem__)
    operator = url.pick(middle.selectbox, "Instead of its attention", SWEPT, key="race_operator")
    margin = right.number_input(
        "Margin, in the task's loss", min_value=0.0, value=None, format="%.4f", placeholder="5% of a constant's loss",
        help=SAID["margin"].help, key="race_margin", bind="query-params",
    )  # fmt: skip
    heads = ""
    if unit_kind == "groups":
        heads = st.text_input(
            "Groups", key="race_heads", bind="query-params", placeholder="L1H2,L7H6; L4H1", help=SAID["heads"].help
        )
    how = mean_by(operator, key="race_mean_by")
    settings = {"what": unit_kind, "operator": operator, "heads": heads, "margin": margin} | how
    job_progress.offer_start("race", asdict(shared) | settings if shared else None, "Test")
    st.caption(
        "Looks after 64, 128, 192 ... rows in a random order; a head whose interval lies beyond the margin matters, "
        "one whose interval lies within it does not, and both stop. The others take more rows."
    )


def _under_way(job: str) -> None:
    """The intervals so far: they hold at whatever moment they are looked at."""
    with clear_errors():
        rows = api.partial_rows(resources.database(), job).to_dict("records")
        verdicts = RaceVerdict.among(rows)
        if all(verdict.effect_low is None for verdict in verdicts):
            return
        race = RaceSummary.among(rows)[0]
        st.markdown(f"So far: {plain(verdict_counts(race))}.")
        st.altair_chart(intervals(verdicts, race.margin))


def _results() -> None:
    stored = pick_run(
        "race",
        "Nothing was tested yet: choose a fine-tuned checkpoint and press Test.",
        key="race_run",
        icon=":material/sprint:",
    )
    if stored is None:
        return
    rows = stored.result_rows
    race, verdicts = RaceSummary.among(rows)[0], RaceVerdict.among(rows)
    warn_by_other_run(stored)
    counts = (race.matters, race.does_not_matter, race.open)
    for column, name, count in zip(st.columns(3), VERDICTS, counts, strict=True):
        column.metric(name, f"{count} of {len(verdicts)}")
    st.markdown(plain(verdict_sentence(race)))
    st.altair_chart(intervals(verdicts, race.margin))
    left, right = st.columns(2)
    if all(verdict.head is not None for verdict in verdicts):
        left.altair_chart(rows_taken(verdicts), width="content")
    right.altair_chart(gradient_beside(verdicts, race))
    show_table(looks(RaceLook.among(rows)), container=left)
    show_table(_table(verdicts))
    st.caption(
        plain(
            f"{stored.checkpoint} · {race.task} {stored.split} · {race.n} rows · operator "
            f"{race.operator} · {stored.dtype} · seed {stored.seed} · {stored.date} · intervals hold "
            f"together for all heads and looks, {1 - race.alpha:.0%}; they speak of the task, not of these rows alone; "
            "the metric's own, of heads that matter, one at a time, paired"
        )
    )


def _table(verdicts: list[RaceVerdict]) -> pd.DataFrame:
    """Verdicts, most effect first."""
    lines = []
    for verdict in sorted(verdicts, key=lambda verdict: -1.0 if verdict.effect is None else abs(verdict.effect))[::-1]:
        line: dict[str, Any] = {
            "name": verdict.name,
            "verdict": verdict.verdict,
            "rows": verdict.rows,
            "effect": verdict.effect,
            "effect_low": verdict.effect_low,
            "effect_high": verdict.effect_high,
            "gradient_first": verdict.gradient_first,
        }
        for metric in verdict.metrics.every:
            change = metric.change or Estimate(float("nan"))
            line |= {f"{metric.name}_change": change.value}
            line |= {f"{metric.name}_low": change.low, f"{metric.name}_high": change.high}
        lines.append(line)
    return pd.DataFrame(lines)
