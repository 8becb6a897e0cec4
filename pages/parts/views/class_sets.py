"""Class sets: which classes maps can be of; make one of your own, and add, change, merge or delete classes."""

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.patterns.classes import ClassSet
from pages.parts.label import class_forms, label_tools
from pages.parts.shell import history, people, resources
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets.tables import MOST, ROW, show_table


def show(tools: DeltaGenerator) -> None:
    """The classes of a set as a table, a form to change them, and one that makes a new set; labels keep what they
    said."""
    db = resources.database()
    with tools:
        class_set = label_tools.pick_class_set(db, bare=True)
    classes = label_tools.classes_now(db, class_set)
    st.caption(plain(f"{classes.title} · {classes.source} · maps of {_described(classes)}"))
    show_classes(classes)
    if not db.person.may("admin"):
        return
    annotator = people.annotator_name(key="class_sets_by") or "nobody"
    changed, new = st.tabs(["Change these classes", "A class set of your own"])
    with changed, clear_errors(), st.container(width=520):
        class_forms.change_classes(db, classes, annotator)
    with new, clear_errors():
        made = class_forms.new_class_set(db, annotator)
        if made is not None:
            history.keep({"class_set": made})
            st.session_state.pop("class_set", None)  # what the link says is picked
            st.toast(f"Made: {plain(made)}")
            st.rerun()


def show_classes(classes: ClassSet) -> None:
    """A row a class, its colour as it is drawn."""
    rows = pd.DataFrame([
        {"key": pattern_class.key, "class": pattern_class.title, "what the eye sees": pattern_class.eye,
         "colour": pattern_class.colour, "name": pattern_class.name}
        for pattern_class in classes.classes
    ])  # fmt: skip
    shaded = rows.style.map(lambda shade: f"background-color: {shade}; color: {shade}", ["colour"])
    width = st.column_config.TextColumn(width=620)
    show_table(shaded, height=min(MOST, ROW * (len(rows) + 1) + 3), column_config={"what the eye sees": width})


def _described(classes: ClassSet) -> str:
    return {True: "decoders", False: "encoders", None: "any model"}[classes.causal]
