"""The seven GLUE tasks as one table of facts, and their rows from the bundled samples, a folder, or the hub.

Labels count in the hub's order (`nyu-mll/glue`): RTE and QNLI have 0 = entailment, MNLI has 0 = entailment,
1 = neutral, 2 = contradiction. The paper's scripts of 2019 spell MNLI's labels in another order and its analysis
notebook codes entailment as 1, so labels are always matched by name (`core.tasks.glue`).
"""

import hashlib
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from .. import config
from ..errors import CheckpointError, InputError
from ..reading import read_text
from . import own

HUB, HUB_NAME = "hub", "nyu-mll/glue"


@dataclass(frozen=True)
class Task:
    """Facts about one task.

    Attributes:
        name: as papers write it, and its folder in GLUE's download.
        text, pair, label: columns of the TSV form; pair is None for single sentences.
        labels: the hub's names in the hub's order; empty for a score (STS-B, 0 to 5).
        metrics: the first one ranks checkpoints.
        majority: share of the commonest official dev label; None for a score.
        drops_short_rows: whether the official file has rows with missing columns, which every reader leaves out.
        labelled: False of a list of one's own without labels.
    """

    key: str
    name: str
    text: str
    pair: str | None
    label: str
    labels: tuple[str, ...]
    spelled: tuple[str, ...]
    metrics: tuple[str, ...]
    train_rows: int
    dev_rows: int
    majority: float | None
    hub_text: str = "sentence1"
    hub_pair: str | None = "sentence2"
    dev_file: str = "dev.tsv"
    dev_split: str = "validation"
    drops_short_rows: bool = False
    labelled: bool = True  # False of a list of one's own without labels

    @property
    def is_score(self) -> bool:
        """Whether a number is predicted instead of a class."""
        return not self.labels

    @property
    def outputs(self) -> int:
        """Logits of a classification head: one a label, one for a score."""
        return len(self.labels) or 1

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(column for column in (self.text, self.pair, self.label) if column)

    @property
    def metric(self) -> str:
        """The metric that ranks runs."""
        return self.metrics[0]


@dataclass(frozen=True)
class TaskRow:
    """One row of a task.

    Attributes:
        id: split and zero-based place in its file; of an own file a mark of the text too.
        pair: the second sentence, or None.
        label: index into Task.labels, a score 0 to 5, or NaN of a list without labels.
    """

    id: str
    text: str
    pair: str | None
    label: int | float


_BINARY = ("0", "1")
_ENTAILMENT = ("entailment", "not_entailment")
_INFERENCE = ("entailment", "neutral", "contradiction")
# fmt: off
_RECORDS = (
    Task("mrpc", "MRPC", "#1 String", "#2 String", "Quality", ("not_equivalent", "equivalent"), _BINARY,
         ("accuracy", "f1"), 3668, 408, 0.684),
    Task("stsb", "STS-B", "sentence1", "sentence2", "score", (), (), ("pearson", "spearman"), 5749, 1500, None),
    Task("sst2", "SST-2", "sentence", None, "label", ("negative", "positive"), _BINARY, ("accuracy",), 67349, 872,
         0.509, hub_text="sentence", hub_pair=None),
    Task("qqp", "QQP", "question1", "question2", "is_duplicate", ("not_duplicate", "duplicate"), _BINARY,
         ("accuracy", "f1"), 363846, 40430, 0.632, hub_text="question1", hub_pair="question2", drops_short_rows=True),
    Task("rte", "RTE", "sentence1", "sentence2", "label", _ENTAILMENT, _ENTAILMENT, ("accuracy",), 2490, 277, 0.527),
    Task("qnli", "QNLI", "question", "sentence", "label", _ENTAILMENT, _ENTAILMENT, ("accuracy",), 104743, 5463, 0.505,
         hub_text="question", hub_pair="sentence"),
    Task("mnli", "MNLI", "sentence1", "sentence2", "gold_label", _INFERENCE, _INFERENCE, ("accuracy",), 392702, 9815,
         0.354, hub_text="premise", hub_pair="hypothesis", dev_file="dev_matched.tsv", dev_split="validation_matched"),
)
# fmt: on


class _Tasks(dict[str, Task]):
    """GLUE's tasks by key; the path of a file of the user's own is a key too."""

    def __missing__(self, key: str) -> Task:
        if not own.is_own(key):
            raise KeyError(key)
        return _own_task(own.read_own(key))


