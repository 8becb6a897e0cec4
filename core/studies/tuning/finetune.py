"""Fine-tuning on tasks from several initialisations and seeds (Table 1 of Kovaleva et al. 2019).

One unit is one run. The name of its folder identifies all settings, so that an interrupted run can resume.
"""

import hashlib
import json
import math
import statistics
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pydantic.dataclasses

from ... import capture, config, models, studies, tuning
from ...errors import InputError
from ...interval import or_nan
from ...scoring.intervals import not_above_constant, not_above_zero
from ...store.rows import Row, plain
from ...tasks.glue import HUB, Task, TaskRow, fingerprint, must_have_labels, read_rows, task_of
from ...tasks.metrics import majority
from ...tasks.own import is_own
from ...tuning.recipe import Recipe, check_initialisation
from ...tuning.recipe import Seeds as RunSeeds
from ...tuning.saved_checkpoints import Live, read_live, shown_folder, training_log
from ..contract import Done, Flag, Need, Study, TrainingUnit, Unit, provenance
from ..headline import Headline, defined
from ..options import Checkpoint, Data, Initialisations, Out, Preset, Seeds, Settings, TunedTasks
from ..records import picked
from .records import TunedRunScore, TunedScore, constant_score, finetuned_task

if TYPE_CHECKING:
    from ...capture.interventions import Intervention


PIECES_A_WORD = 1.5  # for the time left only
METRICS = ("accuracy", "f1", "pearson", "spearman", "mse")
Figures = dict[str, float | None]
LEAST = 3  # rows that a correlation's interval needs more than


@pydantic.dataclasses.dataclass(frozen=True)
class FinetuneOptions:
    """Options for fine-tuning: the checkpoint, the tasks, the initial weights, and where models are stored."""

    checkpoint: Checkpoint = config.ENCODER
    revision: Annotated[
        str | None, Flag("revision of the checkpoint on the Hugging Face hub: branch, tag or commit (default: main)")
    ] = None
    tasks: TunedTasks = ("sst2",)
    initialisations: Initialisations = ("pretrained",)
    seeds: Seeds = (0,)
    random_seeds: Annotated[
        int | None, Flag("largest number of seeds for runs that start from random weights", least=1)
    ] = None
    data: Data = None
    preset: Preset = "auto"
    settings: Settings = field(default_factory=dict)
    out: Out = None


@dataclass(frozen=True)
class TunedRun:
    """The result of one fine-tuning run: its scores on dev, and the true and predicted labels of the dev examples."""

    score: TunedRunScore
    gold: np.ndarray
    predicted: np.ndarray


@dataclass(frozen=True)
class TunedRuns:
    """Several fine-tuning runs, as a partial result."""

    runs: tuple[TunedRun, ...]


