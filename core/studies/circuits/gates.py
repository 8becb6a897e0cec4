"""Which heads a task needs, which stand in its way, and which do not matter: gates fitted on the task's loss.

Causal head gating (arXiv 2505.13737): a gate in (0, 1) on every head, weights frozen, fitted twice, pushed up and
pushed down by a price a head. High either way: facilitating; low either way: interfering; high only when pushed up:
irrelevant. Fits repeat over bootstrap samples of train rows and random starts; a class is claimed where it comes in
95 % of them. The price is the largest of a path at which gates pushed down add at most the margin to the loss. Beside
it, on rows that fitted nothing: each head's effect when it is taken out, its gradient, and the check that the classes
hold together: all irrelevant heads out at once should stay within the margin, all interfering ones lower the loss.
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
from ...scoring.circuits import class_shares, classes_of
from ...scoring.rank_agreement import rank_correlation
from ...store.rows import Row
from ...tasks.glue import TaskRow, task_of
from ..ablation import disabling
from ..ablation.disabling import RowOptions
from ..ablation.sequential_test import SHARE, constant_loss
from ..contract import Done, Flag, Need, Study, Unit
from ..headline import Headline
from ..options import Limit
from ..outcomes import finite
from ..provenance import provenance
from ..records import Result
from .records import GatedHead, PricePoint, RankingCorrelation, TogetherCheck, tables_beside

PRICES = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)  # of the margin: the path
RANDOM_SETS = 20
FITS_A_UNIT = 15
TOGETHER = ("irrelevant", "interfering")


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
    attending: tuple[int, ...] = ()


@dataclass(frozen=True)
class Stage:
    """What a unit does: "path", "fits" (numbers of the fits) or "judged" (after the classes are there)."""

    name: str
    fits: tuple[int, ...] = ()
    price: float = 0.0
    irrelevant: tuple[int, ...] = ()
    interfering: tuple[int, ...] = ()


class Gates(Study[GatesOptions, GatePartial]):
    """Fit a gate on every head, pushed up and pushed down: which heads does the task need, which stand in its way?"""

    name, options, partial, arguments = "gates", GatesOptions, GatePartial, Stage
    question = "Which heads does the task need?"
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
            price, every = chosen_price(merged, PRICES), range(options.samples * options.starts)
            slices = [tuple(every[k : k + FITS_A_UNIT]) for k in range(0, len(every), FITS_A_UNIT)]
            return [Unit(f"fits-{k}", Stage("fits", part, price), 2 * len(part)) for k, part in enumerate(slices)]
        if merged.effects is None:
            classes = classes_of(class_shares(merged.up, merged.down))
            together = [tuple(k for k, class_name in enumerate(classes) if class_name == name) for name in TOGETHER]
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
        whole = partials[0]
        for part in partials[1:]:
            fields = ("path_gates", "path_losses", "effects", "gradient", "price")
            whole = replace(whole, **{name: getattr(part, name) for name in fields if getattr(part, name) is not None})
            whole = replace(whole, margin=part.margin if part.path_gates is not None else whole.margin)
        fitted = [part for part in partials if part.fits is not None]
        if not fitted:
            return whole
        order = np.argsort(np.concatenate([part.fits for part in fitted]))
        columns = {
            name: np.concatenate([getattr(part, name) for part in fitted])[order] for name in ("fits", "up", "down")
        }
        return replace(whole, **columns)  # type: ignore[arg-type]

    def results(self, options: GatesOptions, merged: GatePartial) -> list[Result]:
        """The path, the heads, the classes together, and how the ways to rank heads agree; nothing while under way."""
        if merged.effects is None:
            return []
        assert merged.up is not None  # noqa: S101 - all stages are there
        assert merged.down is not None  # noqa: S101
        assert merged.gradient is not None  # noqa: S101
        every = all_heads(merged.layers, merged.heads, merged.attending)
        count = len(every)
        shares = class_shares(merged.up, merged.down)
        claimed, up, down = classes_of(shares), merged.up.mean(0), merged.down.mean(0)
        alone = effects.mean_intervals(np.zeros(merged.effects.shape[1]), merged.effects[:count], most=None)
        heads = [
            GatedHead(
                name=str(head), layer=head.layer, head=head.head,
                gate_class=claimed[k], facilitating=float(shares[k, 0]), interfering=float(shares[k, 1]),
                irrelevant=float(shares[k, 2]), up=float(up[k]), down=float(down[k]),
                effect=float(merged.effects[k].mean()), low=alone[k].low, high=alone[k].high,
                gradient=float(merged.gradient[k]), fits=len(merged.up), n=merged.effects.shape[1],
            )
            for k, head in enumerate(every)
        ]  # fmt: skip
        ways = {
            "gate": up + down,
            "effect": merged.effects[:count].mean(1),
            "gradient": merged.gradient,
        }
        agreements = [
            agreement(first, second, ways, seed=options.seed)
            for first, second in (("gradient", "effect"), ("gradient", "gate"), ("gate", "effect"))
        ]
        return [*_path(merged, PRICES), *heads, *_checks(merged, claimed), *agreements]

    def headline(self, rows: Sequence[Row]) -> Headline:
        heads, checks = GatedHead.among(rows), {check.name: check for check in TogetherCheck.among(rows)}
        counts = {
            name: sum(head.gate_class == name for head in heads)
            for name in ("facilitating", "interfering", "irrelevant", "undecided")
        }
        needed = [head.name for head in heads if head.gate_class == "facilitating"]
        named = f" ({', '.join(needed)})" if 0 < len(needed) <= NAMED else ""
        harmful = f" {counts['interfering']} heads interfere with the task." if counts["interfering"] else ""
        together = checks["irrelevant"]
        return Headline(
            f"The task needs {len(needed)} of {len(heads)} heads{named}.{harmful} {counts['irrelevant']} heads are "
            f"irrelevant. For {counts['undecided']} heads the data do not decide.",
            heads[0].n,
            "examples",
            f"each class holds in at least 95 % of {heads[0].fits} fits",
            f"margin {together.margin:.4f} in the task's loss",
        )

    def shown(self, rows: Sequence[Row]) -> list[list[Row] | str]:
        names = ("name", "gate_class", "facilitating", "interfering", "irrelevant", "effect", "low", "high", "gradient",
                 "n")  # fmt: skip
        return [[head.columns(*names) for head in GatedHead.among(rows)], *tables_beside(rows, GatedHead)]


STUDY = Gates()
NAMED = 8  # needed heads that the headline names


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
    )[:, list(checkpoint.sets[0].numbers)].flatten(1).numpy()  # fmt: skip
    up, down = gates[: len(stage.fits)], gates[len(stage.fits) :]
    margin = margin_of(options, np.array([row.label for row in rows]))
    fitted = {"fits": np.array(stage.fits), "up": up, "down": down}
    return GatePartial(*shape, margin, price=stage.price, attending=checkpoint.attending, **fitted)


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
    numbers = list(checkpoint.sets[0].numbers)
    tried = torch.cat([(gates > 0.5).to(gates), torch.ones_like(gates[:1])])
    losses = capture.gating.gated_losses(checkpoint, encodings, labels, tried)
    return GatePartial(
        checkpoint.layers, checkpoint.heads, margin, path_gates=gates[:, numbers].flatten(1).numpy(),
        path_losses=losses.numpy(), attending=checkpoint.attending,
    )  # fmt: skip


def judged(options: GatesOptions, opened: disabling.Opened, rows: Sequence[TaskRow], stage: Stage) -> GatePartial:
    """Exact effects on the loss of rows that fitted nothing: every head, the classes together, random heads."""
    checkpoint = opened.checkpoint
    heads_of_all = checkpoint.all_heads
    encodings, labels = opened.encoded(rows), opened.outputs(rows)
    chosen = [set(range(k, k + 1)) for k in range(len(heads_of_all))]
    for number, removed in enumerate((stage.irrelevant, stage.interfering)):
        generator = np.random.default_rng([options.seed, number])
        drawn = [set(generator.permutation(len(heads_of_all))[: len(removed)].tolist()) for _ in range(RANDOM_SETS)]
        chosen += [set(removed), *drawn]
    variants = [frozenset(heads_of_all[k] for k in removed) for removed in chosen]
    empty = np.array([not variant for variant in variants])
    labelled = capture.losses.LabelledRows(encodings, labels, [row.id for row in rows])
    exact = capture.losses.effects(checkpoint, labelled, [variant for variant in variants if variant], "zero").exact
    effects = np.full((len(variants), len(rows)), np.nan)
    effects[~empty] = exact.numpy()
    sums = capture.importance.gradients(checkpoint, encodings, labels)
    gradient = capture.importance.importance(sums)[list(checkpoint.sets[0].numbers)].flatten().numpy()
    margin = margin_of(options, np.array([row.label for row in rows]))
    shape = (checkpoint.layers, checkpoint.heads)
    return GatePartial(*shape, margin, effects=effects, gradient=gradient, attending=checkpoint.attending)


# ---------------------------------------------------------------- result records


def chosen_price(partial: "GatePartial", prices: Sequence[float]) -> float:
    """The largest price, in the loss's units, at which gates pushed down add at most the margin; the smallest where
    all add more."""
    fitting = [price for price, added in zip(prices, _added(partial), strict=True) if added <= partial.margin]
    return partial.margin * max(fitting, default=min(prices))


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
    every, rows = all_heads(partial.layers, partial.heads, partial.attending), partial.effects.shape[1]
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
