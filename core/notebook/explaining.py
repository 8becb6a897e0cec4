"""Why a head looks where it looks in a sentence: as a pandas frame, and as maps that one group alone would give."""

import copy
from typing import Any, Literal

import pandas as pd

from ..attention import Head
from ..drawing.maps_page import MapsSource
from ..drawing.panes import Pane
from ..drawing.payload import as_bytes
from ..models.checkpoint import Checkpoint
from ..studies.explanation.cell_parts import LayerScores, layer_scores
from .model_objects import borrowed, checkpoint_of, encode
from .showing import MapsWidget

LARGEST = 5  # terms of a cell


def why(model: Any, tokenizer: Any, text: str, head: str | Head, *, pair: str | None = None) -> pd.DataFrame:
    """What decides where a head looks: of every token's strongest key, the largest terms of the score.

    Args:
        model: as in `show`: a model, or a name or folder.
        tokenizer: of the model; None with a name or folder.
        head: "L2H5", or a Head.
        pair: the second text, if there is one.

    Returns:
        A row a term: query, key (zero-based places), query_token, key_token, weight, score (less the row's mean, which
        the terms add up to), query_part, key_part, value; the last row of a cell is all other terms together.

    Raises:
        CheckpointError, InputError, InterventionError: the model, the head or the family cannot be taken apart.
    """
    _, chosen, scores = _taken_apart(model, tokenizer, text, head, pair)
    rows = []
    for query, token in enumerate(scores.encoding.tokens):
        key = int(scores.inputs.weights[0, chosen.head, query].argmax())
        cell = scores.cell(chosen.head, query, key)
        cell_facts = {"query": query, "key": key, "query_token": token, "key_token": scores.key_encoding.tokens[key]}
        for term in cell.largest(LARGEST):
            rows.append(
                {
                    **cell_facts,
                    "weight": cell.weight,
                    "score": cell.score,
                    "query_part": term.query_part,
                    "key_part": term.key_part,
                    "value": term.value,
                }
            )
    return pd.DataFrame(rows)


def why_maps(
    model: Any,
    tokenizer: Any,
    text: str,
    head: str | Head,
    *,
    pair: str | None = None,
    side: Literal["query", "key"] = "key",
    height: int = 560,
) -> MapsWidget:
    """The head's map, and beside it the map that each group of contributions to one side would draw alone.

    Args:
        model: as in `why`.
        tokenizer: as in `why`.
        text: as in `why`.
        head: as in `why`.
        pair: as in `why`.

    Returns:
        The widget, a pane for the map and one for each group.

    Raises:
        CheckpointError, InputError, InterventionError: as `why`.
    """
    checkpoint, chosen, scores = _taken_apart(model, tokenizer, text, head, pair)
    maps = {f"{chosen} as it is": scores.inputs.weights[0, chosen.head]}
    maps |= {
        f"by {group} in the {side} alone": scores.map_of(chosen.head, group, side) for group in scores.groups(side)
    }
    tokens, keys = scores.encoding.tokens, scores.key_encoding.tokens
    panes = [
        Pane(
            title, 1, 1, tokens, as_bytes(weights.float().cpu().numpy()), checkpoint.causal, named=str(chosen),
            scores={}, key_tokens=None if keys == tokens else keys, part=chosen.part,
        )
        for title, weights in maps.items()
    ]  # fmt: skip
    source = MapsSource(checkpoint.name, text, pair, checkpoint.weights_hash)
    return MapsWidget(panes, source, head=str(chosen), height=height)


def _taken_apart(
    model: Any, tokenizer: Any, text: str, head: str | Head, pair: str | None
) -> tuple[Checkpoint, Head, LayerScores]:
    checkpoint = _exact(checkpoint_of(model, tokenizer))
    chosen = head if isinstance(head, Head) else Head.parse(head)
    with borrowed(checkpoint):
        scores = layer_scores(checkpoint, encode(checkpoint, text, pair), chosen.layer, part=chosen.part)
    scores.check(chosen.head, 0, 0)
    return checkpoint, chosen, scores


def _exact(checkpoint: Checkpoint) -> Checkpoint:
    """The checkpoint, or a copy in float32 of one in half precision: its scores are taken apart exactly."""
    if checkpoint.dtype not in ("float16", "bfloat16"):
        return checkpoint
    return Checkpoint(checkpoint.name, copy.deepcopy(checkpoint.model).float(), checkpoint.tokenizer)
