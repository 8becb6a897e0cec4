"""Heads two by two: which stand in for each other, which work together, and which only add.

interaction(i, j) = effect of both out - effect(i) - effect(j), where an effect is how far the logit of the row's label,
less that of its strongest rival, falls without the heads: exact, by row. Above 0 each stands in for the other
(redundant: alone neither is missed); below 0 they work together. All pairs up to 48 heads; beyond that the pairs of the
--strongest heads, chosen by their effects on train rows, and --sample random others, which say what that choice misses.
p is corrected over all pairs (max-T).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Annotated

import numpy as np
import pydantic.dataclasses

from ... import capture
from ...attention import all_heads
from ...errors import InputError
from ...scoring import effects
from ...scoring.circuits import interactions
from ...store.rows import Row
from ...tasks.glue import TaskRow
from ..ablation import disabling, references
from ..contract import Done, Flag, Need, Study, Unit
from ..headline import SURE, Headline
from ..options import DrawnRows, Limit
from ..outcomes import in_order
from ..provenance import provenance
from ..records import Result
from .records import HeadPair, PairSample, tables_beside

if TYPE_CHECKING:
    from torch import Tensor

    from ..ablation.disabling import Opened


SHOWN_PAIRS = 20  # of a terminal's table
ALL_PAIRS = 48  # heads up to which every pair is measured
CHOOSING_ROWS = 64
OPERATORS = ("zero", "mean")


@pydantic.dataclasses.dataclass(frozen=True)
class PairsOptions(references.ReferenceOptions):
    """Which pairs of heads of which checkpoint, on which rows."""

    limit: Limit = 200
    operator: Annotated[str, Flag("what stands in for a head: zero or mean")] = "zero"
    strongest: Annotated[int, Flag("of more than 48 heads: these, paired with each other", least=2)] = 30
    sample: Annotated[int, Flag("of more than 48 heads: random other pairs", least=0)] = 200
    draws: DrawnRows = 1


@dataclass(frozen=True)
class PairRows:
    """Some rows and the pairs that are measured on them.

    Attributes:
        rows: their places; in train where they choose the pairs.
        chooses: whether they choose the pairs.
        strongest: which heads are paired; none: all.
    """

    rows: tuple[int, ...]
    chooses: bool = False
    strongest: tuple[int, ...] = ()


@dataclass(frozen=True)
class PairPartial:
    """What ablating each head and each pair of heads changes on some rows. Heads are ordered by layer.

    Attributes:
        rows: their places in the task. *Shape:* (row,), int.
        chooses: whether the rows choose the pairs; they do not judge them then.
        pairs: numbers of both heads. *Shape:* (pair, 2), int.
        sampled: 1 of pairs that were drawn at random, else 0. *Shape:* (pair,).
        alone: how far the logit difference falls without a head. *Shape:* (head, row).
        together: how far it falls without both. *Shape:* (pair, row).
        lost_alone: what the loss gains without a head. *Shape:* (head, row).
        lost_together: what it gains without both. *Shape:* (pair, row).
    """

    rows: np.ndarray
    layers: int
    heads: int
    chooses: bool
    pairs: np.ndarray
    sampled: np.ndarray
    alone: np.ndarray
    together: np.ndarray
    lost_alone: np.ndarray
    lost_together: np.ndarray
    attending: tuple[int, ...] = ()


class Pairs(Study[PairsOptions, PairPartial]):
    """Take heads out two by two: which stand in for each other, which work together?"""

    name, options, partial, arguments = "pairs", PairsOptions, PairPartial, PairRows
    question = "Which pairs of heads are redundant?"
    kinds = (HeadPair, PairSample)
    called = "Pairs of heads of {checkpoint}"
    needs = frozenset({Need.CLASSIFIER, Need.LABELS})
    p_is_corrected = True

    def units(self, options: PairsOptions) -> list[Unit]:
        """One unit that says how many heads there are, and chooses among more than 48."""
        check_operator(options.operator)
        references.check(options.operator, options)
        disabling.rows_of(options)
        return [Unit("choosing", PairRows((), chooses=True))]

    def more(self, options: PairsOptions, partials: Sequence[PairPartial]) -> list[Unit]:
        """The rows that judge."""
        if len(partials) > 1:
            return []
        chosen: tuple[int, ...] = ()
        if len(partials[0].rows):
            means = np.abs(partials[0].alone.mean(1))
            chosen = tuple(sorted(int(k) for k in np.argsort(-means, kind="stable")[: options.strongest]))
        return [
            Unit(f"rows-{k}", PairRows(row_slice.rows, strongest=chosen), size)
            for k, (row_slice, size) in enumerate(disabling.slices(options))
        ]

    def run(self, options: PairsOptions, unit: Unit) -> Done[PairPartial]:
        """Exact effects of these rows."""
        opened, pair_rows = disabling.opened(options), unit.arguments
        count = len(opened.checkpoint.all_heads)
        all_rows, numbers = disabling.rows_of(options), pair_rows.rows
        if pair_rows.chooses:
            all_rows = disabling.rows_of(options, split="train", limit=CHOOSING_ROWS) if count > ALL_PAIRS else []
            numbers = tuple(range(len(all_rows)))
        pairs, sampled = (
            (np.zeros((0, 2), dtype=int), np.zeros(0)) if pair_rows.chooses else _pairs(options, count, pair_rows)
        )
        rows = [all_rows[k] for k in numbers]
        partial = measured(options, opened, rows, pairs) if rows else _nothing(count)
        alone, together, lost_alone, lost_together = partial
        whole = PairPartial(
            np.array(numbers, dtype=int), opened.checkpoint.layers, opened.checkpoint.heads, pair_rows.chooses, pairs,
            sampled, alone, together, lost_alone, lost_together, opened.checkpoint.attending,
        )  # fmt: skip
        return Done(whole, provenance(opened.checkpoint, [row.id for row in rows]))

    def merge(self, options: PairsOptions, partials: Sequence[PairPartial]) -> PairPartial:
        """All rows that judge, in the task's order."""
        judging = [part for part in partials if not part.chooses] or list(partials)
        whole = in_order(judging, ("rows", "alone", "together", "lost_alone", "lost_together"))
        first = judging[0]
        return PairPartial(layers=first.layers, heads=first.heads, chooses=first.chooses, pairs=first.pairs,
                           sampled=first.sampled, attending=first.attending, **whole)  # fmt: skip

    def results(self, options: PairsOptions, merged: PairPartial) -> list[Result]:
        """A record a pair, strongest first; what the choice missed."""
        if merged.chooses or not len(merged.pairs):
            return []
        return table(options, merged)

    def headline(self, rows: Sequence[Row]) -> Headline:
        pairs = HeadPair.among(rows)
        counts = {name: sum(pair.verdict == name for pair in pairs) for name in ("redundant", "cooperating")}
        most = max(pairs, key=lambda pair: abs(pair.interaction))
        return Headline(
            f"{counts['redundant']} of {len(pairs)} pairs of heads are redundant and {counts['cooperating']} "
            f"cooperate. The largest interaction is {most.name}: {most.interaction:+.2f} logits.",
            most.n,
            "examples",
            "significant after correction for all pairs (max-T)",
            "0, the sum of both single effects",
        )

    def shown(self, rows: Sequence[Row]) -> list[list[Row] | str]:
        names = ("name", "interaction", "low", "high", "p", "verdict", "first", "second", "both", "n")
        table = [pair.columns(*names) for pair in HeadPair.among(rows)[:SHOWN_PAIRS]]
        return [table, *tables_beside(rows, HeadPair)]


