"""The counterparts of one head in other checkpoints, as far as they were matched."""

import pandas as pd

from core.attention import Head
from core.studies.comparison.records import Counterpart
from pages.parts.reports.provenance import present_runs

MOST = 4  # other checkpoints


def counterparts_of(checkpoint: str, head: Head) -> list[Counterpart]:
    """Of each other checkpoint the newest match, of the weights of today."""
    newest: dict[str, Counterpart] = {}
    for stored in present_runs("match"):
        if stored.checkpoint == checkpoint:
            for record in stored.among(Counterpart):
                if (record.layer, record.head) == (head.layer, head.head) and record.match:
                    newest.setdefault(record.compare, record)
    return list(newest.values())[:MOST]


def matched_with(checkpoint: str, other_checkpoint: str | None) -> list[Counterpart]:
    """The counterparts in the other checkpoint that are beyond chance, of the newest match; [] where the two were not
    matched."""
    for stored in present_runs("match"):
        records = stored.among(Counterpart)
        counterparts = [
            record for record in records if record.compare == other_checkpoint and record.checkpoint == checkpoint
        ]
        if counterparts:
            return [record for record in counterparts if record.matched]
    return []


def at_its_counterparts(scores: pd.DataFrame, counterparts: list[Counterpart]) -> pd.DataFrame:
    """Scores of the other checkpoint's heads, each at the place of the head that it is the counterpart of."""
    places = pd.DataFrame(
        [(record.layer, record.head, record.match_layer, record.match_head) for record in counterparts],
        columns=["layer", "head", "match_layer", "match_head"],
    )
    match_scores = scores.rename(columns={"layer": "match_layer", "head": "match_head"})
    return places.merge(match_scores, on=["match_layer", "match_head"])[list(scores.columns)]
