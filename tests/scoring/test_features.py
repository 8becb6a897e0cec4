"""Attention to features against plain loops; nulls keep count and place; the input is not written to."""

import random
import statistics

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from core.scoring.features import (
    NULLS,
    SETS,
    FeatureAttention,
    Kinds,
    Marked,
    Marks,
    _in_drawn_order,
    beside_neighbours,
    columns,
    mark,
    p_of_word_types,
    rhombi_of_inputs,
)
from core.scoring.link_contrasts import cells_of
from tests.scoring.maps import random_maps

FEATURES = ("noun", "verb", "none")


def _marks(inputs, length, seed=0):
    chance = np.random.default_rng(seed)
    tokens = chance.random((inputs, len(FEATURES), length)) < 0.3
    tokens[:, 2] = False
    tokens[:, :, [0, -1]] = False
    return [
        mark(one, range(1, length - 1), classifying=int(chance.integers(length)), seed=[seed, k])
        for k, one in enumerate(tokens)
    ]


def _loop(definition, maps, tokens, classifying, *, causal):
    """One head's map [query, key] and one feature's positions, by the definition's words."""
    length = len(maps)
    if definition == "classifying":
        return max(maps[classifying][k] for k in tokens)
    scores = []
    for k in tokens:
        queries = range(int(causal), length)  # a decoder's first query sees itself alone
        weights = [maps[q][k] for q in queries if definition != "max-visible" or q >= k]
        scores.append(sum(weights) / len(weights))
    return sum(scores) if definition == "sum" else max(scores)


@pytest.mark.parametrize("causal", [False, True])
def test_every_definition_equals_a_loop(causal):
    maps = random_maps(2, 5, 3, 9, 9, causal=causal)  # [layer, input, head, query, key]
    before, marks = maps.clone(), _marks(5, 9)
    observer = FeatureAttention(2, 3, FEATURES, causal=causal)
    observer.take(marks, range(5))
    for layer in range(2):
        observer.update(layer, maps[layer], list(range(5)))
    torch.testing.assert_close(maps, before, rtol=0, atol=0)
    for (definition, feature), (value, effect) in observer.result().items():
        row = FEATURES.index(feature)
        for layer in range(2):
            for head in range(3):
                values, effects = [], []
                for k, one in enumerate(marks):
                    places = np.flatnonzero(one.tokens[row]).tolist()
                    if not len(places):
                        continue
                    own = _loop(definition, maps[layer, k, head].tolist(), places, one.classifying, causal=causal)
                    values.append(own)
                    nulls = [np.flatnonzero(draw[row]) for draw in one.nulls]
                    if len(nulls[0]):
                        one_head = maps[layer, k, head].tolist()
                        scores = [_loop(definition, one_head, p, one.classifying, causal=causal) for p in nulls]
                        effects.append(own - sum(scores) / len(scores))
                seen = value.value[layer, head, 0]
                assert (np.isnan(seen) and not values) or seen == pytest.approx(np.mean(values), abs=1e-6)
                seen = effect.value[layer, head, 0]
                assert (np.isnan(seen) and not effects) or seen == pytest.approx(np.mean(effects), abs=1e-6)
    assert ("max-visible", "noun") in observer.result() or not causal


def test_the_first_tokens_of_a_decoder_are_measured_against_an_even_spread():
    """Uniform rows give the first token 1/2 + 1/3 + ... more than any other, and nothing is said of that."""
    length = 6
    even = torch.ones(length, length, dtype=torch.float64).tril()
    even /= even.sum(-1, keepdim=True)
    tokens = np.eye(length, dtype=bool)[[0, 3]]  # the start token, and a word
    marks = [mark(tokens, range(1, length), classifying=length - 1, seed=[k]) for k in range(8)]
    observer = FeatureAttention(1, 1, ["start", "verb"], causal=True, places=["start"])
    observer.take(marks, range(8)).update(0, even.expand(8, 1, length, length), list(range(8)))
    result = observer.result()
    for definition in observer.definitions:
        assert result[definition, "start"][1].value[0, 0, 0] == pytest.approx(0, abs=1e-12)
    mean = sum(1 / (query + 1) for query in range(1, length)) / (length - 1)
    assert result["max", "start"][0].value[0, 0, 0] == pytest.approx(mean)


