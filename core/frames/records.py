"""A sentence annotated with one frame: its target, its frame elements, and the links between them.

Spans are characters [start, end) of the text. Nothing here knows about word pieces: `Encoding.pieces` maps a span
to the pieces of a checkpoint.
"""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import InputError

Span = tuple[int, int]
Spans = tuple[Span, ...]
CoreRule = str  # one of CORE_RULES; options arrive as text from pages and the terminal
CORE_RULES: tuple[CoreRule, ...] = ("core_sets", "core_type", "any")


@dataclass(frozen=True)
class Element:
    """A frame element that the sentence expresses.

    spans: several where it is discontinuous. coreness: FrameNet's coreType ("Core", "Core-Unexpressed",
    "Peripheral", "Extra-Thematic"), None where the source does not say. in_core_set: whether the frame lists it in
    one of its FEcoreSets, None where the source does not say.
    """

    name: str
    spans: Spans
    coreness: str | None = None
    in_core_set: bool | None = None

    def is_core(self, rule: CoreRule) -> bool:
        """Whether a rule counts it as core: "core_sets" (the paper's code), "core_type", or "any".

        An element whose source is silent about the rule counts: it was selected before it reached us.
        """
        if rule == "core_sets":
            return self.in_core_set is not False
        return rule == "any" or self.coreness is None or self.coreness.startswith("Core")


@dataclass(frozen=True)
class Link:
    """Two places of a sentence whose attention is measured. name: of the element; element, target: their spans."""

    name: str
    element: Spans
    target: Spans


@dataclass(frozen=True)
class AnnotatedSentence:
    """A text with one target and the elements of the frame it evokes.

    id: unique in its source. target: spans of the frame-evoking words. frame, lexical_unit: FrameNet's names, or
    None where unknown. source: file or release it came from. links: given explicitly by sources that measured
    other pairs than target and element (the GPT-2 replication); None otherwise.
    """

    id: str
    text: str
    target: Spans
    frame: str | None = None
    lexical_unit: str | None = None
    elements: tuple[Element, ...] = ()
    source: str = ""
    links: tuple[Link, ...] | None = None

    @property
    def target_text(self) -> str:
        return words(self.text, self.target)


@dataclass(frozen=True)
class Skipped:
    """Something a reader left out. where: row, document or lexical unit; why: one sentence."""

    where: str
    why: str


@dataclass(frozen=True)
class FrameReading:
    """What a reader found. notes: choices it had to make, such as the place of a string that occurs twice."""

    sentences: tuple[AnnotatedSentence, ...]
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[Skipped, ...] = ()


def words(text: str, spans: Iterable[Span]) -> str:
    """The texts of some spans, joined by " … "."""
    return " … ".join(text[start:end] for start, end in spans)


def overlap(first: Iterable[Span], other: Iterable[Span]) -> bool:
    """Whether any two spans share a character."""
    others = tuple(other)
    return any(a[0] < b[1] and b[0] < a[1] for a in first for b in others)


def links_of(sentence: AnnotatedSentence, *, core: CoreRule = "core_sets") -> tuple[Link, ...]:
    """The links to measure: the sentence's own, else its target with each core element that does not overlap it."""
    if sentence.links is not None:
        return sentence.links
    return tuple(
        Link(element.name, element.spans, sentence.target)
        for element in sentence.elements
        if element.is_core(core) and not overlap(element.spans, sentence.target)
    )


def check(sentence: AnnotatedSentence) -> AnnotatedSentence:
    """The sentence itself when it has a text and a target, and every span lies inside the text and is not empty.

    An element may share characters with the target (FrameNet marks "teacher" as both): filters count it, `links_of`
    leaves it out. Raises InputError with the words that are wrong.
    """
    if not sentence.text.strip():
        raise InputError("An annotated sentence must have a text; this one is empty: fill in its text.")
    if not sentence.target:
        raise InputError("An annotated sentence must mark one target; this one marks none: give target spans.")
    marked = [("target", sentence.target), *((element.name, element.spans) for element in sentence.elements)]
    marked += [(link.name or "link", side) for link in sentence.links or () for side in (link.element, link.target)]
    for name, spans in marked:
        _check_spans(name, spans, len(sentence.text))
    return sentence


def check_apart(sentence: AnnotatedSentence) -> AnnotatedSentence:
    """The same of a sentence whose elements are all to be measured: none may share characters with the target."""
    check(sentence)
    for element in sentence.elements:
        if overlap(element.spans, sentence.target):
            raise InputError(
                f'The target and an element must not share characters; "{element.name}" '
                f'("{words(sentence.text, element.spans)}") overlaps the target "{sentence.target_text}": mark one of '
                "them again."
            )
    return sentence


