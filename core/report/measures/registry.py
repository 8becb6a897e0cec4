"""Which function measures what an exhibit shows."""

from collections.abc import Callable

from core.report.evidence import Evidence
from core.report.ids import ExhibitId
from core.report.measures import classifiers, maps, probes, scores
from core.report.verdicts import Measured

MEASURES: dict[ExhibitId, Callable[[Evidence], list[Measured]]] = {
    ExhibitId.SHARES: maps.shares,
    ExhibitId.CLASSIFIER: classifiers.classifier,
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
    ExhibitId.PROBES: probes.probes,
    ExhibitId.SUBNETWORKS: probes.subnetworks,
}
