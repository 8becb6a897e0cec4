"""Attention knockout on a task's rows: chosen edges cut in one layer at a time and in all, and what it does.

Edges are named (separators, across sentences, diagonals ...; core.capture.knockout). Cut before the softmax the other
keys take the weight; with `--keep-weights` weights are set to 0 after it. Rows that lack an edge kind (no second
sentence) are predicted as they were, so n with such edges is said.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pydantic.dataclasses

from core import capture
from core.store.rows import Row
from core.studies.ablation import disabling
from core.studies.ablation.headlines import cut_headline
from core.studies.ablation.records import EdgeCut, Untouched
from core.studies.ablation.task_rows import RowOptions, units_of
from core.studies.contract import Done, Flag, Need, Study, Unit
from core.studies.headline import Headline
from core.studies.outcomes import in_order
from core.studies.prediction_changes import metrics_before, prediction_changes
from core.studies.provenance import provenance
from core.studies.records import Result
from core.tasks.glue import task_of


@pydantic.dataclasses.dataclass(frozen=True)
class Options(RowOptions):
    """Which edges are cut, of which checkpoint, on which rows."""

    edges: Annotated[tuple[str, ...], Flag("separators, first, across, current, previous, next; give several")] = (
        "separators",
        "first",
        "current",
        "previous",
    )
    renormalise: Annotated[bool, Flag("cut before the softmax, or after", name="--renormalise/--keep-weights")] = True


@dataclass(frozen=True)
class Knocked:
    """Predictions of some rows, plain and under every cut.

    rows: places in the task. layers: of the checkpoint. gold, plain, changed [variant, row]; having [edge kind, row]:
    whether the row has such edges. Variants: for each kind, each layer alone, then all layers.
    """

    rows: np.ndarray
    layers: int
    gold: np.ndarray
    plain: np.ndarray
    changed: np.ndarray
    having: np.ndarray


class KnockoutStudy(Study[Options, Knocked]):
    """Cut edges of attention (separators, diagonals, across sentences) layer by layer: what happens to predictions."""

    name, options, partial, arguments = "knockout", Options, Knocked, disabling.Slice
    needs = frozenset({Need.CLASSIFIER, Need.LABELS})

    def title(self, options: Options) -> str:
        """Name the edges and the checkpoint."""
        return f"Knockout of {', '.join(options.edges)} in {options.checkpoint}"

    def units(self, options: Options) -> list[Unit]:
        """Slices of the task's rows; edges that cannot be are refused here."""
        for kind in options.edges:
            capture.knockout.edges_of(kind, causal=False)
        return units_of(options)

    def run(self, options: Options, unit: Unit) -> Done[Knocked]:
        """Predictions of these rows, plain and under every cut."""
        opened, all_rows = disabling.opened(options), disabling.rows_of(options)
        checkpoint, rows = opened.checkpoint, [all_rows[k] for k in unit.arguments.rows]
        encodings, changed, having = opened.encoded(rows), [], []
        for kind in options.edges:
            edges = capture.knockout.edges_of(kind, causal=checkpoint.causal)
            having.append([bool(edges(encoding).any()) for encoding in encodings])
            for layers in layers_of(checkpoint.layers):
                cut = capture.interventions.Knockout(edges, frozenset(layers), options.renormalise)
                changed.append(opened.predicted(capture.running.predict(checkpoint, encodings, interventions=[cut])))
        partial = Knocked(
            np.array(unit.arguments.rows), checkpoint.layers, np.array([row.label for row in rows]),
            opened.predicted(capture.running.predict(checkpoint, encodings)), np.array(changed), np.array(having),
        )  # fmt: skip
        return Done(partial, provenance(checkpoint, [row.id for row in rows]))

    def merge(self, options: Options, partials: Sequence[Knocked]) -> Knocked:
        """All rows, in the task's order."""
        whole = in_order(partials, ("rows", "gold", "plain", "changed", "having"))
        return Knocked(layers=partials[0].layers, **whole)

    def results(self, options: Options, merged: Knocked) -> list[Result]:
        """The baseline, then a record per kind of edge and layer (layer None: all layers)."""
        task = task_of(options.task)
        how = f"knockout, {'renormalised' if options.renormalise else 'weights set to 0'}"
        cuts = [(number, kind, layers) for number, kind in enumerate(options.edges)
                for layers in layers_of(merged.layers)]  # fmt: skip
        changes = prediction_changes(task, merged.gold, merged.plain, merged.changed, seed=options.seed)
        before = metrics_before(task, merged.gold, merged.plain)
        return [
            Untouched(operator=how, task=task.key, n=len(merged.gold), metrics=before),
            *(
                EdgeCut(
                    name=f"{kind} in {'all layers' if len(layers) > 1 else f'L{layers[0] + 1}'}", edges=kind,
                    layer=layers[0] if len(layers) == 1 else None, with_edges=int(merged.having[number].sum()),
                    operator=how, task=task.key, **change,
                )
                for (number, kind, layers), change in zip(cuts, changes, strict=True)
            ),
        ]  # fmt: skip

    def headline(self, rows: Sequence[Row]) -> Headline:
        return cut_headline(rows, [(f"{cut.edges} ({cut.name})", cut) for cut in EdgeCut.among(rows)])


def layers_of(layers: int) -> list[list[int]]:
    """Each layer alone, then all together (where there is more than one)."""
    return [*([layer] for layer in range(layers)), *([list(range(layers))] if layers > 1 else [])]


STUDY = KnockoutStudy()
