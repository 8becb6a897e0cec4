"""Syntactic relations: which heads attend along relations between words, and how well they predict dependencies."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.scoring.few_inputs import FEWEST
from core.studies.attention.records import DependencyScore, RelationScore
from core.tasks.relations import RELATIONS
from pages.parts.charts.curves import dumbbells
from pages.parts.reports import attending
from pages.parts.reports.stored_runs import StoredRun
from pages.parts.reports.study_view import details, show_study
from pages.parts.shell import url
from pages.parts.shell.messages import plain
from pages.parts.widgets import job_progress, pickers
from pages.parts.widgets.files import show_files

VALUES = {"effect": "excess", "value": "weight", "accuracy": "accuracy"}
WAYS = ("forward", "backward")
TREES = {"trees": "Gold trees"}


@dataclass(frozen=True, kw_only=True)
class TreeScore(DependencyScore):
    """The accuracy of a head along a relation (its task, in tables). `over` is the difference from the fixed
    distance."""

    over: float | None = None

    @classmethod
    def along(cls, score: DependencyScore) -> "TreeScore":
        above_baseline = None if score.value is None or score.baseline is None else score.value - score.baseline
        return cls(**(vars(score) | {"task": score.feature, "over": above_baseline, "high": score.estimate.high}))


def say_baselines(measured: attending.ShownScores[RelationScore], scores: Sequence[RelationScore]) -> None:
    """Show the accuracies of fixed distances, with which heads are compared."""
    for checkpoint_task, task_scores in attending.by_place(scores).items():
        first = task_scores[0]
        if first.best_distance_accuracy is None:
            st.caption(
                "The baseline is the mean attention weight on all other words in the sentence that contains the key."
            )
            return
        st.caption(
            f"{plain(measured.title(checkpoint_task))}: fixed-distance baselines. The best one predicts the word at "
            f"distance {first.best_distance:+d} (accuracy {first.best_distance_accuracy:.3f}). The accuracy is "
            f"{first.previous_accuracy:.3f} for the previous word and {first.next_accuracy:.3f} for the next word."
        )


def say_shared(scores: Sequence[RelationScore]) -> None:
    """Show the heads that are significant on every task."""
    for checkpoint in dict.fromkeys(score.checkpoint for score in scores):
        checkpoint_scores = [score for score in scores if score.checkpoint == checkpoint]
        if len({score.task for score in checkpoint_scores}) > 1:
            shared = ", ".join(map(str, attending.shared_heads(checkpoint_scores))) or "none"
            st.caption(f"Heads of {plain(Path(str(checkpoint)).name)} that are significant on every task: {shared}.")


def _start_trees() -> None:
    name = pickers.pick_checkpoint(key="tree_checkpoint")
    folder = st.text_input(
        "Universal Dependencies folder",
        key="treebank",
        bind="query-params",
        placeholder="folder such as UD_English-EWT (default: the bundled treebank)",
        help="A treebank folder with one *-dev.conllu file and one *-test.conllu file. Leave this field empty to "
        "use the bundled treebank.",
    )
    options = {"checkpoint": name, "treebank": folder or None}
    job_progress.offer_start(
        "dependencies",
        options if name else None,
        "Run",
        title=lambda: f"dependencies of {name}",
        key="start_trees",
        type="secondary",
    )


def show_trees() -> None:
    """Show accuracy on gold trees: heads chosen on dev, evaluated on test (Clark et al., Table 1)."""
    show_study(
        "dependencies", _draw_trees, _start_trees, empty="No accuracy on gold trees is stored yet. Enter the folder "
                                                         "of a treebank below and run the study.",
        key="trees_run", icon=":material/account_tree:",
    )  # fmt: skip


def _draw_trees(stored: StoredRun) -> None:
    rows = stored.result_rows
    dependency_scores = DependencyScore.among(rows)
    scores = [TreeScore.along(score) for score in dependency_scores if score.note is None and score.layer is not None]
    best = sorted((score for score in scores if score.chosen is not False), key=lambda score: -(score.over or 0))
    lines = [
        {"relation": f"{score.feature} · {score.name}", "value": score.value, "baseline": score.baseline,
         "low": score.low, "high": score.high}
        for score in best if score.value is not None and score.baseline is not None
    ]  # fmt: skip
    figure = dumbbells(
        pd.DataFrame(lines), title="The best head for each syntactic relation", value="accuracy of the head",
        baseline="fixed distance", name="relation",
    )  # fmt: skip
    st.altair_chart(figure)
    with details():
        columns = ["statistic", "value", "low", "high", "n", "baseline", "distance", "dev", "over", "q"]
        measured = attending.ShownScores(best, rows, [], stored.settings.checkpoint, "", "")
        attending.table(measured, best, columns, by="over", key="trees")
        for note in attending.notes(dependency_scores):
            st.caption(plain(note))
        st.caption(
            "For each relation, the best head, direction and fixed distance are selected on the dev split. The table "
            "shows the accuracy on the test split, with a 95 % CI over sentences."
        )
        st.caption(
            "A q-value below 0.05 means that the head attends along the relation significantly more than distance "
            "and part of speech predict."
        )
        st.caption("“Forward”: the dependent attends to its syntactic head. The downloaded file has both directions.")
        show_files(pd.DataFrame(scores).dropna(axis=1, how="all"), [figure], "dependencies")


def _others(is_across: bool) -> str:
    """Return with what a relation is compared. `is_across`: the relation links words of different sentences."""
    return "other words of the sentence with the key" if is_across else "other pairs of words at the same distance"


def sentence(scores: Sequence[RelationScore], what: str, *, is_across: bool = False) -> str:
    """Return how many heads attend along a relation significantly more than its baseline, and the strongest head."""
    sure, most = attending.above_null(scores), max(scores, key=lambda score: score.effect or 0)
    versus = "" if most.baseline is None else f", compared with {most.baseline:.2f} for {_others(is_across)}"
    if all(score.q is None for score in scores):
        return f"{most.name} attends most along the relation “{what}”: {most.value:.2f}{versus}."
    return (
        f"{len(sure) or 'None'} of {len(scores)} heads attend significantly more along the relation “{what}” than "
        f"position and part of speech explain. The strongest is {most.name}: {most.value:.2f}{versus}."
    )


def show(tools: DeltaGenerator) -> None:
    inputs = attending.pick_inputs(tools, TREES)
    if inputs in TREES:
        show_trees()
        return

    def options() -> dict[str, Any]:
        relations = attending.pick_kinds(
            "Relations to measure",
            {key: relation.label for key, relation in RELATIONS.items()},
            key="relations",
            help="Choose relations from the list, or type dep: and a dependency label, such as dep:amod (from the "
            "dependent to its syntactic head).",
        )
        return {"relations": relations}

    top, row = st.container(), st.container(horizontal=True, vertical_alignment="bottom")
    with attending.shown_scores("relations", RelationScore, inputs, task="sst2", options=options) as measured:
        if measured is not None and measured.scores:
            _draw(measured, top, row)
        elif measured is not None:
            st.info("No input contains any of these relations. Choose other relations, or use longer texts.")


def _draw(measured: attending.ShownScores[RelationScore], top: DeltaGenerator, row: DeltaGenerator) -> None:
    names = list(dict.fromkeys(str(score.feature) for score in measured.scores))
    label_of = {name: RELATIONS[name].label if name in RELATIONS else name for name in names}
    relation = url.pick(row.selectbox, "Relation", names, key="relation", width=250, format_func=label_of.__getitem__)
    ends = RELATIONS.get(relation)
    is_across = ends is not None and ends.across
    along = [score for score in measured.scores if score.feature == relation]
    ways = [way for way in WAYS if way in {score.statistic for score in along}]
    way_labels = {
        "forward": f"{ends.source} attends to {ends.target}" if ends else "dependent attends to syntactic head",
        "backward": f"{ends.target} attends to {ends.source}" if ends else "syntactic head attends to dependent",
    }
    way = url.pick(row.selectbox, "Direction", ways, key="way", width=270, format_func=way_labels.__getitem__)
    scores = attending.pick_place(row, [score for score in along if score.statistic == way])
    menu = row.popover(
        "Options", icon=":material/tune:", help="Show the excess, the weight or the accuracy of each head."
    )
    value = url.pick(menu.segmented_control, "Shown", VALUES, key="shown", required=True)
    most = max(scores, key=lambda score: score.effect or 0)
    n = attending.most_inputs(scores)
    interval = (
        ""
        if most.low is None
        else f"{most.name}: weight {most.value:.2f} (95 % CI {most.low:.2f} to {most.high:.2f}, {n:,} links). "
    )
    question = f"In which heads does the {way_labels[way].replace(' attends to ', ' attend to the ')}?"
    tested = f"Significant: q < {attending.SURE}, corrected for all heads. Faded heads are not significant."
    attending.answered(
        measured, scores, top, question, sentence(scores, way_labels[way], is_across=is_across),
        interval + (tested if any(score.q is not None for score in scores) else ""), "relations", what="links",
    )  # fmt: skip
    figures = [
        attending.heatmap(
            scores, value, VALUES[value], title=f"{way_labels[way]}: {VALUES[value]}", diverging=value == "effect"
        )
    ]
    left, right = st.columns([3, 2])
    left.altair_chart(figures[0], width="content", key="picture")
    if any(score.baseline is not None for score in scores):
        baseline = "other words" if is_across else "same distance elsewhere"
        figures.append(attending.against_baseline(scores, value="weight", baseline=baseline))
        right.altair_chart(figures[1], key="strongest")
        right.caption(
            f"Grey: mean weight of the head on {_others(is_across)}. The significance test also removes the effects of "
            "the query word and of the key word."
        )
    with details():
        columns = ["value", "low", "high", "n", "baseline", "effect", "contrast", "p", "q", "accuracy"]
        attending.table(measured, scores, columns, by="effect", key="heads")
        say_baselines(measured, scores)
        say_shared([score for score in along if score.statistic == way])
        st.caption(
            "The excess is the attention weight on word pairs with the relation, minus the weight on "
            f"{_others(is_across)} in the same input. Weights on other words are rescaled to the same number of "
            "key tokens."
        )
        st.caption(
            "A head is significant if its excess remains after three other causes are ruled out: distance, "
            "the query word, and the key word (such as attention to every noun). The test needs at least "
            f"{FEWEST} inputs."
        )
        for note in measured.notes:
            st.caption(plain(note))
        show_files(measured.frame, figures, "relations")
