"""From values by row to rows of the study: heads by rank, their sum, ranks that agree, orders of pruning."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...attention import all_heads
from ...scoring import effects
from ..outcomes import in_order
from ..records import Result
from .gate_table import agreement
from .records import OrderContrast, OrderStep, ShapleyHead, ShapleySum

if TYPE_CHECKING:
    from .shapley import ShapleyPartial

ORDERS = ("Shapley value", "gradient")


def merged(partials: "Sequence[ShapleyPartial]") -> "ShapleyPartial":
    """All rows, in the task's order; what the orders keep stands beside."""
    valued = [part for part in partials if part.kept is None]
    whole = in_order(valued, ("rows", "whole", "none", "values", "alone"))
    ordered = sorted(valued, key=lambda part: part.rows.tolist())  # sums in floating point depend on the order
    losses = next((part.kept for part in partials if part.kept is not None), None)
    return replace(valued[0], **whole, gradients=np.sum([part.gradients for part in ordered], 0), kept=losses)  # type: ignore[arg-type]


def ranked(partial: "ShapleyPartial") -> tuple[tuple[int, ...], ...]:
    """Heads by Shapley value and by gradient, weakest first."""
    ways = (partial.values.mean(1), _gradient(partial))
    return tuple(tuple(int(k) for k in np.argsort(way, kind="stable")) for way in ways)


def _gradient(partial: "ShapleyPartial") -> np.ndarray:
    """Michel et al.'s importance: each layer's divided by its l2 norm."""
    by_layer = (partial.gradients / len(partial.rows)).reshape(partial.layers, partial.heads)
    return (by_layer / (np.linalg.norm(by_layer, axis=1, keepdims=True) + 1e-20)).flatten()


def results(partial: "ShapleyPartial", *, orders: int, operator: str, seed: int) -> list[Result]:
    """The heads, their sum, ranks that agree, and the orders of pruning."""
    means, n = partial.values.mean(1), len(partial.rows)
    ends = effects.mean_intervals(np.zeros(n), partial.values, most=None)
    ranks = {int(k): rank + 1 for rank, k in enumerate(np.argsort(-means, kind="stable"))}
    alone, gradient = partial.alone.mean(1), _gradient(partial)
    heads = [
        ShapleyHead(
            name=str(head), layer=head.layer, head=head.head,
            value=float(means[k]), low=ends[k].low, high=ends[k].high, rank=ranks[k], effect=float(alone[k]),
            gradient=float(gradient[k]), orders=orders, operator=operator, n=n,
        )
        for k, head in enumerate(all_heads(partial.layers, partial.heads))
    ]  # fmt: skip
    ways = {"Shapley value": means, "gradient": gradient, "effect": alone}
    body: list[Result] = [*sorted(heads, key=lambda head: head.rank)]
    body.append(
        ShapleySum(
            with_all=float(partial.whole.mean()), with_none=float(partial.none.mean()), values=float(means.sum()), n=n
        )
    )
    for first, second in (("gradient", "Shapley value"), ("gradient", "effect"), ("effect", "Shapley value")):
        body.append(agreement(first, second, ways, seed=seed))
    return body if partial.kept is None else [*body, *_orders(partial.kept)]


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
