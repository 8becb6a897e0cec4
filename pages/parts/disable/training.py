"""Ablations with fine-tuning: cross-fitted on all train examples, and with heads fixed at patterns during training."""

from collections.abc import Callable, Sequence
from dataclasses import asdict

import pandas as pd
import streamlit as st

from core.store.rows import Row
from core.studies.ablation.records import AblatedTarget, CrossFittedPart, PruneStep
from core.studies.tuning.finetune import METRICS
from core.studies.tuning.records import FixedPatternChange, TunedScore
from core.tasks.glue import sampled
from pages.parts.disable.results import draw_curves, show_results
from pages.parts.disable.settings import OPERATORS
from pages.parts.reports.stored_runs import StoredRun, known_runs
from pages.parts.reports.study_view import drawer, fits, shown_result
from pages.parts.shell import context, url
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.tuning import table_one
from pages.parts.tuning.forms import Count, pick_data, pick_recipe, pick_settings, start_training
from pages.parts.tuning.table_one import runs_table
from pages.parts.widgets import job_progress, pickers
from pages.parts.widgets.pickers import task_name
from pages.parts.widgets.tables import show_table

# -------------------- cross-fitted, by models that were not trained on the tested examples


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
        "With only a few hundred dev examples, the effects of most heads remain undecided. Cross-fitting uses all "
        "train examples instead. Each model is fine-tuned on all folds of the train set except one, and its heads "
        "are ablated on the remaining fold."
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


# -------------------- heads fixed at patterns, compared with learned attention in the form of Table 1


def show_training() -> None:
    with drawer("Train another", "fixed-pattern"):
        _start()
    job_progress.show_jobs("fixed-pattern")
    with clear_errors():
        _results()


def _start() -> None:
    left, middle, right = st.columns([3, 3, 1])
    checkpoint = context.now().checkpoint
    left.caption(f"Pre-trained checkpoint: {plain(str(checkpoint))}")
    with middle:
        tasks = pickers.pick_tasks("sst2", key="held_tasks")
    seeds = right.number_input("Seeds", 1, 20, 3, key="seeds", bind="query-params")
    left, middle, right, last = st.columns([3, 2, 3, 1], vertical_alignment="bottom")
    with left:
        heads = pickers.pick_text(
            "Fixed heads",
            key="heads",
            placeholder="default: all heads except one in each layer",
            help="Enter the heads that get the pattern chosen under “At”. If this field is empty, all heads except the "
            "last of each layer get fixed patterns, and neighbouring heads attend to different tokens: the current, "
            "previous, next (not in decoders) or first token.",
        )
    operator = url.pick(middle.selectbox, "At", OPERATORS, key="operator", disabled=not heads)
    preset = pick_recipe(right, checkpoint, key="preset")
    with st.expander("Data and settings"):
        data_folder, changed = pick_data(), pick_settings(preset)
    options = {
        "checkpoint": checkpoint, "tasks": tasks, "seeds": list(range(seeds)), "data": data_folder, "preset": preset,
        "settings": changed, "heads": heads, "operator": operator,
    }  # fmt: skip
    job_progress.offer_start(
        "fixed-pattern",
        options if checkpoint and tasks else None,
        "Train",
        title=lambda: f"Fixed patterns: {checkpoint} on {pickers.named(tasks, data_folder)}",
        container=last,
    )


def _results() -> None:
    with shown_result(
        "fixed-pattern",
        "No training with fixed patterns is stored yet. Choose a checkpoint and tasks, and press “Train”.",
        "held",
    ) as stored:
        if stored is None:
            return
        rows = stored.result_rows
        scores = TunedScore.among(rows)
        table_one.show_bars(scores, bundled=stored.sampled)
        table = table_one.named(table_one.table_one(scores))
        st.table(table.rename(columns=sampled) if stored.sampled else table)
        for change in FixedPatternChange.among(rows):
            if change.score is None or change.low is None or change.high is None:
                continue
            task, ends = task_name(change.task), f"{100 * change.low:+.1f} to {100 * change.high:+.1f}"
            st.markdown(
                f"**{plain(sampled(task) if stored.sampled else task)}**: with a fixed pattern in "
                f"{change.held_heads} heads, {plain(change.metric)} changes by "
                f"**{100 * change.score:+.1f}** points (95 % CI {ends}; n = {change.n} examples, {change.seeds} seeds)."
            )
        st.caption(
            plain(
                f"x 100; mean ± standard deviation over seeds · {stored.checkpoint} · {stored.date} · the change is "
                f"paired on the same dev examples · † predictions were constant in some run"
            )
        )
        with st.expander("Fine-tuning runs and their checkpoints"):
            columns = ["task", "initialisation", "seed", "held_heads", *METRICS, "folder"]
            show_table(table_one.runs_table(scores, columns))
            st.caption(
                "The fixed attention patterns are not stored in these checkpoints. If you open one of them, all of "
                "its heads compute attention as usual."
            )
