"""What a report is asked for."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from .. import config
from ..errors import InputError
from ..tasks.glue import task_of
from .ids import Part

PARTS = (
    Part.FRAMES, Part.STATISTICS, Part.RELATIONS, Part.DEPENDENCIES, Part.EFFECTIVE, Part.REDUNDANCY, Part.WHY,
    Part.TUNING, Part.CHANGE, Part.MATCH, Part.FEATURES, Part.SHARES, Part.HEADS, Part.CROSSED, Part.LAYERS,
    Part.ALONE, Part.IMPORTANCE, Part.PRUNE, Part.SEPARATORS, Part.WORD_LINKS, Part.SHAPLEY, Part.GATES, Part.PAIRS,
    Part.SYNTAX, Part.PROBE, Part.TRANSFER, Part.SUBNETWORKS,
)  # fmt: skip


@dataclass(frozen=True)
class ReportOptions:
    """What a report is asked for. A limit of None is all.

    Attributes:
        data: a folder; None for the bundled samples.
        hub: whether GLUE's rows come from the hub.
        tasks, parts: none for all there are.
        limit: dev rows of a task whose maps are looked at.
        effective_limit: dev rows of effective attention and of score shares.
        random_seeds: of these, how many train random weights, too; None: all.
        folds: parts of the train rows of CROSSED that heads are swept on too, each by a model of the others; 0: none.
            With some, FEW_LINKS are looked for on these rows, too.
        preset: "auto" is bundled for the bundled encoder, small for small checkpoints, else paper.
        precision: of training, "float32" or "bfloat16".
        folder: where fine-tuned checkpoints go.
        unseen: whether heads are disabled on train rows, too, that the fine-tuning left out and that share nothing with
            the others (`core.tasks.glue`).
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
        """Over the defaults, names checked, tasks by key. Raises InputError."""
        names = [option.name for option in fields(cls)]
        if unknown := sorted(set(given) - set(names)):
            raise InputError(f"A report has the options {', '.join(names)}; {unknown[0]!r} is none of them.")
        if wrong := [part for part in given.get("parts", ()) if part not in PARTS]:
            raise InputError(
                f"Parts of a report are {', '.join(PARTS)}; {wrong[0]!r} is none of them: choose among them."
            )
        options = cls(**given)
        if not options.checkpoints:
            raise InputError("A report needs at least one checkpoint; none was given: name one.")
        if Part.CROSSED in options.parts and not options.folds:
            raise InputError(
                "The part crossed tests each part of the train rows by a model of the others, but there are no parts: "
                "say how many, as folds."
            )
        chosen = {"checkpoints": list(dict.fromkeys(options.checkpoints))}
        return cls(**asdict(options) | chosen | {"tasks": [task_of(task).key for task in options.tasks]})


DEFAULTS = ReportOptions()
