"""JSON columns of stored rows: their types, and rows that are left out because their JSON is invalid."""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Row = dict[str, Any]  # as in core.store.rows, which imports pyarrow: the page's frame needs this module at start

log = logging.getLogger("atlas")

# ---------------------------------------------------------------- types

Keys = Mapping[str, Any]  # types by key of an object; a key may be missing unless named in REQUIRED, others are ignored
RULES: Keys = MappingProxyType({
    "k": int, "lapse": float, "ahead": int, "order": str, "seed": int, "gold_rate": float, "repeat_rate": float,
    "pass_mark": float, "threshold": float, "people": list[str],
})  # fmt: skip
RECIPE: Keys = MappingProxyType({
    "checkpoints": list[str], "tasks": list[str], "layers": list[int], "count": int, "seed": int,
    "leave_out_uniform": bool, "gold": int, "exemplars": int, "known_from": str,
})  # fmt: skip
RANGES: Mapping[str, tuple[int, int]] = MappingProxyType({  # of numbers in RULES; new projects have narrower ones
    "k": (1, 1000), "lapse": (0, 10**8), "ahead": (0, 1000), "gold_rate": (0, 1), "repeat_rate": (0, 1),
    "pass_mark": (0, 1), "threshold": (0, 1),
})  # fmt: skip
CLASSIFIER_RECIPE: Keys = MappingProxyType({
    "kind": str, "epochs": int, "batch": int, "rate": float, "class_weights": bool, "falling": float,
    "size": int | None, "folds": int, "seed": int,
})  # fmt: skip
SCORES: Keys = MappingProxyType({
    "on": str, "macro_f1": float | None, "low": float | None, "high": float | None, "n": int | None,
    "newest": str | None, "rows": list[dict[str, Any]], "maps": list[dict[str, Any]],
    "confusions": list[list[list[int]]], "held_out": dict[str, Any] | None,
})  # fmt: skip
NUMBER: Keys = MappingProxyType({
    "name": str, "what": str, "value": float | None, "low": float | None, "high": float | None, "p": float | None,
    "n": int | None,
})  # fmt: skip
SKIPPED: Keys = MappingProxyType({"where": str, "why": str})
SENTENCE: Keys = MappingProxyType({"text": str, "frame": str | None, "lexical_unit": str | None, "elements": list[Row]})
REQUIRED = frozenset({"name", "what", "value"})

BODIES: Mapping[tuple[str, str], Any] = MappingProxyType({  # the type of each column, or the keys of its object
    ("run", "options"): Row, ("run", "row_ids"): list[Any], ("study_row", "body"): Row,
    ("job", "asked"): Row, ("job", "options"): Row, ("job_unit", "arguments"): Row, ("job_row", "body"): Row,
    ("job_outcome", "provenance"): Row,
    ("project", "recipe"): RECIPE, ("project", "rules"): RULES, ("project_event", "body"): list[str | int],
    ("classifier", "recipe"): CLASSIFIER_RECIPE, ("classifier", "classes"): list[str],
    ("classifier", "snapshot"): list[tuple[str, str, str | None]], ("classifier", "scores"): SCORES,
    ("finding", "numbers"): [NUMBER], ("finding", "pictures"): list[Row],
    ("frame_release", "skipped"): [SKIPPED], ("frame_annotation", "body"): SENTENCE,
    ("hypothesis_batch", "thought"): Row, ("hypothesis_batch", "judged"): Row,
    ("hypothesis_batch", "thought_rows"): list[list[str]], ("hypothesis_batch", "judged_rows"): list[list[str]],
    ("hypothesis_batch", "runs"): list[Row],
    ("hypothesis", "parameters"): list[tuple[str, str]], ("hypothesis_event", "criteria"): list[Row],
})  # fmt: skip


def is_number(value: Any) -> bool:
    """Return whether a parsed JSON value is a number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a valid JSON number")


def parsed(text: Any) -> Any:
    """Parse JSON text strictly. Raises ValueError for invalid JSON, and for NaN and Infinity."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (TypeError, RecursionError) as error:
        raise ValueError(str(error)) from error


def misfit(table: str, column: str, text: Any) -> str:
    """Return an error message if a JSON text is invalid for a table column, otherwise ""."""
    if text is None:
        return ""
    subject = f"{table}.{column}"
    try:
        value = parsed(text)
    except ValueError:
        return f"{subject} must be JSON; got {str(text)[:40]!r}"
    wanted = BODIES[table, column]
    kind = dict if wanted is Row or isinstance(wanted, Mapping) else list
    if not isinstance(value, kind):
        return f"{subject} must be a JSON {'object' if kind is dict else 'list'}; got {str(text)[:40]!r}"
    if wanted is Row or not value:
        return ""
    if wanted is RULES and isinstance(value, dict):
        for name, (least, most) in RANGES.items():
            if name in value and is_number(value[name]) and not least <= value[name] <= most:
                return f"{subject}.{name} must be from {least} to {most}; got {str(value[name])[:40]}"
    from pydantic import ValidationError  # imported here because it takes 0.1 s at start

    try:
        _adapter(table, column).validate_json(text, strict=True)
    except ValidationError as error:
        wrong = error.errors()[0]
        place = ".".join(map(str, (subject, *wrong["loc"])))
        return f"{place} cannot be {str(wrong['input'])[:40]!r} ({wrong['msg'].lower()})"
    return ""


@cache
def _adapter(table: str, column: str) -> "TypeAdapter[Any]":
    from pydantic import ConfigDict, TypeAdapter, create_model  # 0.1 s at start

    def made(kind: Any) -> Any:
        if isinstance(kind, list):
            return list[made(kind[0])]  # type: ignore[misc]
        if not isinstance(kind, Mapping):
            return kind
        fields: dict[str, Any] = {
            name: (hint, ... if kind is NUMBER and name in REQUIRED else None) for name, hint in kind.items()
        }
        return create_model(f"{table}_{column}", __config__=ConfigDict(allow_inf_nan=False), **fields)

    return TypeAdapter(made(BODIES[table, column]))


# ---------------------------------------------------------------- rows that are left out

_collected: ContextVar[list[str] | None] = ContextVar("left_out", default=None)


@contextmanager
def collecting() -> Iterator[list[str]]:
    """Return a context manager that collects the messages passed to `leave_out`, without duplicates."""
    texts: list[str] = []
    token = _collected.set(texts)
    try:
        yield texts
    finally:
        _collected.reset(token)


def leave_out(text: str) -> None:
    """Log a message about ignored invalid rows, and add it to the active `collecting` context."""
    texts = _collected.get()
    if texts is None or text not in texts:
        log.warning("%s", text)
    if texts is not None and text not in texts:
        texts.append(text)


def left_out() -> bool:
    """Return whether invalid rows have been ignored since the current `collecting` context was entered."""
    return bool(_collected.get())


def sound(table: str, name: str, row: Mapping[str, Any]) -> bool:
    """Return whether all JSON columns of a table row are valid. If not, log that the row was ignored; `name` describes
    the row."""
    for column, text in row.items():
        if (table, column) in BODIES and (why := misfit(table, column, text)):
            leave_out(f"Left out {name}: {why}. Delete it, or import it again from a sound export.")
            return False
    return True


def known_keys(row: Mapping[str, Any], keys: Keys | Sequence[str]) -> Row:
    """Return a copy of a stored dictionary with only the keys in `keys`."""
    return {name: value for name, value in row.items() if name in keys}