TASKS = _Tasks({record.key: record for record in _RECORDS})


def _own_task(file: own.OwnFile) -> Task:
    return Task(
        key=str(file.path),
        name=file.path.name,
        text="sentence",
        pair="sentence2" if file.paired else None,
        label="label" if file.labels else "score",
        labels=file.labels,
        spelled=file.labels,
        metrics=("accuracy",) if file.labels else ("pearson", "spearman"),
        labelled=file.labelled,
        train_rows=len(file.of("train")),
        dev_rows=len(file.of("dev")),
        majority=file.majority,
    )


def task_name(task: str | None) -> str:
    """A task's name as the papers write it; "" for none."""
    return TASKS[task].name if task and task in TASKS else task or ""


def task_of(task: str | Task) -> Task:
    """A task by key or name in any spelling ("SST-2", "sst2", "MNLI-m"), or by the path of a file (core/tasks/own)."""
    if isinstance(task, Task):
        return task
    if own.is_own(task):
        return TASKS[task]
    key = task.strip().lower().replace("-", "").replace("_", "")
    key = "mnli" if key in {"mnlim", "mnlimatched"} else key
    if key not in TASKS:
        raise InputError(
            f'A task is one of {", ".join(TASKS)} or a CSV file of your own; "{task[:60]}" is none of them: choose one.'
        )
    return TASKS[key]


def sampled(text: str) -> str:
    """A text about the bundled samples: "SST-2-like", because they are ours and only written like the task's rows."""
    names = "|".join(re.escape(record.name) for record in _RECORDS)
    return re.sub(rf"(?<![\w-])({names})(?![\w-])", r"\1-like", text)


def must_have_labels(task: str | Task) -> None:
    """Raises InputError of a list of sentences without labels, where a model learns from them or is judged by them."""
    if not (known := task_of(task)).labelled:
        raise InputError(
            f'Learning and judging need labels; {known.name} has no "label" (or "score"): add such a column, or choose '
            "another task."
        )


def read_rows(
    task: str | Task,
    split: str = "train",
    *,
    folder: str | Path | None = None,
    limit: int | None = None,
    seed: int = 0,
) -> list[TaskRow]:
    """Rows of one split, in the order of the file.

    Args:
        split: "train" or "dev".
        folder: None for the bundled samples, "hub" for `nyu-mll/glue` through `datasets`, else a folder in GLUE's TSV
            form (the one that holds `SST-2/`, or the task's own). An own task's rows come from its own file.
        limit: at most so many, drawn without replacement; None: all.

    Returns:
        At least one row.

    Raises:
        InputError: another split, a missing file or column, a row with a label outside the set, or no row.
    """
    task = task_of(task)
    if split not in ("train", "dev"):
        raise InputError(f'Rows come from the split "train" or "dev" (GLUE keeps its test labels); seen "{split}".')
    rows = _rows_of(task, split, folder)
    if not rows:
        raise InputError(f"A split must have at least one row; {task.name} {split} has none: choose other data.")
    return drawn(rows, limit, seed)


def drawn(rows: Sequence[TaskRow], limit: int | None, seed: int) -> list[TaskRow]:
    """At most so many of the rows, in their order, drawn with a seed without replacement; None: all."""
    if limit is None or limit >= len(rows):
        return list(rows)
    return [rows[k] for k in sorted(random.Random(seed).sample(range(len(rows)), limit))]  # noqa: S311


def fingerprint(rows: Sequence[TaskRow]) -> str:
    """A hash of rows' ids, texts and labels, so that a state is not taken up on other data; 16 hexadecimal digits."""
    text = "\n".join(f"{row.id}\t{row.text}\t{row.pair}\t{row.label}" for row in rows)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _rows_of(task: Task, split: str, folder: str | Path | None) -> list[TaskRow]:
    if own.is_own(task.key):
        return [TaskRow(row.id, row.text, row.pair, row.label) for row in own.read_own(task.key).of(split)]
    if str(folder) == HUB:
        return _from_hub(task, split)
    file = find_file(task, split, folder)
    seen = file.stat()
    return list(_parsed(task, split, file, seen.st_mtime_ns, seen.st_size))


@lru_cache(maxsize=8)
def _parsed(task: Task, split: str, file: Path, modified: int, size: int) -> tuple[TaskRow, ...]:
    """A file is parsed once while it stays as it is, however many units read it."""
    return tuple(_from_file(task, split, file))


