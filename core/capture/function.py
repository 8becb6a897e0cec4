"""The attention function of all models that can be observed or changed. It is registered with transformers.

The eager mask is registered under the same name; without it, GPT-2 would silently attend to later tokens. Layers that
are neither observed nor changed use SDPA if possible. The settings of a run are in a ContextVar, so threads can share a
model. The layer index is the number of the call within a forward pass, because shared layers have no index.
"""

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import repeat_kv, sdpa_attention_forward

from ..attention import Head
from ..errors import CheckpointError, InterventionError
from .interventions import Cut, HeadChange, changed, visible_keys
from .masks import mask_of, rows_of, rule_of

NAME = "atlas"
BEYOND_SDPA = ("softcap", "s_aux")  # what SDPA does not compute: Gemma 2's soft cap, gpt-oss' attention sinks
States = tuple[Tensor, Tensor, Tensor]
Watcher = Callable[[int, Float[Tensor, "batch head query key"]], None]


# ---------------------------------------------------------------- numbers that are NaN or infinite


def refuse_no_number(
    layer: int, numbers: Float[Tensor, "head query"], values: str = "Attention scores", *, head: int = 0, query: int = 0
) -> None:
    """Raise CheckpointError if attention scores or outputs contain NaN or infinity. The message names the layer, head
    and token."""
    if not bool(torch.isfinite(numbers).all()):
        row, place = torch.nonzero(~torch.isfinite(numbers))[0].tolist()
        raise CheckpointError(
            f"{values} must be finite numbers; {Head(layer, head + row)} has a NaN or infinite value at token "
            f"{query + place + 1}. Open the checkpoint in float32, or check its weights."
        )


def refuse_no_query(layer: int, query: Float[Tensor, "batch head query dim"]) -> None:
    """Raise CheckpointError if a query vector contains NaN or infinity, for which SDPA returns 0 on the CPU."""
    if query.device.type == "cpu" and not torch.isfinite(query.sum(dtype=torch.float32)):
        for sums in query.sum(-1, dtype=torch.float64):
            refuse_no_number(layer, sums)


def refuse_no_output(layer: int, output: Float[Tensor, "batch query head dim"]) -> None:
    """Raise CheckpointError if the output of a head contains NaN or infinity. Only outputs on the CPU are checked."""
    if output.device.type == "cpu" and not torch.isfinite(output.sum(dtype=torch.float32)):
        for sums in output.sum(-1, dtype=torch.float64).transpose(1, 2):
            refuse_no_number(layer, sums, "Outputs of attention heads")


def has_no_numbers(values: Tensor) -> bool:
    """Return whether a tensor contains NaN or +infinity. Logits of impossible tokens may be -infinity."""
    if not values.is_floating_point() or torch.isfinite(values.sum(dtype=torch.float32)):
        return False
    return bool((torch.isnan(values) | (values == float("inf"))).any())


# ---------------------------------------------------------------- runs


class PassEnded(BaseException):
    """Exception that ends a forward pass after the last observed layer. Model code must not catch it."""


