"""Why heads attend where they do: an exact decomposition of scores into pairs of contributions (Elhage et al. 2021).

A score is a sum of terms, one per contribution to the query and contribution to the key (embeddings, earlier heads,
feed-forward sublayers, constants), with fixed LayerNorm scales. Rows have the share of the variance of the scores over
keys for each pair of groups, each group on one side, and each earlier head on one side (--single-heads), weighting keys
evenly or by attention, compared with random weights. Pairs below --least are left out. On the --removal examples,
Spearman's correlation over contributions shows whether removing them changes maps as their terms predict.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, ClassVar, NamedTuple

import numpy as np
import pydantic.dataclasses
import scipy  # its parts load when they are used
from jaxtyping import Float

from ... import capture, models, scoring, studies
from ...attention import Head
from ...capture.contributors import Contributor
from ...errors import InputError
from ...interval import finite
from ...models.encoding import Encoding
from ...scoring.intervals import RatioMoments
from ...scoring.registry import HeadScore
from ...store.rows import Row
from ..attention.inputs import AttendingOptions, chunks, sources
from ..contract import ChunkUnit, Done, Flag, Study, Unit, provenance
from ..headline import WORTH, Fact, Headline, HeadScores, each, number
from ..merging import MergedBy, Summed
from ..options import Limit
from ..records import Figure, Result, picked, stated

if TYPE_CHECKING:
    from torch import Tensor

    from ...capture.contributions import HeadInputs
    from ...capture.sums import FrozenNorm
    from ...models.checkpoint import Checkpoint


TRAINED, RANDOM = "trained", "random"
HOPED_FOR = 0.8  # least rank agreement of terms with removal, fixed before measuring
MOST_SINGLE_HEADS = 48  # of a checkpoint whose earlier heads are told apart unless asked otherwise
ATLAS_SORTS = ("position", "token", "earlier heads", "feed-forward")
READS = {"query head": "query", "key head": "key"}  # Q- and K-composition, and the side of each
ALWAYS = ("sort", "query", "key")  # levels whose rows are stored however small
SHOWN_PAIRS = 2  # of each head, in a terminal's table
ELHAGE = "Elhage et al. 2021"
ANY = "any"  # the other side, summed


@pydantic.dataclasses.dataclass(frozen=True)
class WhyOptions(AttendingOptions):
    """Options for decomposing attention scores."""

    limit: Limit = 60
    single_heads: Annotated[
        bool | None,
        Flag(
            (
                "report each head of the preceding layers separately, instead of all of them as one group (default: "
                "in models with at most 48 heads)"
            ),
            name="--single-heads/--groups",
        ),
    ] = None
    least: Annotated[
        float, Flag("list only terms that explain at least this share of the variance in attention scores (0 to 1)")
    ] = 0.02
    removal: Annotated[
        int,
        Flag(
            "number of examples on which the decomposition is checked by removing contributions from the model; 0 "
            "skips the check",
            least=0,
        ),
    ] = 40


@dataclass(frozen=True, kw_only=True)
class ScoreShare(Result):
    """The share of the variance of a head's attention scores that one contribution (such as positions) explains.

    Attributes:
        level: "pair" of groups; "query" or "key" (a group on this side, summed over the other side: "any"); "query
            head" or "key head" (a single earlier head); "sort" (mean of both sides, named in query_part).
        weighting: of keys: "even", or "attention" (by their weight).
        share: of the variance of the scores over keys; may be negative. A level without single heads sums to 1.
        null: the same share with random weights, mean over the heads of the layer.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("score share",)
    kind: str = stated("score share")
    checkpoint: str
    task: str
    layer: int
    head: int
    level: str
    query_part: str
    key_part: str
    weighting: str
    share: float
    low: float | None = stated()
    high: float | None = stated()
    n: int
    null: float | None = stated()


