"""Result records of studies of heads together: gates, pairs, Shapley values and circuits."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...store.rows import Row
from ..records import Figure, Result, stated


def tables_except(rows: Sequence[Row], *kinds: type[Result]) -> list[list[Row] | str]:
    """Split result rows into one table per type of record, leaving out the types in `kinds`."""
    left_out = {name for kind in kinds for name in kind.KINDS}
    tables: dict[str, list[Row]] = {}
    for row in rows:
        if row.get(Result.BY) not in left_out:
            tables.setdefault(str(row.get(Result.BY)), []).append(row)
    return [*tables.values()]


@dataclass(frozen=True, kw_only=True)
class GatedHead(Result):
    """A head with its fitted gates (factors from 0 to 1 on its output), and the class that the gates imply.

    Attributes:
        gate_class: "undecided" if no class holds.
        facilitating, interfering, irrelevant: fraction of the fits in each class.
        up, down: mean gate pushed up and down, 0 to 1.
        effect, low, high: rise of the loss on n held-out examples when the head is zeroed, with its 95 % interval.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("head",)
    FIGURE = Figure("effect", "loss that taking the head out adds")
    name: str
    layer: int
    head: int
    gate_class: str
    facilitating: float
    interfering: float
    irrelevant: float
    up: float
    down: float
    effect: float
    low: float | None = stated()
    high: float | None = stated()
    gradient: float
    fits: int
    n: int


@dataclass(frozen=True, kw_only=True)
class TogetherCheck(Result):
    """The effect of ablating all irrelevant (or interfering) heads, compared with the same number of random heads."""

    KINDS: ClassVar[tuple[str, ...]] = ("together",)
    name: str
    heads: str
    count: int
    effect: float | None = stated()
    low: float | None = stated()
    high: float | None = stated()
    margin: float
    verdict: str
    random: float | None = stated()
    random_low: float | None = stated()
    random_high: float | None = stated()
    n: int


@dataclass(frozen=True, kw_only=True)
class PricePoint(Result):
    """The number of gates that stay open under one penalty, and how much the closed gates increase the loss."""

    KINDS: ClassVar[tuple[str, ...]] = ("price",)
    price: float
    open_gates: int
    added: float
    chosen: bool = stated(False)
    n: int


@dataclass(frozen=True, kw_only=True)
class RankingCorrelation(Result):
    """Spearman's correlation between two rankings of n heads, with its confidence interval."""

    KINDS: ClassVar[tuple[str, ...]] = ("agreement",)
    FIGURE = Figure("value", "rank correlation")
    name: str
    first: str
    second: str
    value: float | None = stated()
    low: float | None = stated()
    high: float | None = stated()
    n: int


@dataclass(frozen=True, kw_only=True)
class HeadPair(Result):
    """The interaction of two heads, in logits: the effect of ablating both minus the sum of their single effects."""

    KINDS: ClassVar[tuple[str, ...]] = ("pair",)
    FIGURE = Figure("interaction", "interaction of two heads")
    name: str
    first_head: str
    second_head: str
    interaction: float
    low: float | None = stated()
    high: float | None = stated()
    p: float
    verdict: str
    first: float
    second: float
    both: float
    loss_interaction: float
    sampled: bool = stated(False)
    operator: str
    n: int


@dataclass(frozen=True, kw_only=True)
class PairSample(Result):
    """The number of random head pairs with a significant interaction, and a confidence interval for their fraction."""

    KINDS: ClassVar[tuple[str, ...]] = ("sampled pairs",)
    interacting: int
    sampled: int
    of_pairs: int
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class ShapleyHead(Result):
    """The Shapley value of a head: the mean change in the logit difference when the head is added to other heads."""

    KINDS: ClassVar[tuple[str, ...]] = ("head",)
    FIGURE = Figure("value", "Shapley value")
    name: str
    layer: int
    head: int
    value: float
    low: float | None = stated()
    high: float | None = stated()
    rank: int
    effect: float
    gradient: float
    orders: int
    operator: str
    n: int


@dataclass(frozen=True, kw_only=True)
class ShapleySum(Result):
    """The sum of the Shapley values, compared with the mean logit difference with all heads and with no heads."""

    KINDS: ClassVar[tuple[str, ...]] = ("sum",)
    with_all: float
    with_none: float
    values: float
    n: int


@dataclass(frozen=True, kw_only=True)
class OrderStep(Result):
    """The mean logit difference on n held-out examples after the `removed` weakest heads are pruned."""

    KINDS: ClassVar[tuple[str, ...]] = ("order",)
    FIGURE = Figure("value", "logit difference, heads removed by {order}", "{removed} heads")
    order: str
    removed: int
    value: float
    low: float | None = stated()
    high: float | None = stated()
    n: int


