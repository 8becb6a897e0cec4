"""Head statistics: entropy, where the mass goes, how far heads look, and what has an effect."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.scoring.definitions import STATISTICS
from core.studies.attention.records import PlaceScore
from pages.parts.reports import attending
from pages.parts.shell import url
from pages.parts.shell.messages import plain
from pages.parts.widgets.files import show_files


def show(tools: DeltaGenerator) -> None:
    """The view."""
    study, is_chosen = attending.measured_by("statistics", STATISTICS)
    measured = attending.rows_of(study, PlaceScore, task="sst2", options={})
    if measured is not None:
        measured = measured.where(is_chosen)
        scores = measured.scores
        names = [name for name in STATISTICS if name in {score.statistic for score in scores}]
        statistic = url.pick(
            st.selectbox, "Statistic", names, key="statistic", format_func=lambda name: f"{name}: {STATISTICS[name]}"
        )
        chosen = [score for score in scores if score.statistic == statistic]
        drawn = attending.pictures(chosen, "value", statistic, title=measured.title)
        st.caption(f"{measured.caption} · n = {attending.most_inputs(chosen)} inputs · {plain(STATISTICS[statistic])}")
        attending.table(measured, chosen, ["value", "low", "high", "n"], by="value", key="heads")
        show_files(measured.frame, drawn, study)
