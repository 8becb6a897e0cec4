"""The bundled labels, for pages about labels while nobody has given one here: read in a database of their own."""

import pandas as pd
import streamlit as st

from core.codebook.registry import labelled_folders
from core.patterns import agreement
from core.patterns.snapshot import current_labels
from core.store import labels as stored_maps
from core.store import shipped_record
from core.store.database import Database
from pages.parts.charts.curves import values_with_intervals
from pages.parts.charts.encoding import Axes
from pages.parts.label.label_tools import show_disputed
from pages.parts.shell import resources
from pages.parts.shell.messages import counted
from pages.parts.widgets.tables import show_table

SHOWN = 8  # maps in dispute, to see what they are
EXAMPLES = 28  # bundled maps on the Label page while none is stored


def labels_to_read(db: Database, class_set: str) -> tuple[Database, bool]:
    """The database, or one of the bundled labels, which nobody may change, while it has none of this class set; and
    whether it is that one, which the page then says."""
    is_bundled = class_set in labelled_folders() and shipped_record.about() is not None
    if not is_bundled or not current_labels(db, class_set).empty:
        return db, False
    st.caption(
        ":material/inventory_2: Your database has no labels yet, so this page shows the bundled labels, which are by "
        "AI models. To see your own labels, label maps or import the bundled ones on Annotate > Label."
    )
    return resources.bundled_labels_database(class_set), True


def bundled_examples(class_set: str) -> tuple[dict[str, str], int]:
    """Some bundled maps by their id with their class, the classes in turn, and of how many; none of a custom set."""
    if class_set not in labelled_folders() or shipped_record.about() is None:
        return {}, 0
    agreed = agreement.consensus(current_labels(resources.bundled_labels_database(class_set), class_set))
    turn = agreed.groupby("class").cumcount()
    some = agreed.assign(turn=turn).sort_values(["turn", "class"]).head(EXAMPLES)
    return dict(zip(some["map_id"], some["class"], strict=True)), len(agreed)


def show_bundled_disputes(db: Database, class_set: str, *, named: bool) -> None:
    """Maps that two raters of the bundled labels see differently, while nobody has given a label here. named: with the
    names of who voted."""
    labels, bundled = labels_to_read(db, class_set)
    if not bundled:
        return
    current = current_labels(labels, class_set)
    maps = agreement.disputed(current)
    st.subheader("Maps to decide on")
    st.caption(f"The bundled labels differ on {counted(len(maps), 'maps')}. Here are {len(maps[:SHOWN])} of them:")
    show_disputed(labels, current, maps[:SHOWN], named=named)


def show_bundled_work(class_set: str = "bert") -> None:
    """What a finished project looks like: who gave the bundled labels, and of which classes they are."""
    if class_set not in labelled_folders() or shipped_record.about() is None:
        return
    labels = current_labels(resources.bundled_labels_database(class_set), class_set)
    st.subheader("The bundled labels")
    stored_count = len(set(labels["map_id"]) & set(stored_maps.map_facts(resources.database())["map_id"]))
    stored_note = (
        "none of them is in your database" if not stored_count else f"{stored_count:,} of them are in your database"
    )
    st.caption(f"{counted(labels['map_id'].nunique(), 'maps')}, labelled by AI models; {stored_note}.")
    counts = labels.groupby(["annotator", "class"]).size().rename("labels").reset_index()
    left, right = st.columns([1, 2])
    people = labels.groupby("annotator").agg(labels=("map_id", "size"), maps=("map_id", "nunique")).reset_index()
    show_table(people, container=left)
    right.altair_chart(
        values_with_intervals(pd.DataFrame(counts), Axes(x="class", y="labels", colour="annotator"), title="By class"),
        key="bundled_work",
    )
