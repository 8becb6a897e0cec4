"""A study small enough to watch: squares, with units that can be slow, fail, kill their worker or hang."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic.dataclasses import dataclass as options_of

from core.errors import InputError
from core.store.database import Database
from core.store.rows import Row
from core.store.runs import Provenance
from core.studies.contract import Done, Finished, Flag, Study, Unit


@options_of(frozen=True)
class Options:
    count: Annotated[int, Flag("squares to make")] = 4
    seconds: float = 0.0
    fail: tuple[int, ...] = ()
    die: tuple[int, ...] = ()
    folder: str = ""
    seed: Annotated[int, Flag("of nothing")] = 3
    task: str = "squares"
    padding: str = ""


@dataclass(frozen=True)
class Number:
    k: int


@dataclass(frozen=True)
class Squares:
    k: np.ndarray
    square: np.ndarray
    third: np.ndarray


@lru_cache(maxsize=1)
def opened(folder: str) -> int:
    """Stands for a checkpoint: opened once a worker, leaving a mark each time."""
    if folder:
        (Path(folder) / f"opened-{os.getpid()}-{time.monotonic_ns()}").touch()
    return 7


def once(options: Options, what: str, k: int) -> bool:
    """True the first time, ever."""
    mark = Path(options.folder) / f"{what}-{k}"
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


class Tiny(Study[Options, Squares]):
    """Squares of numbers."""

    name, options, partial, arguments = "tiny", Options, Squares, Number

    def units(self, options: Options) -> list[Unit]:
        if options.count > 1000:
            raise InputError(f"At most 1000 squares can be made, but {options.count} were asked for; ask for fewer.")
        return [Unit(f"square-{k}", Number(k), size=10) for k in range(options.count)]

    def run(self, options: Options, unit: Unit) -> Done[Squares]:
        k = unit.arguments.k
        opened(options.folder)
        if options.folder:
            with (Path(options.folder) / f"ran-{k}").open("a") as stream:
                stream.write(f"{os.getpid()}\n")
        time.sleep(options.seconds)  # the work
        if k in options.fail and once(options, "fail", k):
            raise ValueError(f"unit {k} is\nunlucky")
        if k in options.die and once(options, "die", k):
            os._exit(9)
        squares = Squares(np.array([k]), np.array([k * k]), np.array([k / 3]))
        return Done(squares, Provenance(weights_hash="w7", row_ids=(f"r{k}",)))

    def merge(self, options: Options, partials: Sequence[Squares]) -> Squares:
        return Squares(*(np.concatenate([getattr(one, name) for one in partials]) for name in ("k", "square", "third")))

    def rows(self, options: Options, merged: Squares) -> list[Row]:
        return [{"n": len(merged.k), "total": merged.square.sum(), "thirds": sum(merged.third)}]

    def keep(self, db: Database, run: Finished) -> None:
        with db.write() as cursor:
            cursor.execute("CREATE TABLE IF NOT EXISTS kept (run TEXT, numbers INTEGER)")
            cursor.execute("INSERT INTO kept VALUES (?, ?)", [run.run, len(list(run.partials()))])


STUDY = Tiny()
