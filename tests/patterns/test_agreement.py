import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, t
from sklearn.metrics import cohen_kappa_score

from core.errors import InputError
from core.patterns.agreement import (
    RESAMPLES,
    agreement,
    alpha_with_interval,
    by_way,
    class_agreements,
    confusion,
    consensus,
    disputed,
    others,
    pair_agreements,
    rater_pairs,
    raters_of,
    tied,
)


def frame(rows):
    """Rows (map, annotator, pass, class[, order]) as the store gives them."""
    return pd.DataFrame(
        [
            {
                "map_id": one[0],
                "annotator": one[1],
                "pass": one[2],
                "class": one[3],
                "queue_order": one[4] if len(one) > 4 else "random",
                "ordinal": k,
                "task": "mrpc",
                "split": "dev",
                "row_id": one[0],
            }
            for k, one in enumerate(rows)
        ]
    )


TWO = [("m1", "a", "x", "x"), ("m2", "a", "x", "y"), ("m3", "a", "y", "y"), ("m4", "a", "y", "y")]


def two_raters():
    return frame(
        [(name, "ada", 1, first) for name, _, first, _ in TWO]
        + [(name, "bob", 1, second) for name, _, _, second in TWO]
    )


def test_kappa_by_hand():
    found = agreement(two_raters(), "ada", "bob")
    chance = 0.5 * 0.25 + 0.5 * 0.75
    assert found.kappa == pytest.approx((0.75 - chance) / (1 - chance))
    assert (found.maps, found.share) == (4, 0.75)
    assert found.low <= found.kappa <= found.high


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_kappas_interval_is_of_whole_inputs_drawn_again(seed):
    """Against scikit-learn's kappa of the labels of the same draws, one draw after the other; one input has 4 maps."""
    rng = np.random.default_rng(seed)
    given = [("xyz"[rng.integers(3)], "xyz"[rng.integers(3)] if rng.random() < 0.4 else None) for _ in range(60)]
    rows = [
        (f"m{k:02}", who, 1, pair[place] or pair[0]) for place, who in enumerate("ab") for k, pair in enumerate(given)
    ]
    labels = frame(rows).assign(row_id=lambda table: table["map_id"].str[1:].astype(int) // 4)
    draws, kappas = np.random.default_rng(seed), []
    inputs = sorted({f"mrpc/dev/{k // 4}" for k in range(60)})
    for _ in range(RESAMPLES):
        drawn = [inputs[k] for k in draws.integers(0, len(inputs), len(inputs))]
        maps = [4 * int(name.rpartition("/")[2]) + k for name in drawn for k in range(4)]
        kappas.append(cohen_kappa_score([given[k][0] for k in maps], [given[k][1] or given[k][0] for k in maps]))
    found = agreement(labels, "a", "b", seed=seed)
    level = norm.cdf(t.ppf(0.025, len(inputs) - 1) * np.sqrt(len(inputs) / (len(inputs) - 1)))  # expanded percentile
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(kappas, [level, 1 - level])))


def test_the_two_people_with_most_maps_in_common_come_first():
    labels = frame(
        [
            ("1", "ada", 1, "x"),
            ("1", "ada", 2, "x"),
            ("2", "bob", 1, "x"),
            ("3", "bob", 1, "y"),
            ("2", "eve", 1, "x"),
            ("3", "eve", 1, "y"),
            ("1", "eve", 1, "y"),
        ]
    )
    assert raters_of(labels)[:2] == ["bob", "eve"]
    assert set(raters_of(labels)) == {"ada", "ada, pass 2", "bob", "eve"}
    apart = frame([("1", "ada", 1, "x"), ("2", "bob", 1, "x")])
    assert raters_of(apart) == ["ada", "bob"]


def test_two_raters_who_only_used_one_class_have_no_kappa():
    found = agreement(frame([(f"m{k}", who, 1, "x") for who in "ab" for k in range(3)]), "a", "b")
    assert np.isnan([found.kappa, found.low, found.high]).all()


