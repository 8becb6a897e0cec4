"""The bundled labels, for pages about labels while the database has none; read from a separate database."""

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st

from core.codebook.registry import BERT, labelled_folders
from core.patterns import agreement
from core.patterns.snapshot import current_labels, present_names
from core.store import labels as stored_maps
from core.store import shipped_record
from core.store.database import Database
from pages.parts.charts.encoding import category
from pages.parts.label.map_pictures import show_disputed
from pages.parts.reports.result_card import show_own_answer
from pages.parts.shell import resources
from pages.parts.shell.messages import counted, plain

SHOWN = 8  # maps in dispute, to see what they are
EXAMPLES = 24  # bundled maps on the Label page while none is stored


def labels_to_read(db: Database, class_set: str) -> tuple[Database, bool]:
    """Return the database, or that of the bundled labels while it has none of this class set, and which of both it
    is."""
    is_bundled = class_set in labelled_folders() and shipped_record.about() is not None
    if not is_bundled or stored_maps.class_counts(db, class_set).keys() & present_names(db, class_set).keys():
        return db, False
    st.caption(
        f":material/inventory_2: Your database has no “{plain(class_set)}” labels yet, so this page shows the bundled "
        "labels, which an AI model gave. “Annotate > Label” imports these labels."
    )
    return resources.bundled_labels_database(class_set), True


def bundled_examples(class_set: str) -> tuple[dict[str, str], int]:
    """Return some bundled maps by ID with their class, alternating between classes, and the total; none for a custom
    set."""
    if class_set not in labelled_folders() or shipped_record.about() is None:
        return {}, 0
    agreed = agreement.consensus(current_labels(resources.bundled_labels_database(class_set), class_set))
    turn = agreed.groupby("class").cumcount()
    some = agreed.assign(turn=turn).sort_values(["turn", "class"]).head(EXAMPLES)
    return dict(zip(some["map_id"], some["class"], strict=True)), len(agreed)


def show_bundled_disputes(db: Database, class_set: str, *, named: bool) -> None:
    """Show maps on which two raters of the bundled labels disagree, while there are no labels here. `named`: with their
    names."""
    labels, bundled = labels_to_read(db, class_set)
    if not bundled:
        return
    current = current_labels(labels, class_set)
    maps = agreement.disputed(current)
    annotators = current.groupby("map_id")["annotator"].nunique()
    st.subheader("Which maps need a decision?")
    st.markdown(
        f"**Among {int((annotators > 1).sum()):,} maps with labels by two or more annotators, "
        f"{counted(len(maps), 'maps')} have different labels.**"
    )
    st.caption(
        f"The first {len(maps[:SHOWN])} of these maps are shown with "
        f"{'the label of each annotator' if named else 'the number of labels for each class'}. The class of an "
        "adjudicated map is the adjudicator's choice, even if most labels name another class."
    )
    show_disputed(labels, current, maps[:SHOWN], named=named)


def show_label_progress(db: Database) -> None:
    """Show how many maps have a label of the class set for encoders, by whom and since when."""
    read, is_bundled = labels_to_read(db, BERT.name)
    labels = current_labels(read, BERT.name)
    if labels.empty:
        return
    total, annotators = len(stored_maps.map_facts(read)), labels.groupby("map_id")["annotator"].nunique()
    count = counted(labels["annotator"].nunique(), "annotators")
    show_own_answer(
        "How many maps are labelled?",
        [f"{len(labels):,} labels by {count}" + (" (instances of an AI model)" if is_bundled else "")],
        f"{len(annotators):,} of {total:,} {'bundled maps' if is_bundled else 'maps in your database'} have a label, "
        f"and {int((annotators > 1).sum()):,} have labels by two or more annotators.",
        f"The first label is from {labels['happened'].min():%d %B %Y}, the last from "
        f"{labels['happened'].max():%d %B %Y}.",
        key="bundled_progress",
    )
    st.altair_chart(labels_over_time(labels.rename(columns={"happened": "time"})), key="bundled_progress")


ANYBODY = "any annotator"


STEPS = 300  # of an annotator


def labels_over_time(labels: pd.DataFrame) -> alt.Chart:
    """Return the number of labels of each annotator over time. `labels` has annotator and time, one row per label."""
    ordered = labels.sort_values("time")
    times = dict(iter(ordered.drop_duplicates(["annotator", "map_id"]).groupby("annotator")["time"]))
    names, lines = [ANYBODY, *labels["annotator"].unique()], []
    for name in names:
        moments, new = np.unique(ordered.drop_duplicates("map_id")["time"] if name == ANYBODY else times[name],
                                 return_counts=True)  # fmt: skip
        step = np.arange(len(moments) + 1) * STEPS // len(moments)
        kept = (len(moments) <= STEPS) | (step[1:] != step[:-1])  # what a chart can show
        ends = ordered["time"].iloc[[0, -1]].to_numpy()
        maps = new.cumsum()
        lines.append(
            pd.DataFrame(
                {
                    "annotator": name,
                    "time": np.concatenate([ends[:1], moments[kept], ends[1:]]),
                    "maps": [0, *maps[kept], maps[-1]],
                }
            )
        )
    drawn = pd.concat(lines, ignore_index=True)
    return (
        alt.Chart(drawn, title="Number of labelled maps over time, by annotator")
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(
            x=alt.X("time:T", title="time, UTC"),
            y=alt.Y("maps:Q", title="number of labelled maps"),
            color=category(drawn, "annotator", names),
            tooltip=["annotator", "time", "maps"],
        )
        .properties(height=300)
    )
