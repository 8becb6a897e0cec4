"""What a trained classifier is worth: scores, confusion with its maps, learning curve, calibration, and its loss."""

import json
from pathlib import Path

import pandas as pd
import streamlit as st

from core.patterns.classes import ClassSet
from core.store.database import Database
from core.store.rows import Row
from pages.parts.charts.curves import line_with_band, points
from pages.parts.charts.encoding import Axes
from pages.parts.charts.matrices import matrix
from pages.parts.frame.messages import clear_errors, plain
from pages.parts.label.label_tools import pictures

MOST_PICTURES = 12


def show_results(db: Database, classifier: Row, classes: ClassSet) -> None:
    """Everything that was measured when it was trained."""
    scores = classifier["scores"]
    parts: dict[str, list[Row]] = {}
    for row in scores.get("rows", []):
        parts.setdefault(row["part"], []).append(row)
    for row in sorted(parts.get("scores", []), key=lambda row: row["on"] != scores.get("on")):
        st.metric(
            f"Macro F1 on {row['on']}",
            f"{row['macro_f1']:.3f}",
            f"95 % {row['low']:.3f} to {row['high']:.3f} over {row['inputs']} inputs, {row['maps']} maps",
            delta_color="off",
            delta_arrow="off",
        )
        if "identity_f1" in row:
            st.caption(
                f"Guessing from which head it is, without looking at the map: {row['identity_f1']:.3f} "
                f"({row['identity_low']:.3f} to {row['identity_high']:.3f})."
            )
    if "checkpoint" in parts:
        st.markdown(plain("Each checkpoint, by a classifier trained without any of its maps"))
        columns = ["checkpoint", "maps", "accuracy", "macro_f1", "low", "high", "ece", "unsure", "outside"]
        st.dataframe(pd.DataFrame(parts["checkpoint"])[columns].round(3), hide_index=True)
    per_class, matrix = st.columns([1, 1])
    with per_class:
        table = pd.DataFrame(parts.get("class", []))
        if len(table):
            st.dataframe(table[["class", "precision", "recall", "f1", "support"]].round(3), hide_index=True)
            rare = [row["class"] for row in parts["class"] if 0 < row["support"] < 20]
            if rare:
                st.caption(plain(f"Fewer than 20 scored maps: {', '.join(rare)}; their F1 says little."))
    with matrix:
        _confusion(db, pd.DataFrame(parts.get("confusion", [])), scores, list(classifier["classes"]))
    curve, reliability = st.columns(2)
    with curve:
        _curve(pd.DataFrame(parts.get("curve", [])))
    with reliability:
        _calibration(pd.DataFrame(parts.get("calibration", [])))


def _confusion(db: Database, rows: pd.DataFrame, scores: Row, names: list[str]) -> None:
    if rows.empty:
        return
    chart = matrix(
        rows,
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
    truth, predicted = cells[0].get("truth"), cells[0].get("predicted")
    maps = [row["map_id"] for row in scores.get("maps", []) if (row["truth"], row["predicted"]) == (truth, predicted)]
    st.markdown(plain(f"{len(maps)} maps labelled {truth} and predicted {predicted}"))
    pictures(db, maps[:MOST_PICTURES])


def _curve(rows: pd.DataFrame) -> None:
    if rows.empty:
        st.caption("No learning curve was asked for in this training.")
        return
    st.altair_chart(
        line_with_band(
            rows,
            Axes(
                x="labels",
                y="macro_f1",
                low="low",
                high="high",
                x_title="labelled maps trained on",
                y_title="macro F1 on unseen inputs",
            ),
            title="Learning curve",
            domain=(0, 1),
        )
    )


def _calibration(rows: pd.DataFrame) -> None:
    if rows.empty:
        return
    st.altair_chart(
        points(
            rows,
            Axes(x="confidence", y="accuracy", x_title="probability it gave", y_title="share it got right"),
            title="Calibration",
            tooltip=["n"],
            square=True,
        )
    )
    st.caption(f"Expected calibration error {rows['error'].iloc[0]:.3f}; on the diagonal, 0.7 means right in 7 of 10.")


def show_log(folder: str, *, live: bool) -> None:
    """Loss and F1 by epoch, of the fits whose log lies in `folder`; asks again every second while live."""
    if folder and Path(folder).is_dir():
        st.fragment(_log, run_every=1.0 if live else None)(folder)


def _log(folder: str) -> None:
    with clear_errors():
        rows = [
            json.loads(line)
            for file in sorted(Path(folder).glob("*.jsonl"))
            for line in file.read_text(encoding="utf-8").splitlines()
            if line.endswith("}")
        ]
        if not rows:
            st.caption("The first epoch is not done yet.")
            return
        epochs = pd.DataFrame(rows)
        newest = rows[-1]
        st.caption(
            f"{plain(newest['unit'])}: epoch {newest['epoch']} of {newest['of']}, loss {newest['loss']:.3f}, "
            f"macro F1 on its training maps {newest['f1']:.3f}"
        )
        left, right = st.columns(2)
        left.altair_chart(line_with_band(epochs, Axes(x="epoch", y="loss", colour="unit"), title="Loss (nats)"))
        right.altair_chart(
            line_with_band(
                epochs, Axes(x="epoch", y="f1", colour="unit"), domain=(0, 1), title="Macro F1 on the training maps"
            )
        )