@dataclass(frozen=True, kw_only=True)
class RemovalAgreement(Result):
    """The rank correlation between predicted and measured changes in a head's maps when contributions are removed.

    Attributes:
        layer, head: None in the row with the median over heads.
        scale: of the LayerNorm before the head: "held" or "recomputed"; "held to recomputed" compares both.
        agreement: Spearman's correlation.
        low, high: exact interval of the median; None for one head.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("removal", "removal, median")
    kind: str
    checkpoint: str
    task: str
    layer: int | None = stated()
    head: int | None = stated()
    scale: str
    agreement: float
    low: float | None = stated()
    high: float | None = stated()
    parts: int
    heads: int | None = stated()
    n: int


@dataclass(frozen=True, kw_only=True)
class SortScore(Result):
    """The fraction of variance in a head's attention scores that one kind of contribution or one earlier head explains.

    Attributes:
        statistic: "score share" of a kind of contribution, or "composition" with the earlier head of the largest share.
        feature: "position", "token", "earlier heads" or "feed-forward"; for "composition" such as "L2H5 in the key".
    """

    KINDS: ClassVar[tuple[str, ...]] = ("head score",)
    FIGURE = Figure("value", "{statistic}|{feature}|{task}")
    kind: str = stated("head score")
    statistic: str = stated("score share")
    checkpoint: str
    task: str
    layer: int
    head: int
    feature: str
    value: float
    low: float | None = stated()
    high: float | None = stated()
    n: int
    baseline: float | None = stated()


@dataclass(frozen=True)
class Removal:
    """The change in the attention maps of a layer when one contribution is removed from queries or keys.

    Attributes:
        names: groups of contributions to queries, then to keys.
        foretold: predicted by leaving out terms. *Shape:* (part, head), like the next two.
        held: contribution replaced by its mean over inputs and positions, with a fixed LayerNorm scale.
        recomputed: likewise with a recomputed scale; NaN without a LayerNorm.
    """

    layer: int
    names: tuple[str, ...]
    foretold: Float[np.ndarray, "part head"]
    held: Float[np.ndarray, "part head"]
    recomputed: Float[np.ndarray, "part head"]
    n: int


class PartName(NamedTuple):
    """The name of a contribution to attention scores, or of a pair of contributions."""

    level: str
    query_part: str
    key_part: str


@dataclass(frozen=True)
class LayerShares:
    """Sums over inputs, from which the share of each contribution in a layer's attention scores is computed."""

    layer: int
    weighting: str
    names: tuple[PartName, ...]
    moments: Summed[RatioMoments]
    model: str = TRAINED


@dataclass(frozen=True)
class ScoreSums:
    """Sums over the inputs of one task. They give the shares of contributions and the effects of removing
    contributions."""

    checkpoint: str
    task: str
    layers: Annotated[tuple[LayerShares, ...], MergedBy("model", "layer", "weighting")]
    removals: tuple[Removal, ...] = ()


@dataclass(frozen=True)
class WhyPartial:
    """The `ScoreSums` of each checkpoint and task, from one or more work units."""

    pieces: Annotated[tuple[ScoreSums, ...], MergedBy("checkpoint", "task")]


