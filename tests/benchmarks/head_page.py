"""Seconds until the page of a head stands with its pictures, in a browser, for an encoder of BERT-base's size.

Random weights of 12 layers of 12 heads, width 768, with scores of every head in the database. Warm: the checkpoint is
open and its inputs were seen; then the page of another head is opened by its address. A page stands when its three
maps are painted and its chart of baselines is; `settled` is when the script has ended too.
"""

import statistics
import tempfile
import time
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
from transformers import AutoTokenizer, BertConfig, BertModel

from core import config
from core.models.present import present_weights
from core.scoring.registry import MAP_SCORES
from core.store import runs
from core.store.database import Database
from core.store.runs import Provenance
from tests.pages.browsing import PATIENCE, browsing, serving, settled

LAYERS, HEADS, WIDTH, TIMES = 12, 12, 768, 5


def bert_base(folder: Path) -> str:
    """Random weights with the bundled encoder's vocabulary."""
    tokenizer = AutoTokenizer.from_pretrained(config.BUNDLED_MODELS / config.ENCODER)
    shape = BertConfig(
        vocab_size=max(len(tokenizer), 30522),
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=4 * WIDTH,
    )
    BertModel(shape).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def store_scores(file: Path, checkpoint: str) -> None:
    """Statistics and roles of every head."""
    chance, about = np.random.default_rng(0), Provenance(checkpoint, present_weights(checkpoint), task="sst2")
    names = {"statistics": [score.name for score in MAP_SCORES], "roles": ["previous", "next", "first", "separator"]}
    with Database(file) as db:
        for study, statistics_of in names.items():
            rows = [
                {
                    "statistic": name,
                    "layer": layer,
                    "head": head,
                    "value": float(value),
                    "low": value - 0.01,
                    "high": value + 0.01,
                    "n": 300,
                    "baseline": 0.1,
                    "q": 0.001,
                    "checkpoint": checkpoint,
                    "task": "sst2",
                }
                for name in statistics_of
                for (layer, head), value in np.ndenumerate(chance.random((LAYERS, HEADS)))
            ]
            runs.store_rows(db, runs.record_run(db, study, {}, about), rows)


def stands(page, head: str) -> None:
    """Wait until the page of this head has painted its maps and its chart."""
    page.locator("p").filter(has_text=f"{head}:").first.wait_for(timeout=PATIENCE)
    page.locator(".root[data-painted] figcaption.title").filter(has_text="lowest:").first.wait_for(timeout=PATIENCE)
    page.locator('[data-testid="stVegaLiteChart"] :is(canvas, svg)').first.wait_for(timeout=PATIENCE)


def timed(page, open_page, head: str) -> tuple[float, float]:
    """Seconds until the page stands, and until its script has ended."""
    began = time.perf_counter()
    open_page()
    stands(page, head)
    first = time.perf_counter() - began
    settled(page)
    return first, time.perf_counter() - began


def main() -> dict[str, object]:
    with tempfile.TemporaryDirectory() as name, browsing() as browser:
        folder = Path(name)
        checkpoint = bert_base(folder / "bert-base-size")
        store_scores(folder / "atlas.duckdb", checkpoint)
        with serving(folder) as address:
            page = browser.new_page()

            def by_address(head: str):
                query = urlencode({"view": "one", "checkpoint": checkpoint, "rows": "sst2", "head": head})
                return lambda: page.goto(f"{address}/heads?{query}")

            cold = timed(page, by_address("L1H1"), "L1H1")
            warm = [timed(page, by_address(head), head) for head in (f"L{k + 2}H{k + 3}" for k in range(TIMES))]
    figures: dict[str, object] = {"cold, s": cold[0], "cold, settled, s": cold[1]}
    stood, ended = zip(*warm, strict=True)
    return figures | {
        "warm, median s": statistics.median(stood),
        "warm, most s": max(stood),
        "warm, settled, median s": statistics.median(ended),
    }
