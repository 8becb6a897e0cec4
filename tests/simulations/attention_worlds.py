"""Worlds of attention: what studies say of where heads look when it is known. Cases for `registry`.

The table of what may be claimed: attention by distance alone is previous, next, an offset, a place ([CLS], [SEP] and
the first word stand in places); attention by kind of word alone is token types, and no relation, frame link or role of
words; uniform attention says nothing of where a head looks; noise says nothing; words that come again are the same
word, and nothing else.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from core.scoring.mean_patterns import redundancy_kept
from core.studies.attention import features, relations
from core.tasks.features import FEATURES, feature_of, is_role
from tests.simulations import planted_attention as planted
from tests.simulations.registry import Case

INPUTS, MANY, FEW = 100, 250, 20
SURE = 0.05
PLACES = frozenset(name for name, feature in FEATURES.items() if feature.special)
ROLES = frozenset(name for name in features.FEATURES if is_role(feature_of(name)))
Claims = frozenset[tuple[str, str]]


def _claims(study: object, options: object, world: str, seed: int, relation: str | None) -> Claims:
    """(feature or relation, definition or direction) that some head is claimed for."""
    texts = options.texts  # type: ignore[attr-defined]
    checkpoint = planted.encoder(planted.WORLDS[world], texts, seed, relation=relation)
    rows = study.measured_now(options, checkpoint, planted.pipeline())  # type: ignore[attr-defined]
    return frozenset(
        (row["feature"], row["statistic"]) for row in rows if row.get("q", np.nan) < SURE and row.get("effect", 0) > 0
    )


def relation_claims(world: str, seed: int, inputs: int = INPUTS, relation: str | None = None) -> Claims:
    """Of `study relations` on rows of MRPC."""
    texts = planted.drawn("mrpc", inputs, seed)
    return _claims(relations.STUDY, relations.Options(texts=texts), world, seed, relation)


def feature_claims(world: str, seed: int, inputs: int = INPUTS) -> Claims:
    """Of `study features` on rows of SST-2."""
    texts = planted.drawn("sst2", inputs, seed)
    return _claims(features.STUDY, features.Options(texts=texts), world, seed, None)


def _relation(world: str, inputs: int, allowed: frozenset[str], seed: int) -> float:
    return float(any(name not in allowed for name, _ in relation_claims(world, seed, inputs)))


def _feature(world: str, inputs: int, forbidden: Callable[[str], bool], seed: int) -> float:
    return float(any(forbidden(name) for name, _ in feature_claims(world, seed, inputs)))


def _found_relation(relation: str, inputs: int, seed: int) -> float:
    return float((relation, "forward") in relation_claims("links", seed, inputs, relation))


def _found_kind(inputs: int, seed: int) -> float:
    """Heads of every kind are drawn; verbs or nouns are claimed."""
    return float(any(name in ("noun", "verb") for name, _ in feature_claims("kind of word", seed, inputs)))


def alike(same: bool, seed: int) -> float:
    """Two runs of 6 layers of 6 heads that are alike through their layer alone, or head by head: called the same."""
    layer, chance = np.repeat(range(6), 6), np.random.default_rng(seed)
    centres, own = 3 * chance.normal(size=(6, 4))[layer], chance.normal(size=(36, 4))
    runs = [centres + (own if same else chance.normal(size=(36, 4))) + 0.3 * chance.normal(size=(36, 4)) for _ in "ab"]
    first, other = (np.sqrt(((run[:, None] - run) ** 2).sum(-1)) for run in runs)
    return float(redundancy_kept(first, other, layer=layer.tolist(), seed=seed, draws=99).p < SURE)


def _nothing_is_there() -> list[Case]:
    cases = []
    for world, allowed in (("uniform", ()), ("distance", ()), ("kind of word", ()), ("noise", ()),
                           ("same word", ("same-word",))):  # fmt: skip
        for inputs in (FEW, INPUTS, MANY):
            draw = partial(_relation, world, inputs, frozenset(allowed))
            quick = 2 if inputs == INPUTS else 0
            cases.append(Case("relations", f"{world}, n = {inputs}", "nothing", draw, inputs, quick=quick))
    forbidden: dict[str, Callable[[str], bool]] = {
        "uniform": lambda _: True,
        "noise": lambda _: True,
        "distance": lambda name: name not in PLACES,
        "kind of word": lambda name: name in ROLES,
    }
    for world, wrong in forbidden.items():
        for inputs in (FEW, INPUTS, MANY):
            draw = partial(_feature, world, inputs, wrong)
            quick = 2 if inputs == INPUTS else 0
            cases.append(Case("features", f"{world}, n = {inputs}", "nothing", draw, inputs, quick=quick))
    cases.append(Case("redundancy", "alike through their layer alone", "nothing", partial(alike, False), 36, quick=20))
    return cases


CASES: tuple[Case, ...] = (
    *_nothing_is_there(),
    *(
        Case("relations", f"planted {name}, n = {INPUTS}", "found", partial(_found_relation, name, INPUTS), INPUTS,
             quick=1)
        for name in ("verb-subject", "verb-object", "determiner-noun")
    ),
    Case("features", f"planted kinds, n = {INPUTS}", "found", partial(_found_kind, INPUTS), INPUTS, quick=1),
    Case("redundancy", "the same heads", "found", partial(alike, True), 36, quick=20),
)  # fmt: skip
