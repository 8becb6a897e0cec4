import numpy as np

from core.codebook.registry import BERT, GPT2
from core.patterns.forest import cropped, planted
from tests.codebook.drawn_maps import synthetic_maps


def test_rare_classes_are_filled_to_enough_and_rows_sum_to_one():
    maps, labels, _ = synthetic_maps(each=5)
    found, names = planted(maps, labels, BERT.names, enough=12)
    assert sorted(names) == ["block"] * 7 + ["vertical+diagonal"] * 7
    assert all(np.allclose(one.sum(1), 1, atol=1e-5) and one.dtype == np.float32 for one in found)


def test_a_planted_block_looks_at_its_own_half():
    maps, labels, _ = synthetic_maps(each=5)
    found, names = planted(maps, labels, BERT.names, enough=25)
    for one in (m for m, name in zip(found, names, strict=True) if name == "block"):
        best = max((one[:cut, :cut].sum() + one[cut:, cut:].sum()) / len(one) for cut in range(1, len(one)))
        assert best > 0.85


def test_a_planted_pair_has_the_line_and_the_columns_of_its_parts():
    line = np.eye(20, dtype=np.float32)
    column = np.zeros((20, 20), dtype=np.float32)
    column[:, 0] = 1
    found, names = planted([line, column], ["diagonal", "vertical"], BERT.names, enough=6)
    both = [m for m, name in zip(found, names, strict=True) if name == "vertical+diagonal"]
    assert len(both) == 6
    for one in both:
        assert 0.2 < np.diagonal(one)[1:].mean() < 0.8
        assert np.allclose(np.diagonal(one)[1:] + one[1:, 0], 1, atol=1e-3)


def test_nothing_is_planted_for_other_class_sets_or_without_the_parts():
    maps, labels, _ = synthetic_maps(GPT2, each=3)
    assert planted(maps, labels, GPT2.names) == ([], [])
    _, names = planted([np.eye(8, dtype=np.float32)], ["diagonal"], BERT.names)
    assert names == []


def test_a_cropped_map_keeps_its_first_and_last_token():
    rng = np.random.default_rng(0)
    one = np.zeros((30, 30), dtype=np.float32)
    one[:, [0, 29]] = 0.5
    short = cropped(rng, one, 12)
    assert short.shape == (12, 12)
    assert np.allclose(short[:, [0, -1]], 0.5, atol=1e-3)
    assert cropped(rng, one, 30) is one
