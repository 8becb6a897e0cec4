"""Seed variance: effects of initial head weights, sample of examples and order of batches on fine-tuning."""

from dataclasses import asdict

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.interval import in_points
from core.studies.ablation.records import SEED_WORDS, HeadOverlap, SeededRun, SeedSource, SeedSpread, StableHead
from pages.parts.charts.curves import values_with_intervals
from pages.parts.charts.encoding import Axes
from pages.parts.reports.caveats import explain_scores
from pages.parts.reports.study_view import details, drawer, shown_result
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.tuning.forms import Count, start_training
from pages.parts.widgets import job_progress
from pages.parts.widgets.tables import show_table

SHARED = {
    "all pairs": "all pairs",
    "same head": "same classifier",
    "same rows": "same rows",
    "same order": "same order",
    "no seed in common": "no common seed",
    "same run, other rows": "halves of a run",
}
SIDE = Count(
    "side", "Seeds of each kind", 3, 10, 3, "With 3 seeds of each of the three kinds, 9 runs are made (a Latin square)."
)


def show(tools: DeltaGenerator) -> None:
    job_progress.show_jobs("seeds")
    with clear_errors():
        _results()
    with drawer("Run on another task", "seeds"):
        start_training("seeds", SIDE, limit="train_rows", verb="Run", title="Seed variance:")


def _results() -> None:
    with shown_result(
        "seeds", "No study of seed variance is stored yet. Choose a checkpoint and a task, and press “Run”.", "seeds"
    ) as stored:
        if stored is None:
            return
        rows = stored.result_rows
        runs = SeededRun.among(rows)
        left, right = st.columns(2)
        with left:
            _sources(SeedSource.among(rows))
        with right:
            _overlaps(HeadOverlap.among(rows))
        stable = [head for head in StableHead.among(rows) if head.runs == head.n]
        st.markdown(
            "Heads that are among the most important heads in every run: "
            f"**{plain(', '.join(h.name for h in stable) or 'none')}**."
        )
        with details():
            for spread in SeedSpread.among(rows):
                _spread(spread)
            explain_scores(stored)
            st.caption(
                "“same classifier” compares runs with the same initial weights of the classifier. “halves of a run” "
                "compares two halves of the examples in one run."
            )
            show_table(pd.DataFrame(map(asdict, runs)))
            show_table(pd.DataFrame(map(asdict, StableHead.among(rows))))
            st.caption(
                "The seeds form a Latin square: for any two kinds of seed, each combination of values occurs in "
                "exactly one run."
            )
            st.caption(
                "The importance of a head is the gradient importance of Michel et al. 2019, without normalisation "
                "within layers. The 95 % CI of the number of shared heads is from a jackknife over runs."
            )


def _spread(spread: SeedSpread) -> None:
    """Show the spread of runs, compared with the uncertainty due to the dev examples."""
    error = spread.dev_error
    beside = (
        ""
        if error is None
        else f"; the standard error of one score on {spread.dev_rows} dev examples is {100 * error:.1f} points"
    )
    predict = "run predicts" if spread.constant == 1 else "runs predict"
    constant = f" {spread.constant} {predict} the same class for every example." if spread.constant else ""
    if spread.deviation is None:
        why = "only one run is stored" if spread.n == 1 else f"the {spread.metric} {spread.ends}"
        st.markdown(f"The standard deviation over runs is undefined, because {plain(why)}.{constant}")
        return
    st.markdown(
        f"The standard deviation over {spread.n} runs is **{100 * spread.deviation:.1f}** points of "
        f"{plain(spread.metric)}, which {plain(spread.ends)}{beside}.{constant}"
    )


def _sources(sources: list[SeedSource]) -> None:
    """Show the share of the variance that each seed causes; the dashed line is the expected share without effect."""
    estimated = [source for source in sources if source.share is not None]
    if not estimated:
        st.info(
            "All runs have the same score, or the score of some runs is undefined, so there is no variance to explain."
        )
        return
    bars = [
        {
            "seed": SEED_WORDS[source.name],
            "share": 100 * (source.share or 0),
            "p corrected": source.p,
            "points": in_points(source.deviation),
        }
        for source in estimated
    ]
    axes = Axes(x="seed", y="share", y_title="% of the variance")
    title = f"Share of the variance of {estimated[0].metric} by kind of seed (dashed: expected by chance)"
    tooltip = ("p corrected", "points")
    rule = 100 * estimated[0].by_chance
    st.altair_chart(values_with_intervals(pd.DataFrame(bars), axes, rule=rule, title=title, tooltip=tooltip))
    p_values = ", ".join(
        f"{plain(bar['seed'])} {bar['p corrected']:.2f}" for bar in bars if bar["p corrected"] is not None
    )
    st.caption(
        f"Corrected p-values of F-tests: {p_values}. With {estimated[0].n} runs, the tests can miss small and medium "
        "effects."
    )


def _overlaps(overlaps: list[HeadOverlap]) -> None:
    """Show how many of the most important heads two runs share."""
    if not overlaps:
        return
    top = overlaps[0].top
    bars = [
        {
            "runs": SHARED[overlap.name],
            "shared": top * overlap.value,
            "pairs": overlap.pairs,
            "low": None if overlap.low is None else top * overlap.low,
            "high": None if overlap.high is None else top * overlap.high,
        }
        for overlap in overlaps
    ]
    axes = Axes(
        x="runs",
        y="shared",
        low="low",
        high="high",
        x_title="pairs of runs",
        y_title="shared heads",
    )
    title = (
        f"Heads that two runs share among their {top} most important (dashed: chance, "
        f"{top * overlaps[0].by_chance:.1f})"
    )
    rule = top * overlaps[0].by_chance
    st.altair_chart(values_with_intervals(pd.DataFrame(bars), axes, rule=rule, title=title, tooltip=("pairs",)))
