"""Discovered patterns: clusters of attention maps without labels, compared with the pattern classes.

The maps of one task are drawn with every head equally often, and the bundled classifier assigns their classes. Instead,
the bundled labelled maps of a checkpoint can be clustered, whose classes come from annotators. Both are never clustered
together: labelled maps are of several tasks, and clusters would be those of the tasks.
"""

import base64
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import pydantic.dataclasses
import scipy  # its parts load when they are used
from pydantic import Field

from ... import capture, patterns, studies
from ...attention import Head
from ...codebook.registry import SHIPPED, shipped_set
from ...errors import InputError
from ...scoring.intervals import wilson_interval
from ...store.rows import Row
from ...store.runs import Provenance
from ...tasks.glue import read_rows, task_name
from ..contract import Done, Flag, NamedUnit, Study, Unit
from ..headline import Headline
from ..options import Data, InputSplit, Limit, Seed, TaskName
from ..records import Result
from .draw_maps import captured, plan
from .records import ClusterExemplar, DiscoveredPatterns, PatternCluster

SIDE = 32  # rows of a stored exemplar, at most
ONE_CLASS = 0.8  # share of a cluster's maps
BOOTSTRAPS = 200
FEWEST = patterns.discovery.FEWEST_MAPS


@pydantic.dataclasses.dataclass(frozen=True)
class DiscoverOptions:
    """Options for pattern discovery: which attention maps are clustered."""

    checkpoints: Annotated[
        tuple[str, ...],
        Field(min_length=1),
        Flag("checkpoints: bundled names, local folders or hub IDs", argument=True),
    ] = ("atlas-encoder",)
    task: TaskName = "sst2"
    split: InputSplit = "dev"
    data: Data = None
    limit: Limit = 100
    maps: Annotated[int, Flag("number of maps drawn from the task", least=FEWEST, most=4000)] = 600
    labelled: Annotated[
        bool,
        Flag("cluster the bundled labelled maps of each checkpoint instead of maps of the task",
             name="--labelled/--drawn"),
    ] = False  # fmt: skip
    seed: Seed = 0


@dataclass(frozen=True)
class Discovered:
    """The clusters of attention maps in each checkpoint, and the exemplar maps of the clusters."""

    found: tuple[DiscoveredPatterns, ...]
    clusters: tuple[PatternCluster, ...]
    exemplars: tuple[ClusterExemplar, ...]


@dataclass(frozen=True, eq=False)
class _Maps:
    """Maps to cluster, with the head, input and class of each; the class is "" if annotators were tied."""

    weights: Sequence[np.ndarray]
    heads: Sequence[Head]
    inputs: Sequence[str]
    names: np.ndarray
    class_set: str
    by: str


