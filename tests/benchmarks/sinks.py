"""What it costs to find sinks and to remove each: 20 rows of the bundled encoder, in bare passes over the rows."""

from time import perf_counter

import torch

from core.capture.running import run
from core.studies import worker_cache
from core.studies.ablation import sinks
from core.tasks.glue import read_rows

ROWS = 20


def main() -> dict[str, object]:
    """Return the seconds of both, and their ratio."""
    torch.set_num_threads(1)
    checkpoint = worker_cache.get_checkpoint("atlas-encoder")
    encodings = [checkpoint.encode(row.text, row.pair) for row in read_rows("sst2", limit=ROWS)]
    options = sinks.STUDY.options(limit=ROWS)
    run(checkpoint, encodings, [])  # warm
    start = perf_counter()
    run(checkpoint, encodings, [])
    bare = perf_counter() - start
    start, partials, units = perf_counter(), [], sinks.STUDY.units(options)
    while units:
        partials += [sinks.STUDY.run(options, unit).partial for unit in units]
        units = sinks.STUDY.more(options, partials)
    whole = perf_counter() - start
    return {"rows": ROWS, "bare_seconds": bare, "sinks_seconds": whole, "ratio_to_the_bare_pass": whole / bare}