STUDY = Pairs()


def check_operator(operator: str) -> None:
    """Raises InputError for what cannot stand in for several heads at once here."""
    if operator not in OPERATORS:
        raise InputError(f'Heads are taken out by {" or ".join(OPERATORS)}; "{operator}" is neither: choose one.')


def measured(
    options: PairsOptions, opened: disabling.Opened, rows: Sequence[TaskRow], pairs: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """What rows lose without each head and each pair.

    Args:
        pairs: numbers of both heads. *Shape:* (pair, 2), int.

    Returns:
        How far the logit difference falls, *Shape:* (head, row) and (pair, row); then what the loss gains, in the same
        shapes.
    """
    checkpoint = opened.checkpoint
    heads = checkpoint.all_heads
    variants = [frozenset({head}) for head in heads] + [frozenset({heads[a], heads[b]}) for a, b in pairs.tolist()]
    source = references.sources(options.operator, opened, options)[0]
    swept = capture.sweeping.sweep(checkpoint, opened.encoded(rows), variants, options.operator, source=source)
    plain, changed = label_differences(opened, list(rows), swept.plain, swept.changed)
    labels = opened.outputs(rows)
    losses = [capture.losses.row_losses(logits, labels).numpy() for logits in (swept.plain, swept.changed)]
    falls, gains, count = plain - changed, losses[1] - losses[0], len(heads)
    return falls[:count], falls[count:], gains[:count], gains[count:]


def _nothing(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    return np.zeros((count, 0)), np.zeros((0, 0)), np.zeros((count, 0)), np.zeros((0, 0))


def _pairs(options: PairsOptions, count: int, pair_rows: PairRows) -> tuple[np.ndarray, np.ndarray]:
    """The pairs that are measured, and which of them were drawn at random."""
    chosen = list(combinations(pair_rows.strongest or range(count), 2))
    if not pair_rows.strongest:
        return np.array(chosen), np.zeros(len(chosen))
    others = sorted(set(combinations(range(count), 2)) - set(chosen))
    drawn = np.random.default_rng([options.seed, count]).permutation(len(others))[: options.sample]
    sampled = [others[k] for k in sorted(drawn.tolist())]
    return np.array([*chosen, *sampled]), np.array([0.0] * len(chosen) + [1.0] * len(sampled))


def table(options: PairsOptions, merged: PairPartial) -> list[Result]:
    """A record a pair, strongest first; what the choice missed."""
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
        sure = p[k] < SURE and mean != 0
        records.append(HeadPair(
            name=f"{names[a]} and {names[b]}", first_head=names[a], second_head=names[b], interaction=mean,
            low=ends[k].low, high=ends[k].high, p=float(p[k]),
            verdict=("redundant" if mean > 0 else "cooperating") if sure else "open",
            first=float(alone[a]), second=float(alone[b]), both=float(both[k]), loss_interaction=float(lost[k]),
            sampled=bool(merged.sampled[k]), operator=options.operator, n=n,
        ))  # fmt: skip
    return [*sorted(records, key=lambda pair: -abs(pair.interaction)), *_missed(records, len(names))]


def _missed(records: Sequence[HeadPair], heads: int) -> list[Result]:
    sampled = [pair for pair in records if pair.sampled]
    if not sampled:
        return []
    from scipy.stats import binomtest  # half a second of start-up

    count = sum(pair.verdict != "open" for pair in sampled)
    ends = binomtest(count, len(sampled)).proportion_ci(0.95, "exact")
    others = heads * (heads - 1) // 2 - (len(records) - len(sampled))
    return [
        PairSample(interacting=count, sampled=len(sampled), of_pairs=others, low=float(ends.low), high=float(ends.high))
    ]


# ---------------------------------------------------------------- what is measured of a row


def label_differences(
    opened: "Opened", rows: "list[TaskRow]", plain: "Tensor", changed: "Tensor"
) -> tuple[np.ndarray, np.ndarray]:
    """m of every row: the logit of its label less that of its strongest rival; of a score, the score itself.

    The rival is the one that is strongest untouched, the same under every variant, so that m is linear in the logits.

    Args:
        plain: logits of the untouched model. *Shape:* (row, label).
        changed: logits under every variant. *Shape:* (variant, row, label).

    Returns:
        m untouched, *Shape:* (row,), and under every variant, *Shape:* (variant, row); float64.
    """
    plain_logits, changed_logits = plain.double().numpy(), changed.double().numpy()
    if opened.task.is_score:
        return plain_logits[:, 0], changed_logits[..., 0]
    at, gold = np.arange(len(rows)), np.array(opened.outputs(rows), dtype=int)
    others = plain_logits.copy()
    others[at, gold] = -np.inf
    rival = others.argmax(1)
    return plain_logits[at, gold] - plain_logits[at, rival], changed_logits[..., at, gold] - changed_logits[
        ..., at, rival
    ]
