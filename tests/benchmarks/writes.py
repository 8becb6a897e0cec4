"""What it costs to read what heads write: on the text of 60 rows of the bundled encoder, and from its weights."""

from statistics import median
from time import perf_counter

import torch

from core.capture.running import run
from core.models.opening import open_checkpoint
from core.studies.explanation import writes
from core.tasks.glue import read_rows

ROWS, ROUNDS = 60, 3


def main() -> dict[str, object]:
    """Return median seconds of ROUNDS alternating measurements, and how many bare passes over the rows they take."""
    torch.set_num_threads(1)
    checkpoint, rows = open_checkpoint("atlas-encoder", head="language"), read_rows("sst2", "dev", limit=ROWS)
    encodings = [checkpoint.encode(row.text, row.pair) for row in rows]
    times: dict[str, list[float]] = {"bare": [], "text": [], "weights": []}

    def measure(name: str, call) -> None:
        start = perf_counter()
        call()
        times[name].append(perf_counter() - start)

    run(checkpoint, encodings, [])  # warm
    for _ in range(ROUNDS):
        writes._from_weights.cache_clear()
        measure("bare", lambda: run(checkpoint, encodings, []))
        measure("text", lambda: writes._on_text(checkpoint, rows, range(len(rows)), 0))
        measure("weights", lambda: writes._from_weights(writes.WritesOptions(), checkpoint))
    bare, text, weights = (median(times[name]) for name in ("bare", "text", "weights"))
    return {"rows": ROWS, "bare_seconds": bare, "text_seconds": text, "weights_seconds": weights,
            "text_to_the_bare_pass": text / bare}  # fmt: skip
