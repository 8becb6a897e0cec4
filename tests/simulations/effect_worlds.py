"""Worlds of effects: what studies say of components that were taken away when it is known. Cases for `registry`.

A world is drawn as what a study would have measured: predictions before and after, losses by head and row, runs by
seed. The studies' own statistics judge it. n are those of the bundled rows (300), of GLUE's dev sets (277 of RTE, 408
of MRPC, 872 of SST-2, 1,500 of STS-B) and 20.
"""

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
from scipy.stats import f as f_law
from scipy.stats import t as t_law

from core.scoring.effects import max_t, mean_intervals, metric_intervals, rank_agreement, recovered_share
from core.scoring.influence import mean_score, score_difference
from core.scoring.rank_agreement import operators_agree, rank_correlation
from core.scoring.sequential_test import Rules, standings
from core.studies.ablation.seeds import overlap, sources, top_heads
from core.studies.ablation.sequential_test import HOPELESS
from tests.benchmarks.race import recorded
from tests.simulations.registry import Case, Planted, known, least_mean

HEADS, DRAWN = 36, 300
CLIP = float(np.log(2))
MARGIN = 0.05 * CLIP
Law = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]
Draw = Callable[[int], float]


# ---------------------------------------------------------------- classes: flips of predictions


def flipped(seed: int, rows: int, *, rates: tuple[float, float], right: float = 0.8, gold: float = 0.5) -> tuple:
    """Gold labels, predictions before and after [head, row]: right answers are lost at the first rate, wrong ones won
    at the second."""
    rng = np.random.default_rng([seed, rows])
    labels = (rng.random(rows) < gold).astype(int)
    before = np.where(rng.random(rows) < right, labels, 1 - labels)
    chance = np.where(before == labels, *rates)
    return labels, before, np.where(rng.random((HEADS, rows)) < chance, 1 - before, before)


def claims_of_classes(rows: int, share: float) -> Draw:
    """Whether any of the heads gets p <= .05 where labels are random: as many rows are lost as won."""

    def draw(seed: int) -> float:
        labels, before, after = flipped(seed, rows, rates=(share, share), right=0.5)
        p = max_t(before == labels, after == labels, seed=seed, permutations=DRAWN)
        return float((p <= 0.05).any())

    return draw


def finds_of_classes(rows: int, *, lost: float) -> Draw:
    """Whether a head that loses so many of the right rows is claimed among others that do nothing on the whole."""

    def draw(seed: int) -> float:
        labels, before, after = flipped(seed, rows, rates=(0.02, 0.02), right=0.8)
        hit = (before == labels) & (np.random.default_rng([seed, 1]).random(rows) < lost)
        after[0] = np.where(hit, 1 - before, before)
        return float(max_t(before == labels, after == labels, seed=seed, permutations=DRAWN)[0] <= 0.05)

    return draw


def true_change(name: str, rates: tuple[float, float], right: float, gold: float) -> float:
    """Of accuracy or F1, from the shares of the four cells."""
    kept, won = right * (1 - rates[0]), (1 - right) * rates[1]
    if name == "accuracy":
        return kept + won - right
    after = kept + won
    old, new = (2 * gold * share / (gold + gold * share + (1 - gold) * (1 - share)) for share in (right, after))
    return float(new - old)


def holds_of_classes(name: str, rows: int, rates: tuple[float, float], right: float = 0.8, gold: float = 0.5) -> Draw:
    """The share of heads whose interval holds the true change."""
    truth = true_change(name, rates, right, gold)

    def draw(seed: int) -> float:
        found = metric_intervals(name, *flipped(seed, rows, rates=rates, right=right, gold=gold))
        return float(np.mean([one.low - 1e-12 <= truth <= one.high + 1e-12 for one in found]))

    return draw


