"""Names and meanings of head statistics. Does not import torch."""

from .registry import FEATURE_SCORES, MAP_SCORES

DEFINITIONS = {score.name: score.formula for score in FEATURE_SCORES}
DIRECTIONS = ("forward", "backward")
QUANTITIES = ("weight", "excess", "accuracy", "contrast")
STATISTICS = {score.name: score.formula for score in MAP_SCORES}
TYPES = {
    "start": "[CLS], or the start token",
    "separator": "separators",
    "punctuation": "full stops and commas, as Clark et al. count them",
    "other": "all other tokens",
}
BUDGET_CATEGORIES = {
    "start": "the start token",
    "separator": "separators",
    "itself": "the query token itself",
    "same word": "other pieces of the same word",
    "previous": "the previous token",
    "next": "the next token",
    "repeated": "the same word elsewhere",
    "governor": "the syntactic head of the query's word",
    "dependent": "a syntactic dependent of the query's word",
    "punctuation": "punctuation",
    "same sentence": "other words of the same sentence",
    "other sentence": "words of the other sentence",
    "rest": "anything else",
}
BUDGET_GROUPS = {
    "the start token": ("start",),
    "separators": ("separator",),
    "the query's own word": ("itself", "same word"),
    "the previous token": ("previous",),
    "the next token": ("next",),
    "the same word elsewhere": ("repeated",),
    "syntactic heads and dependents": ("governor", "dependent"),
    "all other tokens": ("punctuation", "same sentence", "other sentence", "rest"),
}
QUERY_CLASSES = {  # classes of query words, with the universal parts of speech of each
    "nouns": ("NOUN", "PROPN"),
    "verbs": ("VERB", "AUX"),
    "adjectives and adverbs": ("ADJ", "ADV"),
    "pronouns": ("PRON",),
    "function words": ("ADP", "CCONJ", "DET", "PART", "SCONJ"),
    "punctuation": ("PUNCT", "SYM"),
    "other words": ("INTJ", "NUM", "SPACE", "X", ""),
}
GROUP_OF = {category: group for group, categories in BUDGET_GROUPS.items() for category in categories}
BOUNDS = {"previous": 0.5, "next": 0.5, "first": 0.6, "separator": 0.6}  # mean weight above which a head has a kind
CLASS_SHARE, MAJORITY = "class ", 0.5  # scores "class NAME": the share of a head's maps of a pattern class
HEAD_KINDS = ("previous", "next", "separator", "first", "broad", "other")


def bound_of(score: str) -> float | None:
    """Return the score above which a head is assigned to a role or pattern class; None if it has no threshold."""
    return BOUNDS.get(score, MAJORITY if score.startswith(CLASS_SHARE) else None)


def kind_of(row: dict[str, float | None]) -> str:
    """Return the type of a head, based on its mean statistics (Clark et al. 2019). For example, "previous" means that
    it attends mostly to the previous token, and "broad" means nearly uniform attention."""

    def above(name: str, bound: float) -> bool:
        value = row.get(name)
        return value is not None and value > bound

    kind = "broad" if above("normalised entropy", 0.85) else "other"
    for name, bound in BOUNDS.items():
        kind = name if above(name, bound) else kind
    return kind


def drift(means: list[float]) -> float:
    """Return the mean relative depth of a feature, from 0 (first layer) to 1 (last layer). Each layer is weighted by
    its mean value of the feature. NaN if all these means are 0."""
    total = sum(means)
    if not total or len(means) < 2:
        return float("nan")
    return sum(mean * layer / (len(means) - 1) for layer, mean in enumerate(means)) / total
