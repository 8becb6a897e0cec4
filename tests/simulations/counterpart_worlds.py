"""Worlds of counterparts: heads of random, half-trained and half-replaced checkpoints beside each other. Cases for
`registry`.

Checkpoints are encoders of the bundled encoder's tokenizer on bundled rows: small ones of random weights, whose query
and key weights are scaled, and the first layers of the bundled encoder. `match` runs as it is, with its fewest draws.
"""

import copy
from collections.abc import Callable, Iterator
from functools import lru_cache, partial

import numpy as np
import torch
from scipy.special import ndtri

from core import scoring
from core.models.checkpoint import Checkpoint
from core.models.classifier import random_copy
from core.models.opening import open_checkpoint
from core.studies.attention.inputs import SourceText
from core.studies.comparison.head_similarity import beside_random, common_inputs, compared
from core.tasks.glue import read_rows
from tests.simulations.registry import Case

INPUTS, DRAWS, QUERIES = 24, 19, 4
LAYERS = 3  # of the bundled encoder that are looked at
SCALES = (1, 2, 4, 8, 16)


@lru_cache(maxsize=1)
def _trained() -> Checkpoint:
    """The first layers of the bundled encoder."""
    whole = open_checkpoint("atlas-encoder", dtype="float32")
    model = copy.deepcopy(whole.model)
    model.encoder.layer = model.encoder.layer[:LAYERS]
    model.config.num_hidden_layers = LAYERS
    return Checkpoint("first layers", model, whole.tokenizer, "first layers")


@lru_cache(maxsize=2)
def small(layers: int = LAYERS, heads: int = 4) -> Checkpoint:
    """Random weights of narrow heads."""
    trained = _trained()
    config = copy.deepcopy(trained.model.config)
    config.num_hidden_layers, config.num_attention_heads = layers, heads
    config.hidden_size, config.intermediate_size = 12 * heads, 96
    return Checkpoint("small", type(trained.model)(config), trained.tokenizer, "small")


