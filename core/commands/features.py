"""`python -m core study features | relations | statistics | effective | dependencies | roles | norms ... CHECKPOINT`

What heads attend to, on task rows or on sentences given with --text; a table shows the heads that stand out, --json,
--csv and --latex print every row.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from core.commands.output import tell
from core.commands.study_commands import Ran, command
from core.errors import InputError
from core.scoring.definitions import DEFINITIONS
from core.store.rows import Row
from core.studies.attention import dependencies as trees
from core.studies.attention import effective as effective_attention
from core.studies.attention import features as feature_attention
from core.studies.attention import norms as norm_attention
from core.studies.attention import redundancy as alike
from core.studies.attention import relations as relation_attention
from core.studies.attention import roles as head_roles
from core.studies.attention import statistics as head_statistics
from core.studies.attention.records import Score
from core.studies.contract import Flag

BEST = 3  # rows of each feature that a table shows
SHOWN = (
    "checkpoint", "task", "statistic", "feature", "head", "value", "low", "high", "n", "baseline", "q", "distance",
    "dev", "kind", "has", "length_from", "length_to", "mean",
)  # fmt: skip


@dataclass(frozen=True)
class Only:
    """What only the command of features takes."""

    definition: Annotated[
        tuple[str, ...], Flag(f"of attention to a feature: {', '.join(DEFINITIONS)}; default: all")
    ] = ()


def _check_definitions(_: Any, own_options: Only) -> None:
    for name in own_options.definition:
        if name not in DEFINITIONS:
            raise InputError(f'A definition is one of {", ".join(DEFINITIONS)}; "{name[:60]}" is not: choose one.')


def _shown(by: str) -> Callable[[Ran], None]:
    """Print every row, or in a table those that stand out by this column."""

    def show(ran: Ran) -> None:
        only = getattr(ran.own, "definition", ())
        rows = [row for row in ran.rows if not only or row.get("statistic") in only]
        if ran.form != "table":
            ran.show(rows)
            return
        ran.show(outstanding(rows, by))
        for note in dict.fromkeys(_note(score) for score in Score.among(rows) if score.note):
            tell(note)

    return show


features = command(feature_attention.STUDY, show=_shown("effect"), own=Only, ready=_check_definitions)
relations = command(relation_attention.STUDY, show=_shown("effect"))
statistics = command(head_statistics.STUDY, show=_shown("value"))
effective = command(effective_attention.STUDY, show=_shown("value"))
dependencies = command(trees.STUDY, show=_shown("value"))
roles = command(head_roles.STUDY, show=_shown("value"))
norms = command(norm_attention.STUDY, show=_shown("value"))
redundancy = command(alike.STUDY)


# ---------------------------------------------------------------- behind them


def _note(score: Score) -> str:
    return f"{score.feature or score.statistic}: {score.note}"


def outstanding(rows: Sequence[Row], by: str) -> list[Row]:
    """The rows of each checkpoint, task, statistic and feature that have most of `by`, heads by name.

    Differences of two checkpoints have no effect of their own and stand out by their size; every length stays.
    """
    groups: dict[tuple[Any, ...], list[tuple[float, Row]]] = {}
    for row in rows:
        score = Score.of(row)
        size = abs(score.value or 0.0) if score.checkpoint == "difference" else row.get(by, row.get("mean"))
        if size is not None and row.get("chosen", True):
            key = tuple(row.get(name) for name in ("checkpoint", "task", "statistic", "feature", "length_from"))
            groups.setdefault(key, []).append((size, row))
    best = [sorted(sized, key=lambda pair: -pair[0])[:BEST] for sized in groups.values()]
    return [_named(row) for sized in best for _, row in sized]


def _named(row: Row) -> Row:
    score = Score.of(row)
    name = None if score.layer is None else score.name
    return {column: (row | {"head": name}).get(column) for column in SHOWN if column in row or column == "head"}
