"""Shapley values of heads: what each head adds to the logit difference when random other heads are present.

Heads are removed one after another in random orders, each followed by the reverse order. Every example has its own
orders, so the interval over examples includes their variation. The values add up to the logit difference with all heads
minus that without heads. They are compared with the ablation effect and the gradient of each head. On other examples,
heads are then pruned in the order of Shapley values and of gradients (Michel et al. 2019) to compare both orders.
"""

from collections.abc import Sequence
from dataclasses import dataclass
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
from ..ablation import setup
from ..contract import Done, ExampleUnit, Flag, Need, Study, Unit, provenance
from ..headline import Headline, head_interval
from ..merging import PerExample, Positions, Summed
from ..options import DrawnRows, Limit
from ..records import Result
from .gates import agreement
from .pairs import check_operator, label_differences
from .records import (
    OrderContrast,
    OrderStep,
    RankingCorrelation,
    ShapleyHead,
    ShapleySum,
    tables_except,
)

ROWS_A_UNIT = 16
ORDERS = ("Shapley value", "gradient")


@pydantic.dataclasses.dataclass(frozen=True)
class ShapleyOptions(setup.ReferenceOptions):
    """Options for Shapley values: the checkpoint, the examples, and the number of random orders of the heads."""

    limit: Limit = 100
    orders: Annotated[
        int,
        Flag(
            "number of permutations of the heads per example; half of them are random, and the other half are the "
            "same permutations reversed",
            least=2,
        ),
    ] = 4
    operator: Annotated[str, Flag("ablation method for heads that are not in the coalition: zero or mean")] = "zero"
    judge_rows: Annotated[
        int, Flag("number of training examples on which pruning orders are compared; 0 skips the comparison", least=0)
    ] = 100
    draws: DrawnRows = 1


@dataclass(frozen=True)
class ShapleyPartial:
    """How much each head contributes to the logit difference. Heads are ordered by layer.

    Attributes:
        whole, none: the logit difference with all heads and without heads. *Shape:* (example,).
        values, alone: Shapley values, and the fall without each head. *Shape:* (head, example).
        gradients: sums over examples of |d loss / d gate|. *Shape:* (head,).
        kept: logit difference along each pruning order, starting with all heads; None from other units. *Shape:*
            (order, step, example).
    """

    rows: Positions
    layers: int
    heads: int
    whole: PerExample
    none: PerExample
    values: PerExample
    alone: PerExample
    gradients: Summed[np.ndarray]
    kept: np.ndarray | None = None
    attending: tuple[int, ...] = ()


