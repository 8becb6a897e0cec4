"""The times of `python -m tests.device`: ratios of P1, P2 and P5, and a BERT-base sweep beside its GEMM rate."""

import copy
import time
from collections.abc import Callable

import torch
from transformers import BertConfig, BertForSequenceClassification, BertModel

from core.capture.interventions import Intervention
from core.capture.running import predict, run
from core.capture.sweeping import Computing, every_head, sweep
from core.models.checkpoint import Checkpoint
from core.models.opening import open_checkpoint
from core.scoring.heads import SpecialPositions
from core.scoring.statistics import HeadStatistics
from core.studies.attention import features, relations, statistics
from core.studies.attention.inputs import SourceText
from core.studies.attention.measures import observe
from core.studies.tagging import open_pipeline, tag
from core.tasks.glue import read_rows
from tests.benchmarks.capture import PageScores, SegmentedNames, random_encoding

SIZES = {
    "base": {},
    "small": {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128},
}


def times(device: torch.device, *, size: str = "base", rows: int = 64) -> dict[str, float]:
    """Seconds and ratios, of the processor's clock with the device waited for. size, rows: smaller ones for a test."""
    found = {"gemm_tflops_float32": gemm_rate(device, size) / 1e12}
    found["p1_capture_over_bare_128"] = capture_ratio(device, size)
    found |= sweep_figures(device, size, rows, found["gemm_tflops_float32"])
    found["p5_features_over_bare"] = features_ratio(device, rows)
    return found | memory_figures(device, size)


def seconds(work: Callable[[], object], device: torch.device, rounds: int = 3) -> float:
    """The least of some rounds, after one that warms up."""
    best = float("inf")
    for turn in range(rounds + 1):
        _wait(device)
        began = time.perf_counter()
        work()
        _wait(device)
        best = min(best, time.perf_counter() - began) if turn else best
    return best


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def gemm_rate(device: torch.device, size: str) -> float:
    """Operations a second of multiplying large float32 matrices, without TF32 as everywhere here."""
    side = 4096 if size == "base" else 256
    first, second = (torch.randn(side, side, device=device) for _ in range(2))
    return 2 * side**3 / seconds(lambda: first @ second, device)


def capture_ratio(device: torch.device, size: str) -> float:
    """P1: a pass with all of the maps page's scores over a bare one, 8 inputs of 128 tokens."""
    torch.manual_seed(0)
    model = BertModel(BertConfig(**SIZES[size])).eval().requires_grad_(requires_grad=False).to(device)
    checkpoint = Checkpoint("random", model, SegmentedNames())
    encodings = [random_encoding(128) for _ in range(8)]
    tensors = checkpoint.inputs(encodings)

    def bare() -> None:
        model.set_attn_implementation("sdpa")
        with torch.no_grad():
            model(**tensors)

    scored = seconds(lambda: run(checkpoint, encodings, [PageScores(128)]), device)
    return scored / seconds(bare, device)


def sweep_figures(device: torch.device, size: str, rows: int, rate: float) -> dict[str, float]:
    """P2: a sweep of every head, the papers' way (one pass a head) beside it, and its share of the GEMM rate."""
    torch.manual_seed(0)
    model = BertForSequenceClassification(BertConfig(**SIZES[size])).eval().requires_grad_(False).to(device)
    checkpoint = Checkpoint("random", model, SegmentedNames())
    encodings = [random_encoding(48) for _ in range(rows)]
    heads = every_head(checkpoint.layers, checkpoint.heads)
    swept = seconds(lambda: sweep(checkpoint, encodings, heads), device, rounds=1)
    one = seconds(lambda: predict(checkpoint, encodings, interventions=[Intervention("disable", heads[0])]), device)
    parameters = sum(weights.numel() for weights in model.base_model.encoder.parameters())
    passes_of_layers = (checkpoint.layers + 1) / 2 / checkpoint.layers  # prefixes are shared
    work = 2 * parameters * rows * 48 * len(heads) * passes_of_layers
    half = Checkpoint("random", copy.deepcopy(model).to(torch.bfloat16), SegmentedNames())
    halved = seconds(lambda: sweep(half, encodings, heads, computing=Computing(dtype="bfloat16")), device, rounds=1)
    return {
        "sweep_seconds": swept,
        "sweep_seconds_bfloat16": halved,
        "p2_passes_over_sweep": one * len(heads) / swept,
        "sweep_share_of_gemm": work / swept / 1e12 / rate,
    }


def memory_figures(device: torch.device, size: str) -> dict[str, float]:
    """Memory of head statistics of one input of 4,096 tokens without maps, beside a bare pass and the size of the maps.

    In GB (10^9 bytes), without the weights; PyTorch counts memory only on CUDA: elsewhere there are no figures.
    """
    if device.type != "cuda":
        return {}
    length = 4096
    torch.manual_seed(0)
    config = BertConfig(**SIZES[size], max_position_embeddings=length)
    model = BertModel(config).eval().requires_grad_(requires_grad=False).to(device)
    checkpoint, encoding = Checkpoint("random", model, SegmentedNames()), random_encoding(length)
    tensors = checkpoint.inputs([encoding])

    def bare() -> None:
        model.set_attn_implementation("sdpa")
        with torch.no_grad():
            model(**tensors)

    def streamed() -> None:
        places = [SpecialPositions(encoding.first or 0, encoding.separators, 0)]
        run(
            checkpoint,
            [encoding],
            [HeadStatistics(checkpoint.layers, checkpoint.heads, causal=False).take(places, [0])],
        )

    return {
        "memory_bare_gb": _peak(bare, device) / 1e9,
        "memory_statistics_gb": _peak(streamed, device) / 1e9,
        "memory_of_maps_gb": 4 * checkpoint.layers * checkpoint.heads * length**2 / 1e9,
    }


def _peak(work: Callable[[], object], device: torch.device) -> int:
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    work()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated(device) - before


def features_ratio(device: torch.device, rows: int) -> float:
    """P5: features, relations and statistics in one pass, over the bare pass with tagging."""
    opened = open_checkpoint("atlas-encoder", device="cpu")
    checkpoint = Checkpoint(opened.name, opened.model.to(device), opened.tokenizer)
    texts = [row.text for row in read_rows("sst2", "dev")[:rows]]
    sources = [SourceText(k, str(k), text, None) for k, text in enumerate(texts)]

    def bare() -> None:
        run(checkpoint, [checkpoint.encode(text) for text in texts], [])
        tag(texts, open_pipeline())

    def everything() -> None:
        measures = [
            module.STUDY.measure(module.STUDY.options(), checkpoint) for module in (features, relations, statistics)
        ]
        observe(checkpoint, open_pipeline(), sources, measures)

    return seconds(everything, device, rounds=1) / seconds(bare, device, rounds=1)
