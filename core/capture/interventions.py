"""Interventions on attention: what a disabled, zeroed or replaced head does instead. See design.md, "Words".

`Intervention` and `Knockout` are what a user asks for; `HeadChange` and `Cut` are the same for one layer and one batch,
with a row of heads per input, so that one batch may hold the same input under many interventions.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, cast, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ..attention import Head
from ..errors import InterventionError
from ..models.encoding import Encoding

Operator = Literal["disable", "zero", "previous", "current", "next", "first", "mean", "resample", "constant", "patch"]
OPERATORS: tuple[str, ...] = ("disable", "zero", "previous", "current", "next", "first")  # need nothing but the input
FROM_REFERENCE: tuple[str, ...] = ("mean", "resample", "constant")  # need a reference set of inputs
_OFFSETS = {"previous": -1, "current": 0, "next": 1}


@dataclass(frozen=True)
class Given:
    """Heads' outputs (before W_O) of one batch that stand in for their own.

    Attributes:
        outputs: of every head, in the dtype that the source has; they are cast where they are used.
        places: where they stand in; elsewhere a head's own output stays. None: everywhere.
    """

    outputs: Float[Tensor, "layer batch query head dim"]
    places: Bool[Tensor, "batch query"] | None = None


@runtime_checkable
class StandInSource(Protocol):
    """Where the outputs of "mean", "resample", "constant" and "patch" come from."""

    @property
    def operator(self) -> str:
        """The operator that it serves."""

    def given(self, encodings: Sequence[Encoding], inputs: Sequence[int]) -> Given:
        """What stands in on inputs of one length.

        Returns:
            Outputs in the order of `encodings`.
        """


@dataclass(frozen=True)
class Intervention:
    """An operator on a set of heads.

    Attributes:
        operator: "disable": attention uniform over the visible keys (1/L; causal 1/(i+1); Kovaleva et al. section 4.6).
            "zero": the head's output times 0 (Michel et al.). "previous", "current", "next", "first": all attention on
            that token, on the token itself where it is missing or not visible (Raganato et al.). "mean", "resample",
            "constant", "patch": the head's output (before W_O) is that of `source` (core.capture.outputs).
        source: what stands in, of the operators that need it; None for the others.
    """

    operator: Operator
    heads: frozenset[Head]
    source: StandInSource | None = None


@dataclass(frozen=True)
class Knockout:
    """Edges cut in heads of some layers (Geva et al. 2023).

    Attributes:
        edges: called with an input; True where an edge is cut.
        layers: zero-based.
        renormalised: whether scores are set to -inf before the softmax, so that the other keys take the weight;
            otherwise weights are set to 0 after it, so that the row sums to less than 1.
        heads: only these, of any of the layers; None: all of the layers.
    """

    edges: Callable[[Encoding], Bool[Tensor, "query key"]]
    layers: frozenset[int]
    renormalised: bool = True
    heads: frozenset[Head] | None = None


@dataclass(frozen=True)
class HeadChange:
    """One operator in one layer, for one batch.

    Attributes:
        operator: as of `Intervention`.
        heads: whose attention or output is changed; one row for the whole batch, or one an input.
        given: what stands in for their outputs; None of operators on attention and of "zero".
        places: where `given` stands in; None: everywhere.
    """

    operator: Operator
    heads: Bool[Tensor, "rows head"]
    given: Float[Tensor, "batch query head dim"] | None = None
    places: Bool[Tensor, "batch query"] | None = None


@dataclass(frozen=True)
class Cut:
    """A knockout in one layer, for one batch.

    Attributes:
        edges: of each input, True where an edge is cut.
        renormalised: as of `Knockout`.
    """

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
    """The changes of heads, by layer; knockouts are passed over.

    Args:
        causal: whether no query sees a later key.
        some: the batch, inputs of one length, for operators whose outputs come from a source.

    Raises:
        InterventionError: an operator is unknown, lacks its source or is "next" of a causal model, or a head has two.
        InputError: a head does not exist.
    """
    head_changes: dict[int, list[HeadChange]] = {}
    seen: set[Head] = set()
    for intervention in interventions:
        if isinstance(intervention, Knockout):
            continue
        given = given_by(intervention.operator, intervention.source, some, inputs, causal=causal)
        for layer in sorted({head.within(layers, heads).layer for head in intervention.heads}):
            outputs, places = (None, None) if given is None else (given.outputs[layer], given.places)
            row = _row(intervention.heads, layer, heads)
            head_changes.setdefault(layer, []).append(HeadChange(intervention.operator, row, outputs, places))
        if twice := seen & intervention.heads:
            raise InterventionError(f"A head takes one operator at a time; {min(twice)} was given two: keep one.")
        seen |= intervention.heads
    return head_changes


def check_source(source: StandInSource | None, weights_hash: str) -> None:
    """Refuse outputs that another checkpoint gave; sources that do not say whose theirs are pass.

    Args:
        source: what stands in; None passes.
        weights_hash: of the model that is changed; "" passes.

    Raises:
        InterventionError: the weights differ.
    """
    theirs = getattr(source, "weights_hash", "")
    if theirs and weights_hash and theirs != weights_hash:
        raise InterventionError(
            f"Outputs stand in within one checkpoint; these come from weights {theirs[:8]}, the model has "
            f"{weights_hash[:8]}: take them from the same checkpoint."
        )


def given_by(
    operator: str, source: StandInSource | None, encodings: Sequence[Encoding], inputs: Sequence[int], *, causal: bool
) -> Given | None:
    """What a source hands over for a batch of inputs of one length.

    Args:
        source: what serves it; None of operators that need none.
        causal: whether no query sees a later key.

    Returns:
        Heads' outputs; None of operators that need none.

    Raises:
        InterventionError: the operator is unknown, lacks its source or is "next" of a causal model.
    """
    operator_of(operator, causal=causal, source=source)
    return None if source is None else source.given(encodings, inputs)


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
    """The cuts of each layer on inputs of one length; operators on heads are passed over.

    Args:
        causal: whether no query sees a later key.

    Returns:
        Layers without a cut are left out.

    Raises:
        InterventionError: a renormalised knockout leaves a query without a key, or a layer does not exist.
        InputError: a head does not exist.
    """
    cuts: dict[int, list[Cut]] = {}
    for knockout in interventions:
        if not isinstance(knockout, Knockout):
            continue
        edges = torch.stack([knockout.edges(encoding) for encoding in some])
        if knockout.renormalised:
            _keys_are_left(edges, some, causal=causal)
        chosen = knockout.heads
        if chosen is not None:
            chosen = frozenset(head.within(layers, heads) for head in chosen)
        for layer in sorted(knockout.layers):
            if not 0 <= layer < layers:
                raise InterventionError(f"Edges are cut in layers 1 to {layers}; layer {layer + 1} was named.")
            row = torch.ones(1, heads, dtype=torch.bool) if chosen is None else _row(chosen, layer, heads)
            cuts.setdefault(layer, []).append(Cut(edges[:, None], row[:, :, None, None], knockout.renormalised))
    return cuts


def _keys_are_left(edges: Bool[Tensor, "batch query key"], some: Sequence[Encoding], *, causal: bool) -> None:
    visible = torch.ones_like(edges).tril() if causal else torch.ones_like(edges)
    empty = (~(visible & ~edges).any(-1)).nonzero()
    if len(empty):
        row, query = empty[0].tolist()
        raise InterventionError(
            f'A knockout must leave every query a key; position {query + 1} ("{some[row].tokens[query]}") of "'
            f'{some[row].text[:40]}" is left none: cut fewer edges, or do not renormalise.'
        )


def known_operator(name: str) -> str:
    """The name of an operator that a user may ask for. Raises InterventionError for any other."""
    if name not in (*OPERATORS, *FROM_REFERENCE):
        known = ", ".join((*OPERATORS, *FROM_REFERENCE))
        raise InterventionError(f"An operator is one of {known}; {name!r} is none of them.")
    return name


def operator_of(name: str, *, causal: bool, source: StandInSource | None = None) -> Operator:
    """An operator by name. Raises InterventionError for an unknown one, for "next" on causal models, and for one that
    lacks its source."""
    if source is not None and source.operator == name:
        return cast(Operator, name)
    if name in FROM_REFERENCE or source is not None:
        other = f"that of {source.operator}" if source is not None else "none"
        raise InterventionError(
            f'The operator "{name}" takes what stands in from its own reference inputs; it was given {other}: '
            "name rows to take it from."
        )
    known_operator(name)
    if name == "next" and causal:
        raise InterventionError(
            'A causal model cannot look at the next token, so "next" is undefined for it: choose '
            '"previous", "current" or "first".'
        )
    return cast(Operator, name)


def refuse_across(changes: Iterable[Intervention | Knockout], part: str) -> None:
    """Raises InterventionError for operators that a part of an encoder-decoder has no place for.

    Cross attention has no positions of the query's own sentence, and none of the parts takes outputs from a source.
    """
    for change in changes:
        if isinstance(change, Knockout) or not part:
            continue
        if part == "cross" and change.operator in _OFFSETS:
            raise InterventionError(
                f"Cross attention looks at another sentence, where there is no {change.operator} token of its own: "
                "choose disable, zero or first."
            )
        if change.source is not None:
            raise InterventionError(
                f'The operator "{change.operator}" takes outputs of inputs of one sentence; an encoder-decoder has '
                "two: choose disable or zero."
            )


def visible_keys(
    mask: Tensor | None, weights: Float[Tensor, "batch head query key"]
) -> Bool[Tensor, "rows 1 query key"]:
    """Which keys each query may see, read off the mask.

    Args:
        mask: added to scores, or True where a key is seen; None: all are seen. Columns beyond the weights' keys are not
            read. *Shape:* (batch or 1, 1, query or 1, key or more).
        weights: whose queries and keys it is about; their numbers are not read.

    Returns:
        True where a key is seen; rows are the batch's inputs, or 1 for all of them.
    """
    if mask is None:
        return torch.ones(1, 1, *weights.shape[2:], dtype=torch.bool, device=weights.device)
    cropped = mask[..., : weights.shape[-1]]
    seen = cropped if cropped.dtype == torch.bool else cropped > torch.finfo(cropped.dtype).min / 2
    return seen.expand(-1, -1, weights.shape[2], -1)


def changed(
    weights: Float[Tensor, "batch head query key"], head_change: HeadChange, visible: Bool[Tensor, "rows 1 query key"]
) -> Float[Tensor, "batch head query key"]:
    """A copy of the weights with the changed heads' rows replaced.

    Args:
        weights: after the softmax, without a sink's column.
        head_change: an operator on attention: disable, previous, current, next or first.
        visible: which keys a query sees; rows: the batch's inputs, or 1.

    Returns:
        In the dtype of `weights`; rows that are replaced sum to 1.
    """
    fixed = uniform(visible) if head_change.operator == "disable" else pointing(head_change.operator, visible)
    return torch.where(head_change.heads.to(weights.device)[:, :, None, None], fixed.to(weights.dtype), weights)


def uniform(visible: Bool[Tensor, "rows 1 query key"]) -> Float[Tensor, "rows 1 query key"]:
    """1 / (number of visible keys) on each visible key.

    Returns:
        Float32. *Range:* 0 to 1; rows sum to 1, or to 0 where no key is visible.
    """
    counts = visible.sum(-1, keepdim=True).clamp(min=1)
    return visible.float() / counts


def pointing(operator: str, visible: Bool[Tensor, "rows 1 query key"]) -> Float[Tensor, "rows 1 query key"]:
    """All weight on the previous, current, next or first token; on the token itself where that is none or not visible.

    Args:
        operator: "previous", "current", "next" or "first".

    Returns:
        Float32, 1 on one key of each row and 0 on all others.
    """
    length = visible.shape[-1]
    own = torch.arange(visible.shape[-2], device=visible.device)  # cross attention has other keys, and only "first"
    target = torch.zeros_like(own) if operator == "first" else own + _OFFSETS[operator]
    missing = (target < 0) | (target >= length)
    target = torch.where(missing, own, target)
    pointed = torch.nn.functional.one_hot(target, length).bool().expand(visible.shape)
    seen = (pointed & visible).any(-1, keepdim=True)
    itself = torch.eye(len(own), length, dtype=torch.bool, device=visible.device)
    return torch.where(seen, pointed, itself).float()
