"""Tagged texts: words with character offsets, tags and governors.

Words are matched to tokens by offsets, never by spelling. Tagging is done by `core.studies.tagging`.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class TaggedWord:
    """A word with part-of-speech tags and dependency label. `head` is the index of its governor (a root: itself)."""

    text: str
    start: int
    end: int
    tag: str
    pos: str
    dep: str
    head: int


@dataclass(frozen=True)
class TaggedSentence:
    """A text with its words in order, each with part-of-speech tags and a dependency label."""

    text: str
    words: tuple[TaggedWord, ...]

    @property
    def spans(self) -> list[tuple[int, int]]:
        return [(word.start, word.end) for word in self.words]
