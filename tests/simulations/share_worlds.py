"""Worlds of shares: of maps by class, of labels that are random, of words that a probe has right. Cases for `registry`.

Inputs (or sentences) are what is drawn: the maps of one input are alike, and so are the words of a sentence.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache, partial

import numpy as np

from core.patterns import retraining
from core.patterns.class_shares import corrected_shares, moved_shares, shares, true_changes, true_shares
from core.patterns.evaluation import enough_maps, macro_f1_interval
from core.scoring.intervals import share_difference, share_of
from core.studies.ablation.separators import ratio_interval
from tests.simulations.registry import Case, Planted, known, least_mean

MAPS = 36  # of an input
CLASSES = ("diagonal", "vertical", "vertical+diagonal", "block", "heterogeneous")
TRUE = np.array([0.45, 0.3, 0.13, 0.08, 0.04])
ALIKE = 8.0  # the smaller, the more the maps of one input are alike


def _classes(rng: np.random.Generator, inputs: int) -> np.ndarray:
    """Counts of each class [input, class]."""
    return rng.multinomial(MAPS, rng.dirichlet(ALIKE * TRUE, inputs))


def holds_of_shares(inputs: int, seed: int) -> float:
    """The share of classes whose interval holds the true share."""
    shown = shares(_classes(np.random.default_rng([seed, inputs]), inputs), CLASSES, seed=seed)
    return float(np.mean([one.low <= true <= one.high for one, true in zip(shown, TRUE, strict=True)]))


def claims_of_moved(inputs: int, seed: int) -> float:
    """Whether any class is said to move between two checkpoints that are alike on the whole."""
    rng = np.random.default_rng([seed, inputs])
    moved = moved_shares(_classes(rng, inputs), _classes(rng, inputs), CLASSES, seed=seed)
    return float(any(one.low_all > 0 or one.high_all < 0 for one in moved))


def least_moved(inputs: int) -> float:
    """The gain of a class that three maps in ten have which is just significant over the classes: maps of an input are
    alike as a Dirichlet law makes them, and both checkpoints are drawn."""
    one_input = 0.3 * 0.7 * (1 + (MAPS - 1) / (ALIKE + 1)) / MAPS
    return float(least_mean(inputs, len(CLASSES)) * np.sqrt(2 * one_input))


def finds_of_moved(inputs: int, gain: float, seed: int) -> float:
    """Whether a class is found to move that gains so much."""
    rng = np.random.default_rng([seed, inputs])
    after = rng.multinomial(MAPS, rng.dirichlet(ALIKE * (TRUE + np.array([-gain, gain, 0, 0, 0])), inputs))
    return float(moved_shares(_classes(rng, inputs), after, CLASSES, seed=seed)[1].low_all > 0)


CONFUSION = 0.8 * np.eye(5) + 0.2 * np.array([[0, 0.2, 0.5, 0.1, 0.2]] * 2 + [[0.5, 0.4, 0, 0, 0.1]] + [[0.25] * 5] * 2)
CONFUSION /= CONFUSION.sum(1, keepdims=True)


def _confused(rng: np.random.Generator, counts: np.ndarray) -> np.ndarray:
    """Confusions [input, true, predicted] of counts [input, true]."""
    return np.stack([rng.multinomial(counts[:, k], CONFUSION[k]) for k in range(5)], 1)


def _held_out(rng: np.random.Generator, labelled: tuple[float, ...]) -> np.ndarray:
    """Confusions of 100 inputs with 5 labelled maps each, of these shares of the classes."""
    return _confused(rng, rng.multinomial(5, labelled, 100))


EVEN, TWELVE = (0.2,) * 5, (0.35, 0.3, 0.2, 0.126, 0.024)  # labelled maps of each class; of the last some 12 of 500
NOTHING_OF_TWO = np.array([0.5, 0.35, 0.15, 0.0, 0.0])


def holds_of_corrected(inputs: int, true: np.ndarray, labelled: tuple[float, ...], seed: int) -> float:
    """The share of classes whose corrected share's interval, where it is given, holds the truth."""
    rng = np.random.default_rng([seed, inputs])
    counts = rng.multinomial(MAPS, rng.dirichlet(ALIKE * np.maximum(true, 1e-9), inputs))
    shown = corrected_shares(_confused(rng, counts).sum(1), _held_out(rng, labelled), CLASSES, seed=seed)
    return float(np.mean([not (value < one.low or value > one.high) for one, value in zip(shown, true, strict=True)]))


def claims_of_misfit(inputs: int, labelled: tuple[float, ...], seed: int) -> float:
    """Whether counts that are confused as the labelled maps were are said to misfit."""
    rng = np.random.default_rng([seed, inputs])
    counts = rng.multinomial(MAPS, rng.dirichlet(ALIKE * np.maximum(NOTHING_OF_TWO, 1e-9), inputs))
    seen = _confused(rng, counts).sum(1)
    return float(corrected_shares(seen, _held_out(rng, labelled), CLASSES, seed=seed)[0].misfit < 0.05)


