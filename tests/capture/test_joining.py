"""All layers of a batch handed over at once give what they give one by one."""

import numpy as np
import pytest
import torch

from core.capture import running
from core.capture.running import MapsOfBatch, run
from core.scoring.distances import HeadDistances
from core.scoring.features import FeatureAttention
from core.scoring.heads import SpecialPositions
from core.scoring.intervals import EVERY_LAYER, Means
from core.scoring.link_contrasts import cells_of
from core.scoring.statistics import HeadStatistics
from core.scoring.tokens import RelationAttention
from tests.capture.conftest import TEXT, tiny
from tests.capture.test_streaming import linked, marked


def observers_of(checkpoint, encodings):
    layers, heads, causal = checkpoint.layers, checkpoint.heads, checkpoint.causal
    numbers = list(range(len(encodings)))
    places = [SpecialPositions(0, encoding.separators, 0) for encoding in encodings]
    features = FeatureAttention(layers, heads, ["a", "b", "c"], causal=causal)
    relations = RelationAttention(layers, heads, ["a", "b"], across=[False, True], causal=causal)
    return [
        HeadStatistics(layers, heads, causal=causal).take(places, numbers),
        features.take([marked(encoding, k, causal=causal) for k, encoding in enumerate(encodings)], numbers),
        relations.take([linked(encoding, k) for k, encoding in enumerate(encodings)], numbers),
    ]


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_measures_see_the_same_layer_by_layer_and_all_layers_at_once(name, monkeypatch):
    checkpoint = tiny(name)
    encodings = [checkpoint.encode(text, None) for text in (*TEXT, "it", TEXT[0])]
    joined, single = observers_of(checkpoint, encodings), observers_of(checkpoint, encodings)
    distances = [HeadDistances(checkpoint.layers, checkpoint.heads, queries=2).take(range(9)) for _ in range(2)]
    run(checkpoint, encodings, [*joined, distances[0]])
    monkeypatch.setattr(running, "JOINED_BYTES", 0)
    run(checkpoint, encodings, [*single, distances[1]])
    assert distances[0].rows == distances[1].rows > 0
    assert np.allclose(distances[0].result(), distances[1].result(), atol=1e-6)
    for one, other in zip(joined, single, strict=True):
        assert np.allclose(one.means.sums, other.means.sums, atol=1e-6)
        assert np.array_equal(one.means.counts, other.means.counts)
        assert np.array_equal(one.means.inputs, other.means.inputs)
        assert one.means.counts.any()


class Watching:
    """Keeps the shapes that it was handed, by layer and whole."""

    def __init__(self):
        self.by_layer, self.whole = [], []

    def update(self, layer, weights, inputs):
        self.by_layer.append((layer, tuple(weights.shape)))

    def update_layers(self, weights, inputs):
        self.whole.append(tuple(weights.shape))


@pytest.mark.parametrize(("most", "layers"), [(0, 3), (3 * 2 * 4 * 25 * 4 - 1, 3), (10**9, 0), (10**9, 1)])
def test_large_maps_and_chosen_layers_come_one_by_one(most, layers, monkeypatch):
    monkeypatch.setattr(running, "JOINED_BYTES", most)
    watching = Watching()
    handed = MapsOfBatch([watching], [0, 1], layers)
    for layer in range(3):
        handed.take(layer, torch.zeros(2, 4, 5, 5))
    assert watching.by_layer == [(layer, (2, 4, 5, 5)) for layer in range(3)]
    assert watching.whole == []


def test_small_maps_of_all_layers_come_at_once_in_the_order_of_the_layers():
    watching = Watching()
    handed = MapsOfBatch([watching], [0, 1], 3)
    for layer in range(3):
        handed.take(layer, torch.zeros(2, 4, 5, 5))
    assert (watching.by_layer, watching.whole) == ([], [(2, 12, 5, 5)])


def test_maps_that_come_at_once_are_the_layers_maps_with_the_heads_of_a_cell_side_by_side():
    kept, maps = [], torch.rand(3, 2, 4, 5, 6)
    observer = Watching()
    observer.update_layers = lambda weights, inputs: kept.append(weights)
    handed = MapsOfBatch([observer], [0, 1], 3)
    for layer in range(3):
        handed.take(layer, maps[layer])
    assert torch.equal(kept[0], torch.cat(list(maps), 1))
    assert cells_of(kept[0]).ctypes.data == kept[0].data_ptr()  # read by cells without a copy


def test_means_of_every_layer_are_those_of_each():
    chance, counts = np.random.default_rng(0), np.array([[1.0, 0.0], [1.0, 1.0]])
    sums, whole, single = chance.random((2, 6, 2)), Means(3, 2, 2), Means(3, 2, 2)
    whole.update(EVERY_LAYER, sums, counts, [0, 1])
    for layer in range(3):
        single.update(layer, sums[:, 2 * layer : 2 * layer + 2], counts, [0, 1])
    for name in ("sums", "counts", "inputs"):
        assert np.array_equal(getattr(whole, name), getattr(single, name))
