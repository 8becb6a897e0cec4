"""Our numbers of probes and subnetworks: UAS, what layers know, what transfers, what is left when weights go."""

from collections.abc import Iterable

from core.report.estimates import Estimate
from core.report.evidence import Evidence, StepResult
from core.report.ids import Condition, ExhibitId, Item, Part, Quantity
from core.report.verdicts import Measured
from core.store.rows import Row

LINEAR = "linear"


def estimate_of(row: Row, prefix: str = "") -> Estimate:
    """A row's value with its interval; prefix: of the columns of a change."""
    names = (prefix, f"{prefix}_low", f"{prefix}_high") if prefix else ("value", "low", "high")
    value, low, high = (row.get(name) for name in names)
    return Estimate(float(value or 0.0), low, high)


def of_kind(rows: Iterable[Row], *kinds: str) -> list[Row]:
    """Rows of some kinds that have a value."""
    return [row for row in rows if row.get("kind") in kinds and row.get("value") is not None]


def _measured(result: StepResult, exhibit: ExhibitId, subject: str, row: Row, of: str, note: str = "") -> Measured:
    return Measured(exhibit, result.task, Item(Quantity.SCORE, subject), Condition.NONE, estimate_of(row),
                    int(row["n"]), of, result.run, note)  # fmt: skip


def probes(evidence: Evidence) -> list[Measured]:
    """UAS of probes, baselines and the best head; each property in the embeddings and the last layer; best layers."""
    found = []
    for result in evidence.of(Part.SYNTAX):
        rows = of_kind(result.rows, "probe", "baseline", "best head")
        note = "" if result.step.options.treebank else "trees parsed by machine"
        for row in rows:
            name = f"undirected UAS, best head {row['name']}" if row["kind"] == "best head" else f"UAS, {row['name']}"
            found.append(_measured(result, ExhibitId.PROBES, name, row, "words", note))
    for result in evidence.of(Part.PROBE):
        rows = [row for row in of_kind(result.rows, "probe") if row["probe"] == LINEAR]
        last = max((row["layer"] for row in rows), default=0)
        for row in (row for row in rows if row["layer"] in (0, last)):
            place = "embeddings" if row["layer"] == 0 else "last layer"
            note = f"control task {row['control']:.3f}"
            found.append(_measured(result, ExhibitId.PROBES, f"{row['property']}, {place}", row, "words", note))
    for result in evidence.of(Part.TRANSFER):
        for row in of_kind(result.rows, "best layer"):
            subject = f"{row['reading']}: layer {int(row['layer'])} of {int(row['layers'])} less the last"
            found.append(_measured(result, ExhibitId.PROBES, subject, row, "dev rows", row["note"]))
    return found


def subnetworks(evidence: Evidence) -> list[Measured]:
    """The score at each share of weights that went, and of the subnetworks."""
    found = []
    for result in evidence.of(Part.SUBNETWORKS):
        for row in of_kind(result.rows, "curve", "subnetwork", "difference"):
            name = f"{row['name']} subnetwork" if row["kind"] == "subnetwork" else row["name"]
            name = name.replace("full subnetwork", "full model")
            found.append(_measured(result, ExhibitId.SUBNETWORKS, name, row, "dev rows", str(row.get("metric") or "")))
    return found