def holds_of_shifts(inputs: int, labelled: tuple[float, ...], seed: int) -> float:
    """The share of classes whose interval of a change between two checkpoints holds the true change."""
    rng = np.random.default_rng([seed, inputs])
    before, after = rng.dirichlet(ALIKE * TRUE, 2)
    error = np.sqrt(0.15 * 4 / inputs / MAPS)  # of a counted share's change; maps of an input are alike
    counted = (after - before) @ CONFUSION + rng.normal(0, error, len(TRUE))
    _, low, high = true_changes(counted, np.full(len(TRUE), 1.96 * error), _held_out(rng, labelled))
    return float(np.mean((low <= after - before) & (after - before <= high)))


HEADS_A_DRAW = 6


def holds_of_heads(inputs: int, true: np.ndarray, labelled: tuple[float, ...], seed: int) -> float:
    """The share of heads whose interval of the first three classes' share, where it is given, holds the truth."""
    rng = np.random.default_rng([seed, inputs])
    counts = rng.multinomial(inputs, true @ CONFUSION, HEADS_A_DRAW)
    chosen = np.arange(len(true)) < 3
    _, low, high = true_shares(counts, chosen, _held_out(rng, labelled))
    return float(np.mean(~((true[chosen].sum() < low - 1e-9) | (true[chosen].sum() > high + 1e-9))))


def _labelled(rng: np.random.Generator, inputs: int, skill: float) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """True classes and predicted ones of 5 maps an input: right in a share that varies by input, else random."""
    truth = rng.choice(5, (inputs, 5), p=TRUE)
    good = rng.random((inputs, 5)) < np.clip(rng.normal(skill, 0.15 * (skill > 0), (inputs, 1)), 0, 1)
    predicted = np.where(good, truth, rng.choice(5, truth.shape, p=TRUE))
    return truth.ravel(), predicted.ravel(), [str(k) for k in range(inputs) for _ in range(5)]


def holds_of_f1(inputs: int, skill: float, seed: int) -> float:
    """Whether the interval of macro F1 holds that of 40,000 inputs over the same classes (those of so many maps in the
    draw); skill 0: labels at random."""
    truth, predicted, groups = _labelled(np.random.default_rng([seed, inputs]), inputs, skill)
    low, high = macro_f1_interval(truth, predicted, groups, 5, seed=seed)
    counted = np.zeros((5, 5), dtype=int)
    np.add.at(counted, (truth, predicted), 1)
    return float(low <= _true_f1s(skill)[enough_maps(counted)].mean() <= high)


def claims_of_retraining(inputs: int, seed: int) -> float:
    """Whether a classifier trained on random labels is called worse than another that was."""
    rng = np.random.default_rng([seed, inputs])
    truth, first, groups = _labelled(rng, inputs, 0.0)
    second = rng.choice(5, truth.size, p=TRUE)
    named, *answers = ([CLASSES[k] for k in numbers] for numbers in (truth, first, second))
    judged, (before, after) = retraining.LabelledMaps(named, groups), map(retraining.Answers, answers)
    found = retraining.differences(retraining.NEW_MAPS, judged, before, after, seed=seed)
    return float(any(change.is_worse for change in found))


@lru_cache(maxsize=4)
def _true_f1s(skill: float) -> np.ndarray:
    """F1 of each class over 40,000 inputs."""
    truth, predicted, _ = _labelled(np.random.default_rng(10**6), 40_000, skill)
    table = np.zeros((5, 5))
    np.add.at(table, (truth, predicted), 1)
    return 2 * np.diagonal(table) / (table.sum(1) + table.sum(0))


def _words(rng: np.random.Generator, sentences: int, right: float) -> tuple[np.ndarray, np.ndarray]:
    """Words that are right, and words, of each sentence; sentences are easy or hard."""
    words = rng.integers(4, 30, sentences)
    return rng.binomial(words, rng.beta(8 * right, 8 * (1 - right), sentences)), words


def holds_of_probes(sentences: int, right: float, seed: int) -> float:
    """Whether the interval of a probe's accuracy holds it."""
    share = share_of(*_words(np.random.default_rng([seed, sentences]), sentences, right), seed=seed)
    return float(share.low <= right <= share.high)


def claims_of_probes(sentences: int, seed: int) -> float:
    """Whether a probe of random labels is said to be above (or below) its control task."""
    rng = np.random.default_rng([seed, sentences])
    words = rng.integers(4, 30, sentences)
    probe, control = (rng.binomial(words, rng.beta(0.3 * 8, 0.7 * 8, sentences)) for _ in range(2))
    selective = share_difference(probe, control, words, seed=seed)
    return float(not selective.low <= 0 <= selective.high)


