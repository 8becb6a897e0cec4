"""Counterparts: which head of another checkpoint corresponds to each head, and maps of both on one sentence."""

from collections.abc import Sequence

import altair as alt
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.attention import Head
from core.store.rows import Row
from core.studies.comparison.counterparts import STUDY
from core.studies.comparison.records import Counterpart, CounterpartsSummary, Recurrence
from pages.parts.charts.encoding import Layers, Shade
from pages.parts.charts.heads import head_picture
from pages.parts.charts.matrices import token_map
from pages.parts.reports.caveats import warn_of_tuning
from pages.parts.reports.stored_runs import StoredRun
from pages.parts.reports.study_view import drawer, shown_result
from pages.parts.shell import context, links, resources
from pages.parts.shell.links import say_missing
from pages.parts.shell.messages import clear_errors, plain, short_names
from pages.parts.widgets import job_progress, pickers
from pages.parts.widgets.files import show_files

# -------------------- Two layer x head pictures side by side, joined by ribbons from each head to its counterpart


WIDTH, GAP, CELL = 860, 4, 30  # pixels; columns between the two pictures
NAMED = 24  # pixels of a square that has room for the name of a head
AROUND = 110  # pixels of title and legend, which are fitted into a chart's height


def ribbons(frame: pd.DataFrame, *, first: str, second: str, highlight: str | None = None) -> Layers:
    """Return the heads of two checkpoints, and lines between matched heads.

    `frame` has one row per head of the first: layer, head, match_layer, match_head (zero-based or None), similarity,
    margin, p, matched, best_layer, best_head; others_layers and others_heads are the shape of the other. A click
    selects "cell" (name).
    """
    heads, shape = int(frame["head"].max()) + 1, (int(frame["others_layers"][0]), int(frame["others_heads"][0]))
    drawn = frame.assign(
        x=frame["head"] + 1,
        y=frame["layer"] + 1,
        x2=heads + GAP + frame["match_head"] + 1,
        y2=frame["match_layer"] + 1,
        name=[f"L{a + 1}H{b + 1}" for a, b in zip(frame["layer"], frame["head"], strict=True)],
        counterpart=[
            "none" if a != a else f"L{int(a) + 1}H{int(b) + 1}"
            for a, b in zip(frame["match_layer"], frame["match_head"], strict=True)
        ],
        found=["counterpart" if yes else "no counterpart" for yes in frame["matched"]],
    )
    strong = drawn["name"] == highlight
    kind = alt.Scale(domain=["counterpart", "no counterpart"], range=["#0072B2", "#8C8C8C"])
    colour = alt.Color("found:N", scale=kind, title=None, legend=alt.Legend(orient="top", labelLimit=400))
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0.4, heads + GAP + shape[1] + 0.6], nice=False))
    deepest = max(int(drawn["y"].max()), shape[0])
    y = alt.Y(
        "y:Q",
        title="layer",
        scale=alt.Scale(domain=[0.4, deepest + 0.6], reverse=True, nice=False),
        axis=alt.Axis(values=list(range(1, deepest + 1)), format="d", grid=False, labelOverlap=deepest > 24),
    )
    read = ["name:N", "counterpart:N", *(alt.Tooltip(f"{k}:Q", format=".3~g") for k in ("similarity", "margin", "p"))]
    thick = alt.condition(f"datum.name === '{highlight}'", alt.value(5), alt.value(2))
    matched = drawn[drawn["matched"] & drawn["x2"].notna()]
    lines = alt.Chart(matched).mark_rule(strokeCap="round").encode(
        x=x, y=y, x2="x2:Q", y2="y2:Q", color=colour, tooltip=read, strokeWidth=thick,
    )  # fmt: skip
    side = min(CELL, (WIDTH - 60) // (heads + GAP + shape[1])) - 3
    cells = alt.Chart(drawn).mark_square(size=side**2, opacity=1, stroke="gray", strokeOpacity=0.4, cursor="pointer")
    cells = cells.encode(x=x, y=y, color=colour, tooltip=read).add_params(
        alt.selection_point(name="cell", fields=["name"], on="click", toggle=False)
    )
    second_heads = pd.DataFrame([{"x": heads + GAP + b + 1, "y": a + 1, "name": f"L{a + 1}H{b + 1}"}
                                 for a in range(shape[0]) for b in range(shape[1])])  # fmt: skip
    found = set(matched["counterpart"])
    second_heads["found"] = ["counterpart" if n in found else "no counterpart" for n in second_heads["name"]]
    second_squares = alt.Chart(second_heads).mark_square(size=side**2, opacity=1, stroke="gray", strokeOpacity=0.4)
    second_squares = second_squares.encode(x=x, y=y, color=colour, tooltip=["name:N"])
    ring = (
        alt.Chart(drawn[strong])
        .mark_square(size=(side + 4) ** 2, filled=False, stroke="#D55E00", strokeWidth=2.5, aria=False)
        .encode(x=x, y=y)
    )
    ends = pd.concat([matched[["x", "y", "counterpart"]].rename(columns={"counterpart": "other"}),
                      matched[["x2", "y2", "name"]].set_axis(["x", "y", "other"], axis=1)])  # fmt: skip
    names = alt.Chart(ends if side >= NAMED else ends[:0]).mark_text(fontSize=9, color="#ffffff", aria=False)
    return alt.layer(lines, cells, second_squares, names.encode(x=x, y=y, text="other:N"), ring).properties(
        width=min(WIDTH, (heads + GAP + shape[1]) * CELL),
        height=CELL * deepest + AROUND,
        title=f"{first} (left) and {second} (right); a line joins a head to its counterpart"
        + ", whose name is in the square" * (side >= NAMED),
    )


SENTENCE = "The old dog saw the small engine and did not stop."
MOST_TOKENS = 48


def start() -> None:
    """Compare the two checkpoints of the context on its examples."""
    view_context = context.now()
    if not view_context.beside or view_context.beside == view_context.checkpoint:
        st.caption(
            "Choose another checkpoint under “compare with” at the top of the page. Then heads of this checkpoint "
            "can be matched one to one with heads of that checkpoint."
        )
        return
    options = {
        "checkpoint": view_context.checkpoint,
        "compare": view_context.beside,
        "tasks": [view_context.rows or "sst2"],
        "data": pickers.data_folder(),
    }
    job_progress.offer_start(
        "counterparts", options, f"Match the heads of {view_context.checkpoint} with those of {view_context.beside}"
    )


def picture(heads: Sequence[Counterpart], summary: CounterpartsSummary) -> Counterpart:
    """Show both heatmaps with their lines; return the head that was clicked, or that of the context."""
    by_name = {head.name: head for head in heads}
    named_heads = context.heads_named(context.now().head or "")
    first = st.session_state.get("_counterpart_of") or (str(named_heads[0]) if named_heads else "")
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
        st.session_state["_counterpart_of"] = clicked[0]["name"]
        st.rerun()
    return chosen


def both_maps(chosen: Counterpart) -> None:
    """Show the maps of a head and its counterpart for one sentence, with links."""
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
    if chosen.match_layer is None or chosen.similarity is None:
        return (
            f"{chosen.name} has no match, because {chosen.compare} has fewer heads and all of them are matched "
            f"with other heads."
        )
    verdict = (
        "a counterpart"
        if chosen.matched
        else "no significant counterpart that is the same in both halves of the inputs"
    )
    low, high = (f"{end or 0:.2f}" for end in (chosen.low, chosen.high))
    if low == high:
        low, high = (f"{end or 0:.3f}" for end in (chosen.low, chosen.high))
    interval = "" if chosen.low is None else f" (95 % CI {low} to {high}, n = {chosen.n} inputs)"
    margin = chosen.margin or 0.0
    p = "" if chosen.p is None else f" Compared with random weights: p = {chosen.p:.2f}, corrected for all heads."
    return (
        f"{chosen.name} has {verdict}: its similarity with {chosen.match} is {chosen.similarity:.2f}{interval}, which "
        f"is {abs(margin):.2f} {'less' if margin < 0 else 'more'} than with the next best head.{p}"
    )


def recurring(rows: Sequence[Row]) -> None:
    """Show in how many of several other checkpoints each head has a counterpart."""
    recurrences = Recurrence.among(rows)
    headline = STUDY.headline(rows)
    if not recurrences or headline is None:
        return
    st.markdown(plain(headline.sentence))
    frame = pd.DataFrame([vars(recurrence) for recurrence in recurrences])
    shade = Shade("found", domain=(0.0, float(recurrences[0].runs)), label=f"of {recurrences[0].runs}")
    st.altair_chart(head_picture(frame, shade, title="Number of other checkpoints in which each head has a counterpart",
                                 tooltip=("share", "low", "high", "same_place")), width="content")  # fmt: skip


def results(stored: StoredRun) -> None:
    rows = stored.result_rows
    summaries = {summary.compare: summary for summary in CounterpartsSummary.among(rows)}
    if not summaries:
        st.info("This stored comparison contains no heads. Run the comparison again.")
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
    with drawer("Match the heads of two checkpoints", "counterparts"):
        start()
    job_progress.show_jobs("counterparts")
    with (
        clear_errors(),
        shown_result(
            "counterparts",
            "No comparison is stored yet. Choose a checkpoint under “compare with” at the top of the page, and "
            "press “Match”.",
            icon=":material/compare_arrows:",
        ) as stored,
    ):
        if stored is not None:
            warn_of_tuning(stored)
            results(stored)
