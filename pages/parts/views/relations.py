"""Syntactic relations: which heads look along links between words, and how well they predict dependencies."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.scoring.few_inputs import FEWEST
from core.studies.attention.records import DependencyScore, RelationScore
from core.tasks.relations import RELATIONS
from pages.parts.reports import attending
from pages.parts.reports.stored_runs import pick_run
from pages.parts.shell import url
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets import job_progress, pickers
from pages.parts.widgets.files import show_files

VALUES = {"value": "weight", "effect": "excess", "accuracy": "accuracy"}
WAYS = {"forward": "from the first end to the second", "backward": "from the second end to the first"}


@dataclass(frozen=True, kw_only=True)
class TreeScore(DependencyScore):
    """A head's accuracy along a relation (its task, in tables); over: what it has more than the fixed distance."""

    over: float | None = None

    @classmethod
    def along(cls, score: DependencyScore) -> "TreeScore":
        """The same, along its relation."""
        above_baseline = None if score.value is None or score.baseline is None else score.value - score.baseline
        return cls(**(vars(score) | {"task": score.feature, "over": above_baseline, "high": score.estimate.high}))


def say_baselines(measured: attending.ShownScores[RelationScore], scores: Sequence[RelationScore]) -> None:
    """Accuracies of fixed distances, beside which the accuracy of a head stands; one line a checkpoint and task."""
    for checkpoint_task, task_scores in attending.by_place(scores).items():
        first = task_scores[0]
        if first.best_distance_accuracy is None:
            st.caption("Across sentences the baseline is the mean weight on the other words of the other sentence.")
            return
        st.caption(
            f"{plain(measured.title(checkpoint_task))} · always guessing the word at distance "
            f"{first.best_distance:+d} is right for {first.best_distance_accuracy:.3f} of the links; the "
            f"previous word {first.previous_accuracy:.3f}, the next word {first.next_accuracy:.3f}."
        )


def say_shared(scores: Sequence[RelationScore]) -> None:
    """Heads that stand out in every task (the paper: STS-B and RTE share a pair that finds words of both sentences)."""
    for checkpoint in dict.fromkeys(score.checkpoint for score in scores):
        checkpoint_scores = [score for score in scores if score.checkpoint == checkpoint]
        if len({score.task for score in checkpoint_scores}) > 1:
            shared = ", ".join(map(str, attending.shared_heads(checkpoint_scores))) or "none"
            st.caption(
                f"{plain(Path(str(checkpoint)).name)} · heads above their baseline in all these tasks: {shared}."
            )


def dependencies() -> None:
    """Accuracy on gold trees: heads chosen on dev, reported on test (Clark et al., Table 1)."""
    with st.expander("Run on a treebank", icon=":material/account_tree:"):
        name = pickers.pick_checkpoint(key="tree_checkpoint")
        folder = st.text_input(
            "Universal Dependencies folder", key="treebank", bind="query-params", placeholder="UD_English-EWT"
        )
        st.caption("A folder with one *-dev.conllu and one *-test.conllu.")
        options = {"checkpoint": name, "treebank": folder}
        job_progress.offer_start(
            "dependencies",
            options if name and folder else None,
            "Run",
            title=lambda: f"dependencies of {name}",
            keep_as="job_dependencies",
            key="start_trees",
            type="secondary",
        )
    if job := st.session_state.get("job_dependencies"):
        job_progress.show_job(job, rows=False)
    stored = pick_run(
        "dependencies",
        "No accuracy on gold trees is stored yet: name a treebank above.",
        "trees_run",
        icon=":material/account_tree:",
    )
    if stored is None:
        return
    rows = stored.result_rows
    dependency_scores = DependencyScore.among(rows)
    attending.notes(dependency_scores)
    scores = [TreeScore.along(score) for score in dependency_scores if score.note is None and score.layer is not None]
    best = [score for score in scores if score.chosen is not False]
    columns = ["statistic", "value", "low", "high", "n", "baseline", "distance", "dev", "over", "q"]
    measured = attending.ShownScores(best, rows, "", stored.settings.checkpoint, "", "")
    attending.table(measured, best, columns, by="over", key="trees")
    show_files(pd.DataFrame(scores).dropna(axis=1, how="all"), [], "dependencies")
    st.caption(
        f"{plain(stored.of)} · {plain(stored.date)} · head, direction and fixed distance chosen on "
        "dev, reported on test (the file has both directions); value: accuracy with its 95% interval over sentences; "
        "baseline: the fixed distance; q: that the head looks along the relation beyond distance and kinds of words; "
        "forward: the dependent looks at its governor, backward: the governor at its dependent."
    )


def show(tools: DeltaGenerator) -> None:
    """The view."""
    relations = attending.pick_kinds(
        "Relations",
        {key: relation.label for key, relation in RELATIONS.items()},
        key="relations",
        help="Type dep:amod for any dependency label; a link then goes from the dependent to its governor.",
    )
    measured = attending.rows_of("relations", RelationScore, task="mrpc", options={"relations": relations})
    if measured is not None:
        scores = measured.scores
        if not scores:
            st.info("No input has any of these links: choose other relations, or give more text.")
        else:
            row = st.container(horizontal=True, vertical_alignment="bottom")  # what has no room goes below, whole
            names = list(dict.fromkeys(str(score.feature) for score in scores))
            label_of = {name: RELATIONS[name].label if name in RELATIONS else name for name in names}
            relation = url.pick(
                row.selectbox, "Relation", names, key="relation", width=290, format_func=label_of.__getitem__
            )
            ends = RELATIONS.get(relation)
            along = [score for score in scores if score.feature == relation]
            ways = [way for way in WAYS if way in {score.statistic for score in along}]
            way_labels = {
                "forward": f"{ends.source} looks at {ends.target}" if ends else "dependent looks at governor",
                "backward": f"{ends.target} looks at {ends.source}" if ends else "governor looks at dependent",
            }
            way = url.pick(row.selectbox, "Direction", ways, key="way", width=290, format_func=way_labels.__getitem__)
            value = url.pick(row.segmented_control, "Shown", VALUES, key="shown", required=True)
            chosen = [score for score in along if score.statistic == way]
            drawn = attending.pictures(chosen, value, VALUES[value], title=measured.title, diverging=value == "effect")
            st.caption(
                f"{measured.caption} · n = {attending.most_inputs(chosen)} links · {way_labels[way]} · "
                "excess: above the same distance elsewhere, by the token; outlined: so, and more than query, key "
                f"(such as any noun) and the distance explain, q < {attending.SURE} over all heads, relations and "
                f"directions (from {FEWEST} inputs on)"
            )
            say_baselines(measured, chosen)
            say_shared(chosen)
            columns = ["value", "low", "high", "n", "baseline", "effect", "contrast", "p", "q", "accuracy"]
            attending.sure_table(
                measured, chosen, columns, by="effect", key="heads", heading="Heads above their baseline"
            )
            show_files(measured.frame, drawn, "relations")
    st.subheader("Dependencies on gold trees")
    with clear_errors():
        dependencies()
