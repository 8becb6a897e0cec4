"""Head statistics: entropy, where the mass goes, how far heads look, how alike they are, and what has an effect."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from core.attention import Head
from core.patterns.snapshot import known_class_set
from core.scoring.definitions import KINDS, STATISTICS
from core.store import runs as store
from core.studies.attention.records import PlaceScore
from core.studies.patterns.records import HeadClass
from pages.parts.atlas import groups
from pages.parts.charts.curves import points
from pages.parts.charts.encoding import Axes
from pages.parts.maps import effective
from pages.parts.reports import attending
from pages.parts.reports.provenance import present_runs
from pages.parts.shell import bound, resources
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.shell.page_table import PAGES_FOLDER
from pages.parts.widgets import pickers
from pages.parts.widgets.files import show_files

COLOURS = {"kind": "what it mostly does", "layer": "layer", "class": "pattern class"}


def pattern_classes(checkpoint: str) -> tuple[dict[str, str], Sequence[str]]:
    """Each head's majority pattern class, by its name, in the newest stored shares of a checkpoint ({} without); and
    the classes of its set, in their order."""
    for stored in present_runs("classify-maps"):
        if checkpoint in stored.settings.checkpoints:
            heads = HeadClass.among(store.run_rows(resources.database(), stored.run))
            of = stored.settings.class_set
            names = known_class_set(resources.database(), of).names if of else ()
            mine = {str(Head(head.layer, head.head)): head.name for head in heads if head.checkpoint == checkpoint}
            return mine, names
    return {}, ()


def picture_of_heads(measured: attending.Measured[PlaceScore], places: list[PlaceScore]) -> list:
    """Heads placed by how alike they are, coloured by kind, layer or pattern class (Clark et al., Fig 6)."""
    colour = bound.pick(
        st.segmented_control, "Colour", list(COLOURS), key="colour", default="kind", required=True,
        format_func=COLOURS.__getitem__,
    )  # fmt: skip
    drawn = []
    for (checkpoint, task), some in attending.by_place(places).items():
        classes: dict[str, str] = {}
        names: Sequence[str] = ()
        if colour == "class":
            classes, names = pattern_classes(checkpoint)
            if not classes:
                st.info(f"No pattern classes of {plain(checkpoint)} are stored: compute its class shares first.")
                st.page_link(PAGES_FOLDER / "shares.py", label="Class shares", icon=":material/stacked_bar_chart:")
                continue
            some = [score for score in some if score.name in classes]
        lines = [
            {"x": score.x, "y": score.y, "name": score.name, "layer": int(score.layer or 0) + 1,
             "kind": score.kind if score.kind in KINDS else "nan", "value": score.value,
             "class": classes.get(score.name)}
            for score in some
        ]  # fmt: skip
        chart = points(
            pd.DataFrame(lines),
            Axes(
                x="x",
                y="y",
                colour=colour,
                name="name",
                x_title="first direction",
                y_title="second direction",
                classes=names or None,
            ),
            title=measured.title((checkpoint, task)),
            square=True,
            continuous=colour == "layer",
            tooltip=("kind", "value"),
        )
        st.altair_chart(chart, width="content", key=f"heads_{checkpoint}_{task}")
        drawn.append(chart)
        first = some[0]
        count = first.queries or first.n  # earlier results say no queries, and mean them by n
        st.caption(
            f"Jensen-Shannon distance, mean over {count} rows of maps (Clark et al. give the sum; the mean times "
            f"{count} is theirs) · metric scaling, stress {first.stress:.2f} (0 keeps every distance, above "
            "0.2 only roughly) · kinds: over half on the previous or next token, over 0.6 on separators or the first "
            "position, broad: normalised entropy over 0.85"
        )
    return drawn


st.title("Head statistics")
study, mine = attending.measured_by("statistics", STATISTICS)
measured = attending.rows_of(study, PlaceScore, task="sst2", options={})
if measured is not None:
    measured = measured.where(mine)
    scores = measured.scores
    names = [name for name in STATISTICS if name in {score.statistic for score in scores}]
    statistic = bound.pick(
        st.selectbox, "Statistic", names, key="statistic", format_func=lambda name: f"{name}: {STATISTICS[name]}"
    )
    chosen = [score for score in scores if score.statistic == statistic]
    drawn = attending.pictures(chosen, "value", statistic, title=measured.title)
    st.caption(f"{measured.caption} · n = {attending.most_inputs(chosen)} inputs · {plain(STATISTICS[statistic])}")
    attending.table(measured, chosen, ["value", "low", "high", "n"], by="value", key="heads")
    placed = [score for score in scores if score.statistic == "place"]
    if study == "statistics":
        st.subheader("Which heads are alike")
        if not placed:
            st.info("Two heads at least are needed to compare them.")
        else:
            drawn += picture_of_heads(measured, placed)
    show_files(measured.frame, drawn, study)

st.subheader("Heads that do the same")
with clear_errors():
    groups.show_groups()
st.subheader("Effective attention")
st.caption(
    "What is left of a map when the part that cannot reach the output is taken away (Brunner et al. 2020); inputs of "
    "no more tokens than a head has dimensions lose nothing."
)
with clear_errors():
    name = pickers.pick_checkpoint(key="effective_checkpoint")
    text = pickers.pick_text(
        "A long sentence", key="effective_text", placeholder="Type or paste a text of about 40 words or more"
    )
    if name and text:
        effective.show_effective(name, text)
    else:
        st.info("Type a text to see raw and effective attention side by side.", icon=":material/compare:")
    effective.show_stored()
