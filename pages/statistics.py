"""Head statistics: entropy, where the mass goes, how far heads look, how alike they are, and what has an effect."""

import json

import pandas as pd
import streamlit as st

from core.scoring.definitions import KINDS, STATISTICS
from core.store import runs as store
from pages.parts.atlas import groups
from pages.parts.charts.curves import points
from pages.parts.charts.encoding import Axes
from pages.parts.frame import bound, resources
from pages.parts.frame.messages import clear_errors, plain
from pages.parts.frame.page_table import PAGES_FOLDER
from pages.parts.maps import effective
from pages.parts.reports import attending
from pages.parts.widgets import pickers
from pages.parts.widgets.files import show_files

COLOURS = {"kind": "what it mostly does", "layer": "layer", "class": "pattern class"}


def pattern_classes(checkpoint: str) -> pd.DataFrame | None:
    """Each head's majority pattern class (layer, head, class) in the newest stored shares of a checkpoint."""
    db = resources.database()
    for run in store.known_runs(db, "classify-maps").itertuples():
        if checkpoint in json.loads(run.options)["checkpoints"]:
            rows = store.study_rows(db, run.run)
            return rows.loc[(rows["part"] == "head") & (rows["checkpoint"] == checkpoint), ["layer", "head", "class"]]
    return None


def picture_of_heads(rows: pd.DataFrame) -> list:
    """Heads placed by how alike they are, coloured by kind, layer or pattern class (Clark et al., Fig 6)."""
    colour = st.segmented_control(
        "Colour", list(COLOURS), default="kind", required=True, format_func=COLOURS.__getitem__, key="colour"
    )
    drawn = []
    for (checkpoint, task), some in rows.groupby(["checkpoint", "task"], sort=False):
        if colour == "class":
            classes = pattern_classes(checkpoint)
            if classes is None:
                st.info(f"No pattern classes of {plain(checkpoint)} are stored: compute its class shares first.")
                st.page_link(PAGES_FOLDER / "shares.py", label="Class shares", icon=":material/stacked_bar_chart:")
                continue
            some = some.merge(classes, on=["layer", "head"])
        some = some.assign(
            name="L" + (some["layer"].astype(int) + 1).astype(str) + "H" + (some["head"].astype(int) + 1).astype(str),
            layer=some["layer"].astype(int) + 1,
            kind=pd.Categorical(some["kind"], KINDS).astype(str),
        )
        chart = points(
            some,
            Axes(x="x", y="y", colour=colour, name="name", x_title="first direction", y_title="second direction"),
            title=f"{checkpoint} · {task}",
            square=True,
            continuous=colour == "layer",
            tooltip=("kind", "value"),
        )
        st.altair_chart(chart, width="content", key=f"heads_{checkpoint}_{task}")
        drawn.append(chart)
        row = some.iloc[0]
        st.caption(
            f"Jensen-Shannon distance, mean over {int(row['n'])} rows (Clark et al. give the sum; the mean times "
            f"{int(row['n'])} is theirs) · metric scaling, stress {row['stress']:.2f} (0 keeps every distance, above "
            "0.2 only roughly) · kinds: over half on the previous or next token, over 0.6 on separators or the first "
            "position, broad: normalised entropy over 0.85"
        )
    return drawn


st.title("Head statistics")
study, mine = attending.measured_by("statistics", STATISTICS)
found = attending.rows_of(study, task="sst2", options={})
if found is not None:
    rows = mine(found.rows)
    names = [name for name in STATISTICS if name in set(rows["statistic"])]
    statistic = bound.pick(
        st.selectbox, "Statistic", names, key="statistic", format_func=lambda name: f"{name}: {STATISTICS[name]}"
    )
    chosen = rows[rows["statistic"] == statistic]
    drawn = attending.pictures(chosen, "value", statistic)
    st.caption(f"{found.caption} · n = {int(chosen['n'].max())} inputs · {plain(STATISTICS[statistic])}")
    attending.table(found, chosen, ["value", "low", "high", "n"], by="value", key="heads")
    placed = rows[rows["statistic"] == "place"]
    if study == "statistics":
        st.subheader("Which heads are alike")
        if placed.empty:
            st.info("Two heads at least are needed to compare them.")
        else:
            drawn += picture_of_heads(placed)
    show_files(rows, drawn, study)

st.subheader("Heads that do the same")
with clear_errors():
    groups.show_groups()
st.subheader("Effective attention")
st.caption(
    "What is left of a map when the part that cannot reach the output is taken away (Brunner et al. 2020); inputs of "
    "no more pieces than a head has dimensions lose nothing."
)
with clear_errors():
    name = pickers.pick_checkpoint(key="effective_checkpoint")
    text = pickers.pick_text(
        "A long sentence", key="effective_text", placeholder="Type or paste a text of 40 pieces or more"
    )
    if name and text:
        effective.show_effective(name, text)
    else:
        st.info("Type a text to see raw and effective attention side by side.", icon=":material/compare:")
    effective.show_stored()
