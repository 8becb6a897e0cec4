"""A tagged text: its words with their characters, tags and heads.

Words keep their characters, so they meet a tokenizer's pieces by offsets and never by spelling. Who tags is no concern
of a task: `core.studies.tagging` does, with spaCy.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class TaggedWord:
    """One word as the pipeline sees it.

    Attributes:
        head: number of the governing word in the sentence; a root is its own head.
    """

    text: str
    start: int
    end: int
    tag: str
    pos: str
    dep: str
    head: int


@dataclass(frozen=True)
class TaggedSentence:
    """A text and its words in order; white space is no word."""

    text: str
    words: tuple[TaggedWord, ...]

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Characters of each word."""
        return [(word.start, word.end) for word in self.words]
