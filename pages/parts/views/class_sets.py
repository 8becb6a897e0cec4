"""Class sets: which classes maps can be of; add one, give one another title, or merge two."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts.label import label_tools
from pages.parts.shell import people, resources
from pages.parts.shell.messages import clear_errors
from pages.parts.widgets.tables import show_table


def show(tools: DeltaGenerator) -> None:
    """The classes of a set as a table, and a form to change them; labels keep what they said."""
    db = resources.database()
    with tools:
        class_set = label_tools.pick_class_set(db, bare=True)
    classes = label_tools.classes_now(db, class_set)
    rows = [
        {"key": one.key, "class": one.title, "what the eye sees": one.eye, "colour": one.colour, "name": one.name}
        for one in classes.classes
    ]
    show_table(rows, column_config={"what the eye sees": st.column_config.TextColumn(width=620)})
    if not db.person.may("annotator"):
        return
    st.subheader("Change the classes", anchor=False)
    with clear_errors(), st.container(width=520):
        annotator = people.annotator_name(key="class_sets_by")
        label_tools.change_classes(db, classes, annotator or "nobody")
