"""What a reproduction report runs: which study with which options on which checkpoint and task, in order.

The plan is the same whenever it is made from the same options, data and checkpoints, so a report that was stopped
finds what it had stored. A study on a fine-tuned checkpoint comes after the fine-tuning that makes it.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from core import config
from core.errors import InputError
from core.store.database import Database
from core.studies import finetune
from core.studies.kept_classifiers import best_known, classifying_options
from core.studies.study import Options
from core.tasks.glue import HUB, TASKS, find_file, read_rows, task_of

PARTS = (
    "frames", "statistics", "relations", "dependencies", "effective", "tuning", "change", "features", "shares",
    "heads", "layers", "alone", "importance", "prune",
)  # fmt: skip
DEFAULTS: Options = {
    "checkpoints": [config.ENCODER, config.DECODER],
    "data": None,  # a folder; None: the bundled samples
    "hub": False,  # GLUE's rows from the hub
    "tasks": [],  # none: all that have dev rows there
    "parts": [],  # none: all
    "limit": 100,  # dev rows of a task whose maps are looked at; None: all
    "sweep_limit": 200,  # dev rows on which heads are disabled and pruned; None: all
    "effective_limit": 30,  # dev rows of a task for effective attention
    "tree_limit": 150,  # gold sentences of dev and of test
    "train_limit": 1000,  # train rows of a task
    "dev_limit": None,  # dev rows that fine-tuned scores are measured on; None: all
    "seeds": 1,
    "preset": "auto",  # small for checkpoints of up to SMALL bytes, else the paper's
    "folder": None,  # where fine-tuned checkpoints go
    "seed": 0,
}
TUNED = {"change", "heads", "layers", "alone", "importance", "prune"}  # parts that look at fine-tuned checkpoints
SMALL = 40_000_000  # bytes of weights
CURVES = {"orders": ["importance", "random"], "random_orders": 3}
INITIALISATIONS = ["pretrained", "random", "untrained"]  # the paper's three columns


@dataclass(frozen=True)
class Step:
    """One job of a report. part: of PARTS (frames also as sink and sinkless); task: None where it has several."""

    part: str
    study: str
    options: Options
    checkpoint: str
    title: str
    task: str | None = None


@dataclass(frozen=True)
class Data:
    """What a data folder holds. glue: folder of the tasks, None for the bundled samples; dev, train: tasks with rows
    of that split; official: tasks whose dev rows are as many as GLUE's; sentences, replication: the papers' lists;
    treebank: a Universal Dependencies folder."""

    glue: str | None
    dev: tuple[str, ...]
    train: tuple[str, ...]
    official: tuple[str, ...]
    sentences: str | None
    replication: str | None
    treebank: str | None


@dataclass(frozen=True)
class Facts:
    """What a plan must know of a checkpoint. preset: for fine-tuning."""

    causal: bool
    preset: str


# ---------------------------------------------------------------- what there is


def find_data(folder: str | None, *, hub: bool = False) -> Data:
    """Look for GLUE's folders (in `folder` or its glue/), the papers' lists (or paper/) and a treebank below it.

    hub: the tasks' rows come from the hub, all of them. Raises InputError when the folder holds no task.
    """
    root = None if folder is None else config.inside(folder)
    if root is not None and not root.is_dir():
        raise InputError(f"A report reads its data from a folder; {root} is none: correct --data or leave it out.")
    lists = {"sentences": _first(root, "framenet_473.json"), "replication": _first(root, "replication_23.json")}
    if hub:
        return Data(HUB, tuple(TASKS), tuple(TASKS), tuple(TASKS), **lists, treebank=_treebank(root))
    places = [None] if root is None else [root / "glue", root]
    glue = next((place for place in places if _tasks_in(place, "dev")), None)
    dev = _tasks_in(glue, "dev") if glue or root is None else ()
    if not dev:
        raise InputError(
            f"A report needs dev rows of at least one task; {root} has none: give the folder that holds GLUE's task "
            "folders, such as SST-2/dev.tsv."
        )
    official = tuple(key for key in dev if len(read_rows(key, "dev", folder=glue)) == TASKS[key].dev_rows)
    return Data(
        None if glue is None else str(glue),
        dev,
        _tasks_in(glue, "train"),
        official,
        **lists,
        treebank=_treebank(root),
    )


def _tasks_in(glue: Path | None, split: str) -> tuple[str, ...]:
    return tuple(key for key in TASKS if _has(key, split, glue))


def _has(key: str, split: str, glue: Path | None) -> bool:
    try:
        found = find_file(TASKS[key], split, glue)
    except InputError:
        return False
    return glue is None or found.parent.name == TASKS[key].name  # a dev.tsv beside the folders is no task's own


def _first(root: Path | None, name: str) -> str | None:
    places = [] if root is None else [root / name, root / "paper" / name, root.parent / "paper" / name]
    return next((str(place) for place in places if place.is_file()), None)


def _treebank(root: Path | None) -> str | None:
    if root is None:
        return None
    found = [file.parent for depth in ("", "*/", "*/*/") for file in sorted(root.glob(f"{depth}*-dev.conllu"))]
    return next((str(one) for one in found if len(list(one.glob("*-test.conllu"))) == 1), None)


def facts_of(checkpoint: str) -> Facts:
    """Read a checkpoint's config, without opening its weights. Raises CheckpointError."""
    from core.models.family import family_of
    from core.models.opening import locate, weight_files

    folder = locate(checkpoint)
    model_type = json.loads((folder / "config.json").read_text(encoding="utf-8")).get("model_type", "")
    size = sum(file.stat().st_size for file in weight_files(folder, checkpoint))
    return Facts(family_of(model_type).causal, "small" if size <= SMALL else "paper")


