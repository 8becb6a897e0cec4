"""Tensors that are sums of named contributions, carried through a forward pass by every operation that is linear.

`Carrying` watches torch's functions while a model runs. A tensor that is a sum of contributions carries a `Sum`; what
is linear in it gives a sum again, what is not (an activation, a softmax, the scale of a LayerNorm) gives plain numbers,
as the run has them. `core.capture.contributions` reads queries and keys from it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from core.capture.contributors import BIAS, LAST_BIAS, Component
from core.capture.sums import FixedPart, FrozenNorm, HeldNorm, Role, Sum, fixed_part

BY_INPUT = 3  # axes of states that keep inputs apart: batch, position, hidden
FEW = 8  # rows of a table whose rows are carried as they stand


def sum_of(value: object) -> Sum | None:
    """The contributions that a tensor carries; None where it carries none."""
    return getattr(value, "contributions", None) if isinstance(value, Tensor) else None


def carry(value: Float[Tensor, "*axes"], carried: Sum) -> Float[Tensor, "*axes"]:
    """Mark a tensor as the sum of these contributions, until they are replaced.

    Args:
        value: the tensor, which is marked in place; its numbers stay.

    Returns:
        `value` itself.
    """
    value.contributions = carried  # type: ignore[attr-defined]
    return value


def _constant(value: Tensor, component: Component, role: Role = "stream") -> Sum:
    return Sum((component,), lambda: value[None], role)


def _fixed(parts: FixedPart, role: Role) -> Sum:
    return Sum((), lambda: torch.empty(0), role, fixed=(parts,))


def _embedded(ids: Tensor, weight: Tensor, value: Tensor, component: Component) -> Sum:
    """What a table of embeddings adds: places are the same in every row of a batch, segments are few."""
    if ids.dim() == 2 and component.kind == "position" and bool((ids == ids[:1]).all()):
        return _fixed(FixedPart(component, value[None, :1]), "stream")
    if ids.dim() == 2 and component.kind == "segment" and len(weight) <= FEW:
        seen = nn.functional.one_hot(ids, len(weight)).permute(2, 0, 1)[..., None]
        return _fixed(FixedPart(component, weight[:, None, None], seen.to(value)), "stream")
    return _constant(value, component)


def _by_blocks(
    blocks: Float[Tensor, "batch query head dim"], weight: Float[Tensor, "head_dim hidden"]
) -> Float[Tensor, "head batch query hidden"]:
    rows = weight.unflatten(0, blocks.shape[2:])
    return torch.stack([blocks[:, :, head] @ rows[head] for head in range(len(rows))])


# torch's functions that are linear in the first tensor that they are given
_SHAPES = ("view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze", "expand", "expand_as", "contiguous")
_ORDERS = (
    "transpose",
    "permute",
    "swapaxes",
    "movedim",
    "roll",
    "__getitem__",
    "narrow",
    "select",
    "repeat_interleave",
)
_COPIES = ("to", "float", "double", "type", "type_as", "detach", "clone", "neg", "__neg__", "repeat_interleave")
_LINEAR = frozenset((*_SHAPES, *_ORDERS, *_COPIES))
_SPLITS = frozenset(("chunk", "split", "unbind", "tensor_split"))
_JOINS = frozenset(("cat", "concat"))
_PRODUCTS = frozenset(("mul", "__mul__", "__rmul__", "multiply"))
_QUOTIENTS = frozenset(("div", "__truediv__", "true_divide"))
_ADDITIONS = frozenset(("add", "__add__", "__radd__"))


class Carrying(TorchFunctionMode):
    """Watches a forward pass and carries contributions along.

    Attributes:
        tables: whose rows a table of embeddings holds, by the id of its weights.
        writer: who writes the next addition that carries nothing: the feed-forward block after the last attention;
            None before any.
        keeps_norms: whether sums keep the LayerNorm they passed.
        spares: one contribution to each branch is computed for the first input alone, to be told by difference.
    """

    def __init__(self, tables: dict[int, Component], *, keeps_norms: bool = False) -> None:
        super().__init__()
        self.tables, self.keeps_norms = tables, keeps_norms
        self.part, self.spares = "", False
        self.writer: Component | None = None

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """The function's own value; it carries contributions where those follow."""
        kwargs = kwargs or {}
        value = function(*args, **kwargs)
        name = getattr(function, "__name__", "")
        if name == "embedding":
            table = self.tables.get(id(args[1] if len(args) > 1 else kwargs.get("weight")))
            if table is None:
                return value
            weight = args[1] if len(args) > 1 else kwargs["weight"]
            return carry(value, _embedded(args[0], weight.detach(), value.detach(), replace(table, part=self.part)))
        if any(sum_of(argument) for argument in _flat((*args, *kwargs.values()))):
            self._follow(name, function, args, kwargs, value)
        return value

    def _follow(self, name: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], value: Any) -> None:
        first = sum_of(args[0]) if args else None
        if name in _JOINS:
            _join(function, args, kwargs, value)
        elif name in _PRODUCTS or name in _QUOTIENTS:
            _scale(function, args, value, is_product=name in _PRODUCTS)
        elif name in _ADDITIONS and not kwargs:
            self._add(args, value)
        elif name == "addmm" and (states := sum_of(args[1])):
            self._project(states, args[1], args[2], value, args[0])
        elif first is None or value is args[0]:  # e.g. contiguous() of what lies so: it carries them already
            return
        elif name in _LINEAR and isinstance(value, Tensor) and value.is_floating_point():
            carry(value, first.mapped(lambda part: function(part, *args[1:], **kwargs)))
        elif name in _SPLITS:
            for number, piece in enumerate(value):
                carry(piece, first.mapped(partial(_piece, function, args[1:], kwargs, number)))
        elif name == "dropout" and value.data_ptr() == args[0].data_ptr():  # outside of training it changes nothing
            carry(value, first)
        elif name == "linear":
            bias = args[2] if len(args) > 2 else kwargs.get("bias")
            self._project(first, args[0], args[1].mT, value, bias)
        elif name in ("layer_norm", "rms_norm"):
            self._normalise(name, first, args, kwargs, value)

    def _add(self, args: tuple[Any, ...], value: Tensor) -> None:
        left, right = sum_of(args[0]), sum_of(args[1])
        if left and right and left.role != right.role and "branch" in (left.role, right.role):
            # a feed-forward block whose inside is linear in the stream once its gate is held: one contribution
            left, right = (left, None) if right.role == "branch" else (None, right)
        carried = left or right
        if carried is None:
            return
        whole = (
            left.plus(right) if left and right else carried.plus(self._written(args[1 if left else 0], carried, value))
        )
        if whole.role == "stream":
            _ = whole.chunks  # made at once: what it is made from can go
        carry(value, whole)

    def _written(self, addend: Any, carried: Sum, value: Tensor) -> Sum:
        """What an addend that carries nothing is: a constant, or what the block that ran last wrote."""
        plain = torch.as_tensor(addend, dtype=value.dtype, device=value.device).detach()
        if carried.role == "branch":
            return _constant(plain.expand(value.shape), LAST_BIAS, "branch")
        is_constant = (
            isinstance(addend, nn.Parameter) or not isinstance(addend, Tensor) or addend.numel() < value.numel()
        )
        component = BIAS if is_constant or self.writer is None else self.writer
        if plain.dim() == 1 and component == BIAS:
            return _fixed(fixed_part(BIAS, plain, value.dim()), carried.role)
        return _constant(plain.expand(value.shape), component, carried.role)

    def _project(self, states: Sum, whole: Tensor, weight: Tensor, value: Tensor, bias: Tensor | None) -> None:
        """A matrix times the stream is a branch; before the first attention, and of heads' outputs, the stream."""
        role: Role = "branch" if states.role == "branch" or (states.role == "stream" and self.writer) else "stream"
        component = LAST_BIAS if role == "branch" else BIAS
        added = None if bias is None else fixed_part(component, bias.detach(), value.dim())
        if states.blocks is not None and torch.equal(states.blocks.flatten(2), whole):  # each head has rows of its own
            projected = Sum(states.components, partial(_by_blocks, states.blocks, weight), role, states.norm)
        elif states.role == "heads" and len(states.components) == 1:  # the block's own output, which the run has
            plain = value.detach() if bias is None else value.detach() - bias.detach()
            projected = _constant(plain, states.components[0], role)
        elif role == "branch":
            spares = self.spares and value.dim() == BY_INPUT
            projected, added = states.projected(weight, added, role, spares=spares), None
        else:
            projected = states.behind(weight, role)
        carry(value, projected if added is None else projected.with_fixed((*projected.fixed, added)))

    def _normalise(self, name: str, states: Sum, args: tuple[Any, ...], kwargs: dict[str, Any], value: Tensor) -> None:
        """Its scale held, a norm is linear in the stream. Its bias is the last one; the one before joins the others."""
        is_centred = name == "layer_norm"
        order = ("input", "shape", "weight", "bias", "eps") if is_centred else ("input", "shape", "weight", "eps")
        arguments = dict(zip(order, args, strict=False)) | kwargs
        eps = arguments.get("eps") or (1e-5 if is_centred else torch.finfo(value.dtype).eps)
        middle = args[0] - args[0].mean(-1, keepdim=True) if is_centred else args[0]
        scale = (middle.pow(2).mean(-1, keepdim=True) + eps).rsqrt()
        normed = states.normed(HeldNorm(is_centred, scale, arguments.get("weight")), arguments.get("bias"))
        if self.keeps_norms and states.role != "branch":
            whole = states.settled()
            normed.norm = FrozenNorm(whole.components, whole.parts, is_centred, eps)
        carry(value, normed)


