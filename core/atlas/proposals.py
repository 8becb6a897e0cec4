"""Hypotheses suggested by a head's strongest scores, to be tested on other examples."""

import pandas as pd

from ..attention import Head
from ..studies.hypotheses.predicates import COMPONENTS, DIRECTIONS, OFFSETS, predicate_of
from ..studies.hypotheses.registering import Proposal
from ..tasks.features import FEATURES
from ..tasks.relations import RELATIONS, SAME_WORD

MOST = 3
CONTROL = {"previous": "next", "next": "previous", "first": "previous", "noun": "verb"}
SHARE = "score share"


def proposals(scores: pd.DataFrame, head: Head) -> list[Proposal]:
    """Return hypotheses suggested by a head's scores, the score furthest above its baseline first.

    At most MOST; at least one if the head has any score that a predicate covers.
    """
    mine = scores[(scores["layer"] == head.layer) & (scores["head"] == head.head)]
    above = (mine["value"] - mine["baseline"].fillna(0)).rename("above")
    ranked = mine.assign(above=above).dropna(subset=["above"]).sort_values("above", ascending=False, kind="stable")
    found: list[Proposal] = []
    for _, row in ranked.iterrows():
        proposed = _proposal(head, str(row["score"]))
        if proposed is not None and (row["above"] > 0 or not found) and len(found) < MOST:
            found.append(proposed)
    return found


def _proposal(head: Head, score: str) -> Proposal | None:
    """The hypothesis for a score; None if no predicate covers it."""
    study, name, about = (*score.split("/", 2), "", "")[:3]

    def tests(predicate: str) -> bool:
        return predicate_of(predicate).study == study

    if tests("offset") and name in OFFSETS:
        return Proposal(head, "offset", {"offset": name, "control": CONTROL[name]})
    if tests("looks-at") and name in ("max", "max-visible") and about in FEATURES and not FEATURES[about].special:
        return Proposal(head, "looks-at", {"feature": about, "control": CONTROL.get(about, "noun")})
    if tests("relation") and name in DIRECTIONS and about in RELATIONS:
        if about == SAME_WORD:
            return Proposal(head, "same-word", {"direction": name})
        control = "determiner-noun" if about != "determiner-noun" else "verb-object"
        return Proposal(head, "relation", {"relation": about, "direction": name, "control": control})
    if tests("decided-by") and name == SHARE and about in COMPONENTS:
        control = "token" if about != "token" else "position"
        return Proposal(head, "decided-by", {"component": about, "least": "0.3", "control": control})
    return None
