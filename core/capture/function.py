"""The one attention function: every interceptable model runs through it, watched, changed, or neither.

It is registered with transformers' AttentionInterface together with the eager mask under the same name;
without that mask GPT-2 would silently see the future. A layer that nobody watches or touches runs transformers'
own SDPA where that can compute it. What a run wants lives in a ContextVar, never on the model, so threads can share
one model. The layer's index is the order of calls within a forward, because shared layers carry no index of their own.
"""

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

from ..errors import InterventionError
from .finite import refuse_no_output, refuse_no_query
from .interventions import Cut, HeadChange, changed, visible_keys
from .masks import mask_of, rows_of, rule_of

NAME = "atlas"
BEYOND_SDPA = ("softcap", "s_aux")  # what SDPA does not compute: Gemma 2's soft cap, gpt-oss' attention sinks
States = tuple[Tensor, Tensor, Tensor]
Watcher = Callable[[int, Float[Tensor, "batch head query key"]], None]


class PassEnded(BaseException):
    """Raised out of a forward after the last layer that is looked at: no error, and nothing on the way may catch it."""


@dataclass
class AttentionRun:
    """What one run asks of the attention function.

    Attributes:
        layers: calls of a forward, one a layer (of an encoder-decoder more), so that the next one starts at 0 again.
        rows: queries at a time: the watcher is called with each layer's next queries until it saw all, so that no map
            is ever whole; nothing may be changed then. None: all at once.
        streamer: stands in for every layer's attention (core.capture.streaming), called with the layer, states, mask,
            scaling and options; nothing may be changed then. *Shape:* of what it gives (batch, query, head, dim).
        watcher: called with each watched layer and its weights after softmax and interventions, before dropout.
        gates: xi, multiplied into each head's output (Michel et al.): one a head, or one for each input and query too;
            a list has one tensor a call. They may require grad. *Shape:* of those of a list (batch, head, query).
        mixer: called with each layer, its heads' outputs, the values and the mask; what it returns goes on. *Shape:*
            outputs (batch, query, head, dim), values (batch, head, key, dim).
        opener: called before a layer's scores with its queries, keys, mask and what the scores are computed with.
            *Shape:* queries (batch, head, query, dim), keys (batch, kv, key, dim).
        nudged: whether a zero is added to every layer's weights and kept in `nudges`, so that gradients of weights can
            be had.
        nudges: these zeros, one tensor a layer that computed weights. *Shape:* (batch, head, query, column) each.
        numbers: the layers that the calls of a forward belong to, in order, if some layers of the model do not attend;
            empty: a layer's number is its call's.
        sharpness: by layer a factor a head, which its scores are multiplied by (`Checkpoint.sharpness`).
        ended: whether a forward was stopped on purpose, so that fewer calls than layers are no fault.
        last: the layer whose weights are the last that anybody looks at (`ended_after`); None: there is none.
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
    calls: int = 0
    ended: bool = False
    last: int | None = None

    def next_layer(self) -> int:
        """The layer that is called now, from 0; the call is counted."""
        call = self.calls % self.layers
        self.calls += 1
        return self.numbers[call] if self.numbers else call

    def end_after(self, layer: int) -> None:
        """Raises PassEnded where nobody looks at what comes after this layer's weights."""
        if layer == self.last:
            self.ended = True
            raise PassEnded

    @property
    def asks(self) -> bool:
        """Whether anything is observed or changed, so that a forward without a call of attention is a fault."""
        asked = (self.watcher, self.head_changes, self.cuts, self.streamer, self.reporter, self.mixer, self.opener)
        return any(asked) or self.gates is not None or self.nudged


_CURRENT: ContextVar[AttentionRun | None] = ContextVar("attention_run", default=None)


@contextmanager
def running(run: AttentionRun) -> Iterator[AttentionRun]:
    """Make `run` what the attention function obeys in this thread until the block ends; runs do not nest."""
    token = _CURRENT.set(run)
    try:
        yield run
    finally:
        _CURRENT.reset(token)


