"""Norms of weighted value vectors (Kobayashi et al. 2020, arXiv 2004.10102).

A head adds sum_j alpha[i, j] f(x_j) to token i, where f(x) = (x W_V + b_V) W_O with the rows of W_O for this head. The
norm |alpha f(x)| is small if a large weight meets a small f(x). Summed over heads and keys, and with the bias of W_O,
alpha f(x) is the output of the attention sublayer before residual and LayerNorm. Values come from the attention
function, and W_O from the module that runs after it (core.capture.projections).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ..errors import InputError
from ..models.checkpoint import Checkpoint
from ..models.encoding import Encoding
from ..models.memory import maps_bytes, refuse_whole_maps
from .projections import OutputProjection, output_projections
from .running import Observer, batches, prepared

# -------------------- How much of what attention adds comes from separators


def separator_norms(checkpoint: Checkpoint, encodings: Sequence[Encoding]) -> Float[Tensor, "layer input"]:
    """Return the fraction of norm-based attention to separators (mean over heads and queries), as float64. Norm-based
    attention is the norm of weighted value vectors. NaN if there are no separators or no value vectors."""
    shares = torch.full((checkpoint.layers, len(encodings)), float("nan"), dtype=torch.float64)

    class Separators:
        def update(self, layer: int, weights: Tensor, inputs: list[int]) -> None:
            for row, k in enumerate(inputs):
                if encodings[k].separators:
                    on = weights[row][..., list(encodings[k].separators)].double().sum(-1)
                    shares[layer, k] = on.mean().cpu()

    try:
        run_norms(checkpoint, encodings, [Separators()])
    except InputError:
        return torch.full_like(shares, float("nan"))
    return shares


LAYERS_MAPS = 4  # arrays of a layer in memory at once: weights, exact weights, norms, normalised norms


@dataclass(frozen=True)
class Contributions:
    """The vectors alpha f(x), each an attention weight times a transformed value vector. With the bias, they add up to
    the attention output of one layer, for inputs of equal length. Sinks are left out."""

    weights: Float[Tensor, "batch head query key"]
    values: Float[Tensor, "batch head key dim"]
    projection: OutputProjection

    @cached_property
    def transformed(self) -> Float[Tensor, "batch head key hidden"]:
        """Return f(x) for every head and key: the value vector after the output projection."""
        return torch.matmul(self.values, self.projection.weight)

    def lengths(self) -> Float[Tensor, "batch head key"]:
        """Return |f(x)| for every head and key: the norm of the value vector after the output projection."""
        return torch.matmul(self.values, self.projection.triangle).norm(dim=-1)

    def norms(self) -> Float[Tensor, "batch head query key"]:
        """Return the norm |alpha f(x)| for every head, query and key, in units of the attention output."""
        return self.weights * self.lengths()[:, :, None]

    def together(self) -> Float[Tensor, "batch query key"]:
        """Return the norm of the sum of alpha f(x) over heads, for every query and key; opposite contributions
        cancel."""
        rows = [
            torch.einsum("bhk,bhkd->bkd", self.weights[:, :, query], self.transformed).norm(dim=-1)
            for query in range(self.weights.shape[2])
        ]
        return torch.stack(rows, 1)

    def output(self) -> Float[Tensor, "batch query hidden"]:
        """Return the output of the attention sublayer: the sum of alpha f(x) over heads and keys, plus the bias."""
        return torch.einsum("bhqk,bhkd->bqd", self.weights, self.transformed) + self.projection.bias


@dataclass(frozen=True)
class NormMaps:
    """Norm-based attention maps of one input, float32: norms of weighted value vectors after the output projection, for
    each head and for the sum over the heads of each layer. NaN in layers without attention."""

    heads: Float[np.ndarray, "layer head query key"]
    layers: Float[np.ndarray, "layer query key"]


def contributions(
    checkpoint: Checkpoint,
    encodings: Sequence[Encoding],
    take: Callable[[int, Contributions, list[int]], None],
    *,
    kept_layers: int = 0,
) -> None:
    """Compute the vectors alpha f(x), which add up to the attention output of each layer without its bias, in one
    forward pass, and pass them to `take`.

    Raises InputError if values or output projections are not available, or the maps would not fit into memory.

    Args:
        take: called with the layer from 0, its contributions, and the indices of the inputs in the batch. Memory holds
            one layer of one batch, and what `take` stores.
        kept_layers: number of layers whose maps `take` stores, for the memory check.
    """
    projections = dict(zip(checkpoint.sets[0].numbers, output_projections(checkpoint), strict=True))
    for inputs in batches(encodings):
        length = len(encodings[inputs[0]])
        maps = (LAYERS_MAPS + kept_layers) * maps_bytes(len(inputs), checkpoint.heads, length)
        refuse_whole_maps("Norms of attention", length, maps, str(checkpoint.device))
        held: list[Tensor] = []

        def watch(_: int, weights: Tensor, held: list[Tensor] = held) -> None:
            held.append(weights)

        def mix(
            layer: int,
            output: Tensor,
            values: Tensor,
            _: Tensor | None,
            held: list[Tensor] = held,
            inputs: list[int] = inputs,
        ) -> Tensor:
            exact = projections[layer].weight.dtype
            weights = held.pop()[..., : values.shape[2]].to(exact)  # a sink has no value vector
            take(layer, Contributions(weights, values.to(exact), projections[layer]), inputs)
            return output

        with torch.no_grad(), prepared(checkpoint, watcher=watch) as run:
            run.mixer = mix
            checkpoint.model(**checkpoint.inputs([encodings[k] for k in inputs]))


def norm_maps(checkpoint: Checkpoint, encoding: Encoding) -> NormMaps:
    """Return the norm-based attention maps of one input. Raises InputError if values or output projections cannot be
    read."""
    length = len(encoding)
    heads = np.full((checkpoint.layers, checkpoint.heads, length, length), np.nan, dtype=np.float32)
    layers = np.full((checkpoint.layers, length, length), np.nan, dtype=np.float32)

    def keep(layer: int, taken: Contributions, _: list[int]) -> None:
        heads[layer] = taken.norms()[0].float().cpu().numpy()
        layers[layer] = taken.together()[0].float().cpu().numpy()

    contributions(checkpoint, [encoding], keep, kept_layers=checkpoint.layers)
    return NormMaps(heads, layers)


def run_norms(checkpoint: Checkpoint, encodings: Sequence[Encoding], observers: Sequence[Observer]) -> None:
    """Pass norm-based attention maps to observers. Rows are first rescaled so that each row sums to 1."""

    def show(layer: int, taken: Contributions, inputs: list[int]) -> None:
        maps = normalised(taken.norms())
        for observer in observers:
            observer.update(layer, maps, inputs)

    contributions(checkpoint, encodings, show)


def normalised(norms: Float[Tensor, "*heads query key"]) -> Float[Tensor, "*heads query key"]:
    """Divide every row of norms by its sum. A row that contains only zeros is not changed."""
    sums = norms.sum(-1, keepdim=True)
    return norms / torch.where(sums > 0, sums, torch.ones_like(sums))
