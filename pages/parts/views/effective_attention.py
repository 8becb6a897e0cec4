"""Effective attention: the part of an attention map that can change the output."""

from pathlib import Path

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core import config, studies
from core.models.config_files import heads_in, read_config
from core.scoring.definitions import TYPES
from core.scoring.effective import correlation
from core.studies.attention.records import LengthCorrelation, Score
from pages.parts.charts.encoding import Layers, Shade, category, tips
from pages.parts.charts.heads import head_picture
from pages.parts.maps import maps_grid
from pages.parts.reports import attending
from pages.parts.reports.stored_runs import StoredRun
from pages.parts.reports.study_view import details, show_study
from pages.parts.shell import context, resources, url
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets import job_progress, pickers
from pages.parts.widgets.files import show_files

KINDS = ("raw", "effective")


def show_effective(name: str, text: str, pair: str | None = None) -> None:
    """Show raw and effective attention of every head, and the difference. Raises InputError or CheckpointError."""
    raw = resources.shown(name, text, pair)
    weights, left = studies.attention.measures.both_maps(resources.checkpoint(name), raw.encoding)
    compared = maps_grid.raw_and_effective(raw, weights, left)
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
    picture = head_picture(rows, Shade("r", domain=(0, 1)), title="Pearson's r between raw and effective attention")
    st.altair_chart(picture, width="content")
    st.caption(
        f"{plain(name)} · {len(raw.maps)} tokens · "
        + ("each query is projected with the keys before it" if raw.maps.causal else "each query sees all keys")
    )


def lengths_picture(frame: pd.DataFrame, width: int | None) -> Layers:
    """Return mean r by length, with intervals and numbers of inputs; the line has a gap at the head dimension."""
    frame = frame.assign(side=frame["length"] > (width or 0), n=[f"n = {inputs}" for inputs in frame["inputs"]])
    task = category(frame, "task") if frame["task"].nunique() > 1 else alt.value("#0072B2")
    longest = max(float(frame["length"].max()), width or 0)
    x = alt.X("length:Q", title="length of the input in tokens", scale=alt.Scale(domain=[0, longest + 4], nice=False))
    base = alt.Chart(frame).encode(x=x, color=task)
    r = alt.Y("r:Q", title="mean of Pearson's r over heads", scale=alt.Scale(domain=[0, 1.08]),
              axis=alt.Axis(values=[0, 0.25, 0.5, 0.75, 1], format=".2f"))  # fmt: skip
    layers = [
        base.mark_line().encode(y=r, detail=["task:N", "side:N"]),
        base.mark_point(filled=True, size=70, opacity=1).encode(
            y=r, tooltip=tips(frame, "task", "tokens", "r", "low", "high", "inputs")
        ),
        base.mark_text(dy=-12, fontSize=11).encode(y=r, text="n:N", color=alt.value("gray")),
    ]
    if frame["low"].notna().any():
        layers.append(base.mark_rule(aria=False).encode(y="low:Q", y2="high:Q"))
    if width:
        edge = alt.Chart(pd.DataFrame({"length": [width]})).mark_rule(strokeDash=[5, 4], color="gray")
        layers.append(edge.encode(x="length:Q"))
    return alt.layer(*layers).properties(
        title="Pearson's r between raw and effective attention, by input length", height=300
    )


def draw(stored: StoredRun) -> None:
    """Show mean r by length, and raw and effective attention to token types on one scale."""
    rows = stored.result_rows
    lengths = LengthCorrelation.among(rows)
    width = _head_width(str(stored.checkpoint))
    figures: list = []
    if lengths:
        task = next((length.task for length in lengths if length.task == context.now().rows), None)
        lines = [
            {"tokens": f"{length.length_from} to {length.length_to}", "inputs": length.n, "r": length.mean,
             "length": (length.length_from + length.length_to) / 2, "low": length.low, "high": length.high,
             "task": attending.task_said(length.task, bundled=stored.sampled)}
            for length in lengths if task is None or length.task == task
        ]  # fmt: skip
        chart = lengths_picture(pd.DataFrame(lines), width)
        st.altair_chart(chart, key="by_length")
        st.caption(
            "Effective attention is the part of an attention map that can change the output. Each point is the mean "
            "over heads and over inputs of 8 successive lengths; the number above it is the number of inputs."
            + (f" Dashed line: the number of dimensions of a head, {width}. Up to this length, raw and effective "
               "attention are equal." if width else "")
        )  # fmt: skip
        figures.append(chart)
    with details():
        st.markdown(
            "Effective attention is the part of an attention map that can change the output (Brunner et al. 2020). For "
            "inputs with at most as many tokens as a head has dimensions, raw and effective attention are equal."
        )
        figures += _by_type(stored)
        show_files(pd.DataFrame(rows), figures, "effective")