@contextmanager
def ended_after(run: AttentionRun, layers: Collection[int] | None) -> Iterator[None]:
    """Forwards in the block end once the last of these layers' weights were seen.

    Neither its output nor what follows is computed, and the model gives none. None, or no layer: they do not end.
    """
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
    """What transformers calls in every attention layer; it obeys the run of this thread.

    Args:
        module: the layer's attention; only whether it is in training is read.
        query: rotated already, where the family does so.
        key: of the heads that share keys (kv) one each.
        attention_mask: added to scores, or a placeholder with a rule (core.capture.masks); None: every key is visible.
            *Shape:* (batch or 1, 1, query, key or more).
        scaling: what scores are multiplied by; None: 1 / sqrt(dim).
        dropout: rate on weights, 0 to 1, in training alone.
        options: what else a family hands over: a soft cap, sinks, position biases.

    Returns:
        The heads' outputs before W_O, and the weights where they were computed whole, else None.
    """
    run = _CURRENT.get() or AttentionRun(layers=1)
    layer = run.next_layer()
    if layer in run.sharpness:
        query = query * run.sharpness[layer].to(query)[:, None, None]
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
        among = weights[..., : key.shape[2]]  # tokens: without a sink
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
    output = _gated(output, layer, run, head_changes).contiguous()
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
    """softmax(Q K^T * scaling + mask) over keys, as transformers' eager functions compute it; edges may be cut.

    Args:
        key: of the heads that share keys (kv) one each.
        attention_mask: added to scores; None: every key is visible. *Shape:* (batch or 1, 1 or head, query, key or
            more).
        scaling: what scores are multiplied by; None: 1 / sqrt(dim).
        options: what else the scores hang on: softcap, position_bias, s_aux (one learnt score of a sink a head).

    Returns:
        Float32 at least; rows sum to 1, or to less where a cut does not renormalise. Where a layer has a sink, the last
        column is its own, and rows sum to 1 with it.

    Raises:
        InterventionError: a cut leaves a query no key that it sees.
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
    if (sinks := options.get("s_aux")) is not None:  # one learnt score a head, at every query
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
    """Their sum, in the scores' own memory where it fits: a tensor more costs as much as the sum."""
    fits = bias.dtype == scores.dtype and torch.broadcast_shapes(scores.shape, bias.shape) == scores.shape
    return scores.add_(bias) if fits else scores + bias


def changed_weights(
    weights: Float[Tensor, "batch head query column"],
    run: AttentionRun,
    layer: int,
    visible: Callable[[], Bool[Tensor, "rows 1 query key"]],
) -> Float[Tensor, "batch head query column"]:
    """The weights after what a run asks of them, shown to its watcher.

    Args:
        layer: whose weights they are, by the call within a forward.
        visible: which keys a query sees, asked only by operators, because finding it can take as long as the softmax.

    Returns:
        The changed weights; `weights` itself where nothing is asked.

    Raises:
        PassEnded: nobody looks at what comes after these weights.
    """
    for head_change in run.head_changes.get(layer, []):
        if head_change.operator != "zero" and head_change.given is None:
            weights = _touched(weights, head_change, visible())
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
    """The heads' outputs, some queries at a time, each shown to the watcher. Raises InterventionError for changes."""
    query, key, value = states
    if run.head_changes or run.cuts or run.gates is not None:
        raise InterventionError(
            "Maps that are too long to be whole can be looked at, not changed: shorten the input to change heads."
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


def _touched(
    weights: Float[Tensor, "batch head query column"],
    head_change: HeadChange,
    visible: Bool[Tensor, "rows 1 query key"],
) -> Float[Tensor, "batch head query column"]:
    """The weights after an operator, which leaves a sink nothing: its column comes after the visible ones."""
    length = visible.shape[-1]
    keys, sinks = weights[..., :length], weights[..., length:]
    keys = changed(keys, head_change, visible)
    sinks = sinks.masked_fill(head_change.heads.to(weights.device)[:, :, None, None], 0.0)
    return torch.cat([keys, sinks], -1) if sinks.shape[-1] else keys


def refuse_empty_rows(scores: Float[Tensor, "batch head query key"]) -> None:
    """Refuse cuts that leave a query only keys that its layer's window hides from it anyway.

    Args:
        scores: before the softmax; the least number of the dtype, or -inf, where a key is hidden or cut.

    Raises:
        InterventionError: all of a row's scores are such.
    """
    if (scores.amax(-1) <= torch.finfo(scores.dtype).min / 2).any():
        raise InterventionError(
            "A knockout must leave every query a key that it sees; in a layer that sees only a window, one is left "
            "none: cut fewer edges, or do not renormalise."
        )


def _per_query_head(query: Tensor, states: Tensor) -> Tensor:
    groups = query.shape[1] // states.shape[1]
    return states if groups == 1 else repeat_kv(states, groups)


def _gated(
    output: Float[Tensor, "batch query head dim"], layer: int, run: AttentionRun, head_changes: list[HeadChange]
) -> Tensor:
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
    return output


AttentionInterface.register(NAME, attention)
AttentionMaskInterface.register(NAME, mask_of)
