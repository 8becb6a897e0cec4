"""What reaches every head's queries and keys, as a sum of named contributions: embeddings, heads, feed-forward blocks.

With the scale of every LayerNorm held as the run has it, a Transformer's residual stream is a sum of what each
component wrote, also in BERT's order, where LayerNorms stand in the stream (Elhage et al. 2021). No table of families
says where the stream is: `core.capture.carrying` follows it through the forward pass. A sum that does not add up to
what the head really saw belongs to a family that cannot be taken apart; it is refused.
"""

import math
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeGuard

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from core.capture.carrying import Carrying, carry, sum_of
from core.capture.contributors import Component
from core.capture.function import BEYOND_SDPA, AttentionRun
from core.capture.interventions import visible_keys
from core.capture.reach import is_interceptable
from core.capture.running import batches, model_inputs, prepared
from core.capture.sums import FrozenNorm, Sum
from core.errors import InterventionError
from core.models.checkpoint import Checkpoint
from core.models.encoding import Encoding
from core.models.head_sets import HeadSet

BATCH_TOKENS = 1024  # every contribution is as large as the stream
EXACT_DTYPES = ("float32", "float64")
TOLERANCE = 1e-4  # of a row's largest |score|; beyond it a family is not exact (rounding is a hundredth of it)


@dataclass(frozen=True)
class HeadInputs:
    """One layer's queries and keys as sums of contributions, for a batch of inputs of one length.

    Attributes:
        layer: zero-based, in its stack.
        part: the set of heads; "" where there is one.
        query: before the scores' scale. *Shape:* (component, batch, head, query, dim).
        key: shared key heads are repeated for each head. *Shape:* (component, batch, head, key, dim).
            Both hold, in the place of `left_over`, the whole query and key instead of its contribution.
        bias: added to the scores by place alone (T5). *Shape:* (batch or 1, head, query, key), or None.
        visible: which keys a query sees. *Shape:* (batch or 1, head or 1, query, key).
        query_norm, key_norm: the LayerNorm before the projection, where asked for and there is one.
        left_over: the places of the contributions to queries and to keys that are the whole less all others, which
            saves their products; None where every contribution was computed.
    """

    layer: int
    part: str
    query_components: tuple[Component, ...]
    key_components: tuple[Component, ...]
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
        """The queries as the head has them."""
        return self.query.sum(0) if self.left_over is None else self.query[self.left_over[0]]

    @cached_property
    def whole_key(self) -> Float[Tensor, "batch head key dim"]:
        """The keys as the head has them."""
        return self.key.sum(0) if self.left_over is None else self.key[self.left_over[1]]

    @cached_property
    def scores(self) -> Float[Tensor, "batch head query key"]:
        """The head's scores before the softmax, as the contributions add up; of invisible keys too."""
        products = self.whole_query @ self.whole_key.mT * self.scaling
        return products if self.bias is None else products + self.bias

    @cached_property
    def weights(self) -> Float[Tensor, "batch head query key"]:
        """The attention weights that these scores give; rows sum to 1 over tokens, without a sink."""
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
    """Hand every layer's queries and keys, as sums of contributions, to `take`, batch by batch.

    Args:
        checkpoint: of a family whose attention goes through transformers' interface, in float32 or float64.
        take: called with one layer of one batch, and which inputs the batch holds. Nothing is kept afterwards.
        layers: only these, zero-based; what comes after the last is not taken apart.
        part: which set of heads of an encoder-decoder; "" is the first.
        by_head: whether each earlier head is a contribution of its own, or an attention block's heads together.
        norms: whether the LayerNorm before the projections is kept, for what holding its scale hides.
        by_difference: whether one contribution on each side is `HeadInputs.left_over`; that of each batch's first input
            is computed all the same, so that a family that is not exact is refused.

    Raises:
        InterventionError: the family or its arithmetic cannot be taken apart exactly.
    """
    _refuse(checkpoint)
    heads = checkpoint.head_set(part)
    wanted = frozenset(range(heads.layers) if layers is None else layers)
    for inputs in batches(encodings, BATCH_TOKENS):
        batch = [encodings[k] for k in inputs]
        reading = _Reading(checkpoint, heads, wanted, by_head, norms, partial(_hand_over, take, inputs))
        reading.carrying.spares = by_difference
        with torch.no_grad(), ExitStack() as stack:
            run = stack.enter_context(prepared(checkpoint, some=batch, inputs=inputs))
            reading.run, run.opener, run.mixer = run, reading.open, reading.split
            for module in checkpoint.model.modules() if norms else ():
                if _is_root_mean_square(module):
                    stack.callback(module.register_forward_hook(_keep_norm).remove)
            tensors = model_inputs(checkpoint, batch)
            stack.enter_context(suppress(_Enough))
            stack.enter_context(reading.carrying)
            checkpoint.model(**tensors, **({} if heads.part == "" and not heads.causal else {"use_cache": False}))


def _hand_over(take: Take, numbers: list[int], inputs: HeadInputs) -> None:
    take(inputs, numbers)


def _refuse(checkpoint: Checkpoint) -> None:
    kind = checkpoint.family.model_type
    if not is_interceptable(checkpoint):
        raise InterventionError(
            f"Scores are taken apart where attention goes through transformers' interface; {kind} does not: choose "
            "another checkpoint."
        )
    if checkpoint.dtype not in EXACT_DTYPES:
        raise InterventionError(
            f"Scores are taken apart exactly in float32 or float64; {checkpoint.name} is open in {checkpoint.dtype}: "
            "open it in float32."
        )


