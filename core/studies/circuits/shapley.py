"""What each head adds, all other heads on or off at random: Shapley values of the logit difference.

"Switching off all possible combinations of heads is not feasible", and need not be: heads are taken out one after
another in random orders, each order followed by its reverse, drawn anew for every row, so that the interval over rows
is one over orders too. The values add up to the logit difference with all heads less that with none, exactly. Beside
them each head's effect alone and its gradient; then heads are pruned in the order of each, on rows that made no order
(Michel et al. 2019 prune by gradient): which order keeps more of the logit difference?
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import pydantic.dataclasses

from ... import capture
from ...attention import all_heads
from ...errors import InputError
from ...scoring import effects
from ...scoring.circuits import antithetic_orders, sets_along, shapley_values
from ...store.rows import Row
from ...tasks.glue import TaskRow
from ..ablation import disabling, references
from ..contract import Done, Flag, Need, Study, Unit
from ..headline import Headline
from ..options import DrawnRows, Limit
from ..outcomes import in_order
from ..provenance import provenance
from ..records import Result
from .gates import agreement
from .pairs import check_operator, label_differences
from .records import (
    OrderContrast,
    OrderStep,
    RankingCorrelation,
    ShapleyHead,
    ShapleySum,
    tables_beside,
)

ROWS_A_UNIT = 16
ORDERS = ("Shapley value", "gradient")


@pydantic.dataclasses.dataclass(frozen=True)
class ShapleyOptions(references.ReferenceOptions):
    """Which checkpoint, on which rows, with how many orders."""

    limit: Limit = 100
    orders: Annotated[int, Flag("of heads for each row, half of them reverses of the others", least=2)] = 4
    operator: Annotated[str, Flag("what stands in for a head that is off: zero or mean")] = "zero"
    judge_rows: Annotated[int, Flag("train rows on which the orders are compared; 0: none", least=0)] = 100
    draws: DrawnRows = 1


@dataclass(frozen=True)
class ShapleyRows:
    """Some rows; ranked: heads by Shapley value and by gradient, weakest first, where the rows compare orders."""

    rows: tuple[int, ...]
    ranked: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class ShapleyPartial:
    """What heads add on some rows. Heads come layer by layer.

    Attributes:
        rows: their places in the task. *Shape:* (row,), int.
        whole: the logit difference with all heads. *Shape:* (row,).
        none: the logit difference with none. *Shape:* (row,).
        values: Shapley values in logits; over heads they add up to `whole` less `none`. *Shape:* (head, row).
        alone: how far the logit difference falls without each head. *Shape:* (head, row).
        gradients: sums over the rows of |d loss / d gate|. *Shape:* (head,).
        kept: the logit difference of rows that compare orders, step 0 with all heads; None of other rows. *Shape:*
            (order, step, row).
    """

    rows: np.ndarray
    layers: int
    heads: int
    whole: np.ndarray
    none: np.ndarray
    values: np.ndarray
    alone: np.ndarray
    gradients: np.ndarray
    kept: np.ndarray | None = None
    attending: tuple[int, ...] = ()


class Shapley(Study[ShapleyOptions, ShapleyPartial]):
    """What each head adds with the others on or off at random, and which order of pruning keeps more."""

    name, options, partial, arguments = "shapley", ShapleyOptions, ShapleyPartial, ShapleyRows
    question = "How much does each head contribute to the prediction?"
    kinds = (ShapleyHead, ShapleySum, RankingCorrelation, OrderStep, OrderContrast)
    called = "Shapley values of the heads of {checkpoint}"
    needs = frozenset({Need.CLASSIFIER, Need.LABELS})

    def units(self, options: ShapleyOptions) -> list[Unit]:
        """Slices of the task's rows; options that cannot be are refused here."""
        check_operator(options.operator)
        references.check(options.operator, options)
        antithetic_orders(2, options.orders, np.random.default_rng(0))
        if options.judge_rows == 1:
            raise InputError("Orders of pruning are compared on at least two rows; judge rows of 1 were asked for.")
        all_rows = [row for row_slice, _ in disabling.slices(options) for row in row_slice.rows]
        return [
            Unit(f"rows-{k}", ShapleyRows(tuple(all_rows[k : k + ROWS_A_UNIT])), ROWS_A_UNIT)
            for k in range(0, len(all_rows), ROWS_A_UNIT)
        ]

    def more(self, options: ShapleyOptions, partials: Sequence[ShapleyPartial]) -> list[Unit]:
        """The rows that compare orders, once there are orders."""
        if not options.judge_rows or any(part.kept is not None for part in partials):
            return []
        return [
            Unit(
                "orders",
                ShapleyRows((), weakest_first(self.merge(options, partials))),
                options.judge_rows,
            )
        ]

    def run(self, options: ShapleyOptions, unit: Unit) -> Done[ShapleyPartial]:
        """Values of these rows, or what is kept along the orders."""
        opened, work = disabling.opened(options), unit.arguments
        if work.ranked:
            rows = disabling.rows_of(options, split="train", limit=options.judge_rows)
            partial = along_orders(options, opened, rows, work.ranked)
        else:
            all_rows = disabling.rows_of(options)
            rows = [all_rows[k] for k in work.rows]
            partial = values_of(options, opened, rows, work.rows)
        return Done(partial, provenance(opened.checkpoint, [row.id for row in rows]))

    def merge(self, options: ShapleyOptions, partials: Sequence[ShapleyPartial]) -> ShapleyPartial:
        """All rows, in the task's order."""
        valued = [part for part in partials if part.kept is None]
        whole = in_order(valued, ("rows", "whole", "none", "values", "alone"))
        ordered = sorted(valued, key=lambda part: part.rows.tolist())  # sums in floating point depend on the order
        losses = next((part.kept for part in partials if part.kept is not None), None)
        return replace(valued[0], **whole, gradients=np.sum([part.gradients for part in ordered], 0), kept=losses)  # type: ignore[arg-type]

    def results(self, options: ShapleyOptions, merged: ShapleyPartial) -> list[Result]:
        """The heads, their sum, ranks that agree, and the orders of pruning."""
        means, n = merged.values.mean(1), len(merged.rows)
        ends = effects.mean_intervals(np.zeros(n), merged.values, most=None)
        ranks = {int(k): rank + 1 for rank, k in enumerate(np.argsort(-means, kind="stable"))}
        alone, gradient = merged.alone.mean(1), _gradient(merged)
        heads = [
            ShapleyHead(
                name=str(head), layer=head.layer, head=head.head,
                value=float(means[k]), low=ends[k].low, high=ends[k].high, rank=ranks[k], effect=float(alone[k]),
                gradient=float(gradient[k]), orders=options.orders, operator=options.operator, n=n,
            )
            for k, head in enumerate(all_heads(merged.layers, merged.heads, merged.attending))
        ]  # fmt: skip
        ways = {"Shapley value": means, "gradient": gradient, "effect": alone}
        body: list[Result] = [*sorted(heads, key=lambda head: head.rank)]
        body.append(
            ShapleySum(
                with_all=float(merged.whole.mean()), with_none=float(merged.none.mean()), values=float(means.sum()), n=n
            )
        )
        for first, second in (("gradient", "Shapley value"), ("gradient", "effect"), ("effect", "Shapley value")):
            body.append(agreement(first, second, ways, seed=options.seed))
        return body if merged.kept is None else [*body, *_orders(merged.kept)]

    def headline(self, rows: Sequence[Row]) -> Headline:
        heads, contrasts = ShapleyHead.among(rows), OrderContrast.among(rows)
        most = heads[0]
        beside = f" When heads are pruned in order, {contrasts[0].verdict}." if contrasts else ""
        ends = f"{most.name}: 95 % CI {most.low:.2f} to {most.high:.2f}" if most.low is not None else ""
        against = sum(head.high is not None and head.high < 0 for head in heads)
        return Headline(
            f"{most.name} contributes most to the correct prediction: {most.value:+.2f} logits. "
            f"{against} of {len(heads)} heads work against it.{beside}",
            most.n,
            "examples",
            ends,
        )

    def shown(self, rows: Sequence[Row]) -> list[list[Row] | str]:
        names = ("name", "value", "low", "high", "rank", "effect", "gradient", "n")
        table = [head.columns(*names) for head in ShapleyHead.among(rows)]
        return [table, *tables_beside(rows, ShapleyHead, OrderStep)]


