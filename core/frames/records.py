"""Sentences annotated with one frame: target, frame elements, and the links between them.

Spans are characters [start, end) of the text; `Encoding.pieces` maps them to tokens.
"""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import InputError

Span = tuple[int, int]
Spans = tuple[Span, ...]
CoreRule = str  # one of CORE_RULES; options arrive as text
CORE_RULES: tuple[CoreRule, ...] = ("core_sets", "core_type", "any")


@dataclass(frozen=True)
class Element:
    """A frame element that occurs in a sentence.

    Attributes:
        spans: several if it is discontinuous.
        coreness: coreType of FrameNet ("Core", "Core-Unexpressed", "Peripheral", "Extra-Thematic"); None if unknown.
        in_core_set: whether it is in one of the FEcoreSets of the frame; None if unknown.
    """

    name: str
    spans: Spans
    coreness: str | None = None
    in_core_set: bool | None = None

    def is_core(self, rule: CoreRule) -> bool:
        """Return whether the element is core under a rule: "core_sets" (the rule of Kovaleva et al.), "core_type" or
        "any". Elements of unknown coreness count as core."""
        if rule == "core_sets":
            return self.in_core_set is not False
        return rule == "any" or self.coreness is None or self.coreness.startswith("Core")


@dataclass(frozen=True)
class Link:
    """A link between a frame element and a target word, along which attention is measured."""

    name: str
    element: Spans
    target: Spans


@dataclass(frozen=True)
class AnnotatedSentence:
    """A text with one target word or phrase, and the elements of the frame that this target evokes.

    Attributes:
        id: unique in its source.
        target: spans of the frame-evoking words.
        frame, lexical_unit: names in FrameNet; None if unknown.
        source: its file or release.
        links: explicit links of sources that measure other pairs (the GPT-2 replication); otherwise None.
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
    """A row, document or lexical unit that was skipped when a file was read, and the reason."""

    where: str
    why: str


@dataclass(frozen=True)
class FrameReading:
    """The annotated sentences from a file, the skipped items, and notes on phrases that occur more than once."""

    sentences: tuple[AnnotatedSentence, ...]
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[Skipped, ...] = ()


def words(text: str, spans: Iterable[Span]) -> str:
    """Return the text in the given spans, with " … " between spans."""
    return " … ".join(text[start:end] for start, end in spans)


def overlap(first: Iterable[Span], other: Iterable[Span]) -> bool:
    """Return True if any span in one list shares a character with a span in another list."""
    others = tuple(other)
    return any(a[0] < b[1] and b[0] < a[1] for a in first for b in others)


def links_of(sentence: AnnotatedSentence, *, core: CoreRule = "core_sets") -> tuple[Link, ...]:
    """Return the stored links of a sentence. If no links are stored, return one link between the target and each core
    element that does not overlap the target."""
    if sentence.links is not None:
        return sentence.links
    return tuple(
        Link(element.name, element.spans, sentence.target)
        for element in sentence.elements
        if element.is_core(core) and not overlap(element.spans, sentence.target)
    )


def check(sentence: AnnotatedSentence) -> AnnotatedSentence:
    """Return the sentence unchanged. Raises InputError unless it has a text, a target and valid spans.

    An element may overlap the target (FrameNet marks "teacher" as both); `links_of` omits such an element.
    """
    if not sentence.text.strip():
        raise InputError("An annotated sentence must not be empty; got no text. Enter the text of the sentence.")
    if not sentence.target:
        raise InputError(
            "An annotated sentence must have a target, the word that evokes the frame; this sentence has none. Add "
            "the span of its target."
        )
    marked = [("target", sentence.target), *((element.name, element.spans) for element in sentence.elements)]
    marked += [(link.name or "link", side) for link in sentence.links or () for side in (link.element, link.target)]
    for name, spans in marked:
        length = len(sentence.text)
        if not spans:
            raise InputError(
                f'Every frame element and link must have spans in the sentence; "{name}" has none. Mark its words, or '
                "remove the element or link."
            )
        for start, end in spans:
            if not 0 <= start < end <= length:
                raise InputError(
                    f'A span must be non-empty and within its text of {length} characters; the span of "{name}" is '
                    f"[{start}, {end}). Mark its words again."
                )
        for left, right in zip(sorted(spans), sorted(spans)[1:], strict=False):
            if right[0] < left[1]:
                raise InputError(
                    f'Spans of one target or frame element must not overlap; "{name}" has {list(left)} and '
                    f"{list(right)}. Join these spans."
                )
    return sentence


def check_apart(sentence: AnnotatedSentence) -> AnnotatedSentence:
    """Return the sentence unchanged. Raises InputError if it is invalid, or if an element overlaps the target."""
    check(sentence)
    for element in sentence.elements:
        if overlap(element.spans, sentence.target):
            raise InputError(
                f'A frame element must not overlap the target of the frame; "{element.name}" '
                f'("{words(sentence.text, element.spans)}") overlaps "{sentence.target_text}". Mark the element or the '
                "target again."
            )
    return sentence


# ---------------------------------------------------------------- words and phrases of a text


_UNSPACED = frozenset(
    ("CJK", "HIRAGANA", "KATAKANA", "HALFWIDTH", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC", "THAI", "LAO", "KHMER", "MYANMAR",
     "TIBETAN", "JAVANESE", "BALINESE", "YI")
)  # fmt: skip


def word_spans(text: str) -> list[Span]:
    """Return the character span of each token in a sentence, by the word tokenizer of NLTK (Penn Treebank rules).

    The notebook of the paper uses `nltk.word_tokenize`, which first splits sentences with a model that is not bundled;
    texts of FrameNet are single sentences. Quotation marks keep their position.
    """
    from nltk.tokenize import NLTKWordTokenizer  # 1.3 s at start

    spans, cursor = [], 0
    for token in NLTKWordTokenizer().tokenize(text):
        forms = ("``", "''", '"') if token in {"``", "''"} else (token,)
        written = [(at, form) for form in forms if (at := text.find(form, cursor)) >= 0]
        if written:
            start, form = min(written)
            cursor = start + len(form)
            spans.append((start, cursor))
    return spans


def places(text: str, phrase: str) -> list[Span]:
    """Return the spans at which a phrase occurs as whole words. In scripts that do not separate words, it may occur
    anywhere."""
    if not phrase:
        return []
    starts = [match.start() for match in re.finditer(f"(?={re.escape(phrase)})", text)]
    spans = [(start, start + len(phrase)) for start in starts]
    whole = [span for span in spans if not _joined(text, span[0]) and not _joined(text, span[1])]
    return [span for k, span in enumerate(whole) if k == 0 or span[0] >= whole[k - 1][1]]


def _joined(text: str, place: int) -> bool:
    """Return whether the characters around a position belong to one word, or to one character with its marks."""
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
    """Return whether a letter's script has no spaces between words, or attaches particles to them."""
    return unicodedata.name(letter, "").split(" ")[0].split("-")[0] in _UNSPACED


