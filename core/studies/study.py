"""What a study is: options that fit in JSON, units of work, rows, and a summary of the rows.

A study module exports `STUDY = Study(...)`. `units` splits the work into pieces that can be run anywhere and
in any order, `run` does one piece in a worker (it opens its own checkpoint and never touches the store) and
returns rows that fit in JSON; `summarize` turns the rows of all units into the rows a person reads. The same
units in the same order give the same summary, whether they ran here, in processes or on a cluster.

A unit says where its rows come from with one more row, `{"provenance": {"weights_hash": ..., "row_ids": [...],
"device": ...}}` (names: the fields of `core.store.runs.Provenance`); `summarize` never sees it. The options
checkpoint(s), task(s), split, seed, dtype and operator are provenance already.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
Options = dict[str, Any]


@dataclass(frozen=True)
class Unit:
    """One piece of a study. key: unique within the job, stable between runs. size: tokens, for the time left."""

    key: str
    arguments: Options = field(default_factory=dict)
    size: int = 1


@dataclass(frozen=True)
class Study:
    """An experiment. name: as typed in the terminal. defaults: every option with its default."""

    name: str
    defaults: Options
    units: Callable[[Options], list[Unit]]
    run: Callable[[Options, Unit], list[Row]]
    summarize: Callable[[Options, list[Row]], list[Row]]