@dataclass
class AttentionRun:
    """The settings of one forward pass. They state what the attention function records and what it changes.

    Attributes:
        layers: number of attention calls in a forward pass, one per layer (more in an encoder-decoder).
        rows: pass weights to the watcher in blocks of this many queries, so that whole maps are never stored; nothing
            may be changed then. None: all at once.
        streamer: replaces the attention of every layer (core.capture.streaming); called with the layer, states, mask,
            scaling and options. Returns (batch, query, head, dim).
        watcher: called with each watched layer and its weights after softmax and interventions, before dropout.
        gates: xi, multiplied into the output of each head (Michel et al.): one per head, or one per input and query; a
            list has one tensor (batch, head, query) per call. They may require grad.
        mixer: called with each layer, the outputs of its heads (batch, query, head, dim), values (batch, head, key,
            dim) and mask; its result replaces the outputs.
        opener: called before the scores of a layer with its queries (batch, head, query, dim), keys (batch, kv, key,
            dim), mask and options.
        nudged: add zeros to the weights of every layer, so that gradients of weights can be computed.
        nudges: these zeros, one tensor (batch, head, query, column) per layer that computed weights.
        numbers: the layers of the calls, in order, if some layers of the model have no attention; otherwise empty.
        sharpness: by layer, a factor per head that multiplies its scores (`Checkpoint.sharpness`).
        groups: (inputs, length) of groups of inputs with equal length, all in one row of tokens. Tokens attend only
            within their input, causally or not, and the watcher is called once for each group. Empty: no groups.
        ended: the forward pass was stopped on purpose, so fewer calls than layers are not an error.
    """

    layers: int
    rows: int | None = None
    streamer: Callable[[int, States, Tensor | None, float | None, dict[str, Any]], Tensor] | None = None
    watcher: Watcher | None = None
    watched: frozenset[int] = frozenset()
    head_changes: dict[int, list[HeadChange]] = field(default_factory=dict)
    cuts: dict[int, list[Cut]] = field(default_factory=dict)
    gates: Float[Tensor, "layer head"] | Float[Tensor, "layer batch head query"] | Sequence[Tensor] | None = None
    reporter: Callable[[Float[Tensor, "batch query head dim"]], None] | None = None
    mixer: Callable[[int, Tensor, Tensor, Tensor | None], Tensor] | None = None
    opener: Callable[[int, Tensor, Tensor, Tensor | None, dict[str, Any]], None] | None = None
    nudged: bool = False
    nudges: list[Tensor] = field(default_factory=list)
    numbers: tuple[int, ...] = ()
    sharpness: Mapping[int, Float[Tensor, " head"]] = field(default_factory=dict)
    groups: Sequence[tuple[int, int]] = ()
    causal: bool = False
    calls: int = 0
    ended: bool = False
    last: int | None = None

    def next_layer(self) -> int:
        """Count one more attention call, and return the zero-based layer of this call."""
        call = self.calls % self.layers
        self.calls += 1
        return self.numbers[call] if self.numbers else call

    def end_after(self, layer: int) -> None:
        """Raise PassEnded to end the forward pass if `layer` is the last layer whose attention weights are observed."""
        if layer == self.last:
            self.ended = True
            raise PassEnded

    @property
    def asks(self) -> bool:
        """Return whether this run observes or changes attention. If so, a forward pass without attention calls is an
        error."""
        asked = (self.watcher, self.head_changes, self.cuts, self.streamer, self.reporter, self.mixer, self.opener)
        return any(asked) or self.gates is not None or self.nudged


_CURRENT: ContextVar[AttentionRun | None] = ContextVar("attention_run", default=None)


@contextmanager
def running(run: AttentionRun) -> Iterator[AttentionRun]:
    """Apply the settings of a run to all forward passes of this thread within this context. A nested
    context uses only its own settings."""
    token = _CURRENT.set(run)
    try:
        yield run
    finally:
        _CURRENT.reset(token)


def of_this_thread(hook: Callable[..., Any]) -> Callable[..., Any]:
    """Return a module hook that acts only in the current thread, because other threads may use the same model.

    Other threads may call it with fewer arguments: torch stores `with_kwargs` apart from the hook, so a hook that is
    being added or removed can be called without keyword arguments.
    """
    thread = threading.get_ident()

    def own(*arguments: Any) -> Any:
        return hook(*arguments) if threading.get_ident() == thread else None

    return own


@contextmanager
def ended_after(run: AttentionRun, layers: Collection[int] | None) -> Iterator[None]:
    """End the first forward pass in this context after the attention of the last layer in `layers`, and leave the
    context. If `layers` is empty or None, forward passes run to their end."""
    run.last = max(layers or (), default=None)
    with suppress(PassEnded):
        yield