def _slopes(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean gradients to separators and to other tokens of each row: skewed, and large together. Ratio .5."""
    row = rng.lognormal(0, 1, rows)
    return 0.5 * row * rng.lognormal(-0.125, 0.5, rows), row * rng.lognormal(-0.125, 0.5, rows)


def holds_of_ratios(rows: int, seed: int) -> float:
    """Whether the interval of the ratio of gradients holds it."""
    _, low, high = ratio_interval(*_slopes(np.random.default_rng([seed, rows]), rows))
    return float(low is not None and high is not None and low <= 0.5 <= high)


def wide_of_ratios(rows: int, seed: int) -> float:
    """Its width over that of the ratio's own law."""
    _, low, high = ratio_interval(*_slopes(np.random.default_rng([seed, rows]), rows))
    drawn = [above.mean() / below.mean() for above, below in (_slopes(_rng(k), rows) for k in range(200))]
    return float((high - low) / np.ptp(np.quantile(drawn, [0.025, 0.975]))) if low is not None and high else np.nan


def _rng(seed: int) -> np.random.Generator:
    return np.random.default_rng([7, seed])


def _covers(study: str, interval: str, draw: Callable[..., float], n: int, quick: int = 0, of: str = "") -> Case:
    """Intervals of n rows, inputs or sentences (of) hold the truth; of fewer than 100 as often as 90 %."""
    least = 0.9 if n < 100 else 0.93
    return Case(study, f"{interval}, n = {n}{of}", "covers", draw, n, quick=quick, bound=least)


def _nothing(study: str, world: str, draw: Callable[..., float], n: int, quick: int, of: str = "") -> Case:
    """Where n inputs or sentences have nothing to be claimed."""
    return Case(study, f"{world}, n = {n}{of}", "nothing", draw, n, quick=quick)


def _of_ratios(rows: int) -> Iterator[Case]:
    yield _covers("separators", "interval of the ratio of gradients", partial(holds_of_ratios, rows), rows, 20)
    world = f"width over an oracle's, ratio of gradients, n = {rows}"
    yield Case("separators", world, "at most", partial(wide_of_ratios, rows), rows, draws=20, bound=1.5)


def _of_classes(n: int) -> Iterator[Case]:
    yield _covers("pattern-shares", "interval of a class share", partial(holds_of_shares, n), n, 10)
    yield _nothing("pattern-shares", "checkpoints that are alike", partial(claims_of_moved, n), n, 10)
    random, half = "interval of macro F1, labels at random", "interval of macro F1, half of the maps right"
    yield _covers("train-patterns", random, partial(holds_of_f1, n, 0.0), n, 10)
    worse = "labels at random, one called worse than another"
    yield _nothing("train-patterns", worse, partial(claims_of_retraining, n), n, 4 * (n == 20))
    yield _covers("train-patterns", half, partial(holds_of_f1, n, 0.5), n)


def _of_probes(n: int) -> Iterator[Case]:
    of = " sentences"
    yield _covers("probe", "interval of accuracy .8", partial(holds_of_probes, n, 0.8), n, 10, of)
    yield _covers("probe", "interval of accuracy .95", partial(holds_of_probes, n, 0.95), n, of=of)
    yield _nothing("probe", "labels at random", partial(claims_of_probes, n), n, 10, of)


def _cases() -> Iterator[Case]:
    for rows in (20, 100, 300):
        yield from _of_ratios(rows)
    for inputs in (20, 100, 250):
        yield from _of_classes(inputs)
        yield from _of_probes(inputs)
    for name, true, labelled in (
        ("", TRUE, EVEN),
        (", 12 labelled maps of a class", TRUE, TWELVE),
        (", two true shares of 0", NOTHING_OF_TWO, EVEN),
        (", two true shares of 0, 12 labelled maps of one", NOTHING_OF_TWO, TWELVE),
    ):
        corrected = f"interval of a corrected share{name}, n = 100"
        yield Case("pattern-shares", corrected, "covers", partial(holds_of_corrected, 100, true, labelled), 100)
        of_head = f"interval of one head's corrected share{name}, n = 100"
        yield Case("pattern-shares", of_head, "covers", partial(holds_of_heads, 100, true, labelled), 100, draws=100)
    for name, labelled in (("", EVEN), (", 12 labelled maps of a class", TWELVE)):
        misfit = f"counts confused as labelled maps were{name}, n = 100"
        yield Case("pattern-shares", misfit, "nothing", partial(claims_of_misfit, 100, labelled), 100)
        shifts = f"interval of a corrected change{name}, n = 100"
        yield Case("pattern-shares", shifts, "covers", partial(holds_of_shifts, 100, labelled), 100)
    planted = Planted(least_moved(100), "share of maps", lambda gain: partial(finds_of_moved, 100, gain))
    yield known("pattern-shares", "a class gains, n = 100", planted, 100, quick=4)


CASES: tuple[Case, ...] = tuple(_cases())
