"""Probes: syntax in attention, properties in layers, similarity of vectors, and transfer."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.studies.attention.records import LayerSimilarity
from core.studies.headline import defined, percent
from core.studies.probing.records import (
    BestHeadTree,
    DrawnTree,
    HeadTree,
    LeftOutSentences,
    MixingWeight,
    ParsedScore,
    ProbedLayer,
    TreeDifference,
)
from core.studies.tuning.records import BestLayer, Transferred
from pages.parts.charts.curves import line_with_band, values_with_intervals
from pages.parts.charts.encoding import Axes, Layers, Shade
from pages.parts.charts.heads import head_picture
from pages.parts.reports.probing import caption_of, say, shown_probing, start_study, table_of
from pages.parts.reports.result_card import show_own_answer
from pages.parts.reports.stored_runs import StoredRun
from pages.parts.reports.study_view import details
from pages.parts.shell import url
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets.files import show_files
from pages.parts.widgets.tables import show_table

# ---------------------------------------------------------------- one sentence


def show_sentence(result: StoredRun) -> None:
    """Show a sentence of the test split with its trees; words can be clicked."""
    trees = result.among(DrawnTree)
    if not trees:
        st.info("This result has no sentence of 4 to 24 words, so no tree is drawn.", icon=":material/info:")
        return
    sentences = {str(number): " ".join(tree.words) for number, tree in enumerate(trees, 1)}
    number = url.pick(st.selectbox, "Sentence", sentences, key="sentence")
    tree = trees[int(number) - 1]
    right = sum(gold == drawn for gold, drawn in zip(tree.gold, tree.drawn, strict=True))
    probe = _named(result.among(ParsedScore), "attention")
    show_own_answer(
        "Which syntactic head does attention predict for each word?",
        [result.checkpoint_said, f"sentence {number} of {len(trees)}", result.date, result.origin],
        f"Attention predicts the syntactic head of {right} of the {len(tree.words)} words of this sentence.",
        f"Probe on the attention of all heads: {probe.value:.0%} of n = {probe.n:,} words in {probe.test} test "
        f"sentences (95 % CI {probe.low:.0%} to {probe.high:.0%}).",
        key="parsed_sentence",
        stored=result,
    )
    picked = st.altair_chart(
        tree_picture(tree), on_select="rerun", selection_mode="word", key=f"tree_{number}", width="content"
    )
    st.caption(
        "The tree above the words is the best tree of this probe, and the tree below is the gold tree. A vertical "
        "line marks the root. Click a word to see only its arcs."
    )
    clicked = [int(point["word"]) for point in picked.selection.get("word") or []]  # type: ignore[union-attr]
    chosen = clicked[0] if clicked else None
    st.markdown("Every word of the sentence" if chosen is None else "The chosen word and its dependents in either tree")
    show_table(words_table(tree, chosen))


def _named(scores: Sequence[ParsedScore], name: str) -> ParsedScore:
    return next(score for score in scores if score.name == name)


def show_syntax(result: StoredRun) -> None:
    """Show UAS of the probes with baselines, and single heads."""
    scores = result.among(ParsedScore)
    attention_scores = _named(scores, "attention")
    best, difference = result.among(BestHeadTree)[0], result.among(TreeDifference)[0]
    frame = pd.DataFrame(scores).sort_values("value", ascending=False)
    frame[["value", "low", "high"]] *= 100
    bars = values_with_intervals(
        frame,
        Axes(x="name", y="value", low="low", high="high", x_title="", y_title="words with the correct head, % (UAS)"),
        title="Share of words with the correct syntactic head",
        rule=100 * max(defined(score.value) for score in scores if score.kind == "baseline"),
        tooltip=["note", "kind"],
    )
    st.altair_chart(bars)
    st.caption(
        "The dashed line is the best simple baseline. The words come from a treebank, not from the examples that are "
        "chosen above."
    )
    interval = plain(percent(difference.low, difference.high, "{:.0f}"))
    less = "" if difference.value is None else f": {100 * difference.value:.0f} points less than all heads together"
    with details():
        st.markdown(
            "UAS (unlabelled attachment score) is the share of words whose predicted syntactic head is correct. The "
            f"spanning tree from the best attention head, {plain(best.name)}, has a UAS of "
            f"{best.value:.0%}{less}{f' ({interval})' if less and interval else ''}, if the direction of links is "
            "ignored."
        )
        st.markdown(
            "The baseline “Fixed offset per relation” uses the gold relation of each word and predicts the "
            "most frequent distance for this relation."
        )
        picture = head_picture(
            pd.DataFrame(result.among(HeadTree)),
            Shade("value", label="undirected UAS"),
            tooltip=("low", "high"),
            title="Undirected UAS of the spanning tree from each head (test split)",
        )
        st.altair_chart(picture, width="content")
        left_out = "; ".join(f"{row.name} {row.n} ({row.note})" for row in result.among(LeftOutSentences)) or "none"
        say(
            f"{caption_of(result)} · n = {attention_scores.n} words of {attention_scores.test} test sentences, no "
            f"punctuation · left out: {left_out}"
        )
        show_files(table_of(result, "probe", "baseline", "head", "best head", "difference"), [bars, picture], "syntax")


# -------------------- What layers know (a picture layer by property), how alike their vectors are, and what they


VALUES = {
    "value": "accuracy",
    "selectivity": "selectivity (accuracy minus control task)",
    "gain": "gain (accuracy minus random weights)",
}


def layer_picture(probed: Sequence[ProbedLayer], value: str, label: str) -> Layers:
    """Return a heatmap of property by layer, with numbers."""
    rows = pd.DataFrame(probed)
    least = min(0.0, float(rows[value].min()))
    base = alt.Chart(rows).encode(
        x=alt.X("layer:O", title="layer (0: embeddings)", axis=alt.Axis(labelAngle=0)),
        y=alt.Y(
            "property:N",
            sort=list(dict.fromkeys(layer.property for layer in probed)),
            title=None,
            axis=alt.Axis(labelLimit=260),
        ),
    )
    tips = [alt.Tooltip(f"{name}:{'N' if name == 'property' else 'Q'}") for name in
            ("property", "layer", "value", "low", "high", "control", "random_weights", "word_alone", "majority", "n")
            if rows[name].notna().any()]  # fmt: skip
    cells = base.mark_rect(stroke="gray", strokeOpacity=0.25).encode(
        color=alt.Color(f"{value}:Q", title=label, scale=alt.Scale(range="ramp", domain=[least, 1])), tooltip=tips
    )
    text = alt.Text(f"{value}:Q", format=".2f")
    halo = base.mark_text(fontSize=12, stroke="black", strokeWidth=3, strokeOpacity=0.6).encode(text=text)
    written = base.mark_text(fontSize=12, fill="white").encode(text=text)
    return alt.layer(cells, halo, written).properties(width=alt.Step(54), height=alt.Step(34))


def show_layers(result: StoredRun) -> None:
    """Show accuracy by layer and property, and the mixing weights of layers."""
    probed = result.among(ProbedLayer)
    left, right = st.columns(2)
    probes = list(dict.fromkeys(layer.probe for layer in probed))
    probe = url.pick(
        left.segmented_control, "Probe", probes, key="probe", default="linear", required=True, format_func=plain
    )
    value = url.pick(right.segmented_control, "Shown", VALUES, key="shown_value", required=True)
    probe_layers = [layer for layer in probed if layer.probe == probe]
    picture = layer_picture(probe_layers, value, VALUES[value])
    st.altair_chart(picture, width="content")
    st.caption(
        "For properties called “rules part”, the training sentences fit both a linear and a hierarchical rule. In the "
        "test sentences, the two rules predict different labels. A score of 0 means that the probe learned the "
        "linear rule, and a score of 1 the hierarchical rule."
    )
    st.caption("Hover over a cell to see its CI, control task and baselines.")
    weights = result.among(MixingWeight)
    centres, mixed = ([weight for weight in weights if weight.kind == kind] for kind in ("centre", "mixing"))
    if centres:
        mixing = line_with_band(
            pd.DataFrame(mixed),
            Axes(x="layer", y="value", colour="property", y_title="weight"),
            title="Weight of each layer in the learned mixture of layers",
            rule=mixed[0].uniform,
        )
        st.altair_chart(mixing)
        centre_texts = (
            f"{plain(centre.property)} {centre.value:.1f} ({centre.low:.1f} to {centre.high:.1f})" for centre in centres
        )
        st.markdown("Centre of gravity, in layers: " + "; ".join(centre_texts) + ".")
    counts = [layer.n for layer in probed]
    say(f"{caption_of(result)} · n = {min(counts)} to {max(counts)} words per property; 95 % CIs over sentences")
    show_files(table_of(result, "probe", "mixing", "centre"), [picture], "layers")


def show_representation(result: StoredRun) -> None:
    """Show cosines by layer, and the entropy of attention."""
    layers = result.among(LayerSimilarity)
    alike = [layer for layer in layers if "entropy" not in layer.similarity and "beyond" not in layer.similarity]
    first = line_with_band(
        pd.DataFrame(alike),
        Axes(x="layer", y="value", low="low", high="high", colour="similarity", y_title="mean cosine"),
        title="Mean cosine similarity between token vectors, by layer",
    )
    spread = line_with_band(
        pd.DataFrame([layer for layer in layers if "entropy" in layer.similarity]),
        Axes(x="layer", y="value", low="low", high="high", y_title="entropy, relative to uniform attention"),
        title="Mean entropy of attention, by layer",
        domain=(0, 1),
    )
    left, right = st.columns(2)
    left.altair_chart(first)
    right.altair_chart(spread)
    random = [layer.value for layer in alike if layer.similarity == "random pairs"]
    st.markdown(
        f"Tokens of different inputs have a mean cosine similarity of **{random[0]:.2f}** in the embeddings and "
        f"**{random[-1]:.2f}** in the last layer. A value near 1 means that all vectors point in nearly the same "
        f"direction."
    )
    say(f"{caption_of(result)} · n = {max(layer.n for layer in layers)} inputs; intervals over inputs")
    show_files(table_of(result, "layer"), [first, spread], "representation")


def show_transfer(result: StoredRun) -> None:
    """Show a classifier on each layer, and fine-tuning with frozen layers."""
    pictures, scores, best = [], result.among(Transferred), result.among(BestLayer)
    for task in dict.fromkeys(score.task for score in scores):
        task_scores = [score for score in scores if score.task == task]
        baseline = next(score for score in task_scores if score.kind == "baseline")
        classifiers, frozen = (
            [score for score in task_scores if score.kind == kind] for kind in ("classifier", "frozen")
        )
        axes = Axes(x="layer", y="value", low="low", high="high", colour="reading", y_title=baseline.metric)
        figures = [(classifiers, axes, f"{task}: score of a classifier on each layer, with frozen weights")]
        if frozen:
            axes = replace(axes, x="frozen", x_title="number of frozen layers", colour=None)
            figures.append((frozen, axes, f"{task}: score after fine-tuning only the layers above the frozen ones"))
        for column, (series, drawn, title) in zip(st.columns(2), figures, strict=False):
            chart = line_with_band(pd.DataFrame(series), drawn, title=title, rule=baseline.value)
            column.altair_chart(chart)
            pictures.append(chart)
        for layer in best:
            if layer.task == task and None not in (layer.low, layer.value, layer.high):
                st.markdown(plain(_gain(layer)))
    counts = [*(score.n for score in scores), *(layer.n for layer in best)]
    say(f"{caption_of(result)} · dashed: constant prediction · n = {max(counts)} dev examples")
    show_files(table_of(result), pictures, "transfer")


def _gain(best: BestLayer) -> str:
    return (
        f"{best.reading.capitalize()}: layer {best.layer} of {best.layers} is best on one half of the examples. On "
        f"the other half, its score differs from that of the last layer by {100 * float(best.value or 0):+.1f} points "
        f"(95 % CI {100 * float(best.low or 0):+.1f} to {100 * float(best.high or 0):+.1f})."
    )


VIEWS = {
    "Syntax in attention": ("syntax", "parsed", show_syntax),
    "One sentence": ("syntax", "parsed", show_sentence),
    "Layers": ("probe", "probed", show_layers),
    "Representation": ("representation", "represented", show_representation),
    "Transfer": ("transfer", "transferred", show_transfer),
}


def show(tools: DeltaGenerator) -> None:
    with tools:
        mode = url.pick_mode(list(VIEWS))
    study, key, draw = VIEWS[mode]
    with clear_errors(), shown_probing(study, key=key, answered=draw is not show_sentence) as result:
        if result is not None:
            draw(result)
            with details("What a probe shows"):
                st.markdown(
                    "A probe is a small classifier that predicts one property from what a model computes. A high "
                    "accuracy shows that the model encodes the property, but not that it uses the property."
                )
    start_study(study, view=study)


# ---------------------------------------------------------------- the drawn tree


PROBE, GOLD = "probe", "gold"
STEP, POINTS, ROOT_HEIGHT = 74, 21, 0.9
CLEAR = 0.45  # from the middle of a word to its arcs, in their unit: beyond its box, so that they cross no word
WIDEST, NARROWEST = 700, 56  # pixels of a sentence where its words allow it, and of a word
COLOURS = {"as in gold": "#009E73", "not in gold": "#D55E00", "gold": "#0072B2"}


def arcs(heads: Sequence[int], gold: Sequence[int], side: str) -> pd.DataFrame:
    """Return points of a half ellipse for every word with a governor, and of a vertical line for the root."""
    sign, rows = (1 if side == PROBE else -1), []
    for word, head in enumerate(heads):
        angles = np.linspace(0, np.pi, POINTS)
        if head == word:
            xs, ys = np.full(2, float(word)), np.array([0.0, max(1.0, ROOT_HEIGHT * len(heads) / 4)])
        else:
            xs = (word + head) / 2 + (word - head) / 2 * np.cos(angles)
            ys = np.sin(angles) * (0.35 + abs(word - head) / 2)
        kind = "gold" if side == GOLD else "as in gold" if head == gold[word] else "not in gold"
        for end in {word, int(head)}:  # once for each of its words, so that a click on either keeps it
            rows += [
                {"word": end, "x": float(x), "y": float(sign * (y + CLEAR)), "order": order, "drawn": kind,
                 "arc": f"{side}-{word}-{end}"} for order, (x, y) in enumerate(zip(xs, ys, strict=True))
            ]  # fmt: skip
    return pd.DataFrame(rows)


def tree_picture(tree: DrawnTree) -> alt.LayerChart:
    """Return one sentence with its predicted and its gold tree."""
    words = list(tree.words)
    step = max(NARROWEST, min(STEP, WIDEST // len(words)))
    lines = pd.concat([arcs(tree.drawn, tree.gold, PROBE), arcs(tree.gold, tree.gold, GOLD)])
    word_rows = pd.DataFrame([_told(tree, k) for k in range(len(words))])
    chosen = alt.selection_point(name="word", fields=["word"], on="click", toggle=False, empty=True)
    axis: dict[str, Any] = {"axis": None, "scale": alt.Scale(domain=[-0.6, len(words) - 0.4], nice=False)}
    tall = float(lines.y.abs().max()) + 0.3
    y: dict[str, Any] = {"axis": None, "scale": alt.Scale(domain=[-tall, tall], nice=False)}
    scale = alt.Scale(domain=list(COLOURS), range=list(COLOURS.values()))
    colour = alt.Color("drawn:N", title="arc", scale=scale, legend=alt.Legend(orient="top"))  # a sentence is wide
    drawn = (
        alt.Chart(lines)
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("x:Q", **axis),
            y=alt.Y("y:Q", **y),
            detail="arc:N",
            order="order:Q",
            color=colour,
            opacity=alt.condition(chosen, alt.value(1.0), alt.value(0.07)),
        )
    )
    tips = [alt.Tooltip(f"{name}:N") for name in ("text", "relation", "gold head", "probe head")]
    tips.append(alt.Tooltip("probability:Q", format=".2f"))
    base = alt.Chart(word_rows).encode(x=alt.X("x:Q", **axis), y=alt.Y("y:Q", **y), tooltip=tips)
    boxes = base.mark_rect(width=step - 14, height=22, fill="gray", cursor="pointer", cornerRadius=4).encode(
        fillOpacity=alt.condition(chosen, alt.value(0.5), alt.value(0.12), empty=False)
    )
    names = base.mark_text(fontSize=12, color="gray", limit=step - 8).encode(text="text:N").add_params(chosen)
    height = int(min(520, 60 + 44 * tall))
    return alt.layer(drawn, boxes, names).properties(width=step * len(words), height=height).configure_view(stroke=None)


def _told(tree: DrawnTree, word: int) -> dict[str, Any]:
    words, gold, drawn = tree.words, int(tree.gold[word]), int(tree.drawn[word])
    return {
        "word": word, "x": word, "y": 0, "text": words[word],
        "relation": tree.relations[word], "gold head": "(root)" if gold == word else words[gold],
        "probe head": "(root)" if drawn == word else words[drawn], "probability": tree.probability[word],
    }  # fmt: skip


def words_table(tree: DrawnTree, chosen: int | None) -> pd.DataFrame:
    """Return every word with both governors, or the chosen word and its dependents in either tree."""
    word_indices = [k for k in range(len(tree.words)) if chosen is None or chosen in (k, tree.gold[k], tree.drawn[k])]
    rows = pd.DataFrame([_told(tree, k) | {"right": tree.gold[k] == tree.drawn[k]} for k in word_indices])
    return rows[["text", "relation", "gold head", "probe head", "probability", "right"]]