class FinetuneStudy(Study[FinetuneOptions, TunedRuns]):
    """Fine-tune on tasks with several initialisations and seeds, and report the scores (Kovaleva et al., Table 1)."""

    name, options, partial, arguments = "finetune", FinetuneOptions, TunedRuns, TrainingUnit
    question = "How well does the fine-tuned model score?"
    typed_after = ""
    kinds = (TunedScore, TunedRunScore)
    called = "Fine-tune {checkpoint} on {tasks}"
    needs = frozenset({Need.LABELS})

    def units(self, options: FinetuneOptions) -> list[Unit]:
        recipe = Recipe.of(options.preset, options.settings)
        for name in ("tasks", "initialisations", "seeds"):
            if not getattr(options, name):
                raise InputError(
                    f"The option {name} of fine-tuning must have at least one value; got none. Choose a value."
                )
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
                        Unit(
                            key,
                            TrainingUnit(task, source=initialisation, seeds=RunSeeds.all(seed)),
                            _tokens(initialisation, recipe, *words),
                        )
                    )
        return every

    def amount(self, options: FinetuneOptions) -> int | None:
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
        of: TrainingUnit = unit.arguments
        base = studies.worker_cache.get_checkpoint(options.checkpoint, revision=options.revision)
        run = FinetuningRun(
            task_of(of.task), of.source, of.source, of.seeds, options.preset,
            Recipe.of(options.preset, options.settings), options.data, options.out, unit.key,
        )  # fmt: skip
        tuned, row_ids = tune(base, run)
        return Done(TunedRuns((tuned,)), provenance(base, row_ids, split="dev"))

    def results(self, options: FinetuneOptions, merged: TunedRuns) -> list[TunedScore]:
        return table_scores(merged.runs)

    def headline(self, rows: Sequence[Row]) -> Headline:
        tuned, scores = finetuned_task(rows), TunedScore.among(rows)
        best = tuned.mean("pretrained") or tuned.means[0]
        metric, task = best.metric, best.task
        beside = [
            (mean.initialisation, mean.of_metric(metric)) for mean in picked(tuned.means, task=task) if mean != best
        ]
        named = {"random": "if fine-tuned from random weights", "untrained": "without fine-tuning",
                 "frozen": "if only its classifier is trained"}  # fmt: skip
        others = [
            f"{100 * score:.1f} {named.get(str(initialisation), f'({initialisation})')}"
            for initialisation, score in beside
            if score is not None
        ]
        random = dict(beside).get("random")
        no_gain = (
            " So this result shows no benefit of pre-training."
            if best.initialisation == "pretrained" and random is not None and random >= defined(best.of_metric(metric))
            else ""
        )
        floor, spread = constant_score(rows, task, metric), best.spread(metric)
        if metric == "accuracy":
            floor = better_constant(scores, task)
        level, significance = f"{100 * defined(best.of_metric(metric)):.1f}", ""
        if floor is not None:
            is_above = not not_shown(scores, best)
            significance = f" This score is {'' if is_above else 'not '}significantly above a constant prediction."
        comparison = (
            f" For comparison, the model scores {' and '.join(others)} on this task.{no_gain}" if others else ""
        )
        starts = {"random": "After fine-tuning from random weights", "untrained": "Without fine-tuning",
                  "frozen": "After training only the classifier"}  # fmt: skip
        after = starts.get(str(best.initialisation), "After fine-tuning")
        return Headline(
            f"{after} on {task_of(task).name}, {metric} is {level}.{significance}{comparison}",
            tuned.runs[0].dev_rows,
            "dev examples",
            f"The standard deviation of the score over {best.n} seeds is {100 * spread:.1f}." if spread else "",
            "" if floor is None else f"The best constant prediction scores {100 * floor:.1f}.",
        )


STUDY = FinetuneStudy()


def _words(task: str, split: str, data: str | None, limit: int | None) -> int:
    """Return the number of words in the examples that a run reads."""
    rows = read_rows(task, split, folder=data, limit=limit)
    return sum(len(f"{row.text} {row.pair or ''}".split()) for row in rows)


_words_before = lru_cache(maxsize=64)(_words)  # for an estimate, repeated at every change of a form; up to 400,000 rows


def _tokens(initialisation: str, recipe: Recipe, train: int, dev: int) -> int:
    """Return the tokens that a run processes, twice for a backward pass. `train`, `dev`: words."""
    passes = 0 if initialisation == "untrained" else recipe.epochs
    return int(PIECES_A_WORD * (3 * passes * train + (passes + 2) * dev))


def _seeds_of(options: FinetuneOptions, initialisation: str) -> list[int]:
    """Return each seed once. For random weights, only as many as requested are returned."""
    seeds = list(dict.fromkeys(options.seeds))
    return seeds[: options.random_seeds] if initialisation == "random" else seeds


def run_name(options: FinetuneOptions, task: str, initialisation: str, seed: int) -> str:
    """Return a readable name for a fine-tuning run. Runs with different settings have different names."""
    decides = {name: getattr(options, name) for name in ("checkpoint", "revision", "data", "preset", "settings")}
    decides |= {"task": task} if is_own(task) else {}
    return run_key(task, f"{initialisation}-s{seed}", decides)


def live_runs(options: FinetuneOptions, keys: list[str]) -> dict[str, Row]:
    """Return the progress of a job's fine-tuning runs that are active on this machine, as a dictionary by run key."""
    pictures = {key: read_live(live_file(options.out, key)) for key in keys}
    return {key: picture for key, picture in pictures.items() if picture is not None}


# ---------------------------------------------------------------- one run


@dataclass(frozen=True)
class FinetuningRun:
    """Describes a fine-tuning run: what is trained, and where the result is stored.

    Attributes:
        data: folder of the examples; None for the bundled ones.
        out: folder for checkpoints; None for the default.
        key: name of the folder and of the saved state.
        held: interventions during training and evaluation, or None.
    """

    task: Task
    initialisation: str
    start: str
    seeds: RunSeeds
    preset: str
    recipe: Recipe
    data: str | None
    out: str | None
    key: str
    held: "Sequence[Intervention] | None" = None

    @property
    def folder(self) -> Path:
        return runs_folder(self.out) / self.key


