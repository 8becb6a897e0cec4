"""Training and classifying at 64 x 64 and 128 x 128: seconds of a fit, maps a second, agreement of bf16 with fp32."""

import time

import numpy as np

from core.codebook.registry import BERT
from core.patterns.suggestions import probabilities
from core.patterns.training import Classifier, ClassifierRecipe, fit
from tests.codebook.drawn_maps import synthetic_maps

FIT_MAPS, EPOCHS = 400, 200


def maps_of(size: int, count: int, seed: int = 0) -> tuple[list[np.ndarray], list[str]]:
    """Maps drawn from the class definitions, up to `size` tokens."""
    maps, names, _ = synthetic_maps(BERT, each=-(-count // len(BERT)), seed=seed, shortest=size // 2, longest=size)
    return maps[:count], names[:count]


def speed(classifier: Classifier, maps: list[np.ndarray], dtype: str) -> float:
    """Maps a second, the better of two runs after one to warm up."""
    probabilities(classifier, maps[:256], dtype=dtype)
    best = float("inf")
    for _ in range(2):
        began = time.perf_counter()
        probabilities(classifier, maps, dtype=dtype)
        best = min(best, time.perf_counter() - began)
    return len(maps) / best


def main() -> dict[str, object]:
    maps, names = maps_of(64, FIT_MAPS)
    began = time.perf_counter()
    classifier = fit(maps, names, BERT.names, ClassifierRecipe(epochs=EPOCHS, size=64))
    seconds = time.perf_counter() - began
    unseen, _ = maps_of(64, 4096, seed=1)
    single, _ = probabilities(classifier, unseen)
    half, _ = probabilities(classifier, unseen, dtype="bfloat16")
    both = fit(maps[:100], names[:100], BERT.names, ClassifierRecipe(kind="both", epochs=1, size=64))
    trees = fit(maps[:100], names[:100], BERT.names, ClassifierRecipe(kind="trees"))
    longer, _ = maps_of(128, 1024, seed=2)
    large = Classifier(classifier.classes, classifier.recipe, 128, classifier.tensors)
    return {
        f"fit of {FIT_MAPS} maps at 64 x 64 for {EPOCHS} epochs, s": seconds,
        "64 x 64 in bf16, maps/s": speed(classifier, unseen, "bfloat16"),
        "64 x 64 in fp32, maps/s": speed(classifier, unseen, "float32"),
        "64 x 64 in bf16, with the statistics (both), maps/s": speed(both, unseen[:1024], "bfloat16"),
        "64 x 64, trees, maps/s": speed(trees, unseen[:1024], "float32"),
        "128 x 128 in bf16, maps/s": speed(large, longer, "bfloat16"),
        "bf16 gives fp32's class": float((half.argmax(1) == single.argmax(1)).mean()),
    }