STUDY = Shapley()


def values_of(
    options: ShapleyOptions, opened: disabling.Opened, rows: Sequence[TaskRow], places: Sequence[int]
) -> ShapleyPartial:
    """Shapley values of every row, each along orders of its own."""
    checkpoint = opened.checkpoint
    all_of_heads = checkpoint.all_heads
    source, columns = references.sources(options.operator, opened, options)[0], []
    for row, row_number in zip(rows, places, strict=True):
        orders = antithetic_orders(len(all_of_heads), options.orders, np.random.default_rng([options.seed, row_number]))
        off = sets_along(orders)
        sets = list(
            dict.fromkeys(
                [*(frozenset({k}) for k in range(len(all_of_heads))), *(coalition for one in off for coalition in one)]
            )
        )
        variants = [frozenset(all_of_heads[k] for k in coalition) for coalition in sets]
        swept = capture.sweeping.sweep(checkpoint, opened.encoded([row]), variants, options.operator, source=source)
        plain, changed = label_differences(opened, [row], swept.plain, swept.changed)
        m = {coalition: float(value) for coalition, value in zip(sets, changed[:, 0], strict=True)}
        along = np.array([[m[coalition] for coalition in one] for one in off])
        lost = [plain[0] - m[frozenset({k})] for k in range(len(all_of_heads))]
        columns.append(
            (plain[0], m[frozenset(range(len(all_of_heads)))], shapley_values(plain[0], along, orders), lost)
        )
    sums = capture.importance.gradients(checkpoint, opened.encoded(rows), opened.outputs(rows))
    whole, none, values, alone = (np.array(part, dtype=float) for part in zip(*columns, strict=True))
    return ShapleyPartial(
        np.array(places), checkpoint.layers, checkpoint.heads, whole, none, values.T, alone.T,
        sums.example[list(checkpoint.sets[0].numbers)].flatten().numpy(), attending=checkpoint.attending,
    )  # fmt: skip


