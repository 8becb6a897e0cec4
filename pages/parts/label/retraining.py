"""Pattern classifiers: facts about one, retraining on the Label page, and what a retraining changed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import streamlit as st

from core.codebook.registry import labelled_folders
from core.interval import Interval
from core.jobs import api
from core.patterns.classifier_registry import can_suggest, keep_best_known, training_options
from core.patterns.retraining import RetrainingChange, compared
from core.patterns.snapshot import ENOUGH_ALONE, OWN_COPIES, snapshot, with_bundled
from core.store import classifiers
from core.store.database import Database
from core.store.people import RightsError
from core.store.rows import Row
from core.studies.records import record_of
from pages.parts.label.label_sheet import hints_of
from pages.parts.label.map_pictures import pictures
from pages.parts.shell import people, resources
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets.tables import show_table

# ---------------------------------------------------------------- facts about a classifier


@dataclass(frozen=True)
class HeldOut:
    """Scores on held-out maps. `on` is what was held out, `rows` all results of the study, `maps` each map."""

    macro_f1: float
    on: str = "unseen inputs"
    rows: Sequence[Row] = ()
    maps: Sequence[Row] = ()


@dataclass(frozen=True)
class KnownClassifier:
    """A stored or bundled classifier. `labels` is the number of its training labels."""

    title: str
    labels: int
    classes: Sequence[str]
    scores: Mapping[str, Any]

    @classmethod
    def of(cls, row: Row) -> "KnownClassifier":
        """Create the record from the store, or from the file of the bundled classifier."""
        return record_of(cls, row)

    @property
    def held_out(self) -> HeldOut:
        return record_of(HeldOut, self.scores)


# ---------------------------------------------------------------- report on a retraining


MOST_PICTURES = 12
HIGHEST = 460  # pixels: four parts of three figures


@dataclass(frozen=True)
class ChangedSuggestion:
    """A map of the queue whose suggested class has changed, with the probability of each class."""

    map_id: str
    before: str
    p_before: float
    after: str
    p_after: float


@dataclass(frozen=True)
class Report:
    """The result of a training. `before` is the previous classifier or None, `is_taken` whether the new one is used for
    suggestions, and `compared` the number of maps that both classified."""

    class_set: str
    before: str | None
    after: str
    figures: Sequence[RetrainingChange]
    changed: Sequence[ChangedSuggestion]
    compared: int
    is_taken: bool

    @property
    def worse(self) -> list[RetrainingChange]:
        """Return the scores that are significantly worse."""
        return [figure for figure in self.figures if figure.is_worse]


def offer(db: Database, report: Report) -> None:
    """Show one line, and all scores and maps behind a button; if the new classifier is not used, the two ways to
    proceed."""
    st.caption(plain(headline(report)))
    with st.popover("What changed", icon=":material/compare_arrows:", key="retraining_report"):
        if report.worse and not report.is_taken:
            st.warning(
                plain(
                    f"Suggestions are still by the previous classifier, because the new one is significantly worse: "
                    f"{worse_figures(report.worse)}."
                ),
                icon=":material/trending_down:",
            )
            take(db, report.class_set, report.after, "Use the new classifier anyway")
        show_figures(report.figures, report.before)
        _show_changed(db, report)


def headline(report: Report) -> str:
    """Return a sentence on whether the new classifier is used and how many suggestions changed."""
    if report.is_taken:
        word = "The new classifier now suggests labels"
    elif report.worse:
        word = "The new classifier is not used, because a score is significantly worse"
    else:
        word = "A new classifier was trained; an admin can select it for suggestions"
    if not report.compared:
        return f"{word}."
    summary = f"{len(report.changed)} of {report.compared} suggestions changed"
    pairs = Counter((change.before, change.after) for change in report.changed)
    if pairs:
        (was, now), count = pairs.most_common(1)[0]
        summary += f", most often {was} to {now} ({count})"
    return f"{word}: {summary}."


def worse_figures(worse: Sequence[RetrainingChange]) -> str:
    """Return each worse score with its change and interval."""
    return "; ".join(
        f"{comparison.figure} on {comparison.on} {comparison.change.value:+.3f} (95 % {comparison.change.low:+.3f} to "
        f"{comparison.change.high:+.3f})"
        for comparison in worse
    )


def take(db: Database, class_set: str, classifier: str, word: str) -> None:
    """Show a button that selects a classifier for suggestions."""
    if st.button(word, key=f"take_{classifier}"):
        with clear_errors():
            classifiers.choose(db, class_set, classifier, annotator=people.person().name)
            for name in ("label_payload", "queue", "_label_report"):
                st.session_state.pop(name, None)
            st.session_state["_label_trained"] = "The new classifier was selected for suggestions."
            st.rerun()


def let_suggest(db: Database, class_set: str, classifier: str) -> bool:
    """Select the classifier for suggestions, and return whether this was allowed."""
    try:
        classifiers.choose(db, class_set, classifier, annotator=people.person().name)
    except RightsError:
        return False
    return True


def show_figures(figures: Sequence[RetrainingChange], before: str | None) -> None:
    """Show the scores of both classifiers on the same maps, with intervals of the changes."""
    if not figures:
        st.caption(
            "There is no previous classifier to compare with."
            if before is None
            else "Every map was used to train one of the two classifiers, so they cannot be compared."
        )
        return
    rows = [
        {
            "on": figure.on,
            "figure": figure.figure,
            "": "worse" if figure.is_worse else "",
            "change": _shown(figure.change, sign="+"),
            "before": _shown(figure.before),
            "after": _shown(figure.after),
            "maps": figure.maps,
            "inputs": figure.inputs,
        }
        for figure in figures
    ]
    show_table(pd.DataFrame(rows), height=HIGHEST)
    st.caption(
        "Both classifiers are evaluated on the same maps, with the present labels. All predictions come from models "
        "that were not trained on these maps."
    )
    st.caption(
        "Macro F1 is the mean over classes with at least ten maps, or over all classes if fewer than two "
        "classes have ten maps."
    )
    st.caption(
        "Intervals are 95 % CIs over inputs, and changes are paired by input. *worse* means that the score is "
        "significantly lower, or the error significantly higher."
    )


def _shown(interval: Interval, *, sign: str = "") -> str:
    if interval.low is None:
        return f"{interval.value:{sign}.3f}"
    return f"{interval.value:{sign}.3f} ({interval.low:{sign}.3f} to {interval.high:{sign}.3f})"


def _show_changed(db: Database, report: Report) -> None:
    """Show how many maps changed from which class to which, and the first of them."""
    if not report.changed:
        return
    pairs = Counter((change.before, change.after) for change in report.changed).most_common()
    st.markdown("**Maps for which the suggested class has changed**")
    show_table(pd.DataFrame([{"before": was, "now": now, "maps": count} for (was, now), count in pairs]))
    shown = report.changed[:MOST_PICTURES]
    captions = [
        f"{suggestion.before} {suggestion.p_before:.2f}, now {suggestion.after} {suggestion.p_after:.2f}"
        for suggestion in shown
    ]
    pictures(db, [suggestion.map_id for suggestion in shown], captions, width=112)


# ---------------------------------------------------------------- retraining on the Label page


STUDY = "train-patterns"
MOST_COMPARED = 300  # maps of the queue that both classifiers are asked about: some seconds
OFTEN, SELDOM = 1.5, 2.0  # seconds between two looks, while something trains and else


def offer_retraining(db: Database, class_set: str) -> None:
    """Show a button with the number of labels that are new to the newest classifier, and a line during and after
    training.

    The button is always shown, so that the sheet does not move when the first label is added.
    """
    st.fragment(_watch, run_every=OFTEN if st.session_state.get("_label_training") else SELDOM)(db, class_set)


def offer_only_mine(class_set: str, container: Any = st) -> bool:
    """Ask whether to train without the bundled labels, if there are any; return the answer."""
    return class_set not in labelled_folders() or container.toggle(
        "Train without the bundled labels",
        key="only_mine",
        help=f"If off, the classifier is trained on the bundled labels and on the labels in this database, each of "
        f"which counts {OWN_COPIES} times. It is evaluated by cross-validation, which includes the maps of these "
        f"labels. Training without the bundled labels is useful with about {ENOUGH_ALONE} labels or more.",
    )


def _watch(db: Database, class_set: str) -> None:
    with clear_errors():
        job = st.session_state.get("_label_training")
        if job:
            _follow(db, class_set, job)
            return
        new = classifiers.labels_since_newest(db, class_set)
        report = st.session_state.get("_label_report")
        if report is not None and report.class_set == class_set:
            offer(db, report)
        elif st.session_state.get("_label_trained"):
            st.caption(st.session_state["_label_trained"])
        only_mine = offer_only_mine(class_set)
        if st.button(
            f"Retrain with {new} new label{'' if new == 1 else 's'}",
            icon=":material/model_training:",
            key="retrain",
            disabled=not new,
            help="Trains a new pattern classifier on the labels in this database and, unless you exclude them, the "
            "bundled labels. The new classifier suggests labels from then on, unless one of its scores is "
            "significantly worse than before or you lack the right to select classifiers.",
        ):
            mine = snapshot(db, class_set)
            labelled = mine if only_mine else with_bundled(mine)
            options = training_options(db, labelled, beside=False, curve=False, annotator=people.person().name)
            st.session_state.pop("_label_report", None)
            st.session_state["_label_before"] = keep_best_known(db, class_set) if can_suggest(db, class_set) else None
            st.session_state["_label_training"] = api.start(
                db, STUDY, options, f"Pattern classifier, {class_set}, trees"
            )
            st.rerun()


def _follow(db: Database, class_set: str, job: str) -> None:
    """Follow a running training; then compare it with the previous classifier and report the changes."""
    now = api.status(db, job)
    if now.active:
        st.progress(min(now.share, 1.0), text=f"Training on {len(snapshot(db, class_set).facts)} labelled maps ...")
        return
    del st.session_state["_label_training"]
    if now.state != "done" or not now.run:
        st.session_state["_label_trained"] = plain(
            f"The training of the classifier has stopped: {(now.error or now.state).rstrip('.')}."
        )
        st.rerun()
    before = st.session_state.pop("_label_before", None)
    st.session_state["_label_report"] = report_on(db, class_set, before, now.run[:12])
    st.session_state.pop("_label_trained", None)
    st.session_state.pop("label_payload", None)
    st.rerun()


def report_on(db: Database, class_set: str, before: str | None, after: str) -> Report:
    """Return what a training changed. The new classifier is used for suggestions unless a score is worse."""
    resources.wait_for_import()  # comparing asks a classifier, which needs torch
    figures = compared(db, before, after) if before else []
    changed, suggested = changed_suggestions(db, before, after)
    is_worse = any(figure.is_worse for figure in figures)
    is_suggesting = not is_worse and let_suggest(db, class_set, after)
    return Report(class_set, before, after, figures, changed, suggested, is_suggesting)


def changed_suggestions(db: Database, before: str | None, after: str) -> tuple[list[ChangedSuggestion], int]:
    """Return the maps of this queue whose suggested class has changed, and the number of compared maps."""
    names = st.session_state.get("queue", ("", []))[1][:MOST_COMPARED]
    if before is None or not names:
        return [], 0
    old, new = hints_of(db, before, names), hints_of(db, after, names)
    suggested_names = [name for name in names if name in old and name in new]  # not those too small to have a pattern
    return [
        ChangedSuggestion(name, old[name][0], old[name][1], new[name][0], new[name][1])
        for name in suggested_names
        if old[name][0] != new[name][0]
    ], len(suggested_names)
