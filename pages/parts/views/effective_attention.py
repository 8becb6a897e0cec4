"""Effective attention: what is left of a map when the part that cannot reach the output is taken away."""

from functools import partial

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core import studies
from core.scoring.definitions import TYPES
from core.scoring.effective import correlation
from core.studies.attention.records import LengthCorrelation, Score
from pages.parts.charts.curves import line_with_band
from pages.parts.charts.encoding import Axes, Shade
from pages.parts.charts.heads import head_picture
from pages.parts.maps import maps_grid, panes
from pages.parts.reports import attending
from pages.parts.reports.stored_runs import pick_run
from pages.parts.shell import context, resources, url
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets import job_progress, pickers
from pages.parts.widgets.files import show_files

# ---------------------------------------------------------------- raw and effective attention side by side


def show_effective(name: str, text: str, pair: str | None = None) -> None:
    """Every head raw, effective and the difference; each head's correlation. Errors: InputError, CheckpointError."""
    raw = resources.shown(name, text, pair)
    weights, left = studies.attention.measures.both_maps(resources.checkpoint(name), raw.encoding)
    compared = panes.raw_and_effective(raw, weights, left)
    caption = (text if pair is None else f"{text} | {pair}")[:200]
    maps_grid.show_kept(compared.panes, caption=caption, key="effective", note=compared.note, head="none")
    rows = pd.DataFrame(
        {
            "layer": layer,
            "head": head,
            "r": correlation(weights[layer, head], left[layer, head], causal=raw.maps.causal),
        }
        for layer, head in np.ndindex(*weights.shape[:2])
    )
    picture = head_picture(rows, Shade("r", domain=(0, 1)), title="Pearson r of raw and effective")
    st.altair_chart(picture, width="content")
    st.caption(
        f"{plain(name)} · {len(raw.maps)} tokens · "
        + ("each query is projected with the keys it sees" if raw.maps.causal else "every query sees every key")
    )


def show_stored() -> None:
    """Mean raw and effective attention to token types, and r by length, of the newest stored run."""
    with st.expander("Run effective attention on task rows", icon=":material/play_circle:"):
        _start()
    if job := st.session_state.get("job_effective"):
        job_progress.show_job(job, rows=False)
    picked = pick_run("effective", "Nothing has been measured on a task's rows yet.", "effective_run")
    if picked is None:
        return
    rows = picked.result_rows
    drawn: list = []
    lengths = LengthCorrelation.among(rows)
    if lengths:
        lines = [
            {
                "length_from": length.length_from,
                "mean": length.mean,
                "of": attending.place_title((str(length.checkpoint), str(length.task)), bundled=picked.sampled),
            }
            for length in lengths
        ]
        chart = line_with_band(
            pd.DataFrame(lines),
            Axes(x="length_from", y="mean", colour="of", x_title="length in tokens, from", y_title="mean r"),
            title="Pearson r of raw and effective attention",
        )
        st.altair_chart(chart)
        drawn.append(chart)
    token_type = url.pick(st.selectbox, "Attention to", TYPES, key="token_type")
    for kind in ("raw", "effective"):
        kind_scores = [
            score
            for score in Score.among(rows)
            if score.statistic == kind and score.feature == token_type and score.layer is not None
        ]
        if kind_scores:
            st.markdown(f"**{kind.capitalize()}**")
            drawn += attending.pictures(
                kind_scores,
                "value",
                f"{kind} attention",
                title=partial(attending.place_title, bundled=picked.sampled),
            )
    show_files(pd.DataFrame(rows), drawn, "effective")
    st.caption(f"{plain(picked.of)} · n = {plain(picked.inputs)} inputs · {picked.date}")


def _start() -> None:
    name = context.now().checkpoint
    tasks = pickers.pick_tasks("mrpc", key="effective_tasks")
    options = {"checkpoint": name, "tasks": tasks, "data": pickers.data_folder()}
    job_progress.offer_start(
        "effective",
        options if name and tasks else None,
        "Run",
        title=lambda: f"effective of {name} on {pickers.named(tasks, pickers.data_folder())}",
        keep_as="job_effective",
        key="start_effective",
        type="secondary",
    )


def show(tools: DeltaGenerator) -> None:
    """Raw and effective maps of the context's sentence, then the stored measurements on rows."""
    st.caption(
        "What is left of a map when the part that cannot reach the output is taken away (Brunner et al. 2020); inputs "
        "of no more tokens than a head has dimensions lose nothing."
    )
    view_context = context.now()
    with clear_errors():
        if view_context.checkpoint and (view_context.text or "").strip():
            show_effective(view_context.checkpoint, str(view_context.text), view_context.pair_or_none)
        else:
            st.info(
                "Type a text of about 40 words or more above, to see raw and effective attention side by side.",
                icon=":material/compare:",
            )
        show_stored()