@lru_cache(maxsize=1)
def _sources() -> list[SourceText]:
    """Rows of the two commonest lengths in tokens: a checkpoint reads them in two batches, in a fifth of the time."""
    by_length: dict[int, list[str]] = {}
    for row in read_rows("sst2", "dev", limit=400):
        by_length.setdefault(len(_trained().encode(row.text)), []).append(row.text)
    several = sorted(by_length.values(), key=len)[-2:]
    texts = [text for of_length in several for text in of_length[: INPUTS // 2]]
    return [SourceText(number, str(number), text, None) for number, text in enumerate(texts)]


def scaled(checkpoint: Checkpoint, scale: float) -> Checkpoint:
    """Its query and key weights times a scale, in place."""
    for layer in checkpoint.model.encoder.layer:
        for projection in (layer.attention.self.query, layer.attention.self.key):
            projection.weight.data.mul_(scale)
    return checkpoint


def _between(trained: Checkpoint, random: Checkpoint, share: float) -> Checkpoint:
    """Weights on the line from random to trained ones, in place of the random ones."""
    for mine, its in zip(random.model.parameters(), trained.model.parameters(), strict=False):
        mine.data.mul_(1 - share).add_(its.data * share)
    return random


def found(first: Checkpoint, other: Checkpoint, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Which head each head is matched with, and whether it is a counterpart."""
    shared = common_inputs(first, other, _sources(), queries=QUERIES, seed=seed)
    sums = compared(first, other, shared)
    matches = scoring.counterparts.matching(sums)
    similarity, largest = beside_random(first, other, shared, range(1000 * seed, 1000 * seed + DRAWS))
    own = similarity[np.arange(len(similarity)), matches.match]
    p = scoring.counterparts.beyond_chance(own, largest)
    return matches.match, scoring.counterparts.counterparts(own, p, matches)


def claims_of_random(scale: float, seed: int) -> float:
    """Whether any head of random weights has a counterpart in other random weights."""
    first, other = (scaled(random_copy(small(), seed=2 * seed + k), scale) for k in range(2))
    return float(found(first, other, seed)[1].any())


def claims_of_half_trained(share: float, seed: int) -> float:
    """Whether any head of half-trained weights has a counterpart in random weights with peaked heads."""
    half = _between(_trained(), random_copy(_trained(), seed=2 * seed), share)
    other = scaled(random_copy(_trained(), seed=2 * seed + 1), 8)
    return float(found(half, other, seed)[1].any())


def _half_replaced(seed: int) -> tuple[Checkpoint, np.ndarray]:
    """The trained layers with half of the heads' queries, keys and values as random as they are large."""
    generator, model = torch.Generator().manual_seed(seed), copy.deepcopy(_trained().model)
    heads = model.config.num_attention_heads
    width = model.config.hidden_size // heads
    replaced = torch.zeros(LAYERS * heads, dtype=torch.bool)
    replaced[torch.randperm(len(replaced), generator=generator)[: len(replaced) // 2]] = True
    for number in replaced.nonzero()[:, 0].tolist():
        attention = model.encoder.layer[number // heads].attention.self
        place = slice(number % heads * width, (number % heads + 1) * width)
        for weights in (one for name in ("query", "key", "value") for one in getattr(attention, name).parameters()):
            part = weights.data[place]
            part.copy_(torch.randn(part.shape, generator=generator) * part.std())
    return Checkpoint("half replaced", model, _trained().tokenizer, f"half {seed}"), replaced.numpy()


def claims_of_replaced(seed: int) -> float:
    """Whether any replaced head has a counterpart, or any head one that is not itself."""
    other, replaced = _half_replaced(seed)
    match, claimed = found(_trained(), other, seed)
    return float((claimed & (replaced | (match != np.arange(len(match))))).any())


def finds_of_copies(seed: int) -> float:
    """The share of heads that are found in a checkpoint whose heads changed places inside their layers."""
    rng, model = np.random.default_rng(seed), copy.deepcopy(_trained().model)
    heads = model.config.num_attention_heads
    width, orders = model.config.hidden_size // heads, [rng.permutation(heads) for _ in range(LAYERS)]
    for layer, order in zip(model.encoder.layer, orders, strict=True):
        places = torch.tensor(np.concatenate([np.arange(head * width, (head + 1) * width) for head in order]))
        for name in ("query", "key", "value"):
            for weights in getattr(layer.attention.self, name).parameters():
                weights.data.copy_(weights.data[places])
        out = layer.attention.output.dense.weight
        out.data.copy_(out.data[:, places])
    other = Checkpoint("permuted", model, _trained().tokenizer, f"permuted {seed}")
    match, claimed = found(_trained(), other, seed)
    true = np.concatenate([layer * heads + np.argsort(order) for layer, order in enumerate(orders)])
    return float((claimed & (match == true)).mean())


def finds_of_near(ratio: float, seed: int) -> float:
    """The share of 36 heads that are found whose distance to their counterpart is so much of that to any other."""
    rng, heads, inputs = np.random.default_rng(seed), 36, 100
    far = np.clip(0.5 + 0.05 * ndtri(rng.random((inputs, 1, 1))) + 0.02 * rng.normal(size=(inputs, heads, heads)), 0, 1)
    own = np.arange(heads)
    far[:, own, own] *= ratio
    sums = scoring.counterparts.similarity_sums(far, np.arange(inputs))
    matches = scoring.counterparts.matching(sums)
    p = np.full(heads, 0.01)
    return float(scoring.counterparts.counterparts(sums.similarity()[own, matches.match], p, matches).mean())


def _cases() -> Iterator[Case]:
    worlds: list[tuple[str, Callable[[int], float], int]] = [
        (f"random weights, queries and keys times {scale}", partial(claims_of_random, scale), 60) for scale in SCALES
    ]
    worlds += [
        (f"weights {share:.0%} trained beside random ones", partial(claims_of_half_trained, share), 20)
        for share in (0.3, 0.5, 0.7)
    ]
    worlds.append(("half of the heads replaced by noise", claims_of_replaced, 30))
    for name, draw, draws in worlds:
        yield Case("counterparts", name, "nothing", draw, INPUTS, draws=draws)
    yield Case("counterparts", "heads that changed places", "covers", finds_of_copies, INPUTS, draws=10, bound=1.0)
    near = "heads at four tenths of the distance to others"  # half of NEARER: twice the margin
    yield Case("counterparts", near, "covers", partial(finds_of_near, 0.4), 100, quick=4, bound=0.8)


CASES: tuple[Case, ...] = tuple(_cases())
