"""Worlds of attention: what studies say of where heads look when it is known. Cases for `registry`.

The table of what may be claimed: attention by distance alone is previous, next, an offset, a place ([CLS], [SEP] and
the first word stand in places); attention by kind of word alone is token types, and no relation, frame link or role of
words; uniform attention says nothing of where a head looks; noise says nothing; words that come again are the same
word, and nothing else.
"""

from collections.abc import Callable, Collection, Iterable
from functools import partial

import numpy as np

from core.scoring.mean_patterns import redundancy_agreement
from core.store.rows import Row
from core.studies.attention import features, relations, roles, statistics
from core.tasks.features import FEATURES, feature_of, is_role
from tests.simulations.planted_draws import AT, drawn
from tests.simulations.registry import Case, Planted, known

INPUTS, MANY, FEW = 100, 250, 20
SURE = 0.05
PLACES = frozenset(name for name, feature in FEATURES.items() if feature.special)
TYPES = frozenset(name for name in features.FEATURES if not is_role(feature_of(name)))
SEQUENCES = 20  # of words that come twice


def claimed(rows: Iterable[Row], way: bool = False) -> frozenset[str]:
    """Features or relations that some head is claimed for (with the direction, as "name: forward")."""
    sure = (row for row in rows if row.get("q", np.nan) < SURE and row.get("effect", 0) > 0)
    return frozenset(f"{row['feature']}: {row['statistic']}" if way else str(row["feature"]) for row in sure)


def relation_rows(world: str, inputs: int, seed: int, **how: object) -> list[Row]:
    """Of `study relations`."""
    now = drawn(world, inputs, seed, **how)
    return relations.rows_of(now.sums(relations.STUDY.measure(relations.Options(), now.checkpoint)))


def feature_rows(world: str, inputs: int, seed: int, **how: object) -> list[Row]:
    """Of `study features`."""
    now = drawn(world, inputs, seed, **how)
    return features.rows_of(now.sums(features.STUDY.measure(features.Options(), now.checkpoint)))


def role_rows(world: str, inputs: int, seed: int, **how: object) -> list[Row]:
    """Of `study roles`."""
    now, options = drawn(world, inputs, seed, **how), roles.Options(sequences=SEQUENCES)
    measure = roles.STUDY.measure(options, now.checkpoint)
    now.sums(measure)
    roles.STUDY.after(options, measure, 0)
    return roles.rows_of(measure.sums(AT), times=options.times)


def statistic_rows(world: str, inputs: int, seed: int, **how: object) -> list[Row]:
    """Of `study statistics`."""
    now, options = drawn(world, inputs, seed, **how), statistics.Options()
    return statistics.rows_of(now.sums(statistics.STUDY.measure(options, now.checkpoint)), seed=0)


def relation_claims(*world: object, **how: object) -> frozenset[str]:
    """Relations that some head is claimed for, as "name: direction"."""
    return claimed(relation_rows(*world, **how), way=True)


def feature_claims(*world: object, **how: object) -> frozenset[str]:
    """Features that some head is claimed for."""
    return claimed(feature_rows(*world, **how))


def role_claims(*world: object, **how: object) -> frozenset[str]:
    """Roles that some head has."""
    return frozenset(str(row["role"]) for row in role_rows(*world, **how) if row.get("has"))


def kind_claims(*world: object, **how: object) -> frozenset[str]:
    """What some head mostly does."""
    return frozenset(str(row["kind"]) for row in statistic_rows(*world, **how) if row["statistic"] == "place")