class WhyStudy(Study[WhyOptions, WhyPartial]):
    """Decompose attention scores into contributions of positions, words, earlier heads and MLPs."""

    name, options, partial, arguments = "why", WhyOptions, WhyPartial, ChunkUnit
    question = "What decides where a head attends?"
    kinds = (ScoreShare, RemovalAgreement, SortScore)
    head_scores = (
        HeadScore("score share", "score share", "share of the scores' variance over keys that a contribution of "
                  "this sort has, mean of the query's and the key's side", ("values",), None, None, ELHAGE,
                  about="contribution"),
        HeadScore("composition", "reads an earlier head", "share of the scores' variance over keys that the output "
                  "of an earlier head has, on the side of the query or of the key", ("values",), None, None, ELHAGE,
                  about="contribution"),
    )  # fmt: skip
    section = "why it looks there"
    said_at = 6

    def units(self, options: WhyOptions) -> list[Unit]:
        if not 0 <= options.least <= 1:
            raise InputError(
                f"The threshold for listed terms (least) must be from 0 to 1; got {options.least:g}. Choose a value in "
                "this range."
            )
        return [Unit(chunk.key, chunk, size) for chunk, size in chunks(options)]

    def run(self, options: WhyOptions, unit: Unit) -> Done[WhyPartial]:
        chunk: ChunkUnit = unit.arguments
        checkpoint = studies.worker_cache.get_checkpoint(chunk.checkpoint, dtype=options.dtype)
        rows = sources(options, chunk.inputs)
        windows = studies.attention.measures.in_windows(checkpoint, rows[chunk.start : chunk.stop])
        inputs = [checkpoint.encode(row.text, row.pair) for row in windows]
        has_few = checkpoint.layers * checkpoint.heads <= MOST_SINGLE_HEADS
        by_head = has_few if options.single_heads is None else options.single_heads
        untrained = models.classifier.random_copy(checkpoint, seed=options.seed)
        layers = (
            *share_sums(checkpoint, inputs, by_head=by_head),
            *(replace(sums, model=RANDOM) for sums in share_sums(untrained, inputs, by_head=by_head)),
        )
        is_first = chunk.start == 0 and options.removal > 0
        is_checked = is_first and capture.contributions.has_position_embeddings(checkpoint)
        first = [checkpoint.encode(row.text, row.pair) for row in rows[: options.removal]] if is_checked else []
        removals = removal(checkpoint, first) if is_checked else ()
        sums = ScoreSums(chunk.checkpoint, chunk.inputs, layers, tuple(removals))
        row_ids = [row.row_id for row in rows[chunk.start : chunk.stop]]
        return Done(WhyPartial((sums,)), provenance(checkpoint, row_ids))

    def results(self, options: WhyOptions, merged: WhyPartial) -> list[Result]:
        results: list[Result] = []
        for sums in merged.pieces:
            shares = list(share_records(sums, options.least))
            results += (*shares, *removal_records(sums), *score_records(sums, shares))
        return results

    def facts(self, scores: HeadScores) -> list[Fact]:
        """Describe in sentences the largest contribution to a head's scores and its most influential earlier heads."""
        own, told = scores.own.sort_values("value", ascending=False), []
        for row in each(own[own["score"].str.startswith("score share/")].head(1)):
            unknown = row["baseline"] != row["baseline"]
            with_random_weights = "" if unknown else f" (random weights: {row['baseline']:.2f})"
            text = (
                "The main source of variance in the attention scores of this head is "
                f"{row['score'].rpartition('/')[2]}, with a share of {number(row)}{with_random_weights}."
            )
            told.append(Fact(self.name, text, row["source"]))
        for row in each(own[own["score"].str.startswith("composition/") & (own["value"] >= WORTH) & (own["low"] > 0)]):
            earlier, _, side = row["score"].rpartition("/")[2].partition(" in the ")
            text = (
                f"On the {side} side, the output of {earlier} explains {number(row)} of the variance in the attention "
                "scores of this head."
            )
            told.append(Fact(self.name, text, row["source"]))
        return told

    def headline(self, rows: Sequence[Row]) -> Headline:
        every = picked(SortScore.among(rows), statistic="score share")
        scores = picked(every, checkpoint=every[0].checkpoint, task=every[0].task)
        by_head: dict[tuple[int, int], SortScore] = {}
        for score in scores:
            if score.value > getattr(by_head.get((score.layer, score.head)), "value", -np.inf):
                by_head[score.layer, score.head] = score
        counts = {sort: sum(score.feature == sort for score in by_head.values()) for sort in ATLAS_SORTS}
        sources = [f"{sort} for {count} head{'s' * (count != 1)}" for sort, count in counts.items() if count]
        if not sources:
            return Headline("The result contains no defined share of variance.")
        counted = " and ".join(filter(None, (", ".join(sources[:-1]), sources[-1])))
        largest = max(scores, key=lambda score: score.value)
        return Headline(
            (
                f"Among {len(by_head)} heads, the main source of variance in attention scores is {counted}. The "
                f"largest share of variance, {largest.value:.2f}, is explained by {largest.feature} in head "
                f"{Head(largest.layer, largest.head)}.{_said_of_removal(rows)}"
            ),
            largest.n,
            "inputs",
        )

    def shown(self, rows: Sequence[Row]) -> list[list[Row] | str]:
        by_head: dict[tuple[str, str, int, int], list[ScoreShare]] = {}
        for share in ScoreShare.among(rows):
            if share.level == "pair" and share.weighting == "even":
                by_head.setdefault((share.checkpoint, share.task, share.layer, share.head), []).append(share)
        names = ("task", "query_part", "key_part", "share", "low", "high", "null", "n")
        table = [
            {"head": str(Head(share.layer, share.head))} | share.columns(*names)
            for shares in by_head.values()
            for share in sorted(shares, key=lambda share: -share.share)[:SHOWN_PAIRS]
        ]
        removals = [record for record in RemovalAgreement.among(rows) if record.kind == "removal, median"]
        conditions = {"held to recomputed": "equally with fixed and with recomputed LayerNorm scales"}
        return [
            table,
            *(
                f"Removing contributions changes maps {conditions.get(record.scale, 'as their terms predict')} with a "
                f"median rank correlation of {record.agreement:.2f} (95 % CI {record.low:.2f} to {record.high:.2f}) "
                f"over {record.heads} heads (LayerNorm scale: {record.scale})."
                for record in removals
                if record.low is not None
            ),
        ]


