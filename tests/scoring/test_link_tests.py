"""The verdict on heads: a planted one survives all nulls, heads with habits and random ones do not."""

import itertools

import numpy as np
import pytest

from core.scoring.link_tests import (
    Null,
    corrected,
    draws_needed,
    exchange_draws,
    p_values,
    place_draws,
    verdict,
)
from core.scoring.links import WEIGHTINGS, Looked, QueryResiduals, exchange_groups, pairs_of, relation_score, shifted

DRAWS = 1999
HEADS = ("planted", "first word", "three back", "random", "uniform")


def sentence(rng, length):
    """A link whose element is the first word in two of three inputs, as in the paper's sentences."""
    target = int(rng.integers(4, length - 1))
    places = [k for k in range(1, length - 1) if abs(k - target) >= 3]
    element = 1 if rng.random() < 0.66 and target >= 4 else int(rng.choice(places))
    return (((element,), (target,)),)


def heads(rng, length, links):
    """One layer of five heads [1, head, query, key]; the planted one attends from each target to its element."""
    raw = np.full((5, length, length), 0.02) + rng.random((5, length, length)) * 0.02
    ((element, target),) = links
    raw[0, target[0], element[0]] += 0.3
    raw[1, :, 1] += 2.0
    for query in range(3, length):
        raw[2, query, query - 3] += 2.0
    raw[4] = 1
    return (raw / raw.sum(-1, keepdims=True))[None].astype("float32")


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(3)
    lengths = rng.integers(8, 13, size=120).tolist()
    links = [sentence(rng, length) for length in lengths]
    weights = [heads(rng, length, one) for length, one in zip(lengths, links, strict=True)]

    def score(k, one):
        return relation_score(weights[k], one, direction="target_to_element").reshape(-1)

    places = [np.stack([score(k, one) for one in shifted(links[k], range(1, lengths[k] - 1))]) for k in range(120)]
    groups = [np.stack([[score(i, links[j]) for j in group] for i in group]) for group in exchange_groups(lengths)]
    own = np.stack([one[0] for one in places])
    looked = [
        Looked(k, pairs_of(one, direction="target_to_element"), tuple(range(1, lengths[k] - 1)))
        for k, one in enumerate(links)
    ]
    residuals = QueryResiduals(looked, layers=1, heads=5, longest=13, causal=False)
    for k, one in enumerate(weights):
        residuals.update(0, one, [k])
    query, share = (
        Null(np.sum([one[0] for one in residuals.result(kind)], axis=0), place_draws(residuals.result(kind), DRAWS))
        for kind in WEIGHTINGS
    )
    return verdict(own, place_draws(places, DRAWS), exchange_draws(groups, DRAWS, seed=1), query, share)


def test_only_the_planted_head_survives(found):
    assert dict(zip(HEADS, found.survives.tolist(), strict=True)) == {
        "planted": True,
        "first word": False,
        "three back": False,
        "random": False,
        "uniform": False,
    }


def test_each_habit_is_caught_by_its_own_null(found):
    first, back = HEADS.index("first word"), HEADS.index("three back")
    assert found.p_distance[first] < 0.01, "moving links within a sentence does not catch a first-word head"
    assert found.p_exchange[first] > 0.05
    assert found.p_distance[back] > 0.05
    assert found.score[first] > found.score[0], "and by its score alone it would be the best head"


def test_survival_asks_all_nulls_and_the_weaker_verdict_two():
    cells, draws = np.ones((12, 3)), np.zeros((99, 3))
    high, low = Null(np.ones(3), draws), Null(np.array([1.0, -1.0, 1.0]), draws)
    found = verdict(cells, draws, draws, low, high)
    assert found.beats_places.tolist() == [True, True, True]
    assert found.survives.tolist() == [True, False, True]
    assert verdict(cells, draws, draws, high, low).survives.tolist() == [True, False, True]
    assert found.excess.tolist() == pytest.approx([1 / 12, -1 / 12, 1 / 12])


def test_a_decoders_links_need_a_contrast_too():
    """Head 0 has one in every input, head 1 none on the mean, head 2 in too few inputs to say."""
    cells, draws = np.ones((40, 3)), np.zeros((99, 3))
    null, chance = Null(np.ones(3), draws), np.random.default_rng(0)
    contrasts = np.stack([1 + 0.1 * chance.normal(size=40), chance.normal(size=40), np.ones(40)], 1)
    contrasts[:, 1] -= contrasts[:, 1].mean()
    contrasts[5:, 2] = np.nan
    found = verdict(cells, draws, draws, null, null, contrasts)
    assert found.survives.tolist() == [True, False, False]
    assert found.beats_places.all()
    assert found.contrast.tolist() == pytest.approx(np.nanmean(contrasts, 0).tolist(), abs=1e-12)
    assert found.p_contrast[1:].tolist() == [pytest.approx(0.5, abs=0.1), 1.0]
    assert (found.p_query >= found.p_contrast).all()
    assert verdict(cells, draws, draws, null, null).survives.all(), "an encoder's are not asked for one"


