"""Label maps: sort attention maps into classes by click or key."""

from datetime import date

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.labelling.queue import queue
from core.patterns.classifier_registry import bundled_labels, can_suggest, keep_best_known
from core.store import labels
from pages.parts.label import class_forms, label_settings, label_tools
from pages.parts.label.label_retrain import offer_retraining
from pages.parts.label.label_sheet import hints_of, payload, send_maps, show_sheet
from pages.parts.label.label_tools import pictures
from pages.parts.label.retiring import say_unknown
from pages.parts.shell import people, resources
from pages.parts.shell.messages import counted, plain
from pages.parts.shell.people import recalled, remember
from pages.parts.team import working
from pages.parts.team.bundled_labels import bundled_examples

SHOWN = 16  # maps that are shown before a name is entered


def names_of(db, settings, classes, suggesting) -> list[str]:
    """Return the queue as it was first created for these options, so that the data in the browser stay the same."""
    cached_queue = st.session_state.get("queue")
    key = (settings.wish, settings.hinted, suggesting, classes)
    if cached_queue is None or cached_queue[0] != key:
        hints = (lambda names: hints_of(db, suggesting, names)) if suggesting else None
        cached_queue = (key, queue(db, settings.wish, hints))
        st.session_state["queue"] = cached_queue
        st.session_state.pop("label_payload", None)
    return cached_queue[1]


def payload_of(db, settings, classes, suggesting, names) -> tuple[str, bytes]:
    """Return the payload, rebuilt when the user returns to the page."""
    if "label_payload" not in st.session_state:
        hints = hints_of(db, suggesting, names[:1000]) if settings.hinted and suggesting and names else {}
        sheet_payload = payload(db, settings.wish, names, classes, hints=hints, classifier=suggesting)
        st.session_state["label_payload"] = sheet_payload
    return st.session_state["label_payload"]


def add_bundled(db, classes) -> None:
    """Add the bundled maps with their labels to this database."""
    st.toast(counted(bundled_labels(db, classes.name), "new labels"))
    st.session_state.pop("queue", None)


def more_tools(db, classes, annotator: str) -> None:
    """Show sampling of maps, changes of classes, and files behind one button."""
    with st.popover("Maps and files", icon=":material/folder:"):
        tool = st.segmented_control("What to do", ["Draw maps", "Classes", "Files"], default="Draw maps", required=True,
                                    label_visibility="collapsed")  # fmt: skip
        if tool == "Draw maps":
            label_tools.draw_maps()
        elif tool == "Classes":
            class_forms.change_classes(db, classes, annotator or "nobody")
        else:
            label_tools.files(db, classes.name)
        if st.button("Add the bundled annotations"):
            add_bundled(db, classes)


def station(db, settings, classes, suggesting, *, docked: bool) -> None:
    """Show the sheet with the codebook next to it."""
    names = names_of(db, settings, classes, suggesting)
    queue_name, maps_payload = payload_of(db, settings, classes, suggesting, names)
    if not names:
        st.success(
            "You have labelled all maps in this selection. Draw more maps, or change the selection.",
            icon=":material/done_all:",
        )
    send_maps(maps_payload)
    with st.container(horizontal=True, wrap=False, key="station"):
        with st.container(key="station_sheet"):
            show_sheet(queue_name)
        with st.container(width=260 if docked else "content", key="station_codebook"):
            if docked:
                label_tools.docked_codebook(db, classes)


def show(tools: DeltaGenerator) -> None:
    db = resources.database()
    with tools:
        with st.container(width=110, gap=None):
            annotator = people.annotator_name(bare=True)
        open_projects = working.open_projects(db)
        project = None
        if open_projects:
            with st.container(width=200):
                project = working.pick_project(open_projects)
        if project is not None:
            codebook = st.container(width=130)
        else:
            class_set = label_tools.pick_class_set(db, bare=True)
            classes = label_tools.classes_now(db, class_set)
            kinds = labels.map_kinds(db)
            settings = (
                None
                if kinds.empty
                else label_settings.ask(kinds, classes, annotator, suggests=can_suggest(db, class_set))
            )
            docked = st.toggle(
                "Codebook", bool(recalled().get("codebook")), key="label_codebook", persist_state="session"
            )
            more_tools(db, classes, annotator)
            training = st.container(width="content")
    if project:
        if not annotator:
            st.info("Enter your name above. Your name is stored with each label.", icon=":material/badge:")
            return
        working.work(db, project, annotator, codebook)
        return
    say_unknown(db, class_set)
    if settings is None:
        show_bundled_sheet(db, classes)
        return
    if not annotator:
        st.subheader("Which pattern does each attention map show?", anchor=False)
        st.info(
            "Enter your name above to label these maps. Your name is stored with each label.", icon=":material/badge:"
        )
        pictures(db, labels.map_facts(db)["map_id"].head(SHOWN).tolist(), width=150)
        return
    db.person.must("annotator", "label")
    suggesting = None
    if settings.asks_classifier and can_suggest(db, class_set):
        suggesting = keep_best_known(db, class_set)
    station(db, settings, classes, suggesting, docked=docked)
    with training:
        offer_retraining(db, class_set)
    say_stored(kinds, class_set)
    remember({"codebook": docked, "label": settings.kept}, key="remember_label")


def show_bundled_sheet(db, classes) -> None:
    """Show the bundled maps read-only while none is stored, with a button that adds them."""
    examples, total = bundled_examples(classes.name)
    left, right = st.columns([5, 2], vertical_alignment="center")
    if examples:
        left.markdown(
            f"**This page shows {len(examples)} of the {total:,} bundled attention maps, each with the class that "
            "an AI model gave it.** *Label these maps* adds all bundled maps to your database. To label other maps, "
            "draw some under *Maps and files*."
        )
    else:
        left.info(
            "No maps are stored yet. Draw maps from a checkpoint under *Maps and files*.",
            icon=":material/add_photo_alternate:",
        )
    right.button("Label these maps", type="primary", icon=":material/stylus:", width="stretch", disabled=not examples,
                 on_click=_start_labelling, args=(db, classes))  # fmt: skip
    if examples:
        pictures(resources.bundled_labels_database(classes.name), list(examples), list(examples.values()), width=176)


def _start_labelling(db, classes) -> None:
    add_bundled(db, classes)
    if not (people.shared() or st.session_state.get("annotator")):
        st.session_state["annotator"] = "me"  # the field above changes it


def say_stored(kinds, class_set: str) -> None:
    st.caption(
        plain(
            f"Stored: {counted(kinds['maps'].sum(), 'maps')} of "
            f"{counted(kinds['checkpoint'].nunique(), 'checkpoints')} · class set {class_set} · "
            f"{date.today():%d %B %Y} · keys: digits label, Enter accepts the suggestion, Space skips, Backspace or "
            f"Ctrl+Z undoes, arrows move; b switches the brush on, and Shift with a digit chooses its class · red "
            f"ticks mark separators"
        )
    )