def tune(base: "models.checkpoint.Checkpoint", run: FinetuningRun) -> tuple[TunedRun, list[str]]:
    """Fine-tune a model (or resume training), evaluate the model on dev, and save it. Return the result and the dev
    example IDs."""
    task, recipe = run.task, run.recipe
    must_have_labels(task)
    train = read_rows(task, "train", folder=run.data, limit=recipe.train_limit, seed=run.seeds.rows)
    dev = read_rows(task, "dev", folder=run.data, limit=recipe.dev_limit)  # the same rows for every seed
    return tune_on(base, run, train, dev), [row.id for row in dev]


def tune_on(
    base: "models.checkpoint.Checkpoint", run: FinetuningRun, train: list[TaskRow], dev: list[TaskRow]
) -> TunedRun:
    """Fine-tune a model on the given train examples, evaluate it on the dev examples, and save it."""
    task, recipe = run.task, run.recipe
    length = min(recipe.max_length, base.max_length)
    learned, measured = tuning.batches.encode(base, train, length), tuning.batches.encode(base, dev, length)
    state, live = state_of(run.folder), Live(live_file(run.out, run.key))
    model: Any = tuning.model.initialised(base, task, run.start, recipe, run.seeds.head).to(base.device)
    fit = tuning.training.Fit(
        base, task, model, learned, measured, recipe, run.seeds.order,
        state=state,
        identity=f"{run.key} {base.weights_hash} {fingerprint(train)} {fingerprint(dev)}",
        on_step=lambda log: live.write(live_picture(log), now=log.epochs[-1]["step"] == log.step),
    )  # fmt: skip
    with (
        nullcontext()
        if run.held is None
        else capture.running.prepared(models.checkpoint.Checkpoint(base.name, model, base.tokenizer), run.held)
    ):
        outcome = fit.run()
    cut = sum(example.encoding.cut > 0 for example in learned)
    held = (
        {}
        if run.held is None
        else {"held": {intervention.operator: sorted(map(str, intervention.heads)) for intervention in run.held}}
    )
    facts = {
        "task": run.task.key,
        "initialisation": run.initialisation,
        "seed": run.seeds.order,
        "preset": run.preset,
        "data": run.data or "bundled samples",
        "rows": {"train": len(train), "dev": len(dev), "cut": cut},
        **_decides(run, train, dev),
        **held,
    }
    tuning.training.save_tuned(run.folder, outcome, base, facts)
    state.unlink(missing_ok=True)
    live.place.unlink(missing_ok=True)
    task, gold = run.task, [row.label for row in dev]
    name, constant = majority(task, [row.label for row in train], gold)
    one_class = task.labels[int(outcome.predicted[0])] if outcome.constant and task.labels else None
    score = TunedRunScore(
        task=task.key, initialisation=run.initialisation, seed=run.seeds.order, metric=task.metric,
        constant=bool(outcome.constant),
        note=f"constant predictions: {one_class or 'one score'}" if outcome.constant else "",
        train_rows=len(train), dev_rows=len(dev), cut_rows=cut, seconds=round(outcome.log.seconds, 1),
        last_loss=outcome.log.losses[-1] if outcome.log.losses else None, folder=shown_folder(run.folder),
        majority=name, baseline=plain(constant), epochs=plain(outcome.log.epochs), kept_epoch=outcome.log.best,
        kept_because=_why_kept(run.recipe, task, trained=len(outcome.log.epochs) - 1),
        held_heads=None if run.held is None else sum(len(intervention.heads) for intervention in run.held),
        **scores_of(outcome.metrics),
    )  # fmt: skip
    predicted = np.array([float(value) if task.is_score else int(value) for value in outcome.predicted])
    return TunedRun(score, np.array(gold), predicted)


def is_trained(
    base: "models.checkpoint.Checkpoint", run: FinetuningRun, train: list[TaskRow], dev: list[TaskRow]
) -> bool:
    """Return True if the folder of a run already holds a model trained with the same recipe on the same examples."""
    log, decides = training_log(run.folder), {"base_hash": base.weights_hash} | _decides(run, train, dev)
    return {name: log.get(name) for name in decides} == decides


def _decides(run: FinetuningRun, train: list[TaskRow], dev: list[TaskRow]) -> dict[str, Any]:
    return {
        "recipe": asdict(run.recipe),
        "train_rows_hash": fingerprint(train),
        "dev_rows_hash": fingerprint(dev),
        "seeds": asdict(run.seeds),
    }