# ---------------------------------------------------------------- GLUE's TSV form


def find_file(task: Task, split: str, folder: str | Path | None) -> Path:
    """The TSV file of a split under `folder` (None: the bundled samples)."""
    root = config.SAMPLES if folder is None else config.inside(folder)
    names = ["train.tsv"] if split == "train" else [task.dev_file, "dev.tsv"]
    places = [place / name for name in names for place in (root / task.name, root)]
    file = next((place for place in places if place.is_file()), None)
    if file is None:
        raise InputError(
            f"The {split} rows of {task.name} are read from {task.name}/{names[0]}; there is none under "
            f"{root}: give the folder that holds GLUE's task folders."
        )
    return file if folder is None else config.inside(file)  # a link in the folder may lead out of it


def _from_file(task: Task, split: str, file: Path) -> Iterator[TaskRow]:
    """Quotes are text: GLUE's files are split at tabs and nothing else."""
    try:
        lines = read_text(file, given=True).split("\n")
    except OSError as error:
        raise InputError(
            f"A task's file must be readable UTF-8 text; {file.name} of {task.name} is not ({error}): "
            "save it again as UTF-8."
        ) from error
    header = lines[0].rstrip("\r").split("\t")
    for column in task.columns:
        if column not in header:
            raise InputError(
                f'{task.name} needs the columns {", ".join(task.columns)}; {file.name} has no "{column}" '
                f"(it has {', '.join(header)[:120]}): give GLUE's own TSV form."
            )
    places = {column: header.index(column) for column in task.columns}
    for number, line in enumerate(lines[1:]):
        if line.strip("\r"):
            yield from _row(task, split, file, number, line.rstrip("\r").split("\t"), places)


def _row(
    task: Task,
    split: str,
    file: Path,
    number: int,
    fields: list[str],
    places: dict[str, int],
) -> Iterator[TaskRow]:
    if len(fields) <= max(places.values()):
        if task.drops_short_rows:
            return
        raise InputError(
            f"Every row of {task.name} has at least {max(places.values()) + 1} columns; row {number + 1} "
            f"of {file.name} has {len(fields)}: repair or remove it."
        )
    text, pair = fields[places[task.text]], fields[places[task.pair]] if task.pair else None
    if not text.strip() or (pair is not None and not pair.strip()):
        if task.drops_short_rows:
            return
        raise InputError(
            f"Every row of {task.name} has its text; row {number + 1} of {file.name} has an empty one: "
            "repair or remove it."
        )
    label = parse_label(task, fields[places[task.label]], f"row {number + 1} of {file.name}")
    yield TaskRow(f"{split}-{number}", text, pair, label)


def parse_label(task: Task, value: str, place: str) -> int | float:
    """A label as the TSV form or the hub writes it; InputError naming `place` otherwise."""
    value = value.strip()
    if value == "-1":
        raise InputError(
            f"GLUE withholds the labels of its test rows (-1), and {place} of {task.name} has one: use the dev split."
        )
    if task.is_score:
        return _score(task, value, place)
    for known in (task.spelled, task.labels):
        if value in known:
            return known.index(value)
    raise InputError(
        f'A label of {task.name} is one of {", ".join(task.spelled)}; {place} has "{value[:60]}": repair or remove it.'
    )


def _score(task: Task, value: str, place: str) -> float:
    try:
        score = float(value)
    except ValueError:
        score = float("nan")
    if not 0 <= score <= 5:
        raise InputError(
            f'A score of {task.name} is a number from 0 to 5; {place} has "{value[:60]}": repair or remove it.'
        )
    return score


# ---------------------------------------------------------------- the hub


def _from_hub(task: Task, split: str) -> list[TaskRow]:
    import datasets  # 0.4 s, where there is a network

    try:
        table: Any = datasets.load_dataset(HUB_NAME, task.key, split="train" if split == "train" else task.dev_split)
    except Exception as error:  # every transport has its own classes of failure; all mean "not reachable"
        raise InputError(
            f"The rows of {task.name} cannot be fetched from the hub from here; connect to a network, "
            "give a folder in GLUE's TSV form, or use the bundled samples."
        ) from error
    return hub_rows(task, split, table)


