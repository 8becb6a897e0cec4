"""What heads attend to: nouns, verbs, negation, [CLS] ... against random tokens, per head."""

from collections.abc import Mapping, Sequence
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
from pages.parts.shell import url
from pages.parts.shell.messages import plain
from pages.parts.widgets.files import show_files

VALUES = {"value": "attention", "effect": "excess over random tokens"}


def of_one(scores: Sequence[Score], statistic: str) -> list[Score]:
    """The scores of one statistic, without differences of two checkpoints."""
    return [score for score in scores if score.statistic == statistic and score.checkpoint != "difference"]


def layer_means(scores: Sequence[Score], feature: str) -> dict[int, float]:
    """The mean over heads of a feature in each layer."""
    values: dict[int, list[float]] = {}
    for score in scores:
        if score.feature == feature and score.layer is not None and score.value is not None:
            values.setdefault(score.layer, []).append(score.value)
    return {layer: fmean(values[layer]) for layer in sorted(values)}


def by_layer(measured: attending.ShownScores[Score], scores: Sequence[Score], feature: str) -> None:
    """Layer means over heads beside the paper's, where it has them (bert-base on QQP)."""
    lines: list[dict[str, Any]] = [
        {"layer": layer + 1, "mean": mean, "of": measured.title(checkpoint_task)}
        for checkpoint_task, task_scores in by_place(of_one(scores, "max")).items()
        for layer, mean in layer_means(task_scores, feature).items()
    ]
    for kind, means in printed_layers()[feature].items():
        lines += [{"layer": k, "mean": mean, "of": f"paper, {kind}"} for k, mean in enumerate(means, 1)]
    chart = line_with_band(
        pd.DataFrame(lines), Axes(x="layer", y="mean", colour="of"), title=f"{FEATURES[feature].label}: mean over heads"
    )
    st.altair_chart(chart, key=f"layers_{feature}")


def say_drift(measured: attending.ShownScores[Score], scores: Sequence[Score]) -> None:
    """Whether [CLS] is attended to early and separators late, as the paper found."""
    for checkpoint_task, task_scores in by_place(of_one(scores, "max")).items():
        start, separator = (
            drift(list(layer_means(task_scores, feature).values())) for feature in ("start", "separator")
        )
        if not pd.isna(start) and not pd.isna(separator):
            st.caption(
                plain(
                    f"{measured.title(checkpoint_task)}: attention to [CLS] / start has mean depth {start:.2f}, to "
                    f"separators {separator:.2f} (0 first layer, 1 last): the paper's drift from [CLS] to [SEP] "
                    f"{'appears' if start < separator else 'does not appear'}."
                )
            )


def classifying(measured: attending.ShownScores[Score], scores: Sequence[Score]) -> None:
    """What the classifying token looks at in the last layer (the paper's Fig 7)."""
    for (checkpoint, task), task_scores in by_place(of_one(scores, "classifying")).items():
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


def _pick_shown(label_of: Mapping[str, str], kinds: Sequence[str]) -> tuple[str, str, str]:
    """A feature, a definition and which value of both. What has no room in a narrow window goes below, whole."""
    row = st.container(horizontal=True, vertical_alignment="bottom")
    feature = url.pick(row.selectbox, "Feature", label_of, key="feature", width=190)
    definition_labels = {name: f"{name}: {DEFINITIONS[name]}" for name in kinds}
    definition = url.pick(
        row.selectbox, "Definition", kinds, key="definition", width=500, format_func=definition_labels.__getitem__
    )
    value = url.pick(row.segmented_control, "Shown", VALUES, key="shown", required=True)
    return feature, definition, value


def show(tools: DeltaGenerator) -> None:
    """The view."""
    features = attending.pick_kinds(
        "Features", {key: feature.label for key, feature in FEATURES.items()}, key="features",
        help="Type tag:JJ, pos:ADJ or dep:amod for any Penn tag, part of speech or dependency.",
    )  # fmt: skip
    study, is_chosen = attending.measured_by("features", DEFINITIONS)
    measured = attending.rows_of(study, Score, task="sst2", options={"features": features})
    if measured is None:
        return
    measured = measured.where(is_chosen)
    scores = measured.scores
    if not scores:
        st.info("No input has any of these features: choose others, or give more text.")
        return
    names = list(dict.fromkeys(str(score.feature) for score in scores))
    label_of = {name: FEATURES[name].label if name in FEATURES else name for name in names}
    kinds = [name for name in DEFINITIONS if name in {score.statistic for score in scores}]
    feature, definition, value = _pick_shown(label_of, kinds)
    chosen = [score for score in scores if score.feature == feature and score.statistic == definition]
    sure = [score for score in chosen if score.checkpoint != "difference"]
    shown = sure if value == "effect" else chosen
    drawn = attending.pictures(shown, value, VALUES[value], title=measured.title, diverging=value == "effect")
    st.caption(
        f"{measured.caption} · n = {attending.most_inputs(chosen)} inputs with "
        f"{plain(label_of[feature])} · "
        "outlined: above random tokens of the same number and place, and more than place (of subjects and objects: "
        f"and kind of word) explains, q < {attending.SURE} over all heads, features and definitions "
        f"(from {FEWEST} inputs on)"
    )
    columns = ["value", "low", "high", "n", "baseline", "effect", "contrast", "p", "q"]
    attending.sure_table(measured, sure, columns, by="effect", key="heads", heading="Heads above the null")
    changes = [score for score in chosen if score.checkpoint == "difference"]
    if changes:
        differing = "Heads that differ between the checkpoints"
        attending.sure_table(
            measured, changes, ["value", "low", "high", "n", "p", "q"], by="value", key="differences", heading=differing
        )
        st.caption("Second checkpoint less the first, paired by input; p is two-sided, q corrects it for all heads.")
    show_files(measured.frame, drawn, "features")
    st.subheader("The classifying token, last layer")
    classifying(measured, scores)
    st.caption("Encoders: the row of [CLS]; decoders: that of the last token. Kovaleva et al., Fig 7.")
    st.subheader("From [CLS] to [SEP] over the layers")
    for special in printed_layers():
        if special in names:
            by_layer(measured, scores, special)
    say_drift(measured, scores)
    st.caption(
        "The paper's lines are bert-base-uncased on QQP, read off its Fig 6; open that checkpoint on QQP rows to "
        "compare like with like."
    )
