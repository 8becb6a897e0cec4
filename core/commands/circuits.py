"""`python -m core study gates|pairs|shapley|circuit`: what heads do together."""

from core.commands.output import tell
from core.commands.study_commands import Ran, command, short_in
from core.store.rows import Row
from core.studies.circuits import circuit as circuits
from core.studies.circuits import gates as gating
from core.studies.circuits import pairs as head_pairs
from core.studies.circuits import shapley as values
from core.studies.circuits.circuit_table import said_of_stability
from core.studies.circuits.records import (
    CircuitEdge,
    CircuitSummary,
    EdgeMean,
    GatedHead,
    HeadPair,
    OrderStep,
    ShapleyHead,
)

SHOWN_PAIRS = 20  # of a table
SHOWN_EDGES = 30


def _show_gates(ran: Ran) -> None:
    names = (
        "name",
        "gate_class",
        "facilitating",
        "interfering",
        "irrelevant",
        "effect",
        "low",
        "high",
        "gradient",
        "n",
    )
    _show(ran, [{name: getattr(head, name) for name in names} for head in GatedHead.among(ran.rows)])


def _show_pairs(ran: Ran) -> None:
    names = ("name", "interaction", "low", "high", "p", "verdict", "first", "second", "both", "n")
    pairs = HeadPair.among(ran.rows)[:SHOWN_PAIRS]
    _show(ran, [{name: getattr(pair, name) for name in names} for pair in pairs])


def _show_shapley(ran: Ran) -> None:
    names = ("name", "value", "low", "high", "rank", "effect", "gradient", "n")
    _show(ran, [{name: getattr(head, name) for name in names} for head in ShapleyHead.among(ran.rows)])


@short_in("table")
def _show_circuit(ran: Ran) -> None:
    names = ("name", "effect", "low", "high", "n", "verdict", "selection", "attribution")
    edges = sorted(CircuitEdge.among(ran.rows), key=lambda edge: edge.rank)[:SHOWN_EDGES]
    ran.show([{name: getattr(edge, name) for name in names} for edge in edges])
    tell(f"effect: {edges[0].estimator}")
    shown = {edge.name for edge in edges}
    names = ("name", "pairs", "effect", "low", "high", "n")
    ran.show([{name: getattr(mean, name) for name in names} for mean in EdgeMean.among(ran.rows) if mean.name in shown])
    tell("effect: mean, not clipped")
    (summary,) = CircuitSummary.among(ran.rows)
    tell(
        f"{summary.matter} of {summary.raced} edges matter beyond {summary.margin:.3f} logits, {summary.open} are "
        f"open; {said_of_stability(summary)}"
    )


def _show(ran: Ran, heads: list[Row]) -> None:
    """Every row, or in a table the heads or pairs alone, then the rows of other kinds."""
    if ran.form != "table":
        ran.show()
        return
    ran.show(heads)
    shown = {*GatedHead.KINDS, *HeadPair.KINDS, *OrderStep.KINDS}
    rows_by_kind: dict[str, list[Row]] = {}
    for row in ran.rows:
        if row.get("kind") not in shown:
            rows_by_kind.setdefault(str(row.get("kind")), []).append(row)
    for rows in rows_by_kind.values():
        ran.show(rows)


gates = command(gating.STUDY, show=_show_gates)
pairs = command(head_pairs.STUDY, show=_show_pairs)
shapley = command(values.STUDY, show=_show_shapley)
circuit = command(circuits.STUDY, show=_show_circuit)
CIRCUITS = (gates, pairs, shapley, circuit)