def test_a_feature_that_no_input_has_is_undefined_with_n_0():
    observer = FeatureAttention(1, 3, FEATURES, causal=False)
    observer.take(_marks(4, 7), range(4)).update(0, random_maps(4, 3, 7, 7), [0, 1, 2, 3])
    value, effect = observer.result()["max", "none"]
    assert np.isnan(value.value).all()
    assert value.n == 0
    assert effect.n == 0


def test_a_null_token_is_one_of_the_six_nearest():
    """Of a token in the middle of 61: three before it and three after, each drawn at times."""
    tokens = np.arange(61)[None] == 30
    marks = [mark(tokens, range(61), classifying=0, seed=[k]) for k in range(80)]
    drawn = {int(k) for one in marks for draw in one.nulls for k in np.flatnonzero(draw[0])}
    assert drawn == {27, 28, 29, 31, 32, 33}


def test_batches_do_not_matter():
    maps, marks = random_maps(6, 2, 8, 8), _marks(6, 8)
    whole = FeatureAttention(1, 2, FEATURES, causal=False)
    whole.take(marks, range(6)).update(0, maps, list(range(6)))
    parts = [FeatureAttention(1, 2, FEATURES, causal=False).take(marks, range(6)) for _ in range(2)]
    parts[0].update(0, maps[[4, 1]], [4, 1])
    parts[0].update(0, maps[[0]], [0])
    parts[1].update(0, maps[[5, 3, 2]], [5, 3, 2])
    parts[0].means.merge(parts[1].means)
    for key, (value, effect) in whole.result().items():
        other = parts[0].result()[key]
        np.testing.assert_allclose(value.value, other[0].value, atol=1e-9)
        np.testing.assert_allclose(effect.high, other[1].high, atol=1e-5)


def test_a_head_that_looks_at_the_feature_stands_out_and_others_do_not():
    length, inputs = 12, 60
    chance = np.random.default_rng(0)
    places = chance.integers(1, length - 1, inputs)
    maps = torch.full((inputs, 2, length, length), 1 / length, dtype=torch.float64)
    maps += torch.from_numpy(chance.random(maps.shape) * 0.02)
    for k, place in enumerate(places):
        maps[k, 1, :, place] += 0.5
    maps /= maps.sum(-1, keepdim=True)
    marks = [
        mark(np.arange(length)[None] == place, range(1, length - 1), classifying=0, seed=[k])
        for k, place in enumerate(places)
    ]
    observer = FeatureAttention(1, 2, ["verb"], causal=False)
    observer.take(marks, range(inputs)).update(0, maps, list(range(inputs)))
    p = observer.result()["max", "verb"][1].p_above()[0, :, 0]
    assert p[1] < 1e-6
    assert p[0] > 0.01


@given(st.data())
def test_columns_of_an_input_sum_to_one(data):
    length = data.draw(st.integers(1, 12))
    causal = data.draw(st.booleans())
    maps = random_maps(1, 2, length, length, causal=causal, seed=data.draw(st.integers(0, 99)))
    np.testing.assert_allclose(columns(cells_of(maps), causal=causal).sum(1), np.ones((1, 2)), rtol=1e-7)


@given(st.data())
def test_nulls_keep_the_count_and_take_other_ordinary_tokens(data):
    length = data.draw(st.integers(3, 20))
    row = np.array([False, *data.draw(st.lists(st.booleans(), min_size=length - 2, max_size=length - 2)), False])
    found = mark(row[None], range(1, length - 1), classifying=0, seed=[1])
    others = length - 2 - row.sum()
    for draw in range(NULLS):
        chosen = found.nulls[draw, 0]
        assert not (chosen & row).any()
        assert not chosen[[0, -1]].any()
        assert chosen.sum() == (row.sum() if others >= row.sum() else 0)


