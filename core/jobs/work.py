"""What a worker process does: find the study by name, divide it, run one unit, summarise. Nothing here stores.

Everything goes in and comes out as JSON's own types, so no model and no class is ever pickled.
"""

import importlib
import logging
import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from core.config import code_version
from core.errors import AtlasError, JobError
from core.store.rows import plain
from core.studies.contract import Study, Unit, as_json
from core.studies.study import Options, Row
from core.studies.study import Study as EarlierStudy
from core.studies.study import Unit as EarlierUnit
from core.studies.transport import decode, encode

Outcome = dict[str, Any]
PARTIAL = "partial"  # the one field of the row that a unit leaves
log = logging.getLogger("atlas.jobs")


def module_of(name: str) -> str:
    """Where the study `name` is written: core.studies.<name>, or the module itself when `name` has dots."""
    if not re.fullmatch(r"\w+(-\w+)*|\w+(\.\w+)+", name):
        raise JobError(f"A study is named by letters, digits and dashes, but {name!r} is not; see the list of studies.")
    return name if "." in name else f"core.studies.{name.replace('-', '_')}"


def find_study(name: str) -> Any:
    """The study called `name`. Errors: JobError when there is none."""
    module = module_of(name)
    try:
        imported = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not (module + ".").startswith(error.name + "."):
            raise
        raise JobError(
            f"A study must be one of core/studies, but {name!r} is not; see `python -m core --help`."
        ) from error
    study = getattr(imported, "STUDY", None)
    if not isinstance(study, (Study, EarlierStudy)):
        raise JobError(f"A study's module must export STUDY, but {module} does not; see core/studies/contract.py.")
    return study


def complete(study: Any, options: Options) -> Options:
    """`options` over the study's defaults, as JSON has them. Errors: AtlasError naming one that it does not have."""
    if isinstance(study, Study):
        return as_json(study.read(options))
    unknown = sorted(set(options) - set(study.defaults))
    if unknown:
        raise JobError(
            f"The study {study.name} has the options {', '.join(study.defaults)}, but {unknown[0]!r} was given; "
            "leave it out or correct its name."
        )
    return plain({**study.defaults, **options})


def divide(name: str, options: Options) -> Outcome:
    """The study's options completed and its units: {"options", "units": [{key, size, arguments}]}."""
    study = find_study(name)
    completed = complete(study, options)
    planned = study.units(study.read(completed) if isinstance(study, Study) else completed)
    units = _as_rows(planned)
    if not units:
        raise JobError(
            f"The study {study.name} must have something to do, but these options leave nothing; widen them."
        )
    return {"options": completed, "units": units}


def _as_rows(units: Sequence[Any]) -> list[Row]:
    return [{"key": u.key, "size": int(u.size), "arguments": plain(encode(u.arguments))} for u in units]


def more(name: str, options: Options, rows: list[Row]) -> Outcome:
    """The units of the next round, from the partial results of all before: {"units"}; none when there is none."""
    study = find_study(name)
    partials = [decode(study.partial, row[PARTIAL]) for row in rows]
    return {"units": _as_rows(study.more(study.read(options), partials))}


def run_unit(name: str, options: Options, unit: Row) -> Outcome:
    """One unit's partial result as a row: {"rows": [{"partial"}], "provenance"}.

    The code's version goes with each unit, so a job that was resumed after an update names every version it ran on.
    """
    study = find_study(name)
    if not isinstance(study, Study):
        return _run_earlier(study, options, unit)
    done = study.run(study.read(options), Unit(unit["key"], decode(study.arguments, unit["arguments"]), unit["size"]))
    provenance = {name: value for name, value in done.provenance.as_row().items() if value is not None}
    return {"rows": [{PARTIAL: encode(done.partial)}], "provenance": provenance | {"code_version": code_version()}}


def _run_earlier(study: EarlierStudy, options: Options, unit: Row) -> Outcome:
    found = study.run(options, EarlierUnit(unit["key"], unit["arguments"], unit["size"]))
    rows = [plain(row) for row in found if set(row) != {"provenance"}]
    said = [row["provenance"] for row in found if set(row) == {"provenance"}]
    return {"rows": rows, "provenance": merged([*said, {"code_version": code_version()}])}


def summarize(name: str, options: Options, rows: list[Row]) -> Outcome:
    """The rows a person reads: {"rows"}."""
    study = find_study(name)
    if isinstance(study, Study):
        summary = study.summarize(study.read(options), [decode(study.partial, row[PARTIAL]) for row in rows])
    else:
        summary = study.summarize(options, rows)
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
