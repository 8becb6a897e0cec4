"""The seven GLUE tasks, with examples from the bundled samples, a folder, or the hub.

Labels have the order of the hub (`nyu-mll/glue`): RTE and QNLI have 0 = entailment; MNLI has 0 = entailment, 1 =
neutral, 2 = contradiction. The scripts of the paper use another order for MNLI, and its notebook codes entailment as 1,
so labels are always matched by name.
"""

import hashlib
import random
import re
from collections.abc import Iterator, Sequence
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
    """A text classification or regression task, such as SST-2, and its labels, file columns and metrics.

    Attributes:
        name: as in papers, and its folder in the download of GLUE.
        text, pair, label: columns of the TSV files; pair is None for single sentences.
        labels: in the order of the hub; empty for scores (STS-B, 0 to 5).
        metrics: the first one ranks checkpoints.
        majority: fraction of the most frequent official dev label; None for scores.
        drops_short_rows: whether official files have incomplete rows, which are skipped.
        labelled: False for a custom list without labels.
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
    labelled: bool = True

    @property
    def is_score(self) -> bool:
        return not self.labels

    @property
    def outputs(self) -> int:
        """Return how many outputs a classification head needs for this task: one per class, or one for a score."""
        return len(self.labels) or 1

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(column for column in (self.text, self.pair, self.label) if column)

    @property
    def metric(self) -> str:
        return self.metrics[0]


@dataclass(frozen=True)
class TaskRow:
    """A labelled example of a task: a text, or a pair of texts, with a label.

    Attributes:
        id: split and zero-based index in its file; for a custom file also a hash of the text.
        pair: second sentence, or None.
        label: index into Task.labels, a score from 0 to 5, or NaN without labels.
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
    """GLUE's tasks by key; paths of custom files are keys too."""

    def __missing__(self, key: str) -> Task:
        if not own.is_own(key):
            raise KeyError(key)
        file = own.read_own(key)
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


TASKS = _Tasks({record.key: record for record in _RECORDS})


def task_name(task: str | None) -> str:
    """Return the name of a task as papers write it, such as "SST-2"; "" if the task is None."""
    return TASKS[task].name if task and task in TASKS else task or ""


def task_of(task: str | Task) -> Task:
    """Return the task with the given name in any spelling ("SST-2", "sst2", "MNLI-m"), or the task in a custom file."""
    if isinstance(task, Task):
        return task
    if own.is_own(task):
        return TASKS[task]
    key = task.strip().lower().replace("-", "").replace("_", "")
    key = "mnli" if key in {"mnlim", "mnlimatched"} else key
    if key not in TASKS:
        raise InputError(
            f"A task must be one of {', '.join(TASKS)} or a CSV, TSV or JSON Lines file; got "
            f'"{task[:60]}". Choose one of them.'
        )
    return TASKS[key]


def sampled(text: str) -> str:
    """Mark task names in a text as bundled samples by appending "-like", as in "SST-2-like"."""
    names = "|".join(re.escape(record.name) for record in _RECORDS)
    return re.sub(rf"(?<![\w-])({names})(?![\w-])", r"\1-like", text)


def must_have_labels(task: str | Task) -> None:
    """Raise InputError if the examples of a task have no labels."""
    if not (known := task_of(task)).labelled:
        raise InputError(
            f'Training and evaluation need labels; {known.name} has no column "label" or "score". Add such a '
            "column, or choose another task."
        )


def read_rows(
    task: str | Task,
    split: str = "train",
    *,
    folder: str | Path | None = None,
    limit: int | None = None,
    seed: int = 0,
) -> list[TaskRow]:
    """Return the examples in one split of a task, in file order.

    Raises InputError for another split, a missing file or column, an unknown label, or no examples.

    Args:
        split: "train" or "dev".
        folder: None for the bundled samples, "hub" for `nyu-mll/glue` through `datasets`, otherwise a folder with the
            TSV files of GLUE (the parent of `SST-2/`, or that of the task). Ignored for custom files.
        limit: number of examples to sample without replacement; None for all.
    """
    task = task_of(task)
    if split not in ("train", "dev"):
        raise InputError(
            f'The split must be "train" or "dev" (GLUE withholds its test labels); got "{split}". Choose one of them.'
        )
    rows = _rows_of(task, split, folder)
    if not rows:
        raise InputError(
            f"A split must have at least one example; the {split} split of {task.name} has none. Choose other data."
        )
    return drawn(rows, limit, seed)


