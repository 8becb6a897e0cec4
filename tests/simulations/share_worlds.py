"""Worlds of shares: of maps by class, of labels that are random, of words that a probe has right. Cases for `registry`.

Inputs (or sentences) are what is drawn: the maps of one input are alike, and so are the words of a sentence.
"""

from collections.abc import Iterator
from functools import lru_cache, partial

import numpy as np

from core.patterns import retraining
from core.patterns.evaluation import corrected_shares, enough_maps, macro_f1_interval, moved_shares, shares
from core.scoring.shares import share_difference, share_of
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


def holds_of_corrected(inputs: int, seed: int) -> float:
    """The share of classes whose corrected share holds the truth, with 100 inputs of 5 maps held out."""
    rng = np.random.default_rng([seed, inputs])
    seen = _confused(rng, _classes(rng, inputs)).sum(1)
    held_out = _confused(rng, rng.multinomial(5, np.full(5, 0.2), 100))
    shown = corrected_shares(seen, held_out, CLASSES, seed=seed)
    return float(np.mean([one.low <= true <= one.high for one, true in zip(shown, TRUE, strict=True)]))


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


def _cases() -> Iterator[Case]:
    for rows in (20, 100, 300):
        least = 0.9 if rows < 100 else 0.93
        yield Case(
            "separators",
            f"interval of the ratio of gradients, n = {rows}",
            "covers",
            partial(holds_of_ratios, rows),
            rows,
            quick=20,
            bound=least,
        )
        yield Case(
            "separators",
            f"width over an oracle's, ratio of gradients, n = {rows}",
            "at most",
            partial(wide_of_ratios, rows),
            rows,
            draws=20,
            bound=1.5,
        )
    for inputs in (20, 100, 250):
        least = 0.9 if inputs < 100 else 0.93
        yield Case(
            "classify-maps",
            f"interval of a class share, n = {inputs}",
            "covers",
            partial(holds_of_shares, inputs),
            inputs,
            quick=10,
            bound=least,
        )
        yield Case(
            "classify-maps",
            f"checkpoints that are alike, n = {inputs}",
            "nothing",
            partial(claims_of_moved, inputs),
            inputs,
            quick=10,
        )
        yield Case(
            "train-patterns",
            f"interval of macro F1, labels at random, n = {inputs}",
            "covers",
            partial(holds_of_f1, inputs, 0.0),
            inputs,
            quick=10,
            bound=least,
        )
        yield Case(
            "train-patterns",
            f"labels at random, one called worse than another, n = {inputs}",
            "nothing",
            partial(claims_of_retraining, inputs),
            inputs,
            quick=4 * (inputs == 20),
        )
        yield Case(
            "train-patterns",
            f"interval of macro F1, half of the maps right, n = {inputs}",
            "covers",
            partial(holds_of_f1, inputs, 0.5),
            inputs,
            bound=least,
        )
        yield Case(
            "probe",
            f"interval of accuracy .8, n = {inputs} sentences",
            "covers",
            partial(holds_of_probes, inputs, 0.8),
            inputs,
            quick=10,
            bound=least,
        )
        yield Case(
            "probe",
            f"interval of accuracy .95, n = {inputs} sentences",
            "covers",
            partial(holds_of_probes, inputs, 0.95),
            inputs,
            bound=least,
        )
        yield Case(
            "probe",
            f"labels at random, n = {inputs} sentences",
            "nothing",
            partial(claims_of_probes, inputs),
            inputs,
            quick=10,
        )
    yield Case(
        "classify-maps", "interval of a corrected share, n = 100", "covers", partial(holds_of_corrected, 100), 100
    )
    planted = Planted(least_moved(100), "share of maps", lambda gain: partial(finds_of_moved, 100, gain))
    yield known("classify-maps", "a class gains, n = 100", planted, 100, quick=4)


CASES: tuple[Case, ...] = tuple(_cases())