def wide_of_classes(name: str, rows: int, rates: tuple[float, float], gold: float = 0.5) -> Draw:
    """The median width over that of the estimate's own law, which nobody knows who has one sample."""

    def draw(seed: int) -> float:
        found = metric_intervals(name, *flipped(seed, rows, rates=rates, gold=gold))
        several = [metric_intervals(name, *flipped(1000 + k, rows, rates=rates, gold=gold)) for k in range(12)]
        values = [one.value for sample in several for one in sample]
        return float(np.median([one.high - one.low for one in found]) / np.ptp(np.quantile(values, [0.025, 0.975])))

    return draw


def no_loss(rows: int, loss: float) -> Draw:
    """The share of heads of which "no loss of so much" is said to hold though they lose exactly that."""

    def draw(seed: int) -> float:
        labels, before, after = flipped(seed, rows, rates=(loss / 0.8, 0.0))
        found = metric_intervals("accuracy", labels, before, after)
        return float(np.mean([one.low > -loss for one in found]))

    return draw


# ---------------------------------------------------------------- scores


def scored(seed: int, rows: int, *, noise: float, jumps: float) -> tuple:
    """Gold scores from 0 to 5, predictions before and after [head, row]: with noise, and jumps to another score."""
    rng = np.random.default_rng([seed, rows])
    gold = rng.uniform(0, 5, rows)
    before = np.clip(2.5 + 0.8 * (gold - 2.5) + 0.9 * rng.normal(size=rows), 0, 5)
    after = before + noise * rng.normal(size=(HEADS, rows))
    return gold, before, np.where(rng.random(after.shape) < jumps, rng.uniform(0, 5, after.shape), after)


def holds_of_scores(rows: int, *, noise: float = 0.0, jumps: float = 0.0) -> Draw:
    """The share of heads whose interval of the change of r holds the truth, which 72,000 rows tell."""

    @cache
    def truth() -> float:  # when a draw is wanted: the list of cases is read at each collection
        many = metric_intervals("pearson", *scored(10**6, 72_000, noise=noise, jumps=jumps))
        return float(np.mean([one.value for one in many]))

    def draw(seed: int) -> float:
        found = metric_intervals("pearson", *scored(seed, rows, noise=noise, jumps=jumps))
        return float(np.mean([one.low <= truth() <= one.high for one in found]))

    return draw


def wide_of_scores(rows: int, *, noise: float = 0.0, jumps: float = 0.0) -> Draw:
    """As `wide_of_classes`."""

    def draw(seed: int) -> float:
        found = metric_intervals("pearson", *scored(seed, rows, noise=noise, jumps=jumps))
        several = [metric_intervals("pearson", *scored(1000 + k, rows, noise=noise, jumps=jumps)) for k in range(24)]
        values = [one.value for sample in several for one in sample]
        return float(np.median([one.high - one.low for one in found]) / np.ptp(np.quantile(values, [0.025, 0.975])))

    return draw


# ---------------------------------------------------------------- losses

LAWS: dict[str, Law] = {
    "dense": lambda rng, shape: rng.normal(size=shape),
    "skewed": lambda rng, shape: rng.lognormal(0, 1, shape) - np.exp(0.5),
    "skewed the other way": lambda rng, shape: np.exp(0.5) - rng.lognormal(0, 1, shape),
    "sparse": lambda rng, shape: np.where(rng.random(shape) < 0.02, 3.45, 0.0) - 0.069,
    "sparse, both ways": lambda rng, shape: np.where(rng.random(shape) < 0.02, rng.choice([-3.45, 3.45], shape), 0.0),
}


def claims_of_losses(law: str, rows: int) -> Draw:
    """Whether any head is claimed whose mean effect is 0."""

    def draw(seed: int) -> float:
        losses = LAWS[law](np.random.default_rng([seed, rows]), (HEADS, rows))
        return float((max_t(np.zeros(rows), losses, seed=seed, permutations=DRAWN) <= 0.05).any())

    return draw


def claims_of_one_head(rows: int) -> Draw:
    """Whether one head by itself is claimed that gains a little on all rows and loses 3.45 on 2 %: 0 in the mean."""

    def draw(seed: int) -> float:
        rng = np.random.default_rng([seed, rows, 1])
        losses = LAWS["sparse"](rng, (1, rows)) + rng.normal(0, 0.03, (1, rows))
        return float(max_t(np.zeros(rows), losses, seed=seed, permutations=DRAWN)[0] <= 0.05)

    return draw