def drawn(rows: Sequence[TaskRow], limit: int | None, seed: int) -> list[TaskRow]:
    """Sample at most `limit` examples without replacement, in their original order; None means all examples."""
    if limit is None or limit >= len(rows):
        return list(rows)
    return [rows[k] for k in sorted(random.Random(seed).sample(range(len(rows)), limit))]  # noqa: S311


def fingerprint(rows: Sequence[TaskRow]) -> str:
    """Return a hash of the IDs, texts and labels of examples. A resumed run uses this hash to detect changed data."""
    text = "\n".join(f"{row.id}\t{row.text}\t{row.pair}\t{row.label}" for row in rows)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _rows_of(task: Task, split: str, folder: str | Path | None) -> list[TaskRow]:
    if own.is_own(task.key):
        return [TaskRow(row.id, row.text, row.pair, row.label) for row in own.read_own(task.key).of(split)]
    if str(folder) == HUB:
        import datasets  # 0.4 s, only with a network

        try:
            table: Any = datasets.load_dataset(
                HUB_NAME, task.key, split="train" if split == "train" else task.dev_split
            )
        except Exception as error:  # transports raise many kinds of errors, all of which mean "not reachable"
            raise InputError(
                f"The examples of {task.name} could not be downloaded from the hub. Connect to a network, give a "
                "folder with GLUE's TSV files, or use the bundled samples."
            ) from error
        return hub_rows(task, split, table)
    file = find_file(task, split, folder)
    seen = file.stat()
    return list(_parsed(task, split, file, seen.st_mtime_ns, seen.st_size))


@lru_cache(maxsize=8)
def _parsed(task: Task, split: str, file: Path, modified: int, size: int) -> tuple[TaskRow, ...]:
    """Return the examples in a task file, cached until the file changes."""
    return tuple(_from_file(task, split, file))


# ---------------------------------------------------------------- GLUE's TSV form


def find_file(task: Task, split: str, folder: str | Path | None) -> Path:
    """Return the path of the TSV file with one split of a task. If `folder` is None, bundled samples are used."""
    root = config.SAMPLES if folder is None else config.inside(folder)
    names = ["train.tsv"] if split == "train" else [task.dev_file, "dev.tsv"]
    places = [place / name for name in names for place in (root / task.name, root)]
    file = next((place for place in places if place.is_file()), None)
    if file is None:
        raise InputError(
            f"The file {task.name}/{names[0]} with {split} examples must exist; there is no such file in {root}. Give "
            "the folder that contains GLUE's task folders."
        )
    return file if folder is None else config.inside(file)  # a link in the folder may lead out of it


def _from_file(task: Task, split: str, file: Path) -> Iterator[TaskRow]:
    """Quotation marks are text: GLUE's files are only split at tabs."""
    try:
        lines = read_text(file, given=True).split("\n")
    except OSError as error:
        raise InputError(
            f"A task file must be readable UTF-8 text; {file.name} of {task.name} cannot be read ({error}). Save it as "
            "UTF-8."
        ) from error
    header = lines[0].rstrip("\r").split("\t")
    for column in task.columns:
        if column not in header:
            raise InputError(
                f'{task.name} needs the columns {", ".join(task.columns)}; {file.name} has no "{column}" (it has '
                f"{', '.join(header)[:120]}). Use GLUE's TSV files."
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
            f"Every row of {task.name} must have at least {max(places.values()) + 1} columns; row {number + 1} of "
            f"{file.name} has {len(fields)}. Correct or remove the row."
        )
    text, pair = fields[places[task.text]], fields[places[task.pair]] if task.pair else None
    if not text.strip() or (pair is not None and not pair.strip()):
        if task.drops_short_rows:
            return
        raise InputError(
            f"Every row of {task.name} must have text; row {number + 1} of {file.name} has an empty sentence. "
            "Correct or remove the row."
        )
    label = parse_label(task, fields[places[task.label]], f"row {number + 1} of {file.name}")
    yield TaskRow(f"{split}-{number}", text, pair, label)