def attention(
    module: nn.Module,
    query: Float[Tensor, "batch head query dim"],
    key: Float[Tensor, "batch kv key dim"],
    value: Float[Tensor, "batch kv key value_dim"],
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **options: Any,
) -> tuple[Float[Tensor, "batch query head value_dim"], Float[Tensor, "batch head query column"] | None]:
    """Compute attention with the settings of the current run. Replaces the attention function of transformers.

    Returns the outputs of heads before W_O, and the weights if they were computed whole, otherwise None.

    Args:
        key: one for each group of heads that share keys (kv).
        attention_mask: added to scores, or a placeholder with a rule (core.capture.masks); None: every key is visible.
            *Shape:* (batch or 1, 1, query, at least key).
        scaling: multiplies scores; None: 1 / sqrt(dim).
    """
    run = _CURRENT.get() or AttentionRun(layers=1)
    layer = run.next_layer()
    if layer in run.sharpness:
        query = query * run.sharpness[layer].to(query)[:, None, None]
    if run.groups:
        return _by_group(run, layer, (query, key, value), scaling, options), None
    if run.opener is not None:
        run.opener(layer, query, key, attention_mask, options | {"scaling": scaling})
    if _CURRENT.get() is not None:
        refuse_no_query(layer, query)
    head_changes, cuts = run.head_changes.get(layer, []), run.cuts.get(layer, [])
    on_weights = [
        head_change for head_change in head_changes if head_change.operator != "zero" and head_change.given is None
    ]
    by_hand = any(options.get(name) is not None for name in BEYOND_SDPA)
    if run.streamer is not None:
        weights, output = None, run.streamer(layer, (query, key, value), attention_mask, scaling, options)
        run.end_after(layer)
    elif run.rows is not None and (layer in run.watched or by_hand or rule_of(attention_mask) is not None):
        weights, output = None, _by_rows(run, layer, (query, key, value), attention_mask, scaling, options)
        run.end_after(layer)
    elif layer in run.watched or on_weights or cuts or by_hand:
        weights = attention_weights(query, key, attention_mask, scaling=scaling, options=options, cuts=cuts)
        among = weights[..., : key.shape[2]]  # tokens, without a sink
        weights = changed_weights(weights, run, layer, lambda: visible_keys(attention_mask, among))
        kept = nn.functional.dropout(weights[..., : key.shape[2]], p=dropout, training=module.training)
        output = torch.matmul(kept.to(value.dtype), _per_query_head(query, value)).transpose(1, 2)
    else:
        weights = None
        output, _ = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **options
        )
    if _CURRENT.get() is not None:
        refuse_no_output(layer, output)
    if run.gates is not None:
        gates = run.gates[layer].to(output.dtype)
        output = output * (gates[None, None, :, None] if gates.dim() == 1 else gates.transpose(1, 2).unsqueeze(-1))
    for head_change in head_changes:
        heads = head_change.heads.to(output.device)[:, None, :, None]
        if head_change.operator == "zero":
            output = output.masked_fill(heads, 0.0)
        elif head_change.given is not None:
            where = (
                heads if head_change.places is None else heads & head_change.places.to(output.device)[:, :, None, None]
            )
            output = torch.where(where, head_change.given.to(output), output)
    output = output.contiguous()
    if run.mixer is not None:
        output = run.mixer(layer, output, _per_query_head(query, value), attention_mask)
    if run.reporter is not None:
        run.reporter(output)
    return output, weights


def attention_weights(
    query: Float[Tensor, "batch head query dim"],
    key: Float[Tensor, "batch kv key dim"],
    attention_mask: Tensor | None,
    *,
    scaling: float | None,
    options: dict[str, Any],
    cuts: Sequence[Cut] = (),
) -> Float[Tensor, "batch head query column"]:
    """Return softmax(Q K^T * scaling + mask) without the edges in `cuts`, as the eager functions of transformers
    compute it.

    At least float32. Rows sum to 1, or to less if a cut does not renormalise. A sink is the last column. Raises
    InterventionError if a renormalised cut leaves a query without a visible key.

    Args:
        key: one for each group of heads that share keys (kv).
        attention_mask: added to scores; None: every key is visible. *Shape:* (batch or 1, 1 or head, query, at least
            key).
        scaling: multiplies scores; None: 1 / sqrt(dim).
        options: softcap, position_bias, s_aux (a learnt sink score per head).
    """
    scale = query.size(-1) ** -0.5 if scaling is None else scaling
    scores = torch.matmul(query, _per_query_head(query, key).transpose(2, 3)).mul_(scale)
    if options.get("softcap") is not None:
        scores = scores.div_(options["softcap"]).tanh_() * options["softcap"]
    if options.get("position_bias") is not None:
        scores = _plus(scores, options["position_bias"])
    if attention_mask is not None:
        scores = _plus(scores, attention_mask[..., : scores.shape[-1]])
    for cut in cuts:
        if cut.renormalised:
            scores = scores.masked_fill((cut.edges & cut.heads).to(scores.device), float("-inf"))
            refuse_empty_rows(scores)
    if (sinks := options.get("s_aux")) is not None:  # one learnt score for each head, the same at every query
        column = sinks.to(scores.dtype).reshape(1, -1, 1, 1).expand(*scores.shape[:3], 1)
        scores = torch.cat([scores, column], -1)
    # of float16 and bfloat16 scores too: rounded to either, rows would no longer add up to 1
    weights = torch.softmax(scores, dim=-1, dtype=torch.promote_types(scores.dtype, torch.float32))
    for cut in cuts:
        if not cut.renormalised:
            gone = nn.functional.pad(cut.edges & cut.heads, (0, weights.shape[-1] - key.shape[2]))
            weights = weights.masked_fill(gone.to(weights.device), 0.0)
    return weights


def _plus(scores: Tensor, bias: Tensor) -> Tensor:
    """Return the sum, in the memory of the scores if possible: allocating takes as long as adding."""
    fits = bias.dtype == scores.dtype and torch.broadcast_shapes(scores.shape, bias.shape) == scores.shape
    return scores.add_(bias) if fits else scores + bias


