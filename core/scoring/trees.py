"""Dependency trees against gold ones: attachment scores, spanning trees of attention, branching baselines.

A tree is an array of heads [word]: the place of each word's governor, and its own place for the root. Scores count
words of a mask (punctuation is left out, as in Clark et al. 2019).
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

Heads = Int[np.ndarray, " word"]
Mask = Bool[np.ndarray, " word"]
Edge = tuple[int, int]


# ---------------------------------------------------------------- attachment scores


def attached(gold: Heads, predicted: Heads, scored: Mask) -> int:
    """How many of the scored words have their gold head. Over words: the unlabelled attachment score (UAS)."""
    return int(((np.asarray(gold) == np.asarray(predicted)) & scored).sum())


def edges_of(heads: Heads) -> set[Edge]:
    """The tree's edges without direction, the smaller place first; a root has none."""
    return {(min(k, int(head)), max(k, int(head))) for k, head in enumerate(heads) if int(head) != k}


def joined(gold: Heads, edges: Iterable[Edge], scored: Mask) -> int:
    """How many of the scored words that have a governor are joined with it, in either direction (undirected UAS)."""
    known = set(edges)
    pairs = ((k, int(head)) for k, head in enumerate(gold) if int(head) != k and scored[k])
    return sum((min(pair), max(pair)) in known for pair in pairs)


def governed(gold: Heads, scored: Mask) -> int:
    """How many scored words have a governor: what `joined` is out of."""
    return int((scored & (np.asarray(gold) != np.arange(len(gold)))).sum())


# ---------------------------------------------------------------- trees out of weights


def spanning_tree(weights: Float[np.ndarray, "word word2"]) -> list[Edge]:
    """The maximum spanning tree of w[i, j] + w[j, i] (Htut et al. 2019): len - 1 edges without direction."""
    from scipy.sparse.csgraph import minimum_spanning_tree

    both = np.asarray(weights, dtype=np.float64)
    both = both + both.T
    cost = both.max() + 1.0 - both  # above 0: a 0 is no edge there
    np.fill_diagonal(cost, 0)
    chosen = minimum_spanning_tree(cost).tocoo()
    return [(min(int(i), int(j)), max(int(i), int(j))) for i, j in zip(chosen.row, chosen.col, strict=True)]


def rooted_tree(scores: Float[np.ndarray, "dependent head"], root: int) -> Heads:
    """The spanning tree from `root` whose scores add up to the most (Chu-Liu-Edmonds, by networkx), as heads.

    scores: finite, of every word having every other as its head; any sign. The root's own row is not looked at.
    """
    import networkx as nx

    graph, size = nx.DiGraph(), len(scores)
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
    """The best tree with one root, as heads. Candidate 0 is "no governor", candidate j + 1 is word j; log weights.

    Being the root is made so dear that the best tree has no second one.
    """
    finite = scores[np.isfinite(scores)]
    dear = 1.0 + (float(finite.max()) - float(finite.min())) * len(scores)
    whole = np.full((len(scores) + 1, len(scores) + 1), -dear)
    whole[1:] = np.where(np.isfinite(scores), scores, -dear)
    whole[1:, 0] -= dear
    heads = rooted_tree(whole, 0)[1:] - 1
    return np.where(heads < 0, np.arange(len(scores)), heads)


# ---------------------------------------------------------------- baselines


def right_branching(words: int) -> Heads:
    """Every word's head is the next one; the last is the root."""
    return np.minimum(np.arange(words) + 1, words - 1)


def left_branching(words: int) -> Heads:
    """Every word's head is the one before; the first is the root."""
    return np.maximum(np.arange(words) - 1, 0)


def best_offset(trees: Iterable[tuple[np.ndarray, np.ndarray]]) -> int:
    """The distance head - word that most scored words with a governor have; the nearest, then rightward, on a tie."""
    counts: Counter[int] = Counter()
    for heads, scored in trees:
        counts.update((np.asarray(heads) - np.arange(len(heads)))[scored].tolist())
    counts.pop(0, None)
    return min(counts, key=lambda offset: (-counts[offset], abs(offset), -offset), default=1)


def best_offsets(trees: Iterable[tuple[np.ndarray, np.ndarray, Sequence[str]]]) -> dict[str, int]:
    """The same for the words of each relation."""
    by_relation: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    for heads, scored, relations in trees:
        for relation in set(relations):
            own = scored & np.array([one == relation for one in relations])
            by_relation.setdefault(relation, []).append((heads, own))
    return {relation: best_offset(some) for relation, some in by_relation.items()}


def at_offsets(offsets: Sequence[int]) -> Heads:
    """Each word's head at its offset; a word that would leave the sentence is taken for the root (its own head)."""
    places = np.arange(len(offsets))
    heads = places + np.asarray(offsets, dtype=int)
    return np.where((heads < 0) | (heads >= len(offsets)), places, heads)
