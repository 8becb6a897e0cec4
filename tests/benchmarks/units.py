"""What a unit of each study costs on one thread at BERT-base size, and what the whole paper costs from that.

Each study's own `run` on a few rows of the bundled MRPC sample, its checkpoint opened before; weights are random,
which costs the same. `PLAN` is the paper: how often each study sees a task's 1000 rows.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from core.config import ENCODER
from core.jobs import worker
from core.models.opening import open_checkpoint
from core.patterns.classifier_registry import bundled_classifier, classifying_options
from core.store.database import Database
from core.tasks.glue import TASKS, read_rows

TASK, ROWS, SEEDS = "mrpc", 1000, 3
GPU_FLOPS = 10e12  # what one GPU is assumed to sustain in float32; its sheet says more
SINGLE_FILE = 0.9  # of two workers' time on two cores that is work: the benchmark `workers`
MEASURED: dict[str, dict[str, Any]] = {  # study: options beside the checkpoint; rows measured
    "pattern-shares": {"limit": 12},
    "features": {"limit": 12},
    "relations": {"limit": 12},
    "statistics": {"limit": 12},
    "effective": {"limit": 4},
    "change": {"limit": 12},
    "disable": {"limit": 2, "what": "heads"},
    "importance": {"limit": 4, "sweep": None},
    "prune": {"limit": 4, "order_rows": 4, "orders": ["random"], "random_orders": 1},
    "finetune": {"settings": {"dev_limit": 2, "epochs": 1, "batch": 8}},
}
PLAN: dict[str, float] = {  # passes over 7 tasks x 1000 rows; a tuned checkpoint has three seeds
    "pattern-shares": 1 + SEEDS,  # before and after fine-tuning
    "features": 1 + SEEDS,
    "relations": 1 + SEEDS,
    "statistics": 1 + SEEDS,
    "effective": 0.1,  # 100 rows a task, before fine-tuning
    "change": SEEDS,
    "disable": SEEDS,  # every head; layers add 12 variants to 144
    "importance": SEEDS,
    "prune": SEEDS * 7,  # importance, sweep and five random orders
    "finetune": 2 * SEEDS * 3,  # pre-trained and random, three epochs of 1000 rows
}


def base_sized(folder: Path) -> str:
    """A BERT-base with random weights and the bundled tokenizer, as a classifier of MRPC."""
    from transformers import BertConfig, BertForSequenceClassification

    tokenizer = open_checkpoint(ENCODER).tokenizer
    labels = dict(enumerate(TASKS[TASK].labels))
    config = BertConfig(vocab_size=len(tokenizer), id2label=labels, label2id={v: k for k, v in labels.items()})
    torch.manual_seed(0)
    BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def options_of(study: str, base: str, folder: Path, db: Database) -> dict[str, Any]:
    """The options of one measured unit."""
    chosen = MEASURED[study]
    if study == "pattern-shares":
        return classifying_options(db, str(bundled_classifier(db, "bert")), checkpoints=[base], task=TASK, **chosen)
    if study == "change":
        return {"before": base, "after": [base], "task": TASK, **chosen}
    if study in ("disable", "importance", "prune"):
        return {"checkpoint": base, "task": TASK, **chosen}
    more = {"seeds": [0]} if study == "finetune" else {}
    return {"checkpoint": base, "tasks": [TASK], **more, **chosen}


def rate_of(study: str, base: str, folder: Path, db: Database) -> float:
    """Pieces a second of a study; of a fine-tuning, which opens and saves within its unit, between two sizes."""
    options = options_of(study, base, folder, db)
    if study != "finetune":
        return pieces(TASK, base, MEASURED[study]["limit"]) / unit_seconds(study, options)
    found = []
    for rows in (8, 24):
        settings = options["settings"] | {"train_limit": rows}
        seconds = unit_seconds(study, options | {"settings": settings, "out": str(folder / f"tuned-{rows}")})
        found.append((pieces(TASK, base, rows, "train"), seconds))
    return (found[1][0] - found[0][0]) / (found[1][1] - found[0][1])


def pieces(task: str, base: str, limit: int, split: str = "dev") -> int:
    """Pieces of `limit` rows of a task."""
    opened = open_checkpoint(base)
    return sum(len(opened.encode(row.text, row.pair)) for row in read_rows(task, split, limit=limit))


def timed(run: Callable[[], Any]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def unit_seconds(study: str, options: dict[str, Any]) -> float:
    """Seconds of the study's first unit, its checkpoint opened by the same unit before (fine-tuning: opened within)."""
    divided = worker.divide(study, options)
    run = lambda: worker.run_unit(study, divided["options"], divided["units"][0])  # noqa: E731
    if study != "finetune":
        run()
    return timed(run)


def matmul_flops() -> float:
    """Multiply-adds of one thread, twice, a second: 1024 x 1024 float32."""
    a = torch.randn(1024, 1024)
    return 2 * 1024**3 / min(timed(lambda: a @ a) for _ in range(8))


def costs(rates: dict[str, float], pieces_of_all: float, flops: float) -> dict[str, dict[str, float]]:
    """Hours of each study in the plan: on one core, two, one GPU, 16 workers. Arithmetic only.

    rates: pieces a second of one thread; pieces_of_all: of 7 tasks x 1000 rows. The GPU does the whole unit as many
    times faster as it multiplies matrices, which is its bound: what stays on the CPU (tags, bootstraps) is not less.
    """
    found = {}
    for study, passes in PLAN.items():
        one = passes * pieces_of_all / rates[study] / 3600
        found[study] = {
            "one core": one,
            "two cores": one / 2 / SINGLE_FILE,
            "one GPU": one * flops / GPU_FLOPS,
            "16 workers": one / 16 / SINGLE_FILE,
        }
    names = next(iter(found.values()))
    return found | {"all": {name: sum(row[name] for row in found.values()) for name in names}}


def main() -> dict[str, object]:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name, Database(Path(name) / "atlas.duckdb") as db:
        folder = Path(name)
        base = base_sized(folder / "base")
        flops = matmul_flops()
        rates = {study: rate_of(study, base, folder, db) for study in MEASURED}
        of_all = sum(pieces(task, base, 100) for task in TASKS) * ROWS / 100
    found: dict[str, object] = {
        "matrix multiply of one thread, GFLOP/s": flops / 1e9,
        "pieces of 7 x 1000 rows": of_all,
    }
    found |= {f"{study}, pieces/s": rate for study, rate in rates.items()}
    for study, hours in costs(rates, of_all, flops).items():
        found |= {f"{study} on {place}, h": value for place, value in hours.items()}
    return found
