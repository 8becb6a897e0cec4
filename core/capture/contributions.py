"""Queries and keys of every head as sums of named contributions: embeddings, heads and feed-forward sublayers.

With the scale of every LayerNorm fixed to its value in the run, the residual stream is a sum of what each component
wrote, also for BERT with its LayerNorms in the stream (Elhage et al. 2021). `Carrying` tracks this sum through the
forward pass, so no table of families is needed. If the contributions do not add up to the actual queries and keys, the
family is refused.
"""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeGuard

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ..errors import InterventionError
from ..models.checkpoint import Checkpoint
from ..models.encoding import Encoding
from ..models.head_sets import HeadSet
from .contributors import BIAS, LAST_BIAS, Contributor
from .function import BEYOND_SDPA, AttentionRun
from .interventions import visible_keys
from .reach import is_interceptable
from .running import BATCH_TOKENS, batches, prepared
from .sums import FixedPart, FrozenNorm, HeldNorm, Role, Sum, fixed_part

# -------------------- Tensors that are sums of named contributions, carried through a forward pass by every


BY_INPUT = 3  # axes of states with separate inputs: batch, position, hidden
FEW = 8  # largest segment table that is factored into weights and a 0/1 mask


def sum_of(value: object) -> Sum | None:
    """Return the contributions that are stored with a tensor and add up to it; None if there are none."""
    return getattr(value, "contributions", None) if isinstance(value, Tensor) else None


def carry(value: Float[Tensor, "*axes"], carried: Sum) -> Float[Tensor, "*axes"]:
    """Attach to a tensor the contributions that add up to it, and return the tensor."""
    value.contributions = carried  # type: ignore[attr-defined]
    return value


def _constant(value: Tensor, component: Contributor, role: Role = "stream") -> Sum:
    return Sum((component,), lambda: value[None], role)


def _fixed(parts: FixedPart, role: Role) -> Sum:
    return Sum((), lambda: torch.empty(0), role, fixed=(parts,))


def _embedded(ids: Tensor, weight: Tensor, value: Tensor, component: Contributor) -> Sum:
    """Return the contribution of an embedding table. Positions are equal in all rows of a batch; segments are few."""
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


# functions of torch that are linear in their first tensor
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
    """A Torch function mode that represents the tensors in a forward pass as sums of contributions by components.

    Attributes:
        tables: the component of each embedding table, by the id of its weights.
        writer: the component of the next addend without contributions: the feed-forward sublayer after the last
            attention call; None before the first.
        keeps_norms: whether sums store the LayerNorm that was applied to them.
        spares: compute one contribution to each branch for the first input only; for other inputs it is the remainder.
    """

    def __init__(self, tables: dict[int, Contributor], *, keeps_norms: bool = False) -> None:
        super().__init__()
        self.tables, self.keeps_norms = tables, keeps_norms
        self.part, self.spares = "", False
        self.writer: Contributor | None = None

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
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
            left, right = sum_of(args[0]), sum_of(args[1])
            if left and not right:
                carry(value, left.mapped(lambda part: function(part, args[1]), broadcasts=_fits(args[0], value)))
            elif right and not left and name in _PRODUCTS:
                carry(value, right.mapped(lambda part: function(part, args[0]), broadcasts=_fits(args[1], value)))
        elif name in _ADDITIONS and not kwargs:
            self._add(args, value)
        elif name == "addmm" and (states := sum_of(args[1])):
            self._project(states, args[1], args[2], value, args[0])
        elif first is None or value is args[0]:  # e.g. contiguous() of a contiguous tensor, which carries them already
            return
        elif name in _LINEAR and isinstance(value, Tensor) and value.is_floating_point():
            carry(value, first.mapped(lambda part: function(part, *args[1:], **kwargs)))
        elif name in _SPLITS:
            for number, piece in enumerate(value):

                def piece_of(part: Tensor, number: int = number) -> Tensor:
                    return function(part, *args[1:], **kwargs)[number]

                carry(piece, first.mapped(piece_of))
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
            _ = whole.chunks  # computed now so that its sources can be freed
        carry(value, whole)

    def _written(self, addend: Any, carried: Sum, value: Tensor) -> Sum:
        """Return the contribution of an addend that carries none: a constant, or the output of the last sublayer."""
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
        """A matrix product of the stream is a branch; before the first attention and for heads' outputs, the stream."""
        role: Role = "branch" if states.role == "branch" or (states.role == "stream" and self.writer) else "stream"
        component = LAST_BIAS if role == "branch" else BIAS
        added = None if bias is None else fixed_part(component, bias.detach(), value.dim())
        if states.blocks is not None and torch.equal(states.blocks.flatten(2), whole):  # each head has its own rows
            projected = Sum(states.components, partial(_by_blocks, states.blocks, weight), role, states.norm)
        elif states.role == "heads" and len(states.components) == 1:  # the block's own output, which the run has
            plain = value.detach() if bias is None else value.detach() - bias.detach()
            projected = _constant(plain, states.components[0], role)
        elif role == "branch":
            spares = self.spares and value.dim() == BY_INPUT
            projected, added = states.projected(weight, added, role, spares=spares), None
        else:
            projected = states.times(weight, role)
        carry(value, projected if added is None else projected.with_fixed((*projected.fixed, added)))

    def _normalise(self, name: str, states: Sum, args: tuple[Any, ...], kwargs: dict[str, Any], value: Tensor) -> None:
        """A norm with fixed scale is linear. Its bias becomes the last bias; the previous one joins the constants."""
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


