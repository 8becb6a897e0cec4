"""Why heads look where they look, at BERT-base's size (random weights): shares of 144 heads, and a click on a cell.

`shares_ratio`: score shares by groups (not single heads) over a pass that computes the maps page's statistics of the
same inputs, both in seconds of the process, median of interleaved rounds; ATLAS_BENCHMARK_ROWS says of how many rows
(872 are SST-2's dev rows), ATLAS_BENCHMARK_ROUNDS how many rounds (3).
`memory_growth_mib`: peak resident memory of all rows over that of the longest quarter of them, whose batches are as
large. `open_ms_*`: the last layer taken
apart, which costs most, when one of its heads is first looked at; `click_ms_*`: after that a cell's terms in words and
the map of one group; of the bundled encoder on a short sentence, and of BERT-base's size at 128 tokens. `maps_ms_*`:
what the page's maps take of the same input.
"""

import os
import resource
import statistics
import time

import numpy as np
import torch
from transformers import BertConfig, BertModel

from core import config
from core.capture.running import capture, run
from core.models.checkpoint import Checkpoint
from core.models.encoding import Encoding
from core.models.opening import open_checkpoint
from core.studies.explanation.cell_parts import layer_scores
from core.studies.explanation.why import share_sums
from tests.benchmarks.capture import PageScores, SegmentedNames, random_encoding, seconds

ROWS = int(os.environ.get("ATLAS_BENCHMARK_ROWS", "872"))
ROUNDS = int(os.environ.get("ATLAS_BENCHMARK_ROUNDS", "3"))
CLICKS, TERMS = 5, 8
SENTENCE = "The old dog never stopped when she called him."


def main() -> dict[str, object]:
    torch.manual_seed(0)
    model = BertModel(BertConfig()).eval().requires_grad_(requires_grad=False)
    checkpoint = Checkpoint(name="bert-base-sized", model=model, tokenizer=SegmentedNames())
    lengths = np.random.default_rng(0).integers(8, 40, ROWS)
    encodings = [random_encoding(int(length)) for length in lengths]
    figures: dict[str, object] = {"rows": ROWS, "heads": 144, "threads": torch.get_num_threads()}
    figures |= of_shares(checkpoint, encodings)
    bundled = open_checkpoint(config.ENCODER)
    return (
        figures
        | of_clicks("bundled", bundled, bundled.encode(SENTENCE, None))
        | of_clicks("base_128", checkpoint, random_encoding(128))
    )


def of_shares(checkpoint: Checkpoint, encodings: list[Encoding]) -> dict[str, object]:
    """The pass over rows, and its memory."""
    few = sorted(encodings, key=len)[-max(8, len(encodings) // 4) :]

    def shares(inputs: list[Encoding] = encodings) -> None:
        share_sums(checkpoint, inputs)

    def scored() -> None:
        run(checkpoint, encodings, [PageScores(8)])

    shares(few)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    first = process_seconds(shares)
    growth = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    rounds = [
        (first, process_seconds(scored)),
        *((process_seconds(shares), process_seconds(scored)) for _ in range(ROUNDS - 1)),
    ]
    return {
        "shares_ratio": statistics.median(a / b for a, b in rounds),
        "shares_ms_per_row": 1000 * statistics.median(a for a, _ in rounds) / len(encodings),
        "statistics_ms_per_row": 1000 * statistics.median(b for _, b in rounds) / len(encodings),
        "memory_growth_mib": growth / 1024,
    }


def process_seconds(work) -> float:
    """Of the process, which other work on the machine disturbs less than the clock."""
    began = time.process_time()
    work()
    return time.process_time() - began


def of_clicks(name: str, checkpoint: Checkpoint, encoding: Encoding) -> dict[str, object]:
    """A first look at the last layer, and clicks on its cells after that."""
    last = checkpoint.layers - 1
    opened, maps, clicked = [], [], []
    for number in range(CLICKS):
        opened.append(seconds(lambda: layer_scores(checkpoint, encoding, last)))
        maps.append(seconds(lambda: capture(checkpoint, encoding)))
        scores = layer_scores(checkpoint, encoding, last)

        def click(scores=scores, number=number) -> None:
            cell = scores.cell(number % checkpoint.heads, 2 + number, 1)
            cell.largest(TERMS)
            scores.map_of(number % checkpoint.heads, cell.terms[0].key_group)

        clicked.append(seconds(click))
    median = statistics.median
    return {
        f"open_ms_{name}": 1000 * median(opened),
        f"click_ms_{name}": 1000 * median(clicked),
        f"maps_ms_{name}": 1000 * median(maps),
    }