def _head_width(checkpoint: str) -> int | None:
    """Return the head dimension from the config of a checkpoint on this machine, or None."""
    for folder in (config.BUNDLED_MODELS / checkpoint, Path(checkpoint)):
        if config.is_folder(folder) and (folder.expanduser() / "config.json").is_file():
            found = read_config(folder.expanduser(), folder.name)
            names = ("head_dim", "hidden_size", "n_embd", "d_model", "dim")
            sizes = {name: found[name] for name in names if isinstance(found.get(name), int)}
            return sizes.pop("head_dim", 0) or next((size // max(1, heads_in(found)) for size in sizes.values()), None)
    return None


def _by_type(stored: StoredRun) -> list:
    """Show raw attention, effective attention and their difference for one token type, on one scale."""
    token_type = url.pick(st.selectbox, "Attention to", TYPES, key="token_type")
    scores = [
        score
        for score in Score.of_heads(stored.result_rows)
        if score.feature == token_type and score.statistic in KINDS
    ]
    task = next((score.task for score in scores if score.task == context.now().rows), scores[0].task if scores else "")
    of_task = [score for score in scores if score.task == task]
    if not of_task:
        return []
    values = {
        kind: {score.name: float(score.value or 0) for score in of_task if score.statistic == kind} for kind in KINDS
    }
    most = max(max(found.values()) for found in values.values())
    frame = pd.DataFrame([
        {"layer": score.layer, "head": score.head, "raw": values["raw"][score.name],
         "effective": values["effective"][score.name],
         "difference": values["effective"][score.name] - values["raw"][score.name]}
        for score in of_task if score.statistic == "raw"
    ])  # fmt: skip
    figures, row = [], st.container(horizontal=True)
    for kind in (*KINDS, "difference"):
        shade = Shade(kind, kind, kind == "difference", (-most, most) if kind == "difference" else (0.0, most))
        figures.append(head_picture(frame, shade, title=f"{kind.capitalize()} attention"))
        row.container(width="content").altair_chart(figures[-1], width="content", key=f"type_{kind}")
    st.caption("The difference is effective attention minus raw attention.")
    return figures


def _start() -> None:
    name = context.now().checkpoint
    tasks = pickers.pick_tasks("sst2", key="effective_tasks")
    options = {"checkpoint": name, "tasks": tasks, "data": pickers.data_folder()}
    job_progress.offer_start(
        "effective",
        options if name and tasks else None,
        "Run",
        title=lambda: f"effective of {name} on {pickers.named(tasks, pickers.data_folder())}",
        key="start_effective",
        type="secondary",
    )


MODES = ("On a task", "One sentence")


def show(tools: DeltaGenerator) -> None:
    """Show the stored measurement on a task, or raw and effective maps of one sentence."""
    with tools:
        mode = url.pick_mode(MODES, default=MODES[1] if context.chosen().text else MODES[0])
    view_context = context.now()
    with clear_errors():
        if mode == MODES[0]:
            show_study("effective", draw, _start, key="effective_run", empty="No result is stored yet. Press “Run”.")
        elif view_context.checkpoint and (view_context.text or "").strip():
            show_effective(view_context.checkpoint, str(view_context.text), view_context.pair_or_none)
        else:
            st.info(
                "Type a text of about 40 words or more to compare raw and effective attention.",
                icon=":material/compare:",
            )
