"""What the hypotheses that ship know of every bundled head, as scores: criteria met, and held out and causal."""

import json
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path

import pandas as pd

from .. import config
from ..models.bundled_checkpoints import bundled_names
from ..models.present import present_weights
from ..studies.hypotheses.hypothesis import STUDY, HypothesisOptions, heads_known
from ..studies.hypotheses.predicates import Hypothesis
from ..studies.hypotheses.records import Criterion
from .rows import score_row

FOLDER = config.DATA / "hypotheses"


def rows(checkpoint: str) -> pd.DataFrame:
    """The columns of `core.atlas.rows.ScoreRow`; none where nothing ships about this checkpoint as it is now."""
    file, weights = FOLDER / checkpoint / "hypotheses.json", present_weights(checkpoint)
    if checkpoint not in bundled_names() or weights is None or not file.is_file():  # a link may name any folder
        return pd.DataFrame()
    return _rows(file, checkpoint, weights)


@lru_cache(maxsize=4)
def _rows(file: Path, checkpoint: str, weights: str) -> pd.DataFrame:
    scores = []
    for batch in json.loads(file.read_text(encoding="utf-8"))["batches"]:
        if batch["weights_hash"] != weights:
            continue
        about = [
            Hypothesis(one["hypothesis"], one["layer"], one["head"], one["predicate"], tuple(one["parameters"].items()))
            for one in batch["hypotheses"]
        ]
        criteria = [Criterion.of(row) for one in batch["hypotheses"] for row in one["criteria"]]
        known = heads_known(HypothesisOptions(checkpoint=checkpoint, hypotheses=tuple(about)), criteria)
        scores += [asdict(score_row(STUDY.name, asdict(row), "shipped crate")) for row in known]
    return pd.DataFrame(scores)
