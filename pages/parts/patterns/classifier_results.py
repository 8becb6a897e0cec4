"""What a trained classifier is worth: scores, confusion with its maps, learning curve, calibration, and its loss."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import streamlit as st

from core.reading import lines_of, read_text
from core.store.database import Database
from core.studies.patterns.records import Calibration, ClassScore, Confusion, HeldOutScore, LearningPoint
from core.studies.records import record_of
from pages.parts.charts.curves import calibration, line_with_band
from pages.parts.charts.encoding import Axes
from pages.parts.charts.matrices import matrix
from pages.parts.label.label_tools import pictures
from pages.parts.patterns.classifiers import HeldOut, KnownClassifier
from pages.parts.shell.messages import clear_errors, counted, plain
from pages.parts.widgets.tables import show_table

MOST_PICTURES = 12
CHECKPOINT = [
    "checkpoint", "maps", "accuracy", "macro_f1", "low", "high", "macro_f1_all", "ece", "ece_low", "ece_high",
    "sure_errors", "unsure", "outside",
]  # fmt: skip


@dataclass(frozen=True)
class ClickedCell:
    """A cell of the confusions: the labels' class and the predictions'."""

    truth: str
    predicted: str


@dataclass(frozen=True)
class ScoredMap:
    """A map with its label and what a classifier that did not see it called it."""

    map_id: str
    truth: str
    predicted: str


@dataclass(frozen=True)
class Epoch:
    """A line of a training's log: which of its fits (unit), which epoch of how many, loss in nats, macro F1."""

    unit: str
    epoch: int
    of: int
    loss: float
    f1: float


def show_results(db: Database, classifier: KnownClassifier) -> None:
    """Everything that was measured when it was trained."""
    held_out = classifier.held_out
    scores = HeldOutScore.among(held_out.rows)
    headlines = [score for score in scores if score.part == "scores"]
    headlines.sort(key=lambda score: score.on != held_out.on)
    for column, score in zip(st.columns(max(3, len(headlines))), headlines, strict=False):
        low, high = (float("nan") if end is None else end for end in (score.low, score.high))
        column.metric(
            f"Macro F1 on {plain(score.on)}",
            f"{score.macro_f1:.3f}",
            f"95 % {low:.3f} to {high:.3f} over {score.inputs} inputs, {score.maps} maps",
            delta_color="off",
            delta_arrow="off",
        )
        if beside := _beside(score):
            column.caption(beside)
        if score.identity_f1 is not None:
            column.caption(
                f"Guessing from which head it is, without looking at the map: {score.identity_f1:.3f} "
                f"({score.identity_low:.3f} to {score.identity_high:.3f})."
            )
    checkpoints = [score for score in scores if score.part == "checkpoint"]
    if checkpoints:
        st.markdown(plain("Each checkpoint, by a classifier trained without any of its maps"))
        show_table(pd.DataFrame(checkpoints, columns=CHECKPOINT).round(3))
    left, right = st.columns([1, 1])
    with left:
        _per_class(ClassScore.among(held_out.rows))
    with right:
        _confusion(db, Confusion.among(held_out.rows), held_out, classifier.classes)
    left, right = st.columns(2)
    with left:
        _curve(LearningPoint.among(held_out.rows), next((score.identity_f1 for score in headlines), None))
    with right:
        _calibration(Calibration.among(held_out.rows))


def _beside(score: HeldOutScore) -> str:
    """What stands beside a macro F1: the same over all classes, the calibration error, and the sure errors; "" of a
    classifier of an earlier version, which has none of them."""
    is_over_all = score.macro_f1_all == score.macro_f1  # also where fewer than two classes have ten maps
    notes = [] if is_over_all or score.macro_f1_all is None else [f"over all classes {score.macro_f1_all:.3f}"]
    if score.ece is not None:
        ends = "" if score.ece_low is None else f" ({score.ece_low:.3f} to {score.ece_high:.3f}, 95 % over heads)"
        notes.append(f"calibration error {score.ece:.3f}{ends}")
    if score.sure_errors is not None:
        notes.append(f"wrong with p above 0.8: {score.sure_errors:.1%}")
    if score.macro_f1_all is None and not notes:
        return ""
    return plain("; ".join(["Over all classes" if is_over_all else "Over classes of at least ten maps", *notes]) + ".")


