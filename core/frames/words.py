"""Words of a text as FrameNet's filter counts them, and where a word or phrase stands in it."""

import re
import unicodedata

from ..errors import InputError
from .records import Span, Spans

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
