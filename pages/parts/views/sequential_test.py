"""Sequential test: which heads change the loss by more than a margin, with few examples."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.attention import Head
from core.interval import Estimate
from core.jobs import api
from core.studies.ablation.records import InterimAnalysis, SequentialTestSummary, SequentialTestVerdict
from core.studies.ablation.sequential_test import SWEPT_SAID, SequentialTestOptions, left_over, verdict_sentence
from core.studies.contract import declared
from pages.parts.charts.curves import points
from pages.parts.charts.encoding import Axes, Layers, Shade
from pages.parts.charts.heads import head_picture
from pages.parts.disable.settings import SWEPT, WHAT, mean_by, shared_options
from pages.parts.reports.caveats import explain_difference, warn_by_other_run
from pages.parts.reports.stored_runs import StoredRun
from pages.parts.reports.study_view import details, show_study
from pages.parts.shell import resources, url
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets import job_progress
from pages.parts.widgets.tables import show_table

NAMED = 40  # heads of which each is named where the page is narrow; of more, as many as have room
VERDICTS = {"matters": "matters", "does not matter": "does not matter", "open": "undecided"}
COLOURS = ("#0072B2", "#56B4E9", "#8C8C8C")


def verdict_counts(race: SequentialTestSummary) -> str:
    """Return text such as "2 matter, 130 do not, 12 are undecided"."""
    return f"{race.matters} {'matters' if race.matters == 1 else 'matter'}, {left_over(race)}"


def intervals(verdicts: Sequence[SequentialTestVerdict], margin: float) -> Layers:
    """Return the interval of every head, smallest effect first, with the margin as dashed lines."""
    lines = []
    for verdict in verdicts:
        low, high = verdict.effect_low, verdict.effect_high
        middle = float("nan") if low is None or high is None else (low + high) / 2
        line = {"name": verdict.name, "verdict": VERDICTS[verdict.verdict], "examples": verdict.rows}
        lines.append(line | {"low": low, "high": high, "middle": middle})
    drawn = pd.DataFrame(lines).astype(dict.fromkeys(("low", "high"), float)).sort_values("middle")
    name_axis = alt.Axis(labelAngle=-90, labelOverlap=len(drawn) > NAMED)
    x = alt.X("name:N", sort=list(drawn.name), title=None, axis=name_axis)
    scale = alt.Scale(domain=list(VERDICTS.values()), range=list(COLOURS))
    colour = alt.Color("verdict:N", scale=scale, title=None, legend=alt.Legend(orient="top"))
    tips = [alt.Tooltip(name) for name in ("name", "verdict", "examples", "low", "high")]
    base = alt.Chart(drawn).encode(x=x, color=colour, tooltip=tips)
    bars = base.mark_rule(strokeWidth=3).encode(y=alt.Y("low:Q", title="change in loss after ablation"), y2="high:Q")
    middles = base.mark_point(filled=True, size=30, color="#222222", opacity=1).encode(y="middle:Q")
    dashed = alt.Chart(pd.DataFrame({"margin": [-margin, margin]})).mark_rule(strokeDash=[4, 3], color="gray")
    dashed = dashed.encode(y="margin:Q")
    title = "Change in loss after each ablation (dashed: margin)"
    return alt.layer(dashed, bars, middles).properties(title=title, height=320)


def rows_taken(verdicts: Sequence[SequentialTestVerdict]) -> Any:
    """Return how many examples each head needed; heads that matter are outlined."""
    columns = ["layer", "head", "rows", "verdict", "effect"]
    sure = [verdict for verdict in verdicts if verdict.verdict == "matters"]
    return head_picture(
        pd.DataFrame(verdicts, columns=columns),
        Shade("rows"),
        title="Number of examples on which each head was tested (outlined heads matter)",
        highlight=[Head(int(verdict.layer or 0), int(verdict.head or 0)) for verdict in sure],
        tooltip=("verdict", "effect"),
    )


def gradient_beside(verdicts: Sequence[SequentialTestVerdict], race: SequentialTestSummary) -> Any:
    """Return first-order and exact mean effects at the first interim analysis."""
    rho = race.gradient_spearman
    correlation = "undefined" if rho is None else f"{rho:.2f}"
    columns = ["gradient_first", "exact_first", "name", "verdict"]
    drawn = pd.DataFrame(verdicts, columns=columns).astype(dict.fromkeys(columns[:2], float))
    return points(
        drawn,
        Axes(
            x="gradient_first",
            y="exact_first",
            x_title="change predicted by the gradient",
            y_title="measured change of the loss",
        ),
        tooltip=("name", "verdict"),
        title="Change in loss at the first interim analysis: estimated by the gradient, and measured (Spearman "
        f"{correlation}, n = {len(verdicts)} {SWEPT_SAID.get(race.what, 'targets')})",
    )


def looks(race_looks: Sequence[InterimAnalysis]) -> pd.DataFrame:
    """Show what each interim analysis decided."""
    column_titles = {
        "rows": "examples",
        "open": "undecided before",
        "settled": "decided",
        "matters": "of which matter",
    }
    return pd.DataFrame(race_looks, columns=list(column_titles)).rename(columns=column_titles)


SAID = declared(SequentialTestOptions)
KINDS = [kind for kind in WHAT if kind != "duplicates"]


def show(tools: DeltaGenerator) -> None:
    """Show the running intervals of a test, its verdicts, and the form of another test."""
    for job in job_progress.jobs_under_way("sequential-test")[:2]:
        now = job_progress.show_job(job, rows=False)
        st.fragment(_under_way, run_every=3.0 if now.active else None)(job)
    empty = "No sequential test is stored yet. Choose a fine-tuned checkpoint and press “Test”."
    with clear_errors():
        show_study("sequential-test", draw, _start, empty=empty, key="race_run", icon=":material/sprint:", jobs=False)


def _start() -> None:
    shared = shared_options()
    left, middle, right = st.columns(3)
    unit_kind = url.pick(left.selectbox, "Tested", KINDS, key="race_what", format_func=WHAT.__getitem__)
    operator = url.pick(middle.selectbox, "Ablation method", SWEPT, key="race_operator")
    margin = right.number_input(
        "Margin, in units of the "
        "loss", min_value=0.0, value=None, format=
            "%.4f", placeholder="default: 5 % of the loss of the best constant prediction",
        help=SAID["margin"].help, key="race_margin", bind="query-params",
    )  # fmt: skip
    heads = ""
    if unit_kind == "groups":
        heads = st.text_input(
            "Groups", key="race_heads", bind="query-params", placeholder="L1H2,L7H6; L4H1", help=SAID["heads"].help
        )
    how = mean_by(operator, key="race_mean_by")
    settings = {"what": unit_kind, "operator": operator, "heads": heads, "margin": margin} | how
    job_progress.offer_start("sequential-test", asdict(shared) | settings if shared else None, "Test")
    st.caption(
        "After 64 examples, all heads are tested. Undecided heads are tested again after more examples. A head is "
        "decided once its confidence interval lies entirely outside or inside the margin. A head is stopped early if a "
        "decision is unlikely."
    )


def _under_way(job: str) -> None:
    """Show the intervals so far, which are valid at any time."""
    with clear_errors():
        rows = api.partial_rows(resources.database(), job).to_dict("records")
        verdicts = SequentialTestVerdict.among(rows)
        if all(verdict.effect_low is None for verdict in verdicts):
            return
        race = SequentialTestSummary.among(rows)[0]
        st.markdown(f"So far: {plain(verdict_counts(race))}.")
        st.altair_chart(intervals(verdicts, race.margin))


def draw(stored: StoredRun) -> None:
    """Show the intervals with the margin, the examples per head, and the prediction of the gradient."""
    rows = stored.result_rows
    race, verdicts = SequentialTestSummary.among(rows)[0], SequentialTestVerdict.among(rows)
    warn_by_other_run(stored)
    st.altair_chart(intervals(verdicts, race.margin))
    method = next((title for operator, title in SWEPT.items() if operator == race.operator), race.operator)
    st.caption(f"Bars are confidence intervals. Ablation method: {plain(method)}.")
    explain_difference(stored)
    with details():
        st.markdown(plain(verdict_sentence(race)))
        st.markdown(
            "The test of a head stops as soon as its confidence interval lies entirely outside the margin "
            "(the head matters) or entirely inside the margin (the head does not matter). For this reason, most "
            "intervals end close to the margin. With more examples or a larger margin, fewer heads are undecided."
        )
        left, right = st.columns(2)
        if all(verdict.head is not None for verdict in verdicts):
            left.altair_chart(rows_taken(verdicts), width="content")
        right.altair_chart(gradient_beside(verdicts, race))
        show_table(looks(InterimAnalysis.among(rows)), container=left)
        show_table(_table(verdicts))
        st.caption(
            plain(
                f"Ablation method: {race.operator} · {stored.dtype} · seed {stored.seed}. The confidence intervals "
                f"hold jointly for all heads and interim analyses ({1 - race.alpha:.0%}). They apply to the whole "
                f"task, not only to these examples."
            )
        )


def _table(verdicts: list[SequentialTestVerdict]) -> pd.DataFrame:
    """Show the verdicts, largest effect first."""
    lines = []
    for verdict in sorted(verdicts, key=lambda verdict: -1.0 if verdict.effect is None else abs(verdict.effect))[::-1]:
        line: dict[str, Any] = {
            "name": verdict.name,
            "verdict": VERDICTS[verdict.verdict],
            "examples": verdict.rows,
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
