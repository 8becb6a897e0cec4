"""Interventions on attention: what an ablated or replaced head does instead of its learned attention.

`Intervention` and `Knockout` describe what users request. `HeadChange` and `Cut` describe the same for one layer and
batch, with separate heads for each input, so that a batch may hold one input under many interventions.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, cast, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ..attention import Head
from ..errors import InterventionError, check_choice
from ..models.encoding import Encoding

Operator = Literal["disable", "zero", "previous", "current", "next", "first", "mean", "resample", "constant", "patch"]
OPERATORS: tuple[str, ...] = ("disable", "zero", "previous", "current", "next", "first")  # need nothing but the input
FROM_REFERENCE: tuple[str, ...] = ("mean", "resample", "constant")  # need a reference set of inputs
_OFFSETS = {"previous": -1, "current": 0, "next": 1}


@dataclass(frozen=True)
class Given:
    """Replacements for the outputs of heads (before W_O) in one batch. `places` is True at the positions where outputs
    are replaced; None means all positions."""

    outputs: Float[Tensor, "layer batch query head dim"]
    places: Bool[Tensor, "batch query"] | None = None


@runtime_checkable
class StandInSource(Protocol):
    """A source of replacement outputs for heads, in the ablation methods "mean", "resample", "constant" and "patch"."""

    @property
    def operator(self) -> str:
        """Return the ablation method that uses these replacement outputs."""

    def given(self, encodings: Sequence[Encoding], inputs: Sequence[int]) -> Given:
        """Return the replacement outputs of heads for a batch of inputs with equal length."""


@dataclass(frozen=True)
class Intervention:
    """An ablation method that is applied to a set of heads.

    Attributes:
        operator: "disable": uniform attention over the visible keys (1/L; causal 1/(i+1); Kovaleva et al. section 4.6).
            "zero": the output of the head is 0 (Michel et al.). "previous", "current", "next", "first": all attention
                on
            that token, or on the query itself if that token does not exist or is masked (Raganato et al.). "mean",
            "resample", "constant", "patch": the output (before W_O) comes from `source` (core.capture.outputs).
    """

    operator: Operator
    heads: frozenset[Head]
    source: StandInSource | None = None


@dataclass(frozen=True)
class Knockout:
    """Attention knockout: the edges from queries to keys that are cut in the heads of some layers (Geva et al. 2023).

    Attributes:
        edges: a function that returns, for an input, True where an edge is cut.
        renormalised: set scores to -inf before the softmax, so that other keys get the weight; otherwise set weights to
            0 after the softmax, so that rows sum to less than 1.
        heads: None for all heads of the layers.
    """

    edges: Callable[[Encoding], Bool[Tensor, "query key"]]
    layers: frozenset[int]
    renormalised: bool = True
    heads: frozenset[Head] | None = None


@dataclass(frozen=True)
class HeadChange:
    """A change that an ablation method makes to some heads of one layer, for one batch of inputs.

    Attributes:
        heads: the changed heads; one row for the whole batch, or one for each input.
        given: replacement outputs; None for methods that change attention and for "zero".
        places: positions where `given` applies. None: all.
    """

    operator: Operator
    heads: Bool[Tensor, "rows head"]
    given: Float[Tensor, "batch query head dim"] | None = None
    places: Bool[Tensor, "batch query"] | None = None


@dataclass(frozen=True)
class Cut:
    """The edges that an attention knockout cuts in one layer, for one batch of inputs."""

    edges: Bool[Tensor, "batch 1 query key"]
    heads: Bool[Tensor, "1 head 1 1"]
    renormalised: bool


def head_changes_of(
    interventions: Iterable[Intervention | Knockout],
    *,
    layers: int,
    heads: int,
    causal: bool,
    some: Sequence[Encoding] = (),
    inputs: Sequence[int] = (),
) -> dict[int, list[HeadChange]]:
    """Return the changes to heads by layer, for a batch of inputs with equal length. Knockouts are ignored.

    Raises InterventionError if a method is unknown, lacks its source, or is "next" in a causal model, or a head has two
    methods; InputError if a head does not exist.
    """
    head_changes: dict[int, list[HeadChange]] = {}
    seen: set[Head] = set()
    for intervention in interventions:
        if isinstance(intervention, Knockout):
            continue
        operator_of(intervention.operator, causal=causal, source=intervention.source)
        given = None if intervention.source is None else intervention.source.given(some, inputs)
        for layer in sorted({head.within(layers, heads).layer for head in intervention.heads}):
            outputs, places = (None, None) if given is None else (given.outputs[layer], given.places)
            row = _row(intervention.heads, layer, heads)
            head_changes.setdefault(layer, []).append(HeadChange(intervention.operator, row, outputs, places))
        if twice := seen & intervention.heads:
            raise InterventionError(
                f"A head can have only one ablation method; {min(twice)} has two. Remove one of the two methods."
            )
        seen |= intervention.heads
    return head_changes


def check_source(source: StandInSource | None, weights_hash: str) -> None:
    """Raise InterventionError if the replacement outputs were computed by a model with other weights."""
    theirs = getattr(source, "weights_hash", "")
    if theirs and weights_hash and theirs != weights_hash:
        raise InterventionError(
            f"Replacement outputs of heads must come from a model with the same weights ({weights_hash[:8]}); these "
            f"outputs come from a model with the weights {theirs[:8]}. Compute the outputs again with this checkpoint."
        )


def _row(chosen: Iterable[Head], layer: int, heads: int) -> Bool[Tensor, "1 head"]:
    row = torch.zeros(1, heads, dtype=torch.bool)
    row[0, [head.head for head in chosen if head.layer == layer]] = True
    return row


def cuts_of(
    interventions: Iterable[Intervention | Knockout],
    *,
    layers: int,
    heads: int,
    causal: bool,
    some: Sequence[Encoding],
) -> dict[int, list[Cut]]:
    """Return the edges that attention knockouts cut in each layer, for a batch of inputs with equal length.

    Raises InterventionError if a renormalised knockout leaves a query without a key, or a layer does not exist;
    InputError if a head does not exist.
    """
    cuts: dict[int, list[Cut]] = {}
    for knockout in interventions:
        if not isinstance(knockout, Knockout):
            continue
        edges = torch.stack([knockout.edges(encoding) for encoding in some])
        if knockout.renormalised:
            visible = torch.ones_like(edges).tril() if causal else torch.ones_like(edges)
            empty = (~(visible & ~edges).any(-1)).nonzero()
            if len(empty):
                row, query = empty[0].tolist()
                raise InterventionError(
                    "An attention knockout must leave every query at least one key; the query "
                    f'"{some[row].tokens[query]}" (position {query + 1}) of "{some[row].text[:40]}" would have no key '
                    "left. Cut fewer edges, or turn off renormalisation."
                )
        chosen = knockout.heads
        if chosen is not None:
            chosen = frozenset(head.within(layers, heads) for head in chosen)
        for layer in sorted(knockout.layers):
            if not 0 <= layer < layers:
                raise InterventionError(
                    f"The layer of an attention knockout must be from 1 to {layers}; got {layer + 1}. Choose a "
                    "layer in this range."
                )
            row = torch.ones(1, heads, dtype=torch.bool) if chosen is None else _row(chosen, layer, heads)
            cuts.setdefault(layer, []).append(Cut(edges[:, None], row[:, :, None, None], knockout.renormalised))
    return cuts


def known_operator(name: str) -> str:
    """Check that users can choose an ablation method, and return its name. Raises InterventionError if they cannot."""
    check_choice("An ablation method", name, (*OPERATORS, *FROM_REFERENCE), InterventionError)
    return name


def operator_of(name: str, *, causal: bool, source: StandInSource | None = None) -> Operator:
    """Check that an ablation method can be used, and return its name. Raises InterventionError if the name is unknown,
    if `source` does not fit the method, or if the method is "next" in a causal model."""
    if source is not None and source.operator == name:
        return cast(Operator, name)
    known_operator(name)
    if source is not None and name not in FROM_REFERENCE:
        raise InterventionError(
            f'The ablation method "{name}" takes no replacement outputs; got outputs for "{source.operator}". Omit '
            f'them, or choose the method "{source.operator}".'
        )
    if name in FROM_REFERENCE:
        other = f'outputs for "{source.operator}"' if source is not None else "none"
        raise InterventionError(
            f'The ablation method "{name}" needs head outputs that were computed for this method on '
            f"reference inputs; got {other}. Choose reference inputs first."
        )
    if name == "next" and causal:
        raise InterventionError(
            'The ablation method "next" is undefined for a causal model, which cannot attend to the next token. '
            'Choose "previous", "current" or "first".'
        )
    return cast(Operator, name)


def refuse_across(changes: Iterable[Intervention | Knockout], part: str) -> None:
    """Raise InterventionError if an ablation method is undefined for the heads of an encoder-decoder. For example, the
    method "previous" is undefined in cross-attention, where queries have no position among the keys."""
    for change in changes:
        if isinstance(change, Knockout) or not part:
            continue
        if part == "cross" and change.operator in _OFFSETS:
            raise InterventionError(
                f'The ablation method "{change.operator}" is undefined for cross-attention, because queries '
                "and keys belong to different texts. Choose disable, zero or first."
            )
        if change.source is not None:
            raise InterventionError(
                f'The ablation method "{change.operator}" needs a model with one input sequence; an '
                "encoder-decoder has two. Choose disable or zero."
            )


def visible_keys(
    mask: Tensor | None, weights: Float[Tensor, "batch head query key"]
) -> Bool[Tensor, "rows 1 query key"]:
    """Return a mask of the keys that each query may attend to, given an attention mask.

    `mask` is added to scores, or True for visible keys; None: all are visible. *Shape:* (batch or 1, 1, query or 1, at
    least key). Only the shape of `weights` is read.
    """
    if mask is None:
        return torch.ones(1, 1, *weights.shape[2:], dtype=torch.bool, device=weights.device)
    cropped = mask[..., : weights.shape[-1]]
    seen = cropped if cropped.dtype == torch.bool else cropped > torch.finfo(cropped.dtype).min / 2
    return seen.expand(-1, -1, weights.shape[2], -1)


def changed(
    weights: Float[Tensor, "batch head query key"], head_change: HeadChange, visible: Bool[Tensor, "rows 1 query key"]
) -> Float[Tensor, "batch head query key"]:
    """Return attention weights after giving the ablated heads the rows that the ablation method fixes. The method must
    be "disable", "previous", "current", "next" or "first". The weights must not include sinks."""
    fixed = uniform(visible) if head_change.operator == "disable" else pointing(head_change.operator, visible)
    return torch.where(head_change.heads.to(weights.device)[:, :, None, None], fixed.to(weights.dtype), weights)


def uniform(visible: Bool[Tensor, "rows 1 query key"]) -> Float[Tensor, "rows 1 query key"]:
    """Return uniform attention over the visible keys of each query, as float32. If a query sees no key, its row
    contains only zeros."""
    counts = visible.sum(-1, keepdim=True).clamp(min=1)
    return visible.float() / counts


def pointing(operator: str, visible: Bool[Tensor, "rows 1 query key"]) -> Float[Tensor, "rows 1 query key"]:
    """Return float32 attention rows with weight 1 on the previous, current, next or first token. If this token does not
    exist or is masked, the query attends to itself."""
    length = visible.shape[-1]
    own = torch.arange(visible.shape[-2], device=visible.device)  # cross attention has other keys, and only "first"
    target = torch.zeros_like(own) if operator == "first" else own + _OFFSETS[operator]
    missing = (target < 0) | (target >= length)
    target = torch.where(missing, own, target)
    pointed = torch.nn.functional.one_hot(target, length).bool().expand(visible.shape)
    seen = (pointed & visible).any(-1, keepdim=True)
    itself = torch.eye(len(own), length, dtype=torch.bool, device=visible.device)
    return torch.where(seen, pointed, itself).float()
