"""How the attention of a checkpoint can be accessed: observed and changed, only observed, or not at all.

Some families have a record in core.models.family. For others, a short forward pass decides: the attention interface of
transformers is tried first, then the softmax, then `output_attentions`, which cannot change maps.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Literal
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ..errors import AtlasError, CheckpointError, InterventionError
from ..models.checkpoint import Checkpoint
from ..models.family import FAMILIES
from .function import NAME, AttentionRun, changed_weights, of_this_thread, refuse_empty_rows, running

# -------------------- Families that do not call transformers' attention interface


_SOFTMAXES: tuple[Callable[..., Tensor], ...] = (torch.nn.functional.softmax, torch.softmax, torch.Tensor.softmax)
_HIDDEN = 5_000  # below a row's greatest score: families hide keys with -1e4 (CTRL), -1e30 or the dtype's least number


class _BeforeSoftmax(TorchFunctionMode):
    """Passes the scores [batch, head, query, key] of every softmax over the last axis to a run. `flat`: as in
    `before_softmax`."""

    def __init__(self, run: AttentionRun, flat: Sequence[int]) -> None:
        super().__init__()
        self.run, self.flat = run, flat

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        options = kwargs or {}
        if func not in _SOFTMAXES:
            return func(*args, **options)
        scores = args[0] if args else options["input"]
        last = scores.dim() - 1
        if last != (2 if self.flat else 3) or options.get("dim", args[1] if len(args) > 1 else None) not in (-1, last):
            return func(*args, **options)
        by_head = scores.unflatten(0, (-1, self.flat[self.run.calls % len(self.flat)])) if self.flat else scores
        made = _weights(self.run, by_head)
        return made.reshape(scores.shape).to(options.get("dtype") or scores.dtype)


def _weights(run: AttentionRun, scores: Tensor) -> Tensor:
    layer = run.next_layer()
    if layer in run.sharpness:
        visible = scores > scores.amax(-1, keepdim=True) - _HIDDEN
        scores = torch.where(visible, scores * run.sharpness[layer].to(scores)[:, None, None], scores)
    given = scores
    for cut in run.cuts.get(layer, []):
        if cut.renormalised:
            scores = scores.masked_fill((cut.edges & cut.heads).to(scores.device), float("-inf"))
            refuse_empty_rows(scores)
    weights = torch.softmax(scores, -1, dtype=torch.promote_types(scores.dtype, torch.float32))
    for cut in run.cuts.get(layer, []):
        if not cut.renormalised:
            weights = weights.masked_fill((cut.edges & cut.heads).to(scores.device), 0.0)
    weights = changed_weights(
        weights, run, layer, lambda: (given > given.amax(-1, keepdim=True) - _HIDDEN).any(1, keepdim=True)
    )
    for head_change in run.head_changes.get(layer, []):
        if head_change.operator == "zero":
            weights = weights.masked_fill(head_change.heads.to(weights.device)[:, :, None, None], 0.0)
    if run.gates is not None:
        gates = run.gates[layer].to(weights.dtype)
        weights = weights * (gates[None, :, None, None] if gates.dim() == 1 else gates[..., None])
    return weights


@contextmanager
def before_softmax(run: AttentionRun, model_type: str, flat: Sequence[int] = ()) -> Iterator[AttentionRun]:
    """Within this context, observe or change attention at every softmax call of this thread.

    `flat` lists the heads of each call, for families with inputs and heads in one axis. Raises InterventionError for
    ablation methods that need the outputs of heads.
    """
    if any(head_change.given is not None for head_changes in run.head_changes.values() for head_change in head_changes):
        raise InterventionError(
            f"Only the ablation methods disable, zero, previous, current, next and first can be used with {model_type} "
            "models, which do not use the attention interface of transformers. Choose one of these methods."
        )
    with _BeforeSoftmax(run, flat):
        yield run


Reach = Literal["interface", "softmax", "flat softmax", "outputs"]
EQUAL = {torch.float32: 1e-4, torch.float64: 1e-4}  # tolerance of comparisons; 0.05 in half precision
_TEXT = "A cat sat."
_KNOWN: "WeakKeyDictionary[nn.Module, Reach | str]" = WeakKeyDictionary()  # a text is the reason for a missing Reach


def reach_of(checkpoint: Checkpoint) -> Reach:
    """Return where heads can be observed and, except for "outputs", changed in a forward pass. "interface" is the
    attention interface of transformers. "flat softmax" is a softmax with inputs and heads on one axis. Raises
    CheckpointError if heads cannot be observed."""
    if checkpoint.family.model_type in FAMILIES:
        return "interface" if checkpoint.family.interceptable else "softmax"
    model = checkpoint.model
    if model not in _KNOWN:
        learning = [module for module in model.modules() if module.training]
        model.eval()  # dropout would make two passes differ
        _KNOWN[model] = _probed(checkpoint)
        for module in learning:
            module.training = True
    found = _KNOWN[model]
    if found in ("interface", "softmax", "flat softmax", "outputs"):
        return found
    raise CheckpointError(found)


def is_interceptable(checkpoint: Checkpoint) -> bool:
    """Return whether the attention interface of transformers gives access to the outputs, queries, keys and values of
    heads."""
    return reach_of(checkpoint) == "interface"


def is_streamed(checkpoint: Checkpoint) -> bool:
    """Return whether attention can be computed in blocks of queries, for long inputs (`core.capture.streaming`). This
    is impossible if an indexer chooses the keys of a layer (Qwen4-Exp)."""
    indexed = "indexed_attention" in (getattr(checkpoint.model.config, "layer_types", None) or ())
    return checkpoint.family.streams and not indexed and is_interceptable(checkpoint)


def reached(
    checkpoint: Checkpoint, run: AttentionRun, reach: Reach | None = None
) -> AbstractContextManager[AttentionRun]:
    """Return a context manager that applies the settings of a run to the forward passes of this thread. If `reach` is
    None, `reach_of` determines it. Raises InterventionError if the model does not support the changes."""
    config, reach = checkpoint.model.config, reach or reach_of(checkpoint)
    if reach == "interface":
        if config._attn_implementation != NAME:
            checkpoint.model.set_attn_implementation(NAME)  # once; without a run it is plain SDPA
        return running(run)
    if config._attn_implementation not in ("eager", None):
        checkpoint.model.set_attn_implementation("eager")
    if reach == "outputs":
        return _from_outputs(checkpoint, run)
    heads = [own.heads for call in range(checkpoint.calls) for own in checkpoint.sets if call in own.calls]
    return before_softmax(run, config.model_type, heads if reach == "flat softmax" else ())


@contextmanager
def _from_outputs(checkpoint: Checkpoint, run: AttentionRun) -> Iterator[AttentionRun]:
    """Pass the maps that the model returns with `output_attentions` to the watcher; nothing can be changed."""
    _refuse_changes(checkpoint, run)

    def ask(_: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        _refuse_changes(checkpoint, run)  # a run may be changed in the block
        return arguments, named | {"output_attentions": True}

    def take(_: nn.Module, __: tuple[Any, ...], output: Any) -> None:
        for weights in attentions_of(checkpoint, output):
            layer = run.next_layer()
            if run.watcher is not None and layer in run.watched:
                run.watcher(layer, weights)

    with ExitStack() as stack:
        stack.callback(checkpoint.model.register_forward_pre_hook(of_this_thread(ask), with_kwargs=True).remove)
        stack.callback(checkpoint.model.register_forward_hook(of_this_thread(take)).remove)
        yield run


def _refuse_changes(checkpoint: Checkpoint, run: AttentionRun) -> None:
    changing = run.head_changes or run.cuts or run.gates is not None
    if changing or run.mixer or run.reporter or run.opener or run.nudged:
        raise InterventionError(
            f"Heads of {checkpoint.family.model_type} models cannot be ablated or patched, because their attention "
            "can be read but not changed. View their maps, or choose another checkpoint for interventions."
        )


_GIVES_SCORES = {"squeezebert"}  # transformers returns the scores before the softmax as attentions


def attentions_of(checkpoint: Checkpoint, output: Any) -> list[Tensor]:
    """Return the attention maps (batch, head, query, key) that a model returns for `output_attentions`, one tensor per
    layer.

    For an encoder-decoder, those of the encoder come first, then self- and cross-attention of each decoder layer.
    Layers that return no map, or several maps for parts of a text (PEGASUS-X), are missing.
    """
    if len(checkpoint.sets) == 1:
        given = [weights for weights in getattr(output, "attentions", None) or () if isinstance(weights, Tensor)]
        return [scores.softmax(-1) for scores in given] if checkpoint.family.model_type in _GIVES_SCORES else given
    by_call: dict[int, Any] = {}
    for own in checkpoint.sets:
        of_part = getattr(output, f"{own.part}_attentions", None) or ()
        by_call |= dict(zip(own.calls, of_part, strict=False))
    return [by_call[call] for call in sorted(by_call) if isinstance(by_call[call], Tensor)]


def _probed(checkpoint: Checkpoint) -> "Reach | str":
    """Return the first way in which every layer's weights are observed and equal those that the model returns."""
    kind, model = checkpoint.family.model_type, checkpoint.model
    try:
        output, again = _own_output(checkpoint), _own_output(checkpoint)
        own = attentions_of(checkpoint, output)
    except AtlasError:
        raise
    except Exception as error:  # each family's forward raises its own classes
        return (
            f"The attention of {checkpoint.name} cannot be observed: a {kind} model does not take a text of token IDs "
            f"alone ({type(error).__name__}: {str(error).splitlines()[0][:120] if str(error) else ''}). Choose a "
            "checkpoint of a text model."
        )
    states, repeated = output[0], again[0]
    if isinstance(states, Tensor) and not (
        states.shape == repeated.shape and torch.allclose(states, repeated, rtol=1e-3, atol=1e-3, equal_nan=True)
    ):
        return (
            f"The attention of {checkpoint.name} cannot be measured: a {kind} model draws random numbers when it runs, "
            "so two passes over the same text differ. Choose a checkpoint of a text model."
        )
    ways: tuple[Reach, ...] = ("interface", "softmax", "flat softmax")
    for reach in ways if checkpoint.family.interceptable else ways[1:]:
        seen = _seen(checkpoint, reach)
        if len(seen) == checkpoint.calls and _fit(checkpoint, seen) and (not own or _equal(seen, own)):
            return reach if _as_declared(checkpoint, seen) else _sees_later(checkpoint)
    if checkpoint.family.interceptable:
        model.set_attn_implementation("eager")
    if len(own) == checkpoint.calls and _fit(checkpoint, own):
        return "outputs" if _as_declared(checkpoint, own) else _sees_later(checkpoint)
    found = f"{len(own)} of {checkpoint.calls} layers return maps" if own else "it returns no maps"
    return (
        f"The attention of {checkpoint.name} cannot be observed: a {kind} model does not compute one attention map per "
        f"head in a way that the app can read ({found}). Choose a checkpoint of another family."
    )


