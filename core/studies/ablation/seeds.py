"""Variation of fine-tuning results due to three seeds: output-head weights, sample of examples, and order of batches.

Runs that differ in one seed differ by points on small tasks (Dodge et al. 2020). k x k runs in a Latin square show how
much of the variance each seed causes (function `sources`), and whether the most important heads (Michel et al. 2019)
agree between runs. One unit is one run. Kinds of rows: "run"; "source", for each seed and the residual; "spread" over
runs, with the standard error due to the dev examples; "overlap" of important heads between runs, at chance level, and
within a run on other examples; "head", the number of runs in which a head is important.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any

import numpy as np
import pydantic.dataclasses
import scipy  # its parts load when they are used
from jaxtyping import Bool, Float

from ... import capture, config, studies
from ...attention import Head
from ...errors import InputError
from ...interval import Estimate, finite, or_nan
from ...scoring import effects
from ...scoring.corrections import CONFIDENCE, holm_adjusted
from ...store.rows import Row
from ...tasks.glue import read_rows, task_of
from ...tuning.recipe import Recipe, Seeds
from ..contract import Done, Flag, Need, Study, TrainingUnit, Unit, provenance
from ..headline import SIGNIFICANT, Headline, defined, head_interval
from ..merging import SortedBy
from ..options import Checkpoint, Data, Out, Preset, Seed, Settings, TaskName
from ..outcomes import metrics_of
from ..records import Result
from ..tuning import finetune
from ..tuning.finetune import TunedRun, run_key
from . import setup
from .records import SEED_WORDS, HeadOverlap, SeededRun, SeedSource, SeedSpread, StableHead
from .setup import ExampleOptions

SOURCES = ("head", "rows", "order")
HALVES = 2
DRAWS = 1000  # of dev rows, for the standard error of one run's score


@pydantic.dataclasses.dataclass(frozen=True)
class SeedsOptions:
    """Options for the study of random seeds: what is fine-tuned, and how often."""

    checkpoint: Checkpoint = config.ENCODER
    task: TaskName = "sst2"
    data: Data = None
    preset: Preset = "auto"
    settings: Settings = field(default_factory=dict)
    side: Annotated[
        int,
        Flag(
            "number of values of each random seed (output head, sample of examples, order of batches); the number of "
            "fine-tuning runs is the square of this number (Latin square)",
            least=3,
            most=10,
        ),
    ] = 3
    train_rows: Annotated[
        int | None, Flag("number of training examples in each sample (default: half of all training examples)", least=2)
    ] = None
    top: Annotated[int, Flag("number of the most important heads that are compared between runs", least=1)] = 10
    limit: Annotated[int, Flag("number of dev examples on which the importance of heads is measured", least=4)] = 400
    seed: Seed = 0
    out: Out = None


@dataclass(frozen=True)
class SeedRun:
    """One fine-tuning run in a Latin square of three kinds of seeds. `importance` is measured on each half of the dev
    examples, as [half, layer, head]."""

    seeds: Seeds
    tuned: TunedRun
    importance: np.ndarray


@dataclass(frozen=True)
class SeedRuns:
    """Several fine-tuning runs, as a partial result that can be merged with others."""

    runs: Annotated[tuple[SeedRun, ...], SortedBy("seeds.head", "seeds.rows")]


class SeedStudy(Study[SeedsOptions, SeedRuns]):
    """Measure how much of the variance of scores is due to the initial weights, the training examples and the batch
    order."""

    name, options, partial, arguments = "seeds", SeedsOptions, SeedRuns, TrainingUnit
    question = "How much do scores and important heads vary with the random seed?"
    kinds = (SeededRun, SeedSource, SeedSpread, HeadOverlap, StableHead)
    called = "Seed variance: {checkpoint} on {task}"
    needs = frozenset({Need.LABELS})

    def units(self, options: SeedsOptions) -> list[Unit]:
        sampled = _sampled(options)
        plain = finetune.FinetuneOptions(
            checkpoint=options.checkpoint,
            tasks=(options.task,),
            data=options.data,
            preset=options.preset,
            settings=options.settings | {"train_limit": sampled},
        )
        size = finetune.STUDY.units(plain)[0].size
        cells = [Seeds(*(options.seed + level for level in levels)) for levels in square(options.side)]
        decides = {name: getattr(options, name) for name in ("checkpoint", "data", "preset", "settings", "train_rows")}
        keys = [run_key(options.task, f"h{cell.head}-r{cell.rows}-o{cell.order}", decides) for cell in cells]
        return [Unit(key, TrainingUnit(seeds=cell), size) for key, cell in zip(keys, cells, strict=True)]

    def run(self, options: SeedsOptions, unit: Unit) -> Done[SeedRuns]:
        cell = unit.arguments.seeds
        base, task = studies.worker_cache.get_checkpoint(options.checkpoint), task_of(options.task)
        recipe = replace(Recipe.of(options.preset, options.settings), train_limit=_sampled(options))
        run = studies.tuning.finetune.FinetuningRun(
            task, "pretrained", "pretrained", cell, options.preset, recipe, options.data, options.out, unit.key
        )
        tuned, row_ids = studies.tuning.finetune.tune(base, run)
        rows = read_rows(task, "dev", folder=options.data, limit=options.limit, seed=options.seed)
        opened = setup.opened(ExampleOptions(checkpoint=str(tuned.score.folder), task=task.key, data=options.data))
        weighed = []  # mean |dL/dxi| of each head over a half of the examples, before layers are normalised
        for half in (rows[start::HALVES] for start in range(HALVES)):
            sums = capture.importance.gradients(opened.checkpoint, opened.encoded(half), opened.outputs(half))
            weighed.append((sums.example / sums.inputs).numpy())
        return Done(SeedRuns((SeedRun(cell, tuned, np.stack(weighed)),)), provenance(base, row_ids, split="dev"))

    def results(self, options: SeedsOptions, merged: SeedRuns) -> list[Result]:
        return _Table(options, merged.runs).results()

    def headline(self, rows: Sequence[Row]) -> Headline:
        spread, shared = SeedSpread.among(rows)[0], HeadOverlap.among(rows)[0]
        task, largest_source = task_of(spread.task).name, _largest_source(SeedSource.among(rows))
        heads, heads_by_chance = shared.value * shared.top, shared.by_chance * shared.top
        return Headline(
            (
                f"On {task}, {spread.metric} {spread.ends} over {spread.n} runs. {largest_source} On average, two runs "
                f"share {heads:.1f} of their {shared.top} most important heads."
            ),
            spread.n,
            "runs",
            head_interval("The number of shared heads", shared.low, shared.high, "{:.1f}", shared.top),
            f"By chance, two runs would share {heads_by_chance:.1f} of their {shared.top} most important heads.",
        )


STUDY = SeedStudy()


def _largest_source(sources: Sequence[SeedSource]) -> str:
    """Return which seed causes most of the spread, or that there is no spread to divide (equal or undefined scores)."""
    known = [source for source in sources if source.p is not None and source.share is not None]
    if not known:
        return "The scores have no variance that could be divided among the seeds."
    most = max(known, key=lambda source: defined(source.share))
    sure = "is significant" if defined(most.p) < SIGNIFICANT else "is not significant"
    return f"The seed of the {SEED_WORDS[most.name]} accounts for {most.share:.0%} of their variance, which {sure}."


def _sampled(options: SeedsOptions) -> int:
    """Return the size of each sample of train examples. Raises InputError if it would contain all of them."""
    there = len(read_rows(task_of(options.task), "train", folder=options.data))
    wanted = there // 2 if options.train_rows is None else options.train_rows
    if not 2 <= wanted < there:
        raise InputError(
            f"The number of training examples in each sample must be from 2 to {there - 1}, so that samples differ "
            f"between seeds; got {wanted}. Choose a number in this range."
        )
    return wanted


class _Table:
    """Computes the result records of the study from all finished runs."""

    def __init__(self, options: SeedsOptions, runs: Sequence[SeedRun]):
        self.options, self.runs = options, runs
        self.task = task_of(options.task)
        self.metric = metrics_of(self.task)[0]
        scores = [run.tuned.score.of_metric(self.metric) for run in runs]
        self.scores = np.array([or_nan(score) for score in scores])
        halves = np.stack([run.importance for run in runs])
        self.layers, self.heads = halves.shape[-2:]
        self.top = min(options.top, self.layers * self.heads)
        flat = halves.reshape(len(runs), HALVES, -1)
        self.chosen = top_heads(flat.mean(1), self.top)
        self.halves = [top_heads(flat[:, half], self.top) for half in range(HALVES)]
        self.about: Any = {"task": self.task.key, "metric": self.metric, "n": len(runs)}

    def results(self) -> list[Result]:
        if len(self.runs) < 2:
            return [*self._runs()]
        return [*self._runs(), *self._sources(), self._spread(), *self._overlaps(), *self._heads()]

    def _named(self, k: int) -> str:
        return " ".join(str(self._head(number)) for number in np.flatnonzero(self.chosen[k]))

    def _head(self, number: int | np.integer) -> Head:
        return Head(*divmod(int(number), self.heads))

    def _runs(self) -> list[SeededRun]:
        return [
            SeededRun(
                task=self.task.key, metric=self.metric,
                name=", ".join(f"{name} {seed}" for name, seed in asdict(run.seeds).items()), head_seed=run.seeds.head,
                rows_seed=run.seeds.rows, order_seed=run.seeds.order,
                score=finite(self.scores[k]), constant=bool(tuned.constant), train_rows=tuned.train_rows or 0,
                dev_rows=tuned.dev_rows or 0, baseline=(tuned.baseline or {}).get(self.metric), heads=self._named(k),
                folder=tuned.folder,
            )
            for k, run in enumerate(self.runs)
            for tuned in [run.tuned.score]
        ]  # fmt: skip

    def _sources(self) -> list[SeedSource]:
        whole = len(self.runs) == self.options.side**2
        if not whole or np.isnan(self.scores).any():  # still running; a correlation that is undefined in some run
            return []
        parts = sources(self.scores, self.options.side)
        corrected = [part.p for part in parts[:3]]
        tested = [p for p in corrected if p is not None]
        if len(tested) == len(corrected):
            corrected = holm_adjusted(np.array(tested)).tolist()
        return [
            SeedSource(name=name, **self.about, **asdict(part) | {"p": p})
            for name, part, p in zip((*SOURCES, "rest"), parts, (*corrected, None), strict=True)
        ]

    def _spread(self) -> SeedSpread:
        """Return the standard deviation over runs, and one run's standard error over dev examples."""
        first = self.runs[0].tuned
        rows = len(first.gold)
        drawn = np.random.default_rng(self.options.seed).multinomial(rows, np.full(rows, 1 / rows), size=DRAWS)
        drawn_scores = effects.counted(self.metric, first.gold, first.predicted[None], drawn.astype(float))
        deviation = float(self.scores.std(ddof=1))
        return SeedSpread(
            **self.about, mean=finite(self.scores.mean()), deviation=finite(deviation),
            least=finite(self.scores.min()), most=finite(self.scores.max()), dev_error=finite(np.nanstd(drawn_scores)),
            dev_rows=rows, constant=sum(bool(run.tuned.score.constant) for run in self.runs),
        )  # fmt: skip

    def _overlaps(self) -> list[HeadOverlap]:
        """Return the overlap of important heads for pairs of runs, with and without a common seed, and within runs."""
        cells = [asdict(run.seeds) for run in self.runs]
        every = [(i, j) for i in range(len(cells)) for j in range(i)]
        groups = {"all pairs": every}
        for name in SOURCES:
            groups[f"same {name}"] = [(i, j) for i, j in every if cells[i][name] == cells[j][name]]
        groups["no seed in common"] = [(i, j) for i, j in every if not cells[i].items() & cells[j].items()]
        found = [(name, overlap(self.chosen, pairs), len(pairs)) for name, pairs in groups.items() if pairs]
        same = np.array([(first & other).sum() / self.top for first, other in zip(*self.halves, strict=True)])
        found.append(("same run, other rows", Estimate(float(same.mean())), 0))
        chance = by_chance(self.layers * self.heads, self.top)
        return [
            HeadOverlap(
                name=name, top=self.top, by_chance=chance, value=seen.value, low=seen.low, high=seen.high, pairs=pairs,
                **self.about,
            )
            for name, seen, pairs in found
        ]  # fmt: skip

    def _heads(self) -> list[StableHead]:
        counts = self.chosen.sum(0)
        order = sorted(np.flatnonzero(counts), key=lambda number: (-counts[number], number))
        return [
            StableHead(
                name=str(head), layer=head.layer, head=head.head, runs=int(counts[number]), top=self.top, **self.about
            )
            for number in order
            for head in [self._head(number)]
        ]


