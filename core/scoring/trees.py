"""Dependency trees compared with gold trees: attachment scores, spanning trees of attention, branching baselines.

A tree is an array [word] of governors; the root has its own index. Scores count the words of a mask (without
punctuation, as in Clark et al. 2019).
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import networkx as nx
import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.sparse import coo_array
from scipy.sparse.csgraph import minimum_spanning_tree

Heads = Int[np.ndarray, " word"]
Mask = Bool[np.ndarray, " word"]


# ---------------------------------------------------------------- attachment scores


def attached(gold: Heads, predicted: Heads, scored: Mask) -> int:
    """Count the scored words that are attached to their gold governor (syntactic head): the numerator of UAS."""
    return int(((np.asarray(gold) == np.asarray(predicted)) & scored).sum())


def neighbours(heads: Heads) -> Bool[np.ndarray, "word word"]:
    """Return a symmetric matrix that marks which words are connected by an edge of a dependency tree."""
    tree = np.asarray(heads)[:, None] == np.arange(len(heads))
    return tree | tree.T


def governed(gold: Heads, scored: Mask) -> int:
    """Count the scored words that have a governor: the denominator of the undirected attachment score."""
    return int((scored & (np.asarray(gold) != np.arange(len(gold)))).sum())


# ---------------------------------------------------------------- trees out of weights


def spanning_trees(weights: Float[np.ndarray, "map word word"]) -> Bool[np.ndarray, "map word word"]:
    """Return the maximum spanning tree of each map, with edge weights w[i, j] + w[j, i] (Htut et al. 2019)."""
    directed = np.asarray(weights, dtype=np.float64)
    maps, words = directed.shape[:2]
    first, second = np.triu_indices(words, 1)
    cost = (directed + directed.transpose(0, 2, 1))[:, first, second]
    cost = cost.max(initial=0.0) + 1.0 - cost  # above 0 because scipy reads 0 as "no edge"
    starts = np.arange(maps)[:, None] * words
    places = ((starts + first).ravel(), (starts + second).ravel())
    tree = minimum_spanning_tree(coo_array((cost.ravel(), places), shape=(maps * words,) * 2).tocsr()).tocoo()
    joined = np.zeros((maps, words, words), dtype=bool)
    joined[tree.row // words, tree.row % words, tree.col % words] = True
    return joined | joined.transpose(0, 2, 1)


def joined(gold: Heads, trees: Bool[np.ndarray, "tree word word"], scored: Mask) -> Int[np.ndarray, " tree"]:
    """Return how many scored words each tree links to their gold governor, in either direction (undirected UAS)."""
    counted = scored & (np.asarray(gold) != np.arange(len(gold)))
    return trees[:, np.arange(len(gold))[counted], np.asarray(gold)[counted]].sum(-1)


def rooted_tree(scores: Float[np.ndarray, "dependent head"], root: int) -> Heads:
    """Return the maximum spanning tree with a given root (Chu-Liu-Edmonds). Scores must be finite."""
    size = len(scores)
    without_self = np.where(np.eye(size, dtype=bool), -np.inf, scores)
    nearest = np.where(np.arange(size) == root, root, without_self.argmax(-1))
    # Whether every word reaches the root along governors
    at = nearest
    for _ in range(len(nearest).bit_length()):
        at = at[at]
    if bool((at == root).all()):  # the best heads form a tree, so no other tree is better
        return nearest
    graph = nx.DiGraph()
    graph.add_nodes_from(range(size))
    for dependent in range(size):
        for head in range(size):
            if dependent not in (head, root):
                graph.add_edge(head, dependent, weight=float(scores[dependent, head]))
    tree = nx.maximum_spanning_arborescence(graph)
    heads = np.full(size, root)
    for head, dependent in tree.edges:
        heads[dependent] = head
    return heads


def likeliest_tree(scores: Float[np.ndarray, "dependent candidate"]) -> Heads:
    """Return the highest-scoring dependency tree with exactly one root or, if there is none, with any number of roots.

    `scores` are log weights of the governors of each word. Candidate 0 is "no governor", candidate j + 1 is word j.
    Values that are not finite are avoided if possible.
    """
    finite = scores[np.isfinite(scores)]
    dear = 1.0 + (float(finite.max()) - float(finite.min())) * len(scores)
    matrix = np.full((len(scores) + 1, len(scores) + 1), -dear)
    matrix[1:] = np.where(np.isfinite(scores), scores, -dear)
    matrix[1:, 0] -= dear
    heads = rooted_tree(matrix, 0)[1:] - 1
    return np.where(heads < 0, np.arange(len(scores)), heads)


# ---------------------------------------------------------------- baselines


def right_branching(words: int) -> Heads:
    """Return the baseline tree in which the governor of every word is the next word, and the last word is the root."""
    return np.minimum(np.arange(words) + 1, words - 1)


def left_branching(words: int) -> Heads:
    """Return the baseline tree in which the governor of every word is the previous word, and the first word is the
    root."""
    return np.maximum(np.arange(words) - 1, 0)


def best_offset(trees: Iterable[tuple[np.ndarray, np.ndarray]]) -> int:
    """Return the most frequent nonzero offset from a scored word to its governor; 1 if there are no words. In a tie,
    the nearest offset wins, then the positive one. A tree is given by the governors of the words in one sentence and
    the mask of scored words."""
    counts: Counter[int] = Counter()
    for heads, scored in trees:
        counts.update((np.asarray(heads) - np.arange(len(heads)))[scored].tolist())
    counts.pop(0, None)
    return min(counts, key=lambda offset: (-counts[offset], abs(offset), -offset), default=1)


def best_offsets(trees: Iterable[tuple[np.ndarray, np.ndarray, Sequence[str]]]) -> dict[str, int]:
    """Return the most frequent nonzero offset from a scored word to its governor, for each relation. A tree is given by
    the governors of the words in one sentence, the mask of scored words, and the relations."""
    by_relation: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    for heads, scored, relations in trees:
        for relation in set(relations):
            is_relation = scored & np.array([name == relation for name in relations])
            by_relation.setdefault(relation, []).append((heads, is_relation))
    return {relation: best_offset(links) for relation, links in by_relation.items()}


def at_offsets(offsets: Sequence[int]) -> Heads:
    """Return the tree in which every word has its governor at the given offset. Words whose offset leads outside the
    sentence become roots."""
    places = np.arange(len(offsets))
    heads = places + np.asarray(offsets, dtype=int)
    return np.where((heads < 0) | (heads >= len(offsets)), places, heads)