STUDY = WhyStudy()


def share_records(sums: ScoreSums, least: float) -> Iterator[ScoreShare]:
    """Yield the share of each contribution in the score variance of each head. Shares below `least` are left out for
    pairs of contributions and for single earlier heads."""
    nulls = {
        (part.layer, part.weighting, name): float(np.nanmean(ratio))
        for part in sums.layers
        if part.model == RANDOM
        for name, ratio in zip(part.names, part.moments.ratios().value.T, strict=True)
        if np.isfinite(ratio).any()
    }
    for part in (part for part in sums.layers if part.model == TRAINED):
        ratios = part.moments.ratios()
        for head, sort in np.ndindex(ratios.value.shape):
            level, query_part, key_part = name = part.names[sort]
            share = float(ratios.value[head, sort])
            if np.isfinite(share) and (level in ALWAYS or abs(share) >= least):
                ends = float(ratios.low[head, sort]), float(ratios.high[head, sort])
                low, high = ends if np.isfinite(ends).all() else (None, None)
                yield ScoreShare(
                    checkpoint=sums.checkpoint, task=sums.task, layer=part.layer, head=head, level=level,
                    query_part=query_part, key_part=key_part, weighting=part.weighting, share=share, low=low,
                    high=high, n=ratios.n, null=nulls.get((part.layer, part.weighting, name)),
                )  # fmt: skip


def score_records(sums: ScoreSums, shares: Sequence[ScoreShare]) -> Iterator[SortScore]:
    """Convert shares of score variance to head scores. Each kind of contribution gets one score. The earlier heads that
    contribute most to queries and to keys get one score each."""
    most: dict[tuple[int, int, str], ScoreShare] = {}
    for share in (share for share in shares if share.weighting == "even"):
        if share.level == "sort" and share.query_part in ATLAS_SORTS:
            yield _score(share, "score share", share.query_part)
        side = (share.layer, share.head, share.level)
        if share.level in READS and share.share > getattr(most.get(side), "share", 0.0):
            most[side] = share
    for (_, _, level), share in most.items():
        name = share.query_part if level == "query head" else share.key_part
        yield _score(share, "composition", f"{name} in the {READS[level]}")


def _score(share: ScoreShare, statistic: str, feature: str) -> SortScore:
    return SortScore(
        checkpoint=share.checkpoint, task=share.task, layer=share.layer, head=share.head, statistic=statistic,
        feature=feature, value=share.share, low=share.low, high=share.high, n=share.n, baseline=share.null,
    )  # fmt: skip


def _said_of_removal(rows: Sequence[Row]) -> str:
    """Return sentences on how well the terms predict removal and, for a low correlation, possible reasons."""
    medians = [row for row in RemovalAgreement.among(rows) if row.kind == "removal, median" and row.scale == "held"]
    if not medians or medians[0].low is None or medians[0].high is None:
        return ""
    found = medians[0]
    reason = (
        ""
        if found.agreement >= HOPED_FOR
        else " The mean of a removed contribution is retained and may carry the same information."
    )
    return (
        " If contributions are removed, the changes of maps have a median rank correlation over heads of "
        f"{found.agreement:.2f} (95 % CI {found.low:.2f} to {found.high:.2f}) with the predicted changes.{reason}"
    )


