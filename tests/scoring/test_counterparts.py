"""How alike heads are and which is which: against scipy, loops, and draws in which nothing is to be found."""

import numpy as np
import pytest
import torch
from scipy import stats
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
    assert sums.inputs.tolist() == [1, 1, 1, 1, 1, 1, 1, 0, 1, 0, 0, 1, 0, 0, 0, 0]
    assert sums.halves() == (5, 4)
    assert sums.similarity() == pytest.approx(1 - distances.mean(0))
    assert sums.half(0) == pytest.approx(1 - distances[numbers % 2 == 0].mean(0))
    assert sums.half_widths() == pytest.approx(stats.t.isf(0.025, 8) * distances.std(0, ddof=1) / 3)
    of_two = [distances[:, 0, 0] - distances[:, 0, 2], distances[:, 0, 1] - distances[:, 0, 2]]
    of_one = distances[:, 1, 2] - distances[:, 0, 2]
    ends = [stats.ttest_1samp(difference, 0).confidence_interval() for difference in (*of_two, of_one)]
    margins = sums.margins(0, 2)
    assert margins[0] == pytest.approx([difference.mean() for difference in (*of_two, of_one)])
    assert pytest.approx(np.array([(end.low, end.high) for end in ends])) == margins[1:].T


def test_intervals_of_more_inputs_than_groups_are_over_groups():
    """As the mean of 16 group means of as many inputs each; the truth lies in 95 of 100 of them."""
    rng = np.random.default_rng(2)
    hits = 0
    for _ in range(400):
        distances = 0.3 + 0.1 * rng.normal(size=(48, 1, 2))
        sums = counterparts.similarity_sums(distances, np.arange(48))
        groups = distances.reshape(3, 16, 1, 2).mean(0)
        assert sums.half_widths() == pytest.approx(stats.t.isf(0.025, 15) * groups.std(0, ddof=1) / 4)
        hits += abs(sums.similarity()[0, 0] - 0.7) <= sums.half_widths()[0, 0]
    assert hits >= stats.binom.ppf(0.01, 400, 0.95)


def test_a_matching_finds_a_permutation_and_leaves_over_what_has_no_place():
    order = np.array([2, 0, 3, 1])
    distances = np.full((6, 4, 4), 0.5)
    distances[:, np.arange(4), order] = 0.1
    distances[:, 0, 3] = 0.05  # nearer than its match, which another head needs
    found = counterparts.matching(counterparts.similarity_sums(distances, np.arange(6)))
    assert found.match.tolist() == [2, 0, 3, 1]
    assert found.best.tolist() == [3, 0, 3, 1]
    assert found.margin == pytest.approx([-0.05, 0.4, -0.05, 0.4])  # the third's match is nearer to the first
    assert found.low == pytest.approx(found.margin)
    assert found.high == pytest.approx(found.margin)
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
    rng, scales = np.random.default_rng(1), np.array([0.001, 0.01, 0.05, 0.1])
    false = 0
    for _ in range(1000):
        shared = rng.normal(size=(100, 1))  # heads of one draw go together
        values = 0.5 + scales * (rng.normal(size=(100, 4)) + shared)
        false += counterparts.beyond_chance(values[0], values[1:]).min() <= 0.05
    assert false <= stats.binom.ppf(0.99, 1000, 0.05)
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


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("similarity", "margin", "low", "p", "agrees", "is_found"),
    [
        (0.9, 0.1, 0.01, 0.05, True, True),
        (1.0, 0.01, 0.001, 0.01, True, True),  # a copy, however near others are
        (0.9, 0.1, 0.01, 0.06, True, False),  # random weights come as near
        (0.49, 0.3, 0.2, 0.01, True, False),  # hardly alike
        (0.9, 0.1, 0.0, 0.01, True, False),  # maybe no nearer than another head
        (0.9, 0.02, 0.01, 0.01, True, False),  # others are hardly farther
        (0.9, 0.1, 0.01, 0.01, False, False),  # halves part
        (np.nan, np.nan, np.nan, np.nan, False, False),
    ],
)
def test_a_counterpart_has_to_be_all_of_it(similarity, margin, low, p, agrees, is_found):
    one = [np.array([value]) for value in (0, 0, margin, low, 0.2, agrees)]
    matches = counterparts.Matching(*one)
    assert counterparts.counterparts(np.array([similarity]), np.array([p]), matches).tolist() == [is_found]


def test_rows_are_scaled_to_an_entropy_by_a_power_of_their_weights():
    rng = np.random.default_rng(3)
    blocks = [
        torch.tensor(rng.dirichlet(np.ones(keys), (3, rows)), dtype=torch.float32) for keys, rows in ((9, 7), (4, 2))
    ]
    blocks[1][0, 0] = torch.tensor([0.0, 0.5, 0.25, 0.25])  # a key that is not seen
    wanted = torch.tensor([0.1, 0.8, 1.6])
    factors = counterparts.entropy_factors(blocks, wanted)
    scaled = [counterparts.sharpened(block, factors) for block in blocks]
    assert counterparts.mean_entropy(scaled).numpy() == pytest.approx(wanted.numpy(), abs=1e-3)
    assert scaled[1][0, 0, 0] == 0
    for block, found in zip(blocks, scaled, strict=True):
        for head in range(3):
            slopes = torch.diff(torch.log(found[head, :, 1:])) / torch.diff(torch.log(block[head, :, 1:]))
            slopes = slopes[torch.isfinite(slopes)]
            assert slopes.std() / slopes.mean() < 0.01  # one power a head
    own = counterparts.mean_entropy(blocks)
    assert counterparts.entropy_factors(blocks, own).numpy() == pytest.approx(1, abs=1e-3)