class DiscoverStudy(Study[DiscoverOptions, Discovered]):
    """Cluster attention maps without labels, test their stability, and compare them with pattern classes."""

    name, options, partial, arguments = "discover", DiscoverOptions, Discovered, NamedUnit
    question = "Which attention patterns are there without labels?"
    looks_at_maps = True
    kinds = (DiscoveredPatterns, PatternCluster, ClusterExemplar)
    counts = "maps"

    def checkpoints(self, options: DiscoverOptions) -> list[str]:
        return [] if options.labelled else list(options.checkpoints)

    def title(self, options: DiscoverOptions) -> str:
        return f"Discovered patterns, {'labelled maps' if options.labelled else task_name(options.task)}"

    def units(self, options: DiscoverOptions) -> list[Unit]:
        if options.labelled:
            for checkpoint in options.checkpoints:
                _labelled(checkpoint)
        return [Unit(name, NamedUnit(name, number=k), options.maps) for k, name in enumerate(options.checkpoints)]

    def run(self, options: DiscoverOptions, unit: Unit) -> Done[Discovered]:
        name: str = unit.arguments.name
        if options.labelled:
            maps = _labelled(name)
            tasks = sorted({one.split("/")[0] for one in maps.inputs})
            provenance = Provenance(checkpoint=name, task=", ".join(tasks), split="dev", seed=options.seed)
        else:
            checkpoint = studies.worker_cache.get_checkpoint(name)
            maps = _drawn(checkpoint, options)
            name = checkpoint.name
            provenance = Provenance(
                checkpoint=name, weights_hash=checkpoint.weights_hash, task=options.task, split=options.split,
                seed=options.seed, dtype=checkpoint.dtype, row_ids=tuple(dict.fromkeys(maps.inputs)),
            )  # fmt: skip
        statistics = patterns.shapes.shapes(maps.weights)
        found = patterns.discovery.discover(statistics, list(map(str, maps.heads)), maps.inputs, seed=options.seed)
        labels = found.clustering.labels
        count = int(labels.max()) + 1
        clusters = [_cluster(name, k, maps.names[labels == k - 1], count) for k in range(count + 1)]
        about = _about(maps, labels, options.seed)
        stability: dict[str, Any] = {
            f"{by}{end}": value
            for by, of in (("heads", found.heads), ("inputs", found.inputs))
            for end, value in (("", of.value), ("_low", of.low), ("_high", of.high))
        }
        summary = DiscoveredPatterns(
            checkpoint=name, task=str(provenance.task), clusters=count, smallest=found.smallest,
            baseline=found.baseline, are_patterns=found.are_patterns, **about, **stability,
        )  # fmt: skip
        exemplars = [
            _exemplar(name, k + 1, maps, number)
            for k, near in enumerate(found.clustering.exemplars[:count])
            for number in near
        ]
        return Done(Discovered((summary,), tuple(clusters), tuple(exemplars)), provenance)

    def results(self, options: DiscoverOptions, merged: Discovered) -> list[Result]:
        """Return the result rows: the stability of each clustering, then all clusters, then their exemplar maps."""
        return [*merged.found, *merged.clusters, *merged.exemplars]

    def headline(self, rows: Sequence[Row]) -> Headline:
        found = DiscoveredPatterns.among(rows)[0]
        clusters = [one for one in PatternCluster.among(rows) if one.checkpoint == found.checkpoint]
        across = [str(cluster.cluster) for cluster in clusters if cluster.cuts_across]
        maps = f"The attention maps of {found.checkpoint}"
        if found.are_patterns:
            mixed = f"Clusters {' and '.join(across)} mix" if across else "No cluster significantly mixes"
            mixed = f"Cluster {across[0]} mixes" if len(across) == 1 else mixed
            clustered = f"{found.clusters} stable cluster{'s' * (found.clusters != 1)}"
            sentence = f"{maps} form {clustered}. {mixed} several pattern classes."
        elif found.clustered < patterns.discovery.CLUSTERED:
            sentence = f"{maps} form no clear clusters: only {found.clustered:.0%} are in a cluster."
        else:
            sentence = f"{maps} form no clear clusters: the clusters are not stable."
        weaker, half = min((found.heads, "heads"), (found.inputs, "inputs"))
        low, high = getattr(found, f"{half}_low"), getattr(found, f"{half}_high")
        return Headline(
            sentence,
            found.maps,
            "maps",
            f"{found.clustered:.0%} of the maps are in a cluster (95 % CI {100 * found.low:.0f} to "
            f"{100 * found.high:.0f}). To test stability, the {half} are split at random into two halves, and "
            f"all maps are clustered from each half. The two clusterings have a mean adjusted Rand index of"
            f" {weaker:.2f} ({low:.2f} to {high:.2f} in 95 % of the splits)",
            f"For random data without clusters, the adjusted Rand index is at most {found.baseline:.2f}.",
        )

    def shown(self, rows: Sequence[Row]) -> list[list[Row] | str]:
        return [[one.as_row() for one in kind.among(rows)] for kind in (DiscoveredPatterns, PatternCluster)]


STUDY = DiscoverStudy()


