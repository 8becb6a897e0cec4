"""Change: how much each head's attention differs before and after fine-tuning (Fig 5)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core import config
from core.attention import Head
from core.errors import InputError
from core.report.published_values import printed_changes
from core.studies.attention.records import ChangeScore
from core.studies.tuning.change import STUDY, ChangeOptions
from core.tasks.glue import TaskRow, read_rows
from core.tuning.saved_checkpoints import shown_folder, tuned_checkpoints
from pages.parts.charts.curves import line_with_band
from pages.parts.charts.encoding import LARGE, Axes, Shade
from pages.parts.charts.heads import clicked_heads, head_picture
from pages.parts.reports.attending import task_said
from pages.parts.reports.caveats import warn_of_tuning
from pages.parts.reports.study_view import details, drawer, shown_result
from pages.parts.shell import context, links, url
from pages.parts.shell.links import is_missing, show_links
from pages.parts.shell.messages import clear_errors, plain, short_names
from pages.parts.tuning.forms import pick_data
from pages.parts.widgets import job_progress
from pages.parts.widgets.pickers import task_name

# ---------------------------------------------------------------- the pictures of the Change page


@dataclass(frozen=True)
class Likeness:
    """A measure of change: in words, its unit, and its scale. `alike`: the study stores similarities; figures show 1
    minus them."""

    title: str
    unit: str
    domain: tuple[float, float]
    alike: bool = False


STATISTICS = {
    "cosine": Likeness("1 − cosine of the flattened maps", "1 − cosine", (0.0, 1.0), alike=True),
    "divergence": Likeness("Jensen-Shannon divergence of the rows, nats", "nats", (0.0, math.log(2))),
    "cosine_without_first": Likeness("1 − cosine without the first token", "1 − cosine", (0.0, 1.0), alike=True),
    "divergence_without_first": Likeness(
        "Jensen-Shannon divergence without the first token, nats", "nats", (0.0, math.log(2))
    ),
}


def pictures(scores: Sequence[ChangeScore], statistic: str, run: str, *, bundled: bool) -> None:
    """Show one small heatmap per fine-tuned checkpoint on a common scale, and the means of layers. A click chooses a
    head."""
    likeness = STATISTICS[statistic]
    heads = [_as_change(score, likeness) for score in scores if score.kind == "head" and score.statistic == statistic]
    domain = likeness.domain
    help_text = (
        "If on, the colour scale covers the whole range of the statistic, as in Fig 5 of Kovaleva et al. 2019. If "
        "off, it ends at the largest value shown."
    )
    if not url.switch(st.toggle, "Colour scale of the paper", key="whole", help=help_text):
        values = [score.value for score in heads if score.value is not None]
        domain = (0.0, max(values, default=1.0))
    left, right = st.columns([2, 3])
    beside = left.container(horizontal=True)
    widest = max(int(score.head or 0) for score in heads) + 1
    for after in dict.fromkeys(score.after for score in heads):
        checkpoint_scores = [score for score in heads if score.after == after]
        with beside.container(width=LARGE * widest + 130):  # with its legend, so that several stand side by side
            picture = head_picture(
                pd.DataFrame(checkpoint_scores),
                Shade("value", label=likeness.unit, domain=domain, cell=LARGE),
                title=task_said(checkpoint_scores[0].task, bundled=bundled),
                tooltip=("low", "high", "n"),
                select=True,
            )
            key = f"change|{run}|{statistic}|{after}"
            st.altair_chart(picture, width="content", on_select=partial(_clicked, key, after), key=key)
            st.caption(plain(Path(after).name))
    chart = line_with_band(
        pd.DataFrame(_layers(scores, statistic, bundled=bundled)),
        Axes(x="layer", y="value", low="low", high="high", colour="task", y_title=likeness.title),
        title="Mean change of heads by layer (95 % CI)",
    )
    right.altair_chart(chart)


def _layers(scores: Sequence[ChangeScore], statistic: str, *, bundled: bool) -> list[dict[str, Any]]:
    """Return the means of layers, counted from 1, and published cosines for as many layers."""
    likeness = STATISTICS[statistic]
    layers = [_as_change(score, likeness) for score in scores if score.kind == "layer" and score.statistic == statistic]
    lines: list[dict[str, Any]] = [
        {"layer": score.layer + 1, "task": task_said(score.task, bundled=bundled)}
        | {"value": score.value, "low": score.low, "high": score.high}
        for score in layers
    ]
    paper = printed_changes()
    if statistic == "cosine" and max(score.layer for score in layers) + 1 == len(paper):
        lines += [
            {"layer": k, "task": "QQP, the paper's", "value": 1 - value, "low": 1 - value, "high": 1 - value}
            for k, value in enumerate(paper, 1)
        ]
    return lines


def _as_change(score: ChangeScore, likeness: Likeness) -> ChangeScore:
    """Return 1 minus a similarity, with its interval; a divergence is unchanged."""
    if not likeness.alike:
        return score
    value, low, high = (None if end is None else 1 - end for end in (score.value, score.high, score.low))
    return replace(score, value=value, low=low, high=high)


def _clicked(key: str, after: str) -> None:
    for head in clicked_heads(st.session_state[key]):
        st.session_state.changed_after, st.session_state.changed_head = after, str(head)


def strongest(scores: Sequence[ChangeScore], compared: ChangeOptions) -> None:
    """Show one head, the examples on which it changed most, and links to its maps before and after."""
    left, right = st.columns(2)
    after = url.pick(
        left.selectbox,
        "Checkpoint after",
        (fine_tuned := list(dict.fromkeys(score.after for score in scores))),
        key="changed_after",
        format_func=short_names(fine_tuned).__getitem__,
        on_change=_most_changed,
    )
    cosines = [score for score in scores if score.kind == "head" and score.statistic == "cosine"]
    score_of_head = {score.name: score for score in sorted(cosines, key=_cosine) if score.after == after}
    name = url.pick(
        right.selectbox,
        "Head, most changed first",
        list(score_of_head),
        format_func=lambda head: f"{head} · {1 - _cosine(score_of_head[head]):.3f}",
        key="changed_head",
        help="Choose a head to see the examples on which its attention changed most. You can also click a head in "
        "a heatmap above.",
    )
    show_links(after, Head.parse(name), current_view="")
    chosen = score_of_head[name]
    texts = _texts_at_hand(chosen.task, compared)
    for changed in chosen.most_changed:
        row = texts.get(changed.row)
        if row is None:
            st.text(f"{changed.row} · 1 − cosine {1 - changed.cosine:.3f}")
            continue
        text_column, link = st.columns([5, 2], vertical_alignment="center")
        second = f"\n{row.pair}" if row.pair else ""
        text_column.text(f"{changed.row} · 1 − cosine {1 - changed.cosine:.3f}\n{row.text}{second}")
        if is_missing(after) or is_missing(compared.before):
            continue
        with link:
            links.link("maps", f"{name} before and after", checkpoint=compared.before, beside=after, text=row.text,
                       pair=row.pair, head=name)  # fmt: skip


def _texts_at_hand(task: str, compared: ChangeOptions) -> dict[str, TaskRow]:
    """Return the examples by ID; empty, with a notice, if they are not available."""
    try:
        return {row.id: row for row in read_rows(task, compared.split, folder=compared.data)}
    except InputError:
        st.caption(plain(f"We may not redistribute the sentences of {task_name(task)}, so only their IDs are shown."))
        return {}


def _most_changed() -> None:
    """Reset the choice to the head that changed most."""
    st.session_state.pop("changed_head", None)
    url.keep({"changed_head": None})


def _cosine(score: ChangeScore) -> float:
    """Return the cosine, or 1 if it is missing, so that such heads come last."""
    return 1.0 if score.value is None else score.value


def start() -> None:
    """Ask for the checkpoint before and those after fine-tuning, and start the job."""
    folders = [shown_folder(tuned.folder) for tuned in tuned_checkpoints(config.settings().runs / "finetuned")]
    folders += [tuned.name for tuned in tuned_checkpoints(config.BUNDLED_MODELS)]
    middle, right, last = st.columns([5, 1, 1], vertical_alignment="bottom")
    before = context.now().checkpoint
    after = url.pick_many(
        middle.multiselect,
        f"Fine-tuned from {before}",
        list(dict.fromkeys(folders)),
        key="after",
        accept_new_options=True,
        placeholder="Names or folders of fine-tuned checkpoints",
    )
    limit = right.number_input(
        "Rows",
        2,
        100_000,
        300,
        key="limit",
        bind="query-params",
        help="The largest number of dev examples per task. Kovaleva et al. 2019 use at most 1,000.",
    )
    with st.expander("Source of the examples"):
        data_folder = pick_data()
    options = {"before": before, "after": after, "limit": limit, "data": data_folder}
    ready_options = options if before and after else None
    job_progress.offer_start("change", ready_options, "Compare", title=lambda: f"Change of {before}", container=last)
    if not folders:
        st.caption(
            "No checkpoint has been fine-tuned here yet. You can train one in a few minutes on “Fine-tuning > Train”."
        )


def results() -> None:
    with shown_result(
        "change",
        "No comparison is stored yet. Choose a checkpoint and one or more checkpoints that were fine-tuned from "
        "it, and press “Compare”.",
        icon=":material/compare:",
    ) as stored:
        if stored is None:
            return
        warn_of_tuning(stored)
        scores, compared = stored.among(ChangeScore), STUDY.read(dict(stored.told))
        stored_statistics = [name for name in STATISTICS if name in {score.statistic for score in scores}]
        statistic = url.pick(
            st.segmented_control, "Statistic", stored_statistics, key="statistic", default="cosine", required=True,
            format_func=lambda name: STATISTICS[name].title,
        )  # fmt: skip
        pictures(scores, statistic, stored.run, bundled=stored.sampled)
        source = "the files of the task" if compared.data else "the bundled samples"
        more = details()
        more.caption(
            plain(
                f"Before: {compared.before}. Dev examples from {source}. Maps are cropped to real tokens; the notebook "
                "of the paper compared padded maps. In the paper the last two layers change most, except on QQP."
            )
        )
        with more:
            st.markdown("**Examples on which the attention of a head changed most**")
            strongest(scores, compared)


def show(tools: DeltaGenerator) -> None:
    job_progress.show_jobs("change")
    with clear_errors():
        results()
    with drawer("Run with other settings", "change"):
        start()