def claims_of_recorded(name: str, rows: int) -> Draw:
    """The same of effects recorded on a checkpoint, drawn with replacement, each head's mean taken off."""
    exact = recorded(name).exact
    centred = exact - exact.mean(1, keepdims=True)

    def draw(seed: int) -> float:
        places = np.random.default_rng([seed, rows]).integers(0, exact.shape[1], rows)
        return float((max_t(np.zeros(rows), centred[:, places], seed=seed, permutations=DRAWN) <= 0.05).any())

    return draw


def finds_of_losses(law: str, rows: int, *, size: float) -> Draw:
    """Whether a head whose mean is so many standard deviations of a row is found among others."""

    def draw(seed: int) -> float:
        losses = LAWS[law](np.random.default_rng([seed, rows]), (HEADS, rows))
        losses[0] += size * losses.std()
        return float(max_t(np.zeros(rows), losses, seed=seed, permutations=DRAWN)[0] <= 0.05)

    return draw


def holds_of_losses(law: str, rows: int) -> Draw:
    """The share of heads whose interval holds their mean, 0."""

    def draw(seed: int) -> float:
        losses = LAWS[law](np.random.default_rng([seed, rows]), (HEADS, rows))
        found = mean_intervals(np.zeros(rows), losses, most=None)
        return float(np.mean([one.low is None or one.low <= 0 <= one.high for one in found]))

    return draw


# ---------------------------------------------------------------- races


def raced(effects: np.ndarray) -> int:
    """How many of the heads get a verdict."""
    rules = Rules(MARGIN, CLIP, effects.shape[1], len(effects), hopeless=HOPELESS)
    return len(effects) - len(standings(effects, rules).open)


def effects_at(seed: int, rows: int, kind: str, mean: float, heads: int = HEADS) -> np.ndarray:
    """Effects [head, row] on a loss clipped at ln 2 whose mean is exactly so."""
    rng = np.random.default_rng([seed, rows])
    shape = (heads, rows)
    if kind == "dense":
        return rng.normal(mean, 2 * MARGIN, shape)
    if kind == "skewed":
        return mean * rng.exponential(1, shape)
    if kind == "half dense, half rare":
        return rng.normal(mean / 2, MARGIN / 2, shape) + CLIP * (rng.random(shape) < mean / 2 / CLIP)
    if kind == "dense beyond it, rare ones against it":
        return rng.normal(2 * mean, MARGIN / 2, shape) - CLIP * (rng.random(shape) < mean / CLIP)
    share = int(kind.split()[1]) / 100  # "on 5 % of the rows"
    return (mean / share) * (rng.random(shape) < share)


def claims_of_races(kind: str, rows: int, heads: int = HEADS) -> Draw:
    """Whether any head that lies exactly at the margin gets a verdict, which would be wrong either way."""
    return lambda seed: float(raced(effects_at(seed, rows, kind, MARGIN, heads)) > 0)


def finds_of_races(kind: str, rows: int, *, mean: float) -> Draw:
    """The share of heads with this mean that are found to matter."""

    def draw(seed: int) -> float:
        effects = effects_at(seed, rows, kind, mean)
        state = standings(effects, Rules(MARGIN, CLIP, rows, HEADS, hopeless=HOPELESS))
        return float(np.mean([verdict == "matters" for verdict in state.verdicts]))

    return draw


# ---------------------------------------------------------------- patching


def patched(seed: int, pairs: int, share: float, law: str) -> tuple:
    """Logit differences of A, B, and B with each component patched in; all bring back the same share in the mean."""
    rng = np.random.default_rng([seed, pairs])
    second, gap = rng.normal(size=pairs), rng.uniform(0.5, 3, pairs)
    return second + gap, second, second + share * gap + LAWS[law](rng, (HEADS, pairs))


