"""What the report's claims decide in worlds that are known: rows are planted with the noise of GLUE's dev sets, the
claim's own test reads them. No checkpoint is run.

Of each claim three worlds: nothing is there (null), an effect at twice the margin (twice), and one inside it (inside).
Where the margin is 0 "twice" is two points of a score, or as much as the world says, and "inside" is as much the other
way: the sentence is wrong.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from core.report.claims.outcomes import FAILS, HOLDS, UNDECIDED
from core.report.claims.registry import claim
from core.report.evidence import Evidence
from core.scoring import effects
from tests.report.evidence_made import CHECKPOINT, evidence, found, head_rows

DRAWS = 200
ROWS = {"sst2": 872, "mrpc": 408, "rte": 277, "heads": 32}  # of GLUE's dev sets; heads where they are counted
HEADS = (6, 4)  # layers, heads of each
WORLDS = ("null", "twice", "inside")

Planted = Callable[[float, np.random.Generator], Evidence]


@dataclass(frozen=True)
class World:
    """Of one claim: how rows are planted at a true value; true values by world; those where the sentence is true."""

    claim: str
    n: int
    plant: Planted
    truth: dict[str, float]
    true: frozenset[str]


# ---------------------------------------------------------------- disabling: rows flip


def swept(part: str, task: str, *, of_all: bool, heads: int = 24) -> Planted:
    """A sweep in which disabling changes each row's correctness by itself; the effect is of all heads, or of one."""

    def plant(effect: float, rng: np.random.Generator) -> Evidence:
        n = ROWS[task]
        rates = np.full(heads, effect) if of_all else np.where(np.arange(heads) == 0, effect, min(effect, 0.0))
        draws = rng.random((n, heads))
        differences = (draws < 0.03 + np.maximum(rates, 0)).astype(float) - (draws > 0.97 + np.minimum(rates, 0))
        means, half = differences.mean(0), 1.959964 * differences.std(0, ddof=1) / n**0.5
        p = effects.max_t(np.zeros(n), differences.T, seed=int(rng.integers(2**31))) if part == "heads" else [1] * heads
        rows = [{"kind": "baseline", "name": "untouched", "accuracy": 0.7, "n": n}]
        for k in range(heads):
            name = {"name": f"L{k // 4 + 1}H{k % 4 + 1}", "layer": k // 4, "head": k % 4}
            ends = {"accuracy_low": means[k] - half[k], "accuracy_high": means[k] + half[k]}
            change = {"accuracy_change": means[k], "p": float(p[k]), "n": n, "flipped": 9}
            rows.append({"kind": "variant"} | name | ends | change)
        return evidence(found(part, rows, task))

    return plant


def pruned(effect: float, rng: np.random.Generator) -> Evidence:
    """A curve of pruning whose step at a fifth changes the score."""
    n = ROWS["sst2"]
    value, half = _drawn(effect, 0.2, n, rng)
    step = {"kind": "step", "order": "importance", "metric": "accuracy", "n": n, "baseline": 0.9}
    rows = [
        step | {"removed": k, "share": share, "change": c, "score": 0.9 + c}
        | {"low": 0.9 + c - half, "high": 0.9 + c + half}
        for k, (share, c) in enumerate(((0.0, 0.0), (0.2, value)))
    ]  # fmt: skip
    return evidence(found("prune", rows, "sst2"))


# ---------------------------------------------------------------- weights of heads


def _drawn(true: float, sd: float, n: int, rng: np.random.Generator) -> tuple[float, float]:
    """A mean of n rows, and half of its interval."""
    error = sd / n**0.5
    return float(rng.normal(true, error)), 1.959964 * error


def _heads(best: float, others: float, rng: np.random.Generator, **more: object) -> list[dict]:
    """Rows of heads: the first has one true value, the others another."""
    rows = []
    for row in head_rows(np.full(HEADS, others), **more):
        first = row["layer"] == row["head"] == 0
        value, half = _drawn(best if first else others, 0.3, ROWS["sst2"], rng)
        rows.append(row | {"value": value, "low": value - half, "high": value + half, "n": ROWS["sst2"]})
    return rows


def neighbours(effect: float, rng: np.random.Generator) -> Evidence:
    rows = [row for side in ("previous", "next") for row in _heads(effect, effect, rng, statistic=side, task="sst2")]
    return evidence(found("statistics", rows))


def separators(effect: float, rng: np.random.Generator) -> Evidence:
    return evidence(found("statistics", _heads(effect, effect, rng, statistic="separator", task="sst2")))


def nouns(effect: float, rng: np.random.Generator) -> Evidence:
    """The study's difference is before less after."""
    others = min(effect, 0.0)
    rows = [
        row
        for feature in ("noun", "object")
        for row in _heads(-effect, -others, rng, statistic="max", feature=feature, checkpoint="difference")
    ]
    return evidence(found("features", rows, "rte"))


def sink(effect: float, rng: np.random.Generator) -> Evidence:
    rows = [row | {"kind": "head", "baseline": 0.05, "survives": False} for row in _heads(effect, effect, rng)]
    summary = {
        "kind": "summary", "layers": HEADS[0], "heads": HEADS[1], "above_99": 1, "survivors": [], "beat_places": [],
        "n": 20, "links": 20, "links_before": 19, "average": "sentences", "line_99": 0.4,
    }  # fmt: skip
    return evidence(*(found(part, [summary, *rows]) for part in ("sink", "sinkless")), causal=True)


def pronouns(effect: float, rng: np.random.Generator) -> Evidence:
    """The first head is diagonal and above the others by the effect; where it is below them a broad head is best."""
    rows = _heads(
        0.3 + max(effect, 0.0), 0.3, rng, task="rte", feature="noun-pronoun", statistic="forward", baseline=0.3
    )
    if effect < 0:
        rows[1] = rows[1] | {end: rows[1][end] - effect for end in ("value", "low", "high")}
    places = [
        {"task": "rte", "statistic": "place", "layer": row["layer"], "head": row["head"],
         "kind": "other" if k else "previous"}
        for k, row in enumerate(rows)
    ]  # fmt: skip
    return evidence(found("relations", rows), found("statistics", places))


def roles(effect: float, rng: np.random.Generator) -> Evidence:
    """Each head has a role on three tasks, on all of them the same: kept with the chance `effect`, or lost."""
    kept = rng.random(32) < effect
    rows = head_rows([np.where(kept, 0.9, 0.1)], statistic="previous", task="mnli")
    rows = [row | {"n": 100_000} for row in rows]
    for task in ("rte", "mrpc", "wnli"):
        rows += [row | {"n": 10} for row in head_rows([[0.9] * len(kept)], statistic="previous", task=task)]
        rows += [row | {"kind": "previous"} for row in head_rows([[0.0] * len(kept)], statistic="place", task=task)]
    return evidence(found("statistics", rows))


# ---------------------------------------------------------------- shares of maps


def vertical(effect: float, rng: np.random.Generator) -> Evidence:
    value, half = _drawn(effect, 0.3, ROWS["rte"], rng)
    ends = {"low": value - half, "high": value + half, "low_all": value - 1.3 * half, "high_all": value + 1.3 * half}
    row = {"part": "moved", "class": "vertical", "checkpoint": "tuned", "share": value, "inputs": ROWS["rte"]}
    return evidence(found("shares", [row | ends], "rte"))


def meaningful(effect: float, rng: np.random.Generator) -> Evidence:
    value, half = _drawn(effect, 0.3, ROWS["rte"], rng)
    row = {"part": "share", "class": "heterogeneous", "checkpoint": CHECKPOINT, "inputs": ROWS["rte"], "maps": 9}
    ends = {"share": value, "low": value - half, "high": value + half, "classifier": "c"}
    return evidence(found("shares", [row | ends], "rte"))


def _world(name: str, task: str, plant: Planted, null: float, twice: float, inside: float, *true: str) -> World:
    return World(name, ROWS[task], plant, dict(zip(WORLDS, (null, twice, inside), strict=True)), frozenset(true))


PLANTED = (
    _world("random-head", "rte", swept("heads", "rte", of_all=True), 0.0, 0.02, -0.02, "twice"),
    _world("some-head", "sst2", swept("heads", "sst2", of_all=False), 0.0, 0.02, -0.02, "twice"),
    _world("first-layer", "rte", swept("layers", "rte", of_all=False), 0.0, 0.02, -0.02, "twice"),
    _world("prunable", "sst2", pruned, 0.0, -0.02, -0.005, "null", "inside"),
    _world("neighbours", "sst2", neighbours, 0.5, 0.6, 0.4, "twice"),
    _world("separators", "sst2", separators, 0.5, 0.6, 0.4, "twice"),
    _world("all-heads-carry", "sst2", sink, 0.4, 0.5, 0.3, "twice"),
    _world("more-to-nouns", "sst2", nouns, 0.0, 0.1, -0.1, "twice"),
    _world("noun-pronoun", "sst2", pronouns, 0.0, 0.1, -0.1, "twice"),
    _world("keeps-its-role", "heads", roles, 0.5, 0.3, 0.7, "twice"),
    _world("more-vertical", "rte", vertical, 0.0, 0.1, -0.1, "twice"),
    _world("few-meaningful", "rte", meaningful, 0.5, 0.4, 0.6, "twice"),
)


def decisions(world: World, name: str, draws: int, seed: int = 0) -> list[str]:
    """What the claim decides of each draw of one world."""
    known = claim(world.claim)
    assert known
    rng = np.random.default_rng([seed, WORLDS.index(name), len(world.claim)])
    return [known.test(world.plant(world.truth[name], rng))[0].outcome for _ in range(draws)]


def rates(world: World, draws: int = DRAWS) -> dict[str, float]:
    """The worse of the worlds where a "holds" (or "does not hold") is false, and how often twice is undecided."""
    found_in = {name: decisions(world, name, draws) for name in WORLDS}
    share = {
        name: {word: words.count(word) / draws for word in (HOLDS, FAILS, UNDECIDED)}
        for name, words in found_in.items()
    }
    return {
        "false_holds": max((share[name][HOLDS] for name in WORLDS if name not in world.true), default=0.0),
        "false_fails": max((share[name][FAILS] for name in world.true), default=0.0),
        "undecided_at_2x": share["twice"][UNDECIDED],
    }


def limit(draws: int) -> float:
    """How far a true rate of 5 % goes in so many draws, in 99.7 % of such simulations."""
    return float(binom.ppf(0.997, draws, 0.05)) / draws


def as_json(draws: int = DRAWS) -> dict[str, dict[str, float]]:
    """{claim: {false_holds, false_fails, undecided_at_2x}}."""
    return {world.claim: rates(world, draws) for world in PLANTED}
