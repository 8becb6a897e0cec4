"""GPT-2's first and last token, words of both sentences, repeated patterns, links of words; what no rows can test."""

import pytest

from core.report.claims import disabling, heads_and_layers, maps
from core.report.claims.outcomes import FAILS, HOLDS, UNDECIDED, UNTESTED
from tests.report.evidence_made import CHECKPOINT, evidence, found, head_rows, sweep_rows


def effects(rows):
    """Rows of heads whose value is what they have beyond a null."""
    return [row | {"effect": row["value"], "effect_low": row["low"], "effect_high": row["high"]} for row in rows]


def places(beyond, after, features=("first", "last")):
    rows = []
    for feature in features:
        rows += effects(head_rows([[beyond] * 2], statistic="max", feature=feature, checkpoint=CHECKPOINT))
        rows += head_rows([[-after] * 2], statistic="max", feature=feature, checkpoint="difference")
    return evidence(found("features", rows, "rte"), causal=True)


@pytest.mark.parametrize(
    ("beyond", "after", "word"),
    [(0.3, -0.1, HOLDS), (0.3, 0.1, FAILS), (-0.2, -0.1, FAILS), (0.3, 0.0, UNDECIDED)],
)
def test_first_and_last_token_before_and_not_after(beyond, after, word):
    (one,) = heads_and_layers.first_and_last(places(beyond, after))
    assert one.outcome == word


def test_rows_without_the_last_token_cannot_test_it():
    (one,) = heads_and_layers.first_and_last(places(0.3, -0.1, features=("first",)))
    assert (one.outcome, "Rerun this step" in one.said) == (UNTESTED, True)


def shared(losses, same_word, half=0.01, *, contrast=1.0):
    """Four heads with these losses on both tasks, these effects along the same word, and contrasts of so much of
    them."""
    names = ("L1H1", "L1H2", "L2H1", "L2H2")
    sweeps = [
        found("heads", sweep_rows(dict(zip(names, losses, strict=True)), 0.002, n=1000), task)
        for task in ("stsb", "rte")
    ]
    table = [same_word[:2], same_word[2:]]
    rows = [
        row
        for way in ("forward", "backward")
        for row in effects(head_rows(table, half, task="rte", feature="same-word", statistic=way))
    ]
    for row in rows:
        beyond = contrast * row["effect"]
        row |= {"contrast": beyond, "contrast_low": beyond - half, "contrast_high": beyond + half}
    return evidence(*sweeps, found("relations", rows))


@pytest.mark.parametrize(
    ("losses", "same_word", "word"),
    [
        ((-0.1, -0.1, -0.1, 0.0), (0.2, 0.2, -0.2, -0.2), HOLDS),
        ((-0.1, -0.1, 0.0, 0.0), (-0.2, -0.2, 0.2, 0.2), FAILS),  # of the heads that both tasks lose by
        ((-0.1, 0.0, -0.1, 0.0), (0.2, 0.2, 0.005, -0.2), UNDECIDED),
    ],
)
def test_heads_that_both_tasks_need_look_at_the_same_word(losses, same_word, word):
    (one,) = disabling.words_of_both(shared(losses, same_word))
    assert (one.outcome, one.task, one.n) == (word, "rte", sum(loss < 0 for loss in losses))


def test_heads_that_look_at_a_kind_of_word_alone_are_not_said_to_look_at_the_same_word():
    """Their weight on it is above that on the other words there; with the kind taken out nothing is left."""
    (one,) = disabling.words_of_both(shared((-0.1, -0.1, -0.1, 0.0), (0.2, 0.2, 0.2, 0.2), contrast=0.0))
    assert one.outcome == UNDECIDED


def test_without_shared_heads_there_is_nothing_to_test():
    (one,) = disabling.words_of_both(shared((0.0, 0.0, 0.0, 0.0), (0.2,) * 4))
    assert (one.outcome, one.said) == (UNTESTED, "No head has a significant loss on both tasks.")


def repeats(share, low, high, *random):
    about = {"checkpoint": CHECKPOINT, "task": "rte", "n": 100}
    rows = [about | {"kind": "repeats", "share": share, "low": low, "high": high}]
    rows += [
        about | {"kind": "repeats at random", "draw": k, "share": value, "low": lower, "high": upper}
        for k, (value, lower, upper) in enumerate(random, 1)
    ]
    return evidence(found("redundancy", rows))


@pytest.mark.parametrize(
    ("share", "random", "word"),
    [
        ((0.9, 0.8, 1.0), (0.3, 0.2, 0.4), HOLDS),
        ((0.3, 0.2, 0.4), (0.1, 0.0, 0.1), FAILS),  # fewer than half
        ((0.7, 0.6, 0.8), (0.95, 0.9, 1.0), FAILS),  # random weights have more
        ((0.9, 0.8, 1.0), (0.7, 0.5, 0.9), UNDECIDED),
        ((0.5, 0.4, 0.6), (0.1, 0.0, 0.1), UNDECIDED),
        ((1.0, 0.9, 1.0), (1.0, 1.0, 1.0), UNTESTED),  # nothing can have more
    ],
)
def test_patterns_are_repeated_where_heads_are_nearer_to_another_one_more_than_in_random_weights(share, random, word):
    (one,) = maps.repeated_patterns(repeats(*share, random))
    assert (one.outcome, one.task, one.n) == (word, "rte", 100)


def test_of_several_draws_of_random_weights_the_widest_ends_count():
    (one,) = maps.repeated_patterns(repeats(0.9, 0.8, 1.0, (0.2, 0.1, 0.3), (0.8, 0.7, 0.85)))
    assert one.outcome == UNDECIDED
    (without,) = maps.repeated_patterns(repeats(0.9, 0.8, 1.0))
    assert without.outcome == UNTESTED


@pytest.mark.parametrize(
    ("value", "half", "word"), [(0.1, 0.05, HOLDS), (-0.1, 0.05, FAILS), (0.1, 0.2, UNDECIDED), (None, 0, UNTESTED)]
)
def test_links_of_adjectives_beside_those_of_prepositions(value, half, word):
    ends = {"low": None, "high": None} if value is None else {"low": value - half, "high": value + half}
    row = {"kind": "link contrast", "task": "sst2", "first": "noun-adjective", "other": "noun-preposition"}
    row |= {"value": value, "first_moves": 0.3, "other_moves": 0.2, "links": 80, "n": 40} | ends
    (one,) = disabling.adjectives_matter(evidence(found("word-links", [row], "sst2")))
    assert one.outcome == word
    (beside,) = disabling.adjectives_matter(evidence(found("word-links", [row], "rte")))  # no task of sentiment
    assert beside.outcome == UNTESTED


def test_what_no_rows_can_tell_says_which_would():
    (one,) = maps.frames_help(evidence())
    assert (
        one.outcome,
        "Examples from GLUE have no frames, and examples from FrameNet have no labels." in one.said,
    ) == (UNTESTED, True)
