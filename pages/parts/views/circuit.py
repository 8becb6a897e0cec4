"""Circuit: which connections between components the prediction depends on."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core import capture
from core.attention import Head
from core.errors import InputError
from core.studies.ablation.perturb import made_of
from core.studies.circuits import circuit as circuits
from core.studies.circuits.circuit import OTHER_ROW, PAIR_KINDS, encoded, said_of_stability, texts_of
from core.studies.circuits.records import CircuitEdge, CircuitPair, CircuitSummary, EdgeMean, Faithfulness
from core.studies.contract import declared
from core.tasks.glue import TaskRow
from pages.parts.charts.curves import line_with_band
from pages.parts.charts.encoding import Axes, Layers
from pages.parts.charts.matrices import token_map
from pages.parts.disable.settings import shared_options
from pages.parts.reports.caveats import explain_difference, warn_of_tuning
from pages.parts.reports.stored_runs import StoredRun
from pages.parts.reports.study_view import details, show_study
from pages.parts.shell import resources, url
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets import job_progress
from pages.parts.widgets.files import show_files
from pages.parts.widgets.tables import show_table

# ---------------------------------------------------------------- A circuit as a layered picture


INPUTS = {"q": "query", "k": "key", "v": "value", "": "feed-forward or output"}
VERDICTS = {"matters": "matters", "open": "undecided", "does not matter": "does not matter"}
COLOURS, SEEN = ("#0072b2", "#8c8c8c", "#56b4e9"), {"matters": 1.0, "undecided": 0.6, "does not matter": 0.25}
ROW, COLUMN = 54, 76  # pixels between two rows of components, and two of a row
THICKEST = 9.0
ARROW = 0.6  # of an edge from its sender, where its arrow is
LEGEND = 60  # pixels of the legend below, beside which boxes would be pressed together


def place_of(name: str, layers: int, heads: int) -> tuple[float, float]:
    """Return the position of a component in the graph: column, and row from below."""
    middle = (heads - 1) / 2
    if name == "embeddings":
        return middle, 0.0
    if name == "output":
        return middle, 2.0 * layers + 1
    if name.endswith("-feedforward"):  # a column of their own, so that boxes do not overlap
        return heads + 0.4, 2.0 * int(name.removeprefix("L").removesuffix("-feedforward"))
    head = Head.parse(name)
    return float(head.head), 2.0 * head.layer + 1


def circuit_picture(edges: Sequence[CircuitEdge], layers: int, heads: int, *, title: str) -> Layers:
    """Return the graph of edges: width is the size of the effect, colour the verdict, and an arrow points to the
    receiver; edges that do not matter are faded."""
    names = dict.fromkeys(["embeddings", "output", *(name for edge in edges for name in (edge.sender, edge.receiver))])
    positions = {name: place_of(name, layers, heads) for name in names}
    nodes = pd.DataFrame([{"component": name, "x": x, "y": y} for name, (x, y) in positions.items()])
    largest = max((abs(edge.effect or 0.0) for edge in edges), default=1.0) or 1.0
    lines = pd.DataFrame(
        [_line(edge, positions, largest) for edge in edges],
        columns=["x", "y", "x2", "y2", "x_arrow", "y_arrow", "edge", "into", "effect", "size", "selection", "verdict",
                 "seen", "angle", "arrow"],
    )  # fmt: skip
    scale_x = alt.Scale(domain=[-0.6, heads + 1.0], nice=False)
    scale_y = alt.Scale(domain=[-0.6, 2 * layers + 1.6], nice=False)
    axes: dict[str, Any] = {"x": alt.X("x:Q", axis=None, scale=scale_x), "y": alt.Y("y:Q", axis=None, scale=scale_y)}
    below = alt.Legend(orient="bottom")
    present = [verdict for verdict in SEEN if verdict in set(lines["verdict"])]
    colour = alt.Scale(domain=present, range=[COLOURS[list(SEEN).index(verdict)] for verdict in present])
    drawn = alt.Chart(lines).mark_rule(strokeCap="round").encode(
        **axes, x2="x2:Q", y2="y2:Q",
        color=alt.Color("verdict:N", scale=colour, title="the edge", legend=below),
        strokeWidth=alt.StrokeWidth("size:Q", scale=None),
        opacity=alt.Opacity("seen:Q", scale=None),
        tooltip=["edge:N", "into:N", alt.Tooltip("effect:Q", format="+.3f"), "verdict:N",
                 alt.Tooltip("selection:Q", format=".2f")],
    )  # fmt: skip
    arrows = alt.Chart(lines).mark_point(shape="triangle", filled=True).encode(
        x=alt.X("x_arrow:Q", axis=None, scale=scale_x), y=alt.Y("y_arrow:Q", axis=None, scale=scale_y),
        angle=alt.Angle("angle:Q", scale=None), size=alt.Size("arrow:Q", scale=None),
        color=alt.Color("verdict:N", scale=colour, legend=None),
        opacity=alt.Opacity("seen:Q", scale=None),
    )  # fmt: skip
    boxes = alt.Chart(nodes).encode(**axes)
    back = boxes.mark_rect(width=62, height=20, fill="#ffffff", stroke="#888888", cornerRadius=4, xOffset=0)
    written = (
        boxes.mark_text(fontSize=11, color="#222222")
        .encode(text="label:N")
        .transform_calculate(label="replace(datum.component, 'feedforward', 'FF')")
    )
    return alt.layer(drawn, arrows, back, written).properties(
        title=title, width=COLUMN * (heads + 1), height=ROW * (2 * layers + 2) // 2 + LEGEND
    )


def _line(edge: CircuitEdge, positions: dict[str, tuple[float, float]], largest: float) -> dict[str, Any]:
    (x, y), (x2, y2) = positions[edge.sender], positions[edge.receiver]
    width = max(1.0, THICKEST * abs(edge.effect or 0.0) / largest)
    return {
        "x": x, "y": y, "x2": x2, "y2": y2, "x_arrow": x + ARROW * (x2 - x), "y_arrow": y + ARROW * (y2 - y),
        "angle": float(np.degrees(np.arctan2(COLUMN * (x2 - x), ROW / 2 * (y2 - y)))),  # clockwise from upward
        "edge": edge.name, "into": INPUTS[edge.input], "effect": edge.effect,
        "size": width, "arrow": (8 + 1.6 * width) ** 2, "selection": edge.selection,
        "verdict": VERDICTS[edge.verdict], "seen": SEEN[VERDICTS[edge.verdict]],
    }  # fmt: skip


SAID = declared(circuits.CircuitOptions)
USUAL, MOST = 40, 200  # edges that are drawn
SHOWN = ("name", "effect", "low", "high", "n", "verdict", "selection", "attribution")
MEANS = ("name", "pairs", "effect", "low", "high", "n")
ORDERS = {"effect": "strongest edges", "random": "random edges"}
WHOLE = 0.8  # of the logit difference, that a circuit should keep
USES = {"decides": "to test edges", "judges": "to evaluate circuits", "control": "as a control (same answer)"}


def show(tools: DeltaGenerator) -> None:
    """Show the circuit of the chosen checkpoint and task, and the form that finds another."""
    empty = "No circuit is stored yet. Choose a fine-tuned checkpoint and press “Find the circuit”."
    with clear_errors():
        show_study("circuit", draw, _start, empty=empty, key="circuit_run", icon=":material/account_tree:")


def _start() -> None:
    shared = shared_options()
    left, middle, right = st.columns(3)
    kind = url.pick(left.selectbox, "Second input of a pair", list(PAIR_KINDS), key="circuit_kind", default=OTHER_ROW,
                      help=SAID["kind"].help)  # fmt: skip
    answers = url.pick(middle.selectbox, "Answers of a pair", ["different", "same", "any"], key="circuit_answers",
                         help=SAID["answers"].help)  # fmt: skip
    margin = right.number_input("Margin (share of the difference)", 0.0, 1.0, 0.05, 0.01, key="circuit_margin",
                                bind="query-params", help=SAID["margin"].help)  # fmt: skip
    settings = {"kind": kind, "answers": answers, "margin": margin}
    job_progress.offer_start("circuit", asdict(shared) | settings if shared else None, "Find the circuit")


def draw(stored: StoredRun) -> None:
    """Show the faithfulness curve, the graph and the edges."""
    warn_of_tuning(stored)
    rows = stored.result_rows
    summary, edges = CircuitSummary.among(rows)[0], CircuitEdge.among(rows)
    ranked = sorted(edges, key=lambda edge: edge.rank)
    curve = Faithfulness.among(rows)
    left, right = st.columns([2, 3])
    points = [
        {"edges": point.size, "kept": point.value, "low": point.low, "high": point.high, "circuit": ORDERS[point.order]}
        for point in curve
        if point.order in ORDERS and point.size
    ]
    axes = Axes(x="edges", y="kept", low="low", high="high", colour="circuit", x_title="edges in the circuit",
                y_title="share of the logit difference")  # fmt: skip
    faithfulness_chart = line_with_band(
        pd.DataFrame(points), axes, title="Faithfulness of the circuit on held-out pairs", rule=1.0, log=True
    )
    left.altair_chart(faithfulness_chart)
    with left:
        st.caption(plain(_together(curve)))
        explain_difference(stored)
    most = min(MOST, len(ranked))
    with right:
        with st.container(horizontal=True, vertical_alignment="center"):
            telling = [edge for edge in ranked if edge.verdict != "does not matter"]
            is_all = st.toggle("Draw only the strongest edges", not telling, key="circuit_all", bind="query-params",
                               help="If off, the graph shows only edges that matter and undecided edges.")  # fmt: skip
            if is_all:
                size = st.slider("Edges", 1, most, min(USUAL, most), key="circuit_size", bind="query-params")
        layers = max(edge.receiver_layer for edge in ranked)
        heads = max((Head.parse(edge.receiver).head + 1 for edge in ranked if edge.input), default=1)
        shown, title = telling[:MOST], _title_of(telling)
        if is_all:
            shown, title = ranked[:size], f"The {size} strongest edges"
        graph = circuit_picture(shown, layers, heads, title=title)
        st.altair_chart(graph, width="stretch", key="circuit_picture")
        st.caption("Thicker edges have larger effects. FF: feed-forward sublayer.")
    with details():
        _details(stored, summary, ranked, curve, [graph, faithfulness_chart])


def _title_of(telling: Sequence[CircuitEdge]) -> str:
    """Return the title of the graph, which draws at most MOST of the edges that matter or are undecided."""
    if len(telling) > MOST:
        return f"The {MOST} strongest of {len(telling):,} edges that matter or are undecided"
    matter = sum(edge.verdict == "matters" for edge in telling)
    edges = "edge that matters" if matter == 1 else "edges that matter"
    return f"The {matter} {edges}, and the {len(telling) - matter} undecided edges; arrows point to the receiver"


def _together(curve: Sequence[Faithfulness]) -> str:
    """Return how many strong edges preserve most of the prediction, although few edges matter alone."""
    strongest = sorted((point for point in curve if point.order == "effect"), key=lambda point: point.size)
    enough = next((point for point in strongest if point.value >= WHOLE), None)
    random = {point.size: point.value for point in curve if point.order == "random"}
    if enough is None:
        return "No number of strong edges keeps most of the logit difference."
    as_many = random.get(enough.size)
    beside = "" if as_many is None else f" ({enough.size:,} random edges: {abs(as_many):.0%})"
    return (
        f"Few edges matter alone, but many are needed together: the {enough.size:,} strongest edges keep "
        f"{enough.value:.0%} of the logit difference{beside}."
    )


def _details(
    stored: StoredRun,
    summary: CircuitSummary,
    ranked: Sequence[CircuitEdge],
    curve: Sequence[Faithfulness],
    figures: list[Any],
) -> None:
    """Show stability, and the tables of edges, layers and pairs."""
    rows = stored.result_rows
    if summary.cpr is not None and summary.random_cpr is not None:
        st.markdown(
            f"The area under the faithfulness curve is {summary.cpr:.2f}, compared with "
            f"{summary.random_cpr:.2f} for random edges."
        )
    st.markdown(plain(said_of_stability(summary)))
    estimator = ranked[0].estimator or "mean, with the interval of another mean; run the study again"
    st.markdown(
        f"The estimator of edge effects is “{plain(estimator)}”. The confidence intervals of measured effects hold "
        "jointly for all edges. Large effects are clipped, so that a few pairs cannot dominate the result."
    )
    show_table(pd.DataFrame([{name: getattr(edge, name) for name in SHOWN} for edge in ranked[:MOST]]))
    if means := EdgeMean.among(rows):
        ranks = {edge.name: edge.rank for edge in ranked}
        means = sorted(means, key=lambda mean: (ranks[mean.name], mean.pairs))
        st.markdown(
            "**Mean effects without clipping**, for the edges that were measured on all pairs (95 % CI, not "
            "corrected for the number of edges)"
        )
        show_table(pd.DataFrame([{name: getattr(mean, name) for name in MEANS} for mean in means]))
    without = [point for point in curve if point.order.startswith("without")]
    show_table(
        [
            {"layer whose inputs are replaced": point.order.removeprefix("without "), "share": point.value}
            for point in without
        ]
    )
    show_files(pd.DataFrame(rows), figures, "circuit", of="Edges")
    _pairs(stored, ranked, CircuitPair.among(rows))
    st.caption(plain(_caption(stored, summary)))


def _pairs(stored: StoredRun, ranked: Sequence[CircuitEdge], pairs: Sequence[CircuitPair]) -> None:
    """Show the pairs of an edge, and maps of the receiving head for both inputs of one."""
    names = [edge.name for edge in ranked[:MOST]]
    left, right = st.columns(2)
    name = url.pick(left.selectbox, "Edge", names, key="circuit_edge")
    edge = next(edge for edge in ranked if edge.name == name)
    numbers = ["none", *(str(k + 1) for k in range(len(pairs)))]
    number = url.pick(right.selectbox, "Pair to open", numbers, key="circuit_pair")
    if number == "none":
        return
    head = edge.receiver if edge.input else edge.sender
    if not head.startswith("L") or "-" in head:
        st.info(
            f"The edge {plain(edge.name)} does not connect to a head, so it has no attention map.",
            icon=":material/help:",
        )
        return
    pair, options = pairs[int(number) - 1], circuits.STUDY.read(stored.told)
    for column, (letter, texts) in zip(st.columns(2), _texts(options, pair).items(), strict=True):
        column.markdown(plain(f"{letter}: {texts[0]}" + (f" / {texts[1]}" if texts[1] else "")))
        column.altair_chart(_map(str(stored.of), texts, Head.parse(head), f"{head} on {letter}"), width="content")
    st.caption(
        f"The logit difference is {pair.first_m:+.2f} on input A and {pair.second_m:+.2f} on input B. This pair is "
        f"used {plain(USES.get(pair.use, pair.use))}."
    )


def _texts(options: circuits.CircuitOptions, pair: CircuitPair) -> dict[str, tuple[str, str | None]]:
    if options.pairs_file and not Path(options.pairs_file).expanduser().is_file():
        raise InputError(
            f"The pairs file {options.pairs_file} no longer exists. Restore the file, or run the study again."
        )
    input_texts = texts_of(options)
    first, second = input_texts[pair.first]
    partner_text = second or (input_texts[pair.second][0] if pair.second >= 0 else None)
    if partner_text is None:
        partner_text = made_of(options.kind, TaskRow("", *first, 0), options.seed + pair.first, "[MASK]")
    return {"A": first, "B": partner_text or first}


def _map(name: str, texts: tuple[str, str | None], head: Head, title: str) -> Any:
    checkpoint = resources.checkpoint(name)
    encoding = encoded(checkpoint, texts)
    weights = capture.running.capture(checkpoint, encoding).weights[head.layer, head.head]
    return token_map(weights, encoding.tokens, encoding.tokens, title=title, marked=(0, 0))


def _caption(stored: StoredRun, summary: CircuitSummary) -> str:
    return (
        f"{stored.checkpoint} · {summary.task} {stored.split} · pairs by {summary.pairs_by}, {summary.answers} answers "
        f"· {summary.n} pairs for verdicts, {summary.judging} held-out pairs for the curve, {summary.control} "
        f"pairs with the same answer · margin {summary.margin:.3f} logits ({summary.margin_share:.0%} of the "
        f"difference) · effects clipped at {summary.clip:.3f} logits · all verdicts are jointly correct with "
        f"confidence {1 - summary.alpha:.0%}"
    )
