"""Whether attention to [SEP] is a no-op, tested by gradients of the loss and by cutting its edges.

Clark et al. 2019, 3.2: if attention to [SEP] does nothing, changing it does not change the loss. The mean gradient |d
loss / d A[layer, head, query, key]| is then small over separators compared with other keys (in BERT-base from layer 5
of 12). The loss here is that of the fine-tuned task. Further evidence: the attention to separators compared with their
fraction of tokens; their fraction of the norms |alpha f(x)|, which is small for a no-op (Kobayashi et al. 2020); and
the predictions if attention to separators is cut in a layer.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pydantic.dataclasses

from ... import capture
from ...interval import finite
from ...scoring.few_inputs import mean_interval
from ...store.rows import Row
from ...tasks.glue import TaskRow, task_of
from ..contract import ExampleUnit
from ..headline import Headline
from ..merging import PerExample, Positions
from ..options import Limit
from ..outcomes import metrics_before, prediction_changes
from ..records import Result
from . import setup
from .knockout import layers_of
from .records import SeparatorLayer, Unmodified, cut_headline
from .setup import ExampleOptions


@pydantic.dataclasses.dataclass(frozen=True)
class SeparatorsOptions(ExampleOptions):
    """Options for the study of attention to separators."""

    limit: Limit = 200


@dataclass(frozen=True)
class Slopes:
    """Loss gradients and attention weights for separator tokens [layer, example], and the predictions of the model.

    Attributes:
        to_separator, to_other: mean |d loss / d A| over heads and queries, for separators and for all other visible
            keys.
        weight: mean attention to all separators together, 0 to 1.
        norm: fraction of the norms that separators have, 0 to 1; NaN if values are not available.
        share: fraction of tokens that are separators, 0 to 1. *Shape:* (example,).
        changed: predictions with separators cut in each layer, then in all layers. *Shape:* (layer or all, example).
    """

    rows: Positions
    layers: int
    to_separator: PerExample
    to_other: PerExample
    weight: PerExample
    norm: PerExample
    share: PerExample
    gold: PerExample
    plain: PerExample
    changed: PerExample
    attending: tuple[int, ...] = ()


class SeparatorsStudy(setup.ExampleStudy[SeparatorsOptions, Slopes]):
    """Test whether attention to [SEP] is a no-op, using loss gradients and the effect of removing this attention."""

    name, options, partial = "separators", SeparatorsOptions, Slopes
    kinds = (Unmodified, SeparatorLayer)
    question = "Is attention to separators a no-op?"

    def on_examples(
        self, options: SeparatorsOptions, opened: setup.Opened, rows: Sequence[TaskRow], unit: ExampleUnit
    ) -> tuple[Slopes, str | None]:
        checkpoint = opened.checkpoint
        encodings = opened.encoded(rows)
        slopes = capture.importance.separator_slopes(checkpoint, encodings, opened.outputs(rows))
        edges = capture.knockout.edges_of("separators", causal=checkpoint.causal)
        changed = [
            opened.predicted(
                capture.running.predict(
                    checkpoint, encodings, interventions=[capture.interventions.Knockout(edges, frozenset(layers))]
                )
            )
            for layers in layers_of(checkpoint.layers, checkpoint.attending)
        ]
        partial = Slopes(
            np.array(unit.positions), checkpoint.layers, slopes.to_separator.numpy(), slopes.to_other.numpy(),
            slopes.weight.numpy(), capture.norms.separator_norms(checkpoint, encodings).numpy(),
            np.array([len(encoding.separators) / len(encoding) for encoding in encodings]),
            np.array([row.label for row in rows]),
            opened.predicted(capture.running.predict(checkpoint, encodings)), np.array(changed), checkpoint.attending,
        )  # fmt: skip
        return partial, None

    def results(self, options: SeparatorsOptions, merged: Slopes) -> list[Result]:
        task = task_of(options.task)
        before = metrics_before(task, merged.gold, merged.plain)
        changes = prediction_changes(task, merged.gold, merged.plain, merged.changed, seed=options.seed)
        results: list[Result] = [Unmodified(task=task.key, n=len(merged.gold), metrics=before)]
        cuts = layers_of(merged.layers, merged.attending)
        for k, (layers, change) in enumerate(zip(cuts, changes, strict=True)):
            is_layer = k < max(1, len(cuts) - 1)  # the last one is of all layers
            layer = layers[0] if is_layer else None
            name = "all layers" if layer is None else f"L{layer + 1}"
            facts = {} if layer is None else gradient_facts(merged, layer)
            results.append(SeparatorLayer(name=name, layer=layer, task=task.key, **facts, **change))
        return results

    def headline(self, rows: Sequence[Row]) -> Headline:
        return cut_headline(
            rows, [(f"attention to separators ({cut.name})", cut) for cut in SeparatorLayer.among(rows)]
        )


def ratio_interval(above: np.ndarray, below: np.ndarray) -> tuple[float, float | None, float | None]:
    """Compute a ratio of two means with its 95 % confidence interval. For a single example, the bounds are None."""
    ratio = float(above.mean() / below.mean())
    influence = (above - ratio * below) / below.mean()
    low, high = (float(end[0]) for end in mean_interval(influence[:, None]))
    return (ratio, max(ratio + low, 0.0), ratio + high) if np.isfinite(low) else (ratio, None, None)


def gradient_facts(merged: Slopes, layer: int) -> Row:
    """Summarise one layer: loss gradients for separators and other tokens, and how much attention separators get."""
    is_finite = np.isfinite(merged.to_separator[layer])
    if not is_finite.any():
        return {}
    separator, other, weight, norm = (
        column[layer, is_finite] for column in (merged.to_separator, merged.to_other, merged.weight, merged.norm)
    )
    ratio, low, high = ratio_interval(separator, other)
    facts: Row = {
        "gradient_separator": float(separator.mean()),
        "gradient_other": float(other.mean()),
        "ratio": ratio,
        "ratio_low": low,
        "ratio_high": high,
        "separators_of_pieces": float(merged.share[is_finite].mean()),
        "with_separators": int(is_finite.sum()),
    }
    for name, values in (("weight_on_separators", weight), ("norm_on_separators", norm)):
        known_values = [float(values.mean()), *(float(end[0]) for end in mean_interval(values[:, None]))]
        names = (name, f"{name}_low", f"{name}_high")
        facts |= {key: finite(value) for key, value in zip(names, known_values, strict=True)}
    return facts


STUDY = SeparatorsStudy()
