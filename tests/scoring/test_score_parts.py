"""Score shares against loops over queries and keys, and their intervals against the bootstrap."""

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.spatial.distance import jensenshannon

from core.errors import InputError
from core.scoring import score_parts
from core.scoring.intervals import RatioMoments

SCALING = 0.5


def drawn(seed: int = 0, *, causal: bool = False):
    """Contributions to queries [3, 2, 2, 4, 5] and keys [2, ...], the scores, and which keys are visible."""
    generator = torch.Generator().manual_seed(seed)
    query = torch.randn(3, 2, 2, 4, 5, generator=generator, dtype=torch.float64)
    key = torch.randn(2, 2, 2, 4, 5, generator=generator, dtype=torch.float64)
    visible = torch.ones(4, 4).tril().bool() if causal else torch.ones(4, 4).bool()
    return query, key, query.sum(0) @ key.sum(0).mT * SCALING, visible[None, None]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("weighting", score_parts.WEIGHTINGS)
def test_covariances_are_those_of_a_loop_over_rows(causal, weighting):
    query, key, scores, visible = drawn(causal=causal)
    maps = torch.softmax(scores.masked_fill(~visible, -torch.inf), -1) if weighting == "attention" else None
    (found,) = score_parts.covariances(query, key, [score_parts.centred_scores(scores, visible, maps)], scaling=SCALING)
    expected = np.zeros((2, 2, 3, 2))
    for batch, head, a, b, i in np.ndindex(2, 2, 3, 2, 4):
        seen = [j for j in range(4) if visible[0, 0, i, j]]
        counts = np.array([1 / len(seen) if maps is None else float(maps[batch, head, i, j]) for j in seen])
        term = np.array([float(query[a, batch, head, i] @ key[b, batch, head, j]) * SCALING for j in seen])
        whole = np.array([float(scores[batch, head, i, j]) for j in seen])
        expected[batch, head, a, b] += (counts * (term - counts @ term) * (whole - counts @ whole)).sum()
    assert found.numpy() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("weighting", score_parts.WEIGHTINGS)
def test_shares_of_all_pairs_add_up_to_one(weighting):
    query, key, scores, visible = drawn(causal=True)
    maps = torch.softmax(scores.masked_fill(~visible, -torch.inf), -1) if weighting == "attention" else None
    centred = score_parts.centred_scores(scores, visible, maps)
    pairs = score_parts.covariances(query, key, [centred], scaling=SCALING)[0].sum((2, 3))
    assert pairs.numpy() == pytest.approx(score_parts.score_variance(centred, scores).numpy(), rel=1e-9)


def test_terms_of_a_cell_add_up_to_its_centred_score():
    query, key, scores, visible = drawn(causal=True)
    before = query.clone()
    terms = score_parts.cell_terms(query[:, 1, 0, 2], key[:, 1, 0], 1, visible[0, 0, 2], scaling=SCALING)
    row = scores[1, 0, 2, :3]
    assert float(terms.sum()) == pytest.approx(float(row[1] - row.mean()), abs=1e-12)
    assert torch.equal(query, before)


def test_a_cell_that_the_query_does_not_see_is_refused():
    query, key, _, visible = drawn(causal=True)
    with pytest.raises(InputError, match="key 4 is hidden from this query"):
        score_parts.cell_terms(query[:, 0, 0, 1], key[:, 0, 0], 3, visible[0, 0, 1], scaling=SCALING)


def test_moments_of_shards_are_those_of_the_whole():
    generator = np.random.default_rng(0)
    parts, whole = generator.normal(size=(30, 2, 3)), generator.uniform(1, 2, size=(30, 2))
    together = RatioMoments.of(parts, whole).ratios()
    merged = RatioMoments.of(parts[:11], whole[:11]).merge(RatioMoments.of(parts[11:], whole[11:]))
    assert merged.n == 30
    for name in ("value", "low", "high"):
        assert getattr(merged.ratios(), name) == pytest.approx(getattr(together, name), rel=1e-9)
    assert together.value == pytest.approx(parts.sum(0) / whole.sum(0)[:, None])


@pytest.mark.parametrize("n", [20, 60])
def test_the_interval_covers_the_ratio_of_the_population(n):
    """Shares of skewed inputs: long ones have more variance; 2,000 draws, binomial limit of 95 % and a little bias."""
    generator = np.random.default_rng(n)
    whole = generator.gamma(2.0, 1.0, size=(n, 2000))  # every draw stands where a head does
    parts = (whole * (0.4 + 0.2 * generator.normal(size=(n, 2000))))[..., None]
    found = RatioMoments.of(parts, whole).ratios()
    covered = ((found.low <= 0.4) & (found.high >= 0.4)).mean()
    assert covered > (0.92 if n == 20 else 0.935)


def test_one_input_has_no_interval_and_no_variance_no_share():
    alone = RatioMoments.of(np.ones((1, 1, 1)), np.full((1, 1), 2.0)).ratios()
    assert alone.value[0, 0] == 0.5
    assert np.isnan(alone.low[0, 0])
    assert np.isnan(RatioMoments.of(np.zeros((3, 1, 1)), np.zeros((3, 1))).ratios().value[0, 0])


def test_map_distances_of_rounding_noise_are_ties():
    """Maps that differ by float32's rounding alone are exactly 0 apart, so that ranks of them are ties."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(1, 3, 9, 9, generator=generator)
    maps = torch.softmax(scores.double() + 1e-6 * torch.randn(4, 1, 3, 9, 9, generator=generator), -1).float()
    assert score_parts.map_distances(maps, torch.softmax(scores, -1)).tolist() == [[0.0] * 3] * 4


def test_map_distances_are_scipys():
    generator = torch.Generator().manual_seed(1)
    maps = torch.rand(3, 2, 2, 4, 4, generator=generator, dtype=torch.float64).softmax(-1)
    found = score_parts.map_distances(maps[1:], maps[0])
    expected = jensenshannon(maps[1:].numpy(), maps[0].numpy()[None], base=2, axis=-1).mean((1, 3))
    assert found.numpy() == pytest.approx(expected, abs=1e-12)


def test_p_that_a_ratio_is_above_something_is_a_t_test_and_follows_the_jackknife():
    chance = np.random.default_rng(3)
    parts, whole = chance.normal(1.2, 1.0, (40, 2, 1)), np.ones((40, 2))
    found = RatioMoments.of(parts, whole).ratios().p_above(0.9)
    means = stats.ttest_1samp(parts[..., 0], 0.9, alternative="greater").pvalue  # over 1 a ratio is a mean
    np.testing.assert_allclose(found[:, 0], means, rtol=1e-9)
    whole = chance.uniform(0.5, 1.5, (400, 2))
    parts = (0.5 * whole + chance.normal(0, 0.5, (400, 2)))[..., None]
    without = np.stack([np.delete(parts[..., 0], k, 0).sum(0) / np.delete(whole, k, 0).sum(0) for k in range(400)])
    ratio = parts[..., 0].sum(0) / whole.sum(0)
    error = np.sqrt(((without - without.mean(0)) ** 2).sum(0) * 399 / 400)
    expected = stats.t.sf((ratio - 0.47) / error, 399)
    np.testing.assert_allclose(RatioMoments.of(parts, whole).ratios().p_above(0.47)[:, 0], expected, atol=2e-3)
    assert np.isnan(RatioMoments.of(parts[:1], whole[:1]).ratios().p_above(0.0)).all()