def _inputs(checkpoint: Checkpoint) -> dict[str, Tensor]:
    encoding = checkpoint.encode(_TEXT, _TEXT if checkpoint.family.translates else None)
    tensors = {"input_ids": torch.tensor([encoding.ids], device=checkpoint.device)}
    tensors["attention_mask"] = torch.ones_like(tensors["input_ids"])
    if encoding.target is not None:
        tensors["decoder_input_ids"] = torch.tensor([encoding.target.ids], device=checkpoint.device)
    return tensors


def _own_output(checkpoint: Checkpoint) -> Any:
    """Return the output of the model for a short text, with the maps of its eager attention."""
    model = checkpoint.model
    before = model.config._attn_implementation
    if before != "eager":
        model.set_attn_implementation("eager")
    try:
        with torch.no_grad():
            return model(**_inputs(checkpoint), output_attentions=True)
    finally:
        if before != "eager":
            model.set_attn_implementation(before)


def _seen(checkpoint: Checkpoint, reach: Reach) -> list[Tensor]:
    """Return the weights that a run observes on a short text; empty if it does not observe each layer once."""
    kept: dict[int, Tensor] = {}
    every = frozenset(call for own in checkpoint.sets for call in own.calls)
    run = AttentionRun(checkpoint.calls, watcher=kept.__setitem__, watched=every, numbers=checkpoint.sets[0].attending)
    try:
        with torch.no_grad(), reached(checkpoint, run, reach):
            checkpoint.model(**_inputs(checkpoint))
    except (RuntimeError, ValueError, TypeError, AttributeError, NotImplementedError, IndexError, KeyError):
        return []
    return [kept[call] for call in sorted(kept)] if run.calls == checkpoint.calls else []


