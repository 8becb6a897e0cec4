"""Inputs of a report: examples, sentence lists and treebanks in a data folder, and properties of checkpoints."""

from dataclasses import dataclass
from pathlib import Path

from .. import config, models
from ..errors import InputError
from ..models.family import family_of
from ..models.weights import weight_files
from ..tasks.glue import HUB, TASKS, find_file, read_rows
from ..tuning.recipe import preset_for

SMALL = 40_000_000  # bytes of weights


@dataclass(frozen=True)
class Data:
    """The data files that a report found in a folder.

    Attributes:
        glue: folder of the tasks; None for the bundled samples.
        sentences, replication: sentence lists of the papers, or None.
        treebank: a Universal Dependencies folder, or None.
    """

    glue: str | None
    dev: tuple[str, ...]
    train: tuple[str, ...]
    official: tuple[str, ...]
    sentences: str | None
    replication: str | None
    treebank: str | None

    @property
    def trained_treebank(self) -> str | None:
        """Return the folder of the treebank if it has a train split, otherwise None."""
        if self.treebank is None or len(list(Path(self.treebank).glob("*-train.conllu"))) != 1:
            return None
        return self.treebank


@dataclass(frozen=True)
class Facts:
    """The properties of a checkpoint that determine the plan of a report: whether it is a decoder, and its fine-tuning
    recipe."""

    causal: bool
    preset: str


def find_data(folder: str | None, *, hub: bool = False) -> Data:
    """Find the GLUE folders, the sentence lists of the papers and a treebank in a data folder.

    `hub` takes all examples from the hub. Raises InputError if the folder has no examples of any task.
    """
    root = None if folder is None else config.inside(folder)
    if root is not None and not root.is_dir():
        raise InputError(
            f"The option --data must name a folder; {root} is not a folder. Correct the option or leave it out."
        )
    lists = {"sentences": _first(root, "framenet_473.json"), "replication": _first(root, "replication_23.json")}
    if hub:
        return Data(HUB, tuple(TASKS), tuple(TASKS), tuple(TASKS), **lists, treebank=_treebank(root))
    places = [None] if root is None else [root / "glue", root]
    glue = next((candidate for candidate in places if _tasks_in(candidate, "dev")), None)
    dev = _tasks_in(glue, "dev") if glue or root is None else ()
    if not dev:
        raise InputError(
            f"A report needs dev examples of at least one task; {root} has none. Give the folder that "
            "contains GLUE's task folders, with files such as SST-2/dev.tsv."
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
        file = find_file(TASKS[key], split, glue)
    except InputError:
        return False
    return glue is None or file.parent.name == TASKS[key].name  # a dev.tsv beside the folders belongs to no task


def _first(root: Path | None, name: str) -> str | None:
    places = [] if root is None else [root / name, root / "paper" / name, root.parent / "paper" / name]
    return next((str(path) for path in places if path.is_file()), None)


def _treebank(root: Path | None) -> str | None:
    if root is None:
        return None
    folders = [file.parent for depth in ("", "*/", "*/*/") for file in sorted(root.glob(f"{depth}*-dev.conllu"))]
    return next((str(folder) for folder in folders if len(list(folder.glob("*-test.conllu"))) == 1), None)


def rows_in_both(task: str, folder: str | None) -> int:
    """Count the dev examples of a task whose texts also occur in the train split."""
    train, dev = ([(row.text, row.pair) for row in read_rows(task, split, folder=folder)] for split in ("train", "dev"))
    return sum(texts in train_texts for train_texts in [set(train)] for texts in dev)


def facts_of(checkpoint: str) -> Facts:
    """Read whether a checkpoint is a decoder, and choose a fine-tuning recipe for its size. Raises CheckpointError if
    files cannot be read."""
    folder = models.opening.locate(checkpoint)
    model_type = models.config_files.read_config(folder, checkpoint)["model_type"]
    size = sum(file.stat().st_size for file in weight_files(folder, checkpoint))
    preset = preset_for(checkpoint)
    return Facts(family_of(model_type).causal, "small" if preset == "paper" and size <= SMALL else preset)
