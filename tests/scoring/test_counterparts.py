"""How alike heads are and which is which: against scipy, loops, and draws in which nothing is to be found."""

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon

from core.scoring import counterparts


def drawn_rows(seed: int, heads: int, rows: int = 7, keys: int = 5) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    weights = rng.random((heads, rows, keys)) ** 4
    weights[:, :, 0][rng.random((heads, rows)) < 0.3] = 0
    return torch.tensor(weights / weights.sum(-1, keepdims=True))


def by_row(first: torch.Tensor, others: torch.Tensor) -> np.ndarray:
    """[other head, row]: each row an input of its own."""
    return counterparts.mean_distances(first[None], others, torch.arange(first.shape[0]))[:, 0].T.numpy()


def test_distances_are_scipys_and_equal_rows_are_exactly_nothing_apart():
    first, others = drawn_rows(0, 1)[0], drawn_rows(1, 3)
    expected = [
        [jensenshannon(p, q, base=2) for p, q in zip(first.numpy(), head.numpy(), strict=True)] for head in others
    ]
    before = others.clone()
    assert by_row(first, others) == pytest.approx(np.array(expected), abs=1e-7)
    assert torch.equal(before, others)
    same = drawn_rows(2, 2).float()
    assert np.abs(by_row(same[0], same)[0]).max() == 0
    apart = torch.tensor([[[1.0, 0.0]]]), torch.tensor([[[0.0, 1.0]]])
    assert by_row(apart[0][0], apart[1]).item() == pytest.approx(1)


def test_means_are_of_an_inputs_rows_first():
    first, others, inputs = drawn_rows(3, 2), drawn_rows(4, 3), torch.tensor([0, 0, 1, 2, 2, 2, 2])
    found = counterparts.mean_distances(first, others, inputs).numpy()
    for number in range(3):
        rows = np.flatnonzero(inputs == number)
        for a in range(2):
            for b in range(3):
                apart = [jensenshannon(first[a, r].numpy(), others[b, r].numpy(), base=2) for r in rows]
                assert found[number, a, b] == pytest.approx(np.mean(apart), abs=1e-7)


def test_sums_give_similarity_its_interval_and_both_halves():
    rng = np.random.default_rng(0)
    distances, numbers = rng.random((9, 2, 3)), np.array([0, 1, 2, 3, 4, 5, 6, 8, 11])
    parts = [counterparts.similarity_sums(distances[cut], numbers[cut]) for cut in (slice(0, 4), slice(4, 9))]
    sums = parts[0].merge(parts[1])
    assert sums.inputs == (5, 4)
    assert sums.similarity() == pytest.approx(1 - distances.mean(0))
    assert sums.half(0) == pytest.approx(1 - distances[numbers % 2 == 0].mean(0))
    assert sums.half_widths() == pytest.approx(1.959964 * distances.std(0, ddof=1) / 3)


def test_a_matching_finds_a_permutation_and_leaves_over_what_has_no_place():
    order = np.array([2, 0, 3, 1])
    distances = np.full((6, 4, 4), 0.5)
    distances[:, np.arange(4), order] = 0.1
    distances[:, 0, 3] = 0.05  # nearer than its match, which another head needs
    found = counterparts.matching(counterparts.similarity_sums(distances, np.arange(6)))
    assert found.match.tolist() == [2, 0, 3, 1]
    assert found.best.tolist() == [3, 0, 3, 1]
    assert found.margin == pytest.approx([-0.05, 0.4, 0.4, 0.4])
    assert found.agrees.all()
    tall = counterparts.matching(counterparts.similarity_sums(distances[:, :, :3], np.arange(6)))
    assert tall.match.tolist() == [2, 0, -1, 1]
    assert np.isnan(tall.margin[2])
    assert tall.agrees.tolist() == [True, True, False, True]


def test_halves_that_match_otherwise_do_not_agree():
    distances = np.full((4, 2, 2), 0.5)
    distances[::2, [0, 1], [0, 1]] = 0.1
    distances[1::2, [0, 1], [1, 0]] = 0.2
    found = counterparts.matching(counterparts.similarity_sums(distances, np.arange(4)))
    assert found.match.tolist() == [0, 1]
    assert not found.agrees.any()
    alone = counterparts.matching(counterparts.similarity_sums(distances[:1], np.arange(1)))
    assert not alone.agrees.any()


def test_random_weights_beside_random_weights_are_beyond_chance_in_at_most_five_of_a_hundred():
    rng, scales = np.random.default_rng(1), np.array([0.001, 0.01, 0.1, 0.3])
    false = 0
    for _ in range(200):
        shared = rng.normal(size=(100, 1))  # heads of one draw go together
        values = 0.5 + scales * (rng.normal(size=(100, 4)) + shared)
        false += counterparts.beyond_chance(values[0], values[1:]).min() <= 0.05
    assert false <= 17
    drawn = 0.5 + scales * rng.normal(size=(99, 4))
    p = counterparts.beyond_chance(np.array([0.51, np.nan, 0.5, 0.1]), drawn)
    assert p[0] == pytest.approx(0.01)
    assert np.isnan(p[1])
    assert p[2] > 0.5
    assert p[3] == 1


def test_without_inputs_nothing_is_known_and_draws_as_large_as_what_was_seen_count():
    nothing = counterparts.similarity_sums(np.zeros((0, 2, 3)), np.zeros(0, dtype=int))
    assert np.isnan(nothing.similarity()).all()
    assert nothing.similarity().shape == nothing.half_widths().shape == (2, 3)
    drawn = np.array([[0.9], [0.1], [0.2], [0.3]])
    assert counterparts.beyond_chance(np.array([0.9]), drawn) == pytest.approx(2 / 5)
