"""Gates and pairs: what heads do together, by gates, pairs of heads and Shapley values; started, and read."""

from dataclasses import asdict
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.scoring.circuits import CLASSES
from core.studies.circuits.records import (
    GatedHead,
    HeadPair,
    OrderContrast,
    OrderStep,
    RankingCorrelation,
    ShapleyHead,
    ShapleySum,
    TogetherCheck,
)
from pages.parts.charts.curves import line_with_band
from pages.parts.charts.encoding import LARGE, Axes, Shade
from pages.parts.charts.heads import head_picture
from pages.parts.disable.sweeps import shared_options
from pages.parts.reports.at_chance import warn_of_tuning
from pages.parts.reports.provenance import StoredRun
from pages.parts.reports.stored_runs import drawer, has_results, pick_run
from pages.parts.shell import url
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets import job_progress
from pages.parts.widgets.files import show_files
from pages.parts.widgets.tables import show_table

MOST = 30  # pairs in a table


def show_study(study: str, press: str) -> StoredRun | None:
    """A form for one's own, what is under way, and the stored run that is open."""
    with drawer("Another checkpoint or task", study):
        shared = shared_options()
        job_progress.offer_start(study, asdict(shared) if shared else None, press)
    job_progress.show_jobs(study, most=2)
    stored = pick_run(
        study,
        f'Nothing was measured yet: choose a fine-tuned checkpoint and press "{press}".',
        key=f"run_{study}",
        icon=":material/hub:",
    )
    if stored is not None:
        warn_of_tuning(stored)
    return stored


def show_gates() -> None:
    """Each head's class, the classes taken out together, ranks that agree."""
    stored = show_study("gates", "Fit gates")
    if stored is None:
        return
    rows = stored.result_rows
    heads = GatedHead.among(rows)
    frame = pd.DataFrame(heads)
    left, right = st.columns([3, 2])
    picture = head_picture(
        frame,
        Shade("gate_class", label="class", categories=list(CLASSES), cell=LARGE),
        title="What the task does with each head",
        tooltip=("up", "down", "effect"),
    )
    left.altair_chart(picture, width="content")
    for check in TogetherCheck.among(rows):
        if check.effect is not None:
            right.markdown(
                f"All **{check.count} {plain(check.name)}** heads out together: loss {check.effect:+.3f} "
                f"({_ends(check.low, check.high)}), {plain(check.verdict)}; as many random heads {check.random:+.3f}."
            )
        else:
            right.markdown(f"No head is {plain(check.name)} in 95 % of the fits.")
    _agreements(right, rows)
    columns = ["name", "gate_class", "facilitating", "interfering", "irrelevant", "effect", "low", "high", "gradient"]
    show_table(frame[columns])
    show_files(pd.DataFrame(rows), [picture], "gates", of="Heads")
    _caption(stored, f"n = {heads[0].n} rows, {heads[0].fits} fits")


def show_pairs() -> None:
    """The pairs that interact most, and how each head of them does alone."""
    stored = show_study("pairs", "Take heads out in pairs")
    if stored is None:
        return
    rows = stored.result_rows
    pairs = HeadPair.among(rows)
    for column, name in zip(st.columns(2), ("redundant", "cooperating"), strict=True):
        column.metric(name, f"{sum(pair.verdict == name for pair in pairs)} of {len(pairs)} pairs")
    columns = ["name", "interaction", "low", "high", "p", "verdict", "first", "second", "both", "loss_interaction"]
    show_table(pd.DataFrame(pairs)[columns].head(MOST))
    show_files(pd.DataFrame(rows), [], "pairs", of="Pairs")
    _caption(stored, f"n = {pairs[0].n} rows; effects on the logit difference, p corrected over all pairs (max-T)")


def show_shapley() -> None:
    """What each head adds, and which order of pruning keeps more."""
    stored = show_study("shapley", "Measure Shapley values")
    if stored is None:
        return
    rows = stored.result_rows
    heads, (total,) = ShapleyHead.among(rows), ShapleySum.among(rows)
    left, right = st.columns([3, 2])
    picture = head_picture(
        pd.DataFrame(heads),
        Shade("value", label="logits", diverging=True, cell=LARGE),
        title="What each head adds, the others on or off at random",
        tooltip=("rank", "low", "high", "effect"),
    )
    left.altair_chart(picture, width="content")
    right.markdown(
        f"All heads {total.with_all:.2f} logits, none {total.with_none:.2f}: the values add up to {total.values:.2f}."
    )
    _agreements(right, rows)
    pictures = [picture]
    if steps := OrderStep.among(rows):
        axes = Axes(x="removed", y="value", low="low", high="high", colour="order", x_title="heads out, weakest first",
                    y_title="logit difference")  # fmt: skip
        curve = line_with_band(pd.DataFrame(steps), axes, title="Pruned in two orders, on other rows")
        right.altair_chart(curve)
        right.markdown(plain(f"{OrderContrast.among(rows)[0].verdict.capitalize()}."))
        pictures.append(curve)
    show_table(pd.DataFrame(heads)[["name", "value", "low", "high", "effect", "gradient"]])
    show_files(pd.DataFrame(rows), pictures, "shapley", of="Heads")
    _caption(stored, f"n = {heads[0].n} rows, {heads[0].orders} orders each")


def _agreements(container: Any, rows: list[dict[str, Any]]) -> None:
    for result in RankingCorrelation.among(rows):
        correlation = "undefined" if result.value is None else f"{result.value:.2f} ({_ends(result.low, result.high)})"
        container.markdown(f"Ranks by {plain(result.first)} and by {plain(result.second)}: **{correlation}**")


def _ends(low: float | None, high: float | None) -> str:
    return "no interval" if low is None or high is None else f"{low:.2f} to {high:.2f}"


def _caption(stored: StoredRun, note: str) -> None:
    st.caption(plain(f"{stored.checkpoint_said} · {stored.task_said} {stored.split} · {note} · {stored.date}"))


VIEWS = {
    "Gates": ("gates", show_gates),
    "Pairs of heads": ("pairs", show_pairs),
    "Shapley values": ("shapley", show_shapley),
}


def show(tools: DeltaGenerator) -> None:
    """One of the three; the first that was measured, where none was chosen."""
    with clear_errors():
        measured = next((name for name, (study, _) in VIEWS.items() if has_results(study)), None)
        with tools:
            view = url.pick_mode(list(VIEWS), "What is measured", default=measured)
        VIEWS[view][1]()