def completed(options: Options) -> Options:
    """Over the defaults, names checked, tasks by key. Raises InputError."""
    if unknown := sorted(set(options) - set(DEFAULTS)):
        raise InputError(f"A report has the options {', '.join(DEFAULTS)}; {unknown[0]!r} is none of them.")
    found = DEFAULTS | options
    if wrong := [part for part in found["parts"] if part not in PARTS]:
        raise InputError(f"Parts of a report are {', '.join(PARTS)}; {wrong[0]!r} is none of them: choose among them.")
    if not found["checkpoints"]:
        raise InputError("A report needs at least one checkpoint; none was given: name one.")
    names = list(dict.fromkeys(found["checkpoints"]))
    return found | {"checkpoints": names, "tasks": [task_of(one).key for one in found["tasks"]]}


# ---------------------------------------------------------------- the steps


def plan(db: Database, options: Options, data: Data, facts: dict[str, Facts]) -> list[Step]:
    """Every step of the report. options: `completed`; facts: of each checkpoint. Raises InputError."""
    tasks = tuple(one for one in options["tasks"] or data.dev if one in data.dev)
    if not tasks:
        raise InputError(
            f"A report needs dev rows of the tasks it is asked for; there are none of {', '.join(options['tasks'])}: "
            f"choose among {', '.join(data.dev)}."
        )
    wanted = set(options["parts"] or PARTS)
    wanted |= {"tuning"} if wanted & TUNED else set()
    found: list[Step] = []
    for checkpoint in options["checkpoints"]:
        one = _Planned(options, data, checkpoint, facts[checkpoint], tasks)
        found += [step for step in one.steps(db, wanted) if _asked(step, wanted)]
    return found


def _asked(step: Step, wanted: set[str]) -> bool:
    return ("frames" if step.part in ("sink", "sinkless") else step.part) in wanted