class _Enough(Exception):  # noqa: N818 - an end, not an error
    """No layer above is wanted: the pass need not go on."""


class _Reading:
    """Reads queries and keys of one forward pass, and says whose outputs follow."""

    def __init__(
        self, checkpoint: Checkpoint, heads: HeadSet, layers: frozenset[int], by_head: bool, norms: bool,
        take: Callable[[HeadInputs], None],
    ) -> None:  # fmt: skip
        self.checkpoint, self.heads, self.by_head, self.take = checkpoint, heads, by_head, take
        self.wanted = {heads.call(layer): layer for layer in layers}
        self.carrying = Carrying(_tables(checkpoint), keeps_norms=norms)
        self.carrying.part = checkpoint.sets[0].part
        self.run = AttentionRun(checkpoint.calls)  # that of the pass, once there is one

    def open(self, call: int, query: Tensor, key: Tensor, mask: Tensor | None, about: dict[str, Any]) -> None:
        """Called before a layer's scores are computed."""
        with torch._C.DisableTorchFunction():
            if call in self.wanted:
                self.take(self._inputs(call, query, key, mask, about))
        if call >= max(self.wanted, default=-1):
            self.run.ended = True
            raise _Enough

    def split(self, call: int, output: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
        """Called with the heads' outputs [batch, query, head, dim] of a layer, which are contributions from here on."""
        heads = next(head_set for head_set in self.checkpoint.sets if call in head_set.calls)
        layer = heads.layer_of(call)
        stack = "decoder" if heads.part == "cross" else heads.part
        self.carrying.writer = Component("feed-forward", layer, part=stack)
        if call + 1 == len(self.checkpoint.sets[0].calls) and heads.part == "encoder":
            self.carrying.part = "decoder"
        plain = output.detach()  # carries nothing: a tensor whose sum held the tensor itself would outlive its batch
        if self.by_head:
            names = tuple(Component("head", layer, head, heads.part) for head in range(heads.heads))
            by_head = Sum(names, lambda: _one_by_one(plain), "heads")
            by_head.blocks = plain
            return carry(output, by_head)
        return carry(output, Sum((Component("attention", layer, part=heads.part),), lambda: plain[None], "heads"))

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
        """Whether contributions add up to these inputs' scores. Raises InterventionError where they do not."""
        scores = query @ key.mT
        gap = (query_parts.sum(0) @ key_parts.sum(0).mT - scores).abs().amax(-1) / scores.abs().amax(-1).clamp(min=1e-9)
        if not float(gap.max()) <= TOLERANCE:
            raise self._not_exact()

    def _is_whole(self, states: Sum | None) -> TypeGuard[Sum]:
        """Whether every block that wrote before is told apart (where a block narrows the stream, it is not)."""
        if states is None:
            return False
        components = [part for part in states.components if part.part == states.components[0].part]
        return {part.layer for part in components if part.kind in ("head", "attention")} >= {
            part.layer for part in components if part.kind == "feed-forward"
        }

    def _not_exact(self) -> InterventionError:
        return InterventionError(
            f"The scores of {self.checkpoint.family.model_type} are no sum of what its components wrote (a soft cap, a "
            "sink, quantised weights or a block of another kind): they cannot be taken apart exactly; choose a "
            "checkpoint like BERT, RoBERTa, GPT-2 or LLaMA in float32."
        )


def _names(states: Sum) -> tuple[Component, ...]:
    return tuple(replace(component, is_spared=False) for component in states.components)


def _left_over(states: Sum) -> int:
    """Which contribution is told by difference: the one that was spared, or any."""
    return next((number for number, part in enumerate(states.components) if part.is_spared), 0)


def _repeated(states: Tensor, groups: int, axis: int) -> Tensor:
    return states if groups == 1 else states.repeat_interleave(groups, axis)


def _one_by_one(output: Float[Tensor, "batch query head dim"]) -> Float[Tensor, "head batch query head dim"]:
    return output[None] * torch.eye(output.shape[2], dtype=output.dtype, device=output.device)[:, None, None, :, None]


def _tables(checkpoint: Checkpoint) -> dict[int, Component]:
    """Whose rows each table of embeddings holds, by the id of its weights: told by the names that families use."""
    tables = {}
    words = checkpoint.model.get_input_embeddings()
    for name, module in checkpoint.model.named_modules():
        last = name.rsplit(".", 1)[-1]
        if isinstance(module, nn.Embedding):
            is_position = module is not words and ("pos" in last or last == "wpe")
            is_segment = "type" in last or "segment" in last
            tables[id(module.weight)] = Component("position" if is_position else "segment" if is_segment else "token")
    return tables


def has_position_embeddings(checkpoint: Checkpoint) -> bool:
    """Whether positions are added to the words as embeddings, and so are a contribution of their own."""
    return any(table.kind == "position" for table in _tables(checkpoint).values())


def _is_root_mean_square(module: nn.Module) -> bool:
    return "Norm" in type(module).__name__ and not isinstance(module, nn.LayerNorm | nn.RMSNorm)


def _keep_norm(module: nn.Module, arguments: tuple[Any, ...], output: Any) -> None:
    states, normed = sum_of(arguments[0]), sum_of(output)
    if states and normed and states.role != "branch":
        eps = getattr(module, "variance_epsilon", getattr(module, "eps", 0.0))  # transformers' two names for it
        normed.norm = FrozenNorm(states.components, states.parts, is_centred=False, eps=float(eps))