def claims_of_patches(pairs: int, law: str) -> Draw:
    """Whether any component that brings nothing back is claimed."""

    def draw(seed: int) -> float:
        p = recovered_share(*patched(seed, pairs, 0.0, law), seed=seed).p
        return float((p <= 0.05).any())

    return draw


def finds_of_patches(pairs: int, *, share: float) -> Draw:
    """The share of components that are found."""
    return lambda seed: float((recovered_share(*patched(seed, pairs, share, "dense"), seed=seed).p <= 0.05).mean())


def holds_of_patches(pairs: int, law: str) -> Draw:
    """The share of intervals that hold the share."""

    def draw(seed: int) -> float:
        found = recovered_share(*patched(seed, pairs, 0.3, law), seed=seed)
        return float(((found.low <= 0.3) & (found.high >= 0.3)).mean())

    return draw


# ---------------------------------------------------------------- runs over seeds


def trained(rng: np.random.Generator, count: int, gold: np.ndarray, right: float, between: float) -> np.ndarray:
    """Predictions [run, row]: rows are hard or easy for every run, and runs are better or worse."""
    hard = rng.normal(size=gold.size)
    skill = rng.normal(0, between, (count, 1)) / 0.28  # a share near .8 moves by .28 for each unit of this scale
    good = hard + rng.normal(size=(count, gold.size)) < 0.8416 * np.sqrt(2) + skill * np.sqrt(2) + (right - 0.8) * 5
    return np.where(good, gold, 1 - gold)


def claims_of_runs(count: int, rows: int, between: float) -> Draw:
    """Whether runs of two ways that do not differ have a difference whose interval leaves 0 out."""

    def draw(seed: int) -> float:
        rng = np.random.default_rng([seed, rows, count])
        gold = rng.integers(0, 2, rows)
        both = [trained(rng, count, gold, 0.8, between) for _ in range(2)]
        found = score_difference("accuracy", gold, *both)
        return float(not found.low <= 0 <= found.high)

    return draw


def holds_of_runs(count: int, rows: int, between: float) -> Draw:
    """Whether the interval of the mean over runs holds .8, the share right of all runs on all rows."""

    def draw(seed: int) -> float:
        rng = np.random.default_rng([seed, rows, count])
        gold = rng.integers(0, 2, rows)
        found = mean_score("accuracy", gold, trained(rng, count, gold, 0.8, between))
        return float(found.low <= 0.8 <= found.high)

    return draw


def claims_of_seeds(seed: int) -> float:
    """Whether some seed is found to matter (Holm over the three) in nine runs of which none does."""
    scores = np.random.default_rng(seed).normal(0.8, 0.02, 9)
    return float(min(part.p for part in sources(scores, 3)[:3]) <= 0.05 / 3)


def finds_of_seeds(side: int, *, spread: float) -> Draw:
    """Whether a seed is found that spreads so many times as much as the rest."""

    def draw(seed: int) -> float:
        rng = np.random.default_rng(seed)
        levels, rest = spread * rng.normal(size=side), rng.normal(size=side**2)
        return float(sources(np.repeat(levels, side) + rest, side)[0].p <= 0.05 / 3)

    return draw


def least_spread(side: int) -> float:
    """The spread of a seed, over the rest's, whose F is just significant over the three."""
    freedom, left = side - 1, (side - 1) * (side - 2)
    return float(np.sqrt((f_law.isf(0.05 / 3, freedom, left) - 1) / side))


def holds_of_overlaps(count: int, alike: float) -> Draw:
    """Whether the interval of the share of top heads that runs share holds that of 60 other runs of the same kind."""

    def draw(seed: int) -> float:
        rng = np.random.default_rng([seed, count])
        heads = alike * rng.normal(size=HEADS)
        many, few = (top_heads(heads + rng.normal(size=(runs, HEADS)), 7) for runs in (60, count))
        found = overlap(few)
        return float(found.low <= overlap(many).value <= found.high)

    return draw