def removal_records(sums: ScoreSums) -> Iterator[RemovalAgreement]:
    """For each head, yield the rank correlation between predicted and measured changes in its maps. Then yield the
    median of these correlations."""
    for scale in ("held", "recomputed", "held to recomputed"):
        heads = [record for layer in sums.removals for record in _agreements(sums, layer, scale)]
        yield from heads
        values = np.array([record.agreement for record in heads])
        if len(values) > 1:
            ends = scipy.stats.quantile_test(values, p=0.5).confidence_interval(0.95)
            low, high = map(finite, ends)
            yield replace(
                heads[0], kind="removal, median", layer=None, head=None, agreement=float(np.median(values)),
                low=low, high=high, heads=len(values),
            )  # fmt: skip


def _agreements(sums: ScoreSums, layer: Removal, scale: str) -> Iterator[RemovalAgreement]:
    """Yield a record for each head of a layer whose contributions have distances that are not all equal."""
    expected = layer.held if scale == "held to recomputed" else layer.foretold
    measured = layer.held if scale == "held" else layer.recomputed
    for head, (foretold, observed) in enumerate(zip(expected.T, measured.T, strict=True)):
        if np.isfinite(observed).all() and len(set(foretold)) > 1 < len(set(observed)):
            yield RemovalAgreement(
                kind="removal", checkpoint=sums.checkpoint, task=sums.task, layer=layer.layer, head=head, scale=scale,
                agreement=float(scipy.stats.spearmanr(foretold, observed).statistic), parts=len(layer.names), n=layer.n,
            )  # fmt: skip


# ---------------------------------------------------------------- removal


def removal(checkpoint: "Checkpoint", encodings: Sequence[Encoding]) -> list[Removal]:
    """Measure how the attention maps of every head change when each group of contributions is removed.

    Raises InputError without inputs, or if positions are not embeddings (but rotary, or added to scores), because they
    then have no mean contribution. Raises InterventionError if scores cannot be decomposed.
    """
    if not encodings:
        raise InputError(
            "Removing contributions to attention scores needs at least one input; got none. Choose examples."
        )
    means = _Means()
    capture.contributions.take_head_inputs(checkpoint, encodings, means.take, norms=True)
    if not means.has_positions:
        raise InputError(
            f"The check with --removal needs position embeddings; {checkpoint.family.model_type} models encode "
            "positions in the attention scores instead. Set --removal to 0, which leaves the other results unchanged."
        )
    sums = _RemovalSums(means)
    capture.contributions.take_head_inputs(checkpoint, encodings, sums.take, norms=True)
    return [sums.result(layer, len(encodings)) for layer in sorted(sums.distances)]


class _Means:
    """Mean contributions over inputs and positions, by layer and side (query or key).

    "scaled": divided by the spread of the norm, as in queries and keys; "projected": not divided; "before": in the
    input of the norm.
    """

    def __init__(self) -> None:
        self.sums: "dict[tuple[int, str, str, Contributor], Tensor]" = {}
        self.counts: dict[int, int] = {}
        self.has_positions = False

    def take(self, inputs: "HeadInputs", numbers: list[int]) -> None:
        import torch  # 1.3 s of start-up

        self.counts[inputs.layer] = self.counts.get(inputs.layer, 0) + inputs.query.shape[1] * inputs.query.shape[3]
        for side, components, states, norm in _sides(inputs):
            self.has_positions |= any(component.kind == "position" for component in components)
            self._add(inputs.layer, side, "scaled", components, states.sum((1, 3)))
            if norm is not None:
                spread = norm.spread[:, None, :, None]
                projected = torch.stack([(state * spread).sum((0, 2)) for state in states])
                self._add(inputs.layer, side, "projected", components, projected)
                self._add(inputs.layer, side, "before", norm.components, norm.parts.sum((1, 2)))

    def _add(self, layer: int, side: str, which: str, components: Sequence[Contributor], sums: "Tensor") -> None:
        for component, value in zip(components, sums, strict=True):
            key = (layer, side, which, component)
            self.sums[key] = self.sums[key] + value if key in self.sums else value

    def mean(self, layer: int, side: str, which: str, component: Contributor) -> "Tensor":
        return self.sums[layer, side, which, component] / self.counts[layer]


