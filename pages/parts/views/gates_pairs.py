"""Gates and pairs: interactions of heads, by gates, pairs of heads and Shapley values."""

from dataclasses import asdict
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.scoring.circuits import CLAIMED, CLASSES
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
from pages.parts.charts.curves import in_lines, line_with_band, values_with_intervals
from pages.parts.charts.encoding import LARGE, Axes, Layers, Shade, baseline, colours_of, tips
from pages.parts.charts.heads import head_picture
from pages.parts.disable.settings import shared_options
from pages.parts.reports.caveats import explain_difference, warn_of_tuning
from pages.parts.reports.stored_runs import StoredRun
from pages.parts.reports.study_view import details, show_study
from pages.parts.shell import url
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets import job_progress
from pages.parts.widgets.tables import show_table

MOST = 30  # pairs in a table
SHOWN_PAIRS = 12  # pairs in the figure
SAID_OF_CLASS = {"facilitating": "needed"}


def draw_gates(stored: StoredRun) -> None:
    """Show the class of each head, how often it was needed, and the effect of ablating each class together."""
    warn_of_tuning(stored)
    rows = stored.result_rows
    frame = pd.DataFrame(GatedHead.among(rows))
    left, right = st.columns(2)
    present = [name for name in CLASSES if name in set(frame["gate_class"])]
    picture = head_picture(
        frame.replace({"gate_class": SAID_OF_CLASS}),
        Shade("gate_class", label="class", categories=[SAID_OF_CLASS.get(name, name) for name in present], cell=LARGE),
        title="Class of each head by its learned gates",
        tooltip=("up", "down", "effect"),
    )
    left.altair_chart(picture, width="content")
    right.altair_chart(fits_picture(frame))
    explain_difference(stored)
    with details():
        st.caption(
            f"The gates are fitted several times. A head has a class if at least {CLAIMED:.0%} of the fits agree. "
            "Otherwise, the head is undecided. In the table, needed heads are called “facilitating”, as in the paper."
        )
        needed = frame[frame["gate_class"] == "facilitating"].sort_values("effect", ascending=False)
        if len(needed):
            axes = Axes(x="name", y="effect", low="low", high="high", x_title="", y_title="added loss")
            title = "Change in loss if only one needed head is ablated (95 % CI)"
            st.altair_chart(values_with_intervals(needed, axes, rule=0.0, title=title))
            st.caption(
                "Ablating only one needed head can have no effect or even lower the loss, because other heads "
                "compensate. Learned gates switch off many heads at once. The heads that remain on are those "
                "that the task needs."
            )
        for check in TogetherCheck.among(rows):
            if check.effect is not None and check.random is not None:
                verdict = "undecided" if check.verdict == "open" else check.verdict
                st.markdown(
                    f"Ablating all {check.count} **{plain(check.name)}** heads together changes the loss by "
                    f"{check.effect:+.3f} (95 % CI {_ends(check.low, check.high)}). With a margin of "
                    f"{check.margin:.3f}, the verdict is “{plain(verdict)}”. Ablating an equal number of random "
                    f"heads changes the loss by {check.random:+.3f}."
                )
        _agreements(rows)
        columns = [
            "name", "gate_class", "facilitating", "interfering", "irrelevant", "effect", "low", "high", "gradient",
        ]  # fmt: skip
        show_table(frame[columns])


