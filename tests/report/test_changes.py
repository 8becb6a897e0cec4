"""What fine-tuning changes, over the seeds that were looked at, against scipy's t intervals."""

import numpy as np
import pytest
from scipy import stats

from core.report.claims import changes, claim, maps
from core.report.claims.outcomes import FAILS, HOLDS, UNDECIDED
from core.report.claims.seeds import decided_over_seeds
from core.report.rendering.words import numbers_of
from core.report.report import outcomes
from tests.report.evidence_made import CHECKPOINT, evidence, found, head_rows, layer_rows


def tuned(seed, recipe="9aae68"):
    return f"runs/ours-rte-pretrained-s{seed}-{recipe}"


def cosines_of(first, *others, half=0.001, recipe="9aae68", limit=100, kind="layer"):
    """A comparison of the first seed's checkpoint, and one of all others'."""

    def rows(seed, values):
        return [
            row | {"after": tuned(seed, recipe if seed else "9aae68"), "kind": kind} for row in layer_rows(values, half)
        ]

    mine = found("change", rows(0, first), "rte", options={"after": (tuned(0),), "limit": 100})
    after = tuple(tuned(seed, recipe) for seed in range(1, len(others) + 1))
    every = [row for seed, values in enumerate(others, 1) for row in rows(seed, values)]
    return evidence(mine, found("change-seeds", every, "rte", options={"after": after, "limit": limit}))


def test_layers_are_compared_within_each_seed():
    seeds = [(0.9, 0.9, 0.9, 0.9, 0.70, 0.71), (0.8, 0.8, 0.8, 0.8, 0.61, 0.60), (0.7, 0.7, 0.7, 0.7, 0.48, 0.50)]
    (one,) = changes.last_two_layers(cosines_of(*seeds))
    assert (one.outcome, one.seeds) == (HOLDS, 3)  # though the seeds' cosines overlap
    assert "0.80, 0.80, 0.80, 0.80, 0.60, 0.60" in one.said
    gaps = [seed[0] - seed[4] for seed in seeds]  # of the pair that is least clear
    low, _ = stats.t.interval(0.95, 2, np.mean(gaps), stats.sem(gaps))
    mean = np.mean(gaps)
    assert one.statistic.low == pytest.approx(mean - np.hypot(mean - low, 0.002), abs=1e-9)


@pytest.mark.parametrize(
    ("third", "word"), [((0.9, 0.9, 0.9, 0.9, 0.7, 0.7), HOLDS), ((0.7, 0.7, 0.7, 0.7, 0.9, 0.9), UNDECIDED)]
)
def test_a_seed_that_points_the_other_way_leaves_it_open(third, word):
    same = (0.9, 0.9, 0.9, 0.9, 0.71, 0.69)
    (one,) = changes.last_two_layers(cosines_of(same, (0.9, 0.9, 0.9, 0.9, 0.69, 0.71), third))
    assert one.outcome == word
    assert (one.needed_seeds is None) == (word == HOLDS)
    (alone,) = changes.last_two_layers(cosines_of(same))
    assert (alone.outcome, alone.seeds) == (HOLDS, 1)


def test_that_one_of_many_parts_fails_is_widened_over_them():
    """A difference of -.11 on average: below 0 by itself, not as one of eight."""
    values = [(0.9, 0.9, 0.9, 0.59, 0.70, 0.70), (0.9, 0.9, 0.9, 0.59, 0.71, 0.69), (0.9, 0.9, 0.9, 0.59, 0.69, 0.72)]
    assert changes.last_two_layers(cosines_of(*values))[0].outcome == FAILS
    spread = [(0.9, 0.9, 0.9, 0.59, 0.66, 0.66), (0.9, 0.9, 0.9, 0.59, 0.70, 0.70), (0.9, 0.9, 0.9, 0.59, 0.74, 0.74)]
    gaps = [0.59 - seed[4] for seed in spread]
    assert stats.t.interval(0.95, 2, np.mean(gaps), stats.sem(gaps))[1] < 0
    assert changes.last_two_layers(cosines_of(*spread))[0].outcome == UNDECIDED


@pytest.mark.parametrize("other", [{"recipe": "000000"}, {"limit": 60}])
def test_another_recipe_or_other_rows_are_no_seed(other):
    same = (0.9, 0.9, 0.9, 0.9, 0.7, 0.7)
    (one,) = changes.last_two_layers(cosines_of(same, same, **other))
    assert one.seeds == 1


def test_little_change_is_asked_of_every_seed():
    little, much = (0.99,) * 6, (0.5,) * 6
    (both,) = changes.most_change_little(cosines_of(little, little, kind="head"))
    assert (both.outcome, both.said.split(". ")[0]) == (
        HOLDS,
        "6/6 of 6 heads have a cosine significantly above 0.9, and 0/0 are undecided",
    )
    lucky = [(0.99,) * 6, (0.91,) * 6]  # so far apart that another seed may lie below
    assert changes.most_change_little(cosines_of(*lucky, kind="head"))[0].outcome == UNDECIDED
    (apart,) = changes.most_change_little(cosines_of(little, much, kind="head"))
    assert (apart.outcome, apart.needed) == (UNDECIDED, None)
    (neither,) = changes.most_change_little(cosines_of(much, much, kind="head"))
    assert (neither.outcome, neither.seeds) == (FAILS, 2)


