"""Is attention to [SEP] a no-op? The gradient of the loss with respect to it, beside other tokens, and without it.

Clark et al. 2019, 3.2: if attention to [SEP] does nothing, turning it up or down does not move the loss: the mean over
rows of |d loss / d A[layer, head, query, key]| for keys that are separators, beside all other keys, by layer (from
layer 5 of 12 up it becomes small in BERT-base). Here the loss is that of the fine-tuned task. Beside it three more
looks at the same claim: the weight on separators and their share of the pieces (what uniform attention would give
them); their share of norms |alpha f(x)|, since a no-op has weight but adds little (Kobayashi et al. 2020); and what
happens to predictions when their columns are cut in a layer (knockout, renormalised).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pydantic.dataclasses

from ... import capture
from ...scoring.few_inputs import mean_interval
from ...store.rows import Row
from ...tasks.glue import task_of
from ..contract import Done, Need, Study, Unit
from ..headline import Headline
from ..options import Limit
from ..outcomes import in_order
from ..prediction_changes import metrics_before, prediction_changes
from ..provenance import provenance
from ..records import Result
from . import disabling
from .disabling import RowOptions, units_of
from .knockout import layers_of
from .records import SeparatorLayer, Untouched, cut_headline

FACTS = ("gradient_separator", "gradient_other", "ratio", "ratio_low", "ratio_high")  # unknown without separators


@pydantic.dataclasses.dataclass(frozen=True)
class SeparatorsOptions(RowOptions):
    """Which checkpoint, on which rows."""

    limit: Limit = 200


@dataclass(frozen=True)
class Slopes:
    """How the loss, weights and predictions of some rows depend on separators; NaN in rows without any.

    Attributes:
        rows: their places in the task. *Shape:* (row,), int.
        to_separator: mean |d loss / d A| over heads, queries and separators as keys. *Shape:* (layer, row).
        to_other: the same over all other visible keys. *Shape:* (layer, row).
        weight: mean attention on all separators together, 0 to 1. *Shape:* (layer, row).
        norm: their share of norms, 0 to 1; NaN too where values cannot be reached. *Shape:* (layer, row).
        share: theirs of the row's pieces, 0 to 1. *Shape:* (row,).
        gold: labels as the task numbers them, or scores. *Shape:* (row,).
        plain: predictions of the untouched model. *Shape:* (row,).
        changed: predictions without attention to them in each layer, then in all. *Shape:* (layer or all, row).
    """

    rows: np.ndarray
    layers: int
    to_separator: np.ndarray
    to_other: np.ndarray
    weight: np.ndarray
    norm: np.ndarray
    share: np.ndarray
    gold: np.ndarray
    plain: np.ndarray
    changed: np.ndarray
    attending: tuple[int, ...] = ()


class SeparatorsStudy(Study[SeparatorsOptions, Slopes]):
    """Test whether attention to [SEP] is a no-op: gradients by layer beside other tokens, and its knockout."""

    name, options, partial, arguments = "separators", SeparatorsOptions, Slopes, disabling.Slice
    kinds = (Untouched, SeparatorLayer)
    question = "Is attention to separators a no-op?"
    needs = frozenset({Need.CLASSIFIER, Need.LABELS})

    def units(self, options: SeparatorsOptions) -> list[Unit]:
        """Slices of the task's rows."""
        return units_of(options)

    def run(self, options: SeparatorsOptions, unit: Unit) -> Done[Slopes]:
        """Gradients, weights and predictions of these rows."""
        opened, all_rows = disabling.opened(options), disabling.rows_of(options)
        checkpoint, rows = opened.checkpoint, [all_rows[k] for k in unit.arguments.rows]
        encodings = opened.encoded(rows)
        slopes = capture.slopes.separator_slopes(checkpoint, encodings, opened.outputs(rows))
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
            np.array(unit.arguments.rows), checkpoint.layers, slopes.to_separator.numpy(), slopes.to_other.numpy(),
            slopes.weight.numpy(), capture.norms.separator_norms(checkpoint, encodings).numpy(),
            np.array([len(encoding.separators) / len(encoding) for encoding in encodings]),
            np.array([row.label for row in rows]),
            opened.predicted(capture.running.predict(checkpoint, encodings)), np.array(changed), checkpoint.attending,
        )  # fmt: skip
        return Done(partial, provenance(checkpoint, [row.id for row in rows]))

    def merge(self, options: SeparatorsOptions, partials: Sequence[Slopes]) -> Slopes:
        """All rows, in the task's order."""
        names = ("rows", "to_separator", "to_other", "weight", "norm", "share", "gold", "plain", "changed")
        return Slopes(layers=partials[0].layers, attending=partials[0].attending, **in_order(partials, names))

    def results(self, options: SeparatorsOptions, merged: Slopes) -> list[Result]:
        """The baseline; a record per layer with the ratio of gradients and what cutting does; one for all layers."""
        task = task_of(options.task)
        before = metrics_before(task, merged.gold, merged.plain)
        changes = prediction_changes(task, merged.gold, merged.plain, merged.changed, seed=options.seed)
        results: list[Result] = [Untouched(task=task.key, n=len(merged.gold), metrics=before)]
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
    """A ratio of means over rows with its 95 % interval: that of the mean of what each row adds to the ratio.

    Args:
        above: numerators, at least 0. *Shape:* (row,).
        below: denominators, their mean above 0. *Shape:* (row,).

    Returns:
        mean(above) / mean(below), and the ends of its interval, the lower at least 0; None where fewer than two rows
        differ.
    """
    ratio = float(above.mean() / below.mean())
    influence = (above - ratio * below) / below.mean()
    low, high = (float(end[0]) for end in mean_interval(influence[:, None]))
    return (ratio, max(ratio + low, 0.0), ratio + high) if np.isfinite(low) else (ratio, None, None)


def gradient_facts(merged: Slopes, layer: int) -> Row:
    """Mean gradients of a layer and their ratio (of means), and how much of weights and of norms separators have,
    beside their share of the pieces; intervals over rows."""
    is_finite = np.isfinite(merged.to_separator[layer])
    if not is_finite.any():
        return dict.fromkeys(FACTS)
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
        facts |= {key: value if np.isfinite(value) else None for key, value in zip(names, known_values, strict=True)}
    return facts


STUDY = SeparatorsStudy()
