"""Fine-tuning runs under way: loss by step, metrics by epoch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from core.store.jobs import unit_outcomes
from core.studies.records import record_of
from core.studies.tuning.finetune import STUDY, live_runs
from pages.parts.charts.curves import line_with_band
from pages.parts.charts.encoding import Axes
from pages.parts.shell import resources
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets import job_progress


@dataclass(frozen=True)
class LiveRun:
    """A run at work: the step it is at, seconds left, its loss by step and its metrics by epoch."""

    step: int
    steps: int
    left: float | None
    losses: Sequence[Mapping[str, float]]
    epochs: Sequence[Mapping[str, float]]


def watch(job: str) -> None:
    """A job at work: its bar, and loss and metric of the runs under way."""
    now = job_progress.show_job(job, rows=False)
    st.fragment(picture, run_every=1.0 if now.active else None)(job)


def picture(job: str) -> None:
    """Loss by step and metrics by epoch of every run under way on this machine."""
    with clear_errors():
        db = resources.database()
        under_way = live_runs(STUDY.read(job_progress.options_of(job)), list(unit_outcomes(db, job).key))
        for key, row in under_way.items():
            live = record_of(LiveRun, row)
            left = "" if live.left is None else f" · about {job_progress.duration(live.left)} left"
            st.markdown(f"**{plain(key)}** · step {plain(live.step)} of {live.steps}{left}")
            places = st.columns(2)
            if live.losses:
                losses = pd.DataFrame(live.losses)
                places[0].altair_chart(line_with_band(losses, Axes(x="step", y="loss"), title="training loss"))
            epochs = pd.DataFrame(live.epochs).melt(["epoch", "step"], var_name="metric").dropna()
            if len(epochs):
                chart = line_with_band(epochs, Axes(x="epoch", y="value", colour="metric"), title="on dev")
                places[1].altair_chart(chart)
