"""What `seeds` says of runs made by hand, and where scores cannot be compared."""

import numpy as np
import pytest
from scipy import stats

from core.studies.ablation.records import HeadOverlap, SeedSource, SeedSpread
from core.studies.ablation.seeds import STUDY, SeedRun, SeedRuns
from core.studies.tuning.finetune import TunedRun
from core.studies.tuning.records import TunedRunScore
from core.tuning.recipe import Seeds
from tests.studies.figures import figures

ABOUT = {"task": "stsb", "metric": "pearson", "n": 9}
SHARED = HeadOverlap(name="all pairs", top=5, value=0.4, low=0.2, high=0.6, pairs=36, by_chance=0.14, **ABOUT).as_row()


def spread(*, least):
    score = {"mean": least, "deviation": least, "least": least, "most": least}
    return SeedSpread(**ABOUT, **score, dev_error=None, dev_rows=300, constant=9).as_row()


def test_a_correlation_that_is_undefined_in_some_run_is_said():
    said = STUDY.headline([spread(least=None), SHARED])
    assert "pearson is undefined in at least one run over 9 runs. The scores have no variance" in said.sentence
    assert "two runs share 2.0 of their 5" in said.sentence
    assert (said.interval, said.baseline) == (
        "The number of shared heads has a 95 % CI of 1.0 to 3.0.",
        "By chance, two runs would share 0.7 of their 5 most important heads.",
    )  # heads, as in the sentence


def test_sources_without_a_share_are_no_source():
    source = SeedSource(
        name="head", **ABOUT, share=None, by_chance=0.25, deviation=None, variance=None, low=None, high=None, p=None
    )
    assert "The scores have no variance" in STUDY.headline([spread(least=0.5), source.as_row(), SHARED]).sentence


def of(results, kind):
    return [result for result in results if kind in result.KINDS]


