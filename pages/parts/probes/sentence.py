"""One sentence: the tree that the probe draws from attention beside the gold one."""

import pandas as pd
import streamlit as st

from pages.parts.charts.curves import bars_with_intervals
from pages.parts.charts.encoding import Axes, Shade
from pages.parts.charts.heads import head_picture
from pages.parts.probes.shipped import Result, pick_result, say
from pages.parts.probes.tree_picture import tree_picture, words_table
from pages.parts.widgets.files import show_files


def show_sentence() -> None:
    """Choose a sentence of the test part; click a word."""
    result = pick_result("syntax", key="parsed")
    if result is None:
        return
    trees = result.kind("tree").reset_index(drop=True)
    if trees.empty:
        st.info("No sentence of this run is short enough to draw.", icon=":material/info:")
        return
    number = st.selectbox(
        "Sentence", list(trees.index), format_func=lambda k: " ".join(trees.loc[k, "words"]), key="sentence",
        bind="query-params",
    )  # fmt: skip
    row = trees.loc[number]
    right = sum(gold == drawn for gold, drawn in zip(row["gold"], row["drawn"], strict=True))
    st.markdown(f"**{right} of {len(row['words'])} words** have the governor that the treebank gives them.")
    picked = st.altair_chart(tree_picture(row), on_select="rerun", selection_mode="word", key=f"tree_{number}",
                             width="content")  # fmt: skip
    st.caption(
        "Above the words: the best tree of the probe that sees all heads' attention and nothing else; below: gold. An "
        "upright line is the root. Click a word to keep its arcs alone."
    )
    points = picked["selection"].get("word") or []  # type: ignore[index]
    chosen = int(points[0]["word"]) if points else None
    st.markdown("Every word of the sentence" if chosen is None else "The chosen word and its dependents in either tree")
    st.dataframe(words_table(row, chosen), hide_index=True)
    _score(result)


def _score(result: Result) -> None:
    probe = result.kind("probe")
    alone = probe[probe["name"] == "attention"].iloc[0]
    say(f"{result.caption} · UAS of this probe on {int(alone['test'])} test sentences {alone['value']:.3f} "
        f"({alone['low']:.3f} to {alone['high']:.3f}), each word's likeliest head; n = {int(alone['n'])} words "
        "without punctuation")  # fmt: skip


def show_syntax() -> None:
    """UAS of the probes beside baselines; single heads."""
    result = pick_result("syntax", key="parsed")
    if result is None:
        return
    rows = result.kind("probe", "baseline")
    alone, offset = (rows[rows["name"] == name].iloc[0] for name in ("attention", "one fixed offset"))
    heads, (best, more) = result.kind("head"), (result.kind(kind).iloc[0] for kind in ("best head", "difference"))
    st.markdown(
        f"All heads together find **{alone['value']:.0%}** of governors; a fixed distance {offset['value']:.0%}. "
        f"The best single head, {best['name']}, joins {best['value']:.0%} of words with their governor in its spanning "
        f"tree, {more['value']:.0%} less than all heads together ({more['low']:.0%} to {more['high']:.0%})."
    )
    bars = bars_with_intervals(
        rows,
        Axes(x="name", y="value", low="low", high="high", x_title="", y_title="UAS"),
        title="Words with their gold governor",
        tooltip=["note"],
    )
    st.altair_chart(bars)
    picture = head_picture(
        heads.astype({"layer": int, "head": int}),
        Shade("value", label="undirected UAS"),
        tooltip=("low", "high"),
        title="Spanning tree of each head alone: undirected UAS on test",
    )
    st.altair_chart(picture, width="content")
    out = result.kind("left out")
    left = "; ".join(f"{row['name']} {row['n']} ({row['note']})" for _, row in out.iterrows()) if len(out) else "none"
    say(f"{result.caption} · n = {int(alone['n'])} words of {int(alone['test'])} test sentences, no punctuation · "
        f"left out: {left}")  # fmt: skip
    show_files(pd.concat([rows, heads, result.kind("best head", "difference")]), [bars, picture], "syntax")
