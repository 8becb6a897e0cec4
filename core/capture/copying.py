"""OV copying: whether attending to a token makes the same token more likely (Elhage et al. 2021).

The circuit W_E W_V W_O W_U maps an attended token to logits of the vocabulary. Positive eigenvalues mean that tokens
raise their own logit. Positions, LayerNorms, biases, feed-forward sublayers and the transformation before a
masked-language-model head are ignored. The unembedding must be the transposed embedding.
"""

import numpy as np
import torch
from jaxtyping import Float

from ..errors import InputError
from ..models.checkpoint import Checkpoint
from .norms import output_projections
from .values import value_weights


def copying(checkpoint: Checkpoint) -> Float[np.ndarray, "layer head"] | None:
    """Return the copying score of each head: sum(lambda) / sum(|lambda|) over the eigenvalues of its OV circuit, from
    -1 to 1 (pure copying).

    They are the eigenvalues of W_O (W_E^T W_E) W_V, a matrix of the head dimension. NaN in layers without attention;
    None if weights cannot be found or the embeddings are not tied.
    """
    model = checkpoint.model
    if not getattr(model.config, "tie_word_embeddings", False):
        return None
    try:
        projections = output_projections(checkpoint)
    except InputError:
        return None
    module = model.get_input_embeddings()
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
    """Return the sum of the eigenvalues of a matrix divided by the sum of their absolute values; 0 for a zero
    matrix."""
    eigenvalues = np.linalg.eigvals(circuit)
    size = float(np.abs(eigenvalues).sum())
    return float(eigenvalues.sum().real) / size if size else 0.0
