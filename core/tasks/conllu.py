"""Gold dependency trees in CoNLL-U format (Universal Dependencies), with the characters of every word.

The syntactic words of a multi-word token (don't = do + n't) share its characters if they spell it; otherwise each has
the whole token. Empty nodes are omitted. Heads are zero-based; a root is its own head.
"""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from .. import config
from ..errors import InputError
from ..reading import lines_of, read_text
from .features import TaggedWord

COLUMNS = 10
_NUMBER = re.compile(r"[0-9]{1,9}([-.][0-9]{1,9})?")  # ID of a word; 8-9 is a multi-word token, 8.1 an empty node


@dataclass(frozen=True)
class GoldSentence:
    """A sentence with its gold dependency tree.

    Attributes:
        words: syntactic words in order, with the tags and governors of the treebank.
        document: ID of its document, or "".
    """

    text: str
    words: tuple[TaggedWord, ...]
    document: str = ""


def read_conllu(file: Path, limit: int | None = None) -> list[GoldSentence]:
    """Read all sentences, or the first `limit` sentences, of a CoNLL-U file. Raises InputError, which names the invalid
    line."""
    try:
        lines = lines_of(read_text(file, given=True))
    except OSError as error:
        raise InputError(
            f"A treebank file must be a readable file; {file} cannot be read ({error.strerror or error}). Choose "
            "another file."
        ) from error
    sentences, document = [], ""
    for block in _blocks(lines):
        document = next(
            (text.removeprefix("# newdoc id = ") for _, text in block if text.startswith("# newdoc id = ")), document
        )
        if any(not text.startswith("#") for _, text in block):
            sentences.append(_sentence(block, document, file))
        if len(sentences) == limit:
            break
    if not sentences:
        raise InputError(f"A CoNLL-U file must have at least one sentence; {file.name} has none. Choose another file.")
    return sentences


def _blocks(lines: list[str]) -> Iterator[list[tuple[int, str]]]:
    block: list[tuple[int, str]] = []
    for number, line in enumerate([*lines, ""], start=1):
        if line.strip():
            block.append((number, line))
        elif block:
            yield block
            block = []


def _sentence(block: list[tuple[int, str]], document: str, file: Path) -> GoldSentence:
    rows = []
    for number, line in block:
        if line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) != COLUMNS:
            raise InputError(
                f"A CoNLL-U line must have {COLUMNS} columns separated by tabs; line {number} of {file.name} has "
                f"{len(fields)}. Correct the line."
            )
        if not _NUMBER.fullmatch(fields[0]):
            raise InputError(
                f"A CoNLL-U line must begin with a word ID, such as 3; line {number} of {file.name} begins with "
                f"{fields[0][:20]!r}. Correct the line."
            )
        if "." not in fields[0]:  # 8.1 is an empty node
            rows.append((number, fields))
    text = next((line.removeprefix("# text = ") for _, line in block if line.startswith("# text = ")), "")
    text = text if text.strip() else _joined(rows)  # some treebanks have an empty text comment
    # Characters of each syntactic word, searching from the end of the word before
    spans: list[tuple[int, int]] = []
    cursor, queue = 0, deque(rows)
    while queue:
        number, fields = queue.popleft()
        start = text.find(fields[1], cursor)
        if start < 0:
            raise InputError(
                f'The words of a sentence must occur in its text in order; "{fields[1]}" in line {number} of '
                f"{file.name} does not occur there. Correct the line."
            )
        cursor = start + len(fields[1])
        first, _, last = fields[0].partition("-")
        many = int(last) - int(first) + 1 if last else 0
        if last and not 1 <= many <= len(queue):
            raise InputError(
                "A multi-word token such as 8-9 must be a range of the words that follow it; line "
                f"{number} of {file.name} has {fields[0]}, followed by {len(queue)} words. Correct the line."
            )
        parts = [queue.popleft()[1][1] for _ in range(many)] if last else [fields[1]]
        spans += _divided(start, fields[1], parts)
    places = {fields[0]: k for k, (_, fields) in enumerate(r for r in rows if "-" not in r[1][0])}
    words = []
    for k, (number, fields) in enumerate(r for r in rows if "-" not in r[1][0]):
        head = k if fields[6] == "0" else places.get(fields[6])
        if head is None:
            raise InputError(
                f"The head of a word must be a word of its sentence, or 0; line {number} of {file.name} has the "
                f"head {fields[6]}. Correct the line."
            )
        words.append(TaggedWord(fields[1], *spans[k], fields[4], fields[3], fields[7], head))
    return GoldSentence(text, tuple(words), document)


