"""`python -m core study gates|pairs|shapley`: what heads do together."""

from core.commands.declared import Ran, command
from core.store.rows import Row
from core.studies.circuits import gates as gating
from core.studies.circuits import pairs as head_pairs
from core.studies.circuits import shapley as values
from core.studies.circuits.records import GatedHead, HeadPair, OrderStep, ShapleyHead

SHOWN_PAIRS = 20  # of a table


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


def _show(ran: Ran, heads: list[Row]) -> None:
    """Every row, or in a table the heads or pairs alone, then the rows of other kinds."""
    if ran.form != "table":
        ran.show(ran.rows)
        return
    ran.show(heads)
    shown = {*GatedHead.KINDS, *HeadPair.KINDS, *OrderStep.KINDS}
    others: dict[str, list[Row]] = {}
    for row in ran.rows:
        if row.get("kind") not in shown:
            others.setdefault(str(row.get("kind")), []).append(row)
    for rows in others.values():
        ran.show(rows)


gates = command(gating.STUDY, show=_show_gates)
pairs = command(head_pairs.STUDY, show=_show_pairs)
shapley = command(values.STUDY, show=_show_shapley)
CIRCUITS = (gates, pairs, shapley)
