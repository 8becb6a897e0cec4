"""Which head of one checkpoint is which of another, as a pandas frame."""

from collections.abc import Sequence

import pandas as pd

from ..studies.comparison.match import STUDY
from ..studies.comparison.records import Counterpart


def counterparts(
    checkpoint: str, compare: str, texts: Sequence[str] = (), *, task: str = "sst2", limit: int = 200, draws: int = 99
) -> pd.DataFrame:
    """Each head's counterpart in another checkpoint, as `python -m core study match` finds it.

    Args:
        texts: sentences; without them rows of the task.
        task: whose rows; used without texts.
        draws: of random weights, at least 99.

    Returns:
        A row a head of `checkpoint`: layer, head, match_layer, match_head (zero-based), similarity, low, high, margin,
        p, agrees, matched.

    Raises:
        CheckpointError, InputError: a checkpoint cannot be opened, or the two have no words in common.
    """
    inputs = {"texts": list(texts)} if texts else {"tasks": [task]}
    options = STUDY.read({"checkpoint": checkpoint, "compare": compare, "limit": limit, "draws": draws} | inputs)
    partials = [STUDY.run(options, unit).partial for unit in STUDY.units(options)]
    return pd.DataFrame([head.as_row() for head in Counterpart.among(STUDY.summarize(options, partials))])
