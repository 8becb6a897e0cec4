"""Cosines between tokens and entropies, against vectors whose answer is known."""

import numpy as np
import pytest

from core.studies.probing.representation import relative_entropy, similarities


def test_a_narrow_cone_and_a_round_cloud():
    rng = np.random.default_rng(0)
    round_cloud = rng.normal(size=(400, 1, 64))
    cone = rng.normal(size=(400, 1, 64)) + 10
    vectors = np.concatenate([round_cloud, cone], 1)
    found = similarities(vectors, (np.arange(400) // 10).tolist(), [f"w{k}" for k in range(400)])
    assert abs(found[0, :, 0].mean()) < 0.03
    assert found[0, :, 1].mean() == pytest.approx(100 / 101, abs=0.01)  # mean^2 / (mean^2 + 1)
    assert np.isnan(found[1]).all()  # no word stands twice


def test_a_word_with_one_vector_is_like_itself_and_pairs_never_stay_in_an_input():
    rng = np.random.default_rng(1)
    words = rng.normal(size=(5, 2, 32))
    types = [f"w{k % 5}" for k in range(50)]
    vectors = np.stack([words[k % 5] for k in range(50)])
    found = similarities(vectors, (np.arange(50) // 5).tolist(), types)
    np.testing.assert_allclose(found[1], 1, atol=1e-9)
    alone = similarities(vectors[:5], [0] * 5, types[:5])
    assert np.isnan(alone[:2]).all()  # one input has nobody to be compared with
    assert np.isfinite(alone[2]).all()
    same = similarities(np.ones((6, 1, 3)), [0, 0, 0, 1, 1, 1], list("abcabc"))
    np.testing.assert_allclose(same, 1)


def test_entropy_is_one_for_uniform_rows_and_zero_for_a_single_key():
    uniform, single = np.full((2, 4, 4), 0.25), np.tile(np.eye(4), (2, 1, 1))[:, ::-1]
    np.testing.assert_allclose(relative_entropy(uniform), 1)
    np.testing.assert_allclose(relative_entropy(single.copy()), 0, atol=1e-9)
    causal = np.tril(np.ones((3, 3))) / np.arange(1, 4)[:, None]
    found = relative_entropy(causal[None])[0]
    assert np.isnan(found[0])  # sees itself alone
    np.testing.assert_allclose(found[1:], 1)


def test_a_seed_draws_the_same_pairs_again():
    vectors = np.random.default_rng(2).normal(size=(40, 2, 8))
    inputs, types = (np.arange(40) // 4).tolist(), [f"w{k % 7}" for k in range(40)]
    first = similarities(vectors, inputs, types, seed=5)
    np.testing.assert_array_equal(first, similarities(vectors, inputs, types, seed=5))
    np.testing.assert_array_equal(similarities(vectors, inputs, types), similarities(vectors, inputs, types, seed=0))
    assert not np.array_equal(first[:2], similarities(vectors, inputs, types, seed=6)[:2])
    np.testing.assert_array_equal(first[2], similarities(vectors, inputs, types, seed=6)[2])
