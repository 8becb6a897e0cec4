"""Maps drawn from the words of each class definition, so that their class is known before anything is trained.

The codebook shows them where nobody has labelled a map yet, and the tests of the classifiers learn them. They are no
labels: nothing drawn here is ever stored.
"""

import numpy as np

from core.codebook.classes import ClassSet
from core.codebook.measures import Map
from core.codebook.registry import BERT, SHIPPED, codebook_of
from core.errors import InputError


def drawable(class_set: str, name: str) -> bool:
    """Whether this class is one whose definition we can draw; people's own classes are not."""
    return codebook_of(class_set) is not None and name in SHIPPED[class_set].names


def synthetic_map(class_set: str, name: str, *, length: int, seed: int) -> Map:
    """One map [query, key] of `length` tokens, rows summing to 1, as the definition of the class says.

    InputError for a class of people's own making.
    """
    codebook = codebook_of(class_set) if drawable(class_set, name) else None
    if codebook is None:
        raise InputError(f'Only the shipped classes can be drawn; "{name}" of "{class_set}" is none: label a map so.')
    return codebook.draw(np.random.default_rng(seed), name, length)


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
    if class_set.codebook is None:
        raise InputError(f"Only maps of shipped classes can be drawn; {class_set.name} is none of their sets.")
    maps, labels, groups = [], [], []
    for number in range(each):
        length = int(rng.integers(shortest, longest + 1))
        for name in class_set.names:
            maps.append(class_set.codebook.draw(rng, name, length))
            labels.append(name)
            groups.append(f"input {number % inputs}")
    return maps, labels, groups
