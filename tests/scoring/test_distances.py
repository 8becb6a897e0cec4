"""Distances between heads against a loop and scipy; the picture keeps distances; planted heads get their name."""

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon

from core.scoring.definitions import HEAD_KINDS, kind_of
from core.scoring.distances import SMOOTHING, HeadDistances, js_sums, picture
from tests.scoring.maps import random_maps


def test_distances_are_jensen_shannon_divergences_of_smoothed_rows():
    rows = random_maps(3, 4, 6)
    found = js_sums(rows)
    smooth = (1 - SMOOTHING) * rows + SMOOTHING / 6
    for one in range(3):
        for other in range(3):
            each = [jensenshannon(smooth[one, k], smooth[other, k]) ** 2 for k in range(4)]
            assert found[one, other].item() == pytest.approx(sum(each), abs=1e-6)


def test_all_heads_of_all_layers_are_compared_and_batches_do_not_matter():
    maps = random_maps(2, 5, 3, 4, 4)  # [layer, input, head, query, key]
    before, whole = maps.clone(), HeadDistances(2, 3)
    whole.take(range(5))
    for layer in range(2):
        whole.update(layer, maps[layer], list(range(5)))
    torch.testing.assert_close(maps, before, rtol=0, atol=0)
    rows = maps.permute(0, 2, 1, 3, 4).reshape(6, 20, 4)
    np.testing.assert_allclose(whole.result(), js_sums(rows).numpy() / 20, atol=1e-9)
    parts = [HeadDistances(2, 3).take(range(5)) for _ in range(2)]
    for part, chosen in zip(parts, ([3, 0], [1, 2, 4]), strict=True):
        for layer in range(2):
            part.update(layer, maps[layer][chosen], chosen)
    np.testing.assert_allclose(whole.result(), sum(part.sums for part in parts) / 20, atol=1e-9)
    assert [part.rows for part in parts] == [8, 12]


def test_drawn_rows_depend_on_the_input_alone():
    maps = random_maps(1, 4, 3, 9, 9)
    whole, alone = HeadDistances(1, 3, queries=3), HeadDistances(1, 3, queries=3)
    whole.take(range(4)).update(0, maps[0], [0, 1, 2, 3])
    for k in range(4):
        alone.take([k]).update(0, maps[0, [k]], [0])
    np.testing.assert_allclose(whole.result(), alone.result(), atol=1e-12)
    assert whole.rows == 12


def test_the_picture_keeps_distances_that_fit_in_the_plane():
    points = np.random.default_rng(0).normal(size=(7, 2))
    gaps = np.sqrt(((points[:, None] - points) ** 2).sum(-1))
    places, stress = picture(gaps)
    assert stress < 0.01
    np.testing.assert_allclose(np.sqrt(((places[:, None] - places) ** 2).sum(-1)), gaps, atol=0.05)


def test_one_token_leaves_nothing_between_heads():
    observer = HeadDistances(1, 2).take([0])
    observer.update(0, torch.ones(1, 2, 1, 1), [0])
    np.testing.assert_allclose(observer.result(), 0, atol=1e-7)


def test_equal_heads_are_one_point():
    places, stress = picture(np.zeros((3, 3)))
    assert stress == 0
    assert np.isfinite(places).all()


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ({"previous": 0.9, "next": 0.0, "separator": 0.0, "first": 0.1, "normalised entropy": 0.1}, "previous"),
        ({"previous": 0.1, "next": 0.7, "separator": 0.0, "first": 0.1, "normalised entropy": 0.1}, "next"),
        ({"previous": 0.1, "next": 0.1, "separator": 0.8, "first": 0.1, "normalised entropy": 0.1}, "separator"),
        ({"previous": 0.1, "next": None, "separator": None, "first": 0.9, "normalised entropy": 0.1}, "first"),
        ({"previous": 0.1, "next": 0.1, "separator": 0.1, "first": 0.1, "normalised entropy": 0.97}, "broad"),
        ({"previous": 0.1, "next": 0.1, "separator": 0.1, "first": 0.1, "normalised entropy": 0.5}, "other"),
    ],
)
def test_heads_are_named_by_what_they_mostly_do(row, kind):
    assert kind_of(row) == kind
    assert kind in HEAD_KINDS


def test_the_stress_of_a_picture_that_cannot_be_exact_is_kruskals():
    distances = 1.0 - np.eye(6)  # six points at one distance from each other have no place in the plane
    places, stress = picture(distances)
    off = [(a, b) for a in range(6) for b in range(6) if a != b]
    wrong = sum((np.hypot(*(places[a] - places[b])) - 1.0) ** 2 for a, b in off)
    assert stress == pytest.approx(np.sqrt(wrong / len(off)))
    assert 0.1 < stress < 0.5


def test_nothing_is_known_before_the_first_row():
    assert np.isnan(HeadDistances(1, 2).result()).all()


def test_drawn_rows_are_different_ones_and_all_come_equally_often():
    observer = HeadDistances(1, 3, queries=4, seed=7)
    draws = [observer._drawn(number, 6) for number in range(300)]
    assert all(len(set(rows)) == 4 and rows == sorted(rows) for rows in draws)
    counts = np.bincount(np.concatenate(draws), minlength=6)
    assert (abs(counts - 200) < 45).all()
    assert observer._drawn(0, 4) == [0, 1, 2, 3]
    assert HeadDistances(1, 3, queries=4)._drawn(5, 30) == HeadDistances(1, 3, queries=4, seed=0)._drawn(5, 30)
    assert HeadDistances(1, 3, queries=4, seed=1)._drawn(5, 30) != HeadDistances(1, 3, queries=4, seed=2)._drawn(5, 30)


@pytest.mark.thorough
def test_a_picture_is_the_same_for_a_seed_and_its_stress_knows_no_unit():
    distances = 1.0 - np.eye(6)
    places, stress = picture(distances)
    np.testing.assert_array_equal(places, picture(distances, seed=0)[0])
    np.testing.assert_array_equal(places, picture(distances, seed=2**32)[0])  # seeds of any size
    assert np.abs(places - picture(distances, seed=1)[0]).max() > 1e-3
    assert np.abs(picture(distances, seed=3)[0] - picture(distances, seed=1)[0]).max() > 1e-3
    assert picture(5 * distances)[1] == pytest.approx(stress, rel=1e-3)
    assert picture(np.zeros((3, 3)))[0].shape == places[:3].shape