def _fit(checkpoint: Checkpoint, every: list[Tensor]) -> bool:
    """Return whether weights are maps: a key for each query (or source token), a possible sink, rows sum to 1."""
    for call, weights in enumerate(every):
        if weights.dim() != 4 or not bool(((weights.float().sum(-1) - 1).abs() < 1e-3).all()):
            return False
        crosses = any(own.part == "cross" and call in own.calls for own in checkpoint.sets)
        widths = (weights.shape[2], weights.shape[2] + checkpoint.family.sinks)
        if not crosses and weights.shape[3] not in widths:
            return False
    return True


def _as_declared(checkpoint: Checkpoint, every: list[Tensor]) -> bool:
    """Return whether no query of a causal set attends to a later key."""
    causal = [call for own in checkpoint.sets if own.causal for call in own.calls]
    numbers = sorted(call for own in checkpoint.sets for call in own.calls)
    return all(
        float(weights[..., : weights.shape[2]].triu(1).abs().max()) < 1e-6
        for call, weights in zip(numbers, every, strict=True)
        if call in causal
    )


def _sees_later(checkpoint: Checkpoint) -> str:
    return (
        f"The decoder of {checkpoint.name} ({checkpoint.family.model_type}) gives weight to later tokens when it reads "
        "a whole text, so its maps are not those of generation. Choose a checkpoint of another family."
    )


def _equal(seen: list[Tensor], own: list[Tensor]) -> bool:
    """Return whether weights equal the model's; a sink column may follow."""
    if len(seen) != len(own):
        return False
    for mine, theirs in zip(seen, own, strict=True):
        if mine.dim() != 4 or theirs.dim() != 4 or mine.shape[:3] != theirs.shape[:3]:
            return False
        width = min(mine.shape[-1], theirs.shape[-1])
        off = (mine[..., :width].float() - theirs[..., :width].float()).abs().max()
        if not float(off) <= EQUAL.get(theirs.dtype, 0.05):
            return False
    return True
