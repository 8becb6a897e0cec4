"""Similarity of token vectors by layer (Ethayarajh 2019), and entropy of attention.

Similarity is the mean cosine of random pairs (anisotropy), of the same word in different inputs, and of tokens with the
mean vector of their input; the last two also minus the random pairs. Entropy is divided by that of uniform attention.
Layer 0 is the output of the embeddings. Intervals are over inputs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pydantic.dataclasses
from jaxtyping import Float

from ... import capture, studies
from ...errors import InputError
from ...scoring.few_inputs import mean_interval
from ...store.rows import Row
from ...tasks.glue import task_of
from ..attention.records import LayerSimilarity
from ..contract import Done, Study, Unit, provenance
from ..headline import Headline, percent
from ..options import InputOptions, inputs_of_task
from ..records import picked

ENTROPY, BEYOND = "attention entropy", ", beyond random pairs"


@pydantic.dataclasses.dataclass(frozen=True)
class RepresentationOptions(InputOptions):
    """Options for measuring the similarity of token vectors in each layer."""


@dataclass(frozen=True)
class RepresentationPartial:
    """The similarity of token vectors and the entropy of attention, for each input. Undefined values are NaN.

    Attributes:
        similarity: mean cosines of PAIR_KINDS; layer 0 is the embeddings. *Shape:* (kind, input, layer).
        entropy: divided by that of uniform attention, 0 to 1. *Shape:* (input, layer).
    """

    similarity: np.ndarray
    entropy: np.ndarray


class RepresentationStudy(Study[RepresentationOptions, RepresentationPartial]):
    """Measure, for each layer, the similarity of token vectors and the entropy of attention."""

    name, options, partial = "representation", RepresentationOptions, RepresentationPartial
    question = "How similar are the token vectors of each layer?"
    kinds = (LayerSimilarity,)
    called = "How alike vectors are in {checkpoint}"

    def units(self, options: RepresentationOptions) -> list[Unit]:
        """Return a single work unit, because pairs of tokens are sampled across all examples."""
        rows = inputs_of_task(options)
        if len(rows) < 2:
            raise InputError(f"At least two inputs must be compared; got {len(rows)}. Raise `--limit`.")
        return [Unit("rows", size=max(1, sum(len(row.text) + len(row.pair or "") for row in rows) // 4))]

    def run(self, options: RepresentationOptions, unit: Unit) -> Done[RepresentationPartial]:
        checkpoint = studies.worker_cache.get_checkpoint(options.checkpoint)
        rows = inputs_of_task(options)
        encodings = [checkpoint.encode(row.text, row.pair) for row in rows]
        stored = studies.probing.probe_features.piece_vectors_of(checkpoint, encodings)
        tokens = [(number, place) for number, encoding in enumerate(encodings) for place in encoding.ordinary]
        vectors = np.concatenate(
            [stored.get(number)[list(encoding.ordinary)] for number, encoding in enumerate(encodings)]
        )
        types = [encodings[number].tokens[place] for number, place in tokens]
        likeness = similarities(vectors.astype(np.float32), [number for number, _ in tokens], types, seed=options.seed)
        entropies = Entropies(len(encodings), checkpoint.layers)
        capture.running.run(checkpoint, encodings, [entropies])
        return Done(RepresentationPartial(likeness, entropies.means), provenance(checkpoint, [row.id for row in rows]))

    def results(self, options: RepresentationOptions, merged: RepresentationPartial) -> list[LayerSimilarity]:
        values = dict(zip(PAIR_KINDS, merged.similarity, strict=True))
        values |= {kind + BEYOND: values[kind] - values[RANDOM_PAIRS] for kind in PAIR_KINDS[1:]}
        task = task_of(options.task).key
        layers = [
            _layer(name, layer, some[:, layer], task) for name, some in values.items() for layer in range(some.shape[1])
        ]
        return layers + [
            _layer(ENTROPY, layer + 1, merged.entropy[:, layer], task) for layer in range(merged.entropy.shape[1])
        ]

    def headline(self, rows: Sequence[Row]) -> Headline:
        pairs = picked(LayerSimilarity.among(rows), similarity="random pairs")
        first, last = pairs[0], pairs[-1]
        return Headline(
            (
                f"Token vectors from different inputs have a mean cosine similarity of {first.value:.2f} in the "
                f"embeddings and {last.value:.2f} in layer {last.layer}."
            ),
            last.n,
            "inputs",
            percent(last.low, last.high, "{:.2f}", 1),
            "A mean cosine similarity of 0 means that the vectors have no common direction.",
        )


STUDY = RepresentationStudy()


def _layer(name: str, layer: int, values: np.ndarray, task: str) -> LayerSimilarity:
    known = values[np.isfinite(values)].astype(np.float64)
    low, high = (float(end[0]) for end in mean_interval(known[:, None])) if len(known) else (None, None)
    value = float(known.mean()) if len(known) else None
    return LayerSimilarity(
        similarity=name, layer=layer, name=f"{name}, layer {layer}", value=value, low=low, high=high, n=len(known),
        task=task,
    )  # fmt: skip


# ---------------------------------------------------------------- entropies by layer


class Entropies:
    """Observer that computes the relative entropy of attention, averaged over heads and queries, as [input, layer]."""

    def __init__(self, inputs: int, layers: int) -> None:
        self.means = np.full((inputs, layers), np.nan)

    def update(self, layer: int, weights: Any, inputs: list[int]) -> None:
        maps = weights.float().cpu().numpy()
        self.means[inputs, layer] = np.nanmean(relative_entropy(maps), axis=(1, 2))


# ---------------------------------------------------------------- cosines of token vectors

# The mean over random pairs is the anisotropy: near 0 for isotropic vectors, near 1 for vectors in a narrow cone. The
# other two are compared with it. Values are per input, so intervals are over inputs.


RANDOM_PAIRS, SAME_WORD, SAME_INPUT = "random pairs", "same word", "same input"
PAIR_KINDS = (RANDOM_PAIRS, SAME_WORD, SAME_INPUT)


def similarities(
    vectors: Float[np.ndarray, "token layer hidden"], inputs: Sequence[int], types: Sequence[str], *, seed: int = 0
) -> Float[np.ndarray, "kind input layer"]:
    """Compute mean cosines between token vectors, as [kind of token pair, input, layer].

    "random" pairs a token with a random token of another input, "same word" with a token of the same type in another
    input, and "same input" with the mean vector of its input (Ethayarajh's intra-sentence similarity).
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
    """Return a random token of another input, or None if there is none."""
    for _ in range(20):  # nearly always the first
        drawn = int(among[rng.integers(len(among))])
        if own_tokens[drawn] != own_tokens[token]:
            return drawn
    unlike = among[own_tokens[among] != own_tokens[token]]
    return int(rng.choice(unlike)) if len(unlike) else None


def relative_entropy(weights: Float[np.ndarray, "*head query key"]) -> Float[np.ndarray, "*head query"]:
    """Divide the entropy of each map row by the entropy of uniform attention. Rows with only one key become NaN."""
    logs = np.log(np.maximum(weights, 1e-30))
    entropy = -(weights * logs).sum(-1)
    keys = weights.shape[-1]
    causal = keys > 1 and bool((np.triu(weights.reshape(-1, keys, keys)[0], 1) == 0).all())
    visible = np.arange(1, keys + 1) if causal else np.full(keys, keys)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(visible > 1, entropy / np.log(visible), np.nan)
