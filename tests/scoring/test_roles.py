"""Roles on heads planted by hand, and against a loop over the definitions."""

import numpy as np
import pytest

from core.errors import InputError
from core.scoring.registry import head_scores
from core.scoring.roles import (
    LEAST,
    ROLES,
    RoleBlocks,
    RoleMeans,
    RolePositions,
    columns_of,
    repeated_tokens,
    role_q,
    role_scores,
    without_sink,
)
from tests.scoring.maps import random_maps

WORDS = range(100, 400)
PLANTED = ("previous", "next", "first", "separator", "duplicate", "prefix")


def target(role, ids, places, query):
    """The key that a planted head of this role looks at, found from the tokens as a real head would; None: nothing."""
    length, earlier = len(ids), [k for k in range(query) if ids[k] == ids[query]]
    after = [k + 1 for k in earlier if k + 1 < query]
    keys = {
        "previous": [query - 1],
        "next": [query + 1],
        "first": [0],
        "separator": list(places.separators),
        "duplicate": earlier,
        "prefix": after,
        "far": [query - places.repeat[1]],  # looks back as far as the repeat is long, whatever the tokens are
    }[role]
    known = [k for k in keys if 0 <= k < (query + 1 if places.causal else length)]
    return known[0] if known else None


def planted(role, ids, places, *, sink=0.0):
    """A head [query, key] with .98 on its target and the rest even; sink: so much of every row on the first token."""
    length = len(ids)
    rows = np.zeros((length, length))
    for query in range(length):
        seen = query + 1 if places.causal else length
        key = target(role, ids, places, query)
        rows[query, :seen] = (0.02 if key is not None else 1.0) / seen
        if key is not None:
            rows[query, key] += 0.98
    rows *= 1 - sink
    rows[:, 0] += sink
    return rows


def sequence(*, causal, seed=0, period=20):
    ends = {} if causal else {"before": (1,), "after": (2,)}
    return repeated_tokens(WORDS, period, seed=seed, causal=causal, **ends)


def both(tokens, roles, **options):
    return [
        np.stack([planted(role, ids, tokens.places, **options) for role in roles])
        for ids in (tokens.ids, tokens.control)
    ]


@pytest.mark.parametrize("causal", [False, True])
def test_planted_heads_score_above_95_and_others_below_20(causal):
    tokens = sequence(causal=causal)
    roles = [role for role in PLANTED if not causal or role not in ("next", "separator")]
    maps, control = both(tokens, roles)
    scores = role_scores(maps, tokens.places, control=control)
    for role in roles:
        for head, plays in enumerate(roles):
            values = [scores[role].weight[head]] + ([] if role == "first" else [scores[role].without_sink[head]])
            for value in values:
                assert value > 0.95 if role == plays else value < 0.2, (role, plays)
        baseline = scores[role].baseline
        assert baseline[roles.index(role)] < 0.2


def test_a_decoder_has_no_next_and_no_separator():
    tokens = sequence(causal=True)
    maps, control = both(tokens, ["previous"])
    scores = role_scores(maps, tokens.places, control=control)
    assert np.isnan(scores["next"].weight).all()
    assert np.isnan(scores["separator"].weight).all()


@pytest.mark.parametrize("causal", [False, True])
def test_a_head_that_only_looks_far_back_is_no_duplicate_head(causal):
    tokens = sequence(causal=causal)
    maps, control = both(tokens, ["far", "duplicate"])
    score = role_scores(maps, tokens.places, control=control)["duplicate"]
    assert (score.weight > 0.95).all()
    far, duplicate = score.weight - score.baseline
    assert far == pytest.approx(0, abs=1e-9)
    assert duplicate > 0.9


def test_a_sink_hides_a_role_until_it_is_taken_out():
    tokens = sequence(causal=True)
    maps, control = both(tokens, ["previous", "prefix"], sink=0.9)
    scores = role_scores(maps, tokens.places, control=control)
    for head, role in enumerate(("previous", "prefix")):
        assert scores[role].weight[head] < 0.2
        assert scores[role].without_sink[head] > 0.9
    assert (scores["first"].weight > 0.85).all()
    assert np.isnan(scores["first"].without_sink).all()


def test_a_head_that_sees_nothing_but_the_sink_has_no_other_role():
    maps = np.zeros((1, 6, 6))
    maps[..., 0], maps[..., 1] = 1 - LEAST / 2, LEAST / 2
    scores = role_scores(maps, RolePositions(6, separators=(5,)))
    assert scores["previous"].without_sink == scores["separator"].without_sink == [0.0]
    assert not without_sink(maps, 0).any()


def even(i, length, causal):
    return 1 / (i + 1 if causal else length)