def test_one_token_is_no_error():
    observer = FeatureAttention(1, 1, ["start"], causal=False)
    marks = [Marks(np.array([[True]]), np.zeros((NULLS, 1, 1), dtype=bool), 0)]
    observer.take(marks, [0]).update(0, torch.ones(1, 1, 1, 1), [0])
    assert observer.result()["max", "start"][0].value == 1


def test_every_feature_has_its_draws_whatever_the_one_before_it_has():
    tokens = np.zeros((3, 12), dtype=bool)
    tokens[0, 4] = tokens[1, [5, 8]] = tokens[2, 6] = True
    nulls = mark(tokens, range(1, 11), classifying=0, seed=[1]).nulls
    assert nulls.sum(-1).tolist() == [[1, 2, 1]] * NULLS
    assert not (nulls & tokens).any()


def test_a_seed_draws_the_same_nulls_again():
    tokens = np.zeros((2, 30), dtype=bool)
    tokens[0, [4, 11, 20]] = tokens[1, 7] = True
    draws = [mark(tokens, range(1, 29), classifying=0, seed=seed).nulls for seed in ([3, 1], [3, 1], [3, 2], [4, 1])]
    np.testing.assert_array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])
    assert not np.array_equal(draws[0], draws[3])


def test_places_are_drawn_in_the_order_of_pythons_own_sample():
    """Nulls that are stored stay what they are, whatever another Python's sample does."""
    for count in (2, 3, 7, 30):
        chance, again = (random.Random(count) for _ in range(2))  # noqa: S311
        assert _in_drawn_order(list(range(count)), chance) == again.sample(range(count), count)
        assert chance.random() == again.random()


def test_a_contrast_is_that_of_its_definition_and_feature():
    """Head 0 looks at nouns, head 1 at verbs, head 2 at nouns from the classifying token alone."""
    length, planted = 12, 1.5
    tokens = np.zeros((2, length), dtype=bool)
    tokens[0, [2, 7]] = tokens[1, [4, 9]] = True
    kinds = Kinds(np.full(length, -1), np.array([False, False]))
    drawn = [Marked(tokens, range(1, length - 1), kinds, 0, (number,)) for number in range(20)]
    rhombi = rhombi_of_inputs(drawn, causal=False)
    marks = [mark(tokens, range(1, length - 1), classifying=0, seed=[k], rhombi=one) for k, one in enumerate(rhombi)]
    scores = torch.zeros(20, 3, length, length, dtype=torch.float64)
    scores[:, 0, :, [2, 7]] = scores[:, 1, :, [4, 9]] = planted
    scores[:, 2, 0, [2, 7]] = planted
    observer = FeatureAttention(1, 3, ["noun", "verb"], causal=False).take(marks, range(20))
    observer.update(0, scores.softmax(-1), list(range(20)))
    for definition, planted_in in (("max", [0]), ("sum", [0]), ("classifying", [0, 2])):
        for feature, heads in (("noun", planted_in), ("verb", [1])):
            found = observer.contrast(definition, feature).value[0, :, 0]
            assert found[heads] == pytest.approx([planted] * len(heads))
            assert (np.delete(found, heads) < 0.01).all()


def test_the_first_tokens_of_an_encoder_are_measured_against_other_tokens():
    """Uniform but for the start token, which gets twice as much: half of that is more than others have."""
    weights = torch.ones(8, 1, 6, 6, dtype=torch.float64)
    weights[..., 0] = 2
    tokens = np.eye(6, dtype=bool)[[0]]
    marks = [mark(tokens, range(1, 6), classifying=0, seed=[k]) for k in range(8)]
    observer = FeatureAttention(1, 1, ["start"], causal=False, places=["start"])
    observer.take(marks, range(8)).update(0, weights / 7, list(range(8)))
    value, effect = observer.result()["max", "start"]
    assert (value.value[0, 0, 0], effect.value[0, 0, 0]) == pytest.approx((2 / 7, 1 / 7))