def holds_of_operators(alike: float, heads: int = HEADS) -> Draw:
    """Whether the interval of tau between two operators holds the mean tau of such heads on as many rows."""

    def drawn(seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        one, own = rng.normal(size=(2, heads))
        other = alike * one + np.sqrt(1 - alike**2) * own
        return np.stack([0.3 * means[:, None] + rng.normal(size=(heads, 100)) for means in (one, other)])

    @cache
    def truth() -> float:
        taus = [operators_agree(drawn(10**6 + k), resamples=1, halves=10).tau[0, 1] for k in range(80)]
        return float(np.mean(taus))

    def draw(seed: int) -> float:
        found = operators_agree(drawn(seed), resamples=200, halves=20)
        return float(found.low[0, 1] <= truth() <= found.high[0, 1])

    return draw


# ---------------------------------------------------------------- importance


def holds_of_rho(heads: int, rho: float) -> Draw:
    """Whether the interval of a rank correlation holds that of all such heads."""
    together = 2 * np.sin(np.pi * rho / 6)

    def draw(seed: int) -> float:
        one, own = np.random.default_rng([seed, heads]).normal(size=(2, heads))
        found = rank_correlation(one, together * one + np.sqrt(1 - together**2) * own, seed=seed)
        return float(found.low <= rho <= found.high)

    return draw


def claims_of_ranks(seed: int) -> float:
    """Whether importance and effects that have nothing to do with each other are said to rank heads alike."""
    rng = np.random.default_rng(seed)
    return float(rank_agreement(rng.exponential(size=HEADS), rng.normal(size=HEADS)).p <= 0.05)


def finds_of_ranks(rho: float) -> Draw:
    """Whether ranks that correlate by so much are found to."""
    together = 2 * np.sin(np.pi * rho / 6)  # Pearson's r of normal numbers with this Spearman's rho (Pearson 1907)

    def draw(seed: int) -> float:
        rng = np.random.default_rng(seed)
        one = rng.normal(size=HEADS)
        other = together * one + np.sqrt(1 - together**2) * rng.normal(size=HEADS)
        return float(rank_agreement(one, other).p <= 0.05)

    return draw


def least_rho(heads: int) -> float:
    """The Spearman's rho that is just significant."""
    far = t_law.isf(0.025, heads - 2)
    return float(far / np.sqrt(heads - 2 + far**2))


# ---------------------------------------------------------------- the list


def _classes() -> Iterator[Case]:
    for study, rows, share in (
        ("disable", 20, 0.1),
        ("disable", 300, 0.02),
        ("disable", 872, 0.1),
        ("cross-fitted", 2490, 0.02),
        ("knockout", 277, 0.3),
        ("perturb", 408, 0.3),
    ):
        world = f"labels at random, {share:.0%} of predictions flip, n = {rows}"
        quick = 30 if rows <= 300 else 0
        yield Case(study, world, "nothing", claims_of_classes(rows, share), rows, quick=quick)
    for rows in (300, 872):
        asked = (
            rows * least_mean(rows, HEADS) ** 2 / (0.8 * rows)
        )  # so many lost that their root is the normal quantile
        planted = Planted(asked, "share of right rows", lambda lost, rows=rows: finds_of_classes(rows, lost=lost))
        yield known("disable", f"one head of 36 loses right rows, n = {rows}", planted, rows, quick=20 * (rows == 300))
    few, many, dense = (0.006, 0.0), (0.05, 0.02), (0.15, 0.3)
    for name, rows, rates in (
        ("accuracy", 20, few),
        ("accuracy", 20, dense),
        ("accuracy", 100, few),
        ("accuracy", 300, few),
        ("accuracy", 872, many),
        ("f1", 20, dense),
        ("f1", 100, few),
        ("f1", 408, few),
        ("f1", 408, dense),
    ):
        world = f"{name}: {rates[0]:.1%} of right rows lost, {rates[1]:.1%} of wrong won, n = {rows}"
        bound = 0.9 if rows < 100 else 0.93
        study = "prune" if name == "f1" else "disable"
        gold = 0.68 if name == "f1" else 0.5
        draw = holds_of_classes(name, rows, rates, gold=gold)
        yield Case(study, world, "covers", draw, rows, quick=40 if rows <= 300 else 0, bound=bound)
        if rates != few:
            yield Case(
                study,
                f"width over an oracle's, {world}",
                "at most",
                wide_of_classes(name, rows, rates, gold),
                rows,
                draws=20,
                quick=3 if rows <= 300 else 0,
                bound=1.5,
            )
    yield Case(
        "disable",
        "accuracy: half of the rows right, 1.0% of them lost, n = 200",
        "covers",
        holds_of_classes("accuracy", 200, (0.02, 0.0), right=0.5),
        200,
        quick=40,
    )
    for rows in (60, 100, 300):
        world = f"no loss of two points is claimed of a loss of two points, n = {rows}"
        yield Case("prune", world, "nothing", no_loss(rows, 0.02), rows, quick=40)


def _scores() -> Iterator[Case]:
    for rows, noise, jumps in (
        (20, 0.8, 0.0),
        (100, 0.3, 0.0),
        (100, 0.0, 0.1),
        (300, 0.0, 0.05),
        (1500, 0.3, 0.0),
        (1500, 0.0, 0.02),
    ):
        what = f"jumps on {jumps:.0%} of rows" if jumps else f"noise of {noise}"
        bound = 0.9 if rows < 100 else 0.93
        world = f"correlation: {what}, n = {rows}"
        quick = 30 if rows <= 300 else 0
        yield Case(
            "disable", world, "covers", holds_of_scores(rows, noise=noise, jumps=jumps), rows, quick=quick, bound=bound
        )
        yield Case(
            "disable",
            f"width over an oracle's, {world}",
            "at most",
            wide_of_scores(rows, noise=noise, jumps=jumps),
            rows,
            draws=20,
            quick=3 if rows == 100 else 0,
            bound=1.5,
        )


def _losses() -> Iterator[Case]:
    for law in LAWS:
        for rows in (20, 300, 872):
            quick = 20 if rows == 300 else 0
            world = f"mean losses of 0, {law}, n = {rows}"
            yield Case("operators", world, "nothing", claims_of_losses(law, rows), rows, quick=quick)
    for rows in (20, 149, 300, 872):
        yield Case(
            "operators",
            f"one head alone, 2 % of rows against all others, n = {rows}",
            "nothing",
            claims_of_one_head(rows),
            rows,
        )
    for name in ("encoder", "minilm"):
        yield Case(
            "operators",
            f"recorded losses less their mean, {name}, n = 300",
            "nothing",
            claims_of_recorded(name, 300),
            300,
            quick=20,
        )
    for law, rows in (("dense", 300), ("skewed", 300), ("skewed", 872)):
        planted = Planted(
            least_mean(rows, HEADS),
            "deviations of a row",
            lambda size, law=law, rows=rows: finds_of_losses(law, rows, size=size),
        )
        yield known(
            "operators", f"one head of 36 has a mean, {law}, n = {rows}", planted, rows, quick=20 if rows == 300 else 0
        )
    for law, rows in (("dense", 20), ("skewed", 20), ("dense", 300), ("skewed", 300), ("sparse, both ways", 872)):
        bound = 0.9 if rows < 100 else 0.93
        yield Case(
            "operators",
            f"interval of a mean loss, {law}, n = {rows}",
            "covers",
            holds_of_losses(law, rows),
            rows,
            quick=30 if rows <= 300 else 0,
            bound=bound,
        )


def _races() -> Iterator[Case]:
    kinds = (
        "dense",
        "skewed",
        "half dense, half rare",
        "dense beyond it, rare ones against it",
        "on 5 % of the rows",
        "on 10 % of the rows",
        "on 50 % of the rows",
    )
    for kind in kinds:
        for rows in (300, 872):
            world = f"36 heads at the margin, {kind}, n = {rows}"
            yield Case(
                "sequential-test", world, "nothing", claims_of_races(kind, rows), rows, quick=40 if rows == 872 else 0
            )
    yield Case(
        "sequential-test",
        "one head at the margin, on 5 % of the rows, n = 872",
        "nothing",
        claims_of_races("on 5 % of the rows", 872, 1),
        872,
        quick=60,
    )
    for kind in ("dense", "skewed", "on 50 % of the rows"):
        planted = Planted(MARGIN, "nats", lambda mean, kind=kind: finds_of_races(kind, 872, mean=mean), is_margin=True)
        yield known("sequential-test", f"36 heads of twice the margin, {kind}, n = 872", planted, 872, quick=20)


def _patches() -> Iterator[Case]:
    for pairs, law in ((3, "dense"), (12, "dense"), (20, "dense"), (20, "skewed"), (100, "skewed"), (100, "dense")):
        world = f"components that bring nothing back, {law}, {pairs} pairs"
        yield Case("patch", world, "nothing", claims_of_patches(pairs, law), pairs, quick=30 if pairs <= 20 else 0)
        bound = 0.9 if pairs < 100 else 0.93
        yield Case(
            "patch",
            f"interval of the share, {law}, {pairs} pairs",
            "covers",
            holds_of_patches(pairs, law),
            pairs,
            quick=30,
            bound=bound,
        )
    gap = (0.5 + 3) / 2  # the mean difference of two inputs
    planted = Planted(least_mean(100, HEADS) / gap, "recovered share", lambda share: finds_of_patches(100, share=share))
    yield known("patch", "all bring the same back, 100 pairs", planted, 100, quick=10)


def _runs() -> Iterator[Case]:
    for study, count, rows, between in (
        ("fixed-pattern", 1, 300, 0.0),
        ("fixed-pattern", 3, 300, 0.01),
        ("subnetworks", 3, 300, 0.02),
        ("subnetworks", 5, 872, 0.02),
        ("transfer", 2, 300, 0.02),
        ("probe", 1, 20, 0.0),
        ("seeds", 9, 872, 0.02),
    ):
        about = f"{count} run{'s' * (count > 1)} that spread by {between}, n = {rows}"
        world = f"two ways that do not differ, {about}"
        yield Case(study, world, "nothing", claims_of_runs(count, rows, between), rows, quick=60)
        yield Case(
            study,
            f"interval of the mean, {about}",
            "covers",
            holds_of_runs(count, rows, between),
            rows,
            quick=60,
            bound=0.9 if rows < 100 else 0.93,
        )
    for count, alike in ((5, 0.0), (9, 0.0), (9, 1.0), (9, 3.0)):
        world = f"interval of shared top heads, {count} runs, heads differ {alike} times as much as runs"
        yield Case("seeds", world, "covers", holds_of_overlaps(count, alike), count, quick=40, bound=0.9)
    for alike in (0.0, 0.6):
        yield Case(
            "operators",
            f"interval of tau of two operators that correlate by {alike}, n = 100",
            "covers",
            holds_of_operators(alike),
            100,
            draws=400,
            bound=0.9,
        )
    few = "interval of tau of two operators that correlate by 0.95, 10 heads, n = 100"
    yield Case("operators", few, "covers", holds_of_operators(0.95, 10), 100, draws=200, bound=0.9)
    yield Case("seeds", "no seed matters", "nothing", claims_of_seeds, 9, quick=60)
    planted = Planted(least_spread(8), "spreads of the rest", lambda spread: finds_of_seeds(8, spread=spread))
    yield known("seeds", "one seed spreads, 64 runs", planted, 64, quick=40)


def _ranks() -> Iterator[Case]:
    yield Case("importance", "ranks that have nothing in common, 36 heads", "nothing", claims_of_ranks, 36, quick=60)
    planted = Planted(least_rho(HEADS), "Spearman's rho", finds_of_ranks)
    yield known("importance", "ranks that correlate, 36 heads", planted, 36, quick=40)
    for heads in (10, 12, 36):
        for rho in (0.0, 0.8, 0.95):
            world = f"interval of a rank correlation of {rho}, {heads} heads"
            yield Case("gates", world, "covers", holds_of_rho(heads, rho), heads, quick=30 * (heads == 10))


CASES: tuple[Case, ...] = (*_classes(), *_scores(), *_losses(), *_races(), *_patches(), *_runs(), *_ranks())
