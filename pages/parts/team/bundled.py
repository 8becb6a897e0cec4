"""The bundled labels, for pages about labels while nobody has given one here: read in a database of their own."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import streamlit as st

from core import config
from core.labelling.kept import bundled_labels
from core.labelling.snapshot import standing_labels
from core.store import shipped
from core.store.database import Database, Person
from pages.parts.charts.curves import bars_with_intervals
from pages.parts.charts.encoding import Axes

READER = Person("", "viewer")


@dataclass(frozen=True)
class Bundled:
    """A database of bundled labels alone, and the folder that goes with it."""

    db: Database
    folder: "tempfile.TemporaryDirectory[str]"


def labels_to_read(db: Database, class_set: str) -> tuple[Database, bool]:
    """The database, or one of the bundled labels, which nobody may change, while it has none of this class set; and
    whether it is that one, which the page then says."""
    there = class_set in config.LABELLED and shipped.about() is not None
    if not there or not standing_labels(db, class_set).empty:
        return db, False
    st.caption(
        ":material/inventory_2: The bundled labels, by AI models and not by people; none of them is stored here. Label "
        "maps, or add these on the Label page, and this page shows what is stored."
    )
    return _bundled(class_set).db.acting_as(READER), True


def show_bundled_work(class_set: str = "bert") -> None:
    """What a finished project looks like: who gave the bundled labels, and of which classes they are."""
    if class_set not in config.LABELLED or shipped.about() is None:
        return
    labels = standing_labels(_bundled(class_set).db, class_set)
    st.subheader("The bundled labels")
    st.caption(f"{labels['map_id'].nunique()} maps, labelled by AI models and not by people; none of them is stored "
               "here.")  # fmt: skip
    counts = labels.groupby(["annotator", "class"]).size().rename("labels").reset_index()
    left, right = st.columns([1, 2])
    people = labels.groupby("annotator").agg(labels=("map_id", "size"), maps=("map_id", "nunique")).reset_index()
    left.dataframe(people, hide_index=True)
    right.altair_chart(
        bars_with_intervals(pd.DataFrame(counts), Axes(x="class", y="labels", colour="annotator"), title="By class"),
        key="bundled_work",
    )


@st.cache_resource(show_spinner="Reading the bundled labels ...", max_entries=2)
def _bundled(class_set: str) -> Bundled:
    folder = tempfile.TemporaryDirectory(prefix="bundled-labels-")
    db = Database(Path(folder.name) / "labels.duckdb")
    bundled_labels(db, class_set)
    return Bundled(db, folder)