# ---------------------------------------------------------------- word types


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("at_once", [False, True])
def test_weights_of_word_types_equal_a_loop(causal, at_once):
    maps, chance = random_maps(2, 5, 3, 9, 9, causal=causal), np.random.default_rng(0)
    marks = [
        Marks(one.tokens, one.nulls, one.classifying, types=np.array([-1, *chance.integers(4, size=7), -1]))
        for one in _marks(5, 9)
    ]
    observer = FeatureAttention(2, 3, FEATURES, causal=causal).take(marks, range(5))
    if at_once:
        observer.update_layers(maps.transpose(0, 1).reshape(5, 6, 9, 9), list(range(5)))
    else:
        for layer in range(2):
            observer.update(layer, maps[layer], list(range(5)))
    definition = "max-visible" if causal else "max"
    expected = {}
    for k, one in enumerate(marks):
        for at in range(1, 8):
            row = expected.setdefault(int(one.types[at]), np.zeros(1 + len(FEATURES) + 6))
            row[: 1 + len(FEATURES)] += [1, *one.tokens[:, at]]
            near = [j for j in range(1, 8) if j != at]  # all six others of seven
            for head, (layer, number) in enumerate(np.ndindex(2, 3)):
                own, *others = (
                    _loop(definition, maps[layer, k, number].tolist(), [j], 0, causal=causal) for j in [at, *near]
                )
                row[1 + len(FEATURES) + head] += own - statistics.median(others)
    assert observer.types.keys() == expected.keys()
    for word, row in expected.items():
        assert observer.types[word] == pytest.approx(row, abs=1e-6)


def test_a_token_is_compared_with_the_median_of_its_six_nearest():
    weights = np.array([[9.0], [1.0], [5.0], [2.0], [2.0], [7.0], [4.0], [3.0], [0.0]])
    nearest = [range(1, 7), *[range(7)] * 3, range(1, 8), *[range(2, 9)] * 4]
    expected = [
        own - statistics.median([weights[j, 0] for j in near if j != k])
        for k, ((own,), near) in enumerate(zip(weights, nearest, strict=True))
    ]
    assert beside_neighbours(weights)[:, 0] == pytest.approx(expected)


def test_p_of_word_types_is_the_share_of_equally_many_word_types_with_as_much():
    """Of eight word types three have the feature, with the 1st, 3rd and 4th largest weight: of the 56 sets of three,
    (1, 2, 3), (1, 2, 4) and this one reach as much, and (1, 2, 5) equals it."""
    weights = [8.0, 7.0, 6.0, 5.0, 4.0, 1.0, 0.0, 0.0]
    carrying = [True, False, True, True, False, False, False, False]
    both = zip(weights, carrying, strict=True)
    table = {k: np.array([2.0, 2.0 * carries, 2 * weight]) for k, (weight, carries) in enumerate(both)}
    assert p_of_word_types(table, 0, 1, 0) == pytest.approx(4 / 56, abs=0.01)
    halved = table | {4: np.array([2.0, 1.0, 8.0])}  # half of its tokens are not most of them
    assert p_of_word_types(halved, 0, 1, 0) == p_of_word_types(table, 0, 1, 0)
    few = {k: row for k, row in table.items() if carrying[k]}
    assert np.isnan(p_of_word_types(few, 0, 1, 0))  # every word type has the feature
    assert np.isnan(p_of_word_types({}, 0, 1, 0))
    far = table | {100 + k: np.array([1.0, 0.0, -1.0 - k]) for k in range(200)}
    assert p_of_word_types(far, 0, 1, 0) >= 1 / (SETS + 1)


@pytest.mark.thorough
def test_p_of_word_types_is_uniform_where_preferences_are_drawn():
    """200 heads whose weight on 40 word types is drawn: p is at most .05 in 5 % of them (99.9 % binomial limit)."""
    chance, found = np.random.default_rng(0), 0
    for _ in range(200):
        table = {k: np.array([1.0, float(k < 7), chance.standard_exponential() ** 2]) for k in range(40)}
        found += p_of_word_types(table, 0, 1, 0) <= 0.05
    assert found <= binom.ppf(0.999, 200, 0.05)
