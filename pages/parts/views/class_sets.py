"""Class sets: creation of custom sets, and adding, editing, merging or deleting classes."""

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.codebook.classes import ClassSet
from core.patterns.snapshot import known_class_set
from pages.parts.label import class_forms, label_tools
from pages.parts.shell import people, resources, url
from pages.parts.shell.messages import clear_errors, plain


def show(tools: DeltaGenerator) -> None:
    """Show the classes of a set as a table, a form that changes them, and one that creates a set."""
    db = resources.database()
    with tools:
        class_set = label_tools.pick_class_set(db, bare=True)
    classes = known_class_set(db, class_set)
    described = {True: "decoders", False: "encoders", None: "any model"}[classes.causal]
    st.subheader("Which classes can an attention map have?", anchor=False)
    st.markdown(
        f"**With the class set “{plain(classes.title)}”, every map gets exactly one of {len(classes)} classes.** "
        "On “Annotate > Label”, press the key of a class to label a map with the class."
    )
    st.caption(plain(f"Source: {classes.source} · maps of {described}"))
    show_classes(classes)
    if not db.person.may("admin"):
        return
    annotator = people.annotator_name(key="class_sets_by") or "nobody"
    with (
        st.expander("Change these classes in your database", icon=":material/edit:"),
        clear_errors(),
        st.container(width=520),
    ):
        class_forms.change_classes(db, classes, annotator)
    with st.expander("Create a class set of your own", icon=":material/add:"), clear_errors():
        new_name = class_forms.new_class_set(db, annotator)
        if new_name is not None:
            url.keep({"class_set": new_name})
            st.session_state.pop("class_set", None)  # what the link says is picked
            st.toast(f"Made: {plain(new_name)}")
            st.rerun()


def show_classes(classes: ClassSet) -> None:
    rows = pd.DataFrame(
        [
            {
                "name": plain(pattern_class.name),
                "key": pattern_class.key,
                "title": plain(pattern_class.title),
                "appearance": plain(pattern_class.eye),
                "colour": "",
            }
            for pattern_class in classes.classes
        ]
    ).set_index("name")
    shades = [f"background-color: {pattern_class.colour}" for pattern_class in classes.classes]
    st.table(rows.style.apply(lambda _: shades, subset=["colour"]))  # a description takes the lines that it needs
