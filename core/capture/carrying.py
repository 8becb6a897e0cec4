"""Tensors that are sums of named contributions, carried through a forward pass by every operation that is linear.

`Carrying` watches torch's functions while a model runs. A tensor that is a sum of contributions carries a `Sum`; what
is linear in it gives a sum again, what is not (an activation, a softmax, the scale of a LayerNorm) gives plain numbers,
as the run has them. `core.capture.contributions` reads queries and keys from it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from core.capture.contributors import BIAS, LAST_BIAS, Component

Role = Literal["stream", "heads", "branch"]


@dataclass(frozen=True)
class FrozenNorm:
    """A LayerNorm (or RMSNorm) whose scale was held: its input as contributions, for what holding it hides.

    Attributes:
        components: who wrote each contribution.
        parts: its input. *Shape:* (component, batch, position, hidden).
        is_centred: whether the norm takes the mean away (LayerNorm) or not (RMSNorm).
    """

    components: tuple[Component, ...]
    parts: Float[Tensor, "component batch position hidden"]
    is_centred: bool

    def scale_ratio(
        self, component: Component, replacement: Float[Tensor, " hidden"]
    ) -> Float[Tensor, "batch position"]:
        """Its held scale over the one that it would have with a contribution replaced by a constant.

        The norm's output then is its held output times this ratio. Range: above 0.
        """
        whole, part = self.parts.sum(0), self.parts[self.components.index(component)]
        return self._spread(whole - part + replacement).reciprocal() * self._spread(whole)

    def _spread(self, states: Tensor) -> Tensor:
        states = states - states.mean(-1, keepdim=True) if self.is_centred else states
        return states.pow(2).mean(-1).sqrt().clamp(min=1e-12)


class Sum:
    """A tensor as a sum of contributions, made when they are first asked for.

    Attributes:
        components: who wrote each.
        role: "stream" (the residual stream, or a part of it), "heads" (a block's output by head), "branch" (a
            projection of the stream: queries, keys, the inside of a feed-forward block).
        norm: the last LayerNorm that it passed, where those are wanted.
        blocks: of role "heads", the block's whole output by head, whose slices the contributions are; None where they
            are no slices. *Shape:* (batch, query, head, dim).
    """

    blocks: Tensor | None = None

    def __init__(
        self, components: tuple[Component, ...], make: Callable[[], Tensor], role: Role, norm: FrozenNorm | None = None
    ) -> None:
        self.components, self.role, self.norm = components, role, norm
        self._make: Callable[[], Tensor] | None = make
        self._parts = torch.empty(0)

    @property
    def parts(self) -> Tensor:
        """*Shape:* (component, ...)."""
        if self._make is not None:
            self._parts, self._make = self._make(), None  # what it was made from can go
        return self._parts

    def mapped(
        self, function: Callable[[Tensor], Tensor], role: Role | None = None, *, broadcasts: bool = False
    ) -> "Sum":
        """The same contributions after a linear function of each. broadcasts: it takes them all at once."""
        over_parts = function if broadcasts else torch.func.vmap(function)
        found = Sum(self.components, lambda: over_parts(self.parts), role or self.role, self.norm)
        found.blocks = self.blocks if found.role == "heads" else None
        return found

    def plus(self, other: "Sum") -> "Sum":
        """Contributions of both; those of the same component added."""
        components = tuple(dict.fromkeys((*self.components, *other.components)))

        def make() -> Tensor:
            shape = torch.broadcast_shapes(self.parts.shape[1:], other.parts.shape[1:])
            first, second = (_widened(added.parts, shape) for added in (self, other))
            whole = first.new_empty((len(components), *shape))
            whole[: len(first)] = first
            for component, part in zip(other.components, second, strict=True):
                if component in self.components:
                    whole[components.index(component)] += part
                else:
                    whole[components.index(component)] = part
            return whole

        return Sum(components, make, self.role if self.role == other.role else "stream", self.norm or other.norm)

    def normed(self, held: Callable[[Tensor, Tensor], None], bias: Tensor | None) -> "Sum":
        """The same behind a LayerNorm: its bias is the last one, and the one before joins the other constants.

        held: writes a norm of held scale of its first tensor, contributions, into its second. Streams grow with every
        layer, so nothing is copied twice.
        """
        names = list(self.components)
        last = names.index(LAST_BIAS) if LAST_BIAS in names else None
        joins = names.index(BIAS) if last is not None and BIAS in names else None
        if last is not None and joins is None:
            names[last], last = BIAS, None
        if bias is not None and last is None:
            names.append(LAST_BIAS)

        def make() -> Tensor:
            whole = self.parts.new_empty((len(names), *self.parts.shape[1:]))
            held(self.parts, whole[: len(self.components)])
            if last is not None and joins is not None:
                whole[joins] += whole[last]
            if bias is not None:
                whole[names.index(LAST_BIAS)] = bias
            elif last is not None:
                whole[last] = 0.0  # nothing is left of it
            return whole

        return Sum(tuple(names), make, self.role, self.norm)

    def settled(self) -> "Sum":
        """The same with its last bias among the other constants, because a LayerNorm follows."""
        if LAST_BIAS not in self.components:
            return self
        last = self.components.index(LAST_BIAS)
        others = [number for number in range(len(self.components)) if number != last]
        rest = Sum(tuple(self.components[k] for k in others), lambda: self.parts[others], self.role)
        return rest.plus(Sum((BIAS,), lambda: self.parts[last][None], self.role))


def _projected(
    states: Sum, weight: Float[Tensor, "hidden out"], bias: Float[Tensor, " out"], axis: int, rows: torch.Size
) -> Float[Tensor, "part *rows out"]:
    """Every contribution behind a projection, whose bias is added at `axis`: each number is written once."""
    parts = _widened(states.parts, torch.Size((*rows, weight.shape[0])))
    count = len(parts)
    whole = parts.new_empty((max(count, axis + 1), *rows, weight.shape[1]))
    torch.mm(parts.flatten(0, -2), weight, out=whole[:count].flatten(0, -2))
    if axis < count:
        whole[axis] += bias
    else:
        whole[axis] = bias
    return whole


def _by_blocks(
    blocks: Float[Tensor, "batch query head dim"], weight: Float[Tensor, "head_dim hidden"]
) -> Float[Tensor, "head batch query hidden"]:
    rows = weight.unflatten(0, blocks.shape[2:])
    return torch.stack([blocks[:, :, head] @ rows[head] for head in range(len(rows))])


def _widened(parts: Tensor, shape: torch.Size) -> Tensor:
    """Contributions to a tensor that was broadcast to this shape."""
    missing = (1,) * (len(shape) - parts.dim() + 1)
    return parts.reshape(len(parts), *missing, *parts.shape[1:]).expand(-1, *shape)


def sum_of(value: object) -> Sum | None:
    """The contributions that a tensor carries; None where it carries none."""
    return getattr(value, "contributions", None) if isinstance(value, Tensor) else None


def carry(value: Tensor, carried: Sum) -> Tensor:
    """The tensor, which carries these contributions from now on."""
    value.contributions = carried  # type: ignore[attr-defined]
    return value


def _constant(value: Tensor, component: Component, role: Role = "stream") -> Sum:
    return Sum((component,), lambda: value[None], role)


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
        part: the stack that runs, for an encoder-decoder.
        writer: who writes the next addition that carries nothing: the feed-forward block after the last attention;
            None before any.
        keeps_norms: whether sums keep the LayerNorm they passed.
        is_over: nothing is carried any more.
    """

    def __init__(self, tables: dict[int, Component], *, keeps_norms: bool = False) -> None:
        super().__init__()
        self.tables, self.keeps_norms = tables, keeps_norms
        self.part, self.is_over = "", False
        self.writer: Component | None = None

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """The function's own value; it carries contributions where those follow."""
        kwargs = kwargs or {}
        value = function(*args, **kwargs)
        name = getattr(function, "__name__", "")
        if self.is_over:
            return value
        if name == "embedding":
            table = self.tables.get(id(args[1] if len(args) > 1 else kwargs.get("weight")))
            return carry(value, _constant(value.detach(), replace(table, part=self.part))) if table else value
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
            _ = whole.parts  # made at once: what it is made from can go
        carry(value, whole)

    def _written(self, addend: Any, carried: Sum, value: Tensor) -> Sum:
        """What an addend that carries nothing is: a constant, or what the block that ran last wrote."""
        plain = torch.as_tensor(addend, dtype=value.dtype, device=value.device).expand(value.shape)
        if carried.role == "branch":
            return _constant(plain, LAST_BIAS, "branch")
        is_constant = (
            isinstance(addend, nn.Parameter) or not isinstance(addend, Tensor) or addend.numel() < value.numel()
        )
        return _constant(plain, BIAS if is_constant or self.writer is None else self.writer, carried.role)

    def _project(self, states: Sum, whole: Tensor, weight: Tensor, value: Tensor, bias: Tensor | None) -> None:
        """A matrix times the stream is a branch; before the first attention, and of heads' outputs, the stream."""
        role: Role = "branch" if states.role == "branch" or (states.role == "stream" and self.writer) else "stream"
        component = LAST_BIAS if role == "branch" else BIAS
        if states.blocks is not None and torch.equal(states.blocks.flatten(2), whole):  # each head has rows of its own
            projected = Sum(states.components, partial(_by_blocks, states.blocks, weight), role, states.norm)
        elif bias is not None:
            names = tuple(dict.fromkeys((*states.components, component)))
            make = partial(_projected, states, weight, bias, names.index(component), value.shape[:-1])
            carry(value, Sum(names, make, role, states.norm))
            return
        else:
            projected = states.mapped(lambda part: part @ weight, role, broadcasts=True)
        if bias is not None:
            projected = projected.plus(_constant(bias.expand(value.shape), component, role))
        carry(value, projected)

    def _normalise(self, name: str, states: Sum, args: tuple[Any, ...], kwargs: dict[str, Any], value: Tensor) -> None:
        """Its scale held, a norm is linear in the stream. Its bias is the last one; the one before joins the others."""
        is_centred = name == "layer_norm"
        order = ("input", "shape", "weight", "bias", "eps") if is_centred else ("input", "shape", "weight", "eps")
        arguments = dict(zip(order, args, strict=False)) | kwargs
        eps = arguments.get("eps") or (1e-5 if is_centred else torch.finfo(value.dtype).eps)
        middle = args[0] - args[0].mean(-1, keepdim=True) if is_centred else args[0]
        scale = (middle.pow(2).mean(-1, keepdim=True) + eps).rsqrt()
        scale = scale if arguments.get("weight") is None else scale * arguments["weight"]

        def held(parts: Tensor, out: Tensor) -> None:
            if is_centred:
                torch.sub(parts, parts.mean(-1, keepdim=True), out=out).mul_(scale)
            else:
                torch.mul(parts, scale, out=out)

        normed = states.normed(held, arguments.get("bias"))
        if self.keeps_norms and states.role != "branch":
            whole = states.settled()
            normed.norm = FrozenNorm(whole.components, whole.parts, is_centred)
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
