"""Guided path: four steps of the paper on the bundled encoder, each on its page, and the resulting figure.

Progress is read from stored results and from the answers that this browser remembers, so it survives a reload.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.atlas import example
from core.attention import Head
from core.config import ENCODER
from core.errors import AtlasError
from core.report.published_values import printed_changes
from core.studies.attention.records import ChangeScore
from core.tasks.glue import sampled, task_name
from pages.parts.charts.curves import line_with_band
from pages.parts.charts.encoding import Axes
from pages.parts.reports import stored_runs
from pages.parts.reports.result_card import offer_citation, support
from pages.parts.reports.result_list import open_link
from pages.parts.reports.stored_runs import StoredRun, present_runs
from pages.parts.shell import links, resources
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.shell.page_table import page_of
from pages.parts.shell.people import recalled, remember
from pages.parts.widgets.files import exported

# -------------------- How much each layer changed by its depth, beside the paper's Figure 5


PAPER = "BERT-base on QQP, the paper's Fig 5"


def _layers(scores: Sequence[ChangeScore]) -> list[ChangeScore]:
    """Return the layer means of the first fine-tuned checkpoint."""
    layers = [
        score for score in scores if score.kind == "layer" and score.statistic == "cosine" and score.value is not None
    ]
    return [score for score in layers if score.after == layers[0].after]


def change_by_depth(scores: Sequence[ChangeScore], *, whose: str = "yours", bundled: bool = False) -> Any:
    """Return 1 minus the cosine of maps before and after fine-tuning, as layer means with intervals; depth is 0 to 1.

    `whose` names the line of these scores; `bundled`: they are from bundled samples.
    """
    layers = _layers(scores)
    task = task_name(layers[0].task)
    line_name = f"{whose} on {sampled(task) if bundled else task}"
    lines: list[dict[str, Any]] = [
        {"depth": score.layer / max(1, len(layers) - 1), "model": line_name,
         "value": _turned(score.value), "low": _turned(score.high), "high": _turned(score.low)}
        for score in layers
    ]  # fmt: skip
    paper = printed_changes()
    lines += [
        {"depth": k / (len(paper) - 1), "model": PAPER, "value": 1 - value, "low": 1 - value, "high": 1 - value}
        for k, value in enumerate(paper)
    ]
    axes = Axes(x="depth", y="value", low="low", high="high", colour="model", x_title="depth (0: first layer, 1: last)",
                y_title="1 − cosine")  # fmt: skip
    title = "How much fine-tuning changed the maps of each layer (band: 95 % CI)"
    return line_with_band(pd.DataFrame(lines), axes, title=title)


def _turned(likeness: float | None) -> float | None:
    return None if likeness is None else 1 - likeness


def sentence_of_depth(scores: Sequence[ChangeScore]) -> str:
    """Return which layer changed most here and in the paper, and what cannot be compared."""
    layers = _layers(scores)
    most = min(layers, key=lambda score: score.value or 0.0)
    paper = printed_changes()
    paper_layer = paper.index(min(paper))
    return (
        f"Here layer {most.layer + 1} of {len(layers)} changed most, in the paper layer {paper_layer + 1} of "
        f"{len(paper)}. Compare only the shapes of the curves, because models, tasks and the padding of maps differ."
    )


ROWS = "sst2"


def show(tools: DeltaGenerator) -> None:
    """Show the steps, each with its page and status, and the figure."""
    st.caption(
        "This guided path follows Kovaleva et al. 2019 in four steps, which take about an hour. Your progress is saved."
    )
    bar, figure = st.container(), st.container()
    with clear_errors():
        tuned, changed, ablated = _newest("finetune"), _newest("change"), _newest("disable")
        steps_done = [_look(), *map(_of_mine, (tuned, changed, ablated))]
        bar.progress(sum(steps_done) / len(steps_done), text=f"{sum(steps_done)} of {len(steps_done)} steps done")
        _step(2, "Fine-tune it on SST-2", steps_done[1], tuned, "finetuning/train",
              "Train the encoder to classify reviews as positive or negative. Press “Fine-tune” and keep the "
              "selected recipe. Then check whether the score is above that of a constant prediction.")  # fmt: skip
        _step(3, "See what changed", steps_done[2], changed, "finetuning/change",
              "Below the scores of your run, press “Show how attention changed”. Then find out which layers and "
              "which head changed most.")  # fmt: skip
        _step(4, "Ablate heads", steps_done[3], ablated, "interventions/ablation",
              "Choose your fine-tuned checkpoint and disable each head in turn (On a task). Then find out which "
              "heads the model needs, and whether the difference is significant. The bundled ablation is of one of "
              "the models of step 2, on fewer examples, so its score differs.")  # fmt: skip
        with figure:
            _figure(changed, is_mine=steps_done[2])


def _newest(study: str) -> StoredRun | None:
    """Return the user's newest result, otherwise a bundled one; if possible of the task and model of the path.

    Ablations must be of each head in turn.
    """
    stored = [run for run in present_runs(study) if study != "disable" or run.told.get("what", "heads") == "heads"]
    return min(
        stored,
        key=lambda run: (
            run.source != "yours",
            ROWS not in str(run.task),
            ENCODER not in str(run.checkpoint),
            study == "finetune" and len(run.told.get("initialisations") or ()) < 2,  # it varies one setting
        ),
        default=None,
    )


def _of_mine(stored: StoredRun | None) -> bool:
    return stored is not None and stored.source == "yours"


def _box(number: int, title: str, *, is_done: bool) -> DeltaGenerator:
    box = st.container(border=True, key=f"step_{number}")
    box.markdown(f"**Step {number}. {title}**" + (" :material/check_circle: done" if is_done else ""))
    return box


def _look() -> bool:
    """Ask which head attends most to the next token, and return whether the answer is right."""
    before = str(recalled().get("path_head", ""))
    scores = resources.shown(ENCODER, example.TEXT, example.PAIR).scores["next"]
    typed = st.session_state.get("path_head", before)
    right = _share(typed, scores) == float(np.nanmax(scores))
    with _box(1, "See what the heads attend to", is_done=right):
        st.markdown(
            "Each small map shows one head: the row token (query) attends to the column token (key). Find the head "
            "that attends most to the next token. *Order by* sorts the heads."
        )
        link_column, field = st.columns([2, 3], vertical_alignment="bottom")
        with link_column:
            links.link("maps", "Open Attention maps", checkpoint=ENCODER, text=example.TEXT, pair=example.PAIR)
        typed = field.text_input(
            "Head that attends most to the next token", before, key="path_head", placeholder="like L1H2", max_chars=12
        )
        if typed.strip():
            _judge(typed, scores)
    remember({"path_head": typed}, key="remember_path")
    return right


def _share(name: str, scores: np.ndarray) -> float | None:
    """Return the weight of a head on the next token, or None if there is no such head."""
    try:
        head = Head.parse(name)
        return float(scores[head.layer, head.head]) if head.layer >= 0 <= head.head else None
    except (AtlasError, IndexError):
        return None


def _judge(typed: str, scores: np.ndarray) -> None:
    share, most = _share(typed, scores), float(np.nanmax(scores))
    if share is None:
        st.error(plain(f"There is no head {typed.strip()[:12]!r}. Type a head such as L1H2, with layer 1 to "
                       f"{len(scores)} and head 1 to {scores.shape[1]}."), icon=":material/info:")  # fmt: skip
    elif share == most:
        st.success(
            f"Correct. This head gives {share:.2f} of its attention to the next token, more than any other head."
        )
    else:
        st.info(
            f"Not yet. This head gives {share:.2f} of its attention to the next token, but another head gives more."
        )


def _step(number: int, title: str, is_done: bool, stored: StoredRun | None, target: str, instruction: str) -> None:
    """Show one step: what to do on its page, and the result (a bundled one until then)."""
    with _box(number, title, is_done=is_done):
        st.markdown(instruction)
        link_column, result = st.columns([2, 3], vertical_alignment="center")
        with link_column:
            page, _, view = target.partition("/")
            links.link(target, f"Open {page_of(page).view(view).title}", checkpoint=ENCODER, rows=ROWS)
        if stored is not None:
            with result, nullcontext() if is_done else st.expander("Bundled result"):
                headline = stored_runs.headline_of(stored.run)
                whose = "Your result" if is_done else "Bundled result, until you have your own"
                about = f"{stored.checkpoint_said}, n = {headline.n:,} {headline.of}" if headline.n else ""
                finding = f"{whose}: {headline.sentence} {support(headline)}".strip()
                st.caption(plain(f"{finding} ({about or stored.checkpoint_said})"))
                open_link(stored, "Open this result")


def _figure(stored: StoredRun | None, *, is_mine: bool) -> None:
    """Show the change by depth with the published values, as a figure with its citation."""
    with st.container(border=True, key="path_figure"):
        st.markdown(
            f"**{'Your' if is_mine else 'The bundled'} result, plotted with the values from Kovaleva et al. 2019**"
        )
        if stored is None:
            st.info("The figure appears here after step 3 of the guided path.", icon=":material/insights:")
            return
        scores = stored.among(ChangeScore)
        whose = "yours" if is_mine else "the bundled result"
        chart = change_by_depth(scores, whose=whose, bundled=stored.sampled)
        st.altair_chart(chart)
        st.markdown(plain(sentence_of_depth(scores)))
        with st.container(horizontal=True, vertical_alignment="center"):
            st.download_button("Figure (SVG)", lambda: exported(chart, "svg"), "change-by-depth.svg", on_click="ignore",
                               icon=":material/download:")  # fmt: skip
            offer_citation(stored, key="cite_path")
