"""Worlds of the dossier: hypotheses about untrained heads, repeated rows, batches of hypotheses, heads of small effects.
Cases for `registry`.

Untrained checkpoints are small encoders of random weights, whose queries and keys are scaled, on bundled rows. What is
said of each head is its strongest feature on other rows, as *Heads > One head* proposes it.
"""

from collections.abc import Iterator, Sequence
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from core.attention import Head
from core.models.checkpoint import Checkpoint
from core.models.fresh import random_copy
from core.scoring.level_spending import batch_level
from core.studies.attention.inputs import SourceText
from core.studies.attention.measures import FeatureMeasure
from core.studies.attention.partials import InputOffset
from core.studies.attention.passes import observe
from core.studies.hypotheses.criteria import Batch, criteria_of
from core.studies.hypotheses.predicates import LEAST_WEIGHT, Hypothesis, checked
from core.studies.hypotheses.readings import Reading, beyond, effect_estimate
from core.studies.hypotheses.row_choice import input_marks
from core.studies.hypotheses.runs import RANDOM
from core.studies.worker_cache import spread_as
from core.tasks.glue import TaskRow
from tests.simulations import counterpart_worlds
from tests.simulations import planted_attention as planting
from tests.simulations.registry import Case, Planted, known

FEATURES = ("noun", "verb", "pronoun", "punctuation")
INPUTS = 60  # that judge, and as many that hypotheses are thought of on
LEAST = float(LEAST_WEIGHT)
STUDY, JUDGED, THOUGHT = "features", "judged on", "thought of on"


def _measured(checkpoint: Checkpoint, texts: Sequence[str], seed: int) -> Any:
    """What the study of features leaves."""
    measure = FeatureMeasure(checkpoint, FEATURES, seed=seed)
    sources = [SourceText(number, f"row-{number}", text, None) for number, text in enumerate(texts)]
    observe(checkpoint, planting.pipeline(), sources, [measure])
    return SimpleNamespace(pieces=(measure.sums(InputOffset(checkpoint.name, "t", 0)),))


@cache
def _texts() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Rows that hypotheses are thought of on, and rows that judge."""
    texts = [text for text in planting.pool("sst2") if isinstance(text, str)]
    return tuple(texts[:INPUTS]), tuple(texts[INPUTS : 2 * INPUTS])


def _held_out(hypotheses: Sequence[Hypothesis], partials: dict[tuple[str, str, str], Any]) -> list[bool]:
    """Whether each is held out, in one batch, the first on its rows."""
    rows = criteria_of(hypotheses, Batch("c", batch_level(1), len(hypotheses)), [], partials)
    return [row.state == "met" for row in rows if row.criterion == "held out"]


def _strongest(thought: Any) -> list[Hypothesis]:
    """Of each head its strongest feature."""
    (sums,) = thought.pieces
    from core import studies

    observer = studies.attention.measures.features_again(sums)
    effects = {name: observer.result()["max", name][1].value[..., 0] for name in FEATURES}
    made = []
    for layer, head in np.ndindex(*effects["noun"].shape):
        name = max(FEATURES, key=lambda feature: np.nan_to_num(effects[feature][layer, head], nan=-1.0))
        parameters = checked("looks-at", {"feature": name})
        made.append(Hypothesis(f"{Head(layer, head)}", layer, head, "looks-at", parameters))
    return made


def untrained(scale: float, seed: int) -> list[bool]:
    """Whether a hypothesis about each untrained head is held out."""
    checkpoint = counterpart_worlds.scaled(random_copy(counterpart_worlds.small(), seed=1000 + seed), scale)
    thought, judged = _texts()
    own = _measured(checkpoint, thought, seed)
    partials = {(STUDY, "c", THOUGHT): own, (STUDY, "c", JUDGED): _measured(checkpoint, judged, seed)}
    for number, rows in enumerate(RANDOM, 1):
        fresh = spread_as(random_copy(checkpoint, seed=number), checkpoint)
        partials[STUDY, "c", rows] = _measured(fresh, judged, seed)
    return _held_out(_strongest(own), partials)
