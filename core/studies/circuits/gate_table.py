"""From fitted gates and effects to rows: the price, each head's class, the classes together, and ranks that agree."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...attention import all_heads
from ...scoring import effects
from ...scoring.gate_classes import class_shares, classes_of
from ...scoring.rank_bootstrap import rank_correlation
from ..outcomes import finite
from ..records import Result
from .records import GatedHead, PricePoint, RankingCorrelation, TogetherCheck

if TYPE_CHECKING:
    from .gates import GatePartial

TOGETHER = ("irrelevant", "interfering")


def merged(partials: "Sequence[GatePartial]") -> "GatePartial":
    """All stages so far, fits in their order."""
    whole = partials[0]
    for part in partials[1:]:
        fields = ("path_gates", "path_losses", "effects", "gradient", "price")
        whole = replace(whole, **{name: getattr(part, name) for name in fields if getattr(part, name) is not None})
        whole = replace(whole, margin=part.margin if part.path_gates is not None else whole.margin)
    fitted = [part for part in partials if part.fits is not None]
    if not fitted:
        return whole
    order = np.argsort(np.concatenate([part.fits for part in fitted]))
    columns = {name: np.concatenate([getattr(part, name) for part in fitted])[order] for name in ("fits", "up", "down")}
    return replace(whole, **columns)  # type: ignore[arg-type]


def chosen_price(partial: "GatePartial", prices: Sequence[float]) -> float:
    """The largest price, in the loss's units, at which gates pushed down add at most the margin; the smallest where
    all add more."""
    fitting = [price for price, added in zip(prices, _added(partial), strict=True) if added <= partial.margin]
    return partial.margin * max(fitting, default=min(prices))


def results(partial: "GatePartial", prices: Sequence[float], *, seed: int) -> list[Result]:
    """The path, the heads, the classes together, and how the ways to rank heads agree."""
    assert partial.up is not None  # noqa: S101 - all stages are there
    assert partial.down is not None  # noqa: S101
    assert partial.effects is not None  # noqa: S101
    assert partial.gradient is not None  # noqa: S101
    count = partial.layers * partial.heads
    shares = class_shares(partial.up, partial.down)
    claimed, up, down = classes_of(shares), partial.up.mean(0), partial.down.mean(0)
    alone = effects.mean_intervals(np.zeros(partial.effects.shape[1]), partial.effects[:count], most=None)
    heads = [
        GatedHead(
            name=str(head), layer=head.layer, head=head.head,
            gate_class=claimed[k], facilitating=float(shares[k, 0]), interfering=float(shares[k, 1]),
            irrelevant=float(shares[k, 2]), up=float(up[k]), down=float(down[k]),
            effect=float(partial.effects[k].mean()), low=alone[k].low, high=alone[k].high,
            gradient=float(partial.gradient[k]), fits=len(partial.up), n=partial.effects.shape[1],
        )
        for k, head in enumerate(all_heads(partial.layers, partial.heads))
    ]  # fmt: skip
    ways = {
        "gate": up + down,
        "effect": partial.effects[:count].mean(1),
        "gradient": partial.gradient,
    }
    agreements = [
        agreement(first, second, ways, seed=seed)
        for first, second in (("gradient", "effect"), ("gradient", "gate"), ("gate", "effect"))
    ]
    return [*_path(partial, prices), *heads, *_checks(partial, claimed), *agreements]


def agreement(first: str, second: str, ways: dict[str, np.ndarray], *, seed: int) -> RankingCorrelation:
    """How two ways to rank heads agree: Spearman's rank correlation with its interval.

    Args:
        ways: what heads are ranked by, by name. *Shape:* (head,) each.

    Returns:
        The record; None where the correlation or an end of its interval is not defined.
    """
    rho = rank_correlation(ways[first], ways[second], seed=seed)
    return RankingCorrelation(
        name=f"{first} and {second}", first=first, second=second, value=finite(rho.value), low=finite(rho.low),
        high=finite(rho.high), n=rho.n,
    )  # fmt: skip


def _added(partial: "GatePartial") -> np.ndarray:
    assert partial.path_losses is not None  # noqa: S101 - the first stage
    means = partial.path_losses.mean(1)
    return means[:-1] - means[-1]


def _path(partial: "GatePartial", prices: Sequence[float]) -> list[Result]:
    assert partial.path_gates is not None  # noqa: S101 - the first stage
    assert partial.path_losses is not None  # noqa: S101
    chosen, n = chosen_price(partial, prices), partial.path_losses.shape[1]
    return [
        PricePoint(
            price=partial.margin * price,
            open_gates=int((gates > 0.5).sum()),
            added=float(added),
            chosen=bool(np.isclose(partial.margin * price, chosen)),
            n=n,
        )
        for price, gates, added in zip(prices, partial.path_gates, _added(partial), strict=True)
    ]


def _checks(partial: "GatePartial", claimed: Sequence[str]) -> list[Result]:
    assert partial.effects is not None  # noqa: S101 - all stages are there
    every, rows = all_heads(partial.layers, partial.heads), partial.effects.shape[1]
    sets = partial.effects[len(every) :].reshape(len(TOGETHER), -1, rows)
    body: list[Result] = []
    for name, (own_set, *drawn) in zip(TOGETHER, sets, strict=True):
        heads = [str(head) for head, own_set in zip(every, claimed, strict=True) if own_set == name]
        if not heads:
            body.append(TogetherCheck(name=name, heads="", count=0, margin=partial.margin, verdict="no heads", n=rows))
            continue
        whole = effects.mean_intervals(np.zeros(rows), own_set[None], most=None)[0]
        others = np.mean(drawn, 1)
        body.append(TogetherCheck(
            name=name, heads=",".join(heads), count=len(heads), effect=whole.value, low=whole.low, high=whole.high,
            margin=partial.margin, verdict=_verdict(whole, partial.margin), random=float(others.mean()),
            random_low=float(others.min()), random_high=float(others.max()), n=rows,
        ))  # fmt: skip
    return body


def _verdict(whole: effects.Interval, margin: float) -> str:
    if whole.low is None or whole.high is None:
        return "open"
    if whole.high < 0:
        return "lowers the loss"
    if whole.low > margin:
        return "beyond the margin"
    return "within the margin" if -margin < whole.low and whole.high < margin else "open"
