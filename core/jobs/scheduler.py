"""Takes queued jobs one after another, hands their units to a pool, and stores what comes back."""

import atexit
import contextlib
import logging
import queue
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ..config import settings
from ..errors import AtlasError, JobError, StoreError
from ..store import jobs as store
from ..store import runs
from ..store.backup import answer_requests
from ..store.database import Database
from ..store.exchange import runs_folder
from ..store.rows import Row
from ..studies.contract import Finished
from ..studies.lookup import find_study
from ..studies.provenance import provenance_of_run
from ..studies.stored_runs import one_run
from ..studies.transport import decode
from .execution import ClusterGoneError, Execution, PoolKeeper, Stopped
from .executors import JobPlacement
from .records import Job, one_job, open_units, progress, unit_outcomes
from .worker import PARTIAL, merged

log = logging.getLogger("atlas.jobs")
SUMMARY_SECONDS = 3.0  # how often partial rows are summarised, at most
SUMMARY_PAUSE = 20  # times what the last summary took, before the next; else a job of many units is all summaries
SUMMARY_ROWS = 20_000  # beyond this, partial rows are not sent to be summarised


@dataclass
class Live:
    """A job at work. before: tokens done when it was started; rows: the newest partial summary; next_summary: when
    there may be another."""

    cancelled: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    started: float | None = None
    before: int = 0
    rows: list[Row] = field(default_factory=list)
    next_summary: float = 0.0

    def pause_summaries(self, seconds: float) -> None:
        """Leave time for units after a summary that took `seconds`."""
        pause = max(SUMMARY_SECONDS, SUMMARY_PAUSE * seconds)
        self.next_summary = max(self.next_summary, time.monotonic() + pause)


