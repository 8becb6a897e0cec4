"""Head statistics: entropy, where attention goes, and how far heads attend."""

from math import log

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.scoring.definitions import STATISTICS
from core.studies.attention.records import PlaceScore
from pages.parts.reports import attending
from pages.parts.reports.study_view import details
from pages.parts.shell import url
from pages.parts.widgets.files import show_files


def show(tools: DeltaGenerator) -> None:
    inputs = attending.pick_inputs(tools)
    top, row = st.container(), st.container(horizontal=True, vertical_alignment="bottom")
    study, is_chosen = attending.measured_by(tools, "statistics", STATISTICS)
    with attending.shown_scores(study, PlaceScore, inputs, task="sst2", options=dict) as measured:
        if measured is None:
            return
        measured = measured.where(is_chosen)
        names = [name for name in STATISTICS if name in {score.statistic for score in measured.scores}]
        statistic = url.pick(
            row.selectbox, "Statistic", names, key="statistic", width=420,
        )  # fmt: skip
        scores = attending.pick_place(row, [score for score in measured.scores if score.statistic == statistic])
        ordered = sorted((score for score in scores if score.value is not None), key=lambda score: score.value or 0)
        least, most = ordered[0], ordered[-1]
        sentence = (
            f"{statistic.capitalize()} ranges from {least.value:.2f} ({least.name}) to {most.value:.2f} ({most.name})."
        )
        ends = "" if most.low is None else f"{most.name}: 95 % CI {most.low:.2f} to {most.high:.2f}."
        ends += f" Uniform attention to 20 tokens has an entropy of {log(20):.2f}." * (statistic == "entropy")
        attending.answered(
            measured, scores, top, f"Which heads have the highest {statistic}?", sentence,
            f"{statistic.capitalize()}: {STATISTICS[statistic]}. {ends}", study,
        )  # fmt: skip
        figure = attending.heatmap(
            scores, "value", statistic, title=f"Value of the statistic “{statistic}” for each head"
        )
        st.altair_chart(figure, width="content", key="picture")
        with details():
            attending.table(measured, scores, ["value", "low", "high", "n"], by="value", key="heads")
            show_files(measured.frame, [figure], study)