def _sides(
    inputs: "HeadInputs",
) -> "list[tuple[str, tuple[Contributor, ...], Tensor, FrozenNorm | None]]":
    return [
        ("query", inputs.query_components, inputs.query, inputs.query_norm),
        ("key", inputs.key_components, inputs.key, inputs.key_norm),
    ]


class _RemovalSums:
    """Sums over inputs of the distances between maps with and without each contribution."""

    def __init__(self, means: _Means) -> None:
        self.means = means
        self.distances: dict[int, np.ndarray] = {}  # [foretold or held or recomputed, part, head]
        self.names: dict[int, tuple[str, ...]] = {}

    def take(self, inputs: "HeadInputs", numbers: list[int]) -> None:
        import torch  # 1.3 s of start-up

        rows, names = [], []
        for side, components, _, norm in _sides(inputs):
            for k, component in enumerate(components):
                names.append(f"{component.label} in the {side}")
                changed = torch.stack([self._map(inputs, side, k, how, norm) for how in range(3)])
                rows.append(scoring.score_parts.map_distances(changed, inputs.weights))
        sums = torch.stack(rows, 1).double().cpu().numpy() * inputs.query.shape[1]
        self.names[inputs.layer] = tuple(names)
        self.distances[inputs.layer] = self.distances.get(inputs.layer, 0) + sums

    def _map(self, inputs: "HeadInputs", side: str, number: int, how: int, norm: "FrozenNorm | None") -> "Tensor":
        """Return the map without a contribution: terms left out (0), replaced by their mean (1), rescaled (2)."""

        import torch  # 1.3 s of start-up

        is_query = side == "query"
        states, component = getattr(inputs, side), getattr(inputs, f"{side}_components")[number]
        whole = (inputs.whole_query if is_query else inputs.whole_key) - states[number]
        if how == 2 and norm is None:
            whole = torch.full_like(whole, torch.nan)
        elif how == 2 and norm is not None and component in norm.components:
            whole = self._rescaled(inputs, side, component, whole, norm)
        elif how:  # behind the norm, as its own bias, a contribution has no scale to compute again
            whole = whole + self.means.mean(inputs.layer, side, "scaled", component)[None, :, None]
        scores = (whole @ inputs.whole_key.mT if is_query else inputs.whole_query @ whole.mT) * inputs.scaling
        return torch.softmax(scores.masked_fill(~inputs.visible, -torch.inf), -1)

    def _rescaled(
        self, inputs: "HeadInputs", side: str, component: Contributor, rest: "Tensor", norm: "FrozenNorm"
    ) -> "Tensor":
        """Return the projected norm of all other contributions plus the mean of this contribution before the norm."""
        states, components = getattr(inputs, side), getattr(inputs, f"{side}_components")
        before, projected = (self.means.mean(inputs.layer, side, which, component) for which in ("before", "projected"))
        behind = states[[number for number, name in enumerate(components) if name not in norm.components]].sum(0)
        spread, anew = norm.spread[:, None, :, None], norm.spread_with(component, before)[:, None, :, None]
        return (rest - behind) * (spread / anew) + projected[None, :, None] / anew + behind

    def result(self, layer: int, n: int) -> Removal:
        foretold, held, recomputed = self.distances[layer] / n
        return Removal(layer, self.names[layer], foretold, held, recomputed, n)


# ---------------------------------------------------------------- score shares in one pass


class ShareSums:
    """Accumulates the `LayerShares` of all batches, separately for each layer and each weighting of keys."""

    def __init__(self) -> None:
        self.layers: dict[tuple[int, str], LayerShares] = {}

    def take(self, inputs: "HeadInputs", numbers: list[int]) -> None:
        for weighting, shares in zip(scoring.score_parts.WEIGHTINGS, layer_shares(inputs), strict=True):
            before = self.layers.get((inputs.layer, weighting))
            moments = before.moments.merge(shares.moments) if before else shares.moments
            self.layers[inputs.layer, weighting] = replace(shares, moments=moments)


