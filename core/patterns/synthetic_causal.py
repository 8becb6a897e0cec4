"""Synthetic decoder maps of every class of GPT-2's set and of the borders between them, with class probabilities.

A map is a background with a line, short columns, a dark first column or spots of random strength and extent. Its
probabilities follow the thresholds of the codebook, softened, because annotators differ near them. No labelled map is
used.
"""

import numpy as np
from jaxtyping import Float64
from scipy.special import expit

from ..codebook.measures import BESIDE, HALF, LINED, MARK, NEARLY_UNIFORM, STRONG, Map
from .synthetic import LONGEST, Random, Square, draw_background, draw_line, draw_rows, mixed

SHORTEST = 8  # tokens
LINE, COLUMNS, FIRST, SPOTS = 0, 1, 2, 4  # 3 is a background alone
KINDS = (0.18, 0.25, 0.2, 0.2, 0.17)  # fractions of maps built from each
COLUMN_MARKS = (0.085, 0.1, 0.12)  # annotators differ in how dark the cells of a column must be
NEAR = 2  # steps back that count as near the diagonal


def synthetic_causal_maps(count: int, seed: int) -> tuple[tuple[Map, ...], Float64[np.ndarray, "map class"]]:
    """Return random synthetic causal maps and, for each map, the probabilities of GPT-2's pattern classes."""
    rng = np.random.default_rng(seed)
    drawn = [_drawn(rng) for _ in range(count)]
    return tuple(weights for weights, _ in drawn), np.array([causal_probabilities(*one) for one in drawn])


def causal_probabilities(weights: Map, cut: int) -> Float64[np.ndarray, " class"]:
    """Return the probabilities of GPT-2's pattern classes for a causal map. The second sentence begins at token `cut`.
    For a single sentence, `cut` is the length of the map."""
    length = len(weights)
    later, places = cut if cut < length else length // 2, np.arange(length)
    steps = places[:, None] - places
    near = np.median((weights * ((steps >= 0) & (steps <= NEAR))).sum(1)[1:])
    marks = max((np.diagonal(weights, -k)[k == 0 :] for k in range(3)), key=np.mean) >= MARK
    weakest = min(part.mean() for part in np.array_split(marks, 3) if part.size)
    spots = (weights >= MARK) & (places[:, None] > 0)
    beside = (spots & (steps <= NEAR)).sum() / max(spots.sum(), 1)
    clear = max(expit((near - 0.45) / 0.07), expit((marks.mean() - LINED) / 0.07) * expit((beside - HALF) / 0.07))
    line = clear * expit((weakest - 0.12) / 0.05)
    back = weights[later:, :later]
    dark = expit(((back[:, 0] >= STRONG).mean() - BESIDE) / 0.07) * expit((back.sum(1).mean() - HALF) / 0.07)
    seen = expit((back.sum(1).mean() - 0.72) / 0.06) * expit(((back.max(1) >= 0.15).mean() - HALF) / 0.1)
    earlier = max(dark, seen)
    parts = [(1, cut), (cut, length)] if cut < length else [(1, length)]
    longest = min(
        np.mean([(weights[start:end, start - (start == 1) : end] >= mark).mean(0).max() for mark in COLUMN_MARKS])
        for start, end in parts
    )
    block = expit((longest - HALF) / 0.07)
    line *= 1 - 0.6 * earlier
    majority = (1 - line) * earlier * (1 - 0.35 * block)
    rest = 1 - line - majority
    blank = expit((NEARLY_UNIFORM - weights[1:].max()) / 0.01)
    return (1 - blank) * np.array([line, rest * block, majority, rest * (1 - block)]) + blank * np.eye(4)[3]


def _causal(weights: Square) -> Square:
    lower = np.tril(weights)
    return lower / np.maximum(lower.sum(1, keepdims=True), 1e-12)


def _drawn(rng: Random) -> tuple[Map, int]:
    """Return a map, and where its second sentence begins."""
    length = int(np.exp(rng.uniform(np.log(SHORTEST), np.log(LONGEST))))
    two = rng.random() < 0.75
    cut = int(rng.integers(max(3, length // 4), 3 * length // 4)) if two else length
    second = np.arange(length) >= cut
    weights, kind = _causal(draw_background(rng, length) + 1e-6), rng.choice(len(KINDS), p=KINDS)
    if kind == COLUMNS or rng.random() < 0.2:
        weights = mixed(rng, weights, np.tril(_short_columns(rng, length, cut)), 0.1, 0.95 if kind == COLUMNS else 0.4)
    if kind == LINE or rng.random() < 0.15:
        weights = mixed(rng, weights, np.tril(draw_line(rng, length)), 0.15, 0.97 if kind == LINE else 0.4)
    if kind == FIRST or rng.random() < 0.35:
        first = np.eye(1, length) * draw_rows(rng, length, 0.8, 0.4)[:, None]
        weights = mixed(rng, weights, first, 0.1, 0.97 if kind == FIRST else 0.6)
    if kind == FIRST and rng.random() < 0.3:
        weights = _causal(np.where(second[:, None] > second, weights * rng.uniform(1, 8), weights))
    elif rng.random() < 0.25:
        weights = _causal(np.where(second[:, None] > second, weights * rng.uniform(0, 0.6), weights))
    if kind == SPOTS:
        spots = (rng.random((length, length)) > rng.uniform(0.8, 0.98)) * rng.random((length, length))
        weights = mixed(rng, weights, np.tril(spots), 0.1, 0.85)
    return _causal(weights + 1e-9).astype(np.float32), cut


def _short_columns(rng: Random, length: int, cut: int) -> Square:
    """Return columns of each sentence that start at the diagonal and sometimes end within the sentence."""
    picture, rows = np.zeros((length, length)), np.arange(length)
    for start, end in ((0, cut), (cut, length)) if cut < length else ((0, length),):
        for _ in range(int(rng.choice([0, 1, 2, 3, 5])) if cut < length else 2):
            key = int(rng.integers(start, end))
            last = end if rng.random() < 0.6 else key + 2 + int(rng.exponential(length / 4))
            seen = rows < (last if rng.random() < 0.5 else min(last, end))
            picture[:, key] += seen * draw_rows(rng, length, 1.0, 0.3) * rng.uniform(0.2, 1)
    return picture
