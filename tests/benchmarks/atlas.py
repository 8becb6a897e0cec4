"""The atlas: 144 heads x 20 scores painted warm, the gallery and norms against a capture pass, at BERT-base size.

Figures: `paint_ms_144`, `paint_ms_384` (a change of score, from the message to the painted component, median; 12 x 12
and 24 x 16 heads of 20 stored scores each, in a browser), `gallery_ratio` (one score of every head on every row over a
pass that captures all maps with the page's scores), `norms_ratio` (norm-based maps with the same scores over the same).
"""

import os
import statistics
import tempfile
from pathlib import Path

import numpy as np
import torch
from transformers import BertConfig, BertModel

from core.capture.norms import run_norms
from core.capture.running import run
from core.models.checkpoint import Checkpoint
from core.scoring.registry import MAP_SCORES
from core.store import runs
from core.store.database import Database
from core.store.runs import Provenance
from core.studies.attention.gallery import input_scores
from core.studies.lookup import find_score
from tests.benchmarks.capture import PageScores, SegmentedNames, random_encoding, seconds
from tests.pages.browsing import PATIENCE, browsing, serving, visit

ROUNDS, ROWS = 3, int(os.environ.get("ATLAS_BENCHMARK_ROWS", "872"))
SHAPES = {"wide": (12, 12), "large": (24, 16)}


def fill(file: Path) -> None:
    """Twenty scores of every head of both shapes."""
    database, chance = Database(file), np.random.default_rng(0)
    names = [score.name for score in MAP_SCORES]
    for checkpoint, (layers, heads) in SHAPES.items():
        rows = [
            {
                "statistic": names[k] if k < len(names) else f"score {k}",
                "layer": layer,
                "head": head,
                "n": 9,
                "value": value,
                "low": value - 0.1,
                "high": value + 0.1,
            }
            for k in range(20)
            for (layer, head), value in np.ndenumerate(chance.random((layers, heads)))
        ]
        run_id = runs.record_run(database, "statistics", {}, Provenance(checkpoint=checkpoint, task="sst2"))
        runs.store_rows(database, run_id, rows)
    database.close()


def painted(window, address: str, name: str) -> float:
    """Milliseconds from choosing another score to its painted component, median."""
    visit(window, f"{address}/heads?checkpoint={name}")
    root = window.locator("[data-painted]").first
    waits = []
    for score in ("distance", "to first", "to previous", "to itself", "to next", "to separator"):
        painting = {"root": root.element_handle(), "before": root.get_attribute("data-painted")}
        window.get_by_role("combobox", name="Across").click()
        option = window.get_by_role("option", name=score, exact=True)
        began = window.evaluate("performance.now()")
        option.click()
        window.wait_for_function("({ root, before }) => root.dataset.painted !== before", arg=painting, polling="raf")
        waits.append(window.evaluate("performance.now()") - began)
    return statistics.median(waits[1:])


def main() -> dict[str, object]:
    """All figures."""
    figures: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder) / "atlas.duckdb")
        with serving(Path(folder)) as address, browsing() as browser:
            window = browser.new_page(viewport={"width": 1280, "height": 860})
            window.set_default_timeout(PATIENCE)
            figures["paint_ms_144"] = painted(window, address, "wide")
            figures["paint_ms_384"] = painted(window, address, "large")
    torch.manual_seed(0)
    model = BertModel(BertConfig()).eval().requires_grad_(requires_grad=False)
    checkpoint = Checkpoint(name="bert-base-sized", model=model, tokenizer=SegmentedNames())
    lengths = np.random.default_rng(0).integers(8, 40, ROWS)
    encodings = [random_encoding(int(length)) for length in lengths]
    score = find_score("statistics/previous")
    some = encodings[: max(8, ROWS // 8)]

    def captured(inputs) -> None:
        run(checkpoint, inputs, [PageScores(8)])

    def gallery() -> None:
        input_scores(checkpoint, encodings, score)

    captured(some), gallery()
    rounds = [(seconds(gallery), seconds(lambda: captured(encodings))) for _ in range(ROUNDS)]
    figures |= {"rows": ROWS, "gallery_ratio": statistics.median(a / b for a, b in rounds)}
    rounds = [
        (seconds(lambda: run_norms(checkpoint, some, [PageScores(8)])), seconds(lambda: captured(some)))
        for _ in range(ROUNDS)
    ]
    return figures | {"norms_ratio": statistics.median(a / b for a, b in rounds)}
