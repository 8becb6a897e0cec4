"""Sentences on words, made from the rows of empty worlds: nothing is said of a head that is not there.

The head page's line, the studies' headlines, the heads that views outline, and the report's claim on nouns and
pronouns. Which sentences there are stands in docs/results/calibration.md.
"""

from collections.abc import Collection

import pytest

from core.atlas.head import facts
from core.atlas.scores import atlas
from core.attention import Head
from core.report.claims.maps import diagonal_heads
from core.report.claims.outcomes import UNDECIDED, UNTESTED
from core.store.database import Database
from core.store.runs import Provenance, record_run, store_rows
from core.studies.attention import dependencies, features, relations, roles, statistics
from core.studies.attention.records import Score
from core.tasks.features import FEATURES
from pages.parts.reports.attending import above_null
from tests.report.evidence_made import evidence, found
from tests.simulations import planted_attention as planting
from tests.simulations.attention_worlds import ALLOWED, feature_rows, relation_rows, role_rows
from tests.simulations.frame_worlds import dependency_rows
from tests.simulations.planted_draws import AT, sums_of

INPUTS, SEED = 60, 0
EMPTY = ("uniform", "distance", "kind of word", "noise")


def _allowed(world: str, study: str) -> Collection[str]:
    """Names that a study may claim in a world."""
    return {name.partition(":")[0] for name in ALLOWED[study][1][world]}


@pytest.mark.parametrize(
    "world", [world if world == "kind of word" else pytest.param(world, marks=pytest.mark.slow) for world in EMPTY]
)
def test_the_head_page_says_of_no_head_what_its_world_has_not(world, tmp_path):
    """Its line of every head, from stored rows as the page reads them."""
    db = Database(tmp_path / "atlas.duckdb")
    made = {"relations": relation_rows, "features": feature_rows, "roles": role_rows}
    for study, rows_of in made.items():
        run = record_run(db, study, {}, Provenance(checkpoint=AT.checkpoint, task=AT.task))
        store_rows(db, run, rows_of(world, INPUTS, SEED))
    scores = atlas(db, checkpoint=AT.checkpoint, measure=False)
    db.close()
    assert {score.split("/")[0] for score in scores["score"]} == set(made)
    known = [
        fact
        for layer in range(planting.LAYERS)
        for head in range(planting.HEADS)
        for fact in facts(scores, Head(layer, head))
    ]
    assert not [fact.text for fact in known if fact.about == "relations"]
    named = {name for name in FEATURES for fact in known if fact.about == "looks at" and f" {name} " in f"{fact.text} "}
    assert named <= set(_allowed(world, "features"))


@pytest.mark.parametrize("world", [pytest.param(world, marks=pytest.mark.slow) for world in EMPTY])
def test_headlines_outlines_and_the_claim_on_nouns_and_pronouns_find_no_head(world):
    along = relation_rows(world, INPUTS, SEED)
    said = relations.STUDY.headline(along)
    assert f"in any of {_judged(along):,} head–relation pairs" in said.sentence
    assert not above_null(Score.among(along))
    looked = feature_rows(world, INPUTS, SEED)
    if not _allowed(world, "features"):
        assert features.STUDY.headline(looked).sentence.startswith("Attention is not significantly ")
    kinds = statistics.kinds_of(sums_of("statistics", world, INPUTS, SEED).result())
    places = [
        {"task": AT.task, "checkpoint": AT.checkpoint, "statistic": "place", "kind": kind}
        | {"layer": number // planting.HEADS, "head": number % planting.HEADS}
        for number, kind in enumerate(kinds)
    ]
    found_relations = dependencies.STUDY.headline(dependency_rows(world, INPUTS, SEED)).sentence
    assert ". 0 of " in found_relations or "does not test" in found_relations
    outcomes = diagonal_heads(evidence(found("relations", along), found("statistics", places)))
    assert {outcome.outcome for outcome in outcomes} <= {UNDECIDED, UNTESTED}


def _judged(rows):
    return sum(row.get("effect") is not None for row in rows)


def test_a_headline_names_what_a_head_looks_along_where_one_does():
    rows = relation_rows("links at 1.5", INPUTS, SEED, relation="determiner-noun")
    assert " and the relation determiner-noun (forward)" in relations.STUDY.headline(rows).sentence
    assert roles.STUDY.headline(role_rows("previous at 3", INPUTS, SEED)).sentence.startswith("16 heads have a role")
