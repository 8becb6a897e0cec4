"""Statistics of long inputs without maps, beside the same from whole maps; and long passes with every score that can.

A layer of BERT-base's width (12 heads of 64, random states) with the head statistics and 20 features of random tokens,
which are all of the first kind: the attention function either hands whole maps on or takes what is needed from blocks
of queries. Each length and way runs in a process of its own, so that its peak is its own; processor seconds on one
thread, the least of ROUNDS. Figures: `time_ratio_4096` and `memory_ratio_4096` (whole maps over blocks),
`max_difference` of the two ways' statistics where both ran (relative to numbers above 1), and both by length.
ATLAS_BENCHMARK_STREAMING=passes adds whole passes of 12 layers at 16,384 tokens (several minutes each).
"""

import json
import os
import subprocess
import sys
import time

import numpy as np
import torch

from core.capture import streaming
from core.capture.function import AttentionRun, attention, running
from core.map_sums import divided, together
from core.scoring.features import FeatureAttention, mark
from core.scoring.heads import SpecialPositions
from core.scoring.statistics import HeadStatistics
from tests.benchmarks.families import Peak

LENGTHS, WHOLE, ROUNDS, HEADS, DIM = (512, 2048, 4096, 8192, 16_384), (512, 2048, 4096), 3, 12, 64
PASSES = {"modernbert": {"global_attn_every_n_layers": 3, "local_attention": 128}, "llama": {"num_key_value_heads": 4}}


def observers(length: int) -> list:
    places = [SpecialPositions(0, (length - 1,), 0)]
    chance = np.random.default_rng(0)
    tokens = chance.random((20, length)) < 0.1
    marks = [mark(tokens, range(1, length - 1), classifying=0, seed=[0])]
    features = FeatureAttention(1, HEADS, [str(k) for k in range(20)], causal=False)
    return [HeadStatistics(1, HEADS, causal=False).take(places, [0]), features.take(marks, [0])]


def run_of(length: int, *, whole: bool) -> tuple[AttentionRun, list]:
    """What the attention function is asked for, as `core.capture.running` asks it."""
    wanted = observers(length)
    if whole:

        def watch(layer: int, weights: torch.Tensor) -> None:
            for observer in wanted:
                observer.update(layer, weights, [0])

        return AttentionRun(1, watcher=watch, watched=frozenset({0})), wanted
    parts = [observer.needs([0], length, length)[0] for observer in wanted]
    asked = together(parts)

    def take(layer: int, sums: list) -> None:
        for observer, own in zip(wanted, divided(sums[0], asked, parts), strict=True):
            observer.update_sums(layer, [own], [0])

    return AttentionRun(1, streamer=streaming.Streamer([asked], take, frozenset({0}))), wanted


def measured(length: int, *, whole: bool) -> dict[str, object]:
    """Seconds and megabytes of one layer, and its statistics."""
    torch.manual_seed(0)
    states = [torch.randn(1, HEADS, length, DIM) for _ in range(3)]
    module, least, peak = torch.nn.Identity().eval(), float("inf"), Peak()
    warm, _ = run_of(64, whole=whole)
    small = [state[:, :, :64] for state in states]
    with torch.no_grad(), running(warm):
        attention(module, *small, None)
    import psutil

    before = psutil.Process().memory_info().rss
    with peak:
        for _ in range(ROUNDS if length <= 4096 else 1):
            asked, wanted = run_of(length, whole=whole)
            began = time.process_time()
            with torch.no_grad(), running(asked):
                attention(module, *states, None)
            least = min(least, time.process_time() - began)
    found = np.concatenate([observer.means.sums.sum(0).ravel() for observer in wanted])
    return {"seconds": least, "megabytes": (peak.most - before) / 1e6, "statistics": np.nan_to_num(found).tolist()}


def long_pass(name: str) -> dict[str, float]:
    """Seconds, by the clock and of all processors, and megabytes of a pass of 12 layers over 16,384 tokens, with every
    measure that can."""
    from core.capture.running import run
    from core.scoring.distances import HeadDistances
    from core.scoring.mean_patterns import MeanPatterns
    from tests.benchmarks.capture import random_encoding
    from tests.capture.conftest import built

    length = LENGTHS[-1]
    sizes = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 1152}
    sizes |= {"max_position_embeddings": length, "initializer_range": 0.02} | PASSES[name]
    checkpoint = built(name, sizes, encodes=name == "modernbert")
    encoding = random_encoding(length)
    from dataclasses import replace

    encoding = replace(encoding, ids=tuple(piece % len(checkpoint.tokenizer) for piece in encoding.ids))
    causal = checkpoint.causal
    tokens = np.random.default_rng(0).random((20, length)) < 0.1
    at = length - 1 if causal else 0
    marks = [mark(tokens, encoding.ordinary, classifying=at, seed=[0])]
    wanted = [
        HeadStatistics(12, 12, causal=causal).take([SpecialPositions(0, (length - 1,), at)], [0]),
        FeatureAttention(12, 12, [str(k) for k in range(20)], causal=causal).take(marks, [0]),
        HeadDistances(12, 12, queries=4).take([0]),
        MeanPatterns(12, 12),
    ]
    import psutil

    before, peak = psutil.Process().memory_info().rss, Peak()
    clock, processors = time.perf_counter(), time.process_time()
    with peak:
        run(checkpoint, [encoding], wanted)
    seconds = {"seconds": time.perf_counter() - clock, "processor_seconds": time.process_time() - processors}
    return seconds | {"megabytes": (peak.most - before) / 1e6}


def in_a_process(call: str, threads: int = 1) -> dict:
    code = f"import json, torch; torch.set_num_threads({threads}); from tests.benchmarks import streaming as own; "
    code += f"print(json.dumps(own.{call}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def apart(first: list[float], second: list[float]) -> float:
    """The largest difference, of numbers above 1 (distances in tokens) relative to them."""
    return float((np.abs(np.subtract(first, second)) / np.maximum(np.abs(first), 1)).max())


def main() -> dict[str, object]:
    blocks = {length: in_a_process(f"measured({length}, whole=False)") for length in LENGTHS}
    whole = {length: in_a_process(f"measured({length}, whole=True)") for length in WHOLE}
    differences = [apart(whole[length]["statistics"], blocks[length]["statistics"]) for length in WHOLE]
    figures: dict[str, object] = {
        "time_ratio_4096": whole[4096]["seconds"] / blocks[4096]["seconds"],
        "memory_ratio_4096": whole[4096]["megabytes"] / blocks[4096]["megabytes"],
        "max_difference": max(differences),
        "lengths": {
            str(length): {
                f"{way}_{figure}": round(found[length][figure], 3)
                for way, found in (("blocks", blocks), ("maps", whole))
                if length in found
                for figure in ("seconds", "megabytes")
            }
            for length in LENGTHS
        },
    }
    if os.environ.get("ATLAS_BENCHMARK_STREAMING") == "passes":
        figures |= {f"pass_16384_{name}": in_a_process(f"long_pass({name!r})", threads=2) for name in PASSES}
    return figures
