"""Maps drawn from the words of each class definition, so that their class is known before anything is trained.

The codebook shows them where nobody has labelled a map yet, and the tests of the classifiers learn them. They are no
labels: nothing drawn here is ever stored.
"""

from typing import Any

import numpy as np
from jaxtyping import Float

from core.errors import InputError
from core.patterns.classes import BERT, GPT2, ClassSet

Map = Float[np.ndarray, "query key"]
Random = np.random.Generator


def _normalised(weights: Any, *, causal: bool = False) -> Map:
    weights = np.tril(weights) if causal else weights
    return (weights / weights.sum(-1, keepdims=True)).astype(np.float32)


def _background(rng: Random, length: int) -> Map:
    return rng.uniform(0.2, 1.0, (length, length)) / length


def _columns(rng: Random, length: int, count: int = 2) -> Map:
    picture = np.zeros((length, length))
    picture[:, [0, *rng.choice(length - 1, count - 1, replace=False) + 1]] = 1
    return picture


def _line(rng: Random, length: int) -> Map:
    return np.eye(length, k=int(rng.choice([-1, 0, 1])))


def _halves(rng: Random, length: int) -> Map:
    cut = int(rng.integers(length // 3, 2 * length // 3))
    picture = np.zeros((length, length))
    picture[:cut, :cut], picture[cut:, cut:] = 1 / cut, 1 / (length - cut)
    return picture


def _of_bert(rng: Random, name: str, length: int) -> Map:
    noise = _background(rng, length)
    if name == "vertical":
        return _normalised(noise + 2 * _columns(rng, length))
    if name == "diagonal":
        return _normalised(noise + 3 * _line(rng, length))
    if name == "vertical+diagonal":
        return _normalised(noise + 2 * _columns(rng, length) + 3 * _line(rng, length))
    if name == "block":
        return _normalised(0.05 * noise + _halves(rng, length))
    return _normalised(noise + (rng.random((length, length)) > 0.93) * rng.uniform(0, 1, (length, length)))


def _of_gpt2(rng: Random, name: str, length: int) -> Map:
    noise = _background(rng, length)
    if name == "diagonal":
        return _normalised(noise + 3 * np.eye(length, k=-int(rng.integers(0, 2))), causal=True)
    if name == "majority":
        picture = np.zeros((length, length))
        picture[:, : length // 3] = 1
        return _normalised(0.1 * noise + picture, causal=True)
    if name == "block":
        picture = np.zeros((length, length))
        for start in (length // 4, 3 * length // 5):
            picture[:, start : start + 3] = 1
        return _normalised(0.3 * noise + picture, causal=True)
    return _normalised(noise, causal=True)


_MAKERS = {BERT.name: (BERT, _of_bert), GPT2.name: (GPT2, _of_gpt2)}


def drawable(class_set: str, name: str) -> bool:
    """Whether this class is one whose definition we can draw; people's own classes are not."""
    return class_set in _MAKERS and name in _MAKERS[class_set][0].names


def synthetic_map(class_set: str, name: str, *, length: int, seed: int) -> Map:
    """One map [query, key] of `length` tokens, rows summing to 1, as the definition of the class says.

    InputError for a class of people's own making.
    """
    if not drawable(class_set, name):
        raise InputError(f'Only the shipped classes can be drawn; "{name}" of "{class_set}" is none: label a map so.')
    return _MAKERS[class_set][1](np.random.default_rng(seed), name, length)


def synthetic_maps(
    class_set: ClassSet = BERT,
    *,
    each: int = 12,
    inputs: int = 12,
    seed: int = 0,
    shortest: int = 20,
    longest: int = 32,
) -> tuple[list[Map], list[str], list[str]]:
    """(maps, class names, group of each map): every input has one map of every class, all of one length."""
    rng = np.random.default_rng(seed)
    make = _MAKERS[class_set.name][1]
    maps, labels, groups = [], [], []
    for number in range(each):
        length = int(rng.integers(shortest, longest + 1))
        for name in class_set.names:
            maps.append(make(rng, name, length))
            labels.append(name)
            groups.append(f"input {number % inputs}")
    return maps, labels, groups