@pytest.mark.parametrize("causal", [False, True])
def test_scores_are_those_of_heads_py_and_baselines_those_of_a_loop(causal):
    maps = random_maps(2, 3, 7, 7, causal=causal).numpy()
    before, separators = maps.copy(), (3, 6)
    scores = role_scores(maps, RolePositions(7, separators=separators, causal=causal))
    known = head_scores(maps, first=0, separators=separators, causal=causal)
    for role in ("previous", "next", "first", "separator"):
        np.testing.assert_allclose(scores[role].weight, known[role], atol=1e-12)
    start = 1 if causal else 0
    expected = np.mean([even(i, 7, causal) for i in range(1, 7)])
    np.testing.assert_allclose(scores["previous"].baseline, expected)
    for layer in range(2):
        for head in range(3):
            sums = []
            for i in range(max(start, 3) if causal else 0, 7):
                sums.append(0.0)
                for j in (j for j in separators if not causal or j <= i):
                    others = [(a, a + j - i) for a in range(start, 7) if 0 <= a + j - i < 7]
                    cells = [maps[layer, head, a, b] for a, b in others if b not in separators]
                    sums[-1] += sum(cells) / len(cells) if cells else even(i, 7, causal)
            assert scores["separator"].baseline[layer, head] == pytest.approx(np.mean(sums))
    np.testing.assert_array_equal(maps, before)


def test_without_the_sink_is_the_same_score_of_rescaled_rows():
    maps = random_maps(2, 2, 5, 5, seed=3).numpy()
    score = role_scores(maps, RolePositions(5, separators=(4,)))["previous"]
    for layer in range(2):
        for head in range(2):
            rows = maps[layer, head]
            shares = [rows[i, i - 1] / rows[i, 1:].sum() for i in range(2, 5)]  # query 1's previous is the sink
            assert score.without_sink[layer, head] == pytest.approx(np.mean(shares))
    np.testing.assert_allclose(score.baseline_without_sink, 0.25)


def test_repeated_tokens_come_twice_and_the_control_never():
    tokens = repeated_tokens(WORDS, 5, seed=1, before=(1,), after=(2,))
    assert tokens.ids[1:6] == tokens.ids[6:11]
    assert (tokens.ids[0], tokens.ids[-1]) == (tokens.control[0], tokens.control[-1]) == (1, 2)
    assert len(set(tokens.control)) == len(tokens.control) == len(tokens.ids) == tokens.places.length
    assert tokens.places == RolePositions(12, separators=(11,), repeat=(1, 5))
    assert repeated_tokens(WORDS, 5, seed=1, before=(1,), after=(2,)) == tokens
    assert repeated_tokens(WORDS, 5, seed=2, before=(1,), after=(2,)) != tokens
    assert sorted(repeated_tokens(range(10), 5, seed=0).control) == list(range(10))  # as many words as it takes


def test_over_inputs_only_the_planted_roles_survive_the_correction():
    together, parts, roles = RoleMeans(1, 4), [RoleMeans(1, 4), RoleMeans(1, 4)], ["previous", "prefix"]
    for number in range(12):
        tokens = sequence(causal=True, seed=number, period=8)
        noise = random_maps(2, 2, 16, 16, causal=True, seed=number).numpy()
        maps = [np.concatenate([one, rest])[None] for one, rest in zip(both(tokens, roles), noise, strict=True)]
        for means in (together, parts[number % 2]):
            means.update_layer(0, maps[0], tokens.places, [number], control=maps[1])
    estimates, (left, right) = together.result(), parts
    left.means.merge(right.means)
    q = role_q(together)
    for role in ROLES:
        np.testing.assert_allclose(left.result()[role].weight.value, estimates[role].weight.value)
        for head, plays in enumerate([*roles, None, None]):
            if role == plays:
                assert q[role][0, head] < 0.01
                assert estimates[role].weight.value[0, head, 0] > 0.95
                assert estimates[role].effect.low[0, head, 0] > 0.5
            else:
                assert not q[role][0, head] < 0.01, (role, head)
    assert estimates["previous"].weight.n == 12


def test_impossible_places_and_missing_controls_get_one_sentence():
    with pytest.raises(InputError, match=r"within the 8 tokens of the input; got the start 1 and the length 4"):
        RolePositions(8, repeat=(1, 4))
    with pytest.raises(InputError, match="need the maps of a control input of the same length"):
        role_scores(np.full((1, 8, 8), 1 / 8), RolePositions(8, repeat=(0, 4)))
    with pytest.raises(InputError, match="a period of 5 need at least 10 different words; got 9"):
        repeated_tokens(range(9), 5, seed=0)


