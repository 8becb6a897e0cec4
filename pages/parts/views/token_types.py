"""Token types: heads that attend to nouns, verbs, negation, [CLS] ... more than to random tokens."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.report.published_values import printed_layers
from core.scoring.definitions import DEFINITIONS, drift
from core.scoring.few_inputs import FEWEST
from core.studies.attention.records import Score
from core.tasks.features import FEATURES
from pages.parts.charts.curves import line_with_band, values_with_intervals
from pages.parts.charts.encoding import Axes
from pages.parts.reports import attending
from pages.parts.reports.attending import by_place
from pages.parts.reports.stored_runs import DIFFERENCE
from pages.parts.reports.study_view import details
from pages.parts.shell import url
from pages.parts.shell.messages import plain
from pages.parts.widgets.files import show_files

NAMED = 8  # significant heads that the answer names
VALUES = {"effect": "excess", "value": "attention"}
LABELS = {"effect": "excess over random tokens", "value": "attention"}


def of_one(scores: Sequence[Score], statistic: str) -> list[Score]:
    """Return the scores of one statistic, without differences of two checkpoints."""
    return [score for score in scores if score.statistic == statistic and score.checkpoint != DIFFERENCE]


def layer_means(scores: Sequence[Score], feature: str) -> dict[int, float]:
    """Return the mean over heads of a feature in each layer."""
    values: dict[int, list[float]] = {}
    for score in scores:
        if score.feature == feature and score.layer is not None and score.value is not None:
            values.setdefault(score.layer, []).append(score.value)
    return {layer: fmean(values[layer]) for layer in sorted(values)}


def by_layer(measured: attending.ShownScores[Score], feature: str) -> None:
    """Show layer means over heads, and the published ones (bert-base on QQP)."""
    lines: list[dict[str, Any]] = [
        {"layer": layer + 1, "mean": mean, "of": measured.title(checkpoint_task)}
        for checkpoint_task, task_scores in by_place(of_one(measured.scores, "max")).items()
        for layer, mean in layer_means(task_scores, feature).items()
    ]
    for kind, means in printed_layers()[feature].items():
        lines += [{"layer": k, "mean": mean, "of": f"paper, {kind}"} for k, mean in enumerate(means, 1)]
    chart = line_with_band(
        pd.DataFrame(lines), Axes(x="layer", y="mean", colour="of", y_title="mean attention over heads"),
        title=f"Attention to {FEATURES[feature].label} by layer",
    )  # fmt: skip
    st.altair_chart(chart, key=f"layers_{feature}")


def say_drift(measured: attending.ShownScores[Score]) -> None:
    """State whether [CLS] is attended to in early layers and separators in late ones, as in the paper."""
    for checkpoint_task, task_scores in by_place(of_one(measured.scores, "max")).items():
        start, separator = (
            drift(list(layer_means(task_scores, feature).values())) for feature in ("start", "separator")
        )
        if not pd.isna(start) and not pd.isna(separator):
            st.caption(
                plain(
                    f"{measured.title(checkpoint_task)}: attention to [CLS] has mean depth {start:.2f}, attention to "
                    f"separators {separator:.2f} (0: first layer, 1: last layer). The drift from [CLS] to [SEP] that "
                    f"the paper reports {'appears' if start < separator else 'does not appear'}."
                )
            )


def classifying(measured: attending.ShownScores[Score]) -> None:
    """Show what the classifying token attends to in the last layer (Fig 7 of the paper)."""
    for (checkpoint, task), task_scores in by_place(of_one(measured.scores, "classifying")).items():
        last = max(int(score.layer or 0) for score in task_scores)
        lines = [
            {"feature": score.feature, "value": score.value, "low": score.low, "high": score.high,
             "Head": f"H{int(score.head or 0) + 1}"}
            for score in task_scores if score.layer == last
        ]  # fmt: skip
        chart = values_with_intervals(
            pd.DataFrame(lines),
            Axes(x="feature", y="value", low="low", high="high", colour="Head", y_title="largest weight"),
            title=measured.title((checkpoint, task)),
        )
        st.altair_chart(chart, key=f"classifying_{checkpoint}_{task}")


def sentence(scores: Sequence[Score], what: str) -> str:
    """Return how many heads attend to a token type significantly more than to random tokens, and the strongest head."""
    sure = attending.above_null(scores)
    if scores[0].checkpoint == DIFFERENCE:
        most = max(scores, key=lambda score: abs(score.value or 0))
        return (
            f"Attention to {what} differs significantly in {len(sure)} of {len(scores)} heads. The largest difference "
            f"is {most.name}: {most.value or 0:+.2f}."
        )
    most = max(scores, key=lambda score: score.effect or 0)
    value = f"{most.value or 0:.2f}"
    if most.baseline is not None:
        value += f", compared with {most.baseline:.2f} for random tokens"
    if all(score.q is None for score in scores):
        return (
            f"{most.name} attends most to {what}: {value}. This was not tested, because there are fewer than "
            f"{FEWEST} inputs or no random tokens to compare with."
        )
    named = ", ".join(map(str, sure))
    return (
        f"{len(sure) or 'None'} of {len(scores)} heads attend significantly more to {what} than to random tokens"
        f"{f' ({named})' if 0 < len(sure) <= NAMED else ''}. The strongest is {most.name}: {value}."
    )


def sure_of(scores: Sequence[Score]) -> str:
    """Return the interval of the strongest head, and the test."""
    largest = "value" if scores[0].checkpoint == DIFFERENCE else "effect"
    most = max(scores, key=lambda score: abs(getattr(score, largest) or 0))
    ends = "" if most.low is None else f"{most.name}: 95 % CI {most.low:.2f} to {most.high:.2f}. "
    if all(score.q is None for score in scores):
        return ends
    return (
        f"{ends}Significant: q < {attending.SURE}, corrected for all heads. Faded heads are not significant: their "
        "excess may be large, but it varies between inputs, or position predicts it."
    )


def show(tools: DeltaGenerator) -> None:
    inputs = attending.pick_inputs(tools)

    def options() -> dict[str, Any]:
        features = attending.pick_kinds(
            "Token types to measure", {key: feature.label for key, feature in FEATURES.items()}, key="features",
            help="Choose token types from the list, or type a Penn tag (tag:JJ), a part of speech (pos:ADJ) or a "
                 "dependency label (dep:amod).",
        )  # fmt: skip
        return {"features": features}

    top, row = st.container(), st.container(horizontal=True, vertical_alignment="bottom")
    with tools:
        about = "Choose attention weights or norms, the definition of a score, and its scale."
        menu = st.popover("Options", icon=":material/tune:", help=about)
    study, is_chosen = attending.measured_by(menu, "features", DEFINITIONS)
    with attending.shown_scores(study, Score, inputs, task="sst2", options=options) as measured:
        if measured is None:
            return
        measured = measured.where(is_chosen)
        if not measured.scores:
            st.info("No input contains any of these token types. Choose other types, or use longer texts.")
            return
        _draw(measured, study, top, row, menu)


def _draw(
    measured: attending.ShownScores[Score], study: str, top: DeltaGenerator, row: DeltaGenerator, menu: DeltaGenerator
) -> None:
    names = list(dict.fromkeys(str(score.feature) for score in measured.scores))
    label_of = {name: FEATURES[name].label if name in FEATURES else name for name in names}
    kinds = [name for name in DEFINITIONS if name in {score.statistic for score in measured.scores}]
    feature = url.pick(row.selectbox, "Token type", label_of, key="feature", width=170)
    definition = url.pick(
        menu.selectbox, "Definition", kinds, key="definition",
        help="; ".join(f"{name}: {DEFINITIONS[name]}" for name in kinds) + ".",
    )  # fmt: skip
    chosen = [score for score in measured.scores if score.feature == feature and score.statistic == definition]
    scores = attending.pick_place(row, chosen)
    value = "value"
    if scores[0].checkpoint != DIFFERENCE:
        value = url.pick(menu.segmented_control, "Shown", VALUES, key="shown", required=True)
    what = label_of[feature]
    attending.answered(
        measured, scores, top, f"Which heads attend to {what}?", sentence(scores, what), sure_of(scores), study
    )
    label = "difference" if scores[0].checkpoint == DIFFERENCE else LABELS[value]
    figures = [
        attending.heatmap(scores, value, label, title=f"Attention to {what} ({label})", diverging=value == "effect")
    ]
    left, right = st.columns([3, 2])
    left.altair_chart(figures[0], width="content", key="picture")
    if scores[0].checkpoint != DIFFERENCE and any(score.baseline is not None for score in scores):
        figures.append(attending.against_baseline(scores, value="attention", baseline="random tokens"))
        right.altair_chart(figures[1], key="strongest")
    with details():
        heads, token, layers = st.tabs(["Heads", "[CLS] token, last layer", "[CLS] and [SEP] by layer"])
        with heads:
            columns = ["value", "low", "high", "n", "baseline", "effect", "contrast", "p", "q"]
            attending.table(measured, scores, columns, by=value, key="heads")
            st.caption(
                "The baseline is attention to equally many random tokens near the same positions. A head is "
                "significant if its attention exceeds this baseline and the attention that position predicts. For "
                "subjects and objects, the prediction also uses the part of speech. Attention to [CLS], separators "
                "and the first token is only compared with the baseline, which is uniform attention in decoders."
            )
            st.caption(f"The test needs at least {FEWEST} inputs.")
            for note in measured.notes:
                st.caption(plain(note))
            show_files(measured.frame, figures, "features")
        with token:
            classifying(measured)
            st.caption(
                "The plot shows attention from [CLS] in encoders and from the last token in decoders, as in Fig 7 "
                "of Kovaleva et al."
            )
        with layers:
            for special in printed_layers():
                if special in names:
                    by_layer(measured, special)
            say_drift(measured)
            st.caption(
                "The lines for Kovaleva et al. 2019 were read from their Fig 6, which shows bert-base-uncased on QQP."
            )
