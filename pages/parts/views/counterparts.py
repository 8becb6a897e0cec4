"""Counterparts: which head of another checkpoint is which of this one, and both heads' maps on one sentence."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.attention import Head
from core.store.rows import Row
from core.studies.comparison.match import STUDY
from core.studies.comparison.records import Counterpart, MatchSummary, Recurrence
from pages.parts.charts.encoding import Shade
from pages.parts.charts.heads import head_picture
from pages.parts.charts.ribbons import ribbons
from pages.parts.charts.score_terms import token_map
from pages.parts.reports.at_chance import warn_of_tuning
from pages.parts.reports.provenance import StoredRun
from pages.parts.reports.stored_runs import drawer, pick_run
from pages.parts.shell import context, links, resources
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.shell.short_names import short_names
from pages.parts.widgets import job_progress, pickers
from pages.parts.widgets.files import show_files
from pages.parts.widgets.head_links import say_missing

SENTENCE = "The old dog saw the small engine and did not stop."
MOST_TOKENS = 48


def start() -> None:
    """Compare the context's two checkpoints; the rows are the context's."""
    view_context = context.now()
    if not view_context.beside or view_context.beside == view_context.checkpoint:
        st.caption(
            "Choose another checkpoint in the line above (compare with): its heads are looked for in this one's."
        )
        return
    options = {
        "checkpoint": view_context.checkpoint,
        "compare": view_context.beside,
        "tasks": [view_context.rows or "sst2"],
        "data": pickers.data_folder(),
    }
    job_progress.offer_start(
        "match", options, f"Match the heads of {view_context.checkpoint} with those of {view_context.beside}"
    )


def picture(heads: Sequence[Counterpart], summary: MatchSummary) -> Counterpart:
    """Both pictures and their ribbons; the head that was clicked, or that the context names."""
    by_name = {head.name: head for head in heads}
    named_heads = context.heads_named(context.now().head or "")
    first = st.session_state.get("counterpart_of") or (str(named_heads[0]) if named_heads else "")
    chosen = by_name.get(first) or max(heads, key=lambda head: head.similarity or 0)
    frame = pd.DataFrame([vars(head) for head in heads])
    layers = 1 + max(max(head.best_layer, head.match_layer or 0) for head in heads)
    width = max(summary.others // max(layers, 1), 1 + max(max(head.best_head, head.match_head or 0) for head in heads))
    frame = frame.assign(others_layers=max(layers, summary.others // width), others_heads=width)
    short = short_names([summary.checkpoint, summary.compare])
    chart = ribbons(frame, first=short[summary.checkpoint], second=short[summary.compare], highlight=chosen.name)
    picked = st.altair_chart(chart, on_select="rerun", selection_mode="cell", key="ribbons")
    clicked = picked.selection.get("cell") or []
    if clicked and clicked[0]["name"] in by_name and clicked[0]["name"] != chosen.name:
        st.session_state.counterpart_of = clicked[0]["name"]
        st.rerun()
    return chosen


def both_maps(chosen: Counterpart) -> None:
    """The head's map and its counterpart's on one sentence, and a link to each."""
    text = st.text_input("Sentence", SENTENCE, key="counterpart_text", max_chars=300)
    sides = [(chosen.checkpoint, Head(chosen.layer, chosen.head))]
    if chosen.match_layer is not None and chosen.match_head is not None:
        sides.append((chosen.compare, Head(chosen.match_layer, chosen.match_head)))
    maps_row = st.container(horizontal=True)  # one below the other where the window is narrow
    for name, head in sides:
        with maps_row.container(width="content"), clear_errors():
            if say_missing(name):
                continue
            maps = resources.shown(name, text or SENTENCE, most=MOST_TOKENS).maps
            weights = maps.weights[head.layer, head.head]
            drawn = token_map(weights, maps.tokens, maps.tokens, title=f"{head} of {name}")
            st.altair_chart(drawn, width="content")
            links.link("heads/one", f"{head} of {name}", checkpoint=name, head=str(head))


def match_sentence(chosen: Counterpart) -> str:
    """One head's match in a sentence."""
    if chosen.match_layer is None or chosen.similarity is None:
        return f"{chosen.name} has no match: {chosen.compare} has fewer heads, and none is left."
    verdict = (
        "a counterpart" if chosen.matched else "no counterpart beyond chance that both halves of the inputs agree on"
    )
    interval = "" if chosen.low is None else f" ({chosen.low:.2f} to {chosen.high:.2f})"
    p = "" if chosen.p is None else f", p = {chosen.p:.2f} beside random weights, over all heads"
    return (
        f"{chosen.name} has {verdict}: matched with {chosen.match}, similarity {chosen.similarity:.2f}{interval}, "
        f"margin {chosen.margin or 0:+.2f}{p}; n = {chosen.n} inputs."
    )


def recurring(rows: Sequence[Row]) -> None:
    """Of several other checkpoints, in how many each head was found again."""
    recurrences = Recurrence.among(rows)
    headline = STUDY.headline(rows)
    if not recurrences or headline is None:
        return
    st.markdown(plain(headline.sentence))
    frame = pd.DataFrame([vars(recurrence) for recurrence in recurrences])
    shade = Shade("found", domain=(0.0, float(recurrences[0].runs)), label=f"of {recurrences[0].runs}")
    st.altair_chart(head_picture(frame, shade, title="Other checkpoints that have the head again",
                                 tooltip=("share", "low", "high", "same_place")), width="content")  # fmt: skip


def results(stored: StoredRun) -> None:
    """A stored comparison."""
    rows = stored.result_rows
    summaries = {summary.compare: summary for summary in MatchSummary.among(rows)}
    if not summaries:
        st.info("This comparison has no heads: run it again.")
        return
    recurring(rows)
    other_checkpoint = next(iter(summaries))
    if len(summaries) > 1:
        short = short_names(list(summaries))
        other_checkpoint = st.selectbox(
            "Counterparts in", list(summaries), key="counterparts_in", format_func=short.__getitem__
        )
    heads = [head for head in Counterpart.among(rows) if head.compare == other_checkpoint]
    chosen = picture(heads, summaries[other_checkpoint])
    st.markdown(plain(match_sentence(chosen)))
    both_maps(chosen)
    show_files(pd.DataFrame([head.as_row() for head in heads]), [], "counterparts")


def show(tools: DeltaGenerator) -> None:
    """The view."""
    with drawer("Match the heads of two checkpoints", "match"):
        start()
    job_progress.show_jobs("match")
    with clear_errors():
        stored = pick_run(
            "match",
            "No checkpoints were compared yet: choose the one to compare with in the line above, and press Match.",
            icon=":material/compare_arrows:",
        )
        if stored is not None:
            warn_of_tuning(stored)
            results(stored)
