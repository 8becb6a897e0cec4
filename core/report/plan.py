"""The plan of a reproduction report: studies with options, checkpoint and task, in order.

Equal options, data and checkpoints lead to equal plans, so an interrupted report finds its stored results. Studies of a
fine-tuned checkpoint come after its fine-tuning.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from .. import config
from ..codebook.registry import shipped_set
from ..errors import AtlasError, InputError, check_choice
from ..patterns.classifier_registry import classifying_options, keep_best_known
from ..store.database import Database
from ..store.rows import Row
from ..studies.ablation import (
    cross_fitted,
    cross_fitted_prune,
    cross_fitted_scores,
    disable,
    importance,
    knockout,
    operators,
    patch,
    perturb,
    prune,
    separators,
    sequential_test,
    sinks,
)
from ..studies.attention import (
    budget,
    dependencies,
    effective,
    features,
    norms,
    redundancy,
    relations,
    roles,
    statistics,
)
from ..studies.attention.inputs import AttendingOptions
from ..studies.circuits import circuit, gates, pairs, shapley
from ..studies.comparison import counterparts
from ..studies.contract import Study, as_json
from ..studies.explanation import why, writes
from ..studies.frames import frame_heads
from ..studies.lookup import find_study
from ..studies.patterns import pattern_shares
from ..studies.preflight import check_runnable
from ..studies.probing import probe, representation, subnetworks, syntax, transfer
from ..studies.tuning import change, finetune
from ..studies.tuning.finetune import runs_folder
from ..tasks.glue import SPLIT, task_of
from ..tuning.saved_checkpoints import shown_folder
from .data import Data, Facts
from .ids import Part

# ---------------------------------------------------------------- options


PART_STEPS = (
    Part.FRAMES, Part.STATISTICS, Part.RELATIONS, Part.DEPENDENCIES, Part.EFFECTIVE, Part.REDUNDANCY, Part.WHY,
    Part.TUNING, Part.CHANGE, Part.MATCH, Part.FEATURES, Part.SHARES, Part.HEADS, Part.CROSSED, Part.LAYERS,
    Part.ALONE, Part.IMPORTANCE, Part.PRUNE, Part.SEPARATORS, Part.SINKS, Part.WORD_LINKS, Part.SHAPLEY, Part.GATES,
    Part.PAIRS, Part.SYNTAX, Part.PROBE, Part.TRANSFER, Part.SUBNETWORKS,
)  # fmt: skip


@dataclass(frozen=True)
class ReportOptions:
    """The options of a report. A limit of None means all examples.

    Attributes:
        data: a folder; None for the bundled samples.
        hub: take the examples of GLUE from the hub.
        tasks, parts: empty for all (parts: except those in BY_NAME).
        limit: dev examples of a task whose maps are measured.
        effective_limit: dev examples for effective attention and score shares.
        random_seeds: number of seeds that also train random weights; None: all.
        folds: cross-fitting folds of the train examples of CROSSED, on which heads are ablated and FEW_LINKS measured;
            0: none.
        preset: "auto" is bundled for the bundled encoder, small for small checkpoints, otherwise paper.
        precision: of training, "float32" or "bfloat16".
        folder: for fine-tuned checkpoints.
        unseen: also ablate heads on train examples that were not used for fine-tuning and share no four words in a
            row with those used (`core.tasks.glue`).
    """

    checkpoints: list[str] = field(default_factory=lambda: [config.ENCODER, config.DECODER])
    data: str | None = None
    hub: bool = False
    tasks: list[str] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    limit: int | None = 100
    sweep_limit: int | None = 200
    effective_limit: int = 30
    tree_limit: int = 150
    train_limit: int | None = 1000
    dev_limit: int | None = None
    seeds: int = 1
    random_seeds: int | None = None
    folds: int = 0
    preset: str = "auto"
    precision: str = "float32"
    folder: str | None = None
    seed: int = 0
    unseen: bool = False

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> "ReportOptions":
        """Validate the options of a report and fill in defaults. Raises InputError for an unknown option or task."""
        names = [option.name for option in fields(cls)]
        if unknown := sorted(set(given) - set(names)):
            raise InputError(
                f"An option of a report must be one of {', '.join(names)}; got {unknown[0]!r}. Correct the name "
                "of the option."
            )
        check_choice("A part of a report", given.get("parts", ()), PART_STEPS)
        options = cls(**given)
        if not options.checkpoints:
            raise InputError("A report needs at least one checkpoint; got none. Name a checkpoint.")
        if Part.CROSSED in options.parts and not options.folds:
            raise InputError(
                'Cross-fitted ablation (the part "crossed" of a report) needs a number of folds; got none. Set the '
                "option folds, such as folds=5."
            )
        chosen = {"checkpoints": list(dict.fromkeys(options.checkpoints))}
        return cls(**asdict(options) | chosen | {"tasks": [task_of(task).key for task in options.tasks]})


DEFAULTS = ReportOptions()


OTHER_SEEDS = {Part.CHANGE: Part.CHANGE_SEEDS, Part.FEATURES: Part.FEATURES_SEEDS}  # what fine-tuning changes
COME_WITH = {
    Part.SINK: Part.FRAMES,
    Part.SINKLESS: Part.FRAMES,
    Part.TRAIN_RELATIONS: Part.RELATIONS,
    Part.CROSSED_LAYERS: Part.CROSSED,
    Part.CROSSED_SCORES: Part.CROSSED,
    Part.CROSSED_PRUNE: Part.CROSSED,
} | {part: first for first, part in OTHER_SEEDS.items()}
TUNED = {  # of fine-tuned checkpoints
    Part.CHANGE, Part.CHANGE_SEEDS, Part.MATCH, Part.HEADS, Part.CROSSED, Part.CROSSED_LAYERS, Part.LAYERS, Part.ALONE,
    Part.CROSSED_SCORES, Part.CROSSED_PRUNE,
    Part.IMPORTANCE, Part.PRUNE, Part.SEPARATORS, Part.SINKS, Part.WORD_LINKS, Part.SHAPLEY, Part.GATES, Part.PAIRS,
}  # fmt: skip
BY_NAME = {Part.SHAPLEY: shapley, Part.GATES: gates, Part.PAIRS: pairs}  # minutes each, so only on request
CROSSED = ("rte", "mrpc")  # tasks whose dev rows are too few for single heads, and whose train rows are not many
FEW_LINKS = ("noun-pronoun",)  # relations whose links in dev rows are too few there, too
PROBED = ("part of speech", "subject number", "main auxiliary")
TRAIN_TREES = 4  # as a multiple of the other parts' sentences
WEIGHED_ROWS = 500  # train rows for the importance of heads, if all dev rows are swept
PRUNED_SHARES = (0.0, 0.3, 0.4, 0.6, 0.9)
RANDOM_DRAWS = 3  # random weights that repeated patterns are compared with
SENTIMENT = "sst2"
CUT_WORDS = ("noun-adjective", "noun-preposition")  # links that are cut, and as many others at the same distances
INITIALISATIONS = ("pretrained", "random", "untrained")  # the paper's three columns


@dataclass(frozen=True)
class ReportStep:
    """A job in a report: a study with its options, checkpoint and task."""

    part: Part
    study: str
    options: Any
    checkpoint: str
    title: str
    task: str | None = None

    @property
    def asked(self) -> Row:
        return {} if self.options is None else as_json(self.options)


A = TypeVar("A", bound=AttendingOptions)
D = TypeVar(
    "D",
    disable.DisableOptions,
    importance.ImportanceOptions,
    knockout.KnockoutOptions,
    prune.PruneOptions,
    separators.SeparatorsOptions,
    sinks.SinksOptions,
)

# ---------------------------------------------------------------- the steps


def analyses(
    db: Database, checkpoint: str, task: str, data: Data, facts: Facts, options: ReportOptions
) -> list[tuple[str, Row]]:
    """List the studies that can measure a checkpoint on a task without fine-tuning, with their options."""
    planned = _Planned(options, data, checkpoint, facts, (task,), classifier=checkpoint)
    steps = [*planned._frames()[:1], *planned._untuned(), *planned._features(task, False)]
    steps += [planned._shares(db, task, False), *planned._probed(), *planned._disabled(task)]
    asked: dict[str, Row] = {}
    for step in steps:
        asked.setdefault(step.study, step.asked)
    few = {"checkpoint": checkpoint, "data": data.glue, "limit": options.limit, "seed": options.seed}
    for measured in (budget, roles, norms):
        asked[measured.STUDY.name] = few | {"tasks": [task]}
    asked[representation.STUDY.name] = few | {"task": task}
    asked.setdefault(
        dependencies.STUDY.name, {"checkpoint": checkpoint, "limit": options.tree_limit, "seed": options.seed}
    )
    on_task = few | {"task": task, "limit": options.sweep_limit}
    for changed in (operators, perturb, patch, knockout, sequential_test, sinks, writes):
        asked.setdefault(changed.STUDY.name, on_task)
    if not task_of(task).is_score:
        asked[circuit.STUDY.name] = on_task | {"limit": circuit.CircuitOptions.limit}
    return [(name, given) for name, given in asked.items() if _runs(name, given)]


def _runs(name: str, given: Row) -> bool:
    try:
        study = find_study(name)
        study.read(given)
        check_runnable(study, given)
    except AtlasError:
        return False
    return True


def plan(db: Database, options: ReportOptions, data: Data, facts: dict[str, Facts]) -> list[ReportStep]:
    """List every step of a report in order. Raises InputError if no requested task has dev examples."""
    tasks = tuple(task for task in options.tasks or data.dev if task in data.dev)
    if not tasks:
        raise InputError(
            "A report needs dev examples of the requested tasks; there are no examples of "
            f"{', '.join(options.tasks)}. Choose tasks from {', '.join(data.dev)}."
        )
    parts = {Part(name) for name in options.parts or PART_STEPS} - (set() if options.parts else set(BY_NAME))
    parts |= {Part.TUNING} if parts & TUNED else set()
    steps: list[ReportStep] = []
    for checkpoint in options.checkpoints:
        planned = _Planned(options, data, checkpoint, facts[checkpoint], tasks)
        steps += [step for step in planned.steps(db, parts) if COME_WITH.get(step.part, step.part) in parts]
    return steps


@dataclass(frozen=True)
class _Planned:
    """Plans the steps of a report about one checkpoint."""

    options: ReportOptions
    data: Data
    checkpoint: str
    facts: Facts
    tasks: tuple[str, ...]
    classifier: str | None = None  # an existing fine-tuned checkpoint

    def steps(self, db: Database, parts: set[Part]) -> list[ReportStep]:
        tuned = [task for task in self.tasks if task in self.data.train and Part.TUNING in parts]
        steps = [*self._frames(), *self._untuned()]
        steps += [step for task in tuned for step in self._tuned(task)]
        steps += [step for task in self.tasks for step in self._features(task, task in tuned)]
        if Part.SHARES in parts:
            steps += [self._shares(db, task, task in tuned) for task in self.tasks]
        steps += [step for task in tuned for step in self._disabled(task)]
        return [*steps, *self._probed(), *self._transferred()]

    def _step(self, part: Part, study: Study[Any, Any], options: Any, task: str | None = None) -> ReportStep:
        title = f"Report: {part} of {Path(self.checkpoint).name}" + (f", {task}" if task else "")
        return ReportStep(part, study.name, options, self.checkpoint, title, task)

    def _frames(self) -> list[ReportStep]:
        """Return the steps on frame sentences; decoders only attend backwards."""
        causal, listed = self.facts.causal, self.data.sentences
        direction = "later_to_earlier" if causal else "element_to_target"
        options = frame_heads.FrameHeadsOptions(
            checkpoint=self.checkpoint, sentences=listed, direction=direction, seed=self.options.seed
        )
        if listed:  # the list has already passed the paper's filter
            options = replace(options, filter=False, pairing="product" if causal else "zip")
        steps = [self._step(Part.FRAMES, frame_heads.STUDY, options)]
        if causal and self.data.replication:
            replication = replace(
                options, sentences=self.data.replication, average="links", filter=False, pairing="product"
            )
            sinkless = replace(replication, without_first=True)
            steps.append(self._step(Part.SINK, frame_heads.STUDY, replication))
            steps.append(self._step(Part.SINKLESS, frame_heads.STUDY, sinkless))
        return steps

    def _attending(self, kind: type[A], *tasks: str, limit: int | None) -> A:
        """Return the options of a study that observes attention."""
        return kind(checkpoint=self.checkpoint, tasks=tasks, data=self.data.glue, limit=limit, seed=self.options.seed)

    def _untuned(self) -> list[ReportStep]:
        limit, few = self.options.limit, self.options.effective_limit
        looked = self._attending(statistics.StatisticsOptions, *self.tasks, limit=limit)
        linked = self._attending(relations.RelationsOptions, *self.tasks, limit=limit)
        effectively = self._attending(effective.EffectiveOptions, *self.tasks, limit=few)
        alike = self._attending(redundancy.RedundancyOptions, *self.tasks, limit=limit)
        steps = [
            self._step(Part.STATISTICS, statistics.STUDY, looked),
            self._step(Part.RELATIONS, relations.STUDY, linked),
            self._step(Part.EFFECTIVE, effective.STUDY, effectively),
            self._step(Part.REDUNDANCY, redundancy.STUDY, replace(alike, random=RANDOM_DRAWS)),
            *(
                self._step(Part.TRAIN_RELATIONS, relations.STUDY, self._linked_on_train(task), task)
                for task in self.tasks
                if self.options.folds and task in CROSSED and task in self.data.train
            ),
        ]
        if self.data.treebank:
            options = dependencies.DependenciesOptions(
                checkpoint=self.checkpoint,
                treebank=self.data.treebank,
                seed=self.options.seed,
                limit=self.options.tree_limit,
            )
            steps.insert(2, self._step(Part.DEPENDENCIES, dependencies.STUDY, options))
        return [*steps, *self._explained()]

    def _linked_on_train(self, task: str) -> relations.RelationsOptions:
        """Return options for links on all train examples, which the checkpoint never saw."""
        options = self._attending(relations.RelationsOptions, task, limit=self.options.train_limit)
        return replace(options, split="train", relations=FEW_LINKS)

    def _explained(self) -> list[ReportStep]:
        """Return the step that decomposes attention scores, for checkpoints whose inputs have separators."""
        if self.facts.causal:
            return []
        options = self._attending(why.WhyOptions, *self.tasks, limit=self.options.effective_limit)
        return [self._step(Part.WHY, why.STUDY, replace(options, removal=0, single_heads=False))]

    def _probed(self) -> list[ReportStep]:
        """Return the steps that probe the treebank, or the bundled treebank if the first has no train split."""
        shared: dict[str, Any] = {
            "checkpoint": self.checkpoint,
            "treebank": self.data.trained_treebank,
            "seed": self.options.seed,
        }
        limit = TRAIN_TREES * self.options.tree_limit
        return [
            self._step(Part.SYNTAX, syntax.STUDY, syntax.SyntaxOptions(**shared, limit=limit)),
            self._step(Part.PROBE, probe.STUDY, probe.ProbeOptions(**shared, limit=limit, properties=PROBED)),
        ]

    def _transferred(self) -> list[ReportStep]:
        """Return the step that measures how useful layers and components are for one task (SST-2 if available)."""
        trainable = [task for task in self.tasks if task in self.data.train]
        if not trainable:
            return []
        task = "sst2" if "sst2" in trainable else trainable[0]
        tuned = self.tuning(task)
        shared = {name: getattr(tuned, name) for name in ("checkpoint", "data", "seeds", "preset")}
        shared["settings"] = self._settings()
        return [
            self._step(
                Part.TRANSFER, transfer.STUDY, transfer.TransferOptions(**shared, tasks=(task,), freeze=False), task
            ),
            self._step(
                Part.SUBNETWORKS,
                subnetworks.STUDY,
                subnetworks.SubnetworksOptions(**shared, task=task, shares=PRUNED_SHARES),
                task,
            ),
        ]

    def tuning(self, task: str) -> finetune.FinetuneOptions:
        """Return the options for fine-tuning the checkpoint of the report on one task."""
        preset = self.facts.preset if self.options.preset == "auto" else self.options.preset
        return finetune.FinetuneOptions(
            checkpoint=self.checkpoint,
            tasks=(task,),
            initialisations=INITIALISATIONS,
            seeds=tuple(range(self.options.seeds)),
            random_seeds=self.options.random_seeds,
            data=self.data.glue,
            preset=preset,
            settings=self._settings(),
            out=self.options.folder,
        )

    def _settings(self) -> dict[str, int | str]:
        """Return the report's changes to a fine-tuning recipe, without defaults, so that stored runs are found."""
        limits = {"train_limit": self.options.train_limit, "dev_limit": self.options.dev_limit}
        settings: dict[str, int | str] = {name: limit for name, limit in limits.items() if limit is not None}
        return settings if self.options.precision == "float32" else settings | {"precision": self.options.precision}

    def _folder(self, task: str, seed: int = 0) -> str:
        if self.classifier is not None:
            return self.classifier
        options = self.tuning(task)
        name = finetune.run_name(options, task, "pretrained", seed)
        return shown_folder(runs_folder(options.out).resolve() / name)

    def _tuned(self, task: str) -> list[ReportStep]:
        compared = change.ChangeOptions(
            before=self.checkpoint,
            after=(self._folder(task),),
            task=task,
            data=self.data.glue,
            limit=self.options.limit,
            seed=self.options.seed,
        )
        other_folders = tuple(self._folder(task, seed) for seed in self._other_seeds())
        of_others = [self._step(Part.CHANGE_SEEDS, change.STUDY, replace(compared, after=other_folders), task)]
        return [
            self._step(Part.TUNING, finetune.STUDY, self.tuning(task), task),
            self._step(Part.CHANGE, change.STUDY, compared, task),
            *(of_others if other_folders else ()),
            self._found_again(task),
        ]

    def _other_seeds(self) -> range:
        """Return the seeds after the first, which every other step uses."""
        return range(1, self.options.seeds)

    def _found_again(self, task: str) -> ReportStep:
        """Return the step that finds which heads recur in every seed of fine-tuning."""
        first, *other_folders = (self._folder(task, seed) for seed in (0, *self._other_seeds()))
        limit = min(filter(None, (self.options.limit, counterparts.CounterpartsOptions.limit)))
        options = replace(
            self._attending(counterparts.CounterpartsOptions, task, limit=limit),
            compare=first,
            also=tuple(other_folders),
        )
        return self._step(Part.MATCH, counterparts.STUDY, options, task)

    def _features(self, task: str, tuned: bool) -> list[ReportStep]:
        """Return the steps that compare the checkpoint with the fine-tuned ones."""
        options = self._attending(features.FeaturesOptions, task, limit=self.options.limit)
        if self.facts.causal:
            options = replace(options, features=(*options.features, "last"))  # a claim is about this feature
        if not tuned:
            return [self._step(Part.FEATURES, features.STUDY, options, task)]
        compared = [replace(options, compare=self._folder(task, seed)) for seed in (0, *self._other_seeds())]
        first, *seed_steps = (self._step(Part.FEATURES, features.STUDY, each, task) for each in compared)
        return [
            first,
            *(
                replace(step, part=Part.FEATURES_SEEDS, title=f"{step.title}, seed {seed}")
                for seed, step in zip(self._other_seeds(), seed_steps, strict=True)
            ),
        ]

    def _shares(self, db: Database, task: str, tuned: bool) -> ReportStep:
        classes = keep_best_known(db, shipped_set(causal=self.facts.causal).name)
        options = pattern_shares.STUDY.read(
            classifying_options(
                db, classes, checkpoints=[self.checkpoint, *([self._folder(task)] if tuned else [])], task=task,
                data=self.data.glue, limit=self.options.limit, seed=self.options.seed,
            )
        )  # fmt: skip
        return self._step(Part.SHARES, pattern_shares.STUDY, options, task)

    def _on_tuned(self, kind: type[D], task: str) -> D:
        """Return the options of a study of a fine-tuned checkpoint on the examples of its task."""
        return kind(
            checkpoint=self._folder(task),
            task=task,
            data=self.data.glue,
            limit=self.options.sweep_limit,
            seed=self.options.seed,
        )

    def _crossed(self, task: str) -> list[ReportStep]:
        """Return the requested cross-fitted ablations, scores and pruning curves."""
        if not self.options.folds or task not in CROSSED:
            return []
        tuned = self.tuning(task)
        settings = {name: value for name, value in tuned.settings.items() if name not in ("train_limit", "dev_limit")}
        parts: dict[str, Any] = {
            "checkpoint": self.checkpoint, "task": task, "data": self.data.glue, "limit": self.options.train_limit,
            "folds": self.options.folds, "preset": tuned.preset, "settings": settings, "seed": self.options.seed,
            "out": self.options.folder,
        }  # fmt: skip
        swept = cross_fitted.CrossFittedOptions(**parts, dtype=self.options.precision)
        scored = cross_fitted_scores.CrossFittedScoresOptions(
            **parts, initialisations=INITIALISATIONS, seeds=tuned.seeds
        )
        return [
            self._step(Part.CROSSED, cross_fitted.STUDY, swept, task),
            self._step(Part.CROSSED_LAYERS, cross_fitted.STUDY, replace(swept, what="layers"), task),
            self._step(Part.CROSSED_SCORES, cross_fitted_scores.STUDY, scored, task),
            self._step(
                Part.CROSSED_PRUNE, cross_fitted_prune.STUDY, cross_fitted_prune.CrossFittedPruneOptions(**parts), task
            ),
        ]

    def _disabled(self, task: str) -> list[ReportStep]:
        swept = self._on_tuned(disable.DisableOptions, task)
        swept = replace(swept, split=SPLIT) if self.options.unseen else swept
        # Train rows, of which some tasks have hundreds of thousands
        weighed = replace(
            self._on_tuned(importance.ImportanceOptions, task), limit=self.options.sweep_limit or WEIGHED_ROWS
        )
        pruned = replace(
            self._on_tuned(prune.PruneOptions, task),
            orders=("importance", "random"),
            random_orders=3,
            order_rows=self.options.sweep_limit or WEIGHED_ROWS,
        )
        steps = [
            self._step(Part.HEADS, disable.STUDY, swept, task),
            *self._crossed(task),
            self._step(Part.LAYERS, disable.STUDY, replace(swept, what="layers"), task),
            self._step(Part.ALONE, disable.STUDY, replace(swept, what="all-but-one", operator="zero"), task),
            self._step(Part.IMPORTANCE, importance.STUDY, weighed, task),
            self._step(Part.PRUNE, prune.STUDY, pruned, task),
        ]
        if not self.facts.causal:
            slopes = self._on_tuned(separators.SeparatorsOptions, task)
            effects = self._on_tuned(sinks.SinksOptions, task)
            steps.append(self._step(Part.SEPARATORS, separators.STUDY, slopes, task))
            steps.append(self._step(Part.SINKS, sinks.STUDY, effects, task))
        if task == SENTIMENT:
            cut = replace(self._on_tuned(knockout.KnockoutOptions, task), edges=CUT_WORDS)
            steps.append(self._step(Part.WORD_LINKS, knockout.STUDY, cut, task))
        return steps + ([] if task_of(task).is_score else self._together(task))

    def _together(self, task: str) -> list[ReportStep]:
        """Return the steps about interactions of heads, for a task whose predictions are labels."""
        settings = {"checkpoint": self._folder(task), "task": task, "data": self.data.glue, "seed": self.options.seed}
        return [self._step(part, module.STUDY, module.STUDY.read(settings), task) for part, module in BY_NAME.items()]
