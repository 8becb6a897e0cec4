"""Interactions between pairs of heads: redundant, cooperating, or additive.

interaction(i, j) = effect of ablating both - effect(i) - effect(j). An effect is the fall of the gold label's logit
minus that of the strongest other label. A positive interaction means that each head can replace the other (redundant),
a negative one that both cooperate. With more than 48 heads, only pairs of the --strongest heads, chosen on training
examples, and --sample random pairs are measured. p is corrected over all pairs (max-T).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Annotated

import numpy as np
import pydantic.dataclasses
import scipy  # its parts load when they are used

from ... import capture
from ...attention import all_heads
from ...errors import check_choice
from ...scoring import effects
from ...scoring.circuits import interactions
from ...store.rows import Row
from ...tasks.glue import TaskRow
from ..ablation import setup
from ..contract import Done, ExampleUnit, Flag, Need, Study, Unit, provenance
from ..headline import SIGNIFICANT, Headline
from ..merging import PerExample, Positions
from ..options import DrawnRows, Limit
from ..records import Result
from .records import HeadPair, PairSample, tables_except

if TYPE_CHECKING:
    from torch import Tensor

    from ..ablation.setup import Opened


SHOWN_PAIRS = 20  # of a terminal's table
ALL_PAIRS = 48  # heads up to which every pair is measured
CHOOSING_ROWS = 64
CHOOSES = "choose"  # the step of the unit that chooses the strongest heads
OPERATORS = ("zero", "mean")


@pydantic.dataclasses.dataclass(frozen=True)
class PairsOptions(setup.ReferenceOptions):
    """Options for a test of interactions between heads: the checkpoint, the examples and the pairs of heads."""

    limit: Limit = 200
    operator: Annotated[str, Flag("ablation method for the heads of a pair: zero or mean")] = "zero"
    strongest: Annotated[
        int,
        Flag(
            "number of strongest heads among which all pairs are measured (only in models with more than 48 heads)",
            least=2,
        ),
    ] = 30
    sample: Annotated[
        int,
        Flag(
            "number of random pairs of heads to measure in addition to the pairs of the strongest heads (only in "
            "models with more than 48 heads)",
            least=0,
        ),
    ] = 200
    draws: DrawnRows = 1


@dataclass(frozen=True)
class PairPartial:
    """The effects of ablating single heads and pairs of heads. Heads are ordered by layer.

    Attributes:
        alone, together: fall of the logit difference. *Shape:* (head, example), (pair, example).
        lost_alone, lost_together: rise of the loss, in the same shapes.
        pairs: numbers of both heads; None from the unit that chooses them. *Shape:* (pair, 2), int.
        sampled: 1 for pairs drawn at random, otherwise 0. *Shape:* (pair,).
        strongest: heads that are paired with each other, from the unit that chooses them; empty for all heads.
    """

    rows: Positions
    layers: int
    heads: int
    alone: PerExample
    together: PerExample
    lost_alone: PerExample
    lost_together: PerExample
    pairs: np.ndarray | None = None
    sampled: np.ndarray | None = None
    strongest: tuple[int, ...] | None = None
    attending: tuple[int, ...] = ()


class PairsStudy(Study[PairsOptions, PairPartial]):
    """Ablate heads in pairs to find heads that replace each other and heads that work together."""

    name, options, partial, arguments = "pairs", PairsOptions, PairPartial, ExampleUnit
    question = "Which pairs of heads are redundant?"
    kinds = (HeadPair, PairSample)
    called = "Pairs of heads of {checkpoint}"
    needs = frozenset({Need.CLASSIFIER, Need.LABELS})
    p_is_corrected = True

    def units(self, options: PairsOptions) -> list[Unit]:
        check_operator(options.operator, options)
        setup.rows_of(options)
        return [Unit("choosing", ExampleUnit((), CHOOSES))]

    def more(self, options: PairsOptions, partials: Sequence[PairPartial]) -> list[Unit]:
        if len(partials) > 1:
            return []
        return setup.units_of(options, targets=partials[0].strongest or ())

    def run(self, options: PairsOptions, unit: Unit) -> Done[PairPartial]:
        opened, pair_rows = setup.opened(options), unit.arguments
        count = len(opened.checkpoint.all_heads)
        layers, heads = opened.checkpoint.layers, opened.checkpoint.heads
        if pair_rows.step == CHOOSES:
            rows = setup.rows_of(options, split="train", limit=CHOOSING_ROWS) if count > ALL_PAIRS else []
            strongest: tuple[int, ...] = ()
            if rows:
                means = np.abs(measured(options, opened, rows, np.zeros((0, 2), dtype=int))[0].mean(1))
                strongest = tuple(sorted(np.argsort(-means, kind="stable")[: options.strongest].tolist()))
            nothing = np.zeros((0, 0))
            chosen = PairPartial(np.zeros(0, dtype=int), layers, heads, nothing, nothing, nothing, nothing,
                                 strongest=strongest, attending=opened.checkpoint.attending)  # fmt: skip
            return Done(chosen, provenance(opened.checkpoint, [row.id for row in rows]))
        all_rows = setup.rows_of(options)
        rows = [all_rows[k] for k in pair_rows.positions]
        combined = list(combinations(pair_rows.targets or range(count), 2))
        others = sorted(set(combinations(range(count), 2)) - set(combined))  # empty if no heads were selected
        shuffled = np.random.default_rng([options.seed, count]).permutation(len(others))
        drawn = [others[k] for k in sorted(shuffled[: options.sample].tolist())]
        pairs = np.array([*combined, *drawn])
        sampled = np.array([0.0] * len(combined) + [1.0] * len(drawn))
        effects_of_pairs = measured(options, opened, rows, pairs)
        partial = PairPartial(
            np.array(pair_rows.positions, dtype=int), layers, heads, *effects_of_pairs, pairs, sampled,
            attending=opened.checkpoint.attending,
        )  # fmt: skip
        return Done(partial, provenance(opened.checkpoint, [row.id for row in rows]))

    def results(self, options: PairsOptions, merged: PairPartial) -> list[Result]:
        if merged.pairs is None or merged.sampled is None or not len(merged.pairs):
            return []
        tested = interactions(merged.alone, merged.together, merged.pairs)
        tested = np.where(np.abs(tested) < 1e-6, 0.0, tested)  # rounding
        lost = interactions(merged.lost_alone, merged.lost_together, merged.pairs).mean(1)
        nothing, n = np.zeros(tested.shape[1]), tested.shape[1]
        p = effects.max_t(nothing, tested, seed=options.seed)
        ends = effects.mean_intervals(nothing, tested, most=None)
        alone, both = merged.alone.mean(1), merged.together.mean(1)
        names = [str(head) for head in all_heads(merged.layers, merged.heads, merged.attending)]
        records = []
        for k, (a, b) in enumerate(merged.pairs.tolist()):
            mean = float(tested[k].mean())
            significant = p[k] < SIGNIFICANT and mean != 0
            records.append(HeadPair(
                name=f"{names[a]} and {names[b]}", first_head=names[a], second_head=names[b], interaction=mean,
                low=ends[k].low, high=ends[k].high, p=float(p[k]),
                verdict=("redundant" if mean > 0 else "cooperating") if significant else "open",
                first=float(alone[a]), second=float(alone[b]), both=float(both[k]), loss_interaction=float(lost[k]),
                sampled=bool(merged.sampled[k]), operator=options.operator, n=n,
            ))  # fmt: skip
        ordered = sorted(records, key=lambda pair: -abs(pair.interaction))
        drawn = [pair for pair in records if pair.sampled]
        if not drawn:
            return [*ordered]
        count = sum(pair.verdict != "open" for pair in drawn)
        share = scipy.stats.binomtest(count, len(drawn)).proportion_ci(0.95, "exact")
        of_pairs = len(names) * (len(names) - 1) // 2 - (len(records) - len(drawn))
        sample = PairSample(interacting=count, sampled=len(drawn), of_pairs=of_pairs, low=float(share.low),
                            high=float(share.high))  # fmt: skip
        return [*ordered, sample]

    def headline(self, rows: Sequence[Row]) -> Headline:
        pairs = HeadPair.among(rows)
        counts = {name: sum(pair.verdict == name for pair in pairs) for name in ("redundant", "cooperating")}
        most = max(pairs, key=lambda pair: abs(pair.interaction))
        are = "is" if counts["redundant"] == 1 else "are"
        cooperate = "cooperates" if counts["cooperating"] == 1 else "cooperate"
        return Headline(
            f"{counts['redundant']} of {len(pairs)} pairs of heads {are} redundant and {counts['cooperating']} "
            f"{cooperate}. The pair {most.name} has the largest interaction: {most.interaction:+.2f} logits.",
            most.n,
            "examples",
            "The p-values are corrected for the number of pairs (max-T).",
            "The interaction is 0 if the effect of ablating both heads is the sum of their separate effects.",
        )

    def shown(self, rows: Sequence[Row]) -> list[list[Row] | str]:
        names = ("name", "interaction", "low", "high", "p", "verdict", "first", "second", "both", "n")
        table = [pair.columns(*names) for pair in HeadPair.among(rows)[:SHOWN_PAIRS]]
        return [table, *tables_except(rows, HeadPair)]


STUDY = PairsStudy()


def check_operator(operator: str, options: setup.ReferenceOptions) -> None:
    """Raise InputError if an ablation method cannot ablate several heads at once, or if its settings are invalid."""
    check_choice("The method for ablating several heads at once", operator, OPERATORS)
    setup.check_replacements(operator, options)


def measured(
    options: PairsOptions, opened: setup.Opened, rows: Sequence[TaskRow], pairs: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Measure how much the logit difference falls and the loss rises when each head or pair of heads is ablated."""
    checkpoint = opened.checkpoint
    heads = checkpoint.all_heads
    variants = [frozenset({head}) for head in heads] + [frozenset({heads[a], heads[b]}) for a, b in pairs.tolist()]
    source = setup.replacements(options.operator, opened, options)[0]
    swept = capture.sweeping.sweep(checkpoint, opened.encoded(rows), variants, options.operator, source=source)
    plain, changed = label_differences(opened, list(rows), swept.plain, swept.changed)
    labels = opened.outputs(rows)
    losses = [capture.losses.row_losses(logits, labels).numpy() for logits in (swept.plain, swept.changed)]
    falls, gains, count = plain - changed, losses[1] - losses[0], len(heads)
    return falls[:count], falls[count:], gains[:count], gains[count:]


# ---------------------------------------------------------------- what is measured of a row


def label_differences(
    opened: "Opened", rows: "list[TaskRow]", plain: "Tensor", changed: "Tensor"
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the logit of the gold label minus the largest other logit, without ablation and for each ablation.
    *Shape:* (example,), (target, example).

    The rival is chosen without ablation, so the difference is linear in the logits. For a score, it is the score.
    """
    plain_logits, changed_logits = plain.double().numpy(), changed.double().numpy()
    if opened.task.is_score:
        return plain_logits[:, 0], changed_logits[..., 0]
    at, gold = np.arange(len(rows)), np.array(opened.outputs(rows), dtype=int)
    rival = setup.strongest_rival(plain_logits, gold)
    return plain_logits[at, gold] - plain_logits[at, rival], changed_logits[..., at, gold] - changed_logits[
        ..., at, rival
    ]
