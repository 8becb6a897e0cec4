"""Maps drawn from the words of each class definition, so that their class is known before anything is trained."""

import numpy as np

from core.patterns.classes import BERT, GPT2


def normalised(weights, *, causal=False):
    weights = np.tril(weights) if causal else weights
    return (weights / weights.sum(-1, keepdims=True)).astype(np.float32)


def background(rng, length):
    return rng.uniform(0.2, 1.0, (length, length)) / length


def columns(rng, length, count=2):
    picture = np.zeros((length, length))
    picture[:, [0, *rng.choice(length - 1, count - 1, replace=False) + 1]] = 1
    return picture


def line(rng, length):
    return np.eye(length, k=int(rng.choice([-1, 0, 1])))


def halves(rng, length):
    cut = int(rng.integers(length // 3, 2 * length // 3))
    picture = np.zeros((length, length))
    picture[:cut, :cut], picture[cut:, cut:] = 1 / cut, 1 / (length - cut)
    return picture


def bert_map(rng, name, length):
    noise = background(rng, length)
    if name == "vertical":
        return normalised(noise + 2 * columns(rng, length))
    if name == "diagonal":
        return normalised(noise + 3 * line(rng, length))
    if name == "vertical+diagonal":
        return normalised(noise + 2 * columns(rng, length) + 3 * line(rng, length))
    if name == "block":
        return normalised(0.05 * noise + halves(rng, length))
    return normalised(noise + (rng.random((length, length)) > 0.93) * rng.uniform(0, 1, (length, length)))


def gpt2_map(rng, name, length):
    noise = background(rng, length)
    if name == "diagonal":
        return normalised(noise + 3 * np.eye(length, k=-int(rng.integers(0, 2))), causal=True)
    if name == "majority":
        picture = np.zeros((length, length))
        picture[:, : length // 3] = 1
        return normalised(0.1 * noise + picture, causal=True)
    if name == "block":
        picture = np.zeros((length, length))
        for start in (length // 4, 3 * length // 5):
            picture[:, start : start + 3] = 1
        return normalised(0.3 * noise + picture, causal=True)
    return normalised(noise, causal=True)


def drawn(class_set=BERT, *, each=12, inputs=12, seed=0, shortest=20, longest=32):
    """(maps, class names, group of each map): every input has one map of every class, all of one length."""
    rng = np.random.default_rng(seed)
    make = bert_map if class_set.name == BERT.name else gpt2_map
    assert class_set.names in (BERT.names, GPT2.names)
    maps, labels, groups = [], [], []
    for number in range(each):
        length = int(rng.integers(shortest, longest + 1))
        for name in class_set.names:
            maps.append(make(rng, name, length))
            labels.append(name)
            groups.append(f"input {number % inputs}")
    return maps, labels, groups
