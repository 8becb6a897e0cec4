"""A circuit of the bundled encoder fine-tuned: what the race decides, what it costs beside all edges on all pairs.

Seconds are those of the processor with one thread, so that what else a machine does is left out. CIRCUIT_CHECKPOINT
names a fine-tuned checkpoint (else the bundled encoder is fine-tuned on the bundled rows of SST-2), CIRCUIT_DATA a
folder in GLUE's form, CIRCUIT_PAIRS how many pairs decide (100), CIRCUIT_PARTS what else is timed: "gates,pairs".
"""

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from core.scoring.sequential_test import Rules, standings
from core.studies.circuits import circuit
from tests.capture import test_edges as planted
from tests.scoring.test_circuits import DRAWS, EDGES, MARGIN, PAIRS, at_the_margin
from tests.studies.through_json import rows_of


def tuned() -> str:
    """A fine-tuned checkpoint: the one that was named, or one made now."""
    if named := os.environ.get("CIRCUIT_CHECKPOINT"):
        return named
    folder = Path(tempfile.mkdtemp())
    rows_of("finetune", {"checkpoint": "atlas-encoder", "tasks": ["sst2"], "preset": "small", "out": str(folder)})
    return str(next(folder.glob("*/config.json")).parent)


def timed(study: str, options: dict[str, Any]) -> tuple[list[dict[str, Any]], float]:
    start = time.process_time()
    return rows_of(study, options), time.process_time() - start


def of_kind(rows: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["kind"] == kind]


def contradictions(raced: list[dict[str, Any]], whole: list[dict[str, Any]], margin: float) -> int:
    """Verdicts of the race on whose other side the mean over all pairs lies."""
    middle = {row["name"]: abs(row["low"] + row["high"]) / 2 for row in whole}
    wrong = {"matters": lambda mean: mean < margin, "does not matter": lambda mean: mean > margin}
    return sum(wrong[row["verdict"]](middle[row["name"]]) for row in raced if row["verdict"] in wrong)


def null_false() -> int:
    """Draws with a false edge, the most over dense, sparse and skewed effects at the margin and random answers."""
    rules, most = Rules(MARGIN, 2.0, PAIRS, EDGES, 0.05, 24), 0
    for kind in ("dense", "sparse", "skewed", "random answers"):
        false = 0
        for draw in range(DRAWS):
            verdicts = set(standings(at_the_margin(kind, np.random.default_rng(draw)), rules).verdicts)
            false += "matters" in verdicts if kind == "random answers" else bool(verdicts - {"open"})
        most = max(most, false)
    return most


def planted_found() -> bool:
    """Whether the induction model written by hand yields exactly its edges."""
    planted.test_an_induction_circuit_has_exactly_the_edges_that_were_planted()
    return True


def main() -> dict[str, object]:
    torch.set_num_threads(1)
    count = int(os.environ.get("CIRCUIT_PAIRS", "100"))
    options = {
        "checkpoint": tuned(),
        "data": os.environ.get("CIRCUIT_DATA"),
        "limit": 600,
        "pairs": count,
        "judging": 4,
        "control": 0,
    }
    raced, seconds = timed("circuit", options)
    (summary,) = of_kind(raced, "circuit")
    whole, full_seconds = timed("circuit", options | {"first": summary["n"]})
    edges = of_kind(raced, "edge")
    heads = [edge for edge in edges if edge["edge_kind"] == "head to head"]
    figures: dict[str, object] = {
        "edges": len(edges),
        "head_to_head": len(heads),
        "pairs": summary["n"],
        "decided": sum(edge["verdict"] in ("matters", "does not matter") for edge in edges),
        "open": summary["open"],
        "open_head_to_head": sum(edge["verdict"] == "open" for edge in heads),
        "matter": summary["matter"],
        "evaluations_ratio": summary["of_evaluations"] / summary["evaluations"],
        "seconds": seconds,
        "full_seconds": full_seconds,
        "time_ratio": full_seconds / seconds,
        "contradictions": contradictions(edges, of_kind(whole, "edge"), summary["margin"]),
        "planted_found": planted_found(),
        "null_false": null_false(),
        "null_draws": DRAWS,
        "margin_share": circuit.CircuitOptions.__dataclass_fields__["margin"].default,
    }
    for study in filter(None, os.environ.get("CIRCUIT_PARTS", "gates,pairs").split(",")):
        some = {"checkpoint": options["checkpoint"], "data": options["data"]}
        figures[f"{study}_seconds"] = timed(study, some)[1]
    return figures