def fits_picture(frame: pd.DataFrame) -> Layers:
    """Return the share of fits in which the gate of each head stays open against a penalty, and the required share."""
    base = alt.Chart(frame).encode(
        y=alt.Y("name:N", sort=alt.SortField("facilitating", order="descending"), title=None,
                axis=alt.Axis(labelOverlap=False, labelFlush=False))
    )  # fmt: skip
    scale = alt.Scale(range=colours_of(CLASSES), domain=list(CLASSES))
    drawn = base.mark_bar().encode(
        x=alt.X("facilitating:Q",
                title=[f"share of {frame['fits'].iloc[0]} fits in which the gate is open against a penalty",
                       "(heads at or to the right of the dashed line are needed)"],
                scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%")),
        color=alt.Color("gate_class:N", scale=scale, legend=None),
        tooltip=tips(frame, "name", "gate_class", "facilitating", "interfering", "irrelevant", "up", "down"),
    )  # fmt: skip
    return alt.layer(drawn, *baseline(CLAIMED, "x")).properties(
        title=in_lines("How often the gate of a head stays open against a penalty"), height=alt.Step(13)
    )


def draw_pairs(stored: StoredRun) -> None:
    """Show the pairs with the largest interactions, and the effects of their single heads."""
    warn_of_tuning(stored)
    pairs = HeadPair.among(stored.result_rows)
    frame = pd.DataFrame(pairs)
    axes = Axes(x="name", y="interaction", low="low", high="high", colour="verdict", x_title="",
                y_title="interaction, logits")  # fmt: skip
    chart = values_with_intervals(
        frame.head(SHOWN_PAIRS),
        axes,
        rule=0.0,
        title="The largest interactions (above 0: redundant heads, below 0: cooperating heads)",
    )
    st.altair_chart(chart)
    with details():
        columns = ["name", "interaction", "low", "high", "p", "verdict", "first", "second", "both", "loss_interaction"]
        show_table(frame[columns].head(MOST))
        st.caption(
            "The interaction is the effect of ablating both heads on the logit difference, minus the sum of the "
            "effects of ablating each head alone. The p-values are corrected for the number of pairs (max-T)."
        )


def draw_shapley(stored: StoredRun) -> None:
    """Show what each head contributes, and which pruning order preserves more of the logit difference."""
    warn_of_tuning(stored)
    rows = stored.result_rows
    heads, (total,) = ShapleyHead.among(rows), ShapleySum.among(rows)
    left, right = st.columns(2)
    picture = head_picture(
        pd.DataFrame(heads),
        Shade("value", label="logits", diverging=True, cell=LARGE),
        title="Contribution of each head to the logit difference",
        tooltip=("rank", "low", "high", "effect"),
    )
    left.altair_chart(picture, width="content")
    if steps := OrderStep.among(rows):
        axes = Axes(x="removed", y="value", low="low", high="high", colour="order", x_title="removed heads",
                    y_title="logit difference")  # fmt: skip
        right.altair_chart(
            line_with_band(
                pd.DataFrame(steps), axes, title="Logit difference on held-out examples for two pruning orders"
            )
        )
    with details():
        st.markdown(
            f"The logit difference is {total.with_all:.2f} with all heads and {total.with_none:.2f} without any head. "
            f"The Shapley values add up to {total.values:.2f}."
        )
        for contrast in OrderContrast.among(rows)[:1]:
            st.markdown(plain(f"Pruning: {contrast.verdict}."))
        _agreements(rows)
        show_table(pd.DataFrame(heads)[["name", "value", "low", "high", "effect", "gradient"]])
        st.caption(
            "The Shapley value of a head is the mean change in the logit difference if the head is added. The mean is "
            f"over {heads[0].orders} random orders of the heads for each example."
        )


def _agreements(rows: list[dict[str, Any]]) -> None:
    """Show the agreement between rankings of heads."""
    table = [
        {"ranking": result.first, "compared with": result.second, "rank correlation": result.value,
         "95 % CI": _ends(result.low, result.high)}
        for result in RankingCorrelation.among(rows)
    ]  # fmt: skip
    if table:
        show_table(table)


def _ends(low: float | None, high: float | None) -> str:
    return "none" if low is None or high is None else f"{low:.2f} to {high:.2f}"


VIEWS = {
    "Gates": ("gates", draw_gates, "Fit gates"),
    "Pairs of heads": ("pairs", draw_pairs, "Test pairs"),
    "Shapley values": ("shapley", draw_shapley, "Measure Shapley values"),
}


def show(tools: DeltaGenerator) -> None:
    with tools:
        mode = url.pick_mode(list(VIEWS), "Study")
    study, draw, press = VIEWS[mode]

    def form() -> None:
        shared = shared_options()
        job_progress.offer_start(study, asdict(shared) if shared else None, press)

    with clear_errors():
        empty = f"No result is stored yet. Choose a fine-tuned checkpoint and press “{press}”."
        show_study(study, draw, form, empty=empty, key=f"run_{study}", icon=":material/hub:")
