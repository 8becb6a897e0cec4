import numpy as np
import pandas as pd
import pytest

from core.errors import InputError
from core.labelling.adjudicating import Suspect, label_errors

NAMES = ["x", "y", "z"]


def by_hand():
    given = pd.Series(list("xxyyz"), index=["m1", "m2", "m3", "m4", "m5"])
    table = [[0.9, 0.1, 0.0], [0.3, 0.7, 0.0], [0.2, 0.8, 0.0], [0.6, 0.4, 0.0], [0.3, 0.3, 0.4]]
    return given, pd.DataFrame(table, index=given.index, columns=NAMES)


def test_suspects_by_hand():
    """Thresholds: x (.9 + .3) / 2 = .6, y (.8 + .4) / 2 = .6, z .4. m2's y and m4's x pass theirs; m5 has none."""
    m2, m4 = label_errors(*by_hand())
    assert m2 == Suspect("m2", "x", "y", m2.margin)
    assert m4 == Suspect("m4", "y", "x", m4.margin)
    assert (m2.margin, m4.margin) == pytest.approx((0.4, 0.2))


def test_a_class_below_its_threshold_is_not_suggested():
    given, p = by_hand()
    p.loc["m4"] = [0.55, 0.45, 0.0]  # x's threshold stays .6
    assert [suspect.map_id for suspect in label_errors(given, p)] == ["m2"]


def test_a_class_nobody_gave_is_not_suggested():
    given = pd.Series(["x", "y"], index=["m1", "m2"])
    p = pd.DataFrame([[0.1, 0.0, 0.9], [0.0, 1.0, 0.0]], index=given.index, columns=NAMES)
    assert label_errors(given, p) == []


def oracle(given, p):
    """The rule in loops."""
    threshold = {c: np.mean([p.loc[m, c] for m in given.index if given[m] == c]) for c in NAMES}
    suspects = {}
    for m in given.index:
        better = [c for c in NAMES if p.loc[m, c] >= threshold[c] and p.loc[m, c] > p.loc[m, given[m]]]
        if better:
            suspects[m] = max(better, key=lambda c: p.loc[m, c])
    return suspects


def planted(seed):
    """300 maps, one label in ten moved on purpose; probabilities of a classifier that is right nine times of ten."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, 3, 300)
    moved = rng.random(300) < 0.1
    seen = np.where(rng.random(300) < 0.9, true, rng.integers(0, 3, 300))
    table = rng.dirichlet(np.ones(3), 300) * 0.5 + np.eye(3)[seen] * 0.5
    index = [f"m{k:03d}" for k in range(300)]
    given = pd.Series(np.array(NAMES)[np.where(moved, (true + 1) % 3, true)], index=index)
    return given, pd.DataFrame(table, index=index, columns=NAMES), moved


def test_the_rule_and_how_many_planted_errors_it_finds():
    given, p, moved = planted(0)
    suspects = label_errors(given, p.sample(frac=1, random_state=0))  # rows in another order
    assert {suspect.map_id: suspect.suggested for suspect in suspects} == oracle(given, p)
    margins = [suspect.margin for suspect in suspects]
    assert margins == sorted(margins, reverse=True)
    hits = given.index.get_indexer([suspect.map_id for suspect in suspects])
    assert moved[hits].mean() > 3 * moved.mean()  # precision far above the base rate
    assert moved[hits].sum() > 0.5 * moved.sum()


def test_bad_input_says_what_to_do():
    given, p = by_hand()
    with pytest.raises(InputError, match="1 of 5 maps have none"):
        label_errors(given, p.drop("m1"))
    with pytest.raises(InputError, match="z has none"):
        label_errors(given, p[["x", "y"]])
    with pytest.raises(InputError, match="only one label; 'm1' has several"):
        label_errors(pd.concat([given, given[["m1"]]]), p)
    with pytest.raises(InputError, match="sum to 1"):
        label_errors(given, p * 2)


def test_probabilities_may_miss_one_by_what_rounding_takes():
    given, p = by_hand()
    p.loc["m5"] = [0.3, 0.3, 0.4005]
    assert label_errors(given, p)
    p.loc["m5"] = [0.3, 0.3, 0.402]
    with pytest.raises(InputError, match="sum to 1"):
        label_errors(given, p)