def _joined(rows: list[tuple[int, list[str]]]) -> str:
    """Return the text of a sentence without a `# text` line."""
    parts, inside = [], 0
    for _, fields in rows:
        first, _, last = fields[0].partition("-")
        if last:
            inside = int(last)
        elif int(first) <= inside:
            continue
        parts.append(fields[1] + ("" if "SpaceAfter=No" in fields[9] else " "))
    return "".join(parts).rstrip()


def _divided(start: int, surface: str, parts: list[str]) -> list[tuple[int, int]]:
    if "".join(parts) != surface:
        return [(start, start + len(surface))] * len(parts)
    ends = [start + length for length in accumulate(map(len, parts))]
    return list(zip([start, *ends[:-1]], ends, strict=True))


# ---------------------------------------------------------------- splits of a treebank


BUNDLED = config.DATA / "treebank"
_TAGS = "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X"
_RELATIONS = (
    "acl advcl advmod amod appos aux case cc ccomp clf compound conj cop csubj dep det discourse dislocated expl fixed "
    "flat goeswith iobj list mark nmod nsubj nummod obj obl orphan parataxis punct reparandum root vocative xcomp"
)
TAGS = frozenset(_TAGS.split())
RELATIONS = frozenset(_RELATIONS.split())
ONE_WORD, ROOTS, NO_TREE = "one word", "not one root", "heads in a circle"
NAMED = 3  # number of example sentences for each reason


@dataclass(frozen=True)
class LeftOut:
    """A group of sentences in a treebank that are left out for the same reason."""

    part: str
    reason: str
    n: int
    names: tuple[str, ...]


@dataclass(frozen=True)
class TreebankPart:
    """The usable sentences in one split of a treebank. They have at least two words and a single dependency tree."""

    part: str
    sentences: tuple[GoldSentence, ...]
    left_out: tuple[LeftOut, ...]


def file_of(folder: str | Path | None, part: str) -> Path:
    """Return the CoNLL-U file with one split of a treebank. Raises InputError unless there is exactly one such file."""
    files = sorted(config.inside(folder).glob(f"*-{part}.conllu")) if folder else []
    if len(files) != 1:
        raise InputError(
            f"A treebank folder must have exactly one file *-{part}.conllu; {folder or 'no folder'} has {len(files)} "
            "such files. Choose a folder of Universal Dependencies."
        )
    return config.inside(files[0])  # a link in the folder may lead out of it


def read_part(folder: str | None, part: str, limit: int | None = None) -> TreebankPart:
    """Read the usable sentences in one split of a treebank. If `folder` is None, the bundled treebank is read.

    Raises InputError if labels are not those of Universal Dependencies, or no sentence is usable.
    """
    file = file_of(folder or BUNDLED, part)
    every = read_conllu(file, limit)
    check_labels(every, file.name)
    kept = []
    out: dict[str, list[str]] = {}
    for number, sentence in enumerate(every, start=1):
        reason = unusable(sentence.words)
        if reason is None:
            kept.append(sentence)
        else:
            out.setdefault(reason, []).append(f'{number} "{sentence.text[:30]}"')
    if not kept:
        raise InputError(
            f"A probe needs sentences of at least two words that form a tree with one root; {file.name} has none among "
            f"{len(every)} sentences. Choose another treebank, or raise the limit on the number of sentences."
        )
    left = tuple(LeftOut(part, reason, len(names), tuple(names[:NAMED])) for reason, names in sorted(out.items()))
    return TreebankPart(part, tuple(kept), left)


def check_labels(sentences: Sequence[GoldSentence], name: str) -> None:
    """Raise InputError if a part-of-speech tag or relation is not defined in Universal Dependencies."""
    for word in (word for sentence in sentences for word in sentence.words):
        if word.pos not in TAGS or plain_relation(word.dep) not in RELATIONS:
            raise InputError(
                f"A probe needs the tags and relations of Universal Dependencies; in {name}, the word "
                f'"{word.text[:30]}" has the tag {word.pos[:20]!r} and the relation {word.dep[:20]!r}. Convert the '
                "treebank to Universal Dependencies."
            )


def unusable(words: Sequence[TaggedWord]) -> str | None:
    """Return the reason why a dependency tree cannot be used; None if it can be used."""
    if len(words) < 2:
        return ONE_WORD
    roots = [k for k, word in enumerate(words) if word.head == k]
    if len(roots) != 1:
        return ROOTS
    leads_up = {roots[0]}  # words from which the heads lead to the root
    for k in range(len(words)):
        path, at = set(), k
        while at not in leads_up:
            if at in path:
                return NO_TREE
            path.add(at)
            at = words[at].head
        leads_up |= path
    return None


def plain_relation(label: str) -> str:
    """Return a dependency relation without its subtype, such as "nsubj" for "nsubj:pass"."""
    return label.partition(":")[0].lower()