def _drawn(checkpoint: Any, options: DiscoverOptions) -> _Maps:
    """Draw maps from the task, every head equally often, with the classes of the bundled classifier."""
    capture.running.refuse_sinks(checkpoint)
    rows = read_rows(options.task, options.split, folder=options.data, limit=options.limit, seed=options.seed)
    large, encodings = studies.patterns.map_classification.large_enough(checkpoint, rows)
    if not large:
        raise studies.patterns.map_classification.all_too_small(len(rows), options.task)
    per_input = -(-options.maps // len(large))
    pairs = plan(range(len(large)), checkpoint.all_heads, count=options.maps, per_input=per_input, seed=options.seed)
    pairs.sort(key=lambda pair: pair[0])
    weights = [weights for _, _, weights in captured(checkpoint, dict(enumerate(encodings)), pairs)]
    class_set = shipped_set(causal=checkpoint.causal).name
    classifier = patterns.training.Classifier.from_bytes(patterns.classifier_registry.bundled_weights(class_set))
    best = patterns.suggestions.judged(classifier, weights).probabilities.argmax(1)
    names = np.array(classifier.classes)[best]
    inputs = [large[number].id for number, _ in pairs]
    return _Maps(weights, [head for _, head in pairs], inputs, names, class_set, "classifier")


def _labelled(checkpoint: str) -> _Maps:
    """Return the bundled labelled maps of a checkpoint. Raises InputError if there are none."""
    sets = {name: patterns.snapshot.bundled_snapshot(name) for name in SHIPPED}
    for class_set, known in sets.items():
        if mine := [k for k, name in enumerate(known.column("checkpoint")) if name == checkpoint]:
            rows = [known.facts[k] for k in mine]
            return _Maps(
                [known.maps[k] for k in mine],
                [Head(row["layer"], row["head"]) for row in rows],
                [str(row["group"]) for row in rows],
                np.array(["" if row["tied"] else row["class"] for row in rows]),
                class_set,
                "annotators",
            )
    names = dict.fromkeys(name for known in sets.values() for name in known.column("checkpoint"))
    raise InputError(
        f"Labelled maps are bundled only for {'; '.join(names)}; got {checkpoint[:80]}. Choose one of these "
        "checkpoints, or pass --drawn to use maps of a task."
    )


def _about(maps: _Maps, labels: np.ndarray, seed: int) -> dict[str, Any]:
    """Return the fields of DiscoveredPatterns that do not depend on the stability."""
    inputs = np.unique(maps.inputs, return_inverse=True)[1]
    low, high = _over_inputs(inputs, seed, lambda some: float((labels[some] >= 0).mean()))
    compared = np.flatnonzero((maps.names != "") & (labels >= 0))
    names, clusters = maps.names[compared], labels[compared]
    agreement: dict[str, Any] = {}
    if len(set(names)) > 1:
        ends = _over_inputs(inputs[compared], seed, lambda some: _agreement(clusters[some], names[some]))
        agreement = {"agreement": _agreement(clusters, names), "agreement_low": ends[0], "agreement_high": ends[1]}
    return agreement | {
        "class_set": maps.class_set, "by": maps.by, "maps": len(labels), "n_heads": len(set(maps.heads)),
        "n_inputs": len(set(maps.inputs)), "classified": int((maps.names != "").sum()),
        "clustered": float((labels >= 0).mean()), "low": low, "high": high,
    }  # fmt: skip


def _cluster(checkpoint: str, cluster: int, names: np.ndarray, clusters: int) -> PatternCluster:
    counts = Counter(str(name) for name in names if name)
    found = PatternCluster(checkpoint=checkpoint, cluster=cluster, maps=len(names), counts=dict(counts.most_common()))
    if not cluster or not counts:
        return found
    (name, n), total = counts.most_common(1)[0], counts.total()
    low, high = (float(end) for end in wilson_interval(np.array(n), total))
    p = float(scipy.stats.binom.cdf(n, total, ONE_CLASS))
    return replace(found, name=name, share=n / total, low=low, high=high, cuts_across=p < 0.05 / clusters)


def _exemplar(checkpoint: str, cluster: int, maps: _Maps, number: int) -> ClusterExemplar:
    weights, head = maps.weights[number], maps.heads[number]
    edges = np.unique(np.linspace(0, len(weights), min(len(weights), SIDE) + 1).astype(int))
    sums = np.add.reduceat(np.add.reduceat(weights.astype(float), edges[:-1], 0), edges[:-1], 1)
    means = sums / np.outer(np.diff(edges), np.diff(edges))
    levels = np.rint(255 * np.clip(means, 0, 1)).astype(np.uint8)
    return ClusterExemplar(
        checkpoint=checkpoint, cluster=cluster, layer=head.layer, head=head.head, row_id=maps.inputs[number],
        name=str(maps.names[number]) or None, side=len(levels), levels=base64.b64encode(levels.tobytes()).decode(),
    )  # fmt: skip


def _agreement(clusters: np.ndarray, names: np.ndarray) -> float:
    """Return the adjusted mutual information of clusters and classes (Vinh et al. 2010)."""
    from sklearn.metrics import adjusted_mutual_info_score  # 1 s of start-up

    return float(adjusted_mutual_info_score(names, clusters))


def _over_inputs(inputs: np.ndarray, seed: int, measure: Callable[[np.ndarray], float]) -> tuple[float, float]:
    """Return the 95 % interval of a measure of maps (by index) when inputs are drawn with replacement."""
    drawn = patterns.evaluation.resampled_maps(inputs, seed=seed, samples=BOOTSTRAPS)
    values = [measure(maps) for maps in drawn]
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)
