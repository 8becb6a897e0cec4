"""Predicted heads of a treebank's sentences against the gold ones, and baselines that ask no checkpoint.

Punctuation is left out. Branching and fixed offsets are Clark et al.'s baselines (2019, section 5).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ... import scoring
from ...tasks.treebank import plain_relation

if TYPE_CHECKING:
    from .probe_features import Readable

BASELINES = ("right-branching", "left-branching", "one fixed offset", "fixed offset per relation")


@dataclass(frozen=True)
class Parsed:
    """How some trees of test fare.

    Attributes:
        kind: "probe" or "baseline".
        right: words that have their gold head. *Shape:* (sentence,), int.
        words: that count. *Shape:* (sentence,), int.
        joined: words that are joined with their gold head, in either direction. *Shape:* (sentence,), int.
        governed: out of how many: words that count and are no root. *Shape:* (sentence,), int.
        whole: 1 where the undirected tree is all right, else 0. *Shape:* (sentence,), int.
    """

    kind: str
    name: str
    right: np.ndarray
    words: np.ndarray
    joined: np.ndarray
    governed: np.ndarray
    whole: np.ndarray
    note: str = ""


def heads_of(sentence: object) -> np.ndarray:
    """The gold heads of a sentence.

    Returns:
        Places of words from 0; the root is its own head. *Shape:* (word,), int.
    """
    return np.array([word.head for word in sentence.words])  # type: ignore[attr-defined]


def scored_of(sentence: object) -> np.ndarray:
    """Which words of a sentence count: all but punctuation.

    Returns:
        *Shape:* (word,), bool.
    """
    return np.array([plain_relation(word.dep) != "punct" for word in sentence.words])  # type: ignore[attr-defined]


def parsed_of(
    kind: str, name: str, sentences: Sequence[object], predicted: Sequence[np.ndarray], note: str = ""
) -> Parsed:
    """Predicted heads of test's sentences against the gold ones.

    Args:
        kind: "probe" or "baseline".
        predicted: heads of each sentence's words, from 0; the root is its own. *Shape:* (word,) each.
    """
    counts = []
    for sentence, heads in zip(sentences, predicted, strict=True):
        gold, scored = heads_of(sentence), scored_of(sentence)
        joined = int(scoring.trees.joined(gold, scoring.trees.neighbours(heads)[None], scored)[0])
        governed = scoring.trees.governed(gold, scored)
        right = scoring.trees.attached(gold, heads, scored)
        counts.append((right, int(scored.sum()), joined, governed, joined == governed))
    columns = [np.array(column, dtype=np.int32) for column in zip(*counts, strict=True)]
    right_of, words_of, joined_of, governed_of, whole_of = columns
    return Parsed(kind, name, right_of, words_of, joined_of, governed_of, whole_of, note)


def baselines(train: "Readable", test: "Readable") -> list[Parsed]:
    """Branching and fixed offsets; offsets are chosen on train."""
    known = [
        (heads_of(sentence), scored_of(sentence), [plain_relation(word.dep) for word in sentence.words])
        for sentence in train.sentences
    ]
    offset = scoring.trees.best_offset((heads, scored) for heads, scored, _ in known)
    by_relation = scoring.trees.best_offsets(known)
    lengths = [len(sentence.words) for sentence in test.sentences]
    relations = [[plain_relation(word.dep) for word in sentence.words] for sentence in test.sentences]
    predicted = {
        BASELINES[0]: ([scoring.trees.right_branching(n) for n in lengths], "head(i) = i + 1"),
        BASELINES[1]: ([scoring.trees.left_branching(n) for n in lengths], "head(i) = i - 1"),
        BASELINES[2]: (
            [scoring.trees.at_offsets([offset] * n) for n in lengths],
            f"head(i) = i {offset:+d}, chosen on train",
        ),
        BASELINES[3]: (
            [_by_relation(of_input, by_relation, offset) for of_input in relations],
            "the word's gold relation is told; chosen on train",
        ),
    }
    return [parsed_of("baseline", name, test.sentences, heads, note) for name, (heads, note) in predicted.items()]


def _by_relation(relations: Sequence[str], offsets: dict[str, int], otherwise: int) -> np.ndarray:
    """Heads at each relation's own offset; the root is known by its relation."""
    return scoring.trees.at_offsets(
        [0 if relation == "root" else offsets.get(relation, otherwise) for relation in relations]
    )
