"""Result records of `pattern-shares`, `train-patterns` and `discover`; the column `part` has their kind."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...interval import Estimate
from ..records import Figure, Result, column, stated


@dataclass(frozen=True, kw_only=True)
class PartResult(Result):
    """Base class of records. The column `part` states the kind of the record."""

    BY: ClassVar[str] = "part"


@dataclass(frozen=True, kw_only=True)
class ClassRow(PartResult):
    """Base class of records about the frequency of attention patterns."""

    checkpoint: str
    task: str | None = None
    classifier: str = stated("")
    class_set: str | None = stated()
    inputs: int
    part: str


@dataclass(frozen=True, kw_only=True)
class ClassShare(ClassRow):
    """The share of one pattern class among all maps of a checkpoint, either raw or corrected for misclassification."""

    KINDS: ClassVar[tuple[str, ...]] = ("share", "corrected")
    FIGURE = Figure("share", "{part} of maps of {checkpoint}", "{name}")
    name: str = column("class")
    share: float
    low: float | None = stated()
    high: float | None = stated()
    maps: int = stated(0)
    misfit: float | None = None

    @property
    def estimate(self) -> Estimate:
        return Estimate(self.share, self.low, self.high, "share")


@dataclass(frozen=True, kw_only=True)
class HeadClass(ClassRow):
    """The most frequent pattern class of a head, with its share. `counts` has the number of maps in each class."""

    KINDS: ClassVar[tuple[str, ...]] = ("head",)
    FIGURE = Figure("value", "{statistic} {name}|{task}")
    layer: int
    head: int
    part: str = stated("head")
    name: str = column("class")
    share: float
    counts: Mapping[str, int]
    statistic: str | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None


@dataclass(frozen=True, kw_only=True)
class HeadClassShare(ClassRow):
    """The share of one pattern class among the attention maps of a head, over n inputs."""

    KINDS: ClassVar[tuple[str, ...]] = ("head share",)
    FIGURE = Figure("value", "{statistic} {name}|{task}")
    layer: int
    head: int
    part: str = stated("head share")
    name: str = column("class")
    statistic: str = stated("class share")
    feature: str | None = None
    value: float
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, kw_only=True)
class ClassNote(ClassRow):
    """The fractions of a checkpoint's maps that are uncertain or unusual, and the number of truncated inputs."""

    KINDS: ClassVar[tuple[str, ...]] = ("note",)
    part: str = stated("note")
    maps: int
    unsure: float | None = None
    outside: float | None = None
    cropped: int | None = None
    cut: int | None = None
    small: int | None = None


@dataclass(frozen=True, kw_only=True)
class MovedShare(ClassRow):
    """The change in the share of a pattern class between two checkpoints, paired by input."""

    KINDS: ClassVar[tuple[str, ...]] = ("moved",)
    FIGURE = Figure("share", "change of the share of maps of {checkpoint}", "{name}")
    part: str = stated("moved")
    before: str | None = None
    name: str = column("class")
    share: float
    low: float | None
    high: float | None
    low_all: float | None
    high_all: float | None

    @property
    def change(self) -> Estimate:
        """Return the change in the share of a class, with a confidence interval not corrected for multiple classes."""
        return Estimate(self.share, self.low, self.high, "share")

    @property
    def joint(self) -> Estimate:
        """Return the change in the share of a class, with a simultaneous confidence interval for all classes."""
        return Estimate(self.share, self.low_all, self.high_all)


# ---------------------------------------------------------------- train-patterns


@dataclass(frozen=True, kw_only=True)
class HeldOutScore(PartResult):
    """The scores of a pattern classifier on attention maps that it was not trained on.

    Attributes:
        part: "scores", or "checkpoint" for a held-out checkpoint.
        macro_f1, low, high: over classes with at least ten maps.
        identity_f1, identity_low, identity_high: macro F1 of a baseline that only knows the head.
        unsure, outside, sure_errors: fractions of maps.
        macro_f1_all: over all classes; None in results of earlier versions, whose macro_f1 is over all classes.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("scores", "checkpoint")
    part: str
    macro_f1: float
    low: float | None
    high: float | None
    accuracy: float
    maps: int
    on: str | None = None
    checkpoint: str | None = None
    kind: str | None = None
    inputs: int | None = None
    identity_f1: float | None = None
    identity_low: float | None = None
    identity_high: float | None = None
    n_labels: int | None = None
    folds: int | None = None
    ece: float | None = None
    unsure: float | None = None
    outside: float | None = None
    macro_f1_all: float | None = None
    ece_low: float | None = None
    ece_high: float | None = None
    sure_errors: float | None = None


@dataclass(frozen=True, kw_only=True)
class ClassScore(PartResult):
    """The scores of a pattern classifier for one class on held-out maps. Undefined scores are None."""

    KINDS: ClassVar[tuple[str, ...]] = ("class",)
    FIGURE = Figure("f1", "F1")
    name: str = column("class")
    precision: float | None
    recall: float | None
    f1: float | None
    support: int


@dataclass(frozen=True, kw_only=True)
class Confusion(PartResult):
    """The number of held-out maps of class `truth` that were predicted as class `predicted`."""

    KINDS: ClassVar[tuple[str, ...]] = ("confusion",)
    truth: str
    predicted: str
    n: int


@dataclass(frozen=True, kw_only=True)
class Calibration(PartResult):
    """One confidence bin of a calibration curve: the mean confidence and the accuracy for the n maps in this bin."""

    KINDS: ClassVar[tuple[str, ...]] = ("calibration",)
    confidence: float
    accuracy: float
    n: int
    error: float


@dataclass(frozen=True, kw_only=True)
class HeldOutMap(PartResult):
    """The prediction for one map by a pattern classifier that was not trained on that map."""

    KINDS: ClassVar[tuple[str, ...]] = ("map",)
    map_id: str
    group: str
    truth: str
    predicted: str
    probability: float


@dataclass(frozen=True, kw_only=True)
class HeldOutAnswers(PartResult):
    """Predictions for all scored maps by pattern classifiers that were not trained on these maps.

    `answers` is indexed by what was held out (checkpoints, heads, inputs), then by "predicted" or "probability"; None
    without a prediction.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("held out",)
    map_ids: Sequence[str]
    groups: Sequence[str]
    truth: Sequence[int]
    answers: Mapping[str, Mapping[str, Sequence[float | None]]]


