"""Attention budgets against a loop over queries and keys; planted budgets; even attention; coverage of intervals."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from core.attention import visible_keys
from core.scoring import budget
from core.scoring.budget import BudgetAttention, BudgetTokens
from tests.scoring.maps import random_maps

# [CLS] the old dog ##s saw the cat . [SEP] it ran [SEP]
WORDS = [-1, 1, 2, 3, 3, 4, 5, 6, 7, -1, 9, 10, -1]
SPELLED = [-1, 1, 2, 3, 3, 4, 1, 6, 7, -1, 9, 10, -1]
SENTENCE = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1]
GOVERNORS = [(1, 3), (2, 3), (3, 4), (4, 4), (5, 6), (6, 4), (7, 4), (9, 10), (10, 10)]


def _tokens(classifying=0, governors=GOVERNORS, start=0, separators=(9, 12)):
    return BudgetTokens(
        start=start,
        separators=separators,
        word=np.array(WORDS),
        spelling=np.array(SPELLED),
        sentence=np.array(SENTENCE),
        punctuation=np.array(WORDS) == 7,
        governors=governors,
        classifying=classifying,
    )


def _category(query, key):
    """The first category that applies, read off the definition."""
    word, other = WORDS[query], WORDS[key]
    if key == 0:
        return "start"
    if key in (9, 12):
        return "separator"
    if key == query:
        return "itself"
    if word >= 0 and word == other:
        return "same word"
    if key == query - 1:
        return "previous"
    if key == query + 1:
        return "next"
    if word >= 0 and SPELLED[query] == SPELLED[key]:
        return "repeated"
    if (word, other) in GOVERNORS:
        return "governor"
    if (other, word) in GOVERNORS:
        return "dependent"
    if other == 7:
        return "punctuation"
    return "same sentence" if SENTENCE[query] == SENTENCE[key] else "other sentence"


def _measured(maps, *, causal=False, tokens=None, windows=()):
    """The means of each statistic of these maps [layer, input, head, query, key], all inputs of the same tokens."""
    observer = BudgetAttention(len(maps), maps.shape[2], causal=causal, windows=windows)
    inputs = list(range(maps.shape[1]))
    observer.take([tokens or _tokens()] * len(inputs), inputs)
    for layer, weights in enumerate(maps):
        observer.update(layer, weights, inputs)
    return observer.means.result()


def _even(length, *, causal=False, window=None):
    seen = torch.from_numpy(visible_keys(np.arange(length), length, causal=causal, window=window)).float()
    return seen / seen.sum(1, keepdim=True)


def test_every_key_is_in_the_first_category_that_applies():
    found, _ = budget.categories_of(_tokens())
    for query in range(13):
        for key in range(13):
            assert budget.CATEGORIES[found[query, key]] == _category(query, key), (query, key)


def test_what_is_syntax_but_counted_earlier_is_contested():
    maps = random_maps(1, 1, 2, 13, 13)
    queries = [k for k in range(13) if WORDS[k] >= 0]
    early = ("same word", "previous", "next")
    linked = {(a, b) for a, b in GOVERNORS if a != b} | {(b, a) for a, b in GOVERNORS if a != b}
    expected = [
        sum(
            float(maps[0, 0, head, q, k])
            for q in queries
            for k in range(13)
            if (WORDS[q], WORDS[k]) in linked and _category(q, k) in early
        )
        / len(queries)
        for head in range(2)
    ]
    np.testing.assert_allclose(_measured(maps).value[0, :, budget.CONTEST], expected, rtol=1e-6)


@pytest.mark.parametrize("causal", [False, True])
def test_shares_equal_a_loop_and_add_up_to_one(causal):
    maps = random_maps(2, 3, 2, 13, 13)
    maps = maps.tril() if causal else maps
    maps = maps / maps.sum(-1, keepdim=True)
    classifying = 12 if causal else 0
    found = _measured(maps, causal=causal, tokens=_tokens(classifying)).value
    queries = [k for k in range(13) if WORDS[k] >= 0]
    for number, name in enumerate(budget.CATEGORIES):
        cells = [(q, k) for q in queries for k in range(13) if _category(q, k) == name]
        share = sum(maps[..., q, k].double() for q, k in cells).mean(1) / len(queries) if cells else torch.zeros(2, 2)
        np.testing.assert_allclose(found[..., number], share, atol=1e-7, err_msg=name)
    np.testing.assert_allclose(found[..., budget.SHARES].sum(-1), 1, atol=1e-6)
    np.testing.assert_allclose(found[..., budget.CLASSIFYING].sum(-1), 1, atol=1e-6)


@pytest.mark.parametrize(("causal", "window"), [(False, None), (True, None), (True, 4), (False, 4)])
def test_even_attention_has_enrichment_one(causal, window):
    maps = _even(13, causal=causal, window=window).expand(1, 2, 3, 13, 13)
    found = _measured(maps, causal=causal, tokens=_tokens(12 if causal else 0), windows=(window,)).value
    for enriched in (budget.ENRICHED, budget.CLASSIFYING_ENRICHED):
        values = found[..., enriched]
        np.testing.assert_allclose(values[np.isfinite(values)], 1, atol=1e-6)
    np.testing.assert_allclose(found[..., budget.SHARES], found[..., budget.EXPECTED], atol=1e-7)


def test_a_planted_budget_is_recovered_to_a_point():
    """60 % on [SEP], 25 % on the previous token, 15 % even; of two separators each has half."""
    maps = 0.15 * _even(13)
    maps[:, [9, 12]] += 0.3
    for query in range(13):
        maps[query, max(query - 1, 0)] += 0.25
    value = dict(zip(budget.CATEGORIES, _measured(maps.expand(1, 2, 1, 13, 13)).value[0, 0], strict=False))
    queries = [k for k in range(13) if WORDS[k] >= 0]
    before = {name: sum(_category(q, q - 1) == name for q in queries) / len(queries) for name in budget.CATEGORIES}
    assert value["separator"] == pytest.approx(0.6 + 0.15 * 2 / 13 + 0.25 * before["separator"], abs=0.01)
    for name in ("previous", "start", "same word"):
        even = np.mean([sum(_category(q, k) == name for k in range(13)) for q in queries]) / 13
        assert value[name] == pytest.approx(0.25 * before[name] + 0.15 * even, abs=0.01), name


def test_attention_that_depends_on_distance_alone_is_not_beyond_distance():
    by_distance = torch.rand(25, generator=torch.Generator().manual_seed(2))
    position = torch.arange(13)
    maps = by_distance[position[None] - position[:, None] + 12].expand(1, 2, 1, 13, 13)
    beyond = _measured(maps).value[0, 0, budget.BEYOND_DISTANCE]
    np.testing.assert_allclose(beyond[np.isfinite(beyond)], 0, atol=1e-6)
    assert np.isfinite(beyond).any()


def test_a_head_that_finds_governors_is_beyond_distance():
    maps = _even(13).clone()
    for query in range(13):
        for key in range(13):
            if _category(query, key) == "governor":
                maps[query] *= 0.5
                maps[query, key] += 0.5
    beyond = _measured(maps.expand(1, 2, 1, 13, 13)).value[0, 0, budget.BEYOND_DISTANCE]
    assert beyond[1] > 0.1
    assert abs(beyond[0]) < 0.02


def test_an_input_of_special_tokens_or_one_token_has_no_budget():
    tokens = BudgetTokens(0, (1,), np.array([-1, -1]), np.array([-1, -1]), np.zeros(2, int), np.zeros(2, bool), [], 0)
    found = _measured(_even(2).expand(1, 1, 1, 2, 2), tokens=tokens)
    assert found.n[0] == 0
    assert np.isnan(found.value[0, 0, 0])
    assert found.value[0, 0, budget.CLASSIFYING].sum() == pytest.approx(1)
    one = BudgetTokens(0, (), np.array([1]), np.array([1]), np.zeros(1, int), np.zeros(1, bool), [], 0)
    found = _measured(torch.ones(1, 1, 1, 1, 1), tokens=one)
    assert found.n[0] == 0


def test_all_layers_at_once_give_the_same_as_layer_by_layer():
    maps = random_maps(3, 2, 2, 13, 13)
    one = _measured(maps)
    together = BudgetAttention(3, 2, causal=False).take([_tokens()] * 2, [0, 1])
    together.update_layers(maps.transpose(0, 1).flatten(1, 2), [0, 1])
    np.testing.assert_allclose(together.means.result().value, one.value, atol=1e-12)


def test_intervals_of_random_attention_cover_even_shares():
    """Rows from a flat Dirichlet have even attention as their mean: the interval covers it in 90 of 100 draws."""
    generator, heads = np.random.default_rng(31), 200
    maps = torch.from_numpy(generator.dirichlet(np.ones(13), (1, 20, heads, 13)))
    found, expected = _measured(maps), _measured(_even(13).expand(1, 1, 1, 13, 13)).value[0, 0]
    for category in (budget.SEPARATOR, budget.PREVIOUS, budget.GOVERNOR, budget.OWN):
        low, high = found.low[0, :, category], found.high[0, :, category]
        covered = ((low <= expected[category]) & (expected[category] <= high)).sum()
        assert covered >= 0.9 * heads - 2 * (heads * 0.9 * 0.1) ** 0.5, category  # two standard errors of 90 %


@pytest.mark.parametrize("causal", [False, True])
def test_blocks_of_queries_give_the_same_as_whole_maps(causal):
    maps = random_maps(1, 1, 2, 13, 13)
    maps = maps.tril() if causal else maps
    maps, tokens = maps / maps.sum(-1, keepdim=True), _tokens(12 if causal else 0)
    whole = _measured(maps, causal=causal, tokens=tokens).value
    observer = BudgetAttention(1, 2, causal=causal).take([tokens], [0])
    (needs,) = observer.needs([0], 13, 13)
    for start in (0, 5, 10):
        for head in range(2):
            needs.blocks(head, start, maps[0, 0, head, start : start + 5])
    observer.update_sums(0, [], [0])
    found = observer.means.result().value
    kept = np.ones(budget.STATISTICS, dtype=bool)
    kept[budget.BEYOND_DISTANCE] = False
    np.testing.assert_allclose(found[..., kept], whole[..., kept], atol=1e-12)
    assert np.isnan(found[..., budget.BEYOND_DISTANCE]).all()


# ---------------------------------------------------------------- budgets by part of speech

CLASS = np.array([-1, 4, 2, 0, 0, 1, 4, 0, 5, -1, 3, 1, -1])  # of each position


def _by_class(maps, orders, *, causal=False):
    """Observe maps [layer, input, head, query, key], with the classes [draw, position] of each input."""
    observer = BudgetAttention(len(maps), maps.shape[2], causal=causal, draws=len(orders[0]) - 1)
    observer.take([replace(_tokens(12 if causal else 0), classes=order) for order in orders], list(range(len(orders))))
    for layer, weights in enumerate(maps):
        observer.update(layer, weights, list(range(len(orders))))
    return observer


def _orders(chance, draws):
    """The classes of the words, then permuted within the two sentences."""
    orders = [CLASS]
    for _ in range(draws):
        order = CLASS.copy()
        for words in ([[1], [2], [3, 4], [5], [6], [7], [8]], [[10], [11]]):
            own = chance.permutation([CLASS[word[0]] for word in words])
            for word, kind in zip(words, own, strict=True):
                order[word] = kind
        orders.append(order)
    return np.array(orders)


def test_budgets_by_part_of_speech_equal_a_loop():
    maps, chance = random_maps(2, 3, 2, 13, 13), np.random.default_rng(5)
    orders = [_orders(chance, 2) for _ in range(3)]
    observer = _by_class(maps, orders)
    value = observer.by_class.result().value.reshape(2, 2, budget.CLASSES, -1)
    for kind in range(6):
        queries = np.flatnonzero(kind == CLASS)
        for number, name in enumerate(budget.CATEGORIES):
            cells = [(q, k) for q in queries for k in range(13) if _category(q, k) == name]
            share = sum(maps[..., q, k].double() for q, k in cells).mean(1) / len(queries) if cells else 0.0
            np.testing.assert_allclose(value[:, :, kind, number], share, atol=1e-6)
    for draw in range(2):
        of_draw = _by_class(maps, [order[[draw + 1]] for order in orders])
        sums = of_draw.by_class.sums.sum(0).reshape(2, 2, budget.CLASSES, -1)
        np.testing.assert_allclose(observer.drawn[draw].transpose(1, 2, 0, 3), sums, atol=1e-5)
        np.testing.assert_array_equal(observer.counts[draw + 1], of_draw.counts[0])
    together = BudgetAttention(2, 2, causal=False, draws=2)
    together.take([replace(_tokens(), classes=order) for order in orders], [0, 1, 2])
    together.update_layers(maps.transpose(0, 1).flatten(1, 2), [0, 1, 2])
    np.testing.assert_allclose(together.drawn, observer.drawn, atol=1e-5)
    np.testing.assert_allclose(together.counts, observer.counts)


def test_blocks_of_queries_give_the_same_budgets_by_part_of_speech():
    maps, orders = random_maps(1, 1, 2, 13, 13), _orders(np.random.default_rng(5), 2)
    whole = _by_class(maps, [orders])
    observer = BudgetAttention(1, 2, causal=False, draws=2).take([replace(_tokens(), classes=orders)], [0])
    (needs,) = observer.needs([0], 13, 13)
    for start in (0, 5, 10):
        for head in range(2):
            needs.blocks(head, start, maps[0, 0, head, start : start + 5])
    observer.update_sums(0, [], [0])
    np.testing.assert_allclose(observer.drawn, whole.drawn, atol=1e-5)
    np.testing.assert_allclose(observer.by_class.sums, whole.by_class.sums, atol=1e-6)


@pytest.mark.parametrize("heads", [60, pytest.param(1000, marks=pytest.mark.slow)])  # a rate of 1,000 heads
def test_a_head_that_attends_otherwise_from_nouns_is_told_apart_and_others_at_the_level_of_the_test(heads):
    """Of heads whose attention does not depend on words, about one in twenty has a class with a p of at most .05."""
    inputs, chance = 20, np.random.default_rng(7)
    orders = [_orders(chance, 200)[1:] for _ in range(inputs)]
    maps = random_maps(1, inputs, 1 + heads, 13, 13)
    for number, order in enumerate(orders):
        maps[0, number, 0, order[0] == 0] *= 0.4
        maps[0, number, 0, order[0] == 0, 9] += 0.6
    found = _distances(_by_class(maps, orders))
    assert found.value[0, 0, 0] > found.even[0, 0, 0] + 0.1
    assert found.p[0, 0, 0] <= 0.05
    false = (np.nanmin(found.p[0, 1:], -1) <= 0.05).sum()
    assert false <= stats.binom.ppf(0.99, heads, 0.05)
    assert np.isnan(found.p[..., 6]).all()  # no such words


def _distances(observer):
    return budget.class_distances(observer.by_class, observer.drawn, observer.counts, observer.even)


@pytest.mark.parametrize("causal", [False, True])
def test_even_attention_is_as_far_as_its_baseline(causal):
    observer = _by_class(
        _even(13, causal=causal).expand(1, 20, 1, 13, 13), [CLASS[None].repeat(2, 0)] * 20, causal=causal
    )
    found = _distances(observer)
    np.testing.assert_allclose(found.value, found.even, atol=1e-3)
    assert (found.p[np.isfinite(found.p)] == 1).all()
