"""Fine-tune: checkpoints on tasks, from four initialisations, beside the papers' Table 1."""

from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.studies.tuning.finetune import STUDY, FinetuneOptions
from core.studies.tuning.finetuning_results import METRICS
from core.studies.tuning.records import TunedScore
from core.tasks.glue import sampled
from core.tuning.recipe import INITIALISATIONS, PRESET_NOTES, PRESETS, Recipe, preset_for
from pages.parts.reports.attending import task_said
from pages.parts.reports.stored_runs import drawer, pick_run
from pages.parts.shell import context, links, resources, url
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.tuning import table_one
from pages.parts.tuning.live_runs import watch
from pages.parts.tuning.tuning_settings import pick_data, pick_settings
from pages.parts.widgets import job_progress, pickers
from pages.parts.widgets.tables import show_table


def start() -> None:
    """Pick checkpoint, tasks, initialisations and recipe; start the job."""
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
        help="The paper's, and for the small bundled checkpoints the one that suits them; every setting is below.",
    )
    seeds = middle.number_input("Seeds", 1, 20, 3, key="seeds", bind="query-params",
                                help="Runs of each task and initialisation; 3 give a spread.")  # fmt: skip
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
    """Says so where each run kept its best epoch."""
    keeps_best = Recipe.of(options.preset, options.settings).keep == "best"
    return " · the best epoch by these dev rows was kept, so scores are too high" if keeps_best else ""


def results() -> None:
    """Table 1 of a stored job, and its checkpoints."""
    stored = pick_run(
        "finetune",
        "Nothing has been fine-tuned yet: choose tasks above and press Fine-tune. The bundled samples are small "
        "enough for minutes on a laptop; their figures compare with nothing published.",
        icon=":material/school:",
    )
    if stored is None:
        return
    scores, options = stored.among(TunedScore), STUDY.read(dict(stored.told))
    st.subheader("Table 1")
    table = table_one.table_one(scores, beside_printed=True).set_index("task").T  # a column a task, all in sight
    st.table(table if options.data else table.rename(columns=sampled))
    source = "the tasks' own files" if options.data else "bundled samples, whose figures compare with nothing published"
    st.caption(
        plain(
            f"{table_one.note(scores, beside_printed=True)} · {stored.checkpoint} · {source} · "
            f"{stored.date}{kept_best(options)}"
        )
    )
    for sentence in table_one.at_chance(scores):
        st.warning(plain(sentence), icon=":material/warning:")
    table_one.show_bars(scores, bundled=not options.data)
    st.subheader("Checkpoints")
    columns = ["task", "initialisation", "seed", *METRICS, "note", "seconds", "folder"]
    runs_made = table_one.runs_table(scores, columns)
    show_table(runs_made.assign(task=[task_said(task, bundled=not options.data) for task in runs_made["task"]]))
    runs = [score for score in scores if score.kind == "run"]
    if not any(score.folder and Path(score.folder).expanduser().is_dir() for score in runs):
        st.caption("These folders are not on this machine: Run again makes them anew.")
        return
    st.caption("Every folder opens on all pages: it is in the list of checkpoints.")
    first = next((score for score in runs if score.initialisation == "pretrained"), runs[0])
    if st.button("How did attention change?", icon=":material/compare:", key="compare_attention"):
        with clear_errors():
            change_options = {"before": stored.of, "after": [str(first.folder)]}
            job_progress.begin("change", change_options, f"Change of {stored.of}")
            links.go("finetuning/change", checkpoint=stored.of, after=str(first.folder))


def show(tools: DeltaGenerator) -> None:
    """Start runs; see what is running; Table 1 and the checkpoints."""
    with drawer("Fine-tune a checkpoint", "finetune"):
        start()
    for job in job_progress.jobs_under_way("finetune")[:3]:
        watch(job)
    with clear_errors():
        results()
