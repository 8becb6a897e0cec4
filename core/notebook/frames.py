"""Numbers of heads as pandas frames: of a loaded model on your own texts, and all that is known of a checkpoint."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..atlas import scores as stored_scores
from ..attention import AttentionMaps, Head
from ..config import settings
from ..errors import InputError
from ..scoring.intervals import Means
from ..scoring.registry import HEAD_SCORES, even_scores, map_scores
from ..store.database import Database
from ..store.recovery import LockedError
from .model_objects import checkpoint_of, encode, maps_of

Text = str | tuple[str, str]


def heads(model: Any, tokenizer: Any = None, texts: Text | Sequence[Text] = ()) -> pd.DataFrame:
    """What every head looks at in your texts: one row a head and score, L1H1 first.

    Args:
        model: as in `show`.
        tokenizer: as in `show`.
        texts: a sentence, a pair (a tuple of two), or a list of them.

    Returns:
        Columns: layer, head (zero-based), name, score, value (mean over the texts that have it), low and high (its
        95 % interval; NaN for fewer texts than carry one), baseline (the mean if every query looked evenly at all it
        sees), n (texts).

    Raises:
        CheckpointError, InputError: the model cannot be opened or seen into; there is no text.
    """
    if isinstance(model, str) and not hasattr(tokenizer, "convert_ids_to_tokens") and tokenizer is not None:
        tokenizer, texts = None, tokenizer
    rows = _rows(texts)
    checkpoint = checkpoint_of(model, tokenizer)
    names = list(HEAD_SCORES)
    means = Means(checkpoint.layers, checkpoint.heads, len(names))
    evenly = Means(checkpoint.layers, checkpoint.heads, len(names))
    for number, (text, pair) in enumerate(rows):
        encoding = encode(checkpoint, text, pair)
        maps = maps_of(checkpoint, encoding)
        places: dict[str, Any] = {"first": encoding.first, "separators": encoding.separators}
        for kept, scores in ((means, map_scores(maps, **places)), (evenly, even_scores(maps, **places))):
            _take(kept, _stacked(scores, maps), number)
    return _frame(means, evenly, names)


def atlas(checkpoint: Any, *, task: str | None = None, measure: bool = True) -> pd.DataFrame:
    """Every score of every head of a checkpoint that is stored, shipped, or else measured now: one row a score.

    While the app holds the database, its results are left out, and a warning says so.

    Args:
        task: only scores of this task, and those that belong to none; None for all.
        measure: where nothing is stored or shipped, measure a first set now (seconds).

    Returns:
        The columns of `core.atlas.rows.ScoreRow`: checkpoint, task, layer, head, score, value, low, high, n, baseline,
        q, source. One score as a table of heads: `frame.pivot(index="layer", columns="head", values="value")`.

    Raises:
        CheckpointError: from measuring.
        InputError: `checkpoint` is no text; also from measuring.
    """
    if not isinstance(checkpoint, str):
        raise InputError(
            f"The atlas is of a checkpoint by its name, folder or hub id; {type(checkpoint).__name__} was given: save "
            "a loaded model with save_pretrained and give the folder, or ask heads(model, tokenizer, texts)."
        )
    path = settings().database.expanduser()
    if not path.is_file():
        return stored_scores.atlas(None, checkpoint=checkpoint, task=task, measure=measure)
    try:
        with Database(path) as db:
            return stored_scores.atlas(db, checkpoint=checkpoint, task=task, measure=measure)
    except LockedError as error:
        warnings.warn(f"What the database has is left out: it is held by {error.holder}.", stacklevel=2)
        return stored_scores.atlas(None, checkpoint=checkpoint, task=task, measure=measure)


def _rows(texts: Text | Sequence[Text]) -> list[tuple[str, str | None]]:
    some = [texts] if isinstance(texts, (str, tuple)) else list(texts)
    rows = [(row, None) if isinstance(row, str) else row for row in some]
    if not rows or not all(isinstance(row, tuple) and len(row) == 2 and isinstance(row[0], str) for row in rows):
        raise InputError(
            f"Heads are scored on texts: a sentence, a pair of two, or a list of them; {str(texts)[:80]!r} is none: "
            "heads(model, tokenizer, texts)."
        )
    return rows


def _stacked(scores: Mapping[str, np.ndarray], maps: AttentionMaps) -> np.ndarray:
    """Every score of one input, [layer, head, score]; one number a layer, or one for all, is that of each head."""
    every = [np.asarray(scores[name], np.float64) for name in HEAD_SCORES]
    shape = (maps.layers, maps.heads)
    return np.stack([np.broadcast_to(score if score.ndim == 2 else score[:, None], shape) for score in every], -1)


def _take(means: Means, values: np.ndarray, number: int) -> None:
    counts = (~np.isnan(values[:, 0])).astype(float)  # an input has a score for all heads or for none
    for layer in range(len(values)):
        means.update(layer, values[layer][None], counts[layer][None], [number])


def _frame(means: Means, evenly: Means, names: Sequence[str]) -> pd.DataFrame:
    estimate, baseline = means.result(), evenly.result().value
    rows = [
        {
            "layer": layer,
            "head": head,
            "name": str(Head(layer, head)),
            "score": name,
            "value": estimate.value[layer, head, place],
            "low": estimate.low[layer, head, place],
            "high": estimate.high[layer, head, place],
            "baseline": baseline[layer, head, place],
            "n": int(estimate.n[place]),
        }
        for layer, head in np.ndindex(estimate.value.shape[:2])
        for place, name in enumerate(names)
    ]
    return pd.DataFrame(rows)
