"""Reasons why two studies of the same model can have different verdicts or scores."""

import re

import streamlit as st

from core.studies.ablation.records import SeededRun
from core.studies.tuning.records import TunedScore
from core.tuning.recipe import Recipe
from pages.parts.reports import headlines
from pages.parts.reports.provenance import StoredRun, known_runs
from pages.parts.shell.messages import plain

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
            finding = headlines.headline_of(other.run).sentence.partition(". ")[0].removesuffix(".")
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
