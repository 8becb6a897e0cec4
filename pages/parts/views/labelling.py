"""Label maps: sort attention maps into classes by click or key."""

from collections.abc import Mapping
from datetime import date
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.codebook.classes import ClassSet
from core.labelling.queue import QueueOptions, queue
from core.patterns.classifier_registry import bundled_labels, can_suggest, keep_best_known
from core.patterns.snapshot import known_class_set
from core.store import labels
from pages.parts.label import class_forms, label_tools
from pages.parts.label.label_sheet import hints_of, payload, send_maps, show_sheet
from pages.parts.label.label_tools import say_unknown
from pages.parts.label.map_pictures import pictures, show_codebook
from pages.parts.label.retraining import offer_retraining
from pages.parts.shell import people, resources, url
from pages.parts.shell.messages import counted, plain
from pages.parts.shell.people import recalled, remember
from pages.parts.team import project_sheet
from pages.parts.team.bundled_labels import bundled_examples

# -------------------- settings: which maps, in which order, with or without suggestions; they are remembered


ORDERS = {
    "random": "at random",
    "uncertain": "most uncertain first",
    "disagreement": "disagreements first",
    "adjudication": "adjudicate disagreements",
    "codebook": "labels that the codebook contradicts first",
    "clusters": "alike maps together",
}
ALL = "all"


class Settings(NamedTuple):
    """The chosen queue, whether suggestions are shown, and both as they are remembered."""

    wish: QueueOptions
    hinted: bool
    kept: dict[str, Any]

    @property
    def asks_classifier(self) -> bool:
        return self.hinted or self.wish.order == "uncertain"


def ask_settings(kinds: pd.DataFrame, classes: ClassSet, annotator: str, *, suggests: bool) -> Settings:
    """Show the forms in the bar: a drawer for the queue, and the switch for suggestions."""
    before = recalled().get("label", {})
    with st.popover("Queue", icon=":material/tune:"):
        chosen = _queue_filters(kinds, classes, before) | _how(before)
    hinted = st.toggle(
        "Suggestions",
        bool(before.get("suggestions")) and suggests,
        key="label_suggestions",
        persist_state="session",
        disabled=not suggests,
        help="Shows the class that the classifier predicts. Labels that you give while you see suggestions are not "
        "used for the main score of a classifier."
        if suggests
        else "No classifier is selected for suggestions with this class set. Choose one on Annotate > Classifier.",
    )
    wish = QueueOptions(
        classes.name,
        annotator,
        chosen["pass"],
        chosen["order"],
        chosen["seed"],
        checkpoint=_or_none(chosen["of"]),
        task=_or_none(chosen["of_task"]),
        layer=None if chosen["of_layer"] == ALL else int(chosen["of_layer"]) - 1,
        review=_or_none(chosen["show"]),
        leave_out_uniform=chosen["leave_out"],
    )
    return Settings(wish, hinted and suggests, chosen | {"suggestions": hinted})


def _queue_filters(kinds: pd.DataFrame, classes: ClassSet, before: Mapping[str, Any]) -> dict[str, Any]:
    """Ask for order and filters, each stored in the URL."""
    first = _previous(before, "order", ORDERS)
    titles = {cls.name: cls.title for cls in classes.classes}
    about = (
        "Choose a checkpoint that fits the class set: the GPT-2 classes describe decoders, the BERT classes encoders."
    )
    start = _fitting(kinds, classes)
    if st.session_state.get("_label_classes") != classes.name:  # what was usual for other classes was nobody's choice
        st.session_state.pop("of", None)
        st.session_state["_label_classes"] = classes.name
    layers = [str(number + 1) for number in sorted(kinds["layer"].unique())]
    return {
        "order": url.pick(st.selectbox, "Order", list(ORDERS), key="order", format_func=ORDERS.get, default=first),
        "of": _pick("Checkpoint", "of", sorted(kinds["checkpoint"].unique()), before, start=start, about=about),
        "of_task": _pick("Task", "of_task", sorted(kinds["task"].unique()), before),
        "of_layer": _pick("Layer", "of_layer", layers, before),
        "show": _pick(
            "Show",
            "show",
            list(titles),
            before,
            titles={ALL: "undecided"} | titles,
            about="Show undecided maps, or the maps to which you gave this class.",
        ),
    }


