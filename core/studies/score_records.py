"""Definitions of head scores, found by their key "study/name" or "study/name/feature"."""

from collections.abc import Iterable

from ..errors import InputError, JobError
from ..scoring.registry import HeadScore
from .lookup import find_study


def find_score(key: str) -> HeadScore:
    """Return the definition of a head score by its key "study/name". Raises InputError if no study has this score."""
    if score := _score_of(key):
        return score
    raise InputError(f"A score must be written study/name; got {key!r}, which no study computes. Choose another score.")


def label_of(key: str) -> str:
    """Return the label of a head score. For an unknown score, the label is made from the names in its key."""
    study, name, feature = _names(key)
    score = _score_of(key)
    label = score.label if score else f"{name} ({study})"
    return f"{label} · {feature}" if feature else label


def meaning_of(key: str) -> str:
    """Return the label, formula and source of a head score as text for a caption."""
    score = _score_of(key)
    return f"{label_of(key)}: {score.formula} ({score.source})" if score else label_of(key)


def in_order(keys: Iterable[str]) -> list[str]:
    """Sort the keys of head scores by study, and within a study in the order that the study declares."""
    return sorted(keys, key=lambda key: (*_place(*_names(key)[:2]), key))


def _score_of(key: str) -> HeadScore | None:
    study, name, _ = _names(key)
    return next((score for score in _scores(study) if score.name == name), None)


def _place(study: str, name: str) -> tuple[int, str, int]:
    names = [score.name for score in _scores(study)]
    return (find_study(study).said_at, study, names.index(name)) if name in names else (99, study, 0)


def _names(key: str) -> tuple[str, str, str]:
    study, name, feature, *_ = (*key.split("/", 2), "", "")
    return study, name, feature


def _scores(study: str) -> tuple[HeadScore, ...]:
    try:
        return find_study(study).head_scores
    except JobError:  # stored by an earlier version, or by a person's own study
        return ()
