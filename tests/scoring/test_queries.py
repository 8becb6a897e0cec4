"""The linked query against the other queries of its text: residuals by loops, planted habits, what a decoder sees."""

import math

import numpy as np
import pytest

from core import config
from core.frames.rows import read_sentences
from core.scoring.links import Looked, QueryResiduals, _log_odds, other_queries
from core.studies.frames.frame_heads import select
from tests.scoring.maps import random_maps
from tests.simulations.planted_heads import HABITS, planted, words_of


def test_other_queries_keep_the_keys_and_stay_on_the_text():
    looked = Looked(0, ((2, 5), (3, 5)), (1, 2, 3, 4, 5, 6, 7))
    assert other_queries(looked, causal=False) == (looked.pairs, ((1, 5), (2, 5)), ((3, 5), (4, 5)), ((6, 5), (7, 5)))
    back = Looked(0, ((5, 3),), (1, 2, 3, 4, 5, 6))
    assert other_queries(back, causal=True) == (((5, 3),), ((4, 3),), ((6, 3),))


def _loop(maps, ordinary, kind, causal):
    """Relative weights of one map {(query, key): value}."""
    found = {}
    for rank, q in enumerate(ordinary):
        mass = sum(maps[q][k] for k in ordinary)
        for k in ordinary:
            if not causal or k <= q:
                weight = maps[q][k] if kind == "weight" else maps[q][k] / mass
                keys = len(maps) if kind == "weight" else len(ordinary)
                if causal:
                    keys = q + 1 if kind == "weight" else rank + 1
                    weight = min(max(weight, 1e-6), 1 - 1e-6)
                    found[q, k] = math.log(weight / (1 - weight) * (keys - 1)) if keys > 1 else 0
                else:
                    found[q, k] = weight * keys
    return found


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", ["weight", "share"])
def test_residuals_are_those_of_a_loop(kind, causal):
    maps = [random_maps(2, 1, 3, n, n, causal=causal, seed=n) for n in (7, 7, 8)]  # [layer, 1, head, query, key]
    ordinary = [(1, 2, 3, 4, 5), (1, 2, 4, 5), (1, 2, 3, 4, 5, 6)]
    looked = [Looked(k, ((4, 1), (5, 1), (5, 2)), ordinary[k]) for k in (0, 1, 2)]
    observer = QueryResiduals(looked, layers=2, heads=3, longest=8, causal=causal)
    for layer in range(2):
        observer.update(layer, maps[2][layer], [2])
        both = np.concatenate([maps[0][layer].numpy(), maps[1][layer].numpy()])
        observer.update(layer, both, [0, 1])
    for layer in range(2):
        for head in range(3):
            each = [_loop(maps[k][layer, 0, head].tolist(), ordinary[k], kind, causal) for k in range(3)]
            pairs = [(k - q, value) for one in each for (q, k), value in one.items()]
            curve = {d: np.mean([v for e, v in pairs if e == d]) for d in {d for d, _ in pairs}}
            for number, places in enumerate(observer.places):
                expected = [max(each[number][q, k] - curve[k - q] for q, k in place) for place in places]
                np.testing.assert_allclose(observer.result(kind)[number][:, layer * 3 + head], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("direction", "causal"),
    [
        ("element_to_target", False),
        pytest.param("target_to_element", False, marks=pytest.mark.slow),  # 5 CPU seconds each of the same
        pytest.param("later_to_earlier", True, marks=pytest.mark.slow),
    ],
)
def test_heads_that_attend_to_a_kind_of_word_whatever_the_query_do_not_survive(direction, causal):
    """docs/explanation/frame-heads.md has 100 sets of each; here 8, in which a habit may pass once at most."""
    file = config.SAMPLES / "frames" / "sentences.jsonl"
    sentences = [words_of(one) for one in select(read_sentences(file).sentences).kept]
    tests = [planted(sentences, direction=direction, causal=causal, seed=seed, draws=499) for seed in range(8)]
    survive = np.sum([test.survives for test in tests], axis=0)
    assert survive[: len(HABITS)].sum() <= 1
    assert survive[-1] == 8, "a head that looks along the links survives every time"
    if direction == "element_to_target":
        weaker = np.sum([test.beats_places for test in tests], axis=0)
        assert weaker[HABITS.index("content words")] == 8, "why the nulls on the place are not enough"


def test_log_odds_are_those_of_even_shares_and_are_held_at_the_ends():
    weights = np.array([[[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.2, 0.8]]])
    for seen in ([1, 2, 3], [1, 2, 2]):
        found = _log_odds(weights, np.array(seen))
        for query, n in enumerate(seen):
            for key in range(3):
                kept = min(max(weights[0, query, key], 1e-6), 1 - 1e-6)
                wanted = math.log(kept * (n - 1) / (1 - kept)) if n > 1 else 0.0
                assert found[0, query, key] == pytest.approx(wanted), (query, key)
    assert _log_odds(weights, np.array([2, 2, 3]))[0, 0].tolist() == pytest.approx(
        [math.log((1 - 1e-6) / 1e-6), math.log(1e-6 / (1 - 1e-6)), math.log(1e-6 / (1 - 1e-6))]
    )