def _why_kept(recipe: Recipe, task: Task, *, trained: int) -> str:
    """Return why the weights are those of the epoch that was retained, in words."""
    if not trained:
        return "nothing learned: as it began"
    if recipe.keep == "best":
        return f"best {task.metric} on dev of epochs 1 to {trained} (keep=best)"
    return "the last (keep=last)"


# ---------------------------------------------------------------- folders, and a run under way


def runs_folder(out: str | None) -> Path:
    """Return the folder for fine-tuned checkpoints. The default is a folder next to the database."""
    return config.inside(out, to_write=True) if out else config.settings().runs / "finetuned"


def run_key(task: str, what: str, decides: Mapping[str, Any]) -> str:
    """Return a readable run name that ends in a hash of `decides`, the settings that affect the result."""
    digest = hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:6]
    return f"{Path(decides['checkpoint']).name[:40]}-{Path(task).stem[:40]}-{what}-{digest}"


def state_of(folder: Path) -> Path:
    """Return the path of the saved training state of a run, which is next to the folder of its checkpoint."""
    return folder.with_name(folder.name + ".state")


def live_file(out: str | None, key: str) -> Path:
    """Return the path of the file to which an active run writes its progress."""
    return runs_folder(out) / f"{key}.live.json"


def live_picture(log: Any) -> Row:
    """Summarise the progress of a run: mean losses, dev metrics, steps and remaining time."""
    every = max(1, -(-len(log.losses) // 200))
    blocks = [log.losses[k : k + every] for k in range(0, len(log.losses), every)]
    return {
        "step": log.step,
        "steps": log.steps,
        "left": log.seconds_left,
        "losses": [{"step": (k + 1) * every, "loss": statistics.fmean(block)} for k, block in enumerate(blocks)],
        "epochs": log.epochs,
    }


# ---------------------------------------------------------------- what a run leaves


def table_scores(runs: Sequence[TunedRun]) -> list[TunedScore]:
    """Create Table 1 of the paper: scores of every run, their means over seeds, and scores of a constant prediction."""
    scores: list[TunedScore] = [run.score for run in runs]
    for task in dict.fromkeys(score.task for score in scores):
        mine = [run.score for run in runs if run.score.task == task]
        for initialisation in dict.fromkeys(score.initialisation for score in mine):
            drawn = [score for score in mine if score.initialisation == initialisation]
            first, figures = drawn[0], Figures()
            for name in METRICS:
                known = [value for score in drawn if (value := score.of_metric(name)) is not None]
                values = [value for value in known if not math.isnan(value)]
                if known:
                    figures[name] = statistics.fmean(values) if values else None
                    figures[f"{name}_sd"] = statistics.stdev(values) if len(values) > 1 else None
            constant = sum(bool(score.constant) for score in drawn)
            note = f"constant predictions in {constant} of {len(drawn)} runs" if constant else ""
            scores.append(
                TunedScore(kind="mean", task=first.task, initialisation=first.initialisation, metric=first.metric,
                           n=len(drawn), constant=constant, note=note, **scores_of(figures))
            )  # fmt: skip
        first = mine[0]
        scores.append(
            TunedScore(kind="baseline", task=task, initialisation=f"always {first.majority}", metric=first.metric, n=1,
                       **scores_of(first.baseline or {}))
        )  # fmt: skip
    return scores


def scores_of(figures: Mapping[str, float | None]) -> dict[str, Any]:
    """Convert a dictionary of metrics to fields of a score record. Undefined metrics become NaN."""
    return {name: or_nan(value) for name, value in plain(figures).items()}


# ---------------------------------------------------------------- comparison with a constant prediction


def better_constant(scores: Sequence[TunedScore], task: str) -> float | None:
    """Return the accuracy of the best constant prediction on a task, or None if it is unknown."""
    known = [score.accuracy for score in scores if (score.kind, score.task) == ("baseline", task) and score.accuracy]
    if not known:
        return None
    return max(max(known), 1 - max(known)) if len(task_of(task).labels) == 2 else max(known)


def not_shown(scores: Sequence[TunedScore], score: TunedScore) -> str:
    """State that a score is not significantly above that of a constant prediction. Otherwise, return ""."""
    rows = next((run.dev_rows for run in scores if (run.kind, run.task) == ("run", score.task)), None)
    if not rows:
        return ""
    if task_of(score.task).is_score:
        if score.pearson is None:
            return "all predicted scores are the same, as in a constant prediction"
        return not_above_zero(score.pearson, rows) if rows > LEAST else ""
    constant = better_constant(scores, score.task)
    if score.accuracy is None or constant is None:
        return ""
    return not_above_constant(score.accuracy, constant, rows)
