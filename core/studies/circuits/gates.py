"""Causal head gating (arXiv 2505.13737): which heads a task needs, which heads interfere, and which are irrelevant.

A gate in (0, 1) on every head is fitted twice with frozen weights: once open gates are rewarded (pushed up), once they
are penalised (pushed down). A head is facilitating if its gate stays open both times, interfering if it stays closed
both times, and irrelevant if it only follows the reward. Fits are repeated over bootstrap samples and random starts; a
class holds if 95 % of the fits agree. The penalty is the largest at which the gates pushed down add at most the margin
to the loss. On held-out examples: the ablation effect and gradient of each head, whether ablating all irrelevant heads
stays within the margin, and whether ablating all interfering heads lowers the loss.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pydantic.dataclasses

from ... import capture
from ...attention import all_heads
from ...errors import InputError
from ...interval import Interval
from ...scoring import effects
from ...scoring.circuits import CLAIMED, class_shares, classes_of
from ...scoring.rank_agreement import rank_correlation
from ...store.rows import Row
from ...tasks.glue import TaskRow, task_of
from ..ablation import setup
from ..ablation.sequential_test import SHARE, constant_loss
from ..ablation.setup import ExampleOptions
from ..contract import Done, ExampleUnit, Flag, Need, Study, Unit, provenance
from ..headline import Headline
from ..merging import PerExampleFirst, Positions
from ..options import Limit
from ..records import Result
from .records import GatedHead, PricePoint, RankingCorrelation, TogetherCheck, tables_except

PRICES = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)  # of the margin: the path
RANDOM_SETS = 20
FITS_A_UNIT = 15
TOGETHER = ("irrelevant", "interfering")


@pydantic.dataclasses.dataclass(frozen=True)
class GatesOptions(ExampleOptions):
    """Options for fitting a gate (a factor from 0 to 1 on the output) to every head: checkpoint and examples."""

    limit: Limit = 200
    fit_rows: Annotated[int, Flag("number of training examples on which gates are fitted", least=8)] = 48
    samples: Annotated[int, Flag("number of bootstrap samples of the training examples", least=1)] = 20
    starts: Annotated[int, Flag("number of random initialisations of the gates per bootstrap sample", least=1)] = 3
    steps: Annotated[int, Flag("number of optimisation steps per fit of the gates", least=2)] = 30
    margin: Annotated[
        float | None,
        Flag("smallest change in loss that matters (default: 5 % of the loss of the best constant prediction)"),
    ] = None


@dataclass(frozen=True)
class GatePartial:
    """Measurements of the gates fitted to all heads. Heads are ordered by layer, and fields without measurements are
    None.

    Attributes:
        margin: in units of the loss.
        path_gates: fitted at each penalty on open gates, 0 to 1. *Shape:* (penalty, head).
        path_losses: with only the gates above 0.5 open, then of the unmodified model. *Shape:* (penalty + 1, example).
        price: the chosen penalty.
        fits: numbers of the fits.
        up, down: gates pushed up and down, 0 to 1. *Shape:* (fit, head).
        effects: on the loss of held-out examples: without each head, without all irrelevant heads, without as many
            random heads (RANDOM_SETS times), then the same for interfering heads; NaN for an empty set. *Shape:*
            (target, example).
        gradient: importance on these examples. *Shape:* (head,).
    """

    layers: int
    heads: int
    margin: float
    path_gates: np.ndarray | None = None
    path_losses: np.ndarray | None = None
    price: float | None = None
    fits: Positions | None = None
    up: PerExampleFirst | None = None
    down: PerExampleFirst | None = None
    effects: np.ndarray | None = None
    gradient: np.ndarray | None = None
    attending: tuple[int, ...] = ()


class GatesStudy(Study[GatesOptions, GatePartial]):
    """Fit a gate on every head to find the heads that help, hinder or do not affect a task."""

    name, options, partial, arguments = "gates", GatesOptions, GatePartial, ExampleUnit
    question = "Which heads does the task need?"
    kinds = (GatedHead, TogetherCheck, PricePoint, RankingCorrelation)
    called = "Gates on the heads of {checkpoint}"
    needs = frozenset({Need.CLASSIFIER, Need.LABELS})
    counts = "fits"

    def units(self, options: GatesOptions) -> list[Unit]:
        if options.margin is not None and not 0 < options.margin < float("inf"):
            raise InputError(
                f"The margin (in units of the task's loss) must be above 0; got {options.margin:g}. Choose a positive "
                "number."
            )
        gold = np.array([row.label for row in setup.rows_of(options)])
        constant_loss(task_of(options.task), gold)
        return [Unit("path", ExampleUnit((), "path"), len(PRICES))]

    def more(self, options: GatesOptions, partials: Sequence[GatePartial]) -> list[Unit]:
        """Return the units of work of the next step: fits with the chosen penalty, then tests on held-out examples.
        After the last step, return []."""
        merged = self.merge(options, partials)
        if merged.up is None or merged.down is None:
            price, every = chosen_price(merged), range(options.samples * options.starts)
            slices = [tuple(every[k : k + FITS_A_UNIT]) for k in range(0, len(every), FITS_A_UNIT)]
            return [
                Unit(f"fits-{k}", ExampleUnit((), "fits", part, price=price), 2 * len(part))
                for k, part in enumerate(slices)
            ]
        if merged.effects is None:
            classes = classes_of(class_shares(merged.up, merged.down))
            together = tuple(tuple(k for k, claimed in enumerate(classes) if claimed == name) for name in TOGETHER)
            return [Unit("judged", ExampleUnit((), "judged", groups=together), len(PRICES))]
        return []

    def run(self, options: GatesOptions, unit: Unit) -> Done[GatePartial]:
        opened, stage = setup.opened(options), unit.arguments
        if stage.step == "judged":
            rows = setup.rows_of(options)
            partial = zeroing_effects(options, opened, rows, stage)
        else:
            rows = setup.rows_of(options, split="train", limit=options.fit_rows)
            partial = gate_path(options, opened, rows) if stage.step == "path" else fits(options, opened, rows, stage)
        return Done(partial, provenance(opened.checkpoint, [row.id for row in rows]))

    def results(self, options: GatesOptions, merged: GatePartial) -> list[Result]:
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
        assert merged.path_gates is not None  # noqa: S101 - the first stage
        assert merged.path_losses is not None  # noqa: S101
        chosen, n = chosen_price(merged), merged.path_losses.shape[1]
        return [
            *[
                PricePoint(
                    price=merged.margin * price,
                    open_gates=int((gates > 0.5).sum()),
                    added=float(added),
                    chosen=bool(np.isclose(merged.margin * price, chosen)),
                    n=n,
                )
                for price, gates, added in zip(PRICES, merged.path_gates, _added(merged), strict=True)
            ],
            *heads,
            *_checks(merged, claimed),
            *agreements,
        ]

    def headline(self, rows: Sequence[Row]) -> Headline:
        heads = GatedHead.among(rows)
        counts = {
            name: sum(head.gate_class == name for head in heads)
            for name in ("facilitating", "interfering", "irrelevant", "undecided")
        }
        needed = [head.name for head in heads if head.gate_class == "facilitating"]
        named = f" ({', '.join(needed)})" if 0 < len(needed) <= NAMED else ""
        other_heads = f"{_heads(counts['interfering'], 'interfere')} with the task. " if counts["interfering"] else ""
        other_heads += " ".join(f"{_heads(counts[name], 'are')} {name}." for name in ("irrelevant", "undecided"))
        fewest = math.ceil(CLAIMED * heads[0].fits - 1e-9)
        return Headline(
            f"The task needs {len(needed)} of {len(heads)} heads{named}. {other_heads}",
            heads[0].n,
            "examples",
            f"The gates are fitted in {heads[0].fits} pairs of runs: one with a penalty for open gates, one with a "
            f"reward. If the gate of a head is open in both runs of at least {fewest} pairs, the task needs the "
            f"head. If the gate is open only with the reward in at least {fewest} pairs, the head is irrelevant. This "
            "rule measures stability, not significance.",
        )

    def shown(self, rows: Sequence[Row]) -> list[list[Row] | str]:
        names = ("name", "gate_class", "facilitating", "interfering", "irrelevant", "effect", "low", "high", "gradient",
                 "n")  # fmt: skip
        return [[head.columns(*names) for head in GatedHead.among(rows)], *tables_except(rows, GatedHead)]


STUDY = GatesStudy()


def _heads(count: int, verb: str) -> str:
    """Return text such as "1 head interferes" or "2 heads interfere"."""
    return f"1 head {'is' if verb == 'are' else 'interferes'}" if count == 1 else f"{count} heads {verb}"


NAMED = 8  # needed heads that the headline names


def fits(options: GatesOptions, opened: setup.Opened, rows: Sequence[TaskRow], stage: ExampleUnit) -> GatePartial:
    """For each bootstrap sample and random start, fit gates twice: with a reward for open gates, and with a penalty."""
    import torch  # 1.3 s of start-up

    checkpoint, shape = opened.checkpoint, (opened.checkpoint.layers, opened.checkpoint.heads)
    counts, starts = [], []
    for number in stage.targets:
        sample = np.random.default_rng([options.seed, number // options.starts])
        counts.append(np.bincount(sample.integers(len(rows), size=len(rows)), minlength=len(rows)))
        starts.append(np.random.default_rng([options.seed, 7, number]).normal(size=shape))
    both = [
        torch.tensor(np.concatenate([part, part]), dtype=torch.float32) for part in (np.array(counts), np.array(starts))
    ]
    prices = torch.cat(
        [torch.full((len(stage.targets),), -stage.price), torch.full((len(stage.targets),), stage.price)]
    )
    gates = capture.gating.fit_gates(
        checkpoint, opened.encoded(rows), opened.outputs(rows), capture.gating.GateFits(both[0], both[1], prices),
        steps=options.steps,
    )[:, list(checkpoint.sets[0].numbers)].flatten(1).numpy()  # fmt: skip
    up, down = gates[: len(stage.targets)], gates[len(stage.targets) :]
    return GatePartial(
        *shape, margin_of(options), price=stage.price, fits=np.array(stage.targets), up=up, down=down,
        attending=checkpoint.attending,
    )  # fmt: skip


def margin_of(options: GatesOptions) -> float:
    """Return the smallest loss change that matters: by default, 5 % of the loss of the best constant prediction."""
    if options.margin is not None:
        return options.margin
    rows = setup.rows_of(options, split="train", limit=options.fit_rows)
    return SHARE * constant_loss(task_of(options.task), np.array([row.label for row in rows]))


def gate_path(options: GatesOptions, opened: setup.Opened, rows: Sequence[TaskRow]) -> GatePartial:
    """Fit the gates of all heads once per penalty on open gates, and compute the loss without the closed heads."""
    import torch  # 1.3 s of start-up

    checkpoint, labels, encodings = opened.checkpoint, opened.outputs(rows), opened.encoded(rows)
    margin = margin_of(options)
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


def zeroing_effects(
    options: GatesOptions, opened: setup.Opened, rows: Sequence[TaskRow], stage: ExampleUnit
) -> GatePartial:
    """Measure how zeroing a head, all irrelevant (or interfering) heads, or random heads changes the held-out loss."""
    checkpoint = opened.checkpoint
    heads_of_all = checkpoint.all_heads
    encodings, labels = opened.encoded(rows), opened.outputs(rows)
    chosen = [{k} for k in range(len(heads_of_all))]
    for number, removed in enumerate(stage.groups):
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
    return GatePartial(
        checkpoint.layers, checkpoint.heads, margin_of(options), effects=effects, gradient=gradient,
        attending=checkpoint.attending,
    )  # fmt: skip


# ---------------------------------------------------------------- result records


def chosen_price(partial: GatePartial) -> float:
    """Choose the largest gate penalty that raises the loss by at most the margin, or the smallest if there is none."""
    fitting = [price for price, added in zip(PRICES, _added(partial), strict=True) if added <= partial.margin]
    return partial.margin * max(fitting, default=min(PRICES))


def agreement(first: str, second: str, ways: dict[str, np.ndarray], *, seed: int) -> RankingCorrelation:
    """Compute Spearman's correlation between two rankings of heads, with a confidence interval."""
    rho = rank_correlation(ways[first], ways[second], seed=seed)
    return RankingCorrelation(name=f"{first} and {second}", first=first, second=second, **rho.fields())


def _added(partial: "GatePartial") -> np.ndarray:
    assert partial.path_losses is not None  # noqa: S101 - the first stage
    means = partial.path_losses.mean(1)
    return means[:-1] - means[-1]


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


def _verdict(whole: Interval, margin: float) -> str:
    if whole.low is None or whole.high is None:
        return "open"
    if whole.high < 0:
        return "lowers the loss"
    if whole.low > margin:
        return "beyond the margin"
    return "within the margin" if -margin < whole.low and whole.high < margin else "open"
