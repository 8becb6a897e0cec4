"""Remarks on results: models at chance level, and reasons why two studies of the same model can differ."""

import re
from collections import Counter

import streamlit as st

from core.errors import AtlasError
from core.scoring.intervals import not_above_constant
from core.store.rows import from_json
from core.studies.ablation import disable, prune
from core.studies.ablation.records import PruneStep, SeededRun, Unmodified
from core.studies.tuning.finetune import not_shown
from core.studies.tuning.records import TunedScore
from core.tasks.glue import read_rows, task_of
from core.tuning.recipe import Recipe
from pages.parts.reports import stored_runs
from pages.parts.reports.stored_runs import StoredRun, known_runs
from pages.parts.shell.messages import plain, short_names

# ---------------------------------------------------------------- models at chance level


def constant_accuracy(stored: StoredRun) -> float | None:
    """Return the accuracy of the best constant prediction on the examples of a run, otherwise on those of its
    checkpoint's fine-tuning, otherwise None."""
    task, split = stored.task or "", stored.split or "dev"
    try:
        if not task or "," in task or task_of(task).is_score:
            return None
        labels = {row.id: row.label for row in read_rows(task, split, folder=stored.told.get("data"))}
    except AtlasError:
        return _constant_when_tuned(stored)
    ids = (from_json(stored.row_ids) if isinstance(stored.row_ids, str) else stored.row_ids) or ()
    chosen = [labels[name] for name in ids if name in labels]
    return max(Counter(chosen).values()) / len(chosen) if chosen else None


def _constant_when_tuned(stored: StoredRun) -> float | None:
    """Return the constant accuracy that the fine-tuning run of this checkpoint recorded."""
    for tuned in known_runs("finetune"):
        if tuned.task != stored.task:
            continue
        for score in tuned.among(TunedScore):
            if score.kind == "run" and score.folder == stored.checkpoint and score.dev_rows == stored.inputs:
                return (score.baseline or {}).get("accuracy")
    return None


def warn_by_other_run(stored: StoredRun) -> None:
    """Warn for a study without scores of the unmodified model, based on the newest ablation or pruning of this
    checkpoint."""
    for study in (disable.STUDY, prune.STUDY):
        for other_run in known_runs(study.name):
            if (other_run.checkpoint, other_run.task) != (stored.checkpoint, stored.task) or not other_run.rows:
                continue
            rows = other_run.result_rows
            for untouched in Unmodified.among(rows):
                accuracy = untouched.metrics.of("accuracy")
                warn_at_chance(other_run, accuracy.value if accuracy else None, untouched.n)
                return
            for step in PruneStep.among(rows):
                warn_at_chance(other_run, step.baseline if step.metric == "accuracy" else None, step.n)
                return


def warn_of_tuning(stored: StoredRun) -> None:
    """Warn for a study of fine-tuned checkpoints without scores, based on the runs that fine-tuned them."""
    folders = set(stored.checkpoints)
    for tuned in known_runs("finetune"):
        scores = tuned.among(TunedScore)
        for score in scores:
            if score.kind == "run" and score.folder in folders and (reason := not_shown(scores, score)):
                name = short_names([str(score.folder)])[str(score.folder)]
                st.warning(
                    plain(f"{name}: {reason}. So the results on this page are not informative."),
                    icon=":material/warning:",
                )
                folders.discard(str(score.folder))


def warn_at_chance(stored: StoredRun, accuracy: float | None, rows: int) -> None:
    """Warn if the unmodified model is not significantly above the better constant prediction."""
    constant = None if accuracy is None or not rows else constant_accuracy(stored)
    if accuracy is None or constant is None:
        return
    if reason := not_above_constant(accuracy, constant, rows):
        st.warning(
            plain(f"Without ablation, {reason}. So effects of ablating its heads are not informative."),
            icon=":material/warning:",
        )


# -------------------- why two studies can have different verdicts or scores


ONE_BY_ONE = "this study ablates one head at a time, and other heads can take over"
WHY = {  # study: another study whose verdict seems to contradict it, the name of its view, and why both can be true
    "gates": (
        "sequential-test",
        "Sequential test",
        "that test ablates one head at a time, and other heads can take over",
    ),
    "sequential-test": ("gates", "Gates and pairs", ONE_BY_ONE),
    "disable": ("gates", "Gates and pairs", ONE_BY_ONE),
    "circuit": (
        "gates",
        "Gates and pairs",
        "a head sends its output through many edges, and each edge can have a small effect",
    ),
}


def explain_difference(stored: StoredRun) -> None:
    """If another study of this model and task has a different verdict, show both and the reason."""
    other_study, view, reason = WHY.get(stored.study, ("", "", ""))
    for other in known_runs(other_study):
        if (other.checkpoint, other.task) == (stored.checkpoint, stored.task):
            finding = stored_runs.headline_of(other.run).sentence.partition(". ")[0].removesuffix(".")
            finding = re.sub(r" \([^)]*\)", "", finding)
            st.caption(plain(f"{view} reports for this model: “{finding}.” Both can be true: {reason}."))
            return


def explain_scores(stored: StoredRun) -> None:
    """If the other view of fine-tuned models has scores of this model and task, show what differs between the runs."""
    study, view = ("finetune", "Train") if stored.study == "seeds" else ("seeds", "Seed variance")
    for other in known_runs(study):
        if (other.checkpoint, other.task, other.sampled) == (stored.checkpoint, stored.task, stored.sampled):
            here, there = _trained_on(stored), _trained_on(other)
            if here and there and here != there:
                st.caption(plain(
                    f"{view} reports other scores for this model and task, because its runs are fine-tuned on "
                    f"{there} and the runs here on {here}."
                ))  # fmt: skip
            return


def _trained_on(stored: StoredRun) -> str:
    """Return the number of training examples and epochs of a fine-tuning result; "" without runs."""
    runs = (SeededRun if stored.study == "seeds" else TunedScore).among(stored.result_rows)
    examples = next((run.train_rows for run in runs if run.train_rows), 0)
    epochs = Recipe.of(stored.settings.preset, stored.settings.settings).epochs
    return f"{examples:,} training examples for {epochs} epochs" if examples else ""