def looked_at(*gains, half=0.001, features=("noun", "object"), heads=2, **more):
    """Each seed's gain on these features."""

    def rows(gain):
        return [
            row
            for name in features
            for row in head_rows([[-gain] * heads], half, statistic="max", feature=name, checkpoint="difference")
        ] + list(more.get("rows", ()))

    options = {"tasks": ("rte",), "checkpoint": CHECKPOINT}
    return evidence(
        *(
            found(
                "features-seeds" if seed else "features",
                rows(gain),
                more.get("task", "rte"),
                options=options | {"compare": tuned(seed)},
            )
            for seed, gain in enumerate(gains)
        )
    )


@pytest.mark.parametrize(
    ("gains", "word"), [((0.1, 0.11, 0.1), HOLDS), ((-0.1, -0.11, -0.1), FAILS), ((0.1, -0.1, 0.1), UNDECIDED)]
)
def test_some_heads_gain_in_every_seed(gains, word):
    (one,) = changes.more_to_nouns(looked_at(*gains))
    assert (one.outcome, one.seeds) == (word, 3)
    assert f"noun: {'/'.join('2' if gain > 0 else '0' for gain in gains)} of 2 heads gain" in one.said


@pytest.mark.parametrize(("turned", "word"), [(0, HOLDS), (1, UNDECIDED)])
def test_heads_that_gain_in_one_seed_and_lose_in_the_next_are_luck(turned, word):
    """Of 24 heads five gain by a tenth and five lose as much: the same in every seed, or others."""
    gains = np.repeat([0.1, -0.1, 0.0], [5, 5, 14])

    def rows(seed):
        return [
            row | {"value": -value, "low": -value - 0.001, "high": -value + 0.001}
            for name in ("noun", "object")
            for row, value in zip(
                head_rows([[0.0] * 24], statistic="max", feature=name, checkpoint="difference"),
                np.roll(gains, 5 * seed * turned),
                strict=True,
            )
        ]

    some = [
        found(
            "features-seeds" if seed else "features",
            rows(seed),
            "rte",
            options={"tasks": ("rte",), "compare": tuned(seed)},
        )
        for seed in range(3)
    ]
    (one,) = changes.more_to_nouns(evidence(*some))
    assert (one.outcome, f"noun: 5/5/5 of 24 heads gain ({0 if turned else 5} in all seeds" in one.said) == (word, True)


def test_a_gain_has_rows_and_seeds_in_its_interval():
    def decision_of(*gains):
        one = looked_at(*gains, features=("negation",), task="qnli")
        return decided_over_seeds(changes.gains_by_seed(one, one.results[0], "negation"))

    gains = (0.10, 0.12, 0.14)
    decision = decision_of(*gains)
    _, high = stats.t.interval(0.95, 2, np.mean(gains), stats.sem(gains))
    assert decision.word == HOLDS
    assert decision.statistic.high - 0.12 == pytest.approx(np.hypot(high - 0.12, 0.001))
    undecided = decision_of(0.02, 0.12, 0.2)
    assert (undecided.word, undecided.times, undecided.seeds) == (UNDECIDED, None, 5)


def test_the_last_layers_row_of_cls_is_that_of_every_seed():
    def evidence_with(*separators):
        return evidence(
            *(
                found(
                    "features-seeds" if seed else "features",
                    [
                        row
                        for name, value in (("separator", weight), ("punctuation", 0.2), ("noun", 0.1))
                        for row in head_rows(
                            [[value] * 2], statistic="classifying", feature=name, checkpoint=tuned(seed)
                        )
                    ],
                    "mrpc",
                    options={"tasks": ("mrpc",), "compare": tuned(seed)},
                )
                for seed, weight in enumerate(separators)
            )
        )

    (one,) = maps.separator_or_punctuation(evidence_with(0.5, 0.52, 0.49))
    assert (one.outcome, one.seeds) == (HOLDS, 3)
    (apart,) = maps.separator_or_punctuation(evidence_with(0.5, 0.1, 0.3))
    assert apart.outcome == UNDECIDED


def test_the_verdict_says_the_seeds():
    (several,) = outcomes(claim("more-to-nouns"), looked_at(0.1, 0.2, 0.3))
    assert (several.seeds, "3 seeds of fine-tuning" in numbers_of(several)) == (3, True)
    (one,) = outcomes(claim("more-to-nouns"), looked_at(0.1))
    assert "the interval does not include the variation between seeds" in numbers_of(one)
