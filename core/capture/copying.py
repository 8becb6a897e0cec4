"""OV copying: whether what a head reads from a token makes that same token more likely (Elhage et al. 2021).

The circuit W_E W_V W_O W_U maps a token that is attended to onto the vocabulary; where its eigenvalues are positive,
tokens raise themselves. Only the weights are looked at: positions, LayerNorms, biases and feed-forward blocks are left
out, and so is the transformation before a masked-word head. Needs an unembedding that is the embedding transposed.
"""

import numpy as np
import torch
from jaxtyping import Float

from ..errors import InputError
from ..models.checkpoint import Checkpoint
from .norms import output_projections
from .values import value_weights


def copying(checkpoint: Checkpoint) -> Float[np.ndarray, "layer head"] | None:
    """How much each head's OV circuit raises the token that it reads: sum(lambda) / sum(|lambda|).

    lambda are the eigenvalues of W_E W_V W_O W_U; those that are not 0 are those of W_O (W_E^T W_E) W_V, as large as a
    head.

    Returns:
        *Range:* -1 to 1; 1: every token raises itself; NaN in layers without attention. None where the family hands
        over no value or output weights, or the checkpoint's embeddings are not tied.
    """
    model = checkpoint.model
    if not getattr(model.config, "tie_word_embeddings", False):
        return None
    try:
        projections = output_projections(checkpoint)
    except InputError:
        return None
    module = model.get_input_embeddings()  # type: ignore[operator]
    weight = getattr(module, "weight", None)
    embedding = None if weight is None else weight.detach().to(torch.promote_types(weight.dtype, torch.float32))
    values = value_weights(checkpoint)
    hidden = projections[0].weight.shape[-1]
    if len(values) != len(projections) or embedding is None or embedding.shape[1] != hidden:
        return None
    spread = (embedding.T @ embedding).double().cpu().numpy()
    copied = np.full((checkpoint.layers, checkpoint.heads), np.nan)
    for number, layer, mine in zip(checkpoint.sets[0].numbers, projections, values, strict=True):
        pairs = zip(layer.weight, mine, strict=True)
        copied[number] = [share(out.double().cpu().numpy() @ spread @ value) for out, value in pairs]
    return copied


def share(circuit: Float[np.ndarray, "dim _"]) -> float:
    """The sum of a matrix's eigenvalues over the sum of their absolute values.

    Returns:
        *Range:* -1 to 1; 0 for a circuit that does nothing.
    """
    eigenvalues = np.linalg.eigvals(circuit)
    size = float(np.abs(eigenvalues).sum())
    return float(eigenvalues.sum().real) / size if size else 0.0
