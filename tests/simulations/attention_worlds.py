"""Worlds of attention: what studies say of where heads look when it is known. Cases for `registry`.

The table of what may be claimed: attention by distance alone is previous, next, an offset, a place ([CLS], [SEP] and
the first word stand in places); attention by kind of word alone is token types, and no relation, frame link or role of
words; uniform attention says nothing of where a head looks; noise says nothing; words that come again are the same
word, and nothing else.
"""

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any

import numpy as np

from core.scoring.mean_patterns import redundancy_agreement
from core.scoring.roles import TIMES
from core.store.rows import Row
from core.studies.attention import features, relations, roles, statistics
from core.studies.attention.attending import Attending
from core.tasks.features import FEATURES, feature_of, is_role
from tests.simulations import planted_attention as planting
from tests.simulations.planted_draws import FEW, INPUTS, MANY, sums_of
from tests.simulations.registry import Case, Planted, known

SURE = 0.05
NATS = "nats"  # of a score before the softmax: how much more planted keys have than others
PLACES = frozenset(name for name, feature in FEATURES.items() if feature.special)
TYPES = frozenset(name for name in features.FEATURES if not is_role(feature_of(name)))


def claimed(rows: Iterable[Row], way: bool = False) -> frozenset[str]:
    """Features or relations that some head is claimed for (with the direction, as "name: forward")."""
    sure = (row for row in rows if row.get("q", np.nan) < SURE and row.get("effect", 0) > 0)
    return frozenset(f"{row['feature']}: {row['statistic']}" if way else str(row["feature"]) for row in sure)


def rows_of(study: Attending[Any, Any], sums: object) -> list[Row]:
    """The rows of these sums."""
    return [score.as_row() for score in study.scores(study.read({}), sums)]


def relation_rows(*world: object, **how: object) -> list[Row]:
    """Of `study relations`."""
    return rows_of(relations.STUDY, sums_of("relations", *world, **how))


def feature_rows(*world: object, **how: object) -> list[Row]:
    """Of `study features`."""
    return rows_of(features.STUDY, sums_of("features", *world, **how))


def role_rows(*world: object, **how: object) -> list[Row]:
    """Of `study roles`."""
    return rows_of(roles.STUDY, sums_of("roles", *world, **how))


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
    return frozenset(statistics.kinds_of(sums_of("statistics", *world, **how).result()))


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


def share_found(study: str, name: str, seed: int, *, world: str, inputs: int, **how: object) -> float:
    """The share of heads that are claimed for a relation (forward), a feature or a role."""
    if study == "roles":
        return _heads(row for row in role_rows(world, inputs, seed, **how) if row["role"] == name and row.get("has"))
    made = relation_rows(world, inputs, seed, **how) if study == "relations" else feature_rows(world, inputs, seed)
    mine = (row for row in made if row["feature"] == name and row["statistic"] != "backward")
    return _heads(row for row in mine if claimed([row]))


def _heads(rows: Iterable[Row]) -> float:
    """The share of the planted heads that rows are of."""
    return len({(row["layer"], row["head"]) for row in rows}) / planting.ALL_HEADS


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
                            world_of=f"worlds of attention{whose}",
                        )
                    )
    return cases


# Of 100 inputs: study, name, what heads look at beside noise, how strongly so that half of them are claimed (by draws)
KNOWN = (
    ("relations", "verb-subject", "links", 0.3),
    ("relations", "verb-object", "links", 0.5),
    ("relations", "determiner-noun", "links", 0.35),
    ("features", "noun", "nouns", 0.5),
)
REPEATS = 50  # sequences of words that come twice, as many as the study has: of 20 seven heads in ten are found
# role: what heads look at, inputs, and how strongly so that their weight is so many times the baseline's
ROLES: dict[str, tuple[str, int, dict[float, float]]] = {
    "previous": ("previous", INPUTS, {TIMES: 1.265, 2 * TIMES: 2.17}),
    "duplicate": ("the same word", FEW, {TIMES: 1.3, 2 * TIMES: 2.27}),
}


def role_world(role: str, times: float) -> dict[str, Any]:
    """What heads look at so that their weight for a role is so many times the baseline's."""
    at, inputs, strengths = ROLES[role]
    repeats = {"sequences": REPEATS} if role == "duplicate" else {}
    return {"world": f"{at} at {strengths[times]:g}", "inputs": inputs} | repeats


def _planted() -> list[Case]:
    def draw_at(study: str, name: str, at: str, strength: float) -> Callable[[int], float]:
        how = {"relation": name} if study == "relations" else {}
        return partial(share_found, study, name, inputs=INPUTS, world=f"{at} at {strength:g}", **how)

    def role_at(role: str, times: float) -> Callable[[int], float]:
        return partial(share_found, "roles", role, **role_world(role, times))

    marks = [
        known(
            study,
            f"planted {name}, n = {INPUTS}",
            Planted(asked, NATS, partial(draw_at, study, name, at)),
            INPUTS,
            draws=60,
            quick=1,
        )
        for study, name, at, asked in KNOWN
    ]
    return marks + [
        known(
            "roles",
            f"planted {role}, n = {inputs}",
            Planted(TIMES, "baselines", partial(role_at, role), True),
            inputs,
            draws=60,
            quick=1,
        )
        for role, inputs in (("previous", INPUTS), ("duplicate", REPEATS))
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
