"""What layers know (a picture layer by property), how alike their vectors are, and what they are worth to a task."""

import altair as alt
import pandas as pd
import streamlit as st

from pages.parts.charts.curves import line_with_band
from pages.parts.charts.encoding import Axes
from pages.parts.probes.shipped import pick_result, say
from pages.parts.widgets.files import show_files

VALUES = {
    "value": "accuracy",
    "selectivity": "selectivity (less its control task)",
    "gain": "gain over random weights",
}


def layer_picture(rows: pd.DataFrame, value: str, label: str) -> alt.LayerChart:
    """Property by layer, the numbers in the cells."""
    least = min(0.0, float(rows[value].min()))
    base = alt.Chart(rows).encode(
        x=alt.X("layer:O", title="layer (0: embeddings)", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("property:N", sort=list(dict.fromkeys(rows["property"])), title=None, axis=alt.Axis(labelLimit=260)),
    )
    tips = [alt.Tooltip(f"{name}:{'N' if name == 'property' else 'Q'}") for name in
            ("property", "layer", "value", "low", "high", "control", "random_weights", "word_alone", "majority", "n")
            if name in rows]  # fmt: skip
    cells = base.mark_rect(stroke="gray", strokeOpacity=0.25).encode(
        color=alt.Color(f"{value}:Q", title=label, scale=alt.Scale(range="ramp", domain=[least, 1])), tooltip=tips
    )
    text = alt.Text(f"{value}:Q", format=".2f")
    halo = base.mark_text(fontSize=12, stroke="black", strokeWidth=3, strokeOpacity=0.6).encode(text=text)
    written = base.mark_text(fontSize=12, fill="white").encode(text=text)
    return alt.layer(cells, halo, written).properties(width=alt.Step(54), height=alt.Step(34))


def show_layers() -> None:
    """Layer by property, and the layers' weights in a mixture."""
    result = pick_result("probe", key="probed")
    if result is None:
        return
    rows = result.kind("probe").astype({"layer": int})
    left, right = st.columns(2)
    probe = left.segmented_control(
        "Probe", list(dict.fromkeys(rows["probe"])), default="linear", required=True, key="probe"
    )
    value = right.segmented_control("Shown", list(VALUES), default="value", required=True,
                                    format_func=VALUES.__getitem__,
                                    key="shown_value")  # fmt: skip
    some = rows[rows["probe"] == (probe or "linear")]
    picture = layer_picture(some, value or "value", VALUES[value or "value"])
    st.altair_chart(picture, width="content")
    st.caption(
        "“Rules part”: learnt where a linear and a hierarchical rule agree, tested where the linear one is wrong; "
        "0 is the linear rule, 1 the hierarchical one. Point at a cell for its interval, control task and baselines."
    )
    centres = result.kind("centre")
    if len(centres):
        mixing = line_with_band(
            result.kind("mixing").astype({"layer": int}),
            Axes(x="layer", y="value", colour="property", y_title="weight"),
            title="Weights of layers in a learnt mixture",
            rule=float(result.kind("mixing")["uniform"].iloc[0]),
        )
        st.altair_chart(mixing)
        said = (
            f"{row['property']} {row['value']:.1f} ({row['low']:.1f} to {row['high']:.1f})"
            for _, row in centres.iterrows()
        )
        st.markdown("Centre of gravity, in layers: " + "; ".join(said) + ".")
    say(f"{result.caption} · n from {int(rows['n'].min())} to {int(rows['n'].max())} words a property; intervals over "
        "sentences")  # fmt: skip
    show_files(result.kind("probe", "mixing", "centre"), [picture], "layers")


def show_representation() -> None:
    """Cosines by layer, attention's entropy beside them."""
    result = pick_result("representation", key="represented")
    if result is None:
        return
    rows = result.kind("layer").astype({"layer": int})
    alike = rows[~rows["similarity"].str.contains("entropy|beyond")]
    first = line_with_band(
        alike,
        Axes(x="layer", y="value", low="low", high="high", colour="similarity", y_title="mean cosine"),
        title="How alike token vectors are",
    )
    spread = line_with_band(
        rows[rows["similarity"].str.contains("entropy")],
        Axes(x="layer", y="value", low="low", high="high", y_title="share of a uniform row's entropy"),
        title="How spread attention is",
        domain=(0, 1),
    )
    left, right = st.columns(2)
    left.altair_chart(first)
    right.altair_chart(spread)
    random = alike[alike["similarity"] == "random pairs"].set_index("layer")["value"]
    st.markdown(
        f"Tokens of different inputs have a mean cosine of **{random.iloc[0]:.2f}** in the embeddings and "
        f"**{random.iloc[-1]:.2f}** in the last layer: the nearer to 1, the narrower the cone in which all vectors lie."
    )
    say(f"{result.caption} · n = {int(rows['n'].max())} inputs; intervals over inputs")
    show_files(rows, [first, spread], "representation")


def show_transfer() -> None:
    """A classifier on each layer; fine-tuning above frozen layers."""
    result = pick_result("transfer", key="transferred")
    if result is None:
        return
    pictures = []
    for task, rows in result.rows.groupby("task", sort=False):
        baseline = rows[rows["kind"] == "baseline"].iloc[0]
        classifiers, frozen = (rows[rows["kind"] == kind] for kind in ("classifier", "frozen"))
        rule = None if pd.isna(baseline["value"]) else float(baseline["value"])
        shown = [
            (
                classifiers.astype({"layer": int}),
                "layer",
                "reading",
                f"{task}: a classifier on each layer, nothing below learns",
            )
        ]
        if len(frozen):
            shown.append((frozen.astype({"frozen": int}), "frozen", None, f"{task}: fine-tuned above frozen layers"))
        for place, (some, x, colour, title) in zip(st.columns(2), shown, strict=False):
            chart = line_with_band(
                some,
                Axes(
                    x=x,
                    y="value",
                    low="low",
                    high="high",
                    colour=colour,
                    x_title="layer" if x == "layer" else "first layers frozen",
                    y_title=str(baseline["metric"]),
                ),
                title=title,
                rule=rule,
            )
            place.altair_chart(chart)
            pictures.append(chart)
        for _, best in rows[rows["kind"] == "best layer"].iterrows():
            ends = " to ".join(f"{100 * best[end]:+.1f}" for end in ("low", "high"))
            st.markdown(f"{best['reading'].capitalize()}: layer {int(best['layer'])} of {int(best['layers'])} is best "
                        f"on one half of the rows; on the other it scores {100 * best['value']:+.1f} points ({ends}) "
                        "more than the last layer.")  # fmt: skip
    say(f"{result.caption} · dashed: the constant predictor · n = {int(result.rows['n'].max())} dev rows")
    show_files(result.rows, pictures, "transfer")
