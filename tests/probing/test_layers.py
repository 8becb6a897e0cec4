"""Layer probes against scikit-learn, on vectors that say which layer knows, and with labels drawn per word."""

from dataclasses import replace

import numpy as np
import pytest

from core.probing import layers
from core.probing.layers import HIDDEN, LINEAR, Examples


def examples(vectors, labels, *, groups=None, types=None):
    rows = np.arange(len(labels))
    groups = rows if groups is None else groups
    return Examples(vectors.astype(np.float16), rows, np.asarray(labels), groups, types or tuple(map(str, rows)))


@pytest.mark.thorough
@pytest.mark.parametrize("kind", [LINEAR, HIDDEN])
def test_one_hot_layer_indices_are_recovered(kind):
    """Row k is the one-hot vector of its label, k modulo 4, in layer 2 alone; other layers hold noise."""
    rng = np.random.default_rng(0)
    labels = np.arange(400) % 4
    vectors = rng.normal(size=(400, 4, 6))
    vectors[:, 2] = np.eye(4, 6)[labels]
    train = examples(vectors[:300], labels[:300])
    test = examples(vectors[300:], labels[300:])
    right = (layers.fit(train, 4, kind).predict(test) == test.labels).mean(1)
    assert right[2] == 1.0
    assert (np.delete(right, 2) < 0.5).all()


@pytest.mark.thorough
def test_mixing_weights_find_the_layer_that_knows():
    rng = np.random.default_rng(1)
    labels = rng.integers(3, size=300)
    vectors = rng.normal(size=(300, 5, 6))
    vectors[:, 3, :3] += 6 * np.eye(3)[labels]
    train = examples(vectors, labels, groups=np.arange(300) // 5)
    weights = layers.mixing_refits(train, 3, refits=2)
    assert weights.shape == (3, 5)
    np.testing.assert_allclose(weights.sum(1), 1)
    assert (weights.argmax(1) == 3).all()
    assert (weights[:, 3] > 0.6).all()


def test_the_linear_probe_is_scikit_learns_logistic_regression():
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(2)
    rows, classes, size = 2400, 5, 20
    centres = rng.normal(size=(classes, size))
    labels = rng.integers(classes, size=rows)
    vectors = np.stack([share * centres[labels] + rng.normal(size=(rows, size)) for share in (0.2, 0.5, 0.9)], 1)
    vectors = vectors * rng.uniform(0.1, 20, size=(1, 3, size)) + rng.normal(size=(1, 3, size))
    train, test = examples(vectors[:1200], labels[:1200]), examples(vectors[1200:], labels[1200:])
    right = (layers.fit(train, classes, LINEAR).predict(test) == test.labels).mean(1)
    for layer in range(3):
        one, other = (np.asarray(part.vectors[:, layer], dtype=float) for part in (train, test))
        scaler = StandardScaler().fit(one)
        model = LogisticRegression(max_iter=2000).fit(scaler.transform(one), train.labels)
        assert right[layer] == pytest.approx(model.score(scaler.transform(other), test.labels), abs=0.005)


def test_a_class_that_train_lacks_is_never_right_and_control_labels_belong_to_words():
    rng = np.random.default_rng(3)
    types = tuple(f"w{k % 7}" for k in range(90))
    train = examples(rng.normal(size=(90, 2, 4)), rng.integers(3, size=90), types=types)
    test = replace(train, labels=np.full(90, -1))
    assert not (layers.fit(train, 3, LINEAR).predict(test) == test.labels).any()
    first, second = layers.control_labels(train, [test], seed=4)
    assert len({(one, int(label)) for one, label in zip(types, first, strict=True)}) == 7
    assert (first == second).all()
    alone = layers.word_alone(replace(train, labels=first), test)
    assert (alone == first).all()