@dataclass(frozen=True, kw_only=True)
class OrderContrast(Result):
    """Mean logit difference after pruning heads by Shapley value, minus that after pruning by gradient importance."""

    KINDS: ClassVar[tuple[str, ...]] = ("order contrast",)
    FIGURE = Figure("value", "kept beyond the order by gradient")
    value: float
    low: float | None = stated()
    high: float | None = stated()
    verdict: str
    n: int


@dataclass(frozen=True, kw_only=True)
class CircuitEdge(Result):
    """An edge between two components of a model, with its effect and the verdict of the test.

    Attributes:
        input: q, k or v; "" for sublayers and the output.
        sender_layer, receiver_layer: from 0; -1 for the embeddings, the number of layers for the output.
        estimator: how `effect` was measured.
        effect, low, high: mean fall of the logit difference over n pairs, each clipped, in logits; the interval holds
            jointly for all edges. None for edges that were not tested.
        attribution: first-order estimate of the effect.
        rank: from 1: tested edges by |mean effect| before clipping, then the others by |attribution|.
        proposed: whether attribution proposed the edge, rather than a random draw.
        selection: fraction of half-samples in which the mean effect differs from 0; 0 within the margin.
        stable: whether `selection` reaches the threshold.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("edge",)
    FIGURE = Figure("effect", "effect of an edge")
    name: str
    sender: str
    receiver: str
    input: str
    edge_kind: str
    sender_layer: int
    receiver_layer: int
    estimator: str = stated("")
    effect: float | None = stated()
    low: float | None = stated()
    high: float | None = stated()
    verdict: str
    attribution: float
    rank: int
    proposed: bool
    selection: float
    stable: bool
    n: int


@dataclass(frozen=True, kw_only=True)
class EdgeMean(Result):
    """The mean effect of an edge in logits, without clipping. `pairs` states whether answers in a pair differ."""

    KINDS: ClassVar[tuple[str, ...]] = ("edge mean",)
    FIGURE = Figure("effect", "effect of an edge, {pairs}, not clipped")
    name: str
    pairs: str
    estimator: str
    effect: float
    low: float | None = stated()
    high: float | None = stated()
    n: int


@dataclass(frozen=True, kw_only=True)
class EdgeEffect(Result):
    """The mean effect of a named edge, or of one compared with it, over n pairs of inputs with different answers."""

    KINDS: ClassVar[tuple[str, ...]] = ("edge effect",)
    FIGURE = Figure("effect", "effect of an edge")
    name: str
    sender: str
    receiver: str
    input: str
    effect: float | None = stated()
    low: float | None = stated()
    high: float | None = stated()
    same: float | None = stated()
    difference: float | None = stated()
    n: int


@dataclass(frozen=True, kw_only=True)
class CircuitSummary(Result):
    """The summary of a circuit search: its margins, the edges that matter, and how many edges attribution missed.

    Attributes:
        margin_share: fraction of the difference that an edge must carry.
        margin, clip: in logits.
        level: of the test of each edge in each half-sample; None in results of earlier versions.
        bound: largest expected number of stable edges without an effect.
        of_matter_proposed: number of edges that matter and are among equally many strongest edges by attribution.
        missed, missed_low, missed_high: fraction of random edges, not proposed by attribution, that matter; None if
            none were drawn.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("circuit",)
    name: str
    task: str
    pairs_by: str
    answers: str
    edges: int
    raced: int
    matter: int
    does_not_matter: int
    open: int
    margin_share: float
    margin: float
    clip: float
    alpha: float
    difference: float
    stable: int
    threshold: float
    level: float | None = stated()
    bound: float
    cpr: float | None = stated()
    cmd: float | None = stated()
    random_cpr: float | None = stated()
    of_matter_proposed: int | None = stated()
    missed: float | None = stated()
    missed_low: float | None = stated()
    missed_high: float | None = stated()
    evaluations: int
    of_evaluations: int
    n: int
    judging: int
    control: int
    not_made: int
    under_floor: int


@dataclass(frozen=True, kw_only=True)
class Faithfulness(Result):
    """The fraction of the logit difference between inputs A and B that a circuit preserves on n held-out pairs."""

    KINDS: ClassVar[tuple[str, ...]] = ("faithfulness",)
    FIGURE = Figure("value", "faithfulness, edges by {order}", "{size} edges")
    order: str
    size: int
    value: float
    low: float | None = stated()
    high: float | None = stated()
    n: int


@dataclass(frozen=True, kw_only=True)
class CircuitPair(Result):
    """A pair of inputs in a circuit search, with its purpose: to test edges, to evaluate circuits, or as a control."""

    KINDS: ClassVar[tuple[str, ...]] = ("pair",)
    use: str
    first: int
    second: int
    first_m: float
    second_m: float
    same: bool
