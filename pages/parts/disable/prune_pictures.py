"""The pictures of the Prune page: importance of heads, pruning curves, and saving what is left."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from core import capture, config
from core.attention import parse_heads
from core.studies.ablation.records import ImportantHead, PruneStep, RankCorrelation
from pages.parts.charts.curves import line_with_band
from pages.parts.charts.encoding import LARGE, Axes, Shade
from pages.parts.charts.heads import head_picture
from pages.parts.reports.at_chance import warn_at_chance, warn_by_other_run
from pages.parts.reports.study_view import shown_result
from pages.parts.shell import resources, url
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets.head_links import asked_heads, pick_and_link
from pages.parts.widgets.tables import show_table


def show_importance() -> None:
    """Importance per head, and how its ranks agree with what zeroing each head does."""
    with shown_result(
        "importance",
        "No importance has been measured yet: choose a fine-tuned checkpoint, press Measure importance.",
        "weighed",
    ) as stored:
        if stored is None:
            return
        rows = stored.result_rows
        heads = ImportantHead.among(rows)
        warn_by_other_run(stored)
        left, right = st.columns([3, 2])
        left.altair_chart(
            head_picture(
                pd.DataFrame(heads),
                Shade("value", label="importance", cell=LARGE),
                tooltip=("rank", "gradient"),
                highlight=asked_heads(),
                title="Importance of each head, l2 within its layer",
            ),
            width="content",
        )
        show_table(pd.DataFrame(heads[:20], columns=["name", "value", "gradient"]), container=right)
        for agreement in RankCorrelation.among(rows):
            rho = "undefined" if agreement.spearman is None else f"{agreement.spearman:.2f}"
            right.markdown(f"Spearman with {plain(agreement.name)} when zeroed: **{rho}**")
        pick_and_link(
            stored.of, [head.name for head in heads], current_view="interventions/pruning", key="weighed_head"
        )
        task_split = f"{stored.task_said} {stored.split}"
        st.caption(plain(f"{stored.checkpoint_said} · {task_split} · n = {heads[0].n} rows · {stored.date}"))


def show_curves() -> None:
    """The metric against the share of heads removed, per order; and a folder for what is left."""
    with shown_result(
        "prune", "No curve has been drawn yet: choose a fine-tuned checkpoint and press Draw the curve.", "curve"
    ) as stored:
        if stored is None:
            return
        steps = stored.among(PruneStep)
        first = steps[0]
        warn_at_chance(stored, first.baseline if first.metric == "accuracy" else None, first.n)
        draw_curves(steps)
        st.caption(
            plain(
                f"{stored.checkpoint_said} · {stored.task_said} dev · n = {first.n} rows · "
                f"order from train rows · 95% paired interval of the change · {stored.date}"
            )
        )
        _save(steps, stored.of)


def draw_curves(steps: Sequence[PruneStep]) -> None:
    """The chart of some curves."""
    first = steps[0]
    st.altair_chart(
        line_with_band(
            pd.DataFrame([_in_percent(step) for step in steps]),
            Axes(
                x="percent",
                y="score",
                low="low",
                high="high",
                colour="order",
                x_title="heads removed, %",
                y_title=f"{first.metric} x 100",
            ),
            rule=100 * first.baseline,
            title="The score as heads go; dashed: all heads (Michel et al., Fig 3)",
        )
    )


def _in_percent(step: PruneStep) -> dict[str, float | str | None]:
    score, low, high = (None if value is None else 100 * value for value in (step.score, step.low, step.high))
    return {"percent": 100 * step.share, "score": score, "low": low, "high": high, "order": step.order}


def _save(steps: list[PruneStep], checkpoint: str) -> None:
    with st.expander("Save a pruned checkpoint"):
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
            st.success(plain(f"Saved {saved} without {step.removed} heads: it opens like any checkpoint."))
