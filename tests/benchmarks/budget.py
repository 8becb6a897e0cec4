"""Attention budgets in one pass over rows of SST-2, against the bare pass. The aim: at most 1.3 times its time.

Rows, the bare pass (tokens, forward without maps, tags) and the clock are those of `features`.
"""

from statistics import median

import torch

from core.capture.running import run
from core.models.opening import open_checkpoint
from core.studies.attention import budget
from core.studies.attention.measures import observe
from core.studies.tagging import open_pipeline, tag
from tests.benchmarks.features import ROUNDS, ROWS, _sources, _timed


def main() -> dict[str, object]:
    """Median seconds of ROUNDS alternating passes, and their ratio."""
    torch.set_num_threads(1)
    checkpoint, sources = open_checkpoint("atlas-encoder"), _sources()
    texts = [one.text for one in sources]
    run(checkpoint, [checkpoint.encode(text) for text in texts[:64]], [])  # warm
    bare, whole = [], []
    for _ in range(ROUNDS):
        known, fresh = open_pipeline(), open_pipeline()  # a pipeline just opened knows no text yet
        measure = budget.STUDY.measure(budget.STUDY.options(), checkpoint)

        def pass_alone(pipeline=known):
            run(checkpoint, [checkpoint.encode(text) for text in texts], [])
            tag(texts, pipeline)

        bare.append(_timed(pass_alone))
        whole.append(_timed(lambda of=fresh, measure=measure: observe(checkpoint, of, sources, [measure])))
    return {
        "rows": ROWS,
        "bare_seconds": median(bare),
        "budget_seconds": median(whole),
        "ratio_to_the_bare_pass": median(whole) / median(bare),
    }
