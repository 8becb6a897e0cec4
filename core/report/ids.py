"""IDs that match published and measured numbers: parts, exhibits, quantities, conditions. Texts are derived from
them."""

from dataclasses import dataclass
from enum import StrEnum

from ..attention import Head


class Part(StrEnum):
    """The parts of a report, one for each kind of measurement."""

    FRAMES = "frames"
    SINK = "sink"
    SINKLESS = "sinkless"
    STATISTICS = "statistics"
    RELATIONS = "relations"
    TRAIN_RELATIONS = "relations-train"  # links from noun to pronoun on all train rows, of tasks with few dev rows
    DEPENDENCIES = "dependencies"
    EFFECTIVE = "effective"
    REDUNDANCY = "redundancy"
    WHY = "why"
    TUNING = "tuning"
    CHANGE = "change"
    CHANGE_SEEDS = "change-seeds"  # for the other seeds of fine-tuning
    MATCH = "match"
    FEATURES = "features"
    FEATURES_SEEDS = "features-seeds"
    SHARES = "shares"
    HEADS = "heads"
    CROSSED = "crossed"
    LAYERS = "layers"
    CROSSED_LAYERS = "crossed-layers"
    CROSSED_SCORES = "crossed-scores"
    CROSSED_PRUNE = "crossed-prune"
    ALONE = "alone"
    IMPORTANCE = "importance"
    PRUNE = "prune"
    SEPARATORS = "separators"
    SINKS = "sinks"
    WORD_LINKS = "word-links"
    SHAPLEY = "shapley"
    GATES = "gates"
    PAIRS = "pairs"
    SYNTAX = "syntax"
    PROBE = "probe"
    TRANSFER = "transfer"
    SUBNETWORKS = "subnetworks"
    BY_SEPARATOR = "by-separator"  # these two are not steps, but stored runs with other settings
    FRESH_LAST = "fresh-last-layers"


class ExhibitId(StrEnum):
    """The IDs of the figures and tables in the publications."""

    SHARES = "shares"
    CLASSIFIER = "classifier"
    FRAMES = "frames"
    SINK = "sink"
    TABLE_1 = "table-1"
    CHANGE = "change"
    FEATURES = "features"
    TOKENS = "tokens"
    HEADS = "heads"
    LAYERS = "layers"
    ALONE = "alone"
    IMPORTANCE = "importance"
    PRUNE = "prune"
    STATISTICS = "statistics"
    DEPENDENCIES = "dependencies"
    EFFECTIVE = "effective"
    PROBES = "probes"
    SUBNETWORKS = "subnetworks"


class Condition(StrEnum):
    """The experimental condition under which a number was measured, such as "fine-tuned". Only numbers with equal
    conditions are compared."""

    NONE = ""
    BEFORE = "pre-trained"
    TUNED = "fine-tuned"
    WITHOUT_FIRST = "first position left out"
    DISABLED = "disabled"
    ZEROED = "zeroed"
    BY_IMPORTANCE = "importance"
    BY_SWEEP = "sweep"
    RAW = "raw"
    EFFECTIVE = "effective"
    FROM_UNTRAINED = "untrained"
    FROM_FROZEN = "frozen"
    FROM_RANDOM = "random"
    FROM_PRETRAINED = "pretrained"
    THEIR_ND = "ND"
    THEIR_PT = "PT"


class Quantity(StrEnum):
    """The quantities that appear in figures and tables, each with its display name."""

    words: str

    def __new__(cls, id: str, words: str = "") -> "Quantity":
        """Create an enum member that equals its ID and also has a name for readers."""
        member = str.__new__(cls, id)
        member._value_, member.words = id, words
        return member

    CLASS_SHARE = "class-share", "{subject}"
    CLASSIFIER_F1 = "classifier-f1", "F1 of the classifier, mean over classes"
    LABEL_SHARE = "label-share", "share of {subject} among the labels"
    SCORE = "score", "{subject}"
    HEAD = "head", "{head}"
    BEST_HEAD = "best-head", "best head"
    WORST_HEAD = "worst-head", "worst head"
    HELD_OUT_HEAD = "held-out-head", "best head, on rows that did not choose it"
    MEAN_OVER_HEADS = "mean-over-heads", "mean over heads"
    PERCENTILE = "percentile", "99th percentile of the heads"
    LAYER = "layer", "layer {layer} of {layers}"
    FIXED_DISTANCE = "fixed-distance", "fixed distance"
    FROM_CLS = "from-cls", "[CLS] of the last layer to {subject}"
    FROM_LAST = "from-last", "last token to {subject}"
    ON_PREVIOUS = "on-previous", "heads with more than half on the previous token"
    ON_NEXT = "on-next", "heads with more than half on the next token"
    CLS_ENTROPY = "cls-entropy", "entropy of the [CLS] row in the last layer, nats"
    REMOVABLE = "removable", "removable share of heads"
    AGREEMENT = "agreement", "importance against {subject}"
    LENGTHS = "lengths", "r at {subject} word pieces"
    TYPE_WEIGHT = "type-weight", "to {subject}"


@dataclass(frozen=True)
class Item:
    """A key that identifies one number in a figure or table, such as the value for nouns in layer 3."""

    quantity: Quantity
    subject: str = ""
    layer: int | None = None
    layers: int | None = None
    head: Head | None = None

    @property
    def text(self) -> str:
        """Return a readable name for this number, such as "noun, layer 3 of 12"."""
        words = self.quantity.words
        text = words.format(subject=self.subject, layer=self.layer, layers=self.layers, head=self.head)
        return f"{self.subject}, {text}" if self.subject and "{subject}" not in words else text

    @property
    def position(self) -> float | None:
        """Return the relative depth of the layer in the model, from 0 (first) to 1 (last). Return None if the layer is
        unknown."""
        if self.layer is None or self.layers is None:
            return None
        return (self.layer - 1) / max(1, self.layers - 1)