def test_pairs_of_classes_name_what_parts_the_raters_most():
    given = [("x", "x"), ("x", "y"), ("y", "x"), ("y", "y"), ("z", "z"), ("x", "z")]
    rows = [(f"m{k}", who, 1, pair[place]) for place, who in enumerate(("ada", "bob")) for k, pair in enumerate(given)]
    first, second, third = pair_agreements(frame(rows), "ada", "bob", ("x", "y", "z"))
    assert (first.classes, first.maps, first.differ) == (("x", "y"), 4, 2)
    assert first.kappa == pytest.approx(0.0)  # half of four equal, half expected
    assert (second.classes, second.maps, second.differ) == (("x", "z"), 3, 1)
    assert (third.classes, third.maps, third.differ) == (("y", "z"), 2, 0)


def test_alpha_by_hand():
    """alpha = 1 - (n-1) sum o_ck / sum n_c n_k, over the coincidences of values (Krippendorff 2011)."""
    coincidences = np.array([[2, 1], [1, 4]])  # m1 gives xx twice, m2 xy and yx, m3 and m4 yy twice each
    totals = coincidences.sum(1)
    n = totals.sum()
    expected = 1 - (n - 1) * 2 * coincidences[0, 1] / (2 * totals[0] * totals[1])
    assert alpha_with_interval(two_raters()).alpha == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(5))
def test_alpha_with_maps_that_not_everybody_labelled(seed):
    """Against its definition over pairs of opinions: observed disagreement within maps over that among all."""
    rng = np.random.default_rng(seed)
    rows = [(f"m{k}", who, 1, "xyz"[rng.integers(3)]) for k in range(12) for who in "abc" if rng.random() < 0.7]
    by_map = pd.DataFrame(rows).groupby(0)[3].apply(list)
    pairable = [given for given in by_map if len(given) > 1]
    values = [one for given in pairable for one in given]
    observed = sum(
        sum(a != b for i, a in enumerate(given) for j, b in enumerate(given) if i != j) / (len(given) - 1)
        for given in pairable
    ) / len(values)
    pairs = [a != b for i, a in enumerate(values) for j, b in enumerate(values) if i != j]
    assert alpha_with_interval(frame(rows)).alpha == pytest.approx(1 - observed / np.mean(pairs))


def test_alpha_needs_two_classes_among_shared_maps():
    assert np.isnan(alpha_with_interval(frame([("m1", "a", 1, "x"), ("m1", "b", 1, "x"), ("m2", "a", 1, "y")])).alpha)


def test_a_second_pass_counts_as_a_rater():
    labels = frame([("m1", "ada", 1, "x"), ("m1", "ada", 2, "x"), ("m2", "ada", 1, "y"), ("m2", "ada", 2, "x")])
    assert agreement(labels, "ada", "ada, pass 2").share == 0.5


def test_a_rater_is_held_against_other_people_first():
    raters = ["ada", "ada, pass 2", "bob", "bob, pass 2", "cyd"]
    assert others(raters, "ada") == ["bob", "cyd", "bob, pass 2", "ada, pass 2"]
    assert others(raters, "bob, pass 2")[0] == "ada"


def test_confusion_counts_common_maps():
    found = confusion(two_raters(), "ada", "bob", ["x", "y"]).set_index(["first", "second"])["n"]
    assert found.to_dict() == {("x", "x"): 1, ("x", "y"): 1, ("y", "x"): 0, ("y", "y"): 2}


def test_the_most_frequent_class_wins_a_tie_is_left_out_and_an_adjudication_beats_both():
    labels = frame(
        [
            ("m1", "a", 1, "x"),
            ("m1", "b", 1, "x"),
            ("m1", "c", 1, "y"),
            ("m2", "a", 1, "x"),
            ("m2", "b", 1, "y"),
            ("m2", "a", 2, "x"),
            ("m3", "a", 1, "x"),
            ("m3", "b", 1, "x"),
            ("m3", "c", 1, "y", "adjudication"),
        ]
    )
    assert set(consensus(labels).columns) == set(labels.columns)
    assert consensus(labels).set_index("map_id")["class"].to_dict() == {"m1": "x", "m3": "y"}
    assert tied(labels) == ["m2"]
    assert consensus(labels, with_ties=True)["class"].tolist() == ["x", "x", "y"]
    assert disputed(labels) == ["m1", "m2"]


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(5))
def test_the_order_in_which_labels_came_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    rows = [(f"m{k}", who, 1, "xyz"[rng.integers(3)]) for k in range(20) for who in "abcd" if rng.random() < 0.6]
    there, back = (consensus(frame(order)).drop(columns="ordinal") for order in (rows, rows[::-1]))
    pd.testing.assert_frame_equal(there, back)
    assert tied(frame(rows)) == tied(frame(rows[::-1]))
    by_map = {name: sorted(row[3] for row in rows if row[0] == name) for name in {row[0] for row in rows}}
    modes = {name: sorted(pd.Series(given).mode()) for name, given in by_map.items()}
    assert dict(zip(there["map_id"], there["class"], strict=True)) == {
        name: most[0] for name, most in modes.items() if len(most) == 1
    }


