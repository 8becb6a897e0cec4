"""Races: which heads matter to the task's loss beyond a margin, started, watched and read."""

import pandas as pd
import streamlit as st

from core.jobs import api
from core.measuring.race_table import said_of
from core.store.jobs import jobs
from core.store.runs import study_rows
from core.studies.contract import declared
from core.studies.race import STUDY, Options
from pages.parts.disable.live import SWEPT
from pages.parts.disable.race_pictures import gradient_beside, intervals, looks, rows_taken, verdict_counts
from pages.parts.disable.stand_ins import mean_by
from pages.parts.disable.sweeps import WHAT, shared_options
from pages.parts.frame import resources
from pages.parts.frame.messages import clear_errors, plain
from pages.parts.reports.stored_runs import drawer, pick_run
from pages.parts.widgets import job_progress

SAID = declared(Options)
KINDS = [kind for kind in WHAT if kind != "duplicates"]


def show_races() -> None:
    """Start a race; see its running intervals; read its verdicts."""
    with drawer("Race on another checkpoint or task", "race"):
        _start()
    known = jobs(resources.database())
    if len(known):
        wanted = (known["study"] == "race") & known["state"].isin(["queued", "running", "failed"])
        for job in known[wanted].head(2)["job"]:
            now = job_progress.show_job(job, rows=False)
            st.fragment(_under_way, run_every=3.0 if now.active else None)(job)
    with clear_errors():
        _results()


def _start() -> None:
    shared = shared_options()
    left, middle, right = st.columns(3)
    what = left.selectbox("What races", KINDS, format_func=WHAT.__getitem__, key="race_what")
    operator = middle.selectbox(
        "Instead of its attention", list(SWEPT), format_func=SWEPT.__getitem__, key="race_operator"
    )
    margin = right.number_input(
        "Margin, in the task's loss", min_value=0.0, value=None, format="%.4f", placeholder="5% of a constant's loss",
        help=SAID["margin"].help, key="race_margin",
    )  # fmt: skip
    heads = ""
    if what == "groups":
        heads = st.text_input("Groups", key="race_heads", placeholder="L1H2,L7H6; L4H1", help=SAID["heads"].help)
    how = mean_by(operator, key="race_mean_by")
    anytime = st.checkbox("Intervals that hold whenever I stop", help=SAID["anytime"].help, key="race_anytime")
    if st.button("Race", type="primary", disabled=shared is None) and shared:
        with clear_errors():
            more = {"what": what, "operator": operator, "heads": heads, "margin": margin, "anytime": anytime} | how
            options = STUDY.read(shared | more)
            job_progress.begin("race", shared | more, STUDY.title(options))
            st.rerun()
    st.caption(
        "Looks after 64, 128, 256 ... rows in a random order; a head whose interval lies beyond the margin matters, "
        "one whose interval lies within it does not, and both stop. The others take more rows."
    )


def _under_way(job: str) -> None:
    """The intervals so far: they hold at whatever moment they are looked at."""
    with clear_errors():
        rows = api.partial_rows(resources.database(), job)
        if rows.empty or rows[rows["kind"] == "verdict"]["always_low"].isna().all():
            return
        body, whole = rows[rows["kind"] == "verdict"], rows.iloc[0]
        st.markdown(f"So far: {verdict_counts(whole)}.")
        st.altair_chart(intervals(body, float(whole["margin"]), always=True))


def _results() -> None:
    picked = pick_run(
        "race", "No race was run yet: choose a fine-tuned checkpoint and press Race.", key="race_run",
        icon=":material/sprint:",
    )  # fmt: skip
    if picked is None:
        return
    run, about = picked
    rows = study_rows(resources.database(), run)
    whole, body = rows.iloc[0].to_dict(), rows[rows["kind"] == "verdict"]
    for column, name in zip(st.columns(3), ("matters", "does not matter", "open"), strict=True):
        column.metric(name, f"{int(whole[name])} of {len(body)}")
    st.markdown(plain(said_of(_whole_numbers(whole))))
    st.altair_chart(intervals(body, float(whole["margin"])))
    left, right = st.columns(2)
    if body["head"].notna().all():
        left.altair_chart(rows_taken(body), width="content")
    right.altair_chart(gradient_beside(body, whole))
    left.dataframe(looks(rows[rows["kind"] == "look"]), hide_index=True)
    st.dataframe(_table(body), hide_index=True)
    st.caption(plain(
        f"{about['checkpoint']} · {whole['task']} {about['split']} · {int(whole['n'])} rows · operator "
        f"{whole['operator']} · {about['dtype']} · seed {about['seed']} · {about['created']:%d %B %Y} · intervals hold "
        f"together for all heads and looks, {1 - whole['alpha']:.0%}; they speak of the task, not of these rows alone; "
        "the metric's own, of heads that matter, one at a time, paired bootstrap"
    ))  # fmt: skip


def _whole_numbers(row: dict) -> dict:
    names = ("matters", "does not matter", "open", "evaluations", "evaluations_full", "gradient_wrong_signs")
    rho = row["gradient_spearman"]
    return row | {name: int(row[name]) for name in names} | {"gradient_spearman": None if pd.isna(rho) else rho}


def _table(body: pd.DataFrame) -> pd.DataFrame:
    """Verdicts, most effect first."""
    metrics = [name for name in body if str(name).endswith("_change")]
    ends = [f"{str(name).removesuffix('_change')}_{end}" for name in metrics for end in ("change", "low", "high")]
    columns = ["name", "verdict", "rows", "effect", "effect_low", "effect_high", "gradient_first", *ends]
    order = body["effect"].astype(float).abs().sort_values(ascending=False, na_position="last").index
    return body.loc[order, columns]
