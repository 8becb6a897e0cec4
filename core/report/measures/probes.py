"""Measured numbers of probes and subnetworks: UAS, properties by layer, transfer, scores after pruning."""

from ...studies.probing.records import BestHeadTree, ParsedScore, ProbedLayer, Subnetwork
from ...studies.records import Valued
from ...studies.tuning.records import BestLayer
from ..evidence import Evidence, StepResult
from ..ids import Condition, ExhibitId, Item, Part, Quantity
from ..verdicts import Measured

LINEAR = "linear"


def _measured(result: StepResult, exhibit: ExhibitId, subject: str, score: Valued, of: str, note: str = "") -> Measured:
    return Measured(exhibit, result.task, Item(Quantity.SCORE, subject), Condition.NONE, score.estimate,
                    score.n, of, result.run, note)  # fmt: skip


def probes(evidence: Evidence) -> list[Measured]:
    """Collect the results of probes: trees from attention, word properties by layer, and best layers."""
    values = []
    for result in evidence.of(Part.SYNTAX):
        note = "" if result.step.options.treebank else "trees parsed by machine"
        parsers = [(f"UAS, {score.name}", score) for score in ParsedScore.defined(result.rows)]
        heads = [(f"undirected UAS, best head {score.name}", score) for score in BestHeadTree.defined(result.rows)]
        for name, score in [*parsers, *heads]:
            values.append(_measured(result, ExhibitId.PROBES, name, score, "words", note))
    for result in evidence.of(Part.PROBE):
        layers = [layer for layer in ProbedLayer.defined(result.rows) if layer.probe == LINEAR]
        last = max((layer.layer for layer in layers), default=0)
        for layer in (layer for layer in layers if layer.layer in (0, last)):
            layer_name = "embeddings" if layer.layer == 0 else "last layer"
            note = f"control task {layer.control:.3f}"
            values.append(_measured(result, ExhibitId.PROBES, f"{layer.property}, {layer_name}", layer, "words", note))
    for result in evidence.of(Part.TRANSFER):
        for best in BestLayer.defined(result.rows):
            subject = f"{best.reading}: layer {best.layer} of {best.layers} less the last"
            values.append(_measured(result, ExhibitId.PROBES, subject, best, "dev rows", best.note or ""))
    return values


def subnetworks(evidence: Evidence) -> list[Measured]:
    """Collect the score at each fraction of pruned weights, and the scores of retrained subnetworks."""
    values = []
    for result in evidence.of(Part.SUBNETWORKS):
        for score in (network for network in Subnetwork.defined(result.rows) if network.kind != "baseline"):
            name = f"{score.name} subnetwork" if score.kind == "subnetwork" else score.name
            name = name.replace("full subnetwork", "full model")
            values.append(_measured(result, ExhibitId.SUBNETWORKS, name, score, "dev rows", score.metric or ""))
    return values