def _how(before: Mapping[str, Any]) -> dict[str, Any]:
    """Ask for pass, seed, and whether nearly uniform maps are left out."""
    settings: dict[str, Any] = {"persist_state": "session"}
    second_pass = (
        "Choose 2 to label the same maps a second time without seeing your first labels. This measures the "
        "consistency of your labels."
    )
    return {
        "pass": st.number_input(
            "Pass", 1, 9, int(before.get("pass", 1)), key="label_pass", help=second_pass, **settings
        ),
        "seed": st.number_input(
            "Seed of the order", 0, 10**6, int(before.get("seed", 0)), key="label_seed", **settings
        ),
        "leave_out": st.toggle(
            "Leave out maps with nearly uniform attention",
            bool(before.get("leave_out")),
            key="label_leave_out",
            help="Leaves out attention maps whose largest weight is below 0.1, because such maps show no pattern.",
            **settings,
        ),
    }


def _pick(
    label: str,
    key: str,
    options: list[str],
    before: Mapping[str, Any],
    *,
    start: str = ALL,
    titles: Mapping[str, str] | None = None,
    about: str | None = None,
) -> str:
    previous = _previous(before, key, [ALL, *options])
    return url.pick(
        st.selectbox,
        label,
        [ALL, *options],
        key=key,
        default=previous if key in before else start,
        format_func=(titles or {}).get if titles else str,
        help=about,
    )


def _previous(before: Mapping[str, Any], key: str, options: Any) -> str:
    """Return the earlier choice if it still exists, otherwise the first."""
    return before[key] if before.get(key) in options else next(iter(options))


def _fitting(kinds: pd.DataFrame, classes: ClassSet) -> str:
    """Return a checkpoint that these classes describe, if maps of encoders and decoders are stored."""
    if classes.causal is None:
        return ALL
    fitting = sorted(kinds.loc[kinds["causal"] == classes.causal, "checkpoint"].unique())
    return fitting[0] if fitting and kinds["checkpoint"].nunique() > 1 else ALL


def _or_none(chosen: str) -> str | None:
    return None if chosen == ALL else chosen


# ---------------------------------------------------------------- the view


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
        tool = st.segmented_control("What to do", ["Sample maps", "Classes", "Files"], default="Sample maps",
                                    required=True, label_visibility="collapsed")  # fmt: skip
        if tool == "Sample maps":
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
            "No map in this selection is left to label. Sample more maps, or change the selection.",
            icon=":material/done_all:",
        )
    send_maps(maps_payload)
    with st.container(horizontal=True, wrap=False, key="station"):
        with st.container(key="station_sheet"):
            show_sheet(queue_name)
        with st.container(width=260 if docked else "content", key="station_codebook"):
            if docked:
                with st.container(height=620, border=True):
                    show_codebook(db, classes, columns=False)


def show(tools: DeltaGenerator) -> None:
    db = resources.database()
    with tools:
        with st.container(width=110, gap=None):
            annotator = people.annotator_name(bare=True)
        open_projects = project_sheet.open_projects(db)
        project = None
        if open_projects:
            with st.container(width=200):
                project = project_sheet.pick_project(open_projects)
        if project is not None:
            codebook = st.container(width=130)
        else:
            class_set = label_tools.pick_class_set(db, bare=True)
            classes = known_class_set(db, class_set)
            kinds = labels.map_kinds(db)
            settings = (
                None if kinds.empty else ask_settings(kinds, classes, annotator, suggests=can_suggest(db, class_set))
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
        project_sheet.work(db, project, annotator, codebook)
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
            f"**This page shows {len(examples)} of the {total:,} bundled attention maps, each with the class that an "
            "AI model gave it.** *Label these maps* adds all bundled maps to your database. To label other maps, "
            "sample some under *Maps and files*."
        )
    else:
        left.info(
            "No maps are stored yet. Under *Maps and files*, sample attention maps from a checkpoint.",
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
