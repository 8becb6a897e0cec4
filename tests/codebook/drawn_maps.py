"""Maps drawn from the words of each class definition, so that their class is known before anything is trained."""

import numpy as np

from core.codebook.registry import BERT


def synthetic_maps(class_set=BERT, *, each=12, inputs=12, seed=0, shortest=20, longest=32):
    """(maps, class names, group of each map): every input has one map of every class, all of one length."""
    rng = np.random.default_rng(seed)
    maps, labels, groups = [], [], []
    for number in range(each):
        length = int(rng.integers(shortest, longest + 1))
        for name in class_set.names:
            maps.append(class_set.codebook.draw(rng, name, length))
            labels.append(name)
            groups.append(f"input {number % inputs}")
    return maps, labels, groups
