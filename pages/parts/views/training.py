"""Fine-tune: checkpoints on tasks, from four initialisations, compared with the published Table 1."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.store.jobs import unit_outcomes
from core.studies.records import record_of
from core.studies.tuning.finetune import METRICS, STUDY, FinetuneOptions, live_runs
from core.studies.tuning.records import TunedScore
from core.tasks.glue import sampled
from core.tuning.recipe import INITIALISATIONS, PRESET_NOTES, PRESETS, Recipe, preset_for
from pages.parts.charts.curves import line_with_band
from pages.parts.charts.encoding import Axes
from pages.parts.reports.attending import task_said
from pages.parts.reports.caveats import explain_scores
from pages.parts.reports.stored_runs import StoredRun
from pages.parts.reports.study_view import drawer, shown_result
from pages.parts.shell import context, links, resources, url
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.tuning import table_one
from pages.parts.tuning.forms import pick_data, pick_settings
from pages.parts.widgets import job_progress, pickers
from pages.parts.widgets.tables import show_table

# ---------------------------------------------------------------- fine-tuning runs under way


@dataclass(frozen=True)
class LiveRun:
    """A running fine-tuning: its step, seconds left, its loss by step and its metrics by epoch."""

    step: int
    steps: int
    left: float | None
    losses: Sequence[Mapping[str, float]]
    epochs: Sequence[Mapping[str, float]]


def watch(job: str) -> None:
    """Show the progress of a job, with loss and metric of its active runs."""
    now = job_progress.show_job(job, rows=False)
    st.fragment(picture, run_every=1.0 if now.active else None)(job)


def picture(job: str) -> None:
    """Show loss by step and metrics by epoch of every active run on this machine."""
    with clear_errors():
        db = resources.database()
        under_way = live_runs(STUDY.read(job_progress.options_of(job)), list(unit_outcomes(db, job).key))
        for key, row in under_way.items():
            live = record_of(LiveRun, row)
            left = "" if live.left is None else f" · about {job_progress.duration(live.left)} left"
            st.markdown(f"**{plain(key)}** · training step {plain(live.step)} of {live.steps}{left}")
            places = st.columns(2)
            if live.losses:
                losses = pd.DataFrame(live.losses)
                places[0].altair_chart(line_with_band(losses, Axes(x="step", y="loss"), title="training loss"))
            epochs = pd.DataFrame(live.epochs).melt(["epoch", "step"], var_name="metric").dropna()
            if len(epochs):
                chart = line_with_band(epochs, Axes(x="epoch", y="value", colour="metric"), title="on dev")
                places[1].altair_chart(chart)


def start() -> None:
    """Ask for checkpoint, tasks, initialisations and recipe, and start the job."""
    checkpoint = context.now().checkpoint
    left, right = st.columns([3, 3])
    with left:
        tasks = pickers.pick_tasks("sst2")
    chosen = url.pick_many(
        right.multiselect, "Initialisations", INITIALISATIONS, key="initialisations", default=["pretrained"]
    )
    left, middle, right = st.columns([3, 3, 3], vertical_alignment="bottom")
    preset = url.pick(
        left.selectbox,
        "Recipe",
        list(PRESETS),
        key="preset",
        default=preset_for(str(checkpoint)),
        help="Choose the settings of Kovaleva et al. 2019 (paper) or of its GPT-2 replication, or settings for smaller "
        "checkpoints. “Data and settings” shows every setting.",
    )
    seeds = middle.number_input("Seeds", 1, 20, 3, key="seeds", bind="query-params",
                                help="The number of fine-tuning runs per task and initialisation. Use at least 3 "
                                     "runs to see how much scores vary.")  # fmt: skip
    st.caption(f"{preset}: {PRESET_NOTES[preset]}")
    with st.expander("Data and settings"):
        data_folder, changed = pick_data(), pick_settings(preset)
    name, revision = resources.split_revision(str(checkpoint))
    options = {
        "checkpoint": name, "revision": revision, "tasks": tasks, "initialisations": chosen,
        "seeds": list(range(seeds)), "data": data_folder, "preset": preset, "settings": changed,
    }  # fmt: skip
    job_progress.offer_start(
        "finetune",
        options if checkpoint and tasks and chosen else None,
        "Fine-tune",
        title=lambda: f"Fine-tune {name} on {pickers.named(tasks, data_folder)}",
        container=right,
    )


def kept_best(options: FinetuneOptions) -> str:
    """State that each run retained its best epoch, if so."""
    keeps_best = Recipe.of(options.preset, options.settings).keep == "best"
    return (
        " · the epoch with the best score on these dev examples was used, so scores are too high" if keeps_best else ""
    )


def compares_initialisations(stored: StoredRun) -> bool:
    """Return whether a result has several initialisations; other results vary one setting."""
    return len(stored.told.get("initialisations") or ()) > 1


def results() -> None:
    """Show Table 1 of a stored job, and its checkpoints."""
    with shown_result(
        "finetune",
        "No checkpoint has been fine-tuned yet. Choose tasks above and press “Fine-tune”. On the bundled samples, "
        "this takes minutes on a laptop, but the scores cannot be compared with published scores.",
        icon=":material/school:",
        prefer=compares_initialisations,
    ) as stored:
        if stored is None:
            return
        scores, options = stored.among(TunedScore), STUDY.read(dict(stored.told))
        for sentence in table_one.at_chance(scores):
            st.warning(plain(sentence), icon=":material/warning:")
        table_one.show_bars(scores, bundled=not options.data)
        explain_scores(stored)
        st.subheader("Scores compared with Table 1 of Kovaleva et al. and of the GPT-2 replication")
        table = table_one.named(table_one.table_one(scores, beside_printed=True))
        st.table(table if options.data else table.rename(columns=sampled))
        source = (
            "original files of the tasks"
            if options.data
            else "bundled samples, whose scores cannot be compared with published ones"
        )
        st.caption(
            plain(
                f"{table_one.note(scores, beside_printed=True)} · {stored.checkpoint} · {source} · "
                f"{stored.date}{kept_best(options)}"
            )
        )
        st.subheader("Checkpoints")
        columns = ["task", "initialisation", "seed", *METRICS, "note", "seconds", "folder"]
        runs_made = table_one.runs_table(scores, columns)
        show_table(runs_made.assign(task=[task_said(task, bundled=not options.data) for task in runs_made["task"]]))
        runs = [score for score in scores if score.kind == "run"]
        if not any(score.folder and Path(score.folder).expanduser().is_dir() for score in runs):
            st.caption(
                "The folders of these checkpoints are not on this machine. To train the checkpoints again, open “Save "
                "or cite” above and press “Run again”."
            )
            return
        st.caption("You can choose these checkpoints in the list of checkpoints on every page.")
        first = next((score for score in runs if score.initialisation == "pretrained"), runs[0])
        if st.button("Show how attention changed", icon=":material/compare:", key="compare_attention"):
            with clear_errors():
                change_options = {"before": stored.of, "after": [str(first.folder)]}
                job_progress.begin("change", change_options, f"Change of {stored.of}")
                links.go("finetuning/change", checkpoint=stored.of, after=str(first.folder))


def show(tools: DeltaGenerator) -> None:
    with drawer("Fine-tune a checkpoint", "finetune"):
        start()
    for job in job_progress.jobs_under_way("finetune")[:3]:
        watch(job)
    with clear_errors():
        results()
