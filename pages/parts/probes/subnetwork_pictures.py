"""The pictures of the Subnetworks page."""

import pandas as pd
import streamlit as st

from core.attention import Head
from pages.parts.charts.curves import bars_with_intervals, line_with_band
from pages.parts.charts.encoding import Axes, Shade
from pages.parts.charts.heads import head_picture
from pages.parts.probes.shipped import Result, say
from pages.parts.widgets.files import show_files


def warn_of_nothing_to_lose(result: Result) -> None:
    """Where the unpruned model is no better than the constant predictor, pruning can show nothing."""
    rows = result.kind("subnetwork", "curve")
    for _, row in rows[(rows["name"] == "full") | (rows["share"] == 0)].head(1).iterrows():
        if pd.notna(row["constant"]) and not row["low"] > row["constant"]:
            st.warning(
                f"Nothing can be lost here: the unpruned model's {row['value']:.3f} ({row['low']:.3f} to "
                f"{row['high']:.3f}) is not above the constant predictor's {row['constant']:.3f}: give more rows.",
                icon=":material/warning:",
            )


def show_curves(result: Result) -> None:
    """The score against the share of weights that are gone."""
    rows = result.kind("curve")
    if rows.empty:
        st.info("This run pruned nothing by magnitude.", icon=":material/info:")
        return
    metric, constant = str(rows["metric"].iloc[0]), rows["constant"].iloc[0]
    drawn = rows.assign(percent=100 * rows["share"], of=rows["moment"] + " fine-tuning, " + rows["scope"])
    chart = line_with_band(
        drawn,
        Axes(x="percent", y="value", low="low", high="high", colour="of", x_title="% of weights gone", y_title=metric),
        title="Weights nearest to 0 go first",
        rule=None if pd.isna(constant) else float(constant),
    )
    st.altair_chart(chart)
    for name, some in drawn.groupby("of", sort=False):
        st.markdown(f"{str(name).capitalize()}: {free_share(some)}")
    n, seeds = int(rows["n"].max()), int(rows["seeds"].max())
    say(f"{result.caption} · dashed: the constant predictor · n = {n} dev rows, {seeds} seed{'s' * (seeds > 1)}")
    show_files(rows, [chart], "pruning")


def free_share(rows: pd.DataFrame) -> str:
    """How much goes before the score has fallen beyond luck: a sentence."""
    ordered = rows.sort_values("share")
    lost = ordered[ordered["change_high"] < 0] if "change_high" in ordered else ordered.iloc[:0]
    if lost.empty:
        return f"up to {ordered['percent'].max():.0f} % go before the score has fallen beyond luck (95 %)."
    first = lost.iloc[0]
    before = ordered[ordered["share"] < first["share"]]
    ends = " to ".join(f"{100 * first[end]:+.1f}" for end in ("change_low", "change_high"))
    return (
        f"{before['percent'].max():.0f} % go before the score has fallen beyond luck; at {first['percent']:.0f} % it "
        f"has changed by {100 * first['change']:+.1f} points ({ends})."
    )


def show_networks(result: Result) -> None:
    """Good, bad and random subnetworks, which components survived, and what their maps look like."""
    rows = result.kind("subnetwork")
    if rows.empty:
        st.info("This run made no subnetworks.", icon=":material/info:")
        return
    constant = rows["constant"].iloc[0]
    bars = bars_with_intervals(
        rows,
        Axes(x="name", y="value", low="low", high="high", x_title="", y_title=str(rows["metric"].iloc[0])),
        title="Retrained from the pre-trained weights",
        rule=None if pd.isna(constant) else float(constant),
        tooltip=["share"],
    )
    left, right = st.columns([3, 2])
    left.altair_chart(bars)
    with right:
        _survivors(result)
    for _, row in result.kind("difference").iterrows():
        st.markdown(f"{row['name'].capitalize()}: {100 * row['value']:+.1f} points ({100 * row['low']:+.1f} to "
                    f"{100 * row['high']:+.1f})")  # fmt: skip
    gone = rows[rows["name"] == "good"]["share"]
    n, seeds = int(rows["n"].max()), int(rows["seeds"].max())
    say(f"{result.caption} · dashed: the constant predictor · the others lack {float(gone.iloc[0]):.0%} of heads "
        f"and feed-forward blocks · n = {n} dev rows, {seeds} seed{'s' * (seeds > 1)}")  # fmt: skip
    classes = result.kind("survivor class")
    if len(classes):
        st.altair_chart(
            bars_with_intervals(
                classes,
                Axes(
                    x="name",
                    y="value",
                    low="low",
                    high="high",
                    x_title="pattern class",
                    y_title="share, survivors less the others",
                ),
                rule=0.0,
                title="Maps of heads that survive, by pattern class",
            )
        )
        say(f"n = {int(classes['n'].max())} inputs; classes by the bundled pattern classifier")
    show_files(result.kind("subnetwork", "difference", "component", "survivor class"), [bars], "subnetworks")


def _survivors(result: Result) -> None:
    rows = result.kind("component")
    heads = rows[~rows["name"].str.contains("-")]
    named = [Head.parse(name) for name in heads["name"]]
    drawn = heads.assign(layer=[head.layer for head in named], head=[head.head for head in named])
    st.altair_chart(
        head_picture(
            drawn,
            Shade("value", label="survived", domain=(0, 1), cell=34),
            tooltip=("place", "n"),
            title="In which share of seeds a head survives",
        ),
        width="content",
    )
    blocks = rows[rows["name"].str.contains("-") & (rows["value"] > 0)]
    kept = ", ".join(blocks["name"].str.split("-").str[0]) or "none"
    st.caption(f"Feed-forward blocks that survive: {kept}")