# ---------------------------------------------------------------- the Latin square

# Run (i, j) of a square of side k has the first factor at level i, the second at j and the third at (i + j) mod k.
# Each pair of levels of two factors occurs once, so k x k runs separate three main effects (Fisher 1925). The part of
# an interaction that follows (i + j) mod k is counted as the third factor's effect; the remainder is in the residual.
# Dodge et al. 2020 crossed two of the three.


FEWEST_RUNS = 5  # for an interval of the variance they share


@dataclass(frozen=True)
class VarianceSource:
    """A factor of a Latin square, or the residual, with the share of the variance that it explains.

    For the residual, only the first three fields are set. If all scores are equal, `share` and `deviation` are None.

    Attributes:
        share: of the sum of squares.
        by_chance: expected share of a factor without effect.
        deviation: standard deviation that the factor adds, in units of the score; 0 if below chance level.
        variance: squared deviation, as a fraction of its sum with the residual variance.
        low, high: exact 95 % interval of `variance` for normal scores (Searle et al. 1992, section 3.6).
    """

    share: float | None
    by_chance: float
    deviation: float | None
    variance: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None


def square(side: int) -> list[tuple[int, int, int]]:
    """List the levels of the three factors for each run in a Latin square. Raises InputError if `side` is below 3."""
    if side < 3:
        raise InputError(
            "A Latin square must have at least 3 values per random seed, so that a residual can be estimated; got "
            f"{side}. Use more values."
        )
    return [(i, j, (i + j) % side) for i in range(side) for j in range(side)]


