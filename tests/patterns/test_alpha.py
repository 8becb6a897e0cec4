import math

import numpy as np
import pandas as pd
import pytest

from core.patterns.agreement import _alphas, alpha_with_interval, disputed, opinions, raters_of


def frame(rows):
    """Rows (map, annotator, class, input) as the store gives them."""
    labels = pd.DataFrame(rows, columns=["map_id", "annotator", "class", "row_id"])
    return labels.assign(**{"pass": 1, "queue_order": "random", "task": "mrpc", "split": "dev"})


def crowd(seed=0, maps=60, good=0.8, heads=1):
    """Two to four of five people a map, and one map in ten with one person."""
    rng, rows = np.random.default_rng(seed), []
    for k in range(maps):
        true = rng.integers(0, 3)
        for who in rng.permutation(5)[: 1 if k % 10 == 0 else rng.integers(2, 5)]:
            rows.append(
                (f"m{k:02d}", f"p{who}", "xyz"[true if rng.random() < good else rng.integers(0, 3)], k // heads)
            )
    return frame(rows)


def alpha(labels):
    """Krippendorff's alpha (2011, nominal) from how many gave each map each class."""
    both = opinions(labels)
    shared = both[both.notna().sum(axis=1) > 1].to_numpy(object)
    names = pd.unique(shared[pd.notna(shared)])
    counts = np.stack([(shared == name).sum(1) for name in names], 1)  # [map, class]
    raters, totals = counts.sum(1), counts.sum(0)
    differing = ((raters**2 - (counts**2).sum(1)) / (raters - 1)).sum()  # coincidences of two unlike values
    return float(1 - (totals.sum() - 1) * differing / (totals.sum() ** 2 - (totals**2).sum()))


@pytest.mark.thorough
def test_alpha_is_nltks_and_its_interval_holds_it():
    for seed in range(3):
        agreed = alpha_with_interval(crowd(seed))
        assert agreed.alpha == pytest.approx(alpha(crowd(seed)))
        assert agreed.low < agreed.alpha < agreed.high
        assert (agreed.maps, agreed.raters) == (54, 5)


def test_a_resample_is_nltks_alpha_of_maps_drawn_again():
    rng = np.random.default_rng(1)
    labels = crowd(3, maps=20)
    names = labels["map_id"].unique()
    table = labels.pivot_table(index="map_id", columns="class", values="row_id", aggfunc="size", fill_value=0)
    table = table[table.sum(axis=1) > 1]
    for _ in range(3):
        weights = dict.fromkeys(names, 0)
        parts = []
        for k, name in enumerate(rng.choice(table.index, len(table))):
            weights[name] += 1
            parts.append(labels[labels["map_id"] == name].assign(map_id=f"{name}/{k}"))
        drawn = np.array([[float(weights[name]) for name in table.index]])
        assert _alphas(table.to_numpy(float), drawn)[0] == pytest.approx(alpha(pd.concat(parts)))


def test_maps_that_copy_each_other_make_the_interval_over_inputs_wider():
    """Nine copies of each of 30 maps, the copies of one input: over maps the interval seems three times too sure."""
    single = crowd(3, maps=30)
    copies = pd.concat([single.assign(map_id=single["map_id"] + f"/{k}") for k in range(9)])
    over_maps, over_inputs = (alpha_with_interval(copies, by_input=by_input) for by_input in (False, True))
    assert over_maps.alpha == over_inputs.alpha
    ratio = (over_inputs.high - over_inputs.low) / (over_maps.high - over_maps.low)
    assert ratio == pytest.approx(3, rel=0.2)


def test_chance_is_near_0_and_full_agreement_is_1():
    assert abs(alpha_with_interval(crowd(1, maps=400, good=0.0)).alpha) < 0.1
    full = alpha_with_interval(crowd(1, good=1.0))
    assert (full.alpha, full.low, full.high) == (1.0, 1.0, 1.0)


def test_undefined_is_nan():
    alone = alpha_with_interval(frame([("m1", "a", "x", 1), ("m2", "b", "y", 2)]))
    assert (alone.maps, alone.raters) == (0, 0)
    assert math.isnan(alone.alpha)
    same = alpha_with_interval(frame([(m, who, "x", 1) for m in ("m1", "m2") for who in "ab"]))
    assert same.maps == 2
    assert math.isnan(same.alpha)
    assert math.isnan(same.low)
    single = alpha_with_interval(frame([("m1", "a", "x", 1), ("m1", "b", "y", 1)]))
    assert single.alpha == pytest.approx(0.0)
    assert math.isnan(single.high)


def test_raters_share_maps_and_dispute_as_counted_by_hand():
    rows = [("m1", "ada", 1, "x"), ("m1", "bob", 1, "y"), ("m2", "ada", 1, "x"), ("m2", "bob", 1, "x"),
            ("m2", "ada", 2, "x"), ("m3", "eve", 1, "y"), ("m1", "bob", 1, "x")]  # fmt: skip
    labels = pd.DataFrame(rows, columns=["map_id", "annotator", "pass", "class"]).assign(queue_order="random")
    table = opinions(labels)
    assert list(table.columns) == ["ada", "ada, pass 2", "bob", "eve"]
    assert table.loc["m1", "bob"] == "x", "the newest label of a rater counts"
    assert table.notna().sum(axis=1).to_dict() == {"m1": 2, "m2": 3, "m3": 1}
    assert list(opinions(labels, ["bob"]).columns) == ["bob"]
    assert raters_of(labels)[:2] == ["ada", "bob"]
    assert disputed(labels) == []
    assert disputed(labels.iloc[:-1]) == ["m1"]
