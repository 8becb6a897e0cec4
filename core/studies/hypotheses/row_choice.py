"""Rows that a hypothesis was thought of on, and those that judge it: named, read, and known by their content."""

import hashlib
import json
import unicodedata
from typing import TYPE_CHECKING, Any

import numpy as np
import pydantic.dataclasses

from ... import config
from ...errors import InputError
from ...frames.records import AnnotatedSentence
from ...frames.rows import read_rows as frame_rows
from ...frames.rows import write_rows
from ...tasks.glue import TaskRow, read_rows, task_of
from ...tasks.own import absolute
from ..options import LARGEST_SEED

if TYPE_CHECKING:
    from ...models.checkpoint import Checkpoint

CUT_FROM, LONGEST_WORD = 400, 60  # characters of inputs and words that every tokenizer reads whole
MARK = 16  # hex digits of a row's hash
FRAMES = "frames"  # not a task: the bundled sentences with frames; each second one is a dev row
FRAME_SENTENCES = config.SAMPLES / "frames" / "sentences.jsonl"


@pydantic.dataclasses.dataclass(frozen=True)
class RowChoice:
    """Rows of a task, or sentences with frames. limit: most rows, drawn with the seed; None for all. data: None for
    the bundled ones."""

    task: str
    split: str = "dev"
    limit: int | None = 200
    seed: int = 0
    data: str | None = None

    @classmethod
    def parse(cls, text: str, *, data: str | None = None) -> "RowChoice":
        """Read "mrpc", "mrpc:train", "mrpc:train:200" or "mrpc:train:200:1" (task, split, limit, seed); a limit of 0 is
        all. Raises InputError."""
        task, *others = text.rsplit(":", text.count(":")) if not text.endswith((".csv", ".tsv")) else [text]
        split, limit, seed = (*others, *("dev", "200", "0")[len(others) :])[:3]
        if (
            len(others) > 3
            or not task
            or split not in ("dev", "train")
            or not limit.isdecimal()
            or not seed.isdecimal()
        ):
            raise InputError(
                f'Rows are named by task, split, limit and seed, such as mrpc:dev:200:0; "{text[:60]}" is not so.'
            )
        if int(seed) > LARGEST_SEED:
            raise InputError(f"A seed is at most {LARGEST_SEED}; {seed[:30]} was given.")
        return cls(task if task == FRAMES else absolute(task_of(task).key), split, int(limit) or None, int(seed), data)

    def __str__(self) -> str:
        return f"{self.task}:{self.split}:{self.limit or 0}:{self.seed}"

    def rows(self) -> list[TaskRow]:
        """The rows. Raises InputError where there are none."""
        if self.task == FRAMES:
            return [TaskRow(sentence.id, sentence.text, None, 0) for sentence in self._sentences()]
        return read_rows(self.task, self.split, folder=self.data, limit=self.limit, seed=self.seed)

    def frames(self) -> str:
        """The sentences with their frames, as `frame-heads` reads them."""
        return write_rows(self._sentences())

    def _sentences(self) -> list[AnnotatedSentence]:
        if self.split not in ("dev", "train"):
            raise InputError(f'Sentences with frames are split into dev and train; "{self.split[:40]}" is neither.')
        found = list(frame_rows(FRAME_SENTENCES).sentences[self.split == "train" :: 2])
        if self.limit is not None and self.limit < len(found):
            drawn = np.random.default_rng(self.seed).choice(len(found), self.limit, replace=False)
            found = [found[k] for k in sorted(drawn.tolist())]
        return found


def mark_of(row: TaskRow) -> str:
    """What a row is known by: a hash of its texts, whatever its id or label."""
    return hashlib.sha256(json.dumps([row.text, row.pair], ensure_ascii=False).encode()).hexdigest()[:MARK]


def input_marks(row: TaskRow, checkpoint: "Checkpoint") -> tuple[str, str]:
    """What an input is known by, as a checkpoint sees it: rows that share either mark are one input.

    Returns:
        Hashes of its letters and digits without case and accents, and of its token ids.
    """
    return letters_mark(row), "tokens:" + _hashed(list(checkpoint.encode(row.text, row.pair).ids))


def letters_mark(row: TaskRow) -> str:
    """A hash of the letters and digits of an input, without case and accents."""
    return "letters:" + _hashed([_letters(text) for text in (row.text, row.pair or "")])


def is_plain(row: TaskRow) -> bool:
    """Whether other letters must be other tokens: nothing that a vocabulary may lack, and nothing that is cut."""
    text = f"{row.text} {row.pair or ''}"
    return text.isascii() and len(text) < CUT_FROM and all(len(word) < LONGEST_WORD for word in text.split())


def _letters(text: str) -> str:
    parts = unicodedata.normalize("NFKD", text).casefold()
    return "".join(letter for letter in parts if letter.isalnum()) or " ".join(text.split())


def _hashed(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, ensure_ascii=False).encode()).hexdigest()[:MARK]


def check_apart(thought: RowChoice, judged: RowChoice, checkpoint: "Checkpoint") -> None:
    """Raises InputError where an input comes twice among the rows of one choice, as tests take inputs for independent;
    or where one that judges is among those that the hypothesis was thought of on."""
    before: set[str] = set()
    both = []
    for choice in (thought, judged):
        own: dict[str, str] = {}
        for row in choice.rows():
            marks = input_marks(row, checkpoint)
            if twin := next((own[mark] for mark in marks if mark in own), None):
                raise InputError(
                    f"A test counts each input once, but rows {twin} and {row.id} of {choice} are the same input "
                    f"(letters or tokens are equal): remove repeated rows, or draw others."
                )
            own |= dict.fromkeys(marks, row.id)
            if choice is judged and before.intersection(marks):
                both.append(row.id)
        second, before = own, before | set(own)
    if both:
        raise InputError(
            f"A hypothesis is judged on rows that it was not thought of on, but {len(both)} of the "
            f"{len(set(second.values()))} rows of {judged} are among those of {thought} ({both[0]} is the first): "
            "choose another task or split."
        )