def sources(scores: Float[np.ndarray, " run"], side: int) -> list[VarianceSource]:
    """Decompose the variance of scores in a Latin square into the shares of the three factors and the residual.

    Scores must be in the order of `square`. Raises InputError if the side is below 3, and ValueError if the number of
    scores is wrong.
    """
    levels, scores = np.array(square(side)), np.asarray(scores, float)
    if scores.shape != (side * side,):
        raise ValueError(
            f"A Latin square with {side} rows must have {side * side} scores; got an array of shape "
            f"{scores.shape}. Give one score per run."
        )
    freedom, left = side - 1, (side - 1) * (side - 2)
    chance = [freedom / (side**2 - 1)] * 3 + [left / (side**2 - 1)]
    total = float(((scores - scores.mean()) ** 2).sum())
    if total <= 1e-12 * max(1.0, float(np.abs(scores).max()) ** 2):
        return [VarianceSource(None, expected, None) for expected in chance]
    squares = []
    for factor in levels.T:
        means = np.array([scores[factor == level].mean() for level in range(side)])
        squares.append(float(side * ((means - scores.mean()) ** 2).sum()))
    residual = max(0.0, total - sum(squares))
    mains = [_main(part, residual, side, total, chance[0]) for part in squares]
    return [*mains, VarianceSource(residual / total, chance[3], float(np.sqrt(residual / left)))]


