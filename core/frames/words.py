"""Words of a text as FrameNet's filter counts them, and where a word or phrase stands in it."""

import re

from core.errors import InputError
from core.frames.records import Span, Spans


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
    """Where a phrase stands in a text as whole words."""
    before = r"(?<!\w)" if phrase[:1].isalnum() else ""
    after = r"(?!\w)" if phrase[-1:].isalnum() else ""
    return [match.span() for match in re.finditer(before + re.escape(phrase) + after, text)] if phrase else []


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
