"""Change: how much each head's attention differs before and after fine-tuning (Fig 5)."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core import config
from core.studies.attention.records import ChangeScore
from core.studies.tuning.change import STUDY
from core.tuning.saved_checkpoints import shown_folder, tuned_checkpoints
from pages.parts.reports.at_chance import warn_of_tuning
from pages.parts.reports.stored_runs import drawer, pick_run
from pages.parts.shell import context, url
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.tuning.change_pictures import STATISTICS, pictures, strongest
from pages.parts.tuning.tuning_settings import pick_data
from pages.parts.widgets import job_progress


def start() -> None:
    """Pick the checkpoint before and those after; start the job."""
    folders = [shown_folder(tuned.folder) for tuned in tuned_checkpoints(config.settings().runs / "finetuned")]
    folders += [tuned.name for tuned in tuned_checkpoints(config.BUNDLED_MODELS)]
    middle, right, last = st.columns([5, 1, 1], vertical_alignment="bottom")
    before = context.now().checkpoint
    after = url.pick_many(
        middle.multiselect,
        f"Fine-tuned from {before}",
        list(dict.fromkeys(folders)),
        key="after",
        accept_new_options=True,
        placeholder="fine-tuned checkpoints, or a folder",
    )
    limit = right.number_input(
        "Rows", 2, 100_000, 300, key="limit", bind="query-params", help="Dev rows of each task; the paper draws 1,000."
    )
    with st.expander("Where the rows come from"):
        data_folder = pick_data()
    options = {"before": before, "after": after, "limit": limit, "data": data_folder}
    ready_options = options if before and after else None
    job_progress.offer_start("change", ready_options, "Compare", title=lambda: f"Change of {before}", container=last)
    if not folders:
        st.caption("No checkpoint was fine-tuned here yet: the Fine-tuning page makes one in minutes.")


def results() -> None:
    """The stored comparisons."""
    stored = pick_run(
        "change",
        "Nothing has been compared yet: choose a checkpoint and one or more fine-tuned from it, and press Compare.",
        icon=":material/compare:",
    )
    if stored is None:
        return
    warn_of_tuning(stored)
    scores, compared = stored.among(ChangeScore), STUDY.read(dict(stored.told))
    stored_statistics = [name for name in STATISTICS if name in {score.statistic for score in scores}]
    statistic = url.pick(
        st.segmented_control, "Statistic", stored_statistics, key="statistic", default="cosine", required=True,
        format_func=lambda name: STATISTICS[name].title,
    )  # fmt: skip
    pictures(scores, statistic, stored.run, bundled=stored.sampled)
    source = "the task's own files" if compared.data else "the bundled samples"
    st.caption(
        plain(
            f"before: {compared.before} · dev rows of {source} · {stored.date} · "
            "95% intervals over rows, on hovering · maps are cropped to real tokens; the paper's notebook compared "
            "padded ones. In the paper the last two layers change most, except on QQP."
        )
    )
    st.subheader("Where did a head change most?")
    strongest(scores, compared)


def show(tools: DeltaGenerator) -> None:
    """The view."""
    with drawer("Compare other checkpoints", "change"):
        start()
    job_progress.show_jobs("change")
    with clear_errors():
        results()