def _join(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], value: Tensor) -> None:
    pieces = [piece for piece in map(sum_of, args[0]) if piece is not None]
    if len(pieces) < len(args[0]) or any(piece.components != pieces[0].components for piece in pieces):
        return

    def make() -> Tensor:
        join = torch.func.vmap(lambda *parts: function(parts, *args[1:], **kwargs))
        return join(*(piece.parts for piece in pieces))

    carry(value, Sum(pieces[0].components, make, pieces[0].role, pieces[0].norm))


def _fits(factor: Tensor, value: Tensor) -> bool:
    """Return whether the contribution axis precedes all axes of the product."""
    return factor.dim() == value.dim()


def _flat(values: Sequence[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from value
        else:
            yield value


EXACT_DTYPES = ("float32", "float64")
TOLERANCE = 1e-4  # of a row's largest |score|; beyond it a family is not exact (rounding is a hundredth of it)


@dataclass(frozen=True)
class HeadInputs:
    """Queries and keys of one layer, for inputs of equal length. Each is stored as a sum of contributions.

    Attributes:
        part: the set of heads; "" if there is only one.
        query: before scaling. *Shape:* (component, batch, head, query, dim).
        key: keys shared by heads are repeated for each head. At index `left_over`, `query` and `key` hold the whole
            query or key instead of a contribution.
        bias: position bias added to the scores (T5). *Shape:* (batch or 1, head, query, key), or None.
        visible: which keys a query may attend to. *Shape:* (batch or 1, head or 1, query, key).
        left_over: for query and key, index of the contribution that is the remainder; None if all were computed.
    """

    layer: int
    part: str
    query_components: tuple[Contributor, ...]
    key_components: tuple[Contributor, ...]
    query: Float[Tensor, "query_component batch head query dim"]
    key: Float[Tensor, "key_component batch head key dim"]
    scaling: float
    bias: Float[Tensor, "_ head query key"] | None
    visible: Bool[Tensor, "_ _ query key"]
    query_norm: FrozenNorm | None = None
    key_norm: FrozenNorm | None = None
    left_over: tuple[int, int] | None = None

    @cached_property
    def whole_query(self) -> Float[Tensor, "batch head query dim"]:
        return self.query.sum(0) if self.left_over is None else self.query[self.left_over[0]]

    @cached_property
    def whole_key(self) -> Float[Tensor, "batch head key dim"]:
        return self.key.sum(0) if self.left_over is None else self.key[self.left_over[1]]

    @cached_property
    def scores(self) -> Float[Tensor, "batch head query key"]:
        """Return the attention scores before the softmax, including the scores of masked keys."""
        products = self.whole_query @ self.whole_key.mT * self.scaling
        return products if self.bias is None else products + self.bias

    @cached_property
    def weights(self) -> Float[Tensor, "batch head query key"]:
        """Return the attention weights, recomputed from contributions. Each row sums to 1."""
        return torch.softmax(self.scores.masked_fill(~self.visible, -math.inf), -1)


Take = Callable[[HeadInputs, list[int]], None]


def take_head_inputs(
    checkpoint: Checkpoint,
    encodings: Sequence[Encoding],
    take: Take,
    *,
    layers: Collection[int] | None = None,
    part: str = "",
    by_head: bool = False,
    norms: bool = False,
    by_difference: bool = False,
) -> None:
    """Compute the queries and keys of every layer as sums of contributions by earlier components. Pass them to `take`,
    batch by batch.

    The checkpoint must use the attention interface of transformers, in float32 or float64. Raises InterventionError if
    the contributions do not add up exactly.

    Args:
        by_head: one contribution per earlier head, instead of one per attention sublayer.
        by_difference: compute one contribution as the remainder (`HeadInputs.left_over`), except for the first input of
            each batch, on which exactness is checked.
    """
    kind = checkpoint.family.model_type
    if not is_interceptable(checkpoint):
        raise InterventionError(
            "Attention scores can be decomposed only in models that use the attention interface of transformers; "
            f"{kind} models do not use it. Choose another checkpoint."
        )
    if checkpoint.dtype not in EXACT_DTYPES:
        raise InterventionError(
            f"Attention scores can be decomposed only in float32 or float64; {checkpoint.name} has been opened in "
            f"{checkpoint.dtype}. Open it in float32."
        )
    heads = checkpoint.head_set(part)
    wanted = frozenset(range(heads.layers) if layers is None else layers)
    for inputs in batches(encodings, BATCH_TOKENS // 4):
        batch = [encodings[k] for k in inputs]
        reading = _Reading(checkpoint, heads, wanted, by_head, norms, take, inputs)
        reading.carrying.spares = by_difference
        with torch.no_grad(), ExitStack() as stack:
            run = stack.enter_context(prepared(checkpoint, some=batch, inputs=inputs))
            reading.run, run.opener, run.mixer = run, reading.pass_inputs, reading.split
            for module in checkpoint.model.modules() if norms else ():
                if "Norm" in type(module).__name__ and not isinstance(module, nn.LayerNorm | nn.RMSNorm):
                    stack.callback(module.register_forward_hook(_keep_norm).remove)
            tensors = checkpoint.inputs(batch)
            stack.enter_context(suppress(_Enough))
            stack.enter_context(reading.carrying)
            checkpoint.model(**tensors, **({} if heads.part == "" and not heads.causal else {"use_cache": False}))


class _Enough(Exception):  # noqa: N818 - an end, not an error
    """No later layer is needed; ends the forward pass."""


class _Reading:
    """Reads queries and keys of one forward pass, and marks heads' outputs as contributions."""

    def __init__(
        self, checkpoint: Checkpoint, heads: HeadSet, layers: frozenset[int], by_head: bool, norms: bool,
        take: Take, inputs: list[int],
    ) -> None:  # fmt: skip
        self.checkpoint, self.heads, self.by_head, self.take, self.inputs = checkpoint, heads, by_head, take, inputs
        self.wanted = {heads.call(layer): layer for layer in layers}
        self.carrying = Carrying(_tables(checkpoint), keeps_norms=norms)
        self.carrying.part = checkpoint.sets[0].part
        self.run = AttentionRun(checkpoint.calls)  # the pass's own, once it exists

    def pass_inputs(self, call: int, query: Tensor, key: Tensor, mask: Tensor | None, about: dict[str, Any]) -> None:
        """Compute the queries and keys of a layer as sums of contributions, and pass them to `take`."""
        with torch._C.DisableTorchFunction():
            if call in self.wanted:
                self.take(self._inputs(call, query, key, mask, about), self.inputs)
        if call >= max(self.wanted, default=-1):
            self.run.ended = True
            raise _Enough

    def split(self, call: int, output: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
        """Store the head outputs of a layer as contributions: one per head if `by_head`, otherwise one for all."""
        heads = next(head_set for head_set in self.checkpoint.sets if call in head_set.calls)
        layer = heads.layer_of(call)
        stack = "decoder" if heads.part == "cross" else heads.part
        self.carrying.writer = Contributor("feed-forward", layer, part=stack)
        if call + 1 == len(self.checkpoint.sets[0].calls) and heads.part == "encoder":
            self.carrying.part = "decoder"
        plain = output.detach()  # detached: a reference cycle would keep the tensor alive after its batch
        if self.by_head:
            names = tuple(Contributor("head", layer, head, heads.part) for head in range(heads.heads))
            own = torch.eye(heads.heads, dtype=plain.dtype, device=plain.device)[:, None, None, :, None]
            by_head = Sum(names, lambda: plain[None] * own, "heads")
            by_head.blocks = plain
            return carry(output, by_head)
        return carry(output, Sum((Contributor("attention", layer, part=heads.part),), lambda: plain[None], "heads"))

    def _inputs(self, call: int, query: Tensor, key: Tensor, mask: Tensor | None, about: dict[str, Any]) -> HeadInputs:
        queries, keys = sum_of(query), sum_of(key)
        if (
            not self._is_whole(queries)
            or not self._is_whole(keys)
            or any(about.get(name) is not None for name in BEYOND_SDPA)
        ):
            raise self._not_exact()
        scaling = query.shape[-1] ** -0.5 if about.get("scaling") is None else about["scaling"]
        groups, places = query.shape[1] // key.shape[1], None
        checked = 1 if self.carrying.spares else len(query)
        parts, key_parts, whole_key = queries.parts, _repeated(keys.parts, groups, 2), _repeated(key, groups, 1)
        self._check(parts[:, :checked], key_parts[:, :checked], query[:checked], whole_key[:checked])
        if self.carrying.spares:
            places = _left_over(queries), _left_over(keys)
            parts[places[0]], key_parts[places[1]] = query, whole_key
        shown = query[:1, :1, :, :1].expand(-1, -1, -1, key.shape[2])
        return HeadInputs(
            self.wanted[call], self.heads.part, _names(queries), _names(keys), parts, key_parts, scaling,
            about.get("position_bias"), visible_keys(mask, shown), queries.norm, keys.norm, places,
        )  # fmt: skip

    def _check(self, query_parts: Tensor, key_parts: Tensor, query: Tensor, key: Tensor) -> None:
        """Raise InterventionError if the contributions do not add up to the scores."""
        scores = query @ key.mT
        gap = (query_parts.sum(0) @ key_parts.sum(0).mT - scores).abs().amax(-1) / scores.abs().amax(-1).clamp(min=1e-9)
        if not float(gap.max()) <= TOLERANCE:
            raise self._not_exact()

    def _is_whole(self, states: Sum | None) -> TypeGuard[Sum]:
        """Return whether every earlier sublayer is separate; a sublayer that narrows the stream is not."""
        if states is None:
            return False
        components = [part for part in states.components if part.part == states.components[0].part]
        return {part.layer for part in components if part.kind in ("head", "attention")} >= {
            part.layer for part in components if part.kind == "feed-forward"
        }

    def _not_exact(self) -> InterventionError:
        return InterventionError(
            "Attention scores can be decomposed only if contributions by components add up to the scores; in "
            f"{self.checkpoint.family.model_type} models, their sum differs. Choose a checkpoint like BERT, RoBERTa, "
            "GPT-2 or LLaMA in float32."
        )


def _names(states: Sum) -> tuple[Contributor, ...]:
    return tuple(replace(component, is_spared=False) for component in states.components)


def _left_over(states: Sum) -> int:
    """Return the index of the contribution that is the remainder."""
    return next((number for number, part in enumerate(states.components) if part.is_spared), 0)


def _repeated(states: Tensor, groups: int, axis: int) -> Tensor:
    return states if groups == 1 else states.repeat_interleave(groups, axis)


def _tables(checkpoint: Checkpoint) -> dict[int, Contributor]:
    """Return the component of each embedding table by the id of its weights, recognised by its name in the model."""
    tables = {}
    words = checkpoint.model.get_input_embeddings()
    for name, module in checkpoint.model.named_modules():
        last = name.rsplit(".", 1)[-1]
        if isinstance(module, nn.Embedding):
            is_position = module is not words and ("pos" in last or last == "wpe")
            is_segment = "type" in last or "segment" in last
            tables[id(module.weight)] = Contributor("position" if is_position else "segment" if is_segment else "token")
    return tables


def has_position_embeddings(checkpoint: Checkpoint) -> bool:
    """Return whether the model adds position embeddings to word embeddings as separate contributions."""
    return any(table.kind == "position" for table in _tables(checkpoint).values())


def _keep_norm(module: nn.Module, arguments: tuple[Any, ...], output: Any) -> None:
    states, normed = sum_of(arguments[0]), sum_of(output)
    if states and normed and states.role != "branch":
        eps = getattr(module, "variance_epsilon", getattr(module, "eps", 0.0))  # transformers' two names for it
        normed.norm = FrozenNorm(states.components, states.parts, is_centred=False, eps=float(eps))
