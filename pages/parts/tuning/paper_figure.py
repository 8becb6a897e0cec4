"""How much each layer changed by its depth, beside the paper's Figure 5: models of other sizes on one axis."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from core.report.published_values import printed_changes
from core.studies.attention.records import ChangeScore
from core.tasks.glue import sampled, task_name
from pages.parts.charts.curves import line_with_band
from pages.parts.charts.encoding import Axes

PAPER = "BERT-base on QQP, the paper's Fig 5"


def _layers(scores: Sequence[ChangeScore]) -> list[ChangeScore]:
    """The layers' means of the first fine-tuned checkpoint."""
    layers = [
        score for score in scores if score.kind == "layer" and score.statistic == "cosine" and score.value is not None
    ]
    return [score for score in layers if score.after == layers[0].after]


def change_by_depth(scores: Sequence[ChangeScore], *, whose: str = "yours", bundled: bool = False) -> Any:
    """1 less the cosine of maps before and after, a layer's mean with its interval; depth 0 is the first layer, 1 the
    last. whose: what the line of these scores is called; bundled: they are of the bundled rows."""
    layers = _layers(scores)
    task = task_name(layers[0].task)
    line_name = f"{whose} on {sampled(task) if bundled else task}"
    lines: list[dict[str, Any]] = [
        {"depth": score.layer / max(1, len(layers) - 1), "of": line_name,
         "value": _turned(score.value), "low": _turned(score.high), "high": _turned(score.low)}
        for score in layers
    ]  # fmt: skip
    paper = printed_changes()
    lines += [
        {"depth": k / (len(paper) - 1), "of": PAPER, "value": 1 - value, "low": 1 - value, "high": 1 - value}
        for k, value in enumerate(paper)
    ]
    axes = Axes(x="depth", y="value", low="low", high="high", colour="of", x_title="depth (0: first layer, 1: last)",
                y_title="1 − cosine")  # fmt: skip
    return line_with_band(pd.DataFrame(lines), axes, title="How much fine-tuning changed each layer's maps")


def _turned(likeness: float | None) -> float | None:
    return None if likeness is None else 1 - likeness


def sentence_of_depth(scores: Sequence[ChangeScore]) -> str:
    """Which layer changed most here and in the paper, and what may not be compared."""
    layers = _layers(scores)
    most = min(layers, key=lambda score: score.value or 0.0)
    paper = printed_changes()
    paper_layer = paper.index(min(paper))
    return (
        f"Here layer {most.layer + 1} of {len(layers)} changed most, in the paper layer {paper_layer + 1} of "
        f"{len(paper)}. The shape may be compared, the height not: this is another model on another task, and the "
        "paper's maps were padded to 200 tokens, which makes them look more alike."
    )
