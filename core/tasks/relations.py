"""Syntactic relations between words (Kovaleva et al. 2019, section 4.5; Clark et al. 2019).

A link is (dependent, governor) as word indices. Labels of Universal Dependencies and ClearNLP are both recognised.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache

from ..errors import InputError
from .features import NOUNS, PRONOUNS, VERBS, TaggedWord, is_dependency

Link = tuple[int, int]


@dataclass(frozen=True)
class Relation:
    """A syntactic relation between words, such as an object and its verb.

    Attributes:
        source, target: names of the two ends of a link, which leads from source to target.
        across: whether the ends are in different sentences of a pair.
    """

    name: str
    label: str
    source: str
    target: str
    meaning: str
    across: bool = False


SAME_WORD = "same-word"
_RECORDS = (
    Relation("verb-subject", "verb and subject", "subject", "verb", "nsubj links whose governor is a verb"),
    Relation("verb-object", "verb and object", "object", "verb", "obj / dobj links whose governor is a verb"),
    Relation("determiner-noun", "determiner and noun", "determiner", "noun", "det links whose governor is a noun"),
    Relation("noun-pronoun", "pronoun and noun before it", "pronoun", "noun",
             "each pronoun and the nearest noun before it: a heuristic, not coreference"),
    Relation(SAME_WORD, "same word in the other sentence", "first sentence", "second sentence",
             "words with letters or digits that both sentences of a pair contain, ignoring case", across=True),
)  # fmt: skip
RELATIONS = {record.name: record for record in _RECORDS}
_BY_DEPENDENCY = {
    "verb-subject": (("nsubj", "nsubjpass"), VERBS),
    "verb-object": (("obj", "dobj"), VERBS),
    "determiner-noun": (("det",), NOUNS),
}


def relation_of(name: str) -> Relation:
    """Return the relation with a name such as "verb-object" or "dep:amod". Raises InputError for unknown names."""
    if name in RELATIONS:
        return RELATIONS[name]
    kind, _, label = name.partition(":")
    if kind == "dep" and label.strip():
        return Relation(name, f"{label} and its governor", label, "governor", f"dependents labelled {label}")
    raise InputError(
        f"A relation must be one of {', '.join(RELATIONS)}, or a dependency such as dep:amod; got "
        f'"{name[:60]}". Choose one of them.'
    )


def links(relation: Relation, words: Sequence[TaggedWord]) -> list[Link]:
    """Return all word pairs in a sentence that are linked by a relation. The result is empty for relations between two
    sentences."""
    if relation.across:
        return []
    if relation.name == "noun-pronoun":
        pronouns, last = [], None
        for k, word in enumerate(words):
            if word.tag in PRONOUNS and last is not None:
                pronouns.append((k, last))
            if word.tag in NOUNS:
                last = k
        return pronouns
    if relation.name in _BY_DEPENDENCY:
        labels, governors = _BY_DEPENDENCY[relation.name]
        linked = [(k, word.head) for k, word in enumerate(words) if _is_any(word.dep, labels)]
        return [(k, head) for k, head in linked if k != head and words[head].tag in governors]
    labels = (relation.name.partition(":")[2],)
    return [(k, word.head) for k, word in enumerate(words) if word.head != k and _is_any(word.dep, labels)]


@cache
def _is_any(dep: str, labels: Collection[str]) -> bool:
    return any(is_dependency(dep, label) for label in labels)


def links_across(first: Sequence[TaggedWord], second: Sequence[TaggedWord]) -> list[Link]:
    """Return all pairs of equal words in two sentences. Case is ignored, and words without a letter or digit are left
    out."""
    places: dict[str, list[int]] = {}
    for k, word in enumerate(second):
        places.setdefault(word.text.casefold(), []).append(k)
    return [
        (k, other)
        for k, word in enumerate(first)
        if any(character.isalnum() for character in word.text)
        for other in places.get(word.text.casefold(), ())
    ]
