"""Warnings for results of a model at chance level, for which effects of heads mean little."""

from collections import Counter

import streamlit as st

from core.errors import AtlasError
from core.scoring.chance import above_constant
from core.store.rows import from_json
from core.studies.ablation import disable, prune
from core.studies.ablation.records import PruneStep, Unmodified
from core.studies.tuning.finetune import not_shown
from core.studies.tuning.records import TunedScore
from core.tasks.glue import read_rows, task_of
from pages.parts.reports.provenance import StoredRun, known_runs
from pages.parts.shell.messages import plain, short_names


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
    folders = {name for part in (stored.checkpoint or "").split(" and ") for name in part.split(", ")}
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
    if reason := above_constant(accuracy, constant, rows).sentence:
        st.warning(
            plain(f"Without ablation, {reason}. So effects of ablating its heads are not informative."),
            icon=":material/warning:",
        )