@pytest.mark.parametrize("causal", [False, True])
def test_a_head_on_the_rare_word_and_one_on_dependencies_are_told_apart(causal):
    links, rare = ((2, 5), (3, 7), (6, 7)), (1,)
    places = RolePositions(9, causal=causal, rare=rare, links=links)
    seen = np.tril(np.ones((9, 9))) if causal else np.ones((9, 9))
    even = seen / seen.sum(-1, keepdims=True)
    to_rare, to_links = even * 0.02, even.copy()
    to_rare[int(causal) :, 1] += 0.98
    linked = {(a, b) for a, b in (*links, *((b, a) for a, b in links)) if not causal or b <= a}
    for query in {a for a, _ in linked}:
        keys = [b for a, b in linked if a == query]
        to_links[query] *= 0.02
        to_links[query, keys] += 0.98 / len(keys)
    scores = role_scores(np.stack([to_rare, to_links, even]), places)
    queries = range(2, 9) if causal else [0, *range(2, 9)]  # not the word itself, nor a query that has no choice
    hits = [np.mean([head[q].argmax() == 1 for q in queries]) for head in (to_rare, to_links, even)]
    np.testing.assert_allclose(scores["rare"].weight, hits)
    assert scores["rare"].weight[0] == 1
    assert scores["rare"].baseline[0] < 0.5
    assert scores["rare"].weight[1] < 0.2
    own = [
        np.mean([sum(head[a, b] for a, b in linked if a == q) for q in {a for a, _ in linked}])
        for head in (to_rare, to_links, even)
    ]
    np.testing.assert_allclose(scores["dependency"].weight, own)
    assert scores["dependency"].weight[1] > 0.95
    assert scores["dependency"].weight[0] < 0.2
    assert scores["dependency"].baseline[1] < 0.6  # what it gives to the same distances elsewhere


def test_the_test_of_roles_asks_for_so_many_times_the_baseline():
    means = RoleMeans(1, 2)
    chance = np.random.default_rng(0)
    for number in range(40):
        maps = np.full((1, 2, 10, 10), 0.1)
        maps[0, 0] = 0.08 / 0.9  # twice the baseline on the token before: a role at times=1, none at times=3
        maps[0, 0, np.arange(1, 10), np.arange(9)] = 0.2
        maps[0, 0, 0] = 0.1
        maps += chance.random(maps.shape) * 0.001
        means.update_layer(0, maps / maps.sum(-1, keepdims=True), RolePositions(10), [number])
    assert role_q(means, times=1.0)["previous"][0, 0] < 0.01
    assert role_q(means, times=3.0)["previous"][0, 0] > 0.9
    assert role_q(means, times=1.0)["previous"][0, 1] > 0.01


def test_the_smallest_input_with_a_repeat_and_one_without():
    assert RolePositions(1).length == 1  # nothing that repeats has no end
    assert RolePositions(5, repeat=(1, 2)).repeat == (1, 2)
    for wrong in (
        {"repeat": (2, 2)},
        {"repeat": (0, 3)},
        {"repeat": (0, 0)},
        {"first": 5},
        {"rare": (-1,)},
        {"links": ((0, 5),)},
        {"separators": (5,)},
    ):
        with pytest.raises(
            InputError, match=r"must be from 0 to 4 in this input; got|twice within the 5 tokens of the input; got"
        ):
            RolePositions(5, **wrong)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("first", [0, 2])
def test_blocks_of_queries_give_the_roles_of_whole_maps(causal, first):
    """Blocks of one row, of three, and all at once; with targets in every role that needs no control."""
    length, links = 11, ((3, 5), (6, 4), (9, 1), (1, 9), (7, 7))
    places = RolePositions(length, first, (5, 10), causal=causal, rare=(6, 7), links=links)
    maps = random_maps(2, length, length, causal=causal, seed=3).numpy()
    maps[0, 3:] = np.eye(length)[first] * (1 - LEAST / 2) + maps[0, 3:] * LEAST / 2  # rows with next to nothing left
    wanted = columns_of(role_scores(maps, places))
    for step in (1, 3, length):
        blocks, before = RoleBlocks((2,), places), maps.copy()
        for start in range(0, length, step):
            for head in range(2):
                blocks.take(head, start, maps[head, start : start + step])
        assert columns_of(blocks.scores()) == pytest.approx(wanted, abs=1e-12, nan_ok=True)
        assert np.array_equal(maps, before)
    assert np.isfinite(wanted).all(0).sum() >= 16
    with pytest.raises(InputError, match="control"):
        RoleBlocks((2,), RolePositions(8, repeat=(1, 3))).scores()


def test_a_head_on_the_first_token_has_its_role_though_nothing_is_left_without_the_sink():
    means, chance = RoleMeans(1, 2), np.random.default_rng(0)
    for number in range(14):
        maps = chance.random((1, 2, 10, 10))
        maps[0, 0, :, 0] += 30
        means.update_layer(0, maps / maps.sum(-1, keepdims=True), RolePositions(10), [number])
    q = role_q(means)["first"][0]
    assert q[0] < 0.01
    assert q[1] > 0.9
