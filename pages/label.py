"""Label maps: sort attention maps into classes by click or key, fast, with nothing lost."""

from datetime import date

import streamlit as st

from core.labelling.kept import bundled_labels
from core.labelling.queue import Wish, queue
from core.store import classifiers, labels
from pages.parts.frame import people, resources
from pages.parts.frame.messages import plain
from pages.parts.label import label_tools
from pages.parts.label.label_sheet import hints_of, payload, send_maps, show_sheet
from pages.parts.label.retiring import say_unknown
from pages.parts.team import working

ORDERS = {
    "random": "at random",
    "uncertain": "most uncertain first",
    "disagreement": "disagreements first",
    "adjudication": "adjudicate disagreements",
}


def filters(kinds, classes) -> dict:
    """What to label: checkpoint, task, layer, nearly uniform maps, or a class to look through again."""
    first, second, third, fourth = st.columns(4)
    layers = sorted(kinds["layer"].unique().tolist())
    checkpoints = sorted(kinds["checkpoint"].unique())
    fitting = sorted(kinds.loc[kinds["causal"] == (classes.name == "gpt2"), "checkpoint"].unique())
    return {
        "checkpoint": first.selectbox(
            "Checkpoint",
            [None, *checkpoints],
            index=1 + checkpoints.index(fitting[0]) if fitting and len(checkpoints) > 1 else 0,
            format_func=lambda one: one or "all",
            key=f"of_{classes.name}",
            help="GPT-2's classes describe decoders, BERT's encoders.",
        ),
        "task": second.selectbox("Task", [None, *sorted(kinds["task"].unique())], format_func=lambda one: one or "all"),
        "layer": third.selectbox(
            "Layer", [None, *layers], format_func=lambda one: "all" if one is None else str(one + 1)
        ),
        "review": fourth.selectbox(
            "Show",
            [None, *classes.names],
            help="undecided maps, or those you gave one class",
            format_func=lambda one: classes.named(one).title if one else "undecided",
        ),
    }


def made_queue(db, wish, classes, suggesting, hinted):
    """The queue as it was first made for this wish, so that what the browser holds stays the same."""
    kept = st.session_state.get("queue")
    if kept is None or kept[0] != (wish, suggesting, classes, hinted):
        hints = (lambda names: hints_of(db, suggesting, names)) if suggesting else None
        names = queue(db, wish, hints)
        shown = hints(names[:1000]) if hinted and hints and names else {}
        kept = (
            (wish, suggesting, classes, hinted),
            names,
            payload(db, wish, names, classes, hints=shown, classifier=suggesting),
        )
        st.session_state["queue"] = kept
    return kept[1], kept[2]


st.title("Label maps")
db = resources.database()
open_projects = working.open_projects(db)
left, *beside, middle, right = st.columns([2, *([2] if open_projects else []), 2, 1], vertical_alignment="bottom")
with left:
    annotator = people.annotator_name()
project = None
if open_projects:
    with beside[0]:
        project = working.pick_project(open_projects)
if project:
    if not annotator:
        st.info("Type your name above; labels carry it.", icon=":material/badge:")
        st.stop()
    working.work(db, project, annotator, middle)
    st.stop()
with middle:
    class_set = label_tools.pick_class_set(db)
passing = right.number_input("Pass", 1, 9, 1, help="2: the maps you labelled before, again and without looking")
classes = label_tools.classes_now(db, class_set)

tools = st.columns(4)
with tools[0].popover("Draw maps", icon=":material/add_photo_alternate:", width="stretch"):
    label_tools.draw_maps()
label_tools.codebook(db, classes, tools[1])
with tools[2].popover("Classes", icon=":material/edit:", width="stretch"):
    label_tools.change_classes(db, classes, annotator or "nobody")
with tools[3].popover("Files", icon=":material/folder:", width="stretch"):
    label_tools.files(db, class_set)
    if st.button("Add the bundled annotations"):
        st.toast(f"{bundled_labels(db, class_set)} labels were new")
        st.session_state.pop("queue", None)

say_unknown(db, class_set)
kinds = labels.map_kinds(db)
if kinds.empty:
    st.info(
        "There is no map to label yet: draw some from a checkpoint, or add the bundled annotations under Files.",
        icon=":material/add_photo_alternate:",
    )
    st.stop()
if not annotator:
    st.info("Type your name above; labels carry it.", icon=":material/badge:")
    st.stop()

db.person.must("annotator", "label")
chosen = filters(kinds, classes)
first, second, third, fourth = st.columns([2, 1, 2, 2], vertical_alignment="bottom")
order = first.selectbox("Order", list(ORDERS), format_func=ORDERS.get)
seed = second.number_input("Seed of the order", 0, 10**6, 0)
leave_out = third.toggle("Leave nearly uniform maps out", help="largest weight below 0.1")
known = classifiers.suggesting(db, class_set)
hinted = fourth.toggle(
    "Suggestions",
    value=False,
    disabled=known is None,
    help="Labels made while suggestions show do not count in the headline score."
    if known
    else "Choose a classifier that suggests on the Pattern classifier page.",
)
wish = Wish(class_set, annotator, passing, order, seed, leave_out_uniform=leave_out, **chosen)
names, (queue_name, data) = made_queue(db, wish, classes, known if hinted or order == "uncertain" else None, hinted)
if not names:
    st.success("Every map of this choice is done: draw more, or change the filters.", icon=":material/done_all:")
send_maps(data)
show_sheet(db, queue_name, wish)
st.caption(
    plain(
        f"{kinds['maps'].sum()} maps of {kinds['checkpoint'].nunique()} checkpoints are stored, {len(names)} were in "
        f"this queue when it was made · class set {class_set} · {date.today():%d %B %Y} · digits label, Shift and a "
        "digit pick a class to click or drag with, Enter accepts, Space skips, Backspace undoes, arrows move; "
        "red ticks mark separators"
    )
)