def runs(side=3):
    """Three seeds each: the sample of rows moves the score most, the order of batches not at all. L1H1 is important in
    every run, one of the other three heads in each run with the same initial weights."""
    gold, made = np.tile([0, 1], 50), []
    chance = np.random.default_rng(0)
    for head in range(side):
        for rows in range(side):
            order = (head + rows) % side
            importance = np.full((2, 2, 2), 0.1) + chance.uniform(0, 0.01, (2, 2, 2))
            importance[:, 0, 0] = 1
            importance[:, (head + 1) // 2, (head + 1) % 2] = 0.6
            wrong = 5 + head + 10 * rows
            predicted = np.where(np.arange(100) < wrong, 1 - gold, gold)
            score = TunedRunScore(
                kind="run", task="sst2", metric="accuracy", accuracy=1 - wrong / 100, n=100, constant=rows == 2,
                train_rows=40, dev_rows=100, baseline={"accuracy": 0.5}, folder=f"run-{head}{rows}",
            )  # fmt: skip
            made.append(SeedRun(Seeds(head, rows, order), TunedRun(score, gold, predicted), importance))
    return made


def test_the_spread_of_scores_is_divided_among_seeds_and_heads_are_counted():
    options = STUDY.read({"checkpoint": "x", "task": "sst2", "side": 3, "top": 2, "train_rows": 40})
    made = runs()
    results = STUDY.results(options, STUDY.merge(options, [SeedRuns((run,)) for run in made[::-1]]))
    found = of(results, "run")
    assert [(one.head_seed, one.rows_seed, one.order_seed) for one in found] == [
        (i, j, (i + j) % 3) for i in range(3) for j in range(3)
    ]
    assert [one.score for one in found] == pytest.approx(
        [0.95 - 0.01 * i - 0.1 * j for i in range(3) for j in range(3)]
    )
    assert [one.heads for one in found[::3]] == ["L1H1 L1H2", "L1H1 L2H1", "L1H1 L2H2"]
    assert [(one.constant, one.baseline, one.folder) for one in found[1:3]] == [
        (False, 0.5, "run-01"),
        (True, 0.5, "run-02"),
    ]
    sources = {one.name: one for one in of(results, "source")}
    scores = np.array([one.score for one in found]).reshape(3, 3)
    total = ((scores - scores.mean()) ** 2).sum()
    shares = {
        "head": 3 * ((scores.mean(1) - scores.mean()) ** 2).sum() / total,
        "rows": 3 * ((scores.mean(0) - scores.mean()) ** 2).sum() / total,
        "order": 0,
        "rest": 0,
    }
    assert {name: one.share for name, one in sources.items()} == pytest.approx(shares, abs=1e-9)
    assert [sources[name].by_chance for name in shares] == [0.25] * 4
    (spread,) = of(results, "spread")
    values = scores.ravel()
    assert (spread.mean, spread.least, spread.most) == pytest.approx((values.mean(), 0.73, 0.95))
    assert spread.deviation == pytest.approx(values.std(ddof=1))
    assert spread.dev_error == pytest.approx(np.sqrt(0.95 * 0.05 / 100), rel=0.1)
    assert (spread.dev_rows, spread.constant, spread.n) == (100, 3, 9)
    overlaps = {one.name: one for one in of(results, "overlap")}
    assert {name: (one.value, one.pairs) for name, one in overlaps.items()} == {
        "all pairs": (pytest.approx((9 + 27 / 2) / 36), 36),
        "same head": (1, 9),
        "same rows": (0.5, 9),
        "same order": (0.5, 9),
        "no seed in common": (0.5, 9),
        "same run, other rows": (1, 0),
    }
    whole = overlaps["all pairs"]
    assert (whole.by_chance, whole.top) == (0.5, 2)
    assert (whole.low, whole.high) == pytest.approx((whole.value, whole.value))  # no run is unlike the others
    assert [(one.name, one.runs, one.n, one.top) for one in of(results, "head")] == [
        ("L1H1", 9, 9, 2), ("L1H2", 3, 9, 2), ("L2H1", 3, 9, 2), ("L2H2", 3, 9, 2),
    ]  # fmt: skip
    said = STUDY.headline([one.as_row() for one in results])
    assert {"73.0", "95.0", "9", f"{100 * shares['rows']:.0f}"} <= set(figures(said.sentence))
    assert "sample of rows" in said.sentence
    few = STUDY.results(options, SeedRuns(tuple(made[:4])))
    assert not of(few, "source")  # still running
    assert STUDY.results(options, SeedRuns(tuple(made[:1]))) == few[:1]


def test_ps_of_seeds_are_of_an_analysis_of_variance_and_corrected():
    """A square with noise; the p of each seed is that of F, and Holm's correction is over the three."""
    chance, made = np.random.default_rng(1), runs()
    noisy = []
    for run, noise in zip(made, chance.normal(0, 0.02, 9), strict=True):
        score = TunedRunScore(**{**vars(run.tuned.score), "accuracy": run.tuned.score.accuracy + noise})
        noisy.append(SeedRun(run.seeds, TunedRun(score, run.tuned.gold, run.tuned.predicted), run.importance))
    options = STUDY.read({"checkpoint": "x", "task": "sst2", "side": 3, "top": 2, "train_rows": 40})
    sources = {one.name: one for one in of(STUDY.results(options, SeedRuns(tuple(noisy))), "source")}
    scores = np.array([run.tuned.score.accuracy for run in noisy])
    levels = np.array([(run.seeds.head, run.seeds.rows, run.seeds.order) for run in noisy])
    squares = [
        3 * sum((scores[levels[:, k] == level].mean() - scores.mean()) ** 2 for level in range(3)) for k in range(3)
    ]
    left = ((scores - scores.mean()) ** 2).sum() - sum(squares)
    ps = [stats.f.sf((part / 2) / (left / 2), 2, 2) for part in squares]
    order = np.argsort(ps)
    adjusted = np.maximum.accumulate([min(1, (3 - rank) * ps[k]) for rank, k in enumerate(order)])
    assert [sources[name].p for name in np.array(["head", "rows", "order"])[order]] == pytest.approx(adjusted.tolist())
    assert sources["rest"].share == pytest.approx(left / ((scores - scores.mean()) ** 2).sum())
    assert sources["rest"].deviation == pytest.approx(np.sqrt(left / 2))
    for one in sources.values():
        assert one.name == "rest" or 0 <= one.low <= one.variance <= one.high <= 1
