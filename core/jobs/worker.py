"""What a worker process does: find the study by name, divide it, run one unit, summarise. Nothing here stores.

Everything goes in and comes out as JSON's own types, so no model and no class is ever pickled.
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
PARTIAL = "partial"  # the one field of the row that a unit leaves
log = logging.getLogger("atlas.jobs")


def complete(study: Study[Any, Any], options: Mapping[str, Any]) -> Row:
    """`options` over the study's defaults, as JSON has them. Raises AtlasError naming one that it does not have."""
    return as_json(study.read(options))


def divide(name: str, options: Row) -> Outcome:
    """The study's options completed and its units: {"options", "units": [{key, size, arguments}]}."""
    study = find_study(name)
    chosen = study.read(options)
    check_paths(study, chosen)
    _find_checkpoints(study, chosen)
    units = _as_rows(study.units(chosen))
    if not units:
        raise JobError(
            f"The study {study.name} must have something to do, but these options leave nothing; widen them."
        )
    return {"options": as_json(chosen), "units": units}


def _find_checkpoints(study: Study[Any, Any], chosen: Any) -> None:
    """What cannot be found is said before the work is divided, not by each of its units. Raises CheckpointError."""
    names = study.checkpoints(chosen)
    if names:
        for name in names:
            models.opening.locate(name)


def _as_rows(units: Sequence[Unit]) -> list[Row]:
    return [{"key": unit.key, "size": int(unit.size), "arguments": plain(encode(unit.arguments))} for unit in units]


def more(name: str, options: Row, rows: list[Row]) -> Outcome:
    """The units of the next round, from the partial results of all before: {"units"}; none when there is none."""
    study = find_study(name)
    partials = [decode(study.partial, row[PARTIAL]) for row in rows]
    return {"units": _as_rows(study.more(study.read(options), partials))}


def progress_folder(name: str, options: Mapping[str, Any]) -> Path:
    """Where workers on this machine say how far they are with the units of a job of these options."""
    return settings().runs / f"progress-{identity(name, options)[:24]}"


def run_unit(name: str, options: Row, unit: Row) -> Outcome:
    """One unit's partial result as a row: {"rows": [{"partial"}], "provenance"}.

    The code's version goes with each unit, so a job that was resumed after an update names every version it ran on.
    """
    study, divided = find_study(name), DividedUnit.of(unit)
    chosen = study.read(options)
    check_paths(study, chosen)  # again, as another machine may have other folders
    piece = Unit(divided.key, decode(study.arguments, divided.arguments), divided.size)
    with unit_progress.counting(progress_folder(name, options)):
        done = study.run(chosen, piece)
    provenance = {name: value for name, value in done.provenance.as_row().items() if value is not None}
    return {"rows": [{PARTIAL: encode(done.partial)}], "provenance": provenance | {"code_version": code_version()}}


def summarize(name: str, options: Row, rows: list[Row]) -> Outcome:
    """The rows a person reads: {"rows"}."""
    study = find_study(name)
    summary = study.summarize(study.read(options), [decode(study.partial, row[PARTIAL]) for row in rows])
    return {"rows": [plain(row) for row in summary]}


TASKS: dict[str, Callable[..., Outcome]] = {"divide": divide, "unit": run_unit, "more": more, "summarize": summarize}


def perform(task: str, code: str | None, *arguments: Any) -> Outcome:
    """Do one of TASKS and say how it went: its result with seconds and worker, or {"error": one line}.

    code: the version of `core` that asked, checked on other machines; None where it is this machine's own.
    """
    started = time.monotonic()
    try:
        if code not in (None, code_version()):
            raise JobError(
                f"Workers must run the same code as the app ({code}), but {socket.gethostname()} runs "
                f"{code_version()}; update that copy and restart its worker."
            )
        outcome = TASKS[task](*arguments)
    except AtlasError as error:
        outcome = {"error": str(error)}
    except Exception as error:  # whatever a study raises is the unit's error, shown with the unit
        log.exception("%s of %s failed", task, arguments[0])
        outcome = {"error": " ".join(f"{type(error).__name__}: {error}".split())[:500]}
    return outcome | {"seconds": time.monotonic() - started, "worker": f"{socket.gethostname()}:{os.getpid()}"}


def merged(parts: list[Row]) -> Row:
    """One provenance out of many: equal values stay, row ids are joined in order, differing ones are listed."""
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
    """Make this process a worker of process `parent`: low priority, deaf to Ctrl-C, gone when `parent` is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(10)  # the app's pages come first
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)  # there is no portable signal for a parent's death
    sys.stderr.flush()
    os._exit(1)