def along_orders(
    options: ShapleyOptions, opened: disabling.Opened, rows: Sequence[TaskRow], ranked: Sequence[Sequence[int]]
) -> ShapleyPartial:
    """The logit difference of rows that made no order, heads taken out one after another in each order."""
    checkpoint = opened.checkpoint
    all_of_heads = checkpoint.all_heads
    sets = [frozenset(all_of_heads[k] for k in order[: step + 1]) for order in ranked for step in range(len(order))]
    source = references.sources(options.operator, opened, options)[0]
    swept = capture.sweeping.sweep(checkpoint, opened.encoded(rows), sets, options.operator, source=source)
    plain, changed = label_differences(opened, list(rows), swept.plain, swept.changed)
    steps = changed.reshape(len(ranked), len(all_of_heads), len(rows))
    losses = np.concatenate([np.broadcast_to(plain, (len(ranked), 1, len(rows))), steps], 1)
    empty = np.zeros((len(all_of_heads), 0))
    return ShapleyPartial(
        np.zeros(0, dtype=int), checkpoint.layers, checkpoint.heads, empty[0], empty[0], empty, empty,
        np.zeros(len(all_of_heads)), losses, checkpoint.attending,
    )  # fmt: skip


# ---------------------------------------------------------------- result records


def weakest_first(partial: "ShapleyPartial") -> tuple[tuple[int, ...], ...]:
    """Heads by Shapley value and by gradient, weakest first."""
    ways = (partial.values.mean(1), _gradient(partial))
    return tuple(tuple(int(k) for k in np.argsort(way, kind="stable")) for way in ways)


def _gradient(partial: "ShapleyPartial") -> np.ndarray:
    """Michel et al.'s importance: each layer's divided by its l2 norm."""
    by_layer = (partial.gradients / len(partial.rows)).reshape(-1, partial.heads)
    return (by_layer / (np.linalg.norm(by_layer, axis=1, keepdims=True) + 1e-20)).flatten()


def _orders(losses: np.ndarray) -> list[Result]:
    """What each order keeps at each step, and the mean over steps of the first less the second."""
    n = losses.shape[2]
    steps = []
    for order, values in zip(ORDERS, losses, strict=True):
        ends = effects.mean_intervals(np.zeros(n), values, most=None)
        steps += [
            OrderStep(order=order, removed=k, value=float(whole.mean()), low=ends[k].low, high=ends[k].high, n=n)
            for k, whole in enumerate(values)
        ]
    beyond = (losses[0] - losses[1]).mean(0)
    whole = effects.mean_intervals(np.zeros(n), beyond[None], most=None)[0]
    verdict = "no difference beyond luck"
    if whole.low is not None and whole.high is not None and not whole.low <= 0 <= whole.high:
        verdict = f"the order by {ORDERS[0 if whole.low > 0 else 1]} keeps more"
    contrast = OrderContrast(value=float(beyond.mean()), low=whole.low, high=whole.high, verdict=verdict, n=n)
    return [*steps, contrast]
