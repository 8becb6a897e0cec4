"""Fine-tune: checkpoints on tasks, from four initialisations, beside the papers' Table 1."""

import pandas as pd
import streamlit as st

from core.measuring.tuned import METRICS
from core.store.database import Database
from core.store.jobs import jobs, one_job, unit_outcomes
from core.store.runs import one_run, run_rows
from core.studies.finetune import STUDY, live_runs
from core.tuning.recipe import INITIALISATIONS, PRESET_NOTES, PRESETS, Recipe
from pages.parts.charts.curves import line_with_band
from pages.parts.charts.encoding import Axes
from pages.parts.frame import resources
from pages.parts.frame.messages import clear_errors, plain
from pages.parts.frame.page_table import PAGES_FOLDER
from pages.parts.reports.stored_runs import drawer, pick_run
from pages.parts.tuning import table_one
from pages.parts.tuning.tuning_settings import pick_data, pick_settings
from pages.parts.widgets import job_progress, pickers


def start() -> None:
    """Pick checkpoint, tasks, initialisations and recipe; start the job."""
    left, middle, right = st.columns([3, 3, 3])
    with left:
        checkpoint = pickers.pick_checkpoint()
    with middle:
        tasks = pickers.pick_tasks("sst2")
    chosen = right.multiselect(
        "Initialisations", list(INITIALISATIONS), default=["pretrained"], format_func=INITIALISATIONS.get
    )
    left, middle, right = st.columns([3, 3, 3], vertical_alignment="bottom")
    preset = left.selectbox("Recipe", list(PRESETS), help="The paper's by default; every setting is below.")
    seeds = middle.number_input("Seeds", 1, 20, 3, help="Runs of each task and initialisation; 3 give a spread.")
    st.caption(f"{preset}: {PRESET_NOTES[preset]}")
    with st.expander("Data and settings"):
        data, changed = pick_data(), pick_settings(preset)
    if right.button("Fine-tune", type="primary", width="stretch", disabled=not (checkpoint and tasks and chosen)):
        with clear_errors():
            name, revision = resources.split_revision(checkpoint)
            options = {
                "checkpoint": name,
                "revision": revision,
                "tasks": tasks,
                "initialisations": chosen,
                "seeds": list(range(seeds)),
                "data": data,
                "preset": preset,
                "settings": changed,
            }
            title = f"Fine-tune {name} on {pickers.named(tasks)}"
            job_progress.begin("finetune", options, title)
            st.rerun()


def watch(job: str) -> None:
    """A job at work: its bar, and loss and metric of the runs under way."""
    now = job_progress.show_job(job, rows=False)
    st.fragment(picture, run_every=1.0 if now.active else None)(job)


def picture(job: str) -> None:
    """Loss by step and metrics by epoch of every run under way on this machine."""
    with clear_errors():
        db = resources.database()
        under_way = live_runs(STUDY.read(one_job(db, job)["options"]), list(unit_outcomes(db, job)["key"]))
        for key, live in under_way.items():
            left = "" if live["left"] is None else f" · about {job_progress.duration(live['left'])} left"
            st.markdown(f"**{plain(key)}** · step {live['step']} of {live['steps']}{left}")
            places = st.columns(2)
            if live["losses"]:
                losses = pd.DataFrame(live["losses"])
                places[0].altair_chart(line_with_band(losses, Axes(x="step", y="loss"), title="training loss"))
            epochs = pd.DataFrame(live["epochs"]).melt(["epoch", "step"], var_name="metric").dropna()
            if len(epochs):
                chart = line_with_band(epochs, Axes(x="epoch", y="value", colour="metric"), title="on dev")
                places[1].altair_chart(chart)


def kept_best(db: Database, run: str) -> str:
    """Says so where each run kept its best epoch."""
    options = STUDY.read(one_run(db, run)["options"])
    kept = Recipe.of(options.preset, options.settings).keep == "best"
    return " · the best epoch by these dev rows was kept, so scores are too high" if kept else ""


def results() -> None:
    """Table 1 of a stored job, and its checkpoints."""
    db = resources.database()
    picked = pick_run(
        "finetune",
        "Nothing has been fine-tuned yet: choose tasks above and press Fine-tune. The bundled samples are small "
        "enough for minutes on a laptop; their figures compare with nothing published.",
        icon=":material/school:",
    )
    if picked is None:
        return
    run, about = picked
    rows = run_rows(db, run)
    st.subheader("Table 1")
    st.table(
        table_one.table_one(rows, beside_printed=True).set_index("task").T
    )  # a column a task, so that all of it is in sight
    mine = [row for row in rows if row["kind"] == "run"]
    source = (
        STUDY.read(one_run(db, run)["options"]).data or "bundled samples, whose figures compare with nothing published"
    )
    st.caption(
        plain(
            f"{table_one.note(rows, beside_printed=True)} · {about['checkpoint']} · {source} · "
            f"{about['created']:%d %B %Y}{kept_best(db, run)}"
        )
    )
    table_one.show_bars(rows)
    st.subheader("Checkpoints")
    shown = pd.DataFrame(mine)
    columns = ["task", "initialisation", "seed", *METRICS, "note", "seconds", "folder"]
    st.dataframe(shown[[name for name in columns if name in shown]], hide_index=True)
    st.caption("Every folder opens in all pages: it is in the list of each checkpoint picker.")
    base = about["checkpoint"]
    first = next((row["folder"] for row in mine if row["initialisation"] == "pretrained"), mine[0]["folder"])
    st.page_link(
        PAGES_FOLDER / "change.py",
        label="How did attention change?",
        icon=":material/compare:",
        query_params={"before": base, "after": first},
    )


st.title("Fine-tune")
with drawer("Fine-tune a checkpoint", "finetune"):
    start()
found = jobs(resources.database())
shown_states = ["queued", "running", "failed", "cancelled", "interrupted"]
stopped = found[(found["study"] == "finetune") & found["state"].isin(shown_states)].head(3) if len(found) else found
for job in stopped["job"] if len(stopped) else ():
    watch(job)
with clear_errors():
    results()