def _main(part: float, residual: float, side: int, total: float, chance: float) -> VarianceSource:
    """Return the result for one factor, from its sum of squares and that of the residual."""
    freedom, left = side - 1, (side - 1) * (side - 2)
    mean, noise = part / freedom, residual / left
    ratio = mean / noise if noise > 0 else np.inf
    tail = (1 - CONFIDENCE) / 2
    ends = [max(0.0, (ratio / scipy.stats.f.ppf(quantile, freedom, left) - 1) / side) for quantile in (1 - tail, tail)]
    component = max(0.0, (mean - noise) / side)
    low, high = (1.0 if np.isinf(end) else float(end / (1 + end)) for end in ends)
    variance = component / (component + noise) if component + noise > 0 else 0.0
    return VarianceSource(
        part / total,
        chance,
        float(np.sqrt(component)),
        variance,
        low,
        high,
        float(scipy.stats.f.sf(ratio, freedom, left)),
    )


# ---------------------------------------------------------------- the top heads


def top_heads(values: Float[np.ndarray, "run head"], top: int) -> Bool[np.ndarray, "run head"]:
    """Mark the `top` heads with the highest values in each run. In case of ties, earlier heads are marked."""
    order = np.argsort(-values, axis=1, kind="stable")[:, :top]
    chosen = np.zeros(values.shape, bool)
    np.put_along_axis(chosen, order, True, axis=1)
    return chosen


def by_chance(heads: int, top: int) -> float:
    """Return the expected fraction of heads that two random sets of `top` heads have in common."""
    return top / heads


def overlap(chosen: Bool[np.ndarray, "run head"], pairs: Sequence[tuple[int, int]] | None = None) -> Estimate:
    """Compute the mean fraction of the most important heads that two runs share, with a jackknife confidence interval.

    The interval is Student's t on the jackknife over runs, because pairs that share a run are dependent. Fewer than
    FEWEST_RUNS runs have no interval. `pairs` selects pairs of runs (None: all), and n is their number.
    """
    runs, top = len(chosen), int(chosen[0].sum())
    pairs = [(i, j) for i in range(runs) for j in range(i)] if pairs is None else pairs
    shared = np.array([(chosen[i] & chosen[j]).sum() / top for i, j in pairs])
    value = float(shared.mean())
    without = [shared[[run not in pair for pair in pairs]] for run in range(runs)]
    means = np.array([overlaps.mean() for overlaps in without if len(overlaps)])
    if len(means) < FEWEST_RUNS:
        return Estimate(value, n=len(pairs))
    error = float(np.sqrt((len(means) - 1) / len(means) * ((means - means.mean()) ** 2).sum()))
    reach = error * float(scipy.stats.t.ppf((1 + CONFIDENCE) / 2, len(means) - 1))
    return Estimate(value, max(0.0, value - reach), min(1.0, value + reach), n=len(pairs))
