"""Inputs of a forward pass: examples of tasks or typed texts, in chunks that are units of work. Does not import
torch."""

from dataclasses import dataclass
from typing import Annotated, Any

import pydantic.dataclasses
from pydantic import BeforeValidator

from ...errors import InputError
from ...tasks.glue import read_rows, task_of
from ...tasks.own import is_text_file, stretches
from ..contract import ChunkUnit, Flag
from ..options import Checkpoint, Data, InputSplit, Limit, Seed

PASTED = "text"  # the "task" of sentences a person typed
ROWS_A_UNIT = 256
STRETCHES_A_UNIT = 1
Text = str | tuple[str, str | None]


Tasks = Annotated[
    tuple[str, ...],
    Flag(
        "source of input texts: GLUE task, CSV file, or .txt file of any length; repeat the option for several sources",
        name="--task",
    ),
]


def _pairs(given: Any) -> Any:
    return [pair_of(text) if isinstance(text, str) else text for text in given]


@pydantic.dataclasses.dataclass(frozen=True)
class AttendingOptions:
    """Options that all attention studies have: a checkpoint, its inputs, and an optional second checkpoint."""

    checkpoint: Checkpoint = "atlas-encoder"
    compare: str | None = None
    tasks: Tasks = ("sst2",)
    split: InputSplit = "dev"
    data: Data = None
    limit: Limit = 500
    texts: Annotated[
        tuple[Text, ...],
        BeforeValidator(_pairs),
        Flag(
            'sentence or sentence pair "first | second" to use instead of task examples; repeat the option for '
            "several sentences",
            name="--text",
            typed=list[str],
        ),
    ] = ()
    pipeline: str | None = None
    seed: Seed = 0
    dtype: str = "float32"


@dataclass(frozen=True)
class SourceText:
    """A text that has not been tokenised yet. If `windows` is True, it is split into inputs that fit the checkpoint."""

    number: int
    row_id: str
    text: str
    pair: str | None
    windows: bool = False


def pair_of(line: str) -> str | tuple[str, str]:
    """Parse a typed sentence or a pair "first | second". Raises InputError for more than two parts."""
    first, _, second = line.partition(" | ")
    if " | " in second:
        raise InputError(
            f'A typed text must be one sentence, or two separated by " | "; "{line[:60]}" has {line.count(" | ") + 1} '
            'parts. Put a sentence that contains " | " into a CSV file.'
        )
    return (first.strip(), second.strip()) if second.strip() else first.strip()


def sources(options: AttendingOptions, task: str) -> list[SourceText]:
    """Return the texts of a task, or the texts that the user typed, in order."""
    if task == PASTED:
        pairs = [(text, None) if isinstance(text, str) else (text[0], text[1] or None) for text in options.texts]
        return [SourceText(k, f"text-{k}", text, pair) for k, (text, pair) in enumerate(pairs)]
    if is_text_file(task):
        return [SourceText(k, f"stretch-{k}", text, None, windows=True) for k, text in enumerate(stretches(task))]
    rows = read_rows(task, options.split, folder=options.data, limit=options.limit, seed=options.seed)
    return [SourceText(k, row.id, row.text, row.pair) for k, row in enumerate(rows)]


def chunks(options: AttendingOptions, rows: int | None = None) -> list[tuple[ChunkUnit, int]]:
    """Divide the inputs of every checkpoint and task into chunks, and estimate the number of tokens in each chunk. A
    chunk has at most `rows` examples. A chunk of a text file has at most STRETCHES_A_UNIT stretches of text."""
    all_chunks = []
    for checkpoint in dict.fromkeys(name for name in (options.checkpoint, options.compare) if name):
        for task in _tasks(options):
            inputs = sources(options, task)
            most = STRETCHES_A_UNIT if is_text_file(task) else rows or ROWS_A_UNIT
            for start in range(0, len(inputs), most):
                part = inputs[start : start + most]
                size = sum(len(source.text) + len(source.pair or "") for source in part) // 4
                all_chunks.append((ChunkUnit(checkpoint, task, start, start + len(part)), max(1, size)))
    return all_chunks


def _tasks(options: AttendingOptions) -> list[str]:
    """Return the keys of the tasks, or PASTED for typed texts."""
    if options.texts:
        return [PASTED]
    if not options.tasks:
        raise InputError("At least one task or text must be given; got none. Choose a task, or give a text.")
    return list(dict.fromkeys(task if is_text_file(task) else task_of(task).key for task in options.tasks))