Claims = Callable[..., frozenset[str]]
SAME_WORD = frozenset({"same-word: forward", "same-word: backward"})
IN_PLACES = frozenset({"previous", "next", "first", "separator"})
# Of each study and world what may be claimed there.
ALLOWED: dict[str, tuple[Claims, dict[str, Collection[str]]]] = {
    "relations": (
        relation_claims,
        {"uniform": (), "distance": (), "kind of word": (), "noise": (), "same word": SAME_WORD},
    ),
    "features": (
        feature_claims,
        {"uniform": (), "distance": PLACES, "kind of word": TYPES, "noise": ()},
    ),
    "roles": (
        role_claims,
        {"uniform": (), "distance": IN_PLACES, "kind of word": (), "noise": (), "same word": ("duplicate",)},
    ),
    "statistics": (
        kind_claims,
        {
            "uniform": ("broad",),
            "distance": (*IN_PLACES, "broad", "other"),
            "kind of word": ("broad", "other"),
            "noise": ("broad", "other"),
        },
    ),
}


def _beyond(claims: Claims, allowed: Collection[str], world: str, inputs: int, seed: int, **how: object) -> float:
    return float(bool(claims(world, inputs, seed, **how) - frozenset(allowed)))


def _found(claims: Claims, names: Collection[str], world: str, inputs: int, seed: int, **how: object) -> float:
    """Whether any of the names is claimed."""
    return float(bool(claims(world, inputs, seed, **how) & frozenset(names)))


def alike(share: float, seed: int) -> float:
    """Whether two runs of 6 layers of 6 heads are called the same, heads being alike through their layer and through so
    much of what they have of their own."""
    layer, chance = np.repeat(range(6), 6), np.random.default_rng(seed)
    centres, own = 3 * chance.normal(size=(6, 4))[layer], chance.normal(size=(36, 4))
    runs = [centres + share**0.5 * own + (1 - share) ** 0.5 * chance.normal(size=(36, 4)) for _ in "ab"]
    first, other = (np.sqrt(((run[:, None] - run) ** 2).sum(-1)) for run in runs)
    return float(redundancy_agreement(first, other, layer=layer.tolist(), seed=seed, draws=99).p < SURE)


def _nothing_is_there(causal: bool) -> list[Case]:
    whose = ", decoder" if causal else ""
    cases = []
    for world in dict.fromkeys(world for _, worlds in ALLOWED.values() for world in worlds):
        for inputs in (FEW, INPUTS) if causal else (FEW, INPUTS, MANY):
            for study, (claims, worlds) in ALLOWED.items():
                if world in worlds:
                    draw = partial(_beyond, claims, worlds[world], world, inputs, causal=causal)
                    quick = int(inputs == INPUTS and (not causal or world == "kind of word"))
                    cases.append(
                        Case(
                            study,
                            f"{world}{whose}, n = {inputs}",
                            "nothing",
                            draw,
                            inputs,
                            quick=quick,
                            world_of=f"{world}{whose} {inputs}",
                        )
                    )
    return cases


def _planted() -> list[Case]:
    of_relations = [
        Case(
            "relations",
            f"planted {name}, n = {INPUTS}",
            "found",
            partial(_found, relation_claims, (f"{name}: forward",), "links at 2.5", INPUTS, relation=name),
            INPUTS,
            quick=1,
            world_of=f"links {name}",
        )
        for name in ("verb-subject", "verb-object", "determiner-noun")
    ]
    others = (
        ("features", "planted kinds", feature_claims, ("noun", "verb"), "kind of word", INPUTS),
        ("roles", "planted distances", role_claims, IN_PLACES, "distance", INPUTS),
        ("roles", "planted words that come again", role_claims, ("duplicate",), "same word", FEW),
    )
    return of_relations + [
        Case(
            study,
            f"{said}, n = {inputs}",
            "found",
            partial(_found, claims, names, world, inputs, causal=False),
            inputs,
            quick=1,
            world_of=f"{world} {inputs}",
        )
        for study, said, claims, names, world, inputs in others
    ]


CASES: tuple[Case, ...] = (
    *_nothing_is_there(causal=False),
    *_nothing_is_there(causal=True),
    *_planted(),
    Case("redundancy", "alike through their layer alone", "nothing", partial(alike, 0.0), 36, quick=20),
    known(
        "redundancy",
        "the same heads",
        Planted(0.25, "share of a head's own", lambda share: partial(alike, share)),
        36,
        quick=20,
    ),  # of a quarter half are found, by draws
)