def test_agreement_of_people_who_share_no_map_or_do_not_exist():
    labels = frame([("m1", "a", 1, "x"), ("m2", "b", 1, "x")])
    with pytest.raises(InputError, match="in common"):
        agreement(labels, "a", "b")
    with pytest.raises(InputError, match="a, b"):
        agreement(labels, "a", "nobody")
    assert np.isnan(alpha_with_interval(labels).alpha)


def test_one_class_everywhere_has_no_kappa():
    labels = frame([("m1", "a", 1, "x"), ("m1", "b", 1, "x")])
    assert np.isnan(agreement(labels, "a", "b").kappa)
    assert np.isnan(alpha_with_interval(labels).alpha)


def test_kappa_of_each_class_against_the_rest_and_of_every_two_people():
    rows = [
        ("m1", "x", "x", "x"),
        ("m2", "x", "y", "x"),
        ("m3", "y", "y", "x"),
        ("m4", "y", "y", "y"),
        ("m5", "z", "z", "y"),
    ]
    given = pd.DataFrame(
        [(m, who, cls) for m, *classes in rows for who, cls in zip(("ada", "bob", "cyd"), classes, strict=True)],
        columns=["map_id", "annotator", "class"],
    ).assign(**{"pass": 1, "queue_order": "random"})
    by_class = {one.name: one for one in class_agreements(given, "ada", "bob", ("x", "y", "z"))}
    assert (by_class["x"].first, by_class["x"].second, by_class["x"].both) == (2, 1, 1)
    assert by_class["x"].kappa == pytest.approx((0.8 - (2 * 1 + 3 * 4) / 25) / (1 - (2 * 1 + 3 * 4) / 25))
    assert by_class["z"].kappa == 1
    pairs = {(one.first, one.second): one for one in rater_pairs(given)}
    assert set(pairs) == {("ada", "bob"), ("ada", "cyd"), ("bob", "cyd")}
    both = agreement(given.assign(task="t", split="d", row_id=given["map_id"]), "ada", "cyd")
    assert (pairs["ada", "cyd"].share, pairs["ada", "cyd"].kappa) == pytest.approx((both.share, both.kappa))
    assert rater_pairs(given, fewest=6) == []


def test_pairs_of_raters_without_a_kappa_come_last():
    answers = {"ab": ("xxyyx", "xxyyy"), "ac": ("xxxxx", "xxxxx"), "bc": ("xyxyx", "yxyxy")}
    rows = [
        (f"{pair}{k}", who, 1, name)
        for pair, both in answers.items() for who, given in zip(pair, both, strict=True) for k, name in enumerate(given)
    ]  # fmt: skip
    assert [pair.first + pair.second for pair in rater_pairs(frame(rows))] == ["bc", "ab", "ac"]


def test_speed_and_agreement_by_way_as_pairs_are_counted_one_by_one():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        [
            {"map_id": f"m{k}", "annotator": who, "class": "abc"[rng.integers(3)],
             "way": ["together", "sheet", None][rng.integers(3)], "seconds": float(rng.uniform(0, 90))}
            for k in range(12) for who in "xyz"[: 1 + k % 3]
        ]
    )  # fmt: skip
    found = by_way(rows).set_index("way")
    for way, group in rows.groupby(np.where(rows["way"] == "together", "together", "one by one")):
        same = [
            one["class"] == other["class"]
            for _, one in group.iterrows()
            for _, other in rows.iterrows()
            if one["map_id"] == other["map_id"] and one["annotator"] != other["annotator"]
        ]
        assert found.loc[way, "pairs"] == len(same)
        assert found.loc[way, "same"] == pytest.approx(np.mean(same))
        assert found.loc[way, "labels"] == len(group)
        assert found.loc[way, "median_seconds"] == pytest.approx(np.median(group["seconds"]))
        assert found.loc[way, "per_hour"] == pytest.approx(3600 / np.mean([min(60, s) for s in group["seconds"]]))
