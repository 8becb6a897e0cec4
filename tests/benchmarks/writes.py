"""What it costs to read what heads write: on the text of 60 rows of the bundled encoder, and from its weights."""

from statistics import median
from time import perf_counter

import numpy as np
import torch

from core.capture.running import run
from core.studies import worker_cache
from core.studies.explanation import writes
from core.tasks.glue import read_rows

ROWS, ROUNDS = 60, 3


def main() -> dict[str, object]:
    """Return median seconds of ROUNDS alternating measurements, and how many bare passes over the rows they take."""
    torch.set_num_threads(1)
    checkpoint, rows = worker_cache.get_checkpoint("atlas-encoder", head="language"), read_rows("sst2", limit=ROWS)
    encodings = [checkpoint.encode(row.text, row.pair) for row in rows]
    options = writes.STUDY.options(limit=ROWS)
    (unit,) = writes.STUDY.units(options)
    times: dict[str, list[float]] = {"bare": [], "weights": [], "text": []}

    def measure(name: str, call) -> None:
        start = perf_counter()
        call()
        times[name].append(perf_counter() - start)

    writes.STUDY.run(options, unit)  # warm; scores from weights are kept for later units of the same options
    for seed in range(1, ROUNDS + 1):
        measure("bare", lambda: run(checkpoint, encodings, []))
        measure("text", lambda: writes.STUDY.run(options, unit))
        sample = np.random.default_rng(seed).integers(len(checkpoint.tokenizer), size=300)
        measure("weights", lambda of=sample: writes.from_weights(checkpoint, of, {}, np.random.default_rng(0)))
    bare, text, weights = (median(times[name]) for name in ("bare", "text", "weights"))
    return {"rows": ROWS, "bare_seconds": bare, "text_seconds": text, "weights_seconds": weights,
            "text_to_the_bare_pass": text / bare}  # fmt: skip
