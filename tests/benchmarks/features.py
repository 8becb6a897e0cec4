"""Features, links, head statistics and distances in one pass over rows of SST-2, against the bare pass.

The aim: at most 1.3 times the time of the bare forward plus tagging; no map is kept, so memory grows by each row's
values alone, which its tests need. Rows are the 872 dev rows of GLUE if that folder is there, otherwise (or with
`--bundled`) as many of the bundled ones; no text comes twice, so none is tagged for nothing. The bare pass reads the
same rows: pieces, forward without maps, tags. All run on one thread, as in the app and its workers, and alternate;
times are those of the process, which other work on the machine disturbs less than the clock.
"""

import argparse
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import torch

from core.capture.running import run
from core.models.opening import open_checkpoint
from core.studies.attention import features, relations, statistics
from core.studies.attention.inputs import SourceText
from core.studies.attention.measures import observe
from core.studies.tagging import open_pipeline, tag
from core.tasks.glue import read_rows

ROWS, ROUNDS = 872, 3
GLUE = Path(__file__).resolve().parents[3] / "shared" / "data" / "glue"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--bundled", action="store_true", help="the bundled examples, which are shorter than those of GLUE"
    )


def _sources(*, bundled: bool = False) -> list[SourceText]:
    folder = GLUE if GLUE.is_dir() and not bundled else None
    rows = [row for split in ("dev", "train") for row in read_rows("sst2", split, folder=folder)]
    texts = list(dict.fromkeys(row.text for row in rows))[:ROWS]
    return [SourceText(k, str(k), text, None) for k, text in enumerate(texts)]


def _measures(checkpoint):
    studies = [module.STUDY for module in (features, relations, statistics)]
    return [study.measure(study.options(), checkpoint) for study in studies]


def _grown(count: int) -> int:
    """By how many bytes the peak of this process grows in a pass over so many rows, all of them different texts."""
    checkpoint, pipeline = open_checkpoint("atlas-encoder"), open_pipeline()
    texts = [f"{row.text} {k}" for k in range(count // ROWS + 1) for row in _sources()][:count]
    sources = [SourceText(k, str(k), text, None) for k, text in enumerate(texts)]
    observe(checkpoint, pipeline, sources[:64], _measures(checkpoint))  # warm
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    observe(checkpoint, pipeline, sources, _measures(checkpoint))
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024


def _grown_in_a_fresh_process(count: int) -> int:
    code = f"from tests.benchmarks.features import _grown; print(_grown({count}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1])


def _timed(work) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def main(*, bundled: bool) -> dict[str, object]:
    """Median seconds of ROUNDS alternating passes, their ratio, and megabytes that passes of growing size add.

    Tags of the last 4096 texts are remembered; from there on each row adds its values alone.
    """
    torch.set_num_threads(1)
    checkpoint, sources = open_checkpoint("atlas-encoder"), _sources(bundled=bundled)
    texts = [one.text for one in sources]
    encodings = [checkpoint.encode(text) for text in texts]
    run(checkpoint, encodings[:64], [])  # warm
    times: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        known, fresh = open_pipeline(), open_pipeline()  # a pipeline just opened knows no text yet
        for name, work in {
            "encode": lambda: [checkpoint.encode(text) for text in texts],
            "forward": lambda: run(checkpoint, encodings, []),
            "tagging": lambda known=known: tag(texts, known),
            "everything": lambda fresh=fresh: observe(checkpoint, fresh, sources, _measures(checkpoint)),
        }.items():
            times.setdefault(name, []).append(_timed(work))
    seconds = {name: median(found) for name, found in times.items()}
    grown = {f"megabytes_{count}_rows": _grown_in_a_fresh_process(count) / 1e6 for count in (ROWS, 5 * ROWS, 8 * ROWS)}
    return {
        "rows": ROWS,
        "text_of": "GLUE" if GLUE.is_dir() and not bundled else "the bundled rows",
        **{f"{name}_seconds": one for name, one in seconds.items()},
        "ratio_to_the_bare_pass": seconds["everything"] / (seconds["encode"] + seconds["forward"] + seconds["tagging"]),
        "ratio_without_encoding": seconds["everything"] / (seconds["forward"] + seconds["tagging"]),
        **grown,
    }
