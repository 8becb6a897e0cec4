"""Why a head looks where it looks in a sentence, as a pandas frame."""

import copy
from typing import Any

import pandas as pd

from core.attention import Head
from core.models.checkpoint import Checkpoint
from core.notebook.loaded import borrowed, checkpoint_of, encode
from core.studies.explanation.cell_parts import layer_scores

LARGEST = 5  # terms of a cell


def why(model: Any, tokenizer: Any, text: str, head: str | Head, *, pair: str | None = None) -> pd.DataFrame:
    """What decides where a head looks: of every token's strongest key, the largest terms of the score.

    Args:
        model, tokenizer: as in `show`; a name or folder with tokenizer None.
        text, pair: the input.
        head: "L2H5", or a Head.

    Returns:
        A row a term: query, key (zero-based places), query_token, key_token, weight, score (less the row's mean, which
        the terms add up to), query_part, key_part, value; the last row of a cell is all other terms together.

    Raises:
        CheckpointError, InputError, InterventionError: the model, the head or the family cannot be taken apart.
    """
    checkpoint = _exact(checkpoint_of(model, tokenizer))
    chosen = head if isinstance(head, Head) else Head.parse(head)
    encoding = encode(checkpoint, text, pair)
    with borrowed(checkpoint):
        scores = layer_scores(checkpoint, encoding, chosen.layer, part=chosen.part)
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


def _exact(checkpoint: Checkpoint) -> Checkpoint:
    """The checkpoint, or a copy in float32 of one in half precision: its scores are taken apart exactly."""
    if checkpoint.dtype not in ("float16", "bfloat16"):
        return checkpoint
    return Checkpoint(checkpoint.name, copy.deepcopy(checkpoint.model).float(), checkpoint.tokenizer)