def _piece(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], number: int, part: Tensor) -> Tensor:
    return function(part, *args, **kwargs)[number]


def _join(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], value: Tensor) -> None:
    pieces = [piece for piece in map(sum_of, args[0]) if piece is not None]
    if len(pieces) < len(args[0]) or any(piece.components != pieces[0].components for piece in pieces):
        return

    def make() -> Tensor:
        join = torch.func.vmap(lambda *parts: function(parts, *args[1:], **kwargs))
        return join(*(piece.parts for piece in pieces))

    carry(value, Sum(pieces[0].components, make, pieces[0].role, pieces[0].norm))


def _scale(function: Any, args: tuple[Any, ...], value: Tensor, *, is_product: bool) -> None:
    left, right = sum_of(args[0]), sum_of(args[1])
    if left and not right:
        carry(value, left.mapped(lambda part: function(part, args[1]), broadcasts=_fits(args[0], value)))
    elif right and not left and is_product:
        carry(value, right.mapped(lambda part: function(part, args[0]), broadcasts=_fits(args[1], value)))


def _fits(factor: Tensor, value: Tensor) -> bool:
    """Whether contributions stand before all axes of the product, so that none meets another axis."""
    return factor.dim() == value.dim()


def _flat(values: Sequence[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from value
        else:
            yield value
