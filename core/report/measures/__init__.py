"""The function that measures each exhibit."""

from collections import Counter
from collections.abc import Callable

from ...codebook.registry import shipped_set
from ...interval import Estimate
from ...patterns import classifier_registry
from .. import readings
from ..estimates import share_interval
from ..evidence import Evidence
from ..ids import Condition, ExhibitId, Item, Part, Quantity
from ..verdicts import Measured
from . import maps, scores

# ---------------------------------------------------------------- the bundled classifier of maps of decoders


DECODERS = shipped_set(causal=True).name


def classifier(evidence: Evidence) -> list[Measured]:
    """Collect F1 scores of the bundled classifier for decoders on held-out checkpoints, and the label frequencies."""
    bundled = f"{classifier_registry.BUNDLED}-{DECODERS}-"
    results = [
        result
        for result in evidence.of(Part.SHARES)
        if any(share.classifier.startswith(bundled) for share in readings.class_shares(result.rows))
    ]
    about = classifier_registry.bundled_about(DECODERS)
    if not results or about is None:
        return []
    scores, run = about["scores"], results[0].run
    f1 = Estimate(scores["macro_f1"], scores["low"], scores["high"])
    counts = Counter(name for _, name, _ in about["snapshot"])
    labels = sum(counts.values())
    return [
        _measured(Item(Quantity.CLASSIFIER_F1), f1, scores["n"], run, f"on {scores['on']}"),
        *(
            _measured(Item(Quantity.LABEL_SHARE, name), share_interval(counts[name] / labels, labels), labels, run)
            for name in about["classes"]
        ),
    ]


def _measured(item: Item, estimate: Estimate, n: int, run: str | None, note: str = "") -> Measured:
    return Measured(ExhibitId.CLASSIFIER, None, item, Condition.NONE, estimate, n, "labelled maps", run, note)


MEASURES: dict[ExhibitId, Callable[[Evidence], list[Measured]]] = {
    ExhibitId.SHARES: maps.shares,
    ExhibitId.CLASSIFIER: classifier,
    ExhibitId.FRAMES: maps.frames,
    ExhibitId.SINK: maps.sink,
    ExhibitId.TABLE_1: scores.table_one,
    ExhibitId.CHANGE: scores.change,
    ExhibitId.FEATURES: maps.features,
    ExhibitId.TOKENS: maps.tokens,
    ExhibitId.HEADS: scores.heads,
    ExhibitId.LAYERS: scores.layers,
    ExhibitId.ALONE: scores.alone,
    ExhibitId.IMPORTANCE: scores.importance,
    ExhibitId.PRUNE: scores.prune,
    ExhibitId.STATISTICS: maps.statistics,
    ExhibitId.DEPENDENCIES: maps.dependencies,
    ExhibitId.EFFECTIVE: maps.effective,
    ExhibitId.PROBES: scores.probes,
    ExhibitId.SUBNETWORKS: scores.subnetworks,
}