@dataclass(frozen=True, kw_only=True)
class LearningPoint(PartResult):
    """The macro F1 of a pattern classifier that was trained on a given number of labels."""

    KINDS: ClassVar[tuple[str, ...]] = ("curve",)
    FIGURE = Figure("macro_f1", "macro F1", "{labels} labels")
    labels: int
    macro_f1: float
    low: float | None
    high: float | None
    maps: int


@dataclass(frozen=True, kw_only=True)
class FinalClassifier(PartResult):
    """The trained pattern classifier as safetensors in base64, with its map size."""

    KINDS: ClassVar[tuple[str, ...]] = ("final",)
    weights: str
    size: int
    cropped: int
    n_labels: int


@dataclass(frozen=True, kw_only=True)
class DrawnMaps(Result):
    """The number of attention maps that were sampled for one task, and the number of inputs."""

    task: str
    maps: int
    inputs: int


# ---------------------------------------------------------------- discover


@dataclass(frozen=True, kw_only=True)
class DiscoveredPatterns(PartResult):
    """The clusters of attention maps in a checkpoint.

    Attributes:
        by: what assigned the classes of maps: "annotators" or "classifier".
        classified: number of maps with a class.
        smallest: number of maps that a cluster must have.
        clustered, low, high: share of maps in a cluster, with an interval over inputs.
        heads, inputs: mean adjusted Rand index between clusterings of halves of the heads, and of the inputs. `_low` to
            `_high` has 95 % of the halves.
        baseline: largest mean of this index among samples without clusters (permuted columns, and normal data).
        agreement: adjusted mutual information of clusters and classes over clustered maps, with an interval over
            inputs; None if the clustered maps have fewer than two classes.
        are_patterns: whether 60 % of the maps are clustered and the lower ends of both stabilities exceed the
            baseline.
    """

    KINDS: ClassVar[tuple[str, ...]] = ("clusters",)
    FIGURE = Figure("clustered", "share of maps in a cluster", "{checkpoint}")
    checkpoint: str
    task: str
    class_set: str
    by: str
    maps: int
    n_heads: int
    n_inputs: int
    classified: int
    clusters: int
    smallest: int
    clustered: float
    low: float
    high: float
    heads: float
    heads_low: float
    heads_high: float
    inputs: float
    inputs_low: float
    inputs_high: float
    baseline: float
    agreement: float | None = stated()
    agreement_low: float | None = stated()
    agreement_high: float | None = stated()
    are_patterns: bool


@dataclass(frozen=True, kw_only=True)
class PatternCluster(PartResult):
    """A cluster of attention maps. Cluster 0 contains the maps outside all clusters. `counts` has the number of maps in
    each class, and `share` is the fraction in the most frequent class. `cuts_across` is True if this fraction is
    significantly below 80 %."""

    KINDS: ClassVar[tuple[str, ...]] = ("cluster",)
    FIGURE = Figure("share", "share of {name}", "cluster {cluster}")
    checkpoint: str
    cluster: int
    maps: int
    counts: Mapping[str, int]
    name: str | None = column("class", None)
    share: float | None = stated()
    low: float | None = stated()
    high: float | None = stated()
    cuts_across: bool = stated(False)


@dataclass(frozen=True, kw_only=True)
class ClusterExemplar(PartResult):
    """A map near the centre of a cluster. `levels` has its weights, averaged to `side` x `side` cells and scaled to
    0-255, in base64."""

    KINDS: ClassVar[tuple[str, ...]] = ("exemplar",)
    checkpoint: str
    cluster: int
    layer: int
    head: int
    row_id: str
    name: str | None = column("class", None)
    side: int
    levels: str

    @property
    def weights(self) -> np.ndarray:
        """Return the weights of the exemplar map, decoded from `levels`. *Shape:* (side, side)."""
        return np.frombuffer(base64.b64decode(self.levels), np.uint8).reshape(self.side, self.side) / 255