@pytest.mark.parametrize(("inputs", "tested"), [(2, False), (3, False), (11, False), (12, True)])
def test_a_weight_has_an_interval_of_weights_and_few_inputs_have_no_p(inputs, tested):
    scores = np.full((inputs, 2), 0.01)
    scores[0] = 1.0  # one sentence says all: Student's interval of three such goes past 3
    draws, null = np.zeros((99, 2)), Null(np.ones(2), np.zeros((99, 2)))
    found = verdict(scores, draws, draws, null, null)
    assert (found.low >= 0).all()
    assert (found.high <= 1).all()
    for p in (found.p_distance, found.p_exchange, found.p_query, found.p_share, found.q, found.q_places):
        assert np.isfinite(p).all() == tested
    assert found.survives.tolist() == found.beats_places.tolist() == [tested, tested]


def test_the_score_is_the_mean_and_its_interval_holds_it(found):
    assert found.n == 120
    assert ((found.low <= found.score) & (found.score <= found.high)).all()
    assert found.high[0] - found.low[0] > 0
    assert found.distance[4] == pytest.approx(found.score[4])
    assert found.p_distance[4] == found.p_exchange[4] == found.p_query[4] == found.p_share[4] == 1


def test_the_nulls_are_the_enumerated_ones():
    """Two inputs with two places each, and one group of three: drawn means are those over all equally likely cases."""
    rng = np.random.default_rng(0)
    places = [rng.random((2, 1)), rng.random((3, 1))]
    cases = [a[0] + b[0] for a, b in itertools.product(*places)]
    drawn = place_draws(places, 4000)
    assert set(np.round(drawn[:, 0], 9)) == set(np.round(cases, 9))
    assert drawn.mean() == pytest.approx(np.mean(cases), abs=0.02)
    group = rng.random((3, 3, 1))
    sums = [sum(group[i, order[i], 0] for i in range(3)) for order in itertools.permutations(range(3))]
    drawn = exchange_draws([group], 4000)
    assert set(np.round(drawn[:, 0], 9)) == set(np.round(sums, 9))
    assert drawn.mean() == pytest.approx(np.mean(sums), abs=0.02)


def test_p_counts_draws_at_least_as_large_and_the_truth_itself():
    draws = np.array([[1.0], [2.0], [3.0], [3.0]])
    assert p_values(np.array([3.0]), draws).tolist() == [3 / 5]
    assert p_values(np.array([9.0]), draws).tolist() == [1 / 5]


def test_the_correction_is_benjamini_hochbergs():
    p = np.array([0.01, 0.02, 0.03, 0.5])
    expected = [min(1, min(p[k] * 4 / (k + 1) for k in range(i, 4))) for i in range(4)]
    np.testing.assert_allclose(corrected(p), expected)


def test_enough_draws_for_one_head_among_all():
    assert draws_needed(144) >= 4999
    assert 1000 / (draws_needed(1000) + 1) == pytest.approx(0.05 / 2)  # the least p passes twice over


def test_every_figure_of_a_verdict_is_its_own():
    """Four nulls that say different things of three heads: sums, p and corrections by hand."""
    rng = np.random.default_rng(5)
    scores = rng.random((12, 3))
    draws = {name: rng.random((39, 3)) * 12 * size for name, size in (("d", 0.5), ("e", 1.0), ("q", 1.6), ("s", 2.2))}
    nulls = {"q": Null(np.array([4.0, 9.0, 18.0]), draws["q"]), "s": Null(np.array([8.0, 2.0, 26.0]), draws["s"])}
    found = verdict(scores, draws["d"], draws["e"], nulls["q"], nulls["s"])
    sums = scores.sum(0)

    def p_of(observed, drawn):
        return [(1 + sum(row[k] >= observed[k] for row in drawn)) / 40 for k in range(3)]

    def by_rank(p):
        return [min(1, *(3 * q / sum(other <= q for other in p) for q in p if q >= own)) for own in p]

    p = {
        "d": p_of(sums, draws["d"]),
        "e": p_of(sums, draws["e"]),
        "q": p_of([4.0, 9.0, 18.0], draws["q"]),
        "s": p_of([8.0, 2.0, 26.0], draws["s"]),
    }
    assert len({tuple(values) for values in p.values()}) == 4
    np.testing.assert_allclose(found.score, sums / 12)
    np.testing.assert_allclose(found.distance, draws["d"].mean(0) / 12)
    np.testing.assert_allclose(found.exchange, draws["e"].mean(0) / 12)
    np.testing.assert_allclose(
        found.excess, [(x - np.mean(draws["q"][:, k])) / 12 for k, x in enumerate((4.0, 9.0, 18.0))]
    )
    for name, values in (("d", found.p_distance), ("e", found.p_exchange), ("q", found.p_query), ("s", found.p_share)):
        np.testing.assert_allclose(values, p[name], err_msg=name)
    np.testing.assert_allclose(found.q_places, by_rank([max(p["d"][k], p["e"][k]) for k in range(3)]))
    np.testing.assert_allclose(found.q, by_rank([max(values[k] for values in p.values()) for k in range(3)]))


def test_sums_that_differ_by_rounding_alone_are_equal_at_any_size():
    for size in (1e-3, 1.0, 1e4):
        draws = np.full((9, 1), size * (1 - 1e-7))
        assert p_values(np.array([size]), draws).tolist() == [1.0]
        assert p_values(np.array([size + 1e-3 * max(1, size)]), draws).tolist() == [0.1]
