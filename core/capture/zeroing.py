"""Value zeroing (Mohebbi et al. 2023, arXiv 2301.12971): how much the output of a layer at a token depends on another
token.

The value vector of token j is set to 0 in every head of one layer. The score of (i, j) is the cosine distance between
the outputs of the layer at token i with and without this change. Unlike weights, it includes values, output projection,
residual stream, LayerNorm and feed-forward sublayer. It is a score of a layer, not of a head. In models with LayerNorm
first (GPT-2), the output of a layer is the residual stream after it.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..errors import InputError
from ..models.checkpoint import Checkpoint
from ..models.encoding import Encoding
from .function import AttentionRun, of_this_thread, running
from .projections import layer_modules
from .running import BATCH_TOKENS, prepared


class _Call(NamedTuple):
    """The arguments and output of a layer in a run."""

    layer: nn.Module
    arguments: tuple[Any, ...]
    named: dict[str, Any]
    output: Float[Tensor, "batch position hidden"]


def value_zeroing(checkpoint: Checkpoint, encoding: Encoding) -> Float[np.ndarray, "layer query key"]:
    """Return how much the layer output at each position changes if the value vectors of one token are set to 0. The
    change is a cosine distance, 0 to 2, float64. Each row is then divided by its sum, unless the sum is 0.

    Every layer runs again from its own input, once for each token. Raises InputError if the layers of the family
    cannot be run separately.
    """
    with torch.no_grad():
        with prepared(checkpoint), _calls(checkpoint) as calls:
            stored = {"use_cache": False} if checkpoint.causal else {}  # a layer that runs again must not find its keys
            checkpoint.model(**checkpoint.inputs([encoding]), **stored)
        scores = np.stack([_of_layer(call, len(encoding)) for call in calls])
    if checkpoint.causal:
        scores = np.tril(scores)
    sums = scores.sum(-1, keepdims=True)
    return scores / np.where(sums > 0, sums, 1.0)


@contextmanager
def _calls(checkpoint: Checkpoint) -> Iterator[list[_Call]]:
    """Collect the layers that run in this thread within the context, in order."""
    calls: list[_Call] = []

    def keep(layer: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any], output: Any) -> None:
        calls.append(_Call(layer, arguments, named, _states(output)))

    with ExitStack() as stack:
        layers = layer_modules(checkpoint)
        if not layers:
            raise InputError(
                "Value zeroing needs layers that can be run one at a time, which "
                f"{checkpoint.family.model_type} models do not have. Choose a checkpoint like BERT or GPT-2."
            )
        for layer in layers:
            stack.callback(layer.register_forward_hook(of_this_thread(keep), with_kwargs=True).remove)
        yield calls


def _states(output: Any) -> Tensor:
    return output[0] if isinstance(output, tuple) else output


def _of_layer(call: _Call, length: int) -> Float[np.ndarray, "query key"]:
    """Return the cosine distances [query, key] of one layer; the key is the token with zeroed values."""
    columns = []
    for tokens in torch.arange(length).split(max(1, BATCH_TOKENS // length)):
        zeroed, recomputed = _again(call, tokens).double(), call.output.double()
        distances = (1 - nn.functional.cosine_similarity(zeroed, recomputed, dim=-1)).clamp_min(0)
        same = (zeroed == recomputed).all(-1)  # also where both are 0, which have no cosine
        columns.append(distances.masked_fill(same, 0.0).cpu().numpy())
    return np.concatenate(columns).T


def _again(call: _Call, tokens: Tensor) -> Float[Tensor, "token position hidden"]:
    """Return the outputs of the layer with the values of each of these tokens zeroed in turn, as a batch."""
    held: list[Tensor] = []

    def mix(_: int, output: Tensor, values: Tensor, __: Tensor | None) -> Tensor:
        rows, keys = torch.arange(len(tokens), device=output.device), tokens.to(output.device)
        weights, zeroed = held.pop()[rows, :, :, keys], values[rows, :, keys]  # [token, head, query], [.., dim]
        return output - torch.einsum("bhq,bhd->bqhd", weights.to(zeroed.dtype), zeroed)

    wanted = AttentionRun(1, watcher=lambda _, weights: held.append(weights), watched=frozenset({0}), mixer=mix)
    arguments, named = call.arguments, dict(call.named)
    if arguments:
        arguments = (_copies(arguments[0], len(tokens)), *arguments[1:])
    else:
        named["hidden_states"] = _copies(named["hidden_states"], len(tokens))
    with running(wanted):
        return _states(call.layer(*arguments, **named))


def _copies(states: Tensor, count: int) -> Tensor:
    return states.expand(count, *states.shape[1:])
