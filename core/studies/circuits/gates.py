"""Which heads a task needs, which stand in its way, and which do not matter: gates fitted on the task's loss.

Causal head gating (arXiv 2505.13737): a gate in (0, 1) on every head, weights frozen, fitted twice, pushed up and
pushed down by a price a head. High either way: facilitating; low either way: interfering; high only when pushed up:
irrelevant. Fits repeat over bootstrap samples of train rows and random starts; a class is claimed where it comes in
95 % of them. The price is the largest of a path at which gates pushed down add at most the margin to the loss. Beside
it, on rows that fitted nothing: each head's effect when it is taken out, its gradient, and the check that the classes
hold together: all irrelevant heads out at once should stay within the margin, all interfering ones lower the loss.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pydantic.dataclasses

from ... import capture
from ...attention import all_heads
from ...errors import InputError
from ...scoring.gate_classes import class_shares, classes_of
from ...store.rows import Row
from ...tasks.glue import TaskRow, task_of
from ..ablation import disabling
from ..ablation.disabling import RowOptions
from ..ablation.races import SHARE, constant_loss
from ..contract import Done, Flag, Need, Study, Unit
from ..headline import Headline
from ..options import Limit
from ..provenance import provenance
from ..records import Result
from . import gate_table
from .records import GatedHead, PricePoint, RankingCorrelation, TogetherCheck, tables_beside

PRICES = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)  # of the margin: the path
RANDOM_SETS = 20
FITS_A_UNIT = 15


@pydantic.dataclasses.dataclass(frozen=True)
class GatesOptions(RowOptions):
    """Which checkpoint, fitted on which rows, judged on which."""

    limit: Limit = 200
    fit_rows: Annotated[int, Flag("train rows that gates are fitted on", least=8)] = 48
    samples: Annotated[int, Flag("bootstrap samples of these rows", least=1)] = 20
    starts: Annotated[int, Flag("random starts of each sample", least=1)] = 3
    steps: Annotated[int, Flag("of each fit", least=2)] = 30
    margin: Annotated[float | None, Flag("of the loss; default: 5 % of the best constant answer's loss")] = None


@dataclass(frozen=True)
class Stage:
    """What a unit does: "path", "fits" (numbers of the fits) or "judged" (after the classes are there)."""

    name: str
    fits: tuple[int, ...] = ()
    price: float = 0.0
    irrelevant: tuple[int, ...] = ()
    interfering: tuple[int, ...] = ()


@dataclass(frozen=True)
class GatePartial:
    """What units measured; None where a unit did not. Heads come layer by layer.

    Attributes:
        margin: in units of the task's loss.
        path_gates: gates pushed down at each price, 0 to 1. *Shape:* (price, head).
        path_losses: losses of the rows that fit under these gates, the untouched model's last. *Shape:* (price + 1,
            row).
        price: the chosen one, in units of the loss.
        fits: numbers of the fits. *Shape:* (fit,), int.
        up: gates pushed up, 0 to 1. *Shape:* (fit, head).
        down: gates pushed down, 0 to 1. *Shape:* (fit, head).
        effects: on the loss of rows that judge: without each head, then without the irrelevant together and as many
            random heads RANDOM_SETS times, then the interfering likewise; NaN for an empty set. *Shape:* (variant,
            row).
        gradient: importance of each head on those rows. *Shape:* (head,).
    """

    layers: int
    heads: int
    margin: float
    path_gates: np.ndarray | None = None
    path_losses: np.ndarray | None = None
    price: float | None = None
    fits: np.ndarray | None = None
    up: np.ndarray | None = None
    down: np.ndarray | None = None
    effects: np.ndarray | None = None
    gradient: np.ndarray | None = None


class Gates(Study[GatesOptions, GatePartial]):
    """Fit a gate on every head, pushed up and pushed down: which heads does the task need, which stand in its way?"""

    name, options, partial, arguments = "gates", GatesOptions, GatePartial, Stage
    kinds = (GatedHead, TogetherCheck, PricePoint, RankingCorrelation)
    called = "Gates on the heads of {checkpoint}"
    needs = frozenset({Need.CLASSIFIER, Need.LABELS})
    counts = "fits"

    def units(self, options: GatesOptions) -> list[Unit]:
        """First the path of prices."""
        if options.margin is not None and not 0 < options.margin < float("inf"):
            raise InputError(
                f"A margin must be above 0, in units of the task's loss; seen {options.margin:g}: raise it."
            )
        gold = np.array([row.label for row in disabling.rows_of(options)])
        constant_loss(task_of(options.task), gold)
        return [Unit("path", Stage("path"), len(PRICES))]

    def more(self, options: GatesOptions, partials: Sequence[GatePartial]) -> list[Unit]:
        """Then the fits at the price that was chosen; when the classes are there, the rows that judge them."""
        merged = self.merge(options, partials)
        if merged.up is None or merged.down is None:
            price, every = gate_table.chosen_price(merged, PRICES), range(options.samples * options.starts)
            slices = [tuple(every[k : k + FITS_A_UNIT]) for k in range(0, len(every), FITS_A_UNIT)]
            return [Unit(f"fits-{k}", Stage("fits", part, price), 2 * len(part)) for k, part in enumerate(slices)]
        if merged.effects is None:
            classes = classes_of(class_shares(merged.up, merged.down))
            together = [
                tuple(k for k, class_name in enumerate(classes) if class_name == name) for name in gate_table.TOGETHER
            ]
            return [Unit("judged", Stage("judged", (), 0.0, *together), len(PRICES))]
        return []

    def run(self, options: GatesOptions, unit: Unit) -> Done[GatePartial]:
        """One stage."""
        opened, stage = disabling.opened(options), unit.arguments
        if stage.name == "judged":
            rows = disabling.rows_of(options)
            partial = judged(options, opened, rows, stage)
        else:
            rows = disabling.rows_of(options, split="train", limit=options.fit_rows)
            partial = path(options, opened, rows) if stage.name == "path" else fits(options, opened, rows, stage)
        return Done(partial, provenance(opened.checkpoint, [row.id for row in rows]))

    def merge(self, options: GatesOptions, partials: Sequence[GatePartial]) -> GatePartial:
        """All stages so far, fits in their order."""
        return gate_table.merged(partials)

    def results(self, options: GatesOptions, merged: GatePartial) -> list[Result]:
        """The path, the heads, the classes together, and how the ways to rank heads agree; nothing while under way."""
        if merged.effects is None:
            return []
        return gate_table.results(merged, PRICES, seed=options.seed)

    def headline(self, rows: Sequence[Row]) -> Headline:
        heads, checks = GatedHead.among(rows), {check.name: check for check in TogetherCheck.among(rows)}
        counts = {
            name: sum(head.gate_class == name for head in heads)
            for name in ("facilitating", "interfering", "irrelevant", "undecided")
        }
        counted = ", ".join(f"{count} {name}" for name, count in counts.items())
        together = checks["irrelevant"]
        beside = f" All irrelevant heads out together: {together.verdict}." if together.count else ""
        return Headline(
            f"Of {len(heads)} heads: {counted}.{beside}",
            heads[0].n,
            "rows",
            f"claimed in at least 95 % of {heads[0].fits} fits",
            f"margin {together.margin:.4f} in the task's loss",
        )

    def shown(self, rows: Sequence[Row]) -> list[list[Row] | str]:
        names = ("name", "gate_class", "facilitating", "interfering", "irrelevant", "effect", "low", "high", "gradient",
                 "n")  # fmt: skip
        return [[head.columns(*names) for head in GatedHead.among(rows)], *tables_beside(rows, GatedHead)]


STUDY = Gates()


def margin_of(options: GatesOptions, gold: np.ndarray) -> float:
    """The margin of a study of gates.

    Args:
        gold: labels or scores, for the default: 5 % of the loss of the best constant answer. *Shape:* (row,).

    Returns:
        In units of the task's loss, above 0.
    """
    return SHARE * constant_loss(task_of(options.task), gold) if options.margin is None else options.margin


def path(options: GatesOptions, opened: disabling.Opened, rows: Sequence[TaskRow]) -> GatePartial:
    """Gates pushed down at each price of the path, all rows counting once."""
    import torch  # 1.3 s of start-up

    checkpoint, labels, encodings = opened.checkpoint, opened.outputs(rows), opened.encoded(rows)
    margin = margin_of(options, np.array([row.label for row in rows]))
    fitted = capture.gating.GateFits(
        torch.ones(len(PRICES), len(rows)),
        torch.zeros(len(PRICES), checkpoint.layers, checkpoint.heads),
        margin * torch.tensor(PRICES),
    )
    gates = capture.gating.fit_gates(checkpoint, encodings, labels, fitted, steps=options.steps)
    tried = torch.cat([(gates > 0.5).to(gates), torch.ones_like(gates[:1])])
    losses = capture.gating.gated_losses(checkpoint, encodings, labels, tried)
    return GatePartial(
        checkpoint.layers, checkpoint.heads, margin, path_gates=gates.flatten(1).numpy(), path_losses=losses.numpy()
    )


def fits(options: GatesOptions, opened: disabling.Opened, rows: Sequence[TaskRow], stage: Stage) -> GatePartial:
    """Gates of some bootstrap samples and starts, pushed up and pushed down."""
    import torch  # 1.3 s of start-up

    checkpoint, shape = opened.checkpoint, (opened.checkpoint.layers, opened.checkpoint.heads)
    counts, starts = [], []
    for number in stage.fits:
        sample = np.random.default_rng([options.seed, number // options.starts])
        counts.append(np.bincount(sample.integers(len(rows), size=len(rows)), minlength=len(rows)))
        starts.append(np.random.default_rng([options.seed, 7, number]).normal(size=shape))
    both = [
        torch.tensor(np.concatenate([part, part]), dtype=torch.float32) for part in (np.array(counts), np.array(starts))
    ]
    prices = torch.cat([torch.full((len(stage.fits),), -stage.price), torch.full((len(stage.fits),), stage.price)])
    gates = capture.gating.fit_gates(
        checkpoint, opened.encoded(rows), opened.outputs(rows), capture.gating.GateFits(both[0], both[1], prices),
        steps=options.steps,
    ).flatten(1).numpy()  # fmt: skip
    up, down = gates[: len(stage.fits)], gates[len(stage.fits) :]
    margin = margin_of(options, np.array([row.label for row in rows]))
    return GatePartial(*shape, margin, price=stage.price, fits=np.array(stage.fits), up=up, down=down)


def judged(options: GatesOptions, opened: disabling.Opened, rows: Sequence[TaskRow], stage: Stage) -> GatePartial:
    """Exact effects on the loss of rows that fitted nothing: every head, the classes together, random heads."""
    checkpoint = opened.checkpoint
    layers, heads = checkpoint.layers, checkpoint.heads
    encodings, labels = opened.encoded(rows), opened.outputs(rows)
    chosen = [set(range(k, k + 1)) for k in range(layers * heads)]
    for number, removed in enumerate((stage.irrelevant, stage.interfering)):
        generator = np.random.default_rng([options.seed, number])
        drawn = [set(generator.permutation(layers * heads)[: len(removed)].tolist()) for _ in range(RANDOM_SETS)]
        chosen += [set(removed), *drawn]
    heads_of_all = all_heads(layers, heads)
    variants = [frozenset(heads_of_all[k] for k in removed) for removed in chosen]
    empty = np.array([not variant for variant in variants])
    labelled = capture.losses.LabelledRows(encodings, labels, [row.id for row in rows])
    exact = capture.losses.effects(checkpoint, labelled, [variant for variant in variants if variant], "zero").exact
    effects = np.full((len(variants), len(rows)), np.nan)
    effects[~empty] = exact.numpy()
    sums = capture.importance.gradients(checkpoint, encodings, labels)
    gradient = capture.importance.importance(sums).flatten().numpy()
    margin = margin_of(options, np.array([row.label for row in rows]))
    return GatePartial(layers, heads, margin, effects=effects, gradient=gradient)
