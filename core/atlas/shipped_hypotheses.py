"""What the hypotheses that ship know of every bundled head, as scores: criteria met, and held out and causal."""

import json
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path

import pandas as pd

from core import config
from core.atlas.rows import score_row
from core.models.present import present_weights
from core.studies.hypotheses.hypothesis import STUDY, HypothesisOptions, heads_known
from core.studies.hypotheses.predicates import Hypothesis
from core.studies.hypotheses.records import Criterion

FOLDER = config.DATA / "hypotheses"


def rows(checkpoint: str) -> pd.DataFrame:
    """The columns of `core.atlas.rows.ScoreRow`; none where nothing ships about this checkpoint as it is now."""
    file = FOLDER / checkpoint / "hypotheses.json"
    return _rows(file, checkpoint, present_weights(checkpoint)) if file.is_file() else pd.DataFrame()


@lru_cache(maxsize=4)
def _rows(file: Path, checkpoint: str, weights: str | None) -> pd.DataFrame:
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
