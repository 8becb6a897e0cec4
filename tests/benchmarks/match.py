"""Matching 144 x 144 heads on 200 inputs beside capturing the maps of both; what is found where heads were permuted.

`time_ratio`: processor seconds of capturing two BERT-base-sized checkpoints on 200 inputs and matching all heads, over
those of capturing both with a reduction that reads every map once; draws of random weights not among either.
`found_permuted`: share of heads found where the second is the first with its heads permuted inside layers.
`random_matched`: share of the bundled encoder's heads matched with random weights of its shape.
"""

import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from transformers import BertConfig, BertModel

from core.capture.common_rows import common_tokens, drawn_queries
from core.capture.running import run
from core.models.checkpoint import Checkpoint
from core.models.classifier import random_copy
from core.models.opening import open_checkpoint
from core.scoring.counterparts import matching
from core.studies.comparison.counterparts import STUDY
from core.studies.comparison.head_similarity import TOKENS, CommonInputs, compared
from core.studies.comparison.records import CounterpartsSummary
from tests.benchmarks.capture import SegmentedNames, random_encoding
from tests.studies.permuted import permuted

INPUTS, SHORTEST, LONGEST, QUERIES = 200, 12, 40, 8


class LargestWeights:
    """The least that a pass over all maps can keep: the mean largest weight of every head."""

    def __init__(self) -> None:
        self.found: list[torch.Tensor] = []

    def update(self, layer: int, weights: torch.Tensor, inputs: list[int]) -> None:
        self.found.append(weights.amax(-1).mean((0, 2)))


def base_sized() -> Checkpoint:
    """Random weights, queries and keys four times as large: as they are drawn, all tokens are alike from the ninth
    layer on, so that the heads there have equal rows and any is as good a match as its own."""
    torch.manual_seed(0)
    model = BertModel(BertConfig(initializer_range=0.06)).eval().requires_grad_(requires_grad=False)
    for layer in model.encoder.layer:
        layer.attention.self.query.weight *= 4
        layer.attention.self.key.weight *= 4
    model.set_attn_implementation("sdpa")
    return Checkpoint(name="bert-base-sized", model=model, tokenizer=SegmentedNames())


def same_inputs() -> CommonInputs:
    rng = np.random.default_rng(0)
    encodings = tuple(random_encoding(int(length)) for length in rng.integers(SHORTEST, LONGEST, INPUTS))
    common = tuple(common_tokens(encoding, encoding) for encoding in encodings)
    queries = tuple(
        drawn_queries(len(encoding), queries=QUERIES, backward=False, seed=(0, number))
        for number, encoding in enumerate(encodings)
    )
    return CommonInputs(TOKENS, False, np.arange(INPUTS), encodings, encodings, common, queries)


def cpu_seconds(work) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def timed_and_found() -> dict[str, float]:
    first, inputs = base_sized(), same_inputs()
    other, order = permuted(first)
    run(first, inputs.first[:8], [LargestWeights()])  # warm
    capturing = [
        cpu_seconds(lambda checkpoint=checkpoint: run(checkpoint, inputs.first, [LargestWeights()]))
        for checkpoint in (first, other)
    ]
    found = []
    matched = cpu_seconds(lambda: found.append(matching(compared(first, other, inputs))))
    heads = order.shape[1]
    expected = np.concatenate([layer * heads + np.argsort(order[layer]) for layer in range(len(order))])
    share = float((found[0].match == expected).mean())
    return {"time_ratio": matched / sum(capturing), "found_permuted": share, "capture_seconds": sum(capturing)}


def random_matched(folder: Path) -> float:
    fresh = random_copy(open_checkpoint("atlas-encoder"), seed=1000)
    fresh.model.save_pretrained(folder)
    fresh.tokenizer.save_pretrained(folder)
    options = STUDY.read({"checkpoint": "atlas-encoder", "compare": str(folder), "limit": 60})
    partials = [STUDY.run(options, unit).partial for unit in STUDY.units(options)]
    (summary,) = CounterpartsSummary.among(STUDY.summarize(options, partials))
    return summary.matched / summary.heads


def main() -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        return {"threads": torch.get_num_threads(), **timed_and_found(), "random_matched": random_matched(Path(folder))}