def _per_class(scores: Sequence[ClassScore]) -> None:
    if not scores:
        return
    lines = [
        {"class": score.name, "precision": score.precision, "recall": score.recall, "f1": score.f1,
         "support": score.support}
        for score in scores
    ]  # fmt: skip
    show_table(pd.DataFrame(lines).round(3))
    rare = [score.name for score in scores if 0 < score.support < 20]
    if rare:
        st.caption(plain(f"Fewer than 20 scored maps: {', '.join(rare)}; their F1 says little."))


def _confusion(db: Database, pairs: Sequence[Confusion], held_out: HeldOut, names: Sequence[str]) -> None:
    if not pairs:
        return
    chart = matrix(
        pd.DataFrame(pairs),
        Axes(x="predicted", y="truth"),
        value="n",
        title="Labels (down) and predictions (across)",
        order=names,
        select=True,
    )
    picked = st.altair_chart(chart, width="content", on_select="rerun", selection_mode="cell", key="confusion_cell")
    cells = picked.selection.get("cell", [])
    if not cells:
        st.caption("Click a cell to see its maps.")
        return
    clicked = record_of(ClickedCell, cells[0])
    truth, predicted = clicked.truth, clicked.predicted
    scored_maps = [record_of(ScoredMap, row) for row in held_out.maps]
    maps = [scored.map_id for scored in scored_maps if (scored.truth, scored.predicted) == (truth, predicted)]
    st.markdown(plain(f"{counted(len(maps), 'maps')} labelled {truth} and predicted {predicted}"))
    pictures(db, maps[:MOST_PICTURES])


def _curve(steps: Sequence[LearningPoint], identity: float | None) -> None:
    if not steps:
        st.caption("No learning curve was asked for in this training.")
        return
    st.altair_chart(
        line_with_band(
            pd.DataFrame(steps),
            Axes(
                x="labels",
                y="macro_f1",
                low="low",
                high="high",
                x_title="labelled maps trained on",
                y_title="macro F1 on unseen inputs",
            ),
            title="Learning curve" if identity is None else "Learning curve; dashed: guessing from which head it is",
            domain=(0, 1),
            rule=identity,
        )
    )


def _calibration(bins: Sequence[Calibration]) -> None:
    if not bins:
        return
    st.altair_chart(
        calibration(
            pd.DataFrame(bins),
            Axes(x="confidence", y="accuracy", x_title="probability it gave", y_title="share it got right"),
            counted="n",
            title="Calibration",
        )
    )
    st.caption(
        f"n = {sum(calibration.n for calibration in bins)} maps · expected calibration error {bins[0].error:.3f}; on "
        "the dashed diagonal, 0.7 means right in 7 of 10."
    )


def show_log(folder: str, *, live: bool) -> None:
    """Loss and F1 by epoch, of the fits whose log lies in `folder`; asks again every second while live."""
    if folder and Path(folder).is_dir():
        st.fragment(_log, run_every=1.0 if live else None)(folder)


def _log(folder: str) -> None:
    with clear_errors():
        rows = [
            json.loads(line)
            for file in sorted(Path(folder).glob("*.jsonl"))
            for line in lines_of(read_text(file))
            if line.endswith("}")
        ]
        if not rows:
            st.caption("The first epoch is not done yet.")
            return
        epochs = pd.DataFrame(rows)
        newest = record_of(Epoch, rows[-1])
        st.caption(
            f"{plain(newest.unit)}: epoch {newest.epoch} of {plain(newest.of)}, loss {newest.loss:.3f}, "
            f"macro F1 on its training maps {newest.f1:.3f}"
        )
        left, right = st.columns(2)
        left.altair_chart(line_with_band(epochs, Axes(x="epoch", y="loss", colour="unit"), title="Loss (nats)"))
        right.altair_chart(
            line_with_band(
                epochs, Axes(x="epoch", y="f1", colour="unit"), domain=(0, 1), title="Macro F1 on the training maps"
            )
        )
