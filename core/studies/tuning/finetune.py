"""Fine-tune a checkpoint on tasks from several initialisations and seeds: Table 1 of Kovaleva et al. 2019.

One unit is one run (task, initialisation, seed). Each leaves a checkpoint folder; its name says what it is, so a run
that was killed finds its own state again. The summary has a row a run, then per task and initialisation the mean and
standard deviation over seeds, and the constant predictors.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated

import pydantic.dataclasses

from ... import config, studies
from ...errors import InputError
from ...store.rows import Row
from ...tasks.glue import HUB, must_have_labels, read_rows, task_of
from ...tasks.own import is_own
from ...tuning.live import read_live
from ...tuning.recipe import Recipe, check_initialisation
from ...tuning.recipe import Seeds as RunSeeds
from ..contract import Done, Flag, Need, Study, Unit
from ..headline import Headline, defined
from ..options import Checkpoint, Data, Out, Preset, Seeds, Settings, TunedTasks
from ..provenance import provenance
from ..records import picked
from .constant_comparison import not_shown
from .finetuning_results import TunedRuns, live_file, run_key, table_scores
from .records import TunedRunScore, TunedScore, constant_score, finetuned_task

PIECES_A_WORD = 1.5  # for the time left only


@pydantic.dataclasses.dataclass(frozen=True)
class FinetuneOptions:
    """What is fine-tuned, on which tasks, from which initialisations, and where the checkpoints go."""

    checkpoint: Checkpoint = config.ENCODER
    revision: Annotated[str | None, Flag("revision of a hub id")] = None
    tasks: TunedTasks = ("sst2",)
    initialisations: Annotated[
        tuple[str, ...], Flag("pretrained, random, frozen or untrained; several times", name="--init")
    ] = ("pretrained",)
    seeds: Seeds = (0,)
    random_seeds: Annotated[int | None, Flag("at most so many of them from random weights", least=1)] = None
    data: Data = None
    preset: Preset = "auto"
    settings: Settings = field(default_factory=dict)
    out: Out = None


@dataclass(frozen=True)
class RunArguments:
    """One run of the study."""

    task: str
    initialisation: str
    seed: int


class Finetune(Study[FinetuneOptions, TunedRuns]):
    """Fine-tune on tasks from initialisations and seeds: checkpoints, and the rows of Table 1."""

    name, options, partial, arguments = "finetune", FinetuneOptions, TunedRuns, RunArguments
    typed_after = ""
    kinds = (TunedScore, TunedRunScore)
    called = "Fine-tune {checkpoint} on {tasks}"
    needs = frozenset({Need.LABELS})

    def units(self, options: FinetuneOptions) -> list[Unit]:
        """One unit a run; everything a user may have got wrong is looked at before any of them starts."""
        recipe = Recipe.of(options.preset, options.settings)
        for name in ("tasks", "initialisations", "seeds"):
            if not getattr(options, name):
                raise InputError(f"A fine-tuning job needs at least one of its {name}; none was chosen: choose one.")
        for initialisation in options.initialisations:
            check_initialisation(initialisation)
        every = []
        for task in dict.fromkeys(task_of(name).key for name in options.tasks):
            must_have_labels(task)
            words = (
                _words(task, "train", options.data, recipe.train_limit),
                _words(task, "dev", options.data, recipe.dev_limit),
            )
            for initialisation in options.initialisations:
                for seed in _seeds_of(options, initialisation):
                    key = run_name(options, task, initialisation, seed)
                    every.append(
                        Unit(key, RunArguments(task, initialisation, seed), _tokens(initialisation, recipe, *words))
                    )
        return every

    def amount(self, options: FinetuneOptions) -> int | None:
        """Tokens of all passes of all runs; rows of the hub are not fetched for it."""
        if options.data == HUB:
            return None
        recipe, every = Recipe.of(options.preset, options.settings), 0
        for task in dict.fromkeys(task_of(name).key for name in options.tasks):
            words = (
                _words_before(task, "train", options.data, recipe.train_limit),
                _words_before(task, "dev", options.data, recipe.dev_limit),
            )
            every += sum(
                _tokens(initialisation, recipe, *words) * len(_seeds_of(options, initialisation))
                for initialisation in options.initialisations
            )
        return every

    def run(self, options: FinetuneOptions, unit: Unit) -> Done[TunedRuns]:
        """One run: train, measure on dev, save."""
        of: RunArguments = unit.arguments
        base = studies.worker_cache.get_checkpoint(options.checkpoint, revision=options.revision)
        run = studies.tuning.finetuning_run.FinetuningRun(
            task_of(of.task), of.initialisation, of.initialisation, RunSeeds.all(of.seed), options.preset,
            Recipe.of(options.preset, options.settings), options.data, options.out, unit.key,
        )  # fmt: skip
        tuned, row_ids = studies.tuning.finetuning_run.tune(base, run)
        return Done(TunedRuns((tuned,)), provenance(base, row_ids, split="dev"))

    def results(self, options: FinetuneOptions, merged: TunedRuns) -> list[TunedScore]:
        """Each run, then means and the constant predictor of each task."""
        return table_scores(merged.runs)

    def headline(self, rows: Sequence[Row]) -> Headline:
        tuned, scores = finetuned_task(rows), TunedScore.among(rows)
        best = tuned.mean("pretrained") or tuned.means[0]
        metric, task = best.metric, best.task
        beside = [
            (mean.initialisation, mean.of_metric(metric)) for mean in picked(tuned.means, task=task) if mean != best
        ]
        others = [f"{initialisation} {100 * score:.1f}" for initialisation, score in beside if score is not None]
        floor, spread = constant_score(rows, task, metric), best.spread(metric)
        return Headline(
            f"{task_of(task).name}: {metric} {100 * defined(best.of_metric(metric)):.1f} after fine-tuning"
            + (f" ({'; '.join(others)})" if others else "")
            + (", which is not shown to be above a constant predictor." if not_shown(scores, best) else "."),
            tuned.runs[0].dev_rows,
            "dev rows",
            f"± {100 * spread:.1f} over {best.n} seeds" if spread else "",
            "" if floor is None else f"constant label {100 * floor:.1f}",
        )


STUDY = Finetune()


def _words(task: str, split: str, data: str | None, limit: int | None) -> int:
    """Words of the rows that a run reads."""
    rows = read_rows(task, split, folder=data, limit=limit)
    return sum(len(f"{row.text} {row.pair or ''}".split()) for row in rows)


_words_before = lru_cache(maxsize=64)(_words)  # for an estimate: a form asks at every change, and rows may be 400,000


def _tokens(initialisation: str, recipe: Recipe, train: int, dev: int) -> int:
    """Tokens that pass through the checkpoint in one run; training goes back as well, twice as far as forward.

    train, dev: words.
    """
    passes = 0 if initialisation == "untrained" else recipe.epochs
    return int(PIECES_A_WORD * (3 * passes * train + (passes + 2) * dev))


def _seeds_of(options: FinetuneOptions, initialisation: str) -> list[int]:
    """Each seed once; from random weights only as many as were asked for."""
    seeds = list(dict.fromkeys(options.seeds))
    return seeds[: options.random_seeds] if initialisation == "random" else seeds


def run_name(options: FinetuneOptions, task: str, initialisation: str, seed: int) -> str:
    """Readable, and different wherever anything that decides the result differs."""
    decides = {name: getattr(options, name) for name in ("checkpoint", "revision", "data", "preset", "settings")}
    decides |= {"task": task} if is_own(task) else {}
    return run_key(task, f"{initialisation}-s{seed}", decides)


def live_runs(options: FinetuneOptions, keys: list[str]) -> dict[str, Row]:
    """The runs of a job that are under way on this machine, by key."""
    pictures = {key: read_live(live_file(options.out, key)) for key in keys}
    return {key: picture for key, picture in pictures.items() if picture is not None}
