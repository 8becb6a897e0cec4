"""Cosine similarity of token vectors by layer (Ethayarajh 2019): random pairs, one word in other inputs, one input.

The mean over random pairs is the anisotropy: near 0 for isotropic vectors, near 1 for vectors in a narrow cone. The
other two are compared with it. Values are per input, so intervals are over inputs.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

RANDOM_PAIRS, SAME_WORD, SAME_INPUT = "random pairs", "same word", "same input"
PAIR_KINDS = (RANDOM_PAIRS, SAME_WORD, SAME_INPUT)


def similarities(
    vectors: Float[np.ndarray, "token layer hidden"], inputs: Sequence[int], types: Sequence[str], *, seed: int = 0
) -> Float[np.ndarray, "kind input layer"]:
    """Return mean cosines by layer for each of PAIR_KINDS and each input; NaN if an input has no such pair.

    random pairs: each token with one drawn from another input. same word: with the same type in another input. same
    input: with the mean vector of its input (Ethayarajh's intra-sentence similarity).
    """
    input_of_token = np.asarray(inputs)
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)
    rng, everyone = np.random.default_rng(seed), np.arange(len(input_of_token))
    by_type: dict[str, list[int]] = {}
    for token, word_type in enumerate(types):
        by_type.setdefault(word_type, []).append(token)
    partners = [_partner(token, everyone, input_of_token, rng) for token in everyone.tolist()]
    alike = [_partner(token, np.array(by_type[types[token]]), input_of_token, rng) for token in everyone.tolist()]
    numbers = np.unique(input_of_token)
    cosines = np.full((len(PAIR_KINDS), len(numbers), vectors.shape[1]), np.nan)
    for row, number in enumerate(numbers.tolist()):
        rows_of_input = np.flatnonzero(input_of_token == number)
        for kind, chosen in enumerate((partners, alike)):
            pairs = [(token, chosen[token]) for token in rows_of_input.tolist() if chosen[token] is not None]
            if pairs:
                first, second = (unit[[pair[side] for pair in pairs]] for side in (0, 1))
                cosines[kind, row] = (first * second).sum(-1).mean(0)
        centre = vectors[rows_of_input].mean(0)
        centre = centre / np.maximum(np.linalg.norm(centre, axis=-1, keepdims=True), 1e-12)
        cosines[2, row] = (unit[rows_of_input] * centre).sum(-1).mean(0)
    return cosines


def _partner(token: int, among: np.ndarray, own_tokens: np.ndarray, rng: np.random.Generator) -> int | None:
    """A token of another input, or None."""
    for _ in range(20):  # nearly always the first
        drawn = int(among[rng.integers(len(among))])
        if own_tokens[drawn] != own_tokens[token]:
            return drawn
    unlike = among[own_tokens[among] != own_tokens[token]]
    return int(rng.choice(unlike)) if len(unlike) else None


def relative_entropy(weights: Float[np.ndarray, "*head query key"]) -> Float[np.ndarray, "*head query"]:
    """Return the entropy of each row divided by that of the uniform row over visible keys; NaN for rows with one key.

    If the first map has no weight after the diagonal, all maps are treated as causal.
    """
    logs = np.log(np.maximum(weights, 1e-30))
    entropy = -(weights * logs).sum(-1)
    keys = weights.shape[-1]
    causal = keys > 1 and bool((np.triu(weights.reshape(-1, keys, keys)[0], 1) == 0).all())
    visible = np.arange(1, keys + 1) if causal else np.full(keys, keys)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(visible > 1, entropy / np.log(visible), np.nan)