def changed_weights(
    weights: Float[Tensor, "batch head query column"],
    run: AttentionRun,
    layer: int,
    visible: Callable[[], Bool[Tensor, "rows 1 query key"]],
) -> Float[Tensor, "batch head query column"]:
    """Apply the interventions of a run to attention weights, and pass the changed weights to `run.watcher`.

    `visible` returns which keys a query may attend to; it is slow, so it is called only if needed. Raises PassEnded if
    nothing after these weights is observed.
    """
    for head_change in run.head_changes.get(layer, []):
        if head_change.operator != "zero" and head_change.given is None:
            # Weights after an operator. Sinks get 0: their column follows the visible ones
            seen = visible()
            length = seen.shape[-1]
            keys, sinks = weights[..., :length], weights[..., length:]
            keys = changed(keys, head_change, seen)
            sinks = sinks.masked_fill(head_change.heads.to(weights.device)[:, :, None, None], 0.0)
            weights = torch.cat([keys, sinks], -1) if sinks.shape[-1] else keys
    if run.nudged:
        run.nudges.append(torch.zeros_like(weights, requires_grad=True))
        weights = weights + run.nudges[-1]
    if run.watcher is not None and layer in run.watched:
        run.watcher(layer, weights)
        run.end_after(layer)
    return weights


def _by_rows(
    run: AttentionRun,
    layer: int,
    states: States,
    attention_mask: Tensor | None,
    scaling: float | None,
    options: dict[str, Any],
) -> Float[Tensor, "batch query head dim"]:
    """Outputs of heads, computed in blocks of queries for the watcher. Raises InterventionError for changes."""
    query, key, value = states
    if run.head_changes or run.cuts or run.gates is not None:
        raise InterventionError(
            "Heads cannot be ablated or patched if the input is too long for full attention maps. Shorten the input."
        )
    outputs, length = [], query.shape[2]
    for start in range(0, length, run.rows or length):
        some = slice(start, start + (run.rows or length))
        sees = rows_of(attention_mask, slice(start, min(some.stop, length)), query.dtype, query.device)
        bias = options.get("position_bias")
        about = options | {"position_bias": None if bias is None else bias[:, :, some]}
        weights = attention_weights(query[:, :, some], key, sees, scaling=scaling, options=about)
        if run.watcher is not None and layer in run.watched:
            run.watcher(layer, weights)
        outputs.append(torch.matmul(weights[..., : key.shape[2]].to(value.dtype), _per_query_head(query, value)))
    return torch.cat(outputs, 2).transpose(1, 2)


def _by_group(
    run: AttentionRun, layer: int, states: States, scaling: float | None, options: dict[str, Any]
) -> Float[Tensor, "1 token head dim"]:
    """Outputs of heads if all tokens of `run.groups` are in one row. Raises PassEnded like `changed_weights`."""
    outputs, start = [], 0
    for inputs, length in run.groups:
        span = slice(start, start + inputs * length)
        query, key, value = (s[0, :, span].unflatten(1, (inputs, length)).transpose(0, 1) for s in states)
        refuse_no_query(layer, query)
        mask = query.new_full((length, length), torch.finfo(query.dtype).min).triu(1) if run.causal else None
        weights = attention_weights(query, key, mask, scaling=scaling, options=options)
        if run.watcher is not None:
            run.watcher(layer, weights)
        if layer != run.last:
            output = torch.matmul(weights.to(value.dtype), _per_query_head(query, value)).transpose(1, 2)
            refuse_no_output(layer, output)
            outputs.append(output.flatten(0, 1))
        start = span.stop
    run.end_after(layer)
    return torch.cat(outputs)[None]


def refuse_empty_rows(scores: Float[Tensor, "batch head query key"]) -> None:
    """Raise InterventionError if an attention knockout leaves a query without visible keys. In `scores` (before the
    softmax), masked or cut keys have -inf or the smallest number of the dtype."""
    if (scores.amax(-1) <= torch.finfo(scores.dtype).min / 2).any():
        raise InterventionError(
            "An attention knockout must leave every query at least one key; a query would have no key left, because "
            "its layer has windowed attention, or several knockouts cut its edges. Cut fewer edges, or turn off "
            "renormalisation."
        )


def _per_query_head(query: Tensor, states: Tensor) -> Tensor:
    groups = query.shape[1] // states.shape[1]
    return states if groups == 1 else repeat_kv(states, groups)


AttentionInterface.register(NAME, attention)
AttentionMaskInterface.register(NAME, mask_of)
