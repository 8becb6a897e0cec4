"""What heads attend to: nouns, verbs, negation, [CLS] ... against random tokens, per head."""

import pandas as pd
import streamlit as st

from core.scoring.definitions import DEFINITIONS, PAPER_LAYERS, drift
from core.tasks.features import FEATURES
from pages.parts.charts.curves import bars_with_intervals, line_with_band
from pages.parts.charts.encoding import Axes
from pages.parts.frame.messages import plain
from pages.parts.reports import attending
from pages.parts.widgets.files import show_files

VALUES = {"value": "attention", "effect": "excess over random tokens"}


def pick_features() -> list[str]:
    """Features to look for: the papers', and any tag or dependency."""
    return st.multiselect(
        "Features",
        list(FEATURES),
        default=list(FEATURES),
        format_func=lambda name: FEATURES[name].label if name in FEATURES else name,
        accept_new_options=True,
        key="features",
        help="Type tag:JJ, pos:ADJ or dep:amod for any Penn tag, part of speech or dependency.",
    )


def by_layer(rows: pd.DataFrame, feature: str) -> None:
    """Layer means over heads beside the paper's, where it has them (bert-base on QQP)."""
    own = rows[(rows["feature"] == feature) & (rows["statistic"] == "max") & (rows["checkpoint"] != "difference")]
    own = own.groupby(["checkpoint", "task", "layer"], sort=False)["value"].mean().reset_index()
    lines = [
        {"layer": int(row.layer) + 1, "mean": row.value, "of": f"{row.checkpoint} · {row.task}"}
        for row in own.itertuples()
    ]
    for kind, means in PAPER_LAYERS[feature].items():
        lines += [{"layer": k, "mean": mean, "of": f"paper, {kind}"} for k, mean in enumerate(means, 1)]
    chart = line_with_band(
        pd.DataFrame(lines), Axes(x="layer", y="mean", colour="of"), title=f"{FEATURES[feature].label}: mean over heads"
    )
    st.altair_chart(chart, key=f"layers_{feature}")


def say_drift(rows: pd.DataFrame) -> None:
    """Whether [CLS] is attended to early and separators late, as the paper found."""
    values = rows[(rows["statistic"] == "max") & (rows["checkpoint"] != "difference")]
    for (checkpoint, task), some in values.groupby(["checkpoint", "task"], sort=False):
        start, separator = (
            drift(some[some["feature"] == feature].groupby("layer")["value"].mean().tolist())
            for feature in ("start", "separator")
        )
        if not pd.isna(start) and not pd.isna(separator):
            st.caption(
                plain(
                    f"{checkpoint} · {task}: attention to [CLS] / start has mean depth {start:.2f}, to separators "
                    f"{separator:.2f} (0 first layer, 1 last): the paper's drift from [CLS] to [SEP] "
                    f"{'appears' if start < separator else 'does not appear'}."
                )
            )


def classifying(rows: pd.DataFrame) -> None:
    """What the classifying token looks at in the last layer (the paper's Fig 7)."""
    rows = rows[(rows["statistic"] == "classifying") & (rows["checkpoint"] != "difference")]
    for (checkpoint, task), some in rows.groupby(["checkpoint", "task"], sort=False):
        last = some[some["layer"] == some["layer"].max()]
        last = last.assign(Head="H" + (last["head"].astype(int) + 1).astype(str))
        chart = bars_with_intervals(
            last,
            Axes(x="feature", y="value", low="low", high="high", colour="Head", y_title="largest weight"),
            title=f"{checkpoint} · {task}",
        )
        st.altair_chart(chart, key=f"classifying_{checkpoint}_{task}")


st.title("What heads attend to")
features = pick_features()
study, mine = attending.measured_by("features", DEFINITIONS)
found = attending.rows_of(study, task="sst2", options={"features": features})
if found is None:
    st.stop()
rows = mine(found.rows)
if rows.empty:
    st.info("No input has any of these features: choose others, or give more text.")
    st.stop()
places = st.columns([2, 3, 3])
names = list(dict.fromkeys(rows["feature"]))
label_of = {name: FEATURES[name].label if name in FEATURES else name for name in names}
feature = places[0].selectbox("Feature", names, format_func=label_of.__getitem__, key="feature")
kinds = [name for name in DEFINITIONS if name in set(rows["statistic"])]
definition = places[1].selectbox("Definition", kinds, format_func=lambda name: f"{name}: {DEFINITIONS[name]}")
value = places[2].segmented_control(
    "Shown", list(VALUES), default="value", required=True, format_func=VALUES.__getitem__, key="shown"
)
chosen = rows[(rows["feature"] == feature) & (rows["statistic"] == definition)]
sure = chosen[chosen["checkpoint"] != "difference"]
shown = sure if value == "effect" else chosen
drawn = attending.pictures(shown, value, VALUES[value], diverging=value == "effect")
st.caption(
    f"{found.caption} · n = {int(chosen['n'].max()) if len(chosen) else 0} inputs with {plain(label_of[feature])} · "
    f"outlined: above random tokens of the same number and place, q < {attending.SURE} over all heads "
    "(from 8 inputs on)"
)
st.subheader(f"Heads above the null: {len(attending.above_null(sure))}")
columns = ["value", "low", "high", "n", "baseline", "effect", "p", "q"]
attending.table(found, sure, columns, by="effect", key="heads")
changes = chosen[chosen["checkpoint"] == "difference"]
if len(changes):
    st.subheader(f"Heads that differ between the checkpoints: {len(attending.above_null(changes))}")
    attending.table(found, changes, ["value", "low", "high", "n", "p", "q"], by="value", key="differences")
    st.caption("First checkpoint less the second, paired by input; p is two-sided, q corrects it for all heads.")
show_files(rows, drawn, "features")
st.subheader("The classifying token, last layer")
classifying(rows)
st.caption("Encoders: the row of [CLS]; decoders: that of the last token. Kovaleva et al., Fig 7.")
st.subheader("From [CLS] to [SEP] over the layers")
for special in PAPER_LAYERS:
    if special in names:
        by_layer(rows, special)
say_drift(rows)
st.caption(
    "The paper's lines are bert-base-uncased on QQP, read off its Fig 6; open that checkpoint on QQP rows to compare "
    "like with like."
)