class ShapleyStudy(Study[ShapleyOptions, ShapleyPartial]):
    """Compute the Shapley value of each head, and compare several orders in which heads are pruned."""

    name, options, partial, arguments = "shapley", ShapleyOptions, ShapleyPartial, ExampleUnit
    question = "How much does each head contribute to the prediction?"
    kinds = (ShapleyHead, ShapleySum, RankingCorrelation, OrderStep, OrderContrast)
    called = "Shapley values of the heads of {checkpoint}"
    needs = frozenset({Need.CLASSIFIER, Need.LABELS})

    def units(self, options: ShapleyOptions) -> list[Unit]:
        check_operator(options.operator, options)
        antithetic_orders(2, options.orders, np.random.default_rng(0))
        if options.judge_rows == 1:
            raise InputError(
                "Pruning orders must be compared on at least two examples; got 1. Raise --judge-rows, or set it to 0 "
                "to skip the comparison."
            )
        return setup.units_of(options, most=ROWS_A_UNIT)

    def more(self, options: ShapleyOptions, partials: Sequence[ShapleyPartial]) -> list[Unit]:
        if not options.judge_rows or any(part.kept is not None for part in partials):
            return []
        ranked = weakest_first(self.merge(options, partials))
        return [Unit("orders", ExampleUnit((), groups=ranked), options.judge_rows)]

    def run(self, options: ShapleyOptions, unit: Unit) -> Done[ShapleyPartial]:
        opened, work = setup.opened(options), unit.arguments
        if work.groups:
            rows = setup.rows_of(options, split="train", limit=options.judge_rows)
            partial = along_orders(options, opened, rows, work.groups)
        else:
            all_rows = setup.rows_of(options)
            rows = [all_rows[k] for k in work.positions]
            partial = values_of(options, opened, rows, work.positions)
        return Done(partial, provenance(opened.checkpoint, [row.id for row in rows]))

    def results(self, options: ShapleyOptions, merged: ShapleyPartial) -> list[Result]:
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
        if merged.kept is None:
            return body
        n = merged.kept.shape[2]  # held-out examples
        for order, values in zip(ORDERS, merged.kept, strict=True):  # what each pruning order retains at each step
            kept = effects.mean_intervals(np.zeros(n), values, most=None)
            body += [
                OrderStep(order=order, removed=k, value=float(whole.mean()), low=kept[k].low, high=kept[k].high, n=n)
                for k, whole in enumerate(values)
            ]
        beyond = (merged.kept[0] - merged.kept[1]).mean(0)
        whole = effects.mean_intervals(np.zeros(n), beyond[None], most=None)[0]
        verdict = "no significant difference"
        if whole.low is not None and whole.high is not None and not whole.low <= 0 <= whole.high:
            verdict = f"the order by {ORDERS[0 if whole.low > 0 else 1]} keeps more"
        body.append(OrderContrast(value=float(beyond.mean()), low=whole.low, high=whole.high, verdict=verdict, n=n))
        return body

    def headline(self, rows: Sequence[Row]) -> Headline:
        heads, contrasts = ShapleyHead.among(rows), OrderContrast.among(rows)
        most = heads[0]
        orders = " ".join(
            f" Pruning in {contrast.verdict} of the logit difference than pruning in the other order."
            if "order" in contrast.verdict
            else " The two pruning orders do not differ significantly."
            for contrast in contrasts
        )
        ends = head_interval(most.name, most.low, most.high)
        against = sum(head.high is not None and head.high < 0 for head in heads)
        return Headline(
            (
                f"Head {most.name} contributes most to the logit difference in favour of the correct label: "
                f"{most.value:+.2f} logits. For {against} of {len(heads)} heads, the 95 % CI of the contribution is "
                f"below 0 (not corrected for the number of heads).{orders}"
            ),
            most.n,
            "examples",
            ends,
        )

    def shown(self, rows: Sequence[Row]) -> list[list[Row] | str]:
        names = ("name", "value", "low", "high", "rank", "effect", "gradient", "n")
        table = [head.columns(*names) for head in ShapleyHead.among(rows)]
        return [table, *tables_except(rows, ShapleyHead, OrderStep)]


STUDY = ShapleyStudy()


def values_of(
    options: ShapleyOptions, opened: setup.Opened, rows: Sequence[TaskRow], places: Sequence[int]
) -> ShapleyPartial:
    """Estimate the Shapley value of every head on the given examples, using random orders of heads for each example."""
    checkpoint = opened.checkpoint
    all_of_heads = checkpoint.all_heads
    source, columns = setup.replacements(options.operator, opened, options)[0], []
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
    options: ShapleyOptions, opened: setup.Opened, rows: Sequence[TaskRow], ranked: Sequence[Sequence[int]]
) -> ShapleyPartial:
    """For each pruning order, prune heads one by one, and compute the logit difference on held-out examples."""
    checkpoint = opened.checkpoint
    all_of_heads = checkpoint.all_heads
    sets = [frozenset(all_of_heads[k] for k in order[: step + 1]) for order in ranked for step in range(len(order))]
    source = setup.replacements(options.operator, opened, options)[0]
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
    """Rank the heads by Shapley value and by gradient-based importance, weakest first."""
    ways = (partial.values.mean(1), _gradient(partial))
    return tuple(tuple(int(k) for k in np.argsort(way, kind="stable")) for way in ways)


def _gradient(partial: "ShapleyPartial") -> np.ndarray:
    """Return Michel et al.'s importance of each head, with each layer divided by its l2 norm."""
    by_layer = (partial.gradients / len(partial.rows)).reshape(-1, partial.heads)
    return (by_layer / (np.linalg.norm(by_layer, axis=1, keepdims=True) + 1e-20)).flatten()