def hub_rows(task: Task, split: str, table: Any) -> list[TaskRow]:
    """Rows of a `datasets` table, whose labels are numbers in the hub's order already."""
    needed = [column for column in (task.hub_text, task.hub_pair, "label") if column]
    if missing := [column for column in needed if column not in table.column_names]:
        raise InputError(
            f'{task.name} needs the columns {", ".join(needed)}; the hub\'s table has no "{missing[0]}" '
            f"(it has {', '.join(table.column_names)[:120]}): use a folder in GLUE's TSV form."
        )
    return [
        TaskRow(
            f"{split}-{number}",
            cells[task.hub_text],
            cells[task.hub_pair] if task.hub_pair else None,
            _hub_label(task, cells["label"], f"row {number + 1} of the hub's {split}"),
        )
        for number, cells in enumerate(table)
    ]


def _hub_label(task: Task, value: int | float, place: str) -> int | float:
    if not task.is_score and 0 <= value < len(task.labels):
        return int(value)
    return parse_label(task, str(value), place)


# ---------------------------------------------------------------- train rows to test on


SPLIT = "unseen"  # dev rows, and these
WORDS = 4  # in a row


def unseen(dev: Sequence[TaskRow], train: Sequence[TaskRow], learned: Sequence[TaskRow]) -> list[TaskRow]:
    """Dev rows, then the train rows that were not learned and share no WORDS words in a row with one that was.

    Args:
        train: all rows of that one, with ids of their own.
        learned: those of `train` that were learned.

    Returns:
        In their order. Train rows of fewer than WORDS words in every sentence are left out: nothing could be shared.
    """
    ids, known = {row.id for row in learned}, {run for row in learned for run in _runs(row)}
    left = ((row, set(_runs(row))) for row in train if row.id not in ids)
    return [*dev, *(row for row, runs in left if runs and not runs & known)]


def _runs(row: TaskRow) -> Iterator[tuple[str, ...]]:
    for text in _texts(row):
        words = text.casefold().split()
        yield from (tuple(words[k : k + WORDS]) for k in range(len(words) - WORDS + 1))


def _texts(row: TaskRow) -> Iterable[str]:
    return filter(None, (row.text, row.pair))


# -------------------- Which output of a classifier means which label of a task


_GENERIC = re.compile(r"^LABEL_\d+$", re.IGNORECASE)


def label_order(task: Task, labels: dict[int, str] | None) -> tuple[int, ...]:
    """For each output of a checkpoint the label of `task` that it means.

    `order[k]` is the task's label of output k, so `logits[:, [order.index(l) for l in ...]]` is in the task's order.
    Names are compared without case, spaces, hyphens and underscores, and as the TSV form spells them. Names that say
    nothing (LABEL_0, LABEL_1) are taken in the hub's order when there are two; with three the order is a guess between
    six and is refused.

    Args:
        labels: of the checkpoint's outputs by number; None without a classification head.

    Returns:
        Indices into Task.labels; (0,) of a score.

    Raises:
        CheckpointError: no head, another number of labels, or other names.
        InputError: a list without labels.
    """
    must_have_labels(task)
    if labels is None:
        raise CheckpointError(
            f"{task.name} needs a checkpoint with a classification head; this one has none: fine-tune it first."
        )
    names = [labels[k] for k in sorted(labels)]
    if len(names) != task.outputs:
        wanted = "1 output" if task.is_score else f"{task.outputs} labels"
        raise CheckpointError(
            f"{task.name} has {wanted}; the head of this checkpoint has {len(names)} ({', '.join(names)[:100]}): "
            f"choose one fine-tuned on {task.name}."
        )
    if task.is_score:
        return (0,)
    if all(_GENERIC.match(name) for name in names):
        return _generic(task, names)
    return _named(task, names)


def _generic(task: Task, names: list[str]) -> tuple[int, ...]:
    if len(names) > 2:
        raise CheckpointError(
            f"The labels of a checkpoint for {task.name} must be named, because their order differs "
            f"between checkpoints; this one says {', '.join(names)}: write {', '.join(task.labels)} "
            "into id2label of its config.json in its own order."
        )
    return tuple(range(len(names)))


def _named(task: Task, names: list[str]) -> tuple[int, ...]:
    known = {own.plain_label(name): k for spelled in (task.labels, task.spelled) for k, name in enumerate(spelled)}
    order = tuple(known.get(own.plain_label(name), -1) for name in names)
    if sorted(order) != list(range(len(names))):
        raise CheckpointError(
            f"The labels of {task.name} are {', '.join(task.labels)}; the head of this "
            f"checkpoint has {', '.join(names)[:100]}: choose one fine-tuned on {task.name}."
        )
    return order
