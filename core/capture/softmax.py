"""Families that do not call transformers' attention interface: their weights are taken where the softmax makes them.

DeBERTa, XLNet, GPT-Neo, MPNet, GPT-J and many others compute scores, one softmax over keys a layer, and a product with
the values, in code of their own. While a run lasts, a TorchFunctionMode of this thread stands before that softmax: it
hands the run the scores and gives back what the run made of the weights. Nothing on the model changes. A head whose
weights are 0 gives out 0, so gates and "zero" scale the weights here; heads' outputs and values are out of reach.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from core.capture.function import AttentionRun, changed_weights, refuse_empty_rows
from core.errors import InterventionError

_SOFTMAXES: tuple[Callable[..., Tensor], ...] = (torch.nn.functional.softmax, torch.softmax, torch.Tensor.softmax)
_HIDDEN = 5_000  # below a row's greatest score: families hide keys with -1e4 (CTRL), -1e30 or the dtype's least number


class _BeforeSoftmax(TorchFunctionMode):
    """Hands a run the scores [batch, head, query, key] of every softmax over the last axis.

    flat: the heads of each call, of families whose scores have inputs and heads in one axis.
    """

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
        if last != (2 if self.flat else 3) or _axis(args, options) not in (-1, last):
            return func(*args, **options)
        by_head = scores.unflatten(0, (-1, self.flat[self.run.calls % len(self.flat)])) if self.flat else scores
        made = _weights(self.run, by_head)
        return made.reshape(scores.shape).to(options.get("dtype") or scores.dtype)


def _axis(args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    return options.get("dim", args[1] if len(args) > 1 else None)


def _weights(run: AttentionRun, scores: Tensor) -> Tensor:
    layer = run.next_layer()
    given = scores
    for cut in run.cuts.get(layer, []):
        if cut.renormalised:
            scores = scores.masked_fill((cut.edges & cut.heads).to(scores.device), float("-inf"))
            refuse_empty_rows(scores)
    weights = torch.softmax(scores, -1, dtype=torch.promote_types(scores.dtype, torch.float32))
    for cut in run.cuts.get(layer, []):
        if not cut.renormalised:
            weights = weights.masked_fill((cut.edges & cut.heads).to(scores.device), 0.0)
    weights = changed_weights(weights, run, layer, lambda: _visible(given))
    for head_change in run.head_changes.get(layer, []):
        if head_change.operator == "zero":
            weights = weights.masked_fill(head_change.heads.to(weights.device)[:, :, None, None], 0.0)
    if run.gates is not None:
        gates = run.gates[layer].to(weights.dtype)
        weights = weights * (gates[None, :, None, None] if gates.dim() == 1 else gates[..., None])
    return weights


def _visible(scores: Tensor) -> Tensor:
    """Which keys a query sees [batch, 1, query, key]."""
    return (scores > scores.amax(-1, keepdim=True) - _HIDDEN).any(1, keepdim=True)


@contextmanager
def before_softmax(run: AttentionRun, model_type: str, flat: Sequence[int] = ()) -> Iterator[AttentionRun]:
    """Obey `run` in every softmax of this thread until the block ends.

    Args:
        flat: the heads of each call, of families whose scores have inputs and heads in one axis.

    Raises:
        InterventionError: operators that need heads' outputs.
    """
    if any(head_change.given is not None for head_changes in run.head_changes.values() for head_change in head_changes):
        raise InterventionError(
            f"An operator that puts other outputs in a head's place needs transformers' attention interface; "
            f"{model_type} does not use it: choose disable, zero, previous, current, next or first."
        )
    with _BeforeSoftmax(run, flat):
        yield run
