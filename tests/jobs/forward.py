"""A study with real arithmetic: a small random encoder, seeded, on random inputs; rows hold float32 results."""

import os
import time
from functools import lru_cache
from pathlib import Path

from core.studies.study import Options, Row, Study, Unit


@lru_cache(maxsize=1)
def encoder():
    import torch

    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(d_model=32, nhead=4, dim_feedforward=64, batch_first=True)
    return torch.nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False).eval()


def units(options: Options) -> list[Unit]:
    return [Unit(f"input-{k}", {"seed": k}, size=options["tokens"]) for k in range(options["inputs"])]


def run(options: Options, unit: Unit) -> list[Row]:
    import torch

    generator = torch.Generator().manual_seed(unit.arguments["seed"])
    inputs = torch.randn(4, options["tokens"], 32, generator=generator)
    with torch.no_grad():
        for _ in range(options["repeat"]):
            hidden = encoder()(inputs)
    if options["folder"]:
        (Path(options["folder"]) / f"{unit.key}-{os.getpid()}").touch()
    time.sleep(options["seconds"])  # time enough for the test to kill this worker
    return [
        {"input": unit.arguments["seed"], "row": k, "value": hidden[k].sum().item(), "threads": torch.get_num_threads()}
        for k in range(4)
    ]


def summarize(options: Options, rows: list[Row]) -> list[Row]:
    return [
        {"n": len(rows), "total": sum(row["value"] for row in rows), "threads": max(row["threads"] for row in rows)}
    ]


STUDY = Study("forward", {"inputs": 10, "tokens": 24, "folder": "", "seconds": 0.0, "repeat": 1}, units, run, summarize)