class Runner:
    """Runs the jobs of one database in threads of its own, `at_once` at a time, each with a pool of its own."""

    def __init__(self, db: Database, place: JobPlacement | None = None, at_once: int | None = None):
        chosen = settings()
        self._db = weakref.proxy(db)
        self.place = place or JobPlacement(max(1, chosen.workers), chosen.cluster)
        self._waiting: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._lives: dict[str, Live] = {}
        self._troubles: dict[str, str] = {}
        self._unstored: dict[str, str] = {}  # the states that jobs ended in, where that could not be written
        self._closing = threading.Event()
        store.interrupt_running(db)
        count = at_once or chosen.jobs_at_once
        self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()
        _before_exit(self.close)

    def put(self, job: str) -> None:
        """Run `job` when its turn comes."""
        self._lives[job] = Live()
        self._troubles.pop(job, None)
        self._unstored.pop(job, None)
        self._waiting.put(job)

    def cancel(self, job: str) -> None:
        """Ask `job` to stop."""
        live = self._lives.get(job)
        if live is None or live.ended.is_set():
            return
        live.cancelled.set()
        if live.started is None and one_job(self._db, job).state == "queued":
            store.set_state(self._db, job, "cancelled")

    def stopping(self, job: str) -> bool:
        """Whether `job` was asked to stop, though its last units may still be ending."""
        live = self._lives.get(job)
        return live is not None and live.cancelled.is_set()

    def wait(self, job: str, timeout: int | float | None) -> None:
        """Block until `job` has ended here."""
        if job in self._lives:
            self._lives[job].ended.wait(timeout)

    def rate(self, job: str, size_done: int) -> float | None:
        """Tokens a second since the job was last started here."""
        live = self._lives.get(job)
        if live is None or live.started is None or size_done <= live.before:
            return None
        return (size_done - live.before) / (time.monotonic() - live.started)

    def partial(self, job: str) -> list[Row]:
        """The newest partial summary."""
        live = self._lives.get(job)
        return live.rows if live else []

    def trouble(self, job: str) -> str | None:
        """Why the end of `job` could not be stored, if it could not."""
        return self._troubles.get(job)

    def close(self) -> None:
        """End what runs, at once, leaving it to be resumed. The runner takes no more jobs."""
        self._closing.set()
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join(timeout=5)

    def _take_requests(self) -> None:
        """Cancel the jobs that another process asked to, with files named cancel-<job> in the folder of runs; and make
        the copies of the database that one asked for."""
        answer_requests(self._db)
        for request in runs_folder(self._db.path).glob("cancel-*"):
            self.cancel(request.name.removeprefix("cancel-"))
            request.unlink(missing_ok=True)

    # ---------------------------------------------------------------- one thread

    def _serve(self) -> None:
        keeper = PoolKeeper()
        while not self._closing.is_set():
            try:
                job = self._waiting.get(timeout=1.0)
            except queue.Empty:
                if self._forgotten():
                    break
                self._take_requests()
                self._store_ends()
                continue
            if job is None:
                break
            self._do(job, self._lives[job], keeper)
        keeper.drop()

    def _forgotten(self) -> bool:
        try:
            return self._db.closed
        except ReferenceError:
            return True

    def _do(self, job: str, live: Live, keeper: PoolKeeper) -> None:
        try:
            if live.cancelled.is_set():
                raise Stopped  # before its turn, and perhaps that could not be written down then
            self._run(job, live, keeper)
        except Stopped:
            keeper.drop()
            self._end(job, "interrupted" if self._closing.is_set() else "cancelled", None)
        except (StoreError, ClusterGoneError) as error:
            keeper.drop()
            self._end(job, "interrupted", str(error))
        except AtlasError as error:
            self._end(job, "failed", str(error))
        except ReferenceError:
            keeper.drop()  # the database was closed and forgotten while the job ran
        except Exception as error:  # a defect of ours must not end the thread, or no job would ever run again
            log.exception("Job %s failed", job)
            keeper.drop()
            self._end(job, "failed", f"The job met a defect of Attention Atlas ({type(error).__name__}); report it.")
        finally:
            live.ended.set()

    def _end(self, job: str, state: str, error: str | None) -> None:
        try:
            store.set_state(self._db, job, state, error=error)
        except (StoreError, ReferenceError) as trouble:
            self._troubles[job], self._unstored[job] = f"{error or trouble}", state

    def _store_ends(self) -> None:
        """Write down how jobs ended while that could not be written: the disk was full, say, and is no longer."""
        for job, state in list(self._unstored.items()):
            with contextlib.suppress(StoreError, ReferenceError):
                store.set_state(self._db, job, state, error=self._troubles[job])
                self._unstored.pop(job, None)

    def _run(self, job: str, live: Live, keeper: PoolKeeper) -> None:
        store.set_state(self._db, job, "running")
        live.before, live.started = progress(self._db, job).size_done, time.monotonic()

        def stopped() -> bool:
            self._take_requests()
            return live.cancelled.is_set() or self._closing.is_set()

        execution = Execution(keeper, self.place, stopped)
        known = one_job(self._db, job)
        if not progress(self._db, job).units:
            divided = execution.ask("divide", known.study, known.asked)
            store.add_units(self._db, job, divided.options or {}, divided.units)
            known = one_job(self._db, job)
        self._run_units(known, live, execution)
        while self._next_round(known, execution):
            self._run_units(known, live, execution)
        self._all_done(job)
        self._keep(known, execution)

    def _next_round(self, known: Job, execution: Execution) -> bool:
        """Add the units that those so far call for, if the study goes in rounds; whether there are any."""
        study = find_study(known.study)
        if not study.in_rounds:
            return False
        self._all_done(known.job)
        units = execution.ask("more", known.study, known.options, store.job_rows(self._db, known.job)).units
        if units:
            store.add_units(self._db, known.job, known.options, units)
        return bool(units)

    def _all_done(self, job: str) -> None:
        """Raises JobError where units failed."""
        outcomes = unit_outcomes(self._db, job)
        failed = [outcome.error for outcome in outcomes if outcome.state == "failed"]
        if failed:
            if len(failed) == len(outcomes) and len(set(failed)) == 1:
                raise JobError(failed[0])  # the work could not be done at all
            raise JobError(f"{len(failed)} of {len(outcomes)} units failed, the first with: {failed[0]}")

    def _run_units(self, known: Job, live: Live, execution: Execution) -> None:
        for unit, answer in execution.each_unit(known.study, known.options, open_units(self._db, known.job)):
            if unit is None:
                live.rows = live.rows if answer.rows is None else list(answer.rows)
                live.pause_summaries(answer.seconds)
                continue
            store.store_outcome(
                self._db,
                known.job,
                unit.position,
                store.UnitEnd(
                    rows=answer.rows or (),
                    error=answer.error,
                    seconds=answer.seconds,
                    worker=answer.worker,
                    provenance=answer.provenance,
                    deaths=answer.deaths,
                ),
            )
            if time.monotonic() > live.next_summary:
                self._ask_summary(known, live, execution)

    def _ask_summary(self, known: Job, live: Live, execution: Execution) -> None:
        """Have what is there so far summarised for those who watch, where that is not too much."""
        began = time.monotonic()
        if 0 < store.count_rows(self._db, known.job) <= SUMMARY_ROWS:
            execution.summarize(known.study, known.options, store.job_rows(self._db, known.job))
        live.pause_summaries(time.monotonic() - began)

    def _keep(self, known: Job, execution: Execution) -> None:
        """Summarise all rows and keep them as a run."""
        job, options = known.job, known.options
        summary = execution.ask("summarize", known.study, options, store.job_rows(self._db, job)).rows
        provenance = provenance_of_run(options, merged(store.job_provenance(self._db, job)))
        with self._db.write():
            run = runs.record_run(self._db, known.study, options, provenance, title=known.title)
            runs.store_rows(self._db, run, summary or ())
            keep(self._db, run, lambda: iter(store.job_rows(self._db, job)))
            store.set_state(self._db, job, "done", run=run)


def keep(db: Database, run: str, partials: Callable[[], Iterator[Row]] = lambda: iter(())) -> None:
    """Have the study of a stored run keep what else the run leaves. partials: rows of its units, where there are any.

    A run of what is no study here (a report, say) has its rows and nothing else. Raises what the study does.
    """
    known = one_run(db, run)
    try:
        study = find_study(known.study)
    except JobError:
        return
    finished = Finished(
        run,
        known.title,
        study.read(known.options),
        runs.run_rows(db, run),
        lambda: (decode(study.partial, row[PARTIAL]) for row in partials()),
    )
    study.keep(db, finished)


def _before_exit(close: Any) -> None:
    """Have `close` called before the interpreter waits for the pools' threads, and not keep the runner alive."""
    ended = weakref.WeakMethod(close)

    def end() -> None:
        method = ended()
        if method is not None:
            method()

    # the plain atexit hooks run only after loky's own, which wait for running units
    getattr(threading, "_register_atexit", atexit.register)(end)
