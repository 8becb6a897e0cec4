"""Finds studies by name, and the definitions of their head scores by keys "study/name" or "study/name/feature"."""

import importlib
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from ..config import command_line
from ..errors import InputError, JobError
from ..scoring.registry import HeadScore
from ..study_names import current_name
from .contract import Study

FOLDER = Path(__file__).parent


def study_modules() -> dict[str, str]:
    """Return a dictionary from study names to the names of their Python modules. No module is imported."""
    files = [file for file in sorted(FOLDER.glob("*/*.py")) if re.search(r"^STUDY = ", file.read_text("utf-8"), re.M)]
    return {file.stem.replace("_", "-"): f"{__package__}.{file.parent.name}.{file.stem}" for file in files}


def module_of(name: str) -> str:
    """Return the name of the Python module that implements a study. Raises JobError for an invalid name."""
    if not re.fullmatch(r"\w+(-\w+)*|\w+(\.\w+)+", name):
        raise JobError(
            f"The name of a study may contain only letters, digits and dashes; got {name!r}. Choose a name from the "
            "list of studies."
        )
    if "." in name:
        return name
    stem = current_name(name).replace("-", "_")
    folder = _folders().get(stem)
    return f"{__package__}.{folder}.{stem}" if folder else f"{__package__}.{stem}"


@cache
def _folders() -> dict[str, str]:
    """Return the folder of every module, cached because tens of thousands of rows look up their study."""
    return {file.stem: file.parent.name for file in sorted(FOLDER.glob("*/*.py"), reverse=True)}


def find_study(name: str) -> Study[Any, Any]:
    """Import the study with the given name and return it. Raises JobError if no such study exists."""
    module = module_of(name)
    try:
        imported = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not (module + ".").startswith(error.name + "."):
            raise
        raise JobError(
            f"A study must be one of those that `{command_line('--help')}` lists; got {name!r}. Choose one of them."
        ) from error
    study = getattr(imported, "STUDY", None)
    if not isinstance(study, Study):
        raise JobError(
            f"The module of a study must export STUDY; {module} does not export it. Implement the interface in "
            "core/studies/contract.py."
        )
    return study


def section_of(study: str) -> str:
    """Return the section of the head page that shows the scores of a study, or "" if the study has no head scores."""
    try:
        return find_study(study).section
    except JobError:
        return ""


# ---------------------------------------------------------------- head scores


def find_score(key: str) -> HeadScore:
    """Return the definition of a head score by its key "study/name". Raises InputError if no study has this score."""
    if score := _score_of(key):
        return score
    raise InputError(
        f"A score must be one that a study computes, written as study/name; got {key!r}. Choose another score."
    )


def label_of(key: str) -> str:
    """Return the label of a head score. For an unknown score, the label is made from its key."""
    study, name, feature = _names(key)
    score = _score_of(key)
    label = score.label if score else f"{name} ({study})"
    return f"{label} · {feature}" if feature else label


def meaning_of(key: str) -> str:
    """Return the label, formula and source of a head score as text for a caption."""
    score = _score_of(key)
    return f"{label_of(key)}: {score.formula} ({score.source})" if score else label_of(key)


def in_order(keys: Iterable[str]) -> list[str]:
    """Sort the keys of head scores by study. Within a study, keys are in the order of declaration."""
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
