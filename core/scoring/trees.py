"""Dependency trees against gold ones: attachment scores, spanning trees of attention, branching baselines.

A tree is an array of heads [word]: the place of each word's governor, and its own place for the root. Scores count
words of a mask (punctuation is left out, as in Clark et al. 2019).
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
    """How many of the scored words have their gold head. Over words: the unlabelled attachment score (UAS).

    Returns:
        *Range:* 0 to the words that count.
    """
    return int(((np.asarray(gold) == np.asarray(predicted)) & scored).sum())


def neighbours(heads: Heads) -> Bool[np.ndarray, "word word"]:
    """Which words the tree joins, both ways."""
    tree = np.asarray(heads)[:, None] == np.arange(len(heads))
    return tree | tree.T


def governed(gold: Heads, scored: Mask) -> int:
    """How many scored words have a governor: what `joined` is out of."""
    return int((scored & (np.asarray(gold) != np.arange(len(gold)))).sum())


# ---------------------------------------------------------------- trees out of weights


def spanning_trees(weights: Float[np.ndarray, "map word word"]) -> Bool[np.ndarray, "map word word"]:
    """Of each map, which words the maximum spanning tree of w[i, j] + w[j, i] joins (Htut et al. 2019).

    All maps are one graph of as many parts, so that one call finds all trees."""
    directed = np.asarray(weights, dtype=np.float64)
    maps, words = directed.shape[:2]
    first, second = np.triu_indices(words, 1)
    cost = (directed + directed.transpose(0, 2, 1))[:, first, second]
    cost = cost.max(initial=0.0) + 1.0 - cost  # above 0: a 0 is no edge there
    starts = np.arange(maps)[:, None] * words
    places = ((starts + first).ravel(), (starts + second).ravel())
    tree = minimum_spanning_tree(coo_array((cost.ravel(), places), shape=(maps * words,) * 2).tocsr()).tocoo()
    joined = np.zeros((maps, words, words), dtype=bool)
    joined[tree.row // words, tree.row % words, tree.col % words] = True
    return joined | joined.transpose(0, 2, 1)


def joined(gold: Heads, trees: Bool[np.ndarray, "tree word word"], scored: Mask) -> Int[np.ndarray, " tree"]:
    """How many words each tree joins with their governor, either way (undirected UAS).

    Args:
        trees: which words are neighbours, symmetric (`spanning_trees`, `neighbours`).

    Returns:
        *Range:* 0 to `governed` of the same words.
    """
    counted = scored & (np.asarray(gold) != np.arange(len(gold)))
    return trees[:, np.arange(len(gold))[counted], np.asarray(gold)[counted]].sum(-1)


def rooted_tree(scores: Float[np.ndarray, "dependent head"], root: int) -> Heads:
    """The spanning tree whose scores add up to the most (Chu-Liu-Edmonds, by networkx), from a given root.

    Args:
        scores: finite, of every word having every other as its head; any sign. The root's own row is not looked at.
    """
    size = len(scores)
    without_self = np.where(np.eye(size, dtype=bool), -np.inf, scores)
    nearest = np.where(np.arange(size) == root, root, without_self.argmax(-1))
    if _leads_to(nearest, root):  # every word has its best head, and that is a tree: none adds up to more
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


def _leads_to(heads: Heads, root: int) -> bool:
    """Whether every word comes to the root by going from head to head."""
    at = heads
    for _ in range(len(heads).bit_length()):
        at = at[at]
    return bool((at == root).all())


def likeliest_tree(scores: Float[np.ndarray, "dependent candidate"]) -> Heads:
    """The best tree with one root.

    Being the root is made so dear that the best tree has no second one.

    Args:
        scores: log weights of each word's heads. Candidate 0 is "no governor", candidate j + 1 is word j. Those that
            are not finite are not chosen while others are there.
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
    """Every word's head is the next one; the last is the root."""
    return np.minimum(np.arange(words) + 1, words - 1)


def left_branching(words: int) -> Heads:
    """Every word's head is the one before; the first is the root."""
    return np.maximum(np.arange(words) - 1, 0)


def best_offset(trees: Iterable[tuple[np.ndarray, np.ndarray]]) -> int:
    """The distance head - word that most scored words with a governor have.

    Args:
        trees: of each sentence the words' heads and which words count. *Shape:* (word,) each.

    Returns:
        In words, never 0: on a tie the nearest, then rightward; 1 where no word counts.
    """
    counts: Counter[int] = Counter()
    for heads, scored in trees:
        counts.update((np.asarray(heads) - np.arange(len(heads)))[scored].tolist())
    counts.pop(0, None)
    return min(counts, key=lambda offset: (-counts[offset], abs(offset), -offset), default=1)


def best_offsets(trees: Iterable[tuple[np.ndarray, np.ndarray, Sequence[str]]]) -> dict[str, int]:
    """The distance head - word that most words of each relation have.

    Args:
        trees: of each sentence the words' heads, which words count, and each word's relation. *Shape:* (word,) each.

    Returns:
        `best_offset` of each relation's words, by relation.
    """
    by_relation: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    for heads, scored, relations in trees:
        for relation in set(relations):
            is_relation = scored & np.array([name == relation for name in relations])
            by_relation.setdefault(relation, []).append((heads, is_relation))
    return {relation: best_offset(links) for relation, links in by_relation.items()}


def at_offsets(offsets: Sequence[int]) -> Heads:
    """Each word's head at an offset of its own.

    Returns:
        Positions of the heads; a word that would leave the sentence is taken for the root, its own head.
    """
    places = np.arange(len(offsets))
    heads = places + np.asarray(offsets, dtype=int)
    return np.where((heads < 0) | (heads >= len(offsets)), places, heads)