def layer_shares(inputs: "HeadInputs") -> list[LayerShares]:
    """Compute the `LayerShares` of a batch, first with equally weighted keys, then with keys weighted by attention."""

    from torch import nn  # 1.3 s of start-up

    counts = [inputs.weights if weighting == "attention" else None for weighting in scoring.score_parts.WEIGHTINGS]
    every = [scoring.score_parts.centred_scores(inputs.scores, inputs.visible, weights) for weights in counts]
    pairs = scoring.score_parts.covariances(inputs.query, inputs.key, every, scaling=inputs.scaling)
    place = () if inputs.bias is None else (Contributor("position"),)  # a bias of the scores depends on both positions
    collected = _collected((*inputs.query_components, *place), (*inputs.key_components, *place))
    shares = []
    for weighting, centred, terms in zip(scoring.score_parts.WEIGHTINGS, every, pairs, strict=True):
        own = scoring.score_parts.without_others(terms, inputs.left_over)
        if inputs.bias is not None:
            own = nn.functional.pad(own, (0, 1, 0, 1))
            own[..., -1, -1] = (centred * inputs.bias).sum((-2, -1))
        whole = scoring.score_parts.score_variance(centred, inputs.scores).double().cpu().numpy()
        moments = RatioMoments.of(collected.of(own.cpu().numpy()), whole)
        shares.append(LayerShares(inputs.layer, weighting, collected.names, moments))
    return shares


@dataclass(frozen=True)
class _Collected:
    """Which contributions belong to which parts: [contribution, group] for pairs, [contribution, part] for a side."""

    names: tuple[PartName, ...]
    query_groups: np.ndarray
    key_groups: np.ndarray
    query: np.ndarray
    key: np.ndarray

    def of(self, pairs: Float[np.ndarray, "input head a b"]) -> Float[np.ndarray, "input head part"]:
        grouped = self.query_groups.T @ pairs @ self.key_groups
        by_side = pairs.sum(3) @ self.query + pairs.sum(2) @ self.key
        return np.concatenate([grouped.reshape(*pairs.shape[:2], -1), by_side], 2)


@lru_cache(maxsize=64)
def _collected(query: tuple[Contributor, ...], key: tuple[Contributor, ...]) -> _Collected:
    """Return the parts of scores: pairs of groups, then groups, heads and kinds of contributions of a side."""
    groups = [list(dict.fromkeys(component.group for component in side)) for side in (query, key)]
    pairs = [PartName("pair", first, second) for first in groups[0] for second in groups[1]]
    of_query, of_key = [_of_side(part, "query") for part in query], [_of_side(part, "key") for part in key]
    sides = list(dict.fromkeys(name for parts in (*of_query, *of_key) for name in parts))
    return _Collected(
        (*pairs, *sides),
        *(
            np.array([[component.group == group for group in own] for component in side], float)
            for side, own in zip((query, key), groups, strict=True)
        ),
        *(np.array([[parts.get(name, 0.0) for name in sides] for parts in side]) for side in (of_query, of_key)),
    )


def _of_side(component: Contributor, side: str) -> dict[PartName, float]:
    """Return the parts of one side to which a contribution belongs, with its weight in each part."""

    def named(level: str, name: str) -> PartName:
        return PartName(level, name, ANY) if side == "query" else PartName(level, ANY, name)

    parts = {named(side, component.group): 1.0, PartName("sort", component.merged_kind, ANY): 0.5}
    return parts | ({named(f"{side} head", component.label): 1.0} if component.kind == "head" else {})


def share_sums(
    checkpoint: "Checkpoint", encodings: Sequence[Encoding], *, part: str = "", by_head: bool = False
) -> list[LayerShares]:
    """Compute the `LayerShares` of every layer over all inputs. Raises InterventionError if scores cannot be
    decomposed."""
    sums = ShareSums()
    capture.contributions.take_head_inputs(
        checkpoint, encodings, sums.take, part=part, by_head=by_head, by_difference=True
    )
    return [sums.layers[key] for key in sorted(sums.layers)]
