"""The kept arrays say what scikit-learn's forest says, and know what they never saw."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier

from core.codebook.registry import BERT
from core.patterns.forest import (
    FARTHEST,
    SHRINKAGE,
    Growth,
    _heated,
    _nodes,
    _of_forest,
    _spread,
    fit_forest,
    forest_probabilities,
)
from core.patterns.shapes import OF_ALL, shapes, statistics
from tests.codebook.drawn_maps import synthetic_maps


@pytest.fixture(scope="module")
def labelled():
    maps, names, _ = synthetic_maps(each=24)
    return maps, np.array([BERT.names.index(name) for name in names])


@pytest.fixture(scope="module")
def forest(labelled):
    maps, numbers = labelled
    return fit_forest(maps, numbers, BERT.names, origins=[str(k % 2) for k in range(len(maps))], growth=Growth(40))


def test_walking_the_arrays_is_scikit_learns_prediction(labelled):
    maps, numbers = labelled
    measured = shapes(maps)[:, :OF_ALL].astype(np.float32)
    trees = ExtraTreesClassifier(20, min_samples_leaf=3, random_state=0).fit(measured, numbers)
    assert np.allclose(_of_forest(_nodes(trees, len(BERT)), measured), trees.predict_proba(measured), atol=1e-3)


@pytest.mark.thorough
def test_it_learns_the_definitions_and_gives_probabilities(forest):
    unseen, truth, _ = synthetic_maps(each=12, seed=1)
    found, outside = forest_probabilities(forest, unseen)
    assert np.allclose(found.sum(1), 1)
    named = [BERT.names[k] for k in found.argmax(1)]
    assert np.mean([a == b for a, b in zip(named, truth, strict=True)]) > 0.85
    assert outside.mean() < 0.2


def test_a_class_without_labels_is_never_answered():
    maps, names, _ = synthetic_maps(each=10)
    kept = [k for k, name in enumerate(names) if name in ("diagonal", "heterogeneous")]
    numbers = np.array([BERT.names.index(names[k]) for k in kept])
    forest = fit_forest(
        [maps[k] for k in kept], numbers, (*BERT.names, "own"), origins=[""] * len(kept), growth=Growth(20)
    )
    found, _ = forest_probabilities(forest, maps)
    assert set(found.argmax(1)) <= set(numbers)


def test_maps_unlike_any_in_training_are_outside(forest):
    rng = np.random.default_rng(0)
    mirrored = [np.eye(28, dtype=np.float32)[::-1].copy() for _ in range(4)]
    causal = [np.tril(rng.random((28, 28))) for _ in range(4)]
    strange = mirrored + [(one / one.sum(1, keepdims=True)).astype(np.float32) for one in causal]
    _, outside = forest_probabilities(forest, strange)
    assert outside.all()


@pytest.mark.thorough
def test_a_forest_of_before_there_were_more_statistics_still_answers(forest, labelled, monkeypatch):
    maps, numbers = labelled
    monkeypatch.setattr("core.patterns.forest._spread", lambda measured: _spread(measured[:, : OF_ALL - 8]))
    growth = Growth(10, rounds=0)
    earlier = fit_forest(maps, numbers, BERT.names, origins=[str(k % 2) for k in range(len(maps))], growth=growth)
    before = forest_probabilities(earlier, maps)
    monkeypatch.undo()
    after = forest_probabilities(earlier, maps)
    assert np.array_equal(before[0], after[0])
    assert np.array_equal(before[1], after[1])


def test_a_temperature_below_one_sharpens_and_keeps_the_order():
    raw = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]])
    sharp = _heated(raw, 0.5)
    assert (sharp.max(1) > raw.max(1)).all()
    assert (sharp.argsort(1) == raw.argsort(1)).all()
    assert np.allclose(_heated(raw, 1.0), raw, atol=0.01)


@pytest.mark.thorough
def test_the_same_labels_give_the_same_forest(labelled, forest):
    maps, numbers = labelled
    again = fit_forest(maps, numbers, BERT.names, origins=[str(k % 2) for k in range(len(maps))], growth=Growth(40))
    assert all((again[name] == value).all() for name, value in forest.items())


@pytest.mark.thorough
def test_maps_that_were_measured_before_are_not_measured_again(labelled, monkeypatch):
    maps, numbers = labelled
    few = [k for k in range(len(maps)) if k % 3 == 0]
    given = {"origins": [str(k % 2) for k in range(len(few))], "growth": Growth(10, rounds=0)}
    alone = fit_forest([maps[k] for k in few], numbers[few], BERT.names, **given)
    measured, measure = statistics(maps), statistics
    count = []
    monkeypatch.setattr("core.patterns.forest.statistics", lambda these: count.append(len(these)) or measure(these))
    again = fit_forest([maps[k] for k in few], numbers[few], BERT.names, measured=measured[few], **given)
    assert all((again[name] == value).all() for name, value in alone.items())
    assert len(few) not in count, "planted maps alone"
    found, outside = forest_probabilities(alone, maps, measured)
    assert len(maps) not in count
    expected, there = forest_probabilities(alone, maps)
    assert np.array_equal(found, expected)
    assert np.array_equal(outside, there)


def test_spread_is_numpys_correlation_shrunk_to_none():
    drawn = np.random.default_rng(2).normal(size=(400, 3)) @ np.array([[20, 5, 0], [0, 30, 8], [0, 0, 10]])
    known = _spread(drawn)
    np.testing.assert_allclose(known["centre"], drawn.mean(0))
    np.testing.assert_allclose(known["deviation"], drawn.std(0), rtol=1e-3)
    shrunk = (1 - SHRINKAGE) * np.corrcoef(drawn, rowvar=False) + SHRINKAGE * np.eye(3)
    np.testing.assert_allclose(known["precision"], np.linalg.inv(shrunk), rtol=1e-3, atol=1e-3)
    apart = drawn - drawn.mean(0)
    distances = [np.sqrt(row / drawn.std(0) @ np.linalg.inv(shrunk) @ (row / drawn.std(0))) for row in apart]
    assert known["farthest"] == pytest.approx(np.quantile(distances, FARTHEST), rel=1e-2)
