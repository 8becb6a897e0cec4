"""Retraction of labels by an admin: labels with an unknown class, and single disputed labels."""

import pandas as pd
import streamlit as st

from core.labelling.assignment_service import retire
from core.patterns.snapshot import retire_unknown, unknown_labels
from core.store.database import Database
from pages.parts.shell.messages import clear_errors, plain


def say_unknown(db: Database, class_set: str) -> None:
    """Show how many labels have an unknown class, that they are not counted, and the two ways to fix them."""
    unknown = unknown_labels(db, class_set)
    for name, count in unknown.items():
        subject = "1 label is" if count == 1 else f"{count} labels are"
        st.warning(
            f"{subject} of the class “{plain(name)}”, which does not exist in this class set. Results do not count "
            "these labels. An admin can add the class on “Annotate > Class sets”, or retract the labels here.",
            icon=":material/rule:",
        )
    if unknown and db.person.may("admin") and st.button("Retract labels with unknown classes"):
        with clear_errors():
            st.toast(f"Labels retracted: {retire_unknown(db, class_set, annotator=_acting(db))}")
            st.session_state.pop("queue", None)
            st.rerun()


def retire_one(db: Database, standing: pd.DataFrame, maps: list[str]) -> None:
    """Let admins retract one label of these maps, whoever gave it."""
    rows = standing[standing["map_id"].isin(maps)]
    if rows.empty or not db.person.may("admin"):
        return
    event_labels = {
        row.event: f"{row.annotator}: {row.label}, L{row.layer + 1}H{row.head + 1} of {row.row_id} (pass {row.passing})"
        for row in rows.rename(columns={"class": "label", "pass": "passing"}).itertuples()
    }
    with st.expander("Retract another annotator's label"):
        event = st.selectbox("Label", list(event_labels), format_func=event_labels.__getitem__, key="retired_label")
        why = st.text_input(
            "Reason",
            key="retired_why",
            help="The reason is stored with your name. The retracted label is not deleted, but it no longer counts.",
        )
        if st.button("Retract label", disabled=not why.strip()):
            with clear_errors():
                retire(db, [str(event)], annotator=_acting(db), why=why.strip())
                st.rerun()


def _acting(db: Database) -> str:
    """Return the name of the acting admin: signed in, as typed on the Label page, or the role."""
    return db.person.name or st.session_state.get("annotator") or "admin"
