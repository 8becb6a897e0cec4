"""The gold trees of a treebank's part: those that a probe can use, and how many are left out and why.

A folder of Universal Dependencies holds *-train.conllu, *-dev.conllu and *-test.conllu. Without a folder it is the
small treebank that the project ships: its own sentences, parsed by machine (data/treebank/README.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import config
from ..errors import InputError
from .conllu import GoldSentence, read_conllu
from .language import TaggedWord

BUNDLED = config.DATA / "treebank"
PARTS = ("train", "dev", "test")
_TAGS = "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X"
_RELATIONS = (
    "acl advcl advmod amod appos aux case cc ccomp clf compound conj cop csubj dep det discourse dislocated expl fixed "
    "flat goeswith iobj list mark nmod nsubj nummod obj obl orphan parataxis punct reparandum root vocative xcomp"
)
TAGS = frozenset(_TAGS.split())
RELATIONS = frozenset(_RELATIONS.split())
ONE_WORD, ROOTS, NO_TREE = "one word", "not one root", "heads in a circle"
NAMED = 3  # sentences of each reason that are named


@dataclass(frozen=True)
class LeftOut:
    """Sentences of a part that cannot be used, for one reason."""

    part: str
    reason: str
    n: int
    names: tuple[str, ...]


@dataclass(frozen=True)
class TreebankPart:
    """The sentences of one part that have one tree of at least two words, in order."""

    part: str
    sentences: tuple[GoldSentence, ...]
    left_out: tuple[LeftOut, ...]


def file_of(folder: str | Path | None, part: str) -> Path:
    """The CoNLL-U file of a part. Raises InputError when there is not exactly one."""
    files = sorted(config.inside(folder).glob(f"*-{part}.conllu")) if folder else []
    if len(files) != 1:
        raise InputError(
            f"Gold trees are read from a treebank's folder with one *-{part}.conllu; {folder or 'no folder'} has "
            f"{len(files)}: give a Universal Dependencies folder."
        )
    return config.inside(files[0])  # a link in the folder may lead out of it


def read_part(folder: str | None, part: str, limit: int | None = None) -> TreebankPart:
    """The first `limit` sentences of a part (None: all) that can be used; folder None: the bundled treebank.

    Raises InputError for labels that are not Universal Dependencies', or a part without any usable sentence.
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
            f"A probe needs sentences of at least two words with one root; {file.name} has none among {len(every)}: "
            "give another treebank or raise the limit."
        )
    left = tuple(LeftOut(part, reason, len(names), tuple(names[:NAMED])) for reason, names in sorted(out.items()))
    return TreebankPart(part, tuple(kept), left)


def check_labels(sentences: Sequence[GoldSentence], name: str) -> None:
    """Raises InputError naming a tag or relation that is not one of Universal Dependencies."""
    for word in (word for sentence in sentences for word in sentence.words):
        if word.pos not in TAGS or plain_relation(word.dep) not in RELATIONS:
            raise InputError(
                f"A probe reads the tags and relations of Universal Dependencies (NOUN, nsubj ...); {name} has "
                f'"{word.text[:30]}" with {word.pos[:20]!r} and {word.dep[:20]!r}: convert it to these.'
            )


def unusable(words: Sequence[TaggedWord]) -> str | None:
    """Why a sentence's tree cannot be used, or None."""
    if len(words) < 2:
        return ONE_WORD
    roots = [k for k, word in enumerate(words) if word.head == k]
    if len(roots) != 1:
        return ROOTS
    leads_up = {roots[0]}  # words whose heads are known to end at the root
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
    """A relation without its subtype: nsubj of nsubj:pass."""
    return label.partition(":")[0].lower()
