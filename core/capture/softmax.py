"""Families that do not call transformers' attention interface: their weights are taken where the softmax makes them.

DeBERTa, XLNet, GPT-Neo and Falcon compute scores, one softmax over keys a layer, and a product with the values, in code
of their own. While a run lasts, a TorchFunctionMode of this thread stands before that softmax: it hands the run the
scores and gives back what the run made of the weights. Nothing on the model changes. A head whose weights are 0 gives
out 0, so gates and "zero" scale the weights here; heads' outputs and values are out of reach.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from core.capture.function import AttentionRun, changed_weights, refuse_empty_rows
from core.errors import InterventionError

_SOFTMAXES: tuple[Callable[..., Tensor], ...] = (torch.nn.functional.softmax, torch.softmax, torch.Tensor.softmax)
_MASKED = -1e29  # XLNet hides keys with -1e30, the others with the least number of the dtype


class _BeforeSoftmax(TorchFunctionMode):
    """Hands a run the scores [batch, head, query, key] of every softmax over the last of four axes."""

    def __init__(self, run: AttentionRun) -> None:
        super().__init__()
        self.run = run

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        options = kwargs or {}
        if func not in _SOFTMAXES or args[0].dim() != 4 or _axis(args, options) not in (-1, 3):
            return func(*args, **options)
        made = _weights(self.run, args[0])
        return made.to(options.get("dtype") or args[0].dtype)


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
    limit = max(_MASKED, torch.finfo(scores.dtype).min / 2)
    return (scores > limit).any(1, keepdim=True)


@contextmanager
def before_softmax(run: AttentionRun, model_type: str) -> Iterator[AttentionRun]:
    """Obey `run` in every softmax of this thread until the block ends. Raises InterventionError for operators that
    need heads' outputs."""
    if any(head_change.given is not None for head_changes in run.head_changes.values() for head_change in head_changes):
        raise InterventionError(
            f"An operator that puts other outputs in a head's place needs transformers' attention interface; "
            f"{model_type} does not use it: choose disable, zero, previous, current, next or first."
        )
    with _BeforeSoftmax(run):
        yield run
