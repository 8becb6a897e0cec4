"""Forms for class sets: creation of a custom set, and changes of classes."""

from typing import Any

import streamlit as st

from core.codebook.classes import ClassSet, PatternClass
from core.patterns import class_sets
from core.patterns.class_sets import FEWEST, KEYS, MOST, NewClassSet
from core.store.database import Database
from pages.parts.shell.messages import clear_errors, plain

DESCRIBES = {"any": "any model", "bidirectional": "encoders (bidirectional)", "causal": "decoders (causal)"}
RETIRED = "retracted, so that each person's previous label counts again"
CHANGES = ("add", "edit", "merge", "delete")


def change_classes(db: Database, classes: ClassSet, annotator: str) -> None:
    """Add, edit, merge or delete a class; stored labels do not change."""
    action = st.segmented_control("Change", CHANGES, default="add", required=True, key="class_changes")
    {"add": _add, "edit": _edit, "merge": _merge, "delete": _delete}[str(action)](db, classes, annotator)


def _finish(message: str) -> None:
    st.session_state.pop("queue", None)
    st.session_state.pop("label_payload", None)
    for name in [name for name in st.session_state if str(name).startswith("class_form_")]:
        del st.session_state[name]  # the next form begins empty
    st.toast(plain(message))
    st.rerun()


def _add(db: Database, classes: ClassSet, annotator: str) -> None:
    free = [key for key in KEYS if key not in {member.key for member in classes.classes}]
    used_colours = {member.colour.lower() for member in classes.classes}
    colour = next(
        colour for colour in class_sets.colours(MOST + len(used_colours)) if colour.lower() not in used_colours
    )
    name = st.text_input("Name", key="class_form_name")
    title = st.text_input("Title", key="class_form_title", placeholder="title that is shown (default: the name)")
    eye = st.text_input("Appearance", key="class_form_eye")
    key = st.selectbox(
        "Key",
        [*free, ""],
        format_func=lambda key: key or "no key (label by a click)",
        key=f"class_form_key_{classes.name}",
    )
    picked = st.color_picker("Colour", colour, key=f"class_form_colour_{len(classes)}")
    if st.button("Add the class", key="class_change"):
        with clear_errors():
            stored = name.strip().lower()
            class_sets.add_class(
                db, classes, PatternClass(stored, title.strip() or stored, eye, picked, key or ""), annotator=annotator
            )
            _finish(f"The class {stored} was added")


def _edit(db: Database, classes: ClassSet, annotator: str) -> None:
    name = _pick(classes, "Class", "class_form_edited")
    before = classes.named(name)
    title = st.text_input("Title", before.title, key=f"class_form_title_{name}")
    eye = st.text_input("Appearance", before.eye, key=f"class_form_eye_{name}")
    used_keys = {member.key for member in classes.classes if member.name != name}
    keys = list(dict.fromkeys([before.key, *(key for key in KEYS if key not in used_keys)]))
    key = st.selectbox(
        "Key", keys, format_func=lambda key: key or "no key (label by a click)", key=f"class_form_key_{name}"
    )
    picked = st.color_picker("Colour", before.colour, key=f"class_form_colour_{name}")
    if st.button("Change the class", key="class_change"):
        with clear_errors():
            class_sets.edit_class(db, classes, name, annotator=annotator, title=title, eye=eye, key=key, colour=picked)
            _finish(f"The class {title} was changed")


def _merge(db: Database, classes: ClassSet, annotator: str) -> None:
    name = _pick(classes, "Class", "class_form_merged")
    into = _pick(classes, "Into", "class_form_into", besides=name)
    if st.button("Merge the classes", key="class_change"):
        with clear_errors():
            count = class_sets.delete_class(db, classes, name, annotator=annotator, into=into)
            _finish(f"{count} labels were moved from {name} to {into}")


def _delete(db: Database, classes: ClassSet, annotator: str) -> None:
    """Ask what happens to the labels before a class is deleted."""
    name = _pick(classes, "Class", "class_form_deleted")
    count = class_sets.labels_of(db, classes.name, name)
    if count:
        fate = st.radio(
            "1 label is assigned to this class. What should happen to this label?"
            if count == 1
            else f"{count} labels are assigned to this class. What should happen to these labels?",
            ["", *(class_name for class_name in classes.names if class_name != name)],
            index=None,
            format_func=lambda into: f"moved to {plain(classes.named(into).title)}" if into else RETIRED,
            key=f"class_form_fate_{name}",
        )
    else:
        fate = ""
        st.caption("No map has a label with this class.")
    if st.button("Delete the class", key="class_change", disabled=fate is None):
        with clear_errors():
            about = class_sets.delete_class(db, classes, name, annotator=annotator, into=fate or None)
            _finish(f"The class {name} was deleted; labels {'moved to ' + fate if fate else 'retracted'}: {about}")


def _pick(classes: ClassSet, label: str, key: str, *, besides: str | None = None) -> str:
    names = [name for name in classes.names if name != besides]
    return str(st.selectbox(label, names, format_func=lambda name: classes.named(name).title, key=key))


# ---------------------------------------------------------------- a set of one's own


def new_class_set(db: Database, annotator: str) -> str | None:
    """Show the form for a custom class set, and return its name once it is created."""
    left, middle, right, last = st.columns([2, 3, 2, 1])
    name = left.text_input("Name of the class set", key="new_set_name", max_chars=60)
    title = middle.text_input(
        "Title", key="new_set_title", max_chars=120, placeholder="title that is shown (default: the name)"
    )
    describes = right.selectbox("Maps of", list(DESCRIBES), format_func=DESCRIBES.__getitem__, key="new_set_describes")
    count = last.number_input(
        "Classes",
        1,
        MOST + 1,
        3,
        key="new_set_count",
        help=f"Choose {FEWEST} to {MOST} classes. Annotators give each map exactly one class.",
    )
    source = st.text_input(
        "Source of the classes", key="new_set_source", placeholder="default: classes made by hand for this project"
    )
    members = [_member(k, colour) for k, colour in enumerate(class_sets.colours(int(count)))]
    if st.button("Create class set", type="primary", key="new_set_make"):
        with clear_errors():
            new_set = NewClassSet(name, title, source, str(describes), members)
            class_set = class_sets.make_class_set(db, new_set, annotator=annotator)
            for field in [field for field in st.session_state if str(field).startswith("new_set_")]:
                del st.session_state[field]
            return class_set.name
    return None


def _member(k: int, colour: str) -> PatternClass:
    """Show one row of the form."""
    shown: Any = {"label_visibility": "visible" if k == 0 else "collapsed"}
    name, eye, key, shade = st.columns([2, 5, 1, 1], vertical_alignment="bottom")
    called = name.text_input("Class", key=f"new_set_class_{k}", max_chars=60, placeholder=f"class {k + 1}", **shown)
    sees = eye.text_input("Appearance", key=f"new_set_eye_{k}", **shown)
    usual = KEYS[k] if k < len(KEYS) else ""
    digit = key.text_input("Key", usual, key=f"new_set_key_{k}", max_chars=1, **shown)
    picked = shade.color_picker("Colour", colour, key=f"new_set_colour_{k}", **shown)
    title = called.strip()
    return PatternClass(title.lower(), title, sees.strip(), picked, digit.strip())