def spaced_places(text: str, phrase: str) -> list[Span]:
    """Return the spans of a phrase in a text, only where white space separates the phrase from other text."""
    return [match.span() for match in re.finditer(rf"(?<!\S){re.escape(phrase)}(?!\S)", text)] if phrase else []


def place(text: str, phrase: str, name: str = "words") -> Span:
    """Return the span of a phrase in a text; "walk#2" is the second occurrence of "walk". Raises InputError if the
    phrase is missing or ambiguous."""
    wanted, _, number = phrase.rpartition("#")
    if not (wanted and number.isascii() and number.isdigit() and len(number) < 10):
        wanted, number = phrase, ""
    spans = places(text, wanted.strip())
    if not spans:
        raise InputError(
            f'The {name} must be whole words of the sentence; "{wanted}" is not in "{text}" as whole words. Copy the '
            "words from the sentence."
        )
    if number and not 1 <= int(number) <= len(spans):
        raise InputError(
            f'The number after # must be from 1 to {len(spans)}, because the {name} "{wanted}" occurs {len(spans)} '
            f"times in the sentence; got {number}. Correct the number."
        )
    if not number and len(spans) > 1:
        raise InputError(
            f'The {name} must be unambiguous; "{wanted}" occurs {len(spans)} times. Write "{wanted}#1" for its first '
            f'occurrence, "{wanted}#2" for its second, and so on.'
        )
    return spans[int(number or 1) - 1]


def covered(spans: Spans, tokens: list[Span]) -> list[int]:
    """Return the indices of tokens that share a character with any of the spans."""
    return [k for k, token in enumerate(tokens) if any(s < token[1] and token[0] < e for s, e in spans)]


def distance(first: Spans, other: Spans, tokens: list[Span]) -> int:
    """Return the minimum distance, in tokens, between two sets of spans; 0 if a set contains no token."""
    return min((abs(a - b) for a in covered(first, tokens) for b in covered(other, tokens)), default=0)
