"""Synthetic encoder maps of every class of BERT's set and of the borders between them, with class probabilities.

A map is a background with columns, lines, squares or spots of random strength and extent. Its probabilities follow the
thresholds of the codebook, softened, because annotators differ near them. No labelled map is used.
"""

import numpy as np
from jaxtyping import Float64
from scipy.special import expit

from ..codebook.measures import BESIDE, LINED, MARK, NEARLY_UNIFORM, OFFSETS, STRONG, Map

SHORTEST, LONGEST = 6, 65  # tokens
KINDS = (0.28, 0.08, 0.17, 0.27, 0.2)  # fractions of maps built from columns, a line, both, squares, spots
COLUMN_MARKS = (0.09, 0.12, 0.15, 0.19)  # annotators differ in how dark the cells of a column must be
Random = np.random.Generator
Square = Float64[np.ndarray, "query key"]


def synthetic_maps(count: int, seed: int) -> tuple[tuple[Map, ...], Float64[np.ndarray, "map class"]]:
    """Return random synthetic attention maps and, for each map, the probabilities of the pattern classes for BERT."""
    rng = np.random.default_rng(seed)
    drawn = [_drawn(rng) for _ in range(count)]
    return tuple(weights for weights, _ in drawn), np.array([class_probabilities(*one) for one in drawn])


def class_probabilities(weights: Map, second: np.ndarray) -> Float64[np.ndarray, " class"]:
    """Return the probability of each pattern class for BERT, given an attention map. `second` is a mask of the tokens
    in the second sentence."""
    strongest = int(np.argmax((weights >= 0.15).mean(0) + weights.mean(0)))
    column = np.mean([_followed(weights, mark) for mark in COLUMN_MARKS])
    dark = expit(((weights[:, strongest] >= STRONG).mean() - BESIDE) / 0.07)
    offset = max(OFFSETS, key=lambda k: np.diagonal(weights, k).mean())
    marks = np.diagonal(weights, offset) >= MARK
    weakest = min(part.mean() for part in np.array_split(marks, 3))
    line = expit((marks.mean() - LINED) / 0.07) * expit((weakest - 0.12) / 0.05) * _darker(weights, second, offset)
    block = _squares(weights, second) * (1 - 0.85 * line) * (1 - 0.8 * dark)
    others = np.array([(1 - line) * column, line * (1 - dark), line * dark, 0, (1 - line) * (1 - column)])
    blank = expit((NEARLY_UNIFORM - weights.max()) / 0.01)
    return (1 - blank) * (others * (1 - block) + block * np.eye(5)[3]) + blank * np.eye(5)[4]


def _followed(weights: Map, mark: float) -> float:
    """Return the probability that an annotator who marks cells from `mark` follows a column, or two clean ones."""
    clean = ((weights >= 0.9 * mark).mean(0) >= 0.9).sum()
    return float(max(expit(((weights >= mark).mean(0).max() - 0.62) / 0.07), expit((clean - 1.5) * 4)))


def _darker(weights: Map, second: np.ndarray, offset: int) -> float:
    """Return the probability that a line is darker than the rest of its rows within the sentence, unlike a square."""
    cells = np.diagonal(weights, offset)
    rows = max(-offset, 0) + np.arange(len(cells))
    others = second[rows][:, None] == second
    others[np.arange(len(cells)), rows + offset] = False
    beside = (weights[rows] * others).sum(1) / np.maximum(others.sum(1), 1)
    return float(expit(np.log(np.median(cells / np.maximum(beside, 1e-4)) / 1.4 + 1e-9) / 0.2))


def _squares(weights: Map, second: np.ndarray) -> float:
    if not second.any():
        return 0.0
    inside = (weights * (second[:, None] == second)).sum(1)
    expected = np.where(second, second.mean(), 1 - second.mean())
    excess = ((inside - expected) / (1 - expected)).mean()
    return float(expit((excess - 0.42) / 0.07) * expit((0.45 - weights.max(1).mean()) / 0.06))


def _normalised(weights: Square) -> Square:
    return weights / np.maximum(weights.sum(1, keepdims=True), 1e-9)


