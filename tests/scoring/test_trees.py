"""Trees and scores against counts by hand, every tree of small sentences, and the treebank read a second way."""

from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from core.scoring import trees
from core.scoring.intervals import share_difference, share_of

EWT = Path(__file__).resolve().parents[3] / "shared/data/ud/UD_English-EWT/en_ewt-ud-test.conllu"
# "the dog chased a cat .": the root is its own head
GOLD = np.array([1, 2, 2, 4, 2, 2])
SCORED = np.array([True] * 5 + [False])


def test_scores_of_a_tree_by_hand():
    predicted = np.array([1, 2, 2, 2, 3, 2])  # a > chased, cat > a: one wrong head, one joined the other way round
    assert trees.attached(GOLD, GOLD, SCORED) == 5
    assert trees.attached(GOLD, predicted, SCORED) == 3
    assert trees.governed(GOLD, SCORED) == 4
    both = np.stack([trees.neighbours(predicted), trees.neighbours(GOLD)])
    assert trees.joined(GOLD, both, SCORED).tolist() == [3, 4]


def is_tree(heads, root):
    for k in range(len(heads)):
        at, steps = k, 0
        while at != root and steps <= len(heads):
            at, steps = heads[at], steps + 1
        if at != root:
            return False
    return True


@pytest.mark.parametrize("seed", range(24))
def test_the_rooted_tree_is_the_best_of_all_trees(seed):
    scores, size = np.random.default_rng(seed).normal(size=(5, 5)), 5
    root = seed % size
    every = [heads for heads in product(range(size), repeat=size) if heads[root] == root and is_tree(heads, root)]
    best = max(every, key=lambda heads: sum(scores[k, h] for k, h in enumerate(heads) if k != root))
    assert trees.rooted_tree(scores, root).tolist() == list(best)
    both = scores + scores.T
    edges = max(
        ({(min(k, h), max(k, h)) for k, h in enumerate(heads) if k != root} for heads in every),
        key=lambda some: sum(both[a, b] for a, b in some),
    )
    joined = trees.spanning_trees(np.stack([scores, -scores]))
    assert {(int(a), int(b)) for a, b in zip(*np.nonzero(np.triu(joined[0])), strict=True)} == edges
    assert (joined == joined.transpose(0, 2, 1)).all()
    assert joined.sum((1, 2)).tolist() == [2 * (size - 1)] * 2
    by_map = [sum(bool(tree[k, head]) for k, head in enumerate(best) if k not in (head, 1)) for tree in joined]
    assert trees.joined(np.array(best), joined, np.arange(size) != 1).tolist() == by_map


@pytest.mark.parametrize("seed", range(4))
def test_the_likeliest_tree_has_one_root_and_no_better_one(seed):
    size = 4
    scores = np.random.default_rng(seed).normal(size=(size, size + 1))
    scores[:, 0] += 3  # being the root is tempting for every word
    scores[np.arange(size), np.arange(size) + 1] = -np.inf
    heads = trees.likeliest_tree(scores)
    best = (-np.inf, None)
    for root in range(size):
        for some in product(range(size), repeat=size):
            if some[root] == root and is_tree(some, root):
                total = scores[root, 0] + sum(scores[k, h + 1] for k, h in enumerate(some) if k != root)
                best = max(best, (total, some), key=lambda pair: pair[0])
    assert heads.tolist() == list(best[1])


def test_branching_and_offsets():
    assert trees.right_branching(4).tolist() == [1, 2, 3, 3]
    assert trees.left_branching(4).tolist() == [0, 0, 1, 2]
    assert trees.best_offset([(GOLD, SCORED)]) == 1
    relations = ["det", "nsubj", "root", "det", "obj", "punct"]
    offsets = trees.best_offsets([(GOLD, SCORED, relations)])
    assert offsets["det"] == 1
    assert offsets["nsubj"] == 1
    assert offsets["obj"] == -2
    assert trees.at_offsets([1, 1, 0, 1, -2, 9]).tolist() == [1, 2, 2, 4, 2, 5]


def test_an_interval_covers_and_a_paired_difference_is_narrower():
    rng = np.random.default_rng(0)
    totals = rng.integers(5, 20, size=200)
    easy = rng.beta(2, 2, size=200)  # sentences differ
    first = rng.binomial(totals, easy)
    second = np.minimum(totals, first + rng.binomial(1, 0.3, size=200))
    share = share_of(first, totals)
    assert share.value == first.sum() / totals.sum()
    assert share.low < share.value < share.high
    more = share_difference(second, first, totals)
    assert more.low > 0
    assert more.high - more.low < (share.high - share.low) / 3
    assert share_of([1], [2]).low is None
    assert share_of([], []).value is None


def test_right_branching_equals_an_independent_count():
    if not EWT.is_file():
        pytest.skip("UD English EWT is not in ../shared")
    from core.studies.probing.syntax import heads_of, scored_of
    from core.tasks.conllu import read_part

    counts = Counter()
    for block in EWT.read_text(encoding="utf-8").strip().split("\n\n"):  # read a second way, by columns alone
        rows = [line.split("\t") for line in block.splitlines() if line[0].isdigit()]
        rows = [row for row in rows if row[0].isdigit()]
        if len(rows) < 2:
            continue
        for number, row in enumerate(rows, start=1):
            if row[7].split(":")[0] != "punct":
                counts["words"] += 1
                last = number == len(rows)
                counts["right"] += row[6] == ("0" if last else str(number + 1))
                counts["left"] += row[6] == str(number - 1)  # the first word's head 0 is the root
    part = read_part(str(EWT.parent), "test")
    scored = [(heads_of(one), scored_of(one)) for one in part.sentences]
    assert counts["words"] == sum(int(mask.sum()) for _, mask in scored)
    for name, branching in (("right", trees.right_branching), ("left", trees.left_branching)):
        assert counts[name] == sum(trees.attached(heads, branching(len(heads)), mask) for heads, mask in scored)
    assert {out.reason for out in part.left_out} == {"one word"}


def test_ties_of_offsets_and_words_at_the_edge():
    every = np.ones(4, dtype=bool)
    two_each = (np.array([1, 2, 1, 2]), every)  # +1 twice, -1 twice
    assert trees.best_offset([two_each]) == 1
    assert trees.best_offset([(np.array([2, 3, 1, 2]), every)]) == -1  # as often as +2, and nearer
    assert trees.best_offset([(np.array([2, 3, 0, 1]), every)]) == 2
    assert trees.best_offset([]) == 1
    assert trees.best_offset([(np.arange(4), every)]) == 1, "roots have no offset"
    assert trees.at_offsets([1, 1, 1]).tolist() == [1, 2, 2]
    assert trees.at_offsets([-1, 2, -2]).tolist() == [0, 1, 0]
    assert trees.at_offsets((0, -1, -1)).tolist() == [0, 0, 1]


@pytest.mark.parametrize("shift", [-1e3, 0, 50])
def test_the_likeliest_tree_does_not_depend_on_the_level_of_the_scores(shift):
    scores = np.random.default_rng(9).normal(size=(5, 6))
    scores[np.arange(5), np.arange(5) + 1] = -np.inf
    heads = trees.likeliest_tree(scores + shift)
    assert heads.tolist() == trees.likeliest_tree(scores).tolist()
    assert sum(head == k for k, head in enumerate(heads)) == 1
