"""Report on a retraining: scores before and after, changed suggestions, and the choice if a score is worse."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from core.interval import Interval
from core.patterns.retraining import RetrainingChange
from core.store import classifiers
from core.store.database import Database
from core.store.people import RightsError
from pages.parts.label.label_tools import pictures
from pages.parts.shell import people
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets.tables import show_table

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
        "Both classifiers are evaluated on the same maps, which neither of them was trained on, with the present "
        "labels. Macro F1 is the mean over classes with at least ten maps, or over all classes if fewer than two "
        "classes have ten maps. Intervals are 95 % CIs over inputs. Changes are paired by input. *worse* means that "
        "the whole interval of the change lies below zero for a score, or above zero for an error."
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