def _drawn(rng: Random) -> tuple[Map, np.ndarray]:
    """Return a map, and whether each of its tokens is in a second sentence."""
    length = int(np.exp(rng.uniform(np.log(SHORTEST), np.log(LONGEST))))
    two = length >= 9 and rng.random() < 0.6
    cut = int(rng.integers(max(3, length // 4), 3 * length // 4)) if two else length
    second = np.arange(length) >= cut
    weights, kind = draw_background(rng, length), rng.choice(len(KINDS), p=KINDS)
    if kind in (0, 2):
        weights = mixed(rng, weights, _columns(rng, second, cut), 0.08, 0.95 if kind == 0 else 0.8)
    if kind in (1, 2):
        weights = mixed(rng, weights, draw_line(rng, length), 0.1, 0.95 if kind == 1 else 0.8)
    if kind == 3:
        even = rng.gamma(3, 1, (length, length)) if rng.random() < 0.5 else weights
        leak = rng.uniform(0, 0.6) ** 1.5
        weights = _normalised(np.where(second[:, None] == second, even, even * leak))
    if kind == 4 and rng.random() < 0.6:
        spots = (rng.random((length, length)) > rng.uniform(0.85, 0.99)) * rng.random((length, length))
        weights = mixed(rng, weights, spots, 0.1, 0.9)
    if kind in (3, 4) and rng.random() < 0.35:
        weights = mixed(rng, weights, _columns(rng, second, cut), 0.04, 0.33)
    if kind == 3 and rng.random() < 0.3:
        weights = mixed(rng, weights, draw_line(rng, length), 0.05, 0.4)
    return _normalised(weights).astype(np.float32), second


def draw_background(rng: Random, length: int) -> Square:
    """Return a random map without a pattern. Its weights may depend on token similarity or distance."""
    shape = np.exp(rng.uniform(-1.6, 2.5))
    weights = rng.gamma(shape, 1 / shape, (length, length))
    if rng.random() < 0.5:
        rank = int(rng.integers(2, 7))
        queries, keys = rng.normal(size=(2, length, rank))
        alike = rng.uniform(0.5, 3) * queries @ (keys if rng.random() < 0.6 else queries).T / np.sqrt(rank)
        weights = weights * np.exp(alike - alike.max(1, keepdims=True))
    if rng.random() < 0.4:
        apart = np.abs(np.arange(length)[:, None] - np.arange(length))
        weights = weights * np.exp(-apart / rng.uniform(2, length))
    return _normalised(weights)


def draw_rows(rng: Random, length: int, jitter: float, fewest: float) -> np.ndarray:
    """Draw the strength of a pattern in each row of a map. In some maps, the pattern is weak in part of the rows."""
    strength = np.exp(rng.normal(0, rng.uniform(0.1, jitter), length))
    if rng.random() < 0.35:
        extent = rng.uniform(fewest, 1)
        rows = rng.random(length) < extent
        if rng.random() < 0.4:
            rows = (np.arange(length) - int(rng.integers(length))) % length < extent * length
        strength = np.where(rows, strength, strength * rng.uniform(0, 0.3))
    return strength


def _columns(rng: Random, second: np.ndarray, cut: int) -> Square:
    length = len(second)
    picture = np.zeros((length, length))
    for _ in range(int(rng.choice([1, 2, 3, 4], p=[0.5, 0.27, 0.13, 0.1]))):
        places = [0, length - 1, cut - 1, int(rng.integers(length))]
        strength = draw_rows(rng, length, 1.2, 0.3)
        if second.any() and rng.random() < 0.25:  # seen from one sentence
            strength = np.where(second == (rng.random() < 0.5), strength, strength * rng.uniform(0, 0.4))
        picture[:, places[int(rng.choice(4, p=[0.3, 0.25, 0.2, 0.25]))]] += strength * rng.uniform(0.3, 1)
    return picture


def draw_line(rng: Random, length: int) -> Square:
    """Return a diagonal line near the main diagonal, or along it."""
    offset = int(rng.choice([0, -1, 1, -2, 2], p=[0.25, 0.32, 0.25, 0.09, 0.09]))
    strength = draw_rows(rng, length, 1.0, 0.2)[:, None]
    picture = np.eye(length, k=offset) * strength
    if rng.random() < 0.4:
        beside = np.eye(length, k=offset - 1) * rng.uniform(0, 0.6) + np.eye(length, k=offset + 1) * rng.uniform(0, 0.6)
        picture += beside * strength
    return picture


def mixed(rng: Random, weights: Square, picture: Square, low: float, high: float) -> Square:
    """Mix a pattern into each row of a map, with a larger share in rows where the pattern is stronger."""
    total = picture.sum(1)
    darker = np.minimum(total / (np.median(total[total > 0]) if total.any() else 1), 1.5)
    share = np.clip(rng.uniform(low, high) * np.exp(rng.normal(0, rng.uniform(0.05, 0.6), len(weights))), 0, 0.97)
    share = np.clip(share * darker, 0, 0.97)[:, None]
    return (1 - share) * weights + share * _normalised(picture + 1e-12)
