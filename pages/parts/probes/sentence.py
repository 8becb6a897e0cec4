"""One sentence: the tree that the probe draws from attention beside the gold one."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from core.studies.probing.records import (
    BestHeadTree,
    DrawnTree,
    HeadTree,
    LeftOutSentences,
    ParsedScore,
    TreeDifference,
)
from pages.parts.charts.curves import values_with_intervals
from pages.parts.charts.encoding import Axes, Shade
from pages.parts.charts.heads import head_picture
from pages.parts.probes.shipped_probes import caption_of, pick_result, say, table_of
from pages.parts.probes.tree_picture import tree_picture, words_table
from pages.parts.reports.provenance import StoredRun
from pages.parts.shell import url
from pages.parts.shell.messages import plain
from pages.parts.widgets.files import show_files
from pages.parts.widgets.tables import show_table


def show_sentence() -> None:
    """Choose a sentence of the test part; click a word."""
    result = pick_result("syntax", key="parsed")
    if result is None:
        return
    trees = result.among(DrawnTree)
    if not trees:
        st.info("No sentence of this run is short enough to draw.", icon=":material/info:")
        return
    sentences = {str(number): " ".join(tree.words) for number, tree in enumerate(trees, 1)}
    number = url.pick(st.selectbox, "Sentence", sentences, key="sentence")
    tree = trees[int(number) - 1]
    right = sum(gold == drawn for gold, drawn in zip(tree.gold, tree.drawn, strict=True))
    st.markdown(f"**{right} of {len(tree.words)} words** have the governor that the treebank gives them.")
    picked = st.altair_chart(
        tree_picture(tree), on_select="rerun", selection_mode="word", key=f"tree_{number}", width="content"
    )
    st.caption(
        "Above the words: the best tree of the probe that sees all heads' attention and nothing else; below: gold. An "
        "upright line is the root. Click a word to keep its arcs alone."
    )
    clicked = [int(point["word"]) for point in picked.selection.get("word") or []]  # type: ignore[union-attr]
    chosen = clicked[0] if clicked else None
    st.markdown("Every word of the sentence" if chosen is None else "The chosen word and its dependents in either tree")
    show_table(words_table(tree, chosen))
    _score(result)


def _score(result: StoredRun) -> None:
    attention_scores = _named(result.among(ParsedScore), "attention")
    say(
        f"{caption_of(result)} · UAS of this probe on {attention_scores.test} test sentences "
        f"{attention_scores.value:.3f} ({attention_scores.low:.3f} to {attention_scores.high:.3f}), each word's "
        f"likeliest head; n = {attention_scores.n} words without punctuation"
    )


def _named(scores: Sequence[ParsedScore], name: str) -> ParsedScore:
    return next(score for score in scores if score.name == name)


def show_syntax() -> None:
    """UAS of the probes beside baselines; single heads."""
    result = pick_result("syntax", key="parsed")
    if result is None:
        return
    scores = result.among(ParsedScore)
    attention_scores, offset = _named(scores, "attention"), _named(scores, "one fixed offset")
    best, difference = result.among(BestHeadTree)[0], result.among(TreeDifference)[0]
    st.markdown(
        f"All heads together find **{attention_scores.value:.0%}** of governors; a fixed distance {offset.value:.0%}. "
        f"The best single head, {plain(best.name)}, joins {best.value:.0%} of words with their governor in its "
        f"spanning tree, {difference.value:.0%} less than all heads together ({difference.low:.0%} to "
        f"{difference.high:.0%})."
    )
    bars = values_with_intervals(
        pd.DataFrame(scores),
        Axes(x="name", y="value", low="low", high="high", x_title="", y_title="UAS"),
        title="Words with their gold governor",
        tooltip=["note"],
    )
    st.altair_chart(bars)
    picture = head_picture(
        pd.DataFrame(result.among(HeadTree)),
        Shade("value", label="undirected UAS"),
        tooltip=("low", "high"),
        title="Spanning tree of each head alone: undirected UAS on test",
    )
    st.altair_chart(picture, width="content")
    left = (
        "; ".join(f"{left_out.name} {left_out.n} ({left_out.note})" for left_out in result.among(LeftOutSentences))
        or "none"
    )
    say(
        f"{caption_of(result)} · n = {attention_scores.n} words of {attention_scores.test} test sentences, no "
        f"punctuation · left out: {left}"
    )
    show_files(table_of(result, "probe", "baseline", "head", "best head", "difference"), [bars, picture], "syntax")
