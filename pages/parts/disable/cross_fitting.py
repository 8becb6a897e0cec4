"""Cross-fitted ablations, scores and pruning curves on all train examples, by models not trained on them."""

from collections.abc import Callable, Sequence
from dataclasses import asdict

import pandas as pd
import streamlit as st

from core.store.rows import Row
from core.studies.ablation.records import AblatedTarget, CrossFittedPart, PruneStep
from core.studies.tuning.records import TunedScore
from pages.parts.disable.prune_pictures import draw_curves
from pages.parts.disable.results import show_results
from pages.parts.reports.stored_runs import StoredRun, known_runs
from pages.parts.reports.study_view import drawer, fits, shown_result
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.tuning.one_task import Count, start_training
from pages.parts.tuning.table_one import runs_table
from pages.parts.widgets import job_progress
from pages.parts.widgets.tables import show_table

FOLDS = Count(
    "folds",
    "Parts",
    2,
    20,
    5,
    "The number of folds of the train set. For each fold, one model is fine-tuned on all other folds.",
)
SCORES = ("initialisation", "seed", "accuracy", "f1", "pearson", "train_rows", "dev_rows")


def show_crossed() -> None:
    st.caption(
        "With a few hundred dev examples, the test is undecided for most heads. Cross-fitting uses all train "
        "examples instead. Each model is fine-tuned on all folds of the train set except one, and its heads are "
        "ablated on the remaining fold."
    )
    with drawer("Run on another task", "cross-fitted"):
        start_training("cross-fitted", FOLDS, limit="limit", verb="Sweep", title="Cross-fitted ablation on")
    job_progress.show_jobs("cross-fitted")
    with clear_errors():
        show_results("cross-fitted", more=lambda stored: _parts(stored.result_rows))
        _show_stored("cross-fitted-scores", "Scores", _scores)
        _show_stored("cross-fitted-prune", "Pruning", _curves)


def _show_stored(study: str, title: str, draw: Callable[[StoredRun], None]) -> None:
    """Show a stored run that no form here starts, if one is of the chosen checkpoint and task or was opened."""
    key = study.replace("-", "_")
    opened = key in st.session_state or key in st.query_params
    if not opened and not any(map(fits, known_runs(study))):
        return
    st.subheader(title)
    with shown_result(study, "", key) as stored:
        if stored is not None:
            draw(stored)


def _scores(stored: StoredRun) -> None:
    """Show the scores of models from each initialisation."""
    show_table(runs_table(stored.among(TunedScore), SCORES))
    st.caption(plain(f"train examples, each tested by a model that was not trained on it · {stored.date}"))


def _curves(stored: StoredRun) -> None:
    """Show pruning curves, least important heads first."""
    steps = stored.among(PruneStep)
    draw_curves(steps)
    st.caption(
        plain(
            f"{stored.checkpoint_said} · {stored.task_said} train examples, each tested by a model that was not "
            f"trained on it · n = {steps[0].n} examples · pruning order from the examples that the model was trained "
            f"on · 95 % CI of the paired change · {stored.date}"
        )
    )
    show_table(pd.DataFrame(map(asdict, stored.among(CrossFittedPart))))


def _parts(rows: Sequence[Row]) -> None:
    """Show the score on each fold, and in how many folds the change of each head has the same sign."""
    parts, variants = CrossFittedPart.among(rows), AblatedTarget.among(rows)
    agree = [variant.name for variant in variants if variant.folds_agree == len(parts)]
    st.subheader("Parts")
    show_table(pd.DataFrame(map(asdict, parts)))
    st.caption(
        plain(
            f"In all {len(parts)} folds, the change has the same sign for {len(agree)} of {len(variants)} "
            f"ablations: {', '.join(agree) or 'none'}. The CIs are over examples and do not include the variation "
            "between fine-tuned models."
        )
    )
