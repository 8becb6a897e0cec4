"""Worlds of what heads do together, of counterparts, and of score shares: drawn as a study would have measured them.
Cases for `registry`."""

from collections.abc import Iterator
from functools import cache, partial
from itertools import combinations, product

import numpy as np

from core.scoring.circuits import (
    CLAIMED,
    THRESHOLD,
    class_shares,
    classes_of,
    half_level,
    interactions,
    selection_probabilities,
)
from core.scoring.counterparts import beyond_chance
from core.scoring.effects import max_t, mean_intervals
from core.scoring.intervals import RatioMoments, Ratios
from core.scoring.sequential_test import Rules, standings
from tests.benchmarks.race import RECORDED
from tests.simulations.registry import Case, Planted, known, least_mean

HEADS, MARGIN, EDGES, PAIRS = 36, 1.0, 300, 100
KINDS = ("dense", "skewed", "sparse")
RULES = Rules(MARGIN, 2 * MARGIN, PAIRS, EDGES, 0.05, 24)  # a circuit's: a pair counts up to twice the margin


def _means_of_nothing(kind: str, rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Numbers whose true mean is 0: even, with a long tail to one side, or nearly always 0."""
    if kind == "dense":
        return rng.normal(0.0, 1.0, shape)
    if kind == "skewed":
        return rng.exponential(1.0, shape) - 1.0
    return np.where(rng.random(shape) < 0.1, rng.normal(0.0, 3.0, shape), 0.0)


# ---------------------------------------------------------------- pairs of heads


def _pair_effects(kind: str, rows: int, planted: float, seed: int) -> np.ndarray:
    """p of all 630 pairs where heads only add, but for one pair of `planted` deviations."""
    rng = np.random.default_rng([seed, rows])
    pairs = np.array(list(combinations(range(HEADS), 2)))
    alone = rng.normal(0.5, 1.0, (HEADS, rows))
    noise = _means_of_nothing(kind, rng, (len(pairs), rows))
    noise[0] += planted
    together = alone[pairs[:, 0]] + alone[pairs[:, 1]] + noise
    return max_t(np.zeros(rows), interactions(alone, together, pairs), seed=seed)


def claims_of_pairs(kind: str, rows: int, seed: int) -> float:
    """Whether any pair is said to interact."""
    return float((_pair_effects(kind, rows, 0.0, seed) < 0.05).any())


def finds_of_pairs(rows: int, size: float, seed: int) -> float:
    """Whether a pair is found whose interaction is so many deviations of a row's."""
    return float(_pair_effects("dense", rows, size, seed)[0] < 0.05)


def wide_of_means(kind: str, rows: int, are_pairs: bool, seed: int) -> float:
    """The median width of intervals of interactions, or of Shapley values, over that of the estimate's own law."""

    def drawn(seed: int) -> np.ndarray:
        rng = np.random.default_rng([seed, rows])
        values = _means_of_nothing(kind, rng, (HEADS, rows))
        if not are_pairs:
            return values
        alone, pairs = rng.normal(0.5, 1.0, (HEADS, rows)), np.array([(k, (k + 1) % HEADS) for k in range(HEADS)])
        return interactions(alone, alone[pairs].sum(1) + values, pairs)

    widths = [one.high - one.low for one in mean_intervals(np.zeros(rows), drawn(seed), most=None)]
    means = np.concatenate([drawn(1000 + k).mean(1) for k in range(60)])
    return float(np.median(widths) / np.ptp(np.quantile(means, [0.025, 0.975])))


# ---------------------------------------------------------------- gates


def claims_of_gates(seed: int) -> float:
    """Whether any head has a class where each of 60 fits opens it four times of five by luck, pushed up or down."""
    rng = np.random.default_rng(seed)
    up, down = (np.where(rng.random((60, HEADS)) < 0.8, 0.9, 0.1) for _ in range(2))
    return float(any(claimed != "undecided" for claimed in classes_of(class_shares(up, down))))


def finds_of_gates(fits: float, seed: int) -> float:
    """The share of heads with their class where one pair of fits in so many goes wrong, under either push."""
    rng, wrong = np.random.default_rng(seed), 1 - np.sqrt(1 - 1 / fits)
    planted = rng.integers(0, 3, HEADS)  # facilitating, interfering, irrelevant
    up, down = (
        np.where(rng.random((60, HEADS)) < wrong, ~open_, open_) * 0.8 + 0.1 for open_ in (planted != 1, planted == 0)
    )
    names = np.array(["facilitating", "interfering", "irrelevant"])[planted]
    return float(np.mean(np.array(classes_of(class_shares(up, down))) == names))


# ---------------------------------------------------------------- Shapley values


def holds_of_shapley(kind: str, rows: int, seed: int) -> float:
    """The share of heads whose interval holds their value, which differs from row to row."""
    rng = np.random.default_rng([seed, rows])
    true = rng.normal(0.0, 0.5, HEADS)
    drawn = true[:, None] + _means_of_nothing(kind, rng, (HEADS, rows))
    ends = mean_intervals(np.zeros(rows), drawn, most=None)
    return float(np.mean([one.low <= value <= one.high for one, value in zip(ends, true, strict=True)]))


# ---------------------------------------------------------------- edges


def _edges(kind: str, rng: np.random.Generator, mean: float) -> np.ndarray:
    """Effects of edges on pairs, clipped at twice the margin, with this true mean."""
    shape = (EDGES, PAIRS)
    if kind == "dense":
        return (mean + rng.normal(0.0, 0.3, shape)).clip(-2 * MARGIN, 2 * MARGIN)
    if kind == "sparse":
        return np.where(rng.random(shape) < mean / (2 * MARGIN), 2 * MARGIN, 0.0)
    share = 0.02  # nearly always beyond, now and then far against
    return np.where(rng.random(shape) < share, -2 * MARGIN, (mean + 2 * share) / (1 - share))


def claims_of_edges(kind: str, seed: int) -> float:
    """Whether any of 300 edges exactly at the margin has a verdict."""
    return float(set(standings(_edges(kind, np.random.default_rng(seed), MARGIN), RULES).verdicts) != {"open"})


def claims_of_random_answers(seed: int) -> float:
    """Whether any edge matters where effects are as often for as against."""
    rng = np.random.default_rng(seed)
    signs = rng.choice([-1.0, 1.0], (EDGES, PAIRS))
    effects = signs * rng.exponential(0.4, (EDGES, PAIRS)).clip(max=2 * MARGIN)
    return float("matters" in standings(effects, RULES).verdicts)


def finds_of_edges(mean: float, seed: int) -> float:
    """The share of edges found to matter that have this mean before a pair counts up to twice the margin."""
    effects = _edges("dense", np.random.default_rng(seed), mean)
    return float(np.mean([verdict == "matters" for verdict in standings(effects, RULES).verdicts]))


STABLE_WORLDS = ("equal", "of unequal spread", "skewed", "of common factors", "beside real ones", "as recorded")


@cache
def recorded_edges() -> np.ndarray:
    """Exact effects of all edges of the classifier that ships on 77 pairs, of spreads over several orders."""
    with np.load(RECORDED / "circuit.npz") as stored:
        return stored["exact"].astype(float)


def edges_without_effect(world: str, seed: int) -> np.ndarray:
    """Effects [edge, pair] of a mean of 0; "beside real ones" the first tenth has a mean of one deviation."""
    rng = np.random.default_rng([seed, 5])
    if world == "as recorded":
        effects = recorded_edges()
        return effects * rng.choice([-1, 1], (1, effects.shape[1]))  # the same sign for all edges of a pair
    spread = 1.0 if world == "equal" else 10 ** rng.uniform(-3, 0, (EDGES, 1))
    if world == "skewed":
        return spread * (rng.exponential(1, (EDGES, PAIRS)) - 1)
    effects = rng.normal(0.0, 1.0, (EDGES, PAIRS))
    if world == "of common factors":
        effects = 0.5 * effects + rng.normal(0, 1, (EDGES, 1)) * rng.normal(0, 1, (1, PAIRS))
    if world == "beside real ones":
        effects[: EDGES // 10] += 1
    return spread * effects


def claims_of_stable_edges(world: str, seed: int) -> float:
    """Whether more edges without an effect are stable than are expected to be (one)."""
    effects = edges_without_effect(world, seed)
    stable = selection_probabilities(effects, half_level(len(effects)), seed=seed) >= THRESHOLD
    return float(stable[EDGES // 10 if world == "beside real ones" else 0 :].sum() > 1)


def finds_of_stable_edges(deviations: float, seed: int) -> float:
    """The share of edges that are stable among a tenth whose mean is so many of their deviations."""
    rng = np.random.default_rng([seed, 6])
    effects = rng.normal(0.0, 1.0, (EDGES, PAIRS))
    effects[: EDGES // 10] += deviations
    effects *= 10 ** rng.uniform(-3, 0, (EDGES, 1))
    return float((selection_probabilities(effects, half_level(EDGES), seed=seed)[: EDGES // 10] >= THRESHOLD).mean())


# ---------------------------------------------------------------- counterparts


def _similarities(rng: np.random.Generator) -> np.ndarray:
    """Of HEADS heads to random heads, 100 draws: some hang together, some hardly move."""
    scales = np.geomspace(0.001, 0.3, HEADS)
    return 1 - 0.1 * np.exp(-scales * (rng.normal(size=(100, HEADS)) + rng.normal(size=(100, 1))))


def claims_of_counterparts(seed: int) -> float:
    """Whether any head of random weights has a counterpart beyond chance in random weights."""
    values = _similarities(np.random.default_rng(seed))
    return float((beyond_chance(values[0], values[1:]) <= 0.05).any())


def finds_of_counterparts(deviations: float, seed: int) -> float:
    """Whether a head is found whose distance's logarithm lies so many standard deviations below that to random ones."""
    values = _similarities(np.random.default_rng(seed))
    values[0, -1] = 1 - 0.1 * np.exp(-deviations * 0.3 * np.sqrt(2))
    return float(beyond_chance(values[0], values[1:])[-1] <= 0.05)


# ---------------------------------------------------------------- score shares


def holds_of_score_shares(inputs: int, seed: int) -> float:
    """Whether the interval of a share of 30 % holds it: long inputs have larger sums, and share less."""
    rng = np.random.default_rng([seed, inputs])
    size = rng.lognormal(0.0, 0.7, inputs)
    share = rng.beta(6.0, 14.0, inputs)
    moments = RatioMoments.of((size * share)[:, None, None], size[:, None])
    found = moments.ratios()
    return float(found.low[0, 0] <= 0.3 <= found.high[0, 0])


def wide_of_score_shares(inputs: int, seed: int) -> float:
    """The width of a score share's interval over that of the share's own law."""

    def found(seed: int) -> Ratios:
        rng = np.random.default_rng([seed, inputs])
        size, share = rng.lognormal(0.0, 0.7, inputs), rng.beta(6.0, 14.0, inputs)
        return RatioMoments.of((size * share)[:, None, None], size[:, None]).ratios()

    one, values = found(seed), [found(1000 + k).value[0, 0] for k in range(400)]
    return float((one.high - one.low)[0, 0] / np.ptp(np.quantile(values, [0.025, 0.975])))


def _cases() -> Iterator[Case]:
    for kind, rows in product(KINDS, (20, 200)):
        few, least = kind == "dense" and rows == 20, 0.9 if rows < 100 else 0.93
        yield Case(
            "pairs",
            f"heads that only add, {kind}, n = {rows}",
            "nothing",
            partial(claims_of_pairs, kind, rows),
            rows,
            quick=2 * few,
        )
        yield Case(
            "shapley",
            f"interval of a value, {kind}, n = {rows}",
            "covers",
            partial(holds_of_shapley, kind, rows),
            rows,
            quick=4 * few,
            bound=least,
        )
    for kind in KINDS:
        yield Case(
            "circuit",
            f"{EDGES} edges at the margin, {kind}",
            "nothing",
            partial(claims_of_edges, kind),
            PAIRS,
            quick=4 * (kind == "dense"),
        )
    for kind, rows in product(("dense", "skewed"), (20, 200)):
        for study, what, are_pairs in (("pairs", "an interaction", True), ("shapley", "a value", False)):
            yield Case(
                study,
                f"width over an oracle's, {what}, {kind}, n = {rows}",
                "at most",
                partial(wide_of_means, kind, rows, are_pairs),
                rows,
                draws=20,
                bound=1.5,
            )
    of_pairs = Planted(least_mean(200, 630), "deviations of a row", lambda size: partial(finds_of_pairs, 200, size))
    yield known("pairs", "one pair of 630 interacts, n = 200", of_pairs, 200)
    yield Case("circuit", f"random answers, {EDGES} edges", "nothing", claims_of_random_answers, PAIRS)
    for world in STABLE_WORLDS:
        name = f"two stable edges without an effect, {world}"
        inputs = 77 if world == "as recorded" else PAIRS
        few = 10 * (world == "of unequal spread")
        yield Case("circuit", name, "nothing", partial(claims_of_stable_edges, world), inputs, quick=few)
    of_stable = Planted(4 / PAIRS**0.5, "deviations of a pair", lambda size: partial(finds_of_stable_edges, size))
    yield known("circuit", f"stable edges among {EDGES} of unequal spread", of_stable, PAIRS, quick=4)
    of_edges = Planted(MARGIN, "margins", lambda mean: partial(finds_of_edges, mean), is_margin=True)
    yield known("circuit", f"{EDGES} edges of twice the margin", of_edges, PAIRS, quick=2)
    yield Case("gates", "fits that open heads by luck", "nothing", claims_of_gates, 60, quick=4)
    of_gates = Planted(1 / (1 - CLAIMED), "fits of which one goes wrong", lambda fits: partial(finds_of_gates, fits))
    yield known("gates", "heads of all three classes", of_gates, 60, quick=4)
    yield Case("counterparts", "random weights beside random weights", "nothing", claims_of_counterparts, 100, quick=10)
    far = least_mean(1, HEADS, sides=1)
    of_heads = Planted(far, "deviations of random heads", lambda size: partial(finds_of_counterparts, size))
    yield known("counterparts", "a head alike beyond random ones", of_heads, 100, quick=4)
    for inputs in (20, 60, 200):
        yield Case(
            "why",
            f"interval of a score share, n = {inputs}",
            "covers",
            partial(holds_of_score_shares, inputs),
            inputs,
            quick=20,
            bound=0.9 if inputs < 100 else 0.93,
        )
        yield Case(
            "why",
            f"width over an oracle's, a score share, n = {inputs}",
            "at most",
            partial(wide_of_score_shares, inputs),
            inputs,
            draws=20,
            bound=1.5,
        )


CASES: tuple[Case, ...] = tuple(_cases())
