"""Interventions on attention: what a disabled, zeroed or replaced head does instead. See design.md, "Words".

`Intervention` is what a user asks for; `Touch` is the same for one layer, with a row of heads per input, so that
one batch may hold the same input under many interventions.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, cast, get_args

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from core.attention import Head
from core.errors import InterventionError

Operator = Literal["disable", "zero", "previous", "current", "next", "first"]
OPERATORS: tuple[str, ...] = get_args(Operator)
_OFFSETS = {"previous": -1, "current": 0, "next": 1}


@dataclass(frozen=True)
class Intervention:
    """An operator on a set of heads.

    disable: attention uniform over the visible keys (1/L; causal 1/(i+1); Kovaleva et al. section 4.6).
    zero: the head's output times 0 (Michel et al.). previous, current, next, first: all attention on that token,
    on the token itself where it is missing or not visible (Raganato et al.).
    """

    operator: Operator
    heads: frozenset[Head]


@dataclass(frozen=True)
class Touch:
    """One operator in one layer. heads [1 or batch, head]: whose attention is changed, per input of the batch."""

    operator: Operator
    heads: Bool[Tensor, "rows head"]


def touches_of(
    interventions: Iterable[Intervention], *, layers: int, heads: int, causal: bool
) -> dict[int, list[Touch]]:
    """The touches of each layer. Raises InterventionError for unknown operators, heads twice, and "next" on causal
    models; InputError for heads that do not exist."""
    found: dict[int, list[Touch]] = {}
    seen: set[Head] = set()
    for intervention in interventions:
        operator_of(intervention.operator, causal=causal)
        for layer in sorted({head.within(layers, heads).layer for head in intervention.heads}):
            row = torch.zeros(1, heads, dtype=torch.bool)
            row[0, [head.head for head in intervention.heads if head.layer == layer]] = True
            found.setdefault(layer, []).append(Touch(intervention.operator, row))
        if twice := seen & intervention.heads:
            raise InterventionError(f"A head takes one operator at a time; {min(twice)} was given two: keep one.")
        seen |= intervention.heads
    return found


def operator_of(name: str, *, causal: bool) -> Operator:
    """An operator by name. Raises InterventionError for an unknown one, and for "next" on causal models."""
    if name not in OPERATORS:
        raise InterventionError(f"An operator is one of {', '.join(OPERATORS)}; {name!r} is none of them.")
    if name == "next" and causal:
        raise InterventionError(
            'A causal model cannot look at the next token, so "next" is undefined for it: choose '
            '"previous", "current" or "first".'
        )
    return cast(Operator, name)


def visible_keys(
    mask: Tensor | None, weights: Float[Tensor, "batch head query key"]
) -> Bool[Tensor, "rows 1 query key"]:
    """Which keys each query may see, read off the additive mask (None: all)."""
    if mask is None:
        return torch.ones(1, 1, *weights.shape[2:], dtype=torch.bool, device=weights.device)
    cropped = mask[..., : weights.shape[-1]]
    seen = cropped if cropped.dtype == torch.bool else cropped > torch.finfo(cropped.dtype).min / 2
    return seen.expand(-1, -1, weights.shape[2], -1)


def changed(
    weights: Float[Tensor, "batch head query key"], touch: Touch, visible: Bool[Tensor, "rows 1 query key"]
) -> Float[Tensor, "batch head query key"]:
    """A copy of the weights with the touched heads' rows replaced."""
    fixed = uniform(visible) if touch.operator == "disable" else pointing(touch.operator, visible)
    return torch.where(touch.heads.to(weights.device)[:, :, None, None], fixed.to(weights.dtype), weights)


def uniform(visible: Bool[Tensor, "rows 1 query key"]) -> Float[Tensor, "rows 1 query key"]:
    """1 / (number of visible keys) on each visible key. Range 0 to 1; rows sum to 1."""
    counts = visible.sum(-1, keepdim=True).clamp(min=1)
    return visible.float() / counts


def pointing(operator: str, visible: Bool[Tensor, "rows 1 query key"]) -> Float[Tensor, "rows 1 query key"]:
    """All weight on the previous, current, next or first token; on the token itself where that is not visible."""
    length = visible.shape[-1]
    own = torch.arange(length, device=visible.device)
    target = torch.zeros_like(own) if operator == "first" else own + _OFFSETS[operator]
    missing = (target < 0) | (target >= length)
    target = torch.where(missing, own, target)
    pointed = torch.nn.functional.one_hot(target, length).bool().expand(visible.shape)
    seen = (pointed & visible).any(-1, keepdim=True)
    itself = torch.eye(length, dtype=torch.bool, device=visible.device)
    return torch.where(seen, pointed, itself).float()