@dataclass(frozen=True)
class _Planned:
    """The steps of one checkpoint."""

    options: Options
    data: Data
    checkpoint: str
    facts: Facts
    tasks: tuple[str, ...]

    def steps(self, db: Database, wanted: set[str]) -> list[Step]:
        tuned = [task for task in self.tasks if task in self.data.train and "tuning" in wanted]
        found = [*self._frames(), *self._untuned()]
        found += [step for task in tuned for step in self._tuned(task)]
        found += [self._features(task, task in tuned) for task in self.tasks]
        if "shares" in wanted:
            found += [self._shares(db, task, task in tuned) for task in self.tasks]
        return found + [step for task in tuned for step in self._disabled(task)]

    def _step(self, part: str, study: str, options: Options, task: str | None = None) -> Step:
        short = Path(self.checkpoint).name
        return Step(
            part, study, options, self.checkpoint, f"Report: {part} of {short}" + f", {task}" * bool(task), task
        )

    def _frames(self) -> list[Step]:
        """The paper's sentences in its own pairing; a decoder looks back, so its direction is turned."""
        direction = "later_to_earlier" if self.facts.causal else "element_to_target"
        listed = self.data.sentences
        plain = {
            "checkpoint": self.checkpoint,
            "sentences": listed,
            "direction": direction,
            "seed": self.options["seed"],
        }
        if listed:  # the list is what passed the paper's filter already
            plain |= {"filter": False, "pairing": "product" if self.facts.causal else "zip"}
        found = [self._step("frames", "frame-heads", plain)]
        if self.facts.causal and self.data.replication:
            again = plain | {"sentences": self.data.replication, "average": "links", "filter": False}
            again |= {"pairing": "product"}
            found.append(self._step("sink", "frame-heads", again))
            found.append(self._step("sinkless", "frame-heads", again | {"without_first": True}))
        return found

    def _rows(self, limit: str = "limit") -> Options:
        seed = self.options["seed"]
        return {"checkpoint": self.checkpoint, "folder": self.data.glue, "limit": self.options[limit], "seed": seed}

    def _untuned(self) -> list[Step]:
        several = {"tasks": list(self.tasks)}
        found = [
            self._step("statistics", "statistics", self._rows() | several),
            self._step("relations", "relations", self._rows() | several),
            self._step("effective", "effective", self._rows("effective_limit") | several),
        ]
        if self.data.treebank:
            options = {"checkpoint": self.checkpoint, "treebank": self.data.treebank, "seed": self.options["seed"]}
            options |= {"limit": self.options["tree_limit"]}
            found.insert(2, self._step("dependencies", "dependencies", options))
        return found

    def tuning(self, task: str) -> Options:
        """Options of the fine-tuning that everything after it relies on."""
        preset = self.facts.preset if self.options["preset"] == "auto" else self.options["preset"]
        limits = {name: self.options[name] for name in ("train_limit", "dev_limit") if self.options[name] is not None}
        return finetune.DEFAULTS | {
            "checkpoint": self.checkpoint,
            "tasks": [task],
            "initialisations": INITIALISATIONS,
            "seeds": list(range(self.options["seeds"])),
            "data": self.data.glue,
            "preset": preset,
            "settings": limits,
            "folder": self.options["folder"],
        }

    def _folder(self, task: str) -> str:
        options = self.tuning(task)
        name = finetune.run_name(options, task, "pretrained", 0)
        return finetune.shown_folder(finetune.runs_folder(options).resolve() / name)

    def _tuned(self, task: str) -> list[Step]:
        after = {"before": self.checkpoint, "after": [self._folder(task)], "task": task, "data": self.data.glue}
        after |= {"limit": self.options["limit"], "seed": self.options["seed"]}
        return [self._step("tuning", "finetune", self.tuning(task), task), self._step("change", "change", after, task)]

    def _features(self, task: str, tuned: bool) -> Step:
        options = self._rows() | {"tasks": [task], "compare": self._folder(task) if tuned else None}
        return self._step("features", "features", options, task)

    def _shares(self, db: Database, task: str, tuned: bool) -> Step:
        names = [self.checkpoint, *([self._folder(task)] if tuned else [])]
        rows = {name: value for name, value in self._rows().items() if name != "checkpoint"}
        classes = best_known(db, "gpt2" if self.facts.causal else "bert")
        options = classifying_options(db, classes, checkpoints=names, task=task, **rows)
        return self._step("shares", "classify-maps", options, task)

    def _disabled(self, task: str) -> list[Step]:
        limit = self.options["sweep_limit"]
        rows = {"checkpoint": self._folder(task), "task": task, "data": self.data.glue, "limit": limit}
        rows |= {"seed": self.options["seed"]}
        alone = {"what": "all-but-one", "operator": "zero"}
        return [
            self._step("heads", "disable", rows | {"what": "heads", "operator": "disable"}, task),
            self._step("layers", "disable", rows | {"what": "layers", "operator": "disable"}, task),
            self._step("alone", "disable", rows | alone, task),
            self._step("importance", "importance", rows, task),
            self._step("prune", "prune", rows | CURVES | {"order_rows": limit or 500}, task),
        ]
