"""Tagged texts, and linguistic features of words: those of the papers, or any tag, part of speech or dependency label.

Words have character offsets, tags and governors. They are matched to tokens by offsets, never by spelling. Tagging is
done by `core.studies.tagging`.

Labels of Universal Dependencies (obj, nsubj:pass) and ClearNLP (dobj, nsubjpass) are both recognised. Kovaleva et al.
2019 (section 4.4) use nouns, verbs, pronouns, subjects, objects and negation; Clark et al. 2019 punctuation.
"""

import re
from dataclasses import dataclass
from functools import cache

from ..errors import InputError

Span = tuple[int, int]


@dataclass(frozen=True)
class TaggedWord:
    """A word with part-of-speech tags and a dependency label. `head` is the index of its governor (itself for a
    root)."""

    text: str
    start: int
    end: int
    tag: str
    pos: str
    dep: str
    head: int


@dataclass(frozen=True)
class TaggedSentence:
    """A text and its words in order, each with part-of-speech tags and a dependency label."""

    text: str
    words: tuple[TaggedWord, ...]

    @property
    def spans(self) -> list[tuple[int, int]]:
        return [(word.start, word.end) for word in self.words]


NOUNS = frozenset({"NN", "NNP", "NNPS", "NNS"})
PRONOUNS = frozenset({"PRP", "PRP$"})
VERBS = frozenset({"VB", "VBD", "VBG", "VBN", "VBP", "VBZ"})
PUNCTUATION = frozenset({".", ",", ":", "``", "''", "-LRB-", "-RRB-", "HYPH", "NFP"})
SUBJECTS = frozenset({"nsubj", "nsubjpass", "csubj", "csubjpass", "agent", "expl", "obl:agent"})
OBJECTS = frozenset({"dobj", "obj", "iobj", "dative", "attr", "oprd"})
NEGATIONS = (
    "neither", "nor", "not", "never", "none", "don't", "won't", "didn't", "hadn't", "haven't", "can't", "isn't",
    "wasn't", "shouldn't", "couldn't", "nothing", "nowhere",
)  # fmt: skip
_NEGATION = re.compile(
    r"(?<!\w)(?:" + "|".join(re.escape(word).replace("n't", "\\s?n['’]t") for word in NEGATIONS) + r")(?!\w)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Feature:
    """A property of tokens, such as being part of a noun or being [CLS]. `special`: given by position, not by words."""

    name: str
    label: str
    meaning: str
    special: bool = False


_RECORDS = (
    Feature("noun", "nouns", "Penn tags NN, NNS, NNP, NNPS"),
    Feature("verb", "verbs", "Penn tags VB, VBD, VBG, VBN, VBP, VBZ"),
    Feature("pronoun", "pronouns", "Penn tags PRP, PRP$"),
    Feature("subject", "subjects", "dependents labelled nsubj or csubj (active or passive), expl or agent"),
    Feature("object", "objects", "dependents labelled obj / dobj, iobj / dative, attr or oprd"),
    Feature("negation", "negation", "the 17 negation words of Kovaleva et al., as whole words of the text"),
    Feature("punctuation", "punctuation", "Penn's punctuation tags"),
    Feature("start", "[CLS] / start", "the special token at the start: [CLS], or the start token", special=True),
    Feature(
        "separator", "separators", "all [SEP] tokens, or the end-of-text token between two sentences", special=True
    ),
    Feature("first", "first token", "the first token of the text", special=True),
    Feature("last", "last token", "the last token of the first sentence", special=True),
)
FEATURES = {record.name: record for record in _RECORDS}
_KINDS = {"tag": "the Penn tag", "pos": "the universal part of speech", "dep": "the dependency label"}


def feature_of(name: str) -> Feature:
    """Return the token feature with the given name, such as "noun", "tag:JJ", "pos:ADJ" or "dep:amod". Raises
    InputError for unknown names."""
    if name in FEATURES:
        return FEATURES[name]
    kind, _, value = name.partition(":")
    if kind in _KINDS and value.strip():
        return Feature(name, f"{kind} {value}", f"words with {_KINDS[kind]} {value}")
    raise InputError(
        f"A feature must be one of {', '.join(FEATURES)}, or be written like tag:JJ, pos:ADJ or dep:amod; got "
        f'"{name[:60]}". Choose one of them.'
    )


def feature_spans(feature: Feature, sentence: TaggedSentence) -> list[Span]:
    """Return the character spans of all words with a feature. Return [] for a feature of special tokens."""
    if feature.name == "negation":
        return [match.span() for match in _NEGATION.finditer(sentence.text)]
    name = feature.name
    return [(word.start, word.end) for word in sentence.words if _carries(name, word.tag, word.pos, word.dep)]


def is_of_words(feature: Feature) -> bool:
    """Return whether a feature is defined by the tag or dependency label of a word (not special, not negation)."""
    return not feature.special and feature.name != "negation"


def is_role(feature: Feature) -> bool:
    """Return whether a feature is a syntactic function, such as subject, rather than a word class, such as noun."""
    return feature.name in _DEPENDENCIES or feature.name.startswith("dep:")


def carries(feature: Feature, word: TaggedWord) -> bool:
    """Return whether a word has a feature, such as being a noun."""
    return _carries(feature.name, word.tag, word.pos, word.dep)


@cache
def _carries(name: str, tag: str, pos: str, dep: str) -> bool:
    if name in _TAGS:
        return tag in _TAGS[name]
    if name in _DEPENDENCIES:
        return dep in _DEPENDENCIES[name] or dep.partition(":")[0] in _DEPENDENCIES[name]
    kind, _, value = name.partition(":")
    if kind == "dep":
        return is_dependency(dep, value)
    return bool(value) and {"tag": tag, "pos": pos}.get(kind) == value


@cache
def is_dependency(label: str, wanted: str) -> bool:
    """Return whether a dependency label equals `wanted` or is a subtype of it, such as nsubj:pass of nsubj."""
    label, wanted = label.lower(), wanted.lower()
    return label == wanted or label.partition(":")[0] == wanted


_TAGS = {"noun": NOUNS, "verb": VERBS, "pronoun": PRONOUNS, "punctuation": PUNCTUATION}
_DEPENDENCIES = {"subject": SUBJECTS, "object": OBJECTS}
