"""Tasks of a worker process: divide a job, run a unit, summarise. Workers do not access the database.

Arguments and results are JSON types, so no model or class is pickled.
"""

import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import models, unit_progress
from ..config import code_version, settings
from ..errors import AtlasError, JobError
from ..store.rows import Row, plain
from ..studies.contract import Study, Unit, as_json, identity
from ..studies.lookup import find_study
from ..studies.preflight import check_paths
from ..studies.transport import decode, encode
from .records import DividedUnit

Outcome = dict[str, Any]
PARTIAL = "partial"  # field of the row that a unit returns
log = logging.getLogger("atlas.jobs")


def complete(study: Study[Any, Any], options: Mapping[str, Any]) -> Row:
    """Return the options of a study, including all defaults, as a JSON-serialisable dictionary. Raises AtlasError for
    unknown options."""
    return as_json(study.read(options))


def divide(name: str, options: Row) -> Outcome:
    """Divide a job into units of work. Returns {"options": options with defaults, "units": [{key, size,
    arguments}]}."""
    study = find_study(name)
    chosen = study.read(options)
    check_paths(study, chosen)
    for checkpoint in study.checkpoints(chosen):
        models.opening.locate(checkpoint)
    units = _as_rows(study.units(chosen))
    if not units:
        raise JobError(
            f"The options of the study {study.name} must select something to compute; nothing is selected. Choose less "
            "restrictive options."
        )
    return {"options": as_json(chosen), "units": units}


def _as_rows(units: Sequence[Unit]) -> list[Row]:
    return [{"key": unit.key, "size": int(unit.size), "arguments": plain(encode(unit.arguments))} for unit in units]


def more(name: str, options: Row, rows: list[Row]) -> Outcome:
    """Return the units for the next round of a job as {"units": [...]}. The list is empty after the last round. `rows`
    are the results of all finished units."""
    study = find_study(name)
    partials = [decode(study.partial, row[PARTIAL]) for row in rows]
    return {"units": _as_rows(study.more(study.read(options), partials))}


def progress_folder(name: str, options: Mapping[str, Any]) -> Path:
    """Return the folder in which local workers save the progress of running units."""
    return settings().runs / f"progress-{identity(name, options)[:24]}"


def run_unit(name: str, options: Row, unit: Row) -> Outcome:
    """Run one unit of a job, and return its partial result and provenance.

    The provenance includes notes on what was left out or replaced when checkpoints were opened.
    """
    study, divided = find_study(name), DividedUnit.of(unit)
    chosen = study.read(options)
    check_paths(study, chosen)  # checked again because other machines have other folders
    piece = Unit(divided.key, decode(study.arguments, divided.arguments), divided.size)
    with unit_progress.counting(progress_folder(name, options)) as count:
        done = study.run(chosen, piece)
    provenance = {name: value for name, value in done.provenance.as_row().items() if value is not None}
    provenance |= {"code_version": code_version()} | ({"notes": list(count.notes)} if count.notes else {})
    return {"rows": [{PARTIAL: encode(done.partial)}], "provenance": provenance}


def summarize(name: str, options: Row, rows: list[Row]) -> Outcome:
    """Combine the results of the finished units of a job into the result rows of the study, as {"rows": [...]}."""
    study = find_study(name)
    summary = study.summarize(study.read(options), [decode(study.partial, row[PARTIAL]) for row in rows])
    return {"rows": [plain(row) for row in summary]}


TASKS: dict[str, Callable[..., Outcome]] = {"divide": divide, "unit": run_unit, "more": more, "summarize": summarize}


def perform(task: str, code: str | None, *arguments: Any) -> Outcome:
    """Run a task in a worker process. Return its result or error message, with the seconds and the worker.

    `code` is the version of `core` in the requesting process, which is checked on other machines.
    """
    started = time.monotonic()
    try:
        if code not in (None, code_version()):
            raise JobError(
                f"Workers must run the same version of the code as the app ({code}); {socket.gethostname()} "
                f"runs {code_version()}. Update the code on that machine, and restart its worker."
            )
        outcome = TASKS[task](*arguments)
    except AtlasError as error:
        outcome = {"error": str(error)}
    except Exception as error:  # any exception of a study becomes the unit's error
        log.exception("%s of %s failed", task, arguments[0])
        outcome = {"error": " ".join(f"{type(error).__name__}: {error}".split())[:500]}
    return outcome | {"seconds": time.monotonic() - started, "worker": f"{socket.gethostname()}:{os.getpid()}"}


def merged(parts: list[Row]) -> Row:
    """Merge the provenance records of several units. Example IDs are joined, and differing texts are listed."""
    ids: dict[Any, None] = {}
    values: dict[str, list[Any]] = {}
    for part in parts:
        for name, value in part.items():
            if name == "row_ids":
                ids.update(dict.fromkeys(value or ()))
            elif value not in values.setdefault(name, []):
                values[name].append(value)
    whole = {name: _one_of(kept) for name, kept in values.items()}
    return whole | {"row_ids": list(ids)} if ids else whole


def _one_of(kept: list[Any]) -> Any:
    if len(kept) == 1:
        return kept[0]
    return ", ".join(map(str, kept)) if all(isinstance(item, str) for item in kept) else None


def prepare(parent: int) -> None:
    """Give a worker process low priority, and make it ignore Ctrl-C and end when its parent process ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(10)  # the app's pages have priority
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)  # no portable signal reports a parent's death
    sys.stderr.flush()
    os._exit(1)
