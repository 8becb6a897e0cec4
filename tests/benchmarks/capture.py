"""Capture with all of the maps page's scores against a bare SDPA forward, at BERT-base size.

Figures: `ratio_64`, `ratio_128` (capture with scores / bare forward, median of interleaved rounds), and
`memory_growth_mib` (peak resident memory of 8 rounds over that of 1: maps are dropped, so about 0).
"""

import resource
import statistics
import time

import torch
from transformers import BertConfig, BertModel

from core.capture.running import run
from core.models.checkpoint import Checkpoint
from core.models.encoding import Encoding
from core.scoring.registry import head_scores

ROUNDS, BATCH = 5, 8


def random_encoding(length: int) -> Encoding:
    ids = torch.randint(5, 30_000, (length,)).tolist()
    ends = {0, length - 1}
    return Encoding(
        text="x" * length,
        pair=None,
        ids=tuple(ids),
        segments=(0,) * length,
        tokens=("x",) * length,
        offsets=tuple(None if k in ends else (k, k + 1) for k in range(length)),
        sentence=tuple(None if k in ends else 0 for k in range(length)),
        first=0,
        separators=(length - 1,),
    )


class PageScores:
    """The maps page's scores of every head, layer by layer; the maps themselves are dropped."""

    def __init__(self, length: int) -> None:
        self.length, self.found = length, []

    def update(self, layer: int, weights: torch.Tensor, inputs: list[int]) -> None:
        self.found.append(head_scores(weights, first=0, separators=(self.length - 1,), causal=False))


class SegmentedNames:
    """The one thing the runner asks of a tokenizer."""

    model_input_names = ("input_ids", "token_type_ids", "attention_mask")


def seconds(work) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main() -> dict[str, object]:
    torch.manual_seed(0)
    model = BertModel(BertConfig()).eval().requires_grad_(requires_grad=False)
    model.set_attn_implementation("sdpa")
    checkpoint = Checkpoint(name="bert-base-sized", model=model, tokenizer=SegmentedNames())
    figures: dict[str, object] = {"threads": torch.get_num_threads()}
    for length in (64, 128):
        encodings = [random_encoding(length) for _ in range(BATCH)]
        tensors = checkpoint.inputs(encodings)

        def bare(tensors=tensors) -> None:
            model.set_attn_implementation("sdpa")
            with torch.no_grad():
                model(**tensors)

        def captured(encodings=encodings, length=length) -> None:
            run(checkpoint, encodings, [PageScores(length)], batch_tokens=10**6)

        bare(), captured()
        rounds = [(seconds(captured), seconds(bare)) for _ in range(ROUNDS)]
        figures[f"ratio_{length}"] = statistics.median(a / b for a, b in rounds)
        figures[f"bare_ms_{length}"] = 1000 * statistics.median(b for _, b in rounds)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(8):
        captured()
    figures["memory_growth_mib"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return figures
