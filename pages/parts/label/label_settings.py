"""Settings of labelling: which maps, in which order, with or without suggestions. They are remembered."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from core.codebook.classes import ClassSet
from core.labelling.queue import QueueOptions
from pages.parts.shell import url
from pages.parts.shell.people import recalled

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


def ask(kinds: pd.DataFrame, classes: ClassSet, annotator: str, *, suggests: bool) -> Settings:
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
