"""Attention from the outputs of a layer back to the inputs: rollout and flow (Abnar and Zuidema 2020, arXiv
2005.00928).

Both use a layered graph whose edge from query i of layer l to key j of the previous layer is A_l[i, j] = 0.5 mean_h
alpha[l, h, i, j] + 0.5 [i = j], with normalised rows. Rollout sums the products of edges along every path; flow is the
maximum flow. Both are scores of a layer and a pair of tokens, not of a head.
"""

import numpy as np
from jaxtyping import Float
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from ..errors import InputError

UNITS = 10**6  # an edge of weight 1 has so many units of capacity: maximum_flow counts in whole numbers


def mixed_with_residual(
    weights: Float[np.ndarray, "layer head query key"],
) -> Float[np.ndarray, "layer query key"]:
    """Average the attention maps over heads, and mix them equally with the identity matrix for the residual connection.
    Return one float64 map per layer. Rows are rescaled to sum to 1.

    Raises InputError without layers or heads, for maps that are not square, or for layers without attention.
    """
    if without := int(np.isnan(weights).all((1, 2, 3)).sum()):
        raise InputError(
            f"Attention rollout and attention flow need attention in every layer; {without} of the "
            f"{len(weights)} layers have none. Choose another checkpoint."
        )
    if not weights.shape[0] or not weights.shape[1] or weights.shape[2] != weights.shape[3]:
        raise InputError(
            "Attention rollout and attention flow need square maps of at least one layer and head; got the shape "
            f"{weights.shape}. Choose self-attention maps."
        )
    mixed = 0.5 * weights.mean(1, dtype=np.float64) + 0.5 * np.eye(weights.shape[-1])
    return mixed / mixed.sum(-1, keepdims=True)


def rollout(weights: Float[np.ndarray, "layer head query key"]) -> Float[np.ndarray, "layer output input"]:
    """Return the fraction of each layer output that comes from each input token. The recursion is R_l = A_l R_(l-1),
    with R_0 = A_0. Raises the same errors as `mixed_with_residual`."""
    mixed = mixed_with_residual(weights)
    rolled = [mixed[0]]
    for layer in mixed[1:]:
        rolled.append(layer @ rolled[-1])
    return np.stack(rolled)


def flow(
    weights: Float[np.ndarray, "layer head query key"], output: int, *, layer: int | None = None
) -> Float[np.ndarray, " input"]:
    """Return the maximum flow (0 to 1) from a layer output to each input token. Capacities are the attention weights,
    averaged over heads and mixed half and half with the residual connection.

    Capacities are rounded to millionths, so a flow is off by at most half a millionth per edge of its smallest cut.
    `layer` is zero-based (None: the last). Raises InputError if the layer or token does not exist, or maps are not
    square.
    """
    mixed = mixed_with_residual(weights)
    layers, length, _ = mixed.shape
    layer = layers - 1 if layer is None else layer
    if not (0 <= layer < layers and 0 <= output < length):
        raise InputError(
            f"Attention flow must start at a layer from 0 to {layers - 1} and at a token from 0 to {length - 1}; got "
            f"layer {layer} and token {output}. Choose values in these ranges."
        )
    graph, source = _capacities(mixed[: layer + 1]), (layer + 1) * length + output
    return np.array([maximum_flow(graph, source, sink).flow_value for sink in range(length)]) / UNITS


def _capacities(mixed: Float[np.ndarray, "layer query key"]) -> csr_array:
    """Return the layered graph as a sparse matrix; node level * length + token, with the inputs at level 0."""
    layers, length, _ = mixed.shape
    layer, query, key = np.nonzero(units := np.rint(mixed * UNITS).astype(np.int32))
    rows, columns = (layer + 1) * length + query, layer * length + key
    nodes = (layers + 1) * length
    return csr_array((units[layer, query, key], (rows, columns)), shape=(nodes, nodes))