def _check_spans(name: str, spans: Spans, length: int) -> None:
    if not spans:
        raise InputError(f'Every element must have a span; "{name}" has none: mark its words or leave it out.')
    for start, end in spans:
        if not 0 <= start < end <= length:
            raise InputError(
                f'A span must lie inside its text of {length} characters and not be empty; "{name}" has '
                f"[{start}, {end}): mark it again."
            )
    for left, right in zip(sorted(spans), sorted(spans)[1:], strict=False):
        if right[0] < left[1]:
            raise InputError(
                f'Spans of one element must not overlap; "{name}" has {list(left)} and {list(right)}: join them.'
            )


# -------------------- Words of a text as FrameNet's filter counts them, and where a word or phrase stands in it


_UNSPACED = frozenset(
    ("CJK", "HIRAGANA", "KATAKANA", "HALFWIDTH", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC", "THAI", "LAO", "KHMER", "MYANMAR",
     "TIBETAN", "JAVANESE", "BALINESE", "YI")
)  # fmt: skip


def word_spans(text: str) -> list[Span]:
    """Characters of each token of NLTK's word tokenizer (Penn Treebank rules), the text taken as one sentence.

    The paper's notebook calls `nltk.word_tokenize`, which first splits sentences with a model that is not bundled;
    FrameNet's texts are single sentences. Quotes, which the tokenizer rewrites, keep the place they have in the text.
    """
    from nltk.tokenize import NLTKWordTokenizer  # 1.3 s of start-up

    spans, cursor = [], 0
    for token in NLTKWordTokenizer().tokenize(text):
        written = [(at, form) for form in _written(token) if (at := text.find(form, cursor)) >= 0]
        if written:
            start, form = min(written)
            cursor = start + len(form)
            spans.append((start, cursor))
    return spans


def _written(token: str) -> tuple[str, ...]:
    return ("``", "''", '"') if token in {"``", "''"} else (token,)


def places(text: str, phrase: str) -> list[Span]:
    """Where a phrase stands in a text as whole words, or as characters in scripts that do not separate words.

    Korean particles are written onto their word, so Hangul counts as such a script.
    """
    if not phrase:
        return []
    starts = [match.start() for match in re.finditer(f"(?={re.escape(phrase)})", text)]
    spans = [(start, start + len(phrase)) for start in starts]
    whole = [span for span in spans if not _joined(text, span[0]) and not _joined(text, span[1])]
    return [span for k, span in enumerate(whole) if k == 0 or span[0] >= whole[k - 1][1]]


def _joined(text: str, place: int) -> bool:
    """Whether the characters before and after a place are of one word or of one character with its marks."""
    if not 0 < place < len(text):
        return False
    before, after = text[place - 1], text[place]
    if unicodedata.category(after) in ("Mn", "Mc", "Me") or after in "\u200d\ufe0f":
        return True
    last = next(
        (letter for letter in reversed(text[:place]) if not unicodedata.category(letter).startswith("M")), before
    )
    return all(letter.isalnum() or letter == "_" for letter in (last, after)) and not (
        _unspaced(last) or _unspaced(after)
    )


def _unspaced(letter: str) -> bool:
    """Whether a letter's script is written without spaces between words, or with particles on them."""
    return unicodedata.name(letter, "").split(" ")[0].split("-")[0] in _UNSPACED


def spaced_places(text: str, phrase: str) -> list[Span]:
    """Where a phrase stands between white space: for texts whose tokens are already separated."""
    return [match.span() for match in re.finditer(rf"(?<!\S){re.escape(phrase)}(?!\S)", text)] if phrase else []


def place(text: str, phrase: str, name: str = "words") -> Span:
    """The one place of a phrase; "walk#2" is its second occurrence.

    Raises InputError when it is not in the text, or occurs several times and no occurrence was named.
    """
    wanted, _, number = phrase.rpartition("#")
    if not (wanted and number.isascii() and number.isdigit() and len(number) < 10):
        wanted, number = phrase, ""
    spans = places(text, wanted.strip())
    if not spans:
        raise InputError(f'The {name} must be words of the sentence; "{wanted}" is not in "{text}": copy them from it.')
    if number and not 1 <= int(number) <= len(spans):
        raise InputError(f'The {name} "{wanted}" occurs {len(spans)} times, so there is no #{number}: count from 1.')
    if not number and len(spans) > 1:
        raise InputError(
            f'The {name} must name one place; "{wanted}" occurs {len(spans)} times: write "{wanted}#1" '
            f'for the first, up to "{wanted}#{len(spans)}".'
        )
    return spans[int(number or 1) - 1]


def covered(spans: Spans, tokens: list[Span]) -> list[int]:
    """Indices of the tokens that share a character with any of the spans."""
    return [k for k, token in enumerate(tokens) if any(s < token[1] and token[0] < e for s, e in spans)]


def distance(first: Spans, other: Spans, tokens: list[Span]) -> int:
    """Smallest difference of token positions between two places; 0 where they share a token or have none."""
    return min((abs(a - b) for a in covered(first, tokens) for b in covered(other, tokens)), default=0)
