"""Pruning: which heads matter to the loss, and how many can be removed before the metric falls."""

from dataclasses import asdict

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core import capture, config
from core.attention import parse_heads
from core.studies.ablation.records import ImportantHead, PruneStep, RankCorrelation
from pages.parts.charts.encoding import LARGE, Shade
from pages.parts.charts.heads import head_picture
from pages.parts.disable.results import draw_curves
from pages.parts.disable.settings import shared_options
from pages.parts.reports.caveats import warn_at_chance, warn_by_other_run
from pages.parts.reports.study_view import details, drawer, shown_result
from pages.parts.shell import resources, url
from pages.parts.shell.links import asked_heads, pick_and_link
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets import job_progress, pickers
from pages.parts.widgets.tables import show_table

# ---------------------------------------------------------------- stored results


def show_importance() -> None:
    """Show the gradient-based importance of each head, and its rank correlation with zeroing."""
    with shown_result(
        "importance",
        "No importance of heads is stored yet. Choose a fine-tuned checkpoint and press “Measure importance”.",
        "weighed",
    ) as stored:
        if stored is None:
            return
        rows = stored.result_rows
        heads = sorted(ImportantHead.among(rows), key=lambda head: -head.gradient)
        warn_by_other_run(stored)
        left, right = st.columns([3, 4])
        frame = pd.DataFrame(heads)
        shade = Shade("gradient", label="gradient", cell=LARGE)
        left.altair_chart(
            head_picture(
                frame,
                shade,
                tooltip=("rank", "value"),
                highlight=asked_heads(),
                title="Gradient importance of each head",
            ),
            width="content",
        )
        agreements = [
            {
                "effect of zeroing a head": agreement.name,
                "rank correlation": None if agreement.spearman is None else round(agreement.spearman, 2),
                "p": agreement.p,
            }
            for agreement in RankCorrelation.among(rows)
        ]
        with right:
            if agreements:
                st.markdown("**Does the gradient predict the effect of zeroing a head?**")
                show_table(agreements, column_config={"p": st.column_config.NumberColumn(format="%.2g")})
                st.caption(
                    f"Spearman correlation over {len(heads)} heads between the column “importance” under “Details” and "
                    "the measured effect of zeroing each head. It is 1 if both rank the heads in the same order, and 0 "
                    "if the two rankings are unrelated."
                )
        with details():
            st.markdown(
                "The gradient is the mean absolute gradient of the loss with respect to a mask on a head (Michel et "
                "al. 2019). By default, the column “importance” is the gradient normalised within each layer. The "
                "pruning order “importance” uses this measure."
            )
            columns = {"name": "head", "gradient": "gradient", "value": "importance", "rank": "rank"}
            show_table(frame[list(columns)].rename(columns=columns))
            names = [head.name for head in heads]
            pick_and_link(stored.of, names, current_view="interventions/pruning", key="weighed_head")


def show_curves() -> None:
    """Show the metric by the fraction of pruned heads for each order, and offer to save a pruned checkpoint."""
    empty = "No pruning curve is stored yet. Choose a fine-tuned checkpoint and press “Draw the curve”."
    with shown_result("prune", empty, "curve") as stored:
        if stored is None:
            return
        steps = stored.among(PruneStep)
        first = steps[0]
        warn_at_chance(stored, first.baseline if first.metric == "accuracy" else None, first.n)
        draw_curves(steps)
        with details():
            st.markdown(
                "At every step, the least important remaining heads are pruned. The order is computed on train "
                "examples, and the scores on dev examples. Bands are 95 % CIs of the paired change."
            )
            st.markdown("The baseline prunes heads in random order.")
            _save(steps, stored.of)


def _save(steps: list[PruneStep], checkpoint: str) -> None:
    with st.container(border=True):
        st.markdown("**Save a pruned checkpoint**")
        left, middle, right = st.columns([2, 2, 1], vertical_alignment="bottom")
        order = url.pick(left.selectbox, "Order", list(dict.fromkeys(step.order for step in steps)), key="order")
        removals = [step for step in steps if step.order == order and step.removed]
        removing = {round(100 * step.share, 1): step for step in reversed(removals)}
        percent = middle.select_slider(
            "Heads removed, %", list(removing)[::-1], key=f"percent_{order}", bind="query-params"
        )
        step = removing[percent]
        folder = config.settings().runs / "pruned" / f"{checkpoint.rstrip('/').rsplit('/', 1)[-1]}-{order}-{percent:g}"
        if not right.button("Save", width="stretch"):
            return
        with clear_errors():
            resources.database().person.must("annotator", "save a checkpoint")
            saved = capture.pruning.save_pruned(
                resources.checkpoint(checkpoint, "classifier"), parse_heads(step.heads), folder
            )
            st.success(
                plain(
                    f"The checkpoint without {step.removed} heads was saved as {saved}. You can open it "
                    f"like any other checkpoint."
                )
            )


# ---------------------------------------------------------------- the view


ORDERS = {
    "importance": "importance, once",
    "recomputed": "importance, recomputed at every step",
    "sweep": "effect of zeroing it",
    "random": "random order (baseline)",
}
VIEWS = {"Importance": show_importance, "Curve": show_curves}


def start() -> None:
    shared = shared_options()
    left, middle, right = st.columns([4, 2, 2], vertical_alignment="bottom")
    orders = url.pick_many(
        left.multiselect,
        "Remove heads in the order of",
        ORDERS,
        key="orders",
        default=["importance", "sweep", "random"],
    )
    weigh = middle.button(
        "Measure importance",
        width="stretch",
        disabled=shared is None,
        help="Computes the importance of each head from one backward pass over train examples, and compares it with "
        "the effect of zeroing each head.",
    )
    prune = right.button("Draw the curve", type="primary", width="stretch", disabled=shared is None or not orders)
    if shared:
        job_progress.say_time("prune", asdict(shared) | {"orders": orders})
    if not shared or not (weigh or prune):
        return
    with clear_errors():
        task = pickers.named([shared.task], shared.data)
        if weigh:
            job_progress.begin("importance", asdict(shared), f"Importance of heads, {task}")
        else:
            job_progress.begin("prune", asdict(shared) | {"orders": orders}, f"Pruning curve, {task}")
        st.rerun()


def show(tools: DeltaGenerator) -> None:
    with tools:
        mode = url.pick_mode(list(VIEWS))
    job_progress.show_jobs("importance", "prune")
    with clear_errors():
        VIEWS[mode]()
    with drawer("Run with other settings", "importance"):
        start()