def parse_label(task: Task, value: str, place: str) -> int | float:
    """Parse the label of an example. Raises InputError if the label is invalid; `place` names the row in the
    message."""
    value = value.strip()
    if value == "-1":
        raise InputError(
            f"Labels must be known; {place} of {task.name} has the label -1, because GLUE withholds the labels of "
            "its test split. Use the dev split."
        )
    if task.is_score:
        try:
            score = float(value)
        except ValueError:
            score = float("nan")
        if not 0 <= score <= 5:
            raise InputError(
                f'A score of {task.name} must be from 0 to 5; {place} has "{value[:60]}". Correct or remove the score.'
            )
        return score
    for known in (task.spelled, task.labels):
        if value in known:
            return known.index(value)
    raise InputError(
        f'A label of {task.name} must be one of {", ".join(task.spelled)}; {place} has "{value[:60]}". Correct '
        "or remove the row."
    )


# ---------------------------------------------------------------- the hub


def hub_rows(task: Task, split: str, table: Any) -> list[TaskRow]:
    """Convert a GLUE table from the `datasets` library to examples of one split."""
    needed = [column for column in (task.hub_text, task.hub_pair, "label") if column]
    if missing := [column for column in needed if column not in table.column_names]:
        raise InputError(
            f'{task.name} needs the columns {", ".join(needed)}; the hub\'s table has no "{missing[0]}" (it has '
            f"{', '.join(table.column_names)[:120]}). Use a folder with GLUE's TSV files."
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


# ---------------------------------------------------------------- train examples that fine-tuning left out


SPLIT = "unseen"  # split of dev examples and unseen train examples
WORDS = 4  # length of a shared word sequence


def unseen(dev: Sequence[TaskRow], train: Sequence[TaskRow], learned: Sequence[TaskRow]) -> list[TaskRow]:
    """Return examples that a model was not trained on: all dev examples, and the train examples that do not overlap
    with the model's training data.

    A train example is unrelated if it shares no sequence of WORDS words with one that the model learned (`learned`);
    those with fewer words are left out.
    """
    ids, known = {row.id for row in learned}, {run for row in learned for run in _runs(row)}
    left = ((row, set(_runs(row))) for row in train if row.id not in ids)
    return [*dev, *(row for row, runs in left if runs and not runs & known)]


def _runs(row: TaskRow) -> Iterator[tuple[str, ...]]:
    for text in filter(None, (row.text, row.pair)):
        words = text.casefold().split()
        yield from (tuple(words[k : k + WORDS]) for k in range(len(words) - WORDS + 1))


# ---------------------------------------------------------------- label order of a checkpoint


_GENERIC = re.compile(r"^LABEL_\d+$", re.IGNORECASE)


def label_order(task: Task, labels: dict[int, str] | None) -> tuple[int, ...]:
    """Return the index in Task.labels for each output of a checkpoint. Return (0,) for a regression task.

    `logits[:, [order.index(l) for l in ...]]` is then in the order of the task. Names (`labels`, by output) are
    compared without case, spaces, hyphens and underscores. Two generic names (LABEL_0, LABEL_1) have the order of the
    hub; three are ambiguous and refused. Raises CheckpointError without a head, or for other numbers or names of
    labels, and InputError if the task has no labels.
    """
    must_have_labels(task)
    if labels is None:
        raise CheckpointError(
            f"A checkpoint for {task.name} must have a classification head; this checkpoint has none. Fine-tune "
            "it first."
        )
    names = [labels[k] for k in sorted(labels)]
    if len(names) != task.outputs:
        wanted = "1 output" if task.is_score else f"{task.outputs} labels"
        raise CheckpointError(
            f"The classification head of a checkpoint for {task.name} must have {wanted}; this head has "
            f"{len(names)} ({', '.join(names)[:100]}). Choose a checkpoint fine-tuned on {task.name}."
        )
    if task.is_score:
        return (0,)
    if all(_GENERIC.match(name) for name in names):
        if len(names) > 2:
            raise CheckpointError(
                f"The outputs of a checkpoint for {task.name} must have label names; got {', '.join(names)}. Write the "
                f"names {', '.join(task.labels)} into id2label of its config.json, in the order of its outputs."
            )
        return tuple(range(len(names)))
    known = {own.plain_label(name): k for spelled in (task.labels, task.spelled) for k, name in enumerate(spelled)}
    order = tuple(known.get(own.plain_label(name), -1) for name in names)
    if sorted(order) != list(range(len(names))):
        raise CheckpointError(
            f"The labels of a checkpoint for {task.name} must be {', '.join(task.labels)}; got "
            f"{', '.join(names)[:100]}. Choose a checkpoint fine-tuned on {task.name}."
        )
    return order
