"""Features, links, head statistics and distances in one pass over SST-2 dev rows, against the bare forward and tagging.

The aim: at most 1.5 times the time of the bare forward plus tagging; memory flat in the number of rows. Rows are the
872 of ../shared/data/glue where that folder is, else the bundled sample, as often as it takes to have as many.
"""

import time
import tracemalloc
from pathlib import Path

from core.capture.running import run
from core.models.opening import open_checkpoint
from core.studies import features, passes, relations, statistics
from core.tasks.glue import read_rows
from core.tasks.language import open_pipeline, tag

ROWS = 872
GLUE = Path(__file__).resolve().parents[3] / "shared" / "data" / "glue"


def _sources() -> list[passes.Source]:
    rows = read_rows("sst2", "dev", folder=GLUE if GLUE.is_dir() else None)
    return [passes.Source(k, str(k), rows[k % len(rows)].text, None) for k in range(ROWS)]


def _measures(checkpoint):
    options = features.DEFAULTS | relations.DEFAULTS | statistics.DEFAULTS
    return [module.make(checkpoint, options) for module in (features, relations, statistics)]


def _peak(checkpoint, pipeline, sources) -> int:
    """Bytes that Python and numpy held at most during a pass, tags known."""
    tracemalloc.start()
    passes.observe(checkpoint, pipeline, sources, _measures(checkpoint))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def main() -> dict[str, object]:
    """Times of one run each, in seconds, and their ratio."""
    checkpoint, sources = open_checkpoint("atlas-encoder"), _sources()
    encodings = [checkpoint.encode(one.text) for one in sources]
    run(checkpoint, encodings[:64], [])  # warm
    started = time.perf_counter()
    run(checkpoint, encodings, [])
    forward = time.perf_counter() - started
    started = time.perf_counter()
    tag([one.text for one in sources], open_pipeline())
    tagging = time.perf_counter() - started
    pipeline = open_pipeline()  # a fresh one knows no text yet
    started = time.perf_counter()
    passes.observe(checkpoint, pipeline, sources, _measures(checkpoint))
    everything = time.perf_counter() - started
    half, whole = (_peak(checkpoint, pipeline, sources[:count]) for count in (ROWS // 2, ROWS))
    return {
        "rows": ROWS,
        "forward_seconds": forward,
        "tagging_seconds": tagging,
        "everything_seconds": everything,
        "ratio_to_forward_and_tagging": everything / (forward + tagging),
        "peak_memory_ratio_872_to_436_rows": whole / half,
    }
