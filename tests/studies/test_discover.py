"""Discovered patterns of a checkpoint: its clusters, their classes and exemplars, and what is refused."""

import numpy as np
import pytest

from core.errors import InputError
from core.patterns import discovery
from core.studies.patterns import discover
from core.studies.patterns.records import ClusterExemplar, DiscoveredPatterns, PatternCluster
from tests.studies.through_json import rows_of

STUDY = discover.STUDY


@pytest.fixture(scope="module")
def measured():
    """The rows of maps drawn from a task, and of the bundled labelled maps of a checkpoint."""
    with pytest.MonkeyPatch.context() as patched:
        for name, value in (("SEARCHED", 2), ("HALVES", 4), ("OF_SAMPLE", 2), ("SAMPLES", 1)):
            patched.setattr(discovery, name, value)
        patched.setattr(discover, "BOOTSTRAPS", 20)
        drawn = rows_of("discover", {"task": "sst2", "maps": 120, "limit": 12})
        return drawn, rows_of("discover", {"checkpoints": ["atlas-encoder"], "labelled": True})


@pytest.mark.thorough
@pytest.mark.parametrize("number", [0, 1])
def test_clusters_divide_the_maps_and_count_their_classes(measured, number):
    (found,), clusters = DiscoveredPatterns.among(measured[number]), PatternCluster.among(measured[number])
    assert (found.by, found.class_set) == (("classifier", "annotators")[number], "bert")
    assert [one.cluster for one in clusters] == list(range(found.clusters + 1))
    assert sum(one.maps for one in clusters) == found.maps == (120, 288)[number]
    assert sum(sum(one.counts.values()) for one in clusters) == found.classified
    assert found.clustered == pytest.approx(1 - clusters[0].maps / found.maps)
    assert found.low <= found.clustered <= found.high
    for one in clusters[1:]:
        total = sum(one.counts.values())
        assert one.maps >= found.smallest
        assert one.share == pytest.approx(one.counts[one.name] / total) == max(one.counts.values()) / total
        assert not (one.cuts_across and one.high > 0.85)


@pytest.mark.thorough
def test_exemplars_are_maps_of_their_cluster(measured):
    for rows in measured:
        exemplars = ClusterExemplar.among(rows)
        clusters = {one.cluster: one for one in PatternCluster.among(rows)}
        assert len(exemplars) == 3 * (len(clusters) - 1) > 0
        for one in exemplars:
            assert one.weights.shape == (one.side, one.side)
            assert one.side <= discover.SIDE
            assert one.name is None or one.name in clusters[one.cluster].counts


def test_an_exemplar_is_averaged_to_few_rows_and_keeps_its_total():
    weights = np.random.default_rng(0).dirichlet(np.ones(64), 64)
    maps = discover._Maps([weights], [discover.Head(1, 2)], ["7"], np.array([""]), "bert", "annotators")
    stored = discover._exemplar("a", 1, maps, 0)
    by_hand = weights.reshape(32, 2, 32, 2).mean((1, 3))
    assert (stored.side, stored.layer, stored.head, stored.row_id, stored.name) == (32, 1, 2, "7", None)
    assert stored.weights == pytest.approx(by_hand, abs=0.002)


def test_a_cluster_mixes_classes_if_its_largest_share_is_significantly_below_80_percent():
    def cut(largest, other, clusters=1):
        return discover._cluster("a", 1, np.array(["x"] * largest + ["y"] * other), clusters).cuts_across

    assert cut(30, 20)
    assert not cut(39, 11)  # 78 %
    assert not cut(6, 4)
    assert cut(34, 16)  # p = .03
    assert not cut(34, 16, clusters=2)
    assert not discover._cluster("a", 0, np.array(["x", "y"] * 50), 1).cuts_across


@pytest.mark.thorough
def test_the_sentence_says_what_was_claimed(measured):
    rows = [dict(row) for row in measured[1]]
    rows[0] |= {"are_patterns": True}
    assert "form" in STUDY.headline(rows).sentence
    assert "stable clusters" in STUDY.headline(rows).sentence
    rows[0] |= {"are_patterns": False, "clustered": 0.4}
    assert "only 40% are in a cluster" in STUDY.headline(rows).sentence
    rows[0] |= {"clustered": 0.7}
    assert "not stable" in STUDY.headline(rows).sentence
    assert STUDY.shown(rows)[0][0]["maps"] == 288


def test_unlabelled_checkpoints_and_too_few_maps_are_refused():
    with pytest.raises(InputError, match=r"BERT-base.*got my-model\. Choose one"):
        STUDY.units(STUDY.read({"checkpoints": ["my-model"], "labelled": True}))
    with pytest.raises(InputError, match="maps of the study discover must be at least 60"):
        rows_of("discover", {"maps": 30, "limit": 6})
    assert STUDY.checkpoints(STUDY.read({"labelled": True})) == []


def test_intervals_draw_whole_inputs_and_are_drawn_again_with_the_same_seed(monkeypatch):
    """Of 40 inputs of five maps each, the maps of the first ten are in no cluster."""
    monkeypatch.setattr(discover, "BOOTSTRAPS", 400)
    inputs = np.repeat(np.arange(40), 5)[::-1]
    labels = np.where(inputs < 10, -1, inputs % 2)
    seen = []

    def clustered(some):
        seen.append(np.bincount(inputs[some], minlength=40))
        return float((labels[some] >= 0).mean())

    low, high = discover._over_inputs(inputs, 3, clustered)
    assert all(set(counts % 5) == {0} and counts.sum() == 200 for counts in seen)
    reach = 1.96 * np.sqrt(0.75 * 0.25 / 40)
    assert (low, high) == pytest.approx((0.75 - reach, 0.75 + reach), abs=0.03)
    assert discover._over_inputs(inputs, 3, clustered) == (low, high)
    maps = discover._Maps(
        [np.eye(2)] * 200, [discover.Head(0, k % 3) for k in range(200)], [str(k) for k in inputs],
        np.array(["x" if label == 1 else "y" if label == 0 else "" for label in labels]), "bert", "annotators",
    )  # fmt: skip
    about = discover._about(maps, labels, 3)
    assert (about["low"], about["high"], about["clustered"]) == (low, high, 0.75)
    assert (about["agreement"], about["agreement_low"], about["agreement_high"]) == pytest.approx((1, 1, 1))
    assert (about["maps"], about["n_heads"], about["n_inputs"], about["classified"]) == (200, 3, 40, 150)
    bare = discover._about(
        discover._Maps(maps.weights, maps.heads, maps.inputs, np.array([""] * 200), "bert", "x"), labels, 3
    )
    assert "agreement" not in bare
