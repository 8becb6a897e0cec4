"""A study with real arithmetic: a small random encoder, seeded, on random inputs; rows hold float32 results."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pydantic.dataclasses

from core.store.rows import Row
from core.studies.contract import Done, Study, Unit


@lru_cache(maxsize=1)
def encoder():
    import torch

    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(d_model=32, nhead=4, dim_feedforward=64, batch_first=True)
    return torch.nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False).eval()


@pydantic.dataclasses.dataclass(frozen=True)
class Options:
    inputs: int = 10
    tokens: int = 24
    folder: str = ""
    seconds: float = 0.0
    repeat: int = 1


@dataclass(frozen=True)
class Seed:
    seed: int


@dataclass(frozen=True)
class Values:
    inputs: np.ndarray
    values: np.ndarray
    threads: int


class Forward(Study[Options, Values]):
    """Sums of an encoder's states."""

    name, options, partial, arguments = "forward", Options, Values, Seed

    def units(self, options: Options) -> list[Unit]:
        return [Unit(f"input-{k}", Seed(k), size=options.tokens) for k in range(options.inputs)]

    def run(self, options: Options, unit: Unit) -> Done[Values]:
        import torch

        seed = unit.arguments.seed
        generator = torch.Generator().manual_seed(seed)
        inputs = torch.randn(4, options.tokens, 32, generator=generator)
        with torch.no_grad():
            for _ in range(options.repeat):
                hidden = encoder()(inputs)
        if options.folder:
            (Path(options.folder) / f"{unit.key}-{os.getpid()}").touch()
        time.sleep(options.seconds)  # time enough for the test to kill this worker
        values = np.array([hidden[k].sum().item() for k in range(4)])
        return Done(Values(np.full(4, seed), values, torch.get_num_threads()))

    def merge(self, options: Options, partials: Sequence[Values]) -> Values:
        inputs, values = (np.concatenate([getattr(one, name) for one in partials]) for name in ("inputs", "values"))
        return Values(inputs, values, max(one.threads for one in partials))

    def rows(self, options: Options, merged: Values) -> list[Row]:
        return [{"n": len(merged.values), "total": sum(merged.values.tolist()), "threads": merged.threads}]


STUDY = Forward()
