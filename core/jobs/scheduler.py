"""Execution of queued jobs: units are sent to a pool, and results are stored."""

import atexit
import contextlib
import logging
import queue
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Future
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ..config import settings
from ..errors import AtlasError, JobError, StoreError
from ..store import jobs as store
from ..store import runs
from ..store.backup import answer_requests
from ..store.database import Database
from ..store.exchange import runs_folder
from ..store.rows import Row
from ..studies.contract import Finished, provenance_of_run
from ..studies.lookup import find_study
from ..studies.stored_runs import one_run
from ..studies.transport import decode
from .executors import JobPlacement, Pool
from .records import Answer, Job, JobUnit, one_job, open_units, progress, unit_outcomes
from .worker import PARTIAL, merged

# ---------------------------------------------------------------- running the units of a job


LOOK_SECONDS = 0.1  # interval of checks for cancellation
CRASHES = 2  # worker deaths in a unit before it counts as failed


class Stopped(Exception):  # noqa: N818 - a request, not an error
    """Exception that stops a running job when the job is cancelled or the process ends."""


class ClusterGoneError(JobError):
    """Exception that stops a job when the cluster no longer responds."""


class PoolKeeper:
    """A container that keeps the worker pool of a thread for reuse by later jobs."""

    def __init__(self) -> None:
        self.pool: Pool | None = None

    def at(self, place: JobPlacement) -> Pool:
        if self.pool is None or self.pool.place != place or place.cluster:
            self.drop()
            self.pool = Pool(place)
        return self.pool

    def drop(self) -> None:
        if self.pool is not None:
            with contextlib.suppress(OSError, RuntimeError):  # the pool may have ended already
                self.pool.end()
        self.pool = None


class Execution:
    """The execution of one job. It submits units of work to workers, collects results, and replaces dead workers."""

    def __init__(self, keeper: PoolKeeper, place: JobPlacement, stopped: Callable[[], bool]):
        self._keeper, self._place, self._stopped = keeper, place, stopped
        self._pool = keeper.at(place)
        self._finished: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()
        self._running: dict[Future[Any], tuple[JobUnit | None, tuple[Any, ...]]] = {}
        self._summarising = False

    def ask(self, task: str, *arguments: Any) -> Answer:
        """Run one task in a worker process and return its result. Raises JobError if the task fails, and Stopped if the
        job is cancelled."""
        answer: Answer | None = None
        for _ in range(CRASHES + 1):
            future = self._submit(None, task, *arguments)
            while future in self._running:
                self._next_ended()
            answer = self._answer(future)
            if answer is not None:
                break
            self._renew()
        if answer is None:
            raise JobError(
                f"The worker process died {CRASHES + 1} times in this step. Use fewer workers or a smaller checkpoint."
            )
        if answer.error is not None:
            raise JobError(answer.error)
        return answer

    def summarize(self, *arguments: Any) -> None:
        """Request a summary of the results so far. `each_unit` later yields the summary as (None, summary)."""
        if not self._summarising:
            self._summarising = True
            self._submit(None, "summarize", *arguments)

    def each_unit(
        self, study: str, options: Mapping[str, Any], units: Sequence[JobUnit]
    ) -> Iterator[tuple[JobUnit | None, Answer]]:
        """Run the units of a job, and yield each unit with its result when the unit ends.

        A unit whose worker dies is rerun alone; after several deaths, it counts as failed.
        """
        waiting, suspects = deque(units), deque[JobUnit]()
        crashes: dict[int, int] = {}
        while waiting or suspects or self._units_running():
            room = 1 if suspects else self._pool.in_flight
            while self._units_running() < room and (suspects or waiting):
                unit = suspects.popleft() if suspects else waiting.popleft()
                self._submit(unit, "unit", study, options, asdict(unit))
            last = self._next_ended()
            if last is None:
                continue
            ended, answer = last[0], self._answer(last[1])
            if answer is not None:
                self._summarising = self._summarising and ended is not None
                yield ended, replace(answer, deaths=0 if ended is None else crashes.get(ended.position, 0))
                continue
            hit = [ended, *(other for other, _ in self._running.values())]
            self._renew()
            for unit in (unit for unit in hit if unit is not None):
                crashes[unit.position] = crashes.get(unit.position, 0) + 1
                if crashes[unit.position] > CRASHES:
                    yield unit, replace(_died(), deaths=CRASHES)
                else:
                    suspects.append(unit)

    def _units_running(self) -> int:
        return sum(unit is not None for unit, _ in self._running.values())

    def _submit(self, unit: JobUnit | None, task: str, *arguments: Any) -> Future[Any]:
        try:
            future = self._pool.submit(task, *arguments)
        except BrokenExecutor as error:  # a worker died since the last answer: treated like a death in this step
            future = Future()
            future.set_exception(error)
        self._running[future] = (unit, arguments)
        future.add_done_callback(self._finished.put)
        return future

    def _next_ended(self) -> tuple[JobUnit | None, Future[Any]] | None:
        """Return the next finished future with its unit; None after LOOK_SECONDS. Raises Stopped."""
        if self._stopped():
            raise Stopped
        try:
            future = self._finished.get(timeout=LOOK_SECONDS)
        except queue.Empty:
            return None
        if future not in self._running:
            return None
        return self._running.pop(future)[0], future

    def _answer(self, future: Future[Any]) -> Answer | None:
        """Return the worker's answer; None if the worker died."""
        try:
            return Answer.of(future.result())
        except BrokenExecutor:
            return None
        except CancelledError as error:
            raise ClusterGoneError(
                f"The cluster at {self._place.cluster} has stopped responding. Resume the job when the "
                "cluster is available again."
            ) from error
        except Exception as error:  # errors of a task that the cluster gave up, such as KilledWorker
            return _died(f"{type(error).__name__}: {error}")

    def _renew(self) -> None:
        self._running.clear()
        self._summarising = False
        self._keeper.drop()
        self._pool = self._keeper.at(self._place)


def _died(why: str = "") -> Answer:
    said = " ".join(why.split())[:300] or "killed, often for lack of memory"
    return Answer(error=f"The worker process died in this unit ({said}). Retry it.")


log = logging.getLogger("atlas.jobs")
SUMMARY_SECONDS = 3.0  # minimum interval between summaries of partial rows
SUMMARY_PAUSE = 20  # minimum pause after a summary, as a multiple of its duration
SUMMARY_ROWS = 20_000  # more partial rows than this are not summarised


@dataclass
class Live:
    """The state of a running job. `before` is the size of the units that ended before its last start. `rows`
    are the newest preliminary results, and `next_summary` is the earliest time to update them."""

    cancelled: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    started: float | None = None
    before: int = 0
    rows: list[Row] = field(default_factory=list)
    next_summary: float = 0.0

    def pause_summaries(self, seconds: float) -> None:
        pause = max(SUMMARY_SECONDS, SUMMARY_PAUSE * seconds)
        self.next_summary = max(self.next_summary, time.monotonic() + pause)


class Runner:
    """A runner for the jobs in one database, with at most `at_once` jobs at the same time. Each running job has its own
    thread and workers."""

    def __init__(self, db: Database, place: JobPlacement | None = None, at_once: int | None = None):
        chosen = settings()
        self._db = weakref.proxy(db)
        self.place = place or JobPlacement(max(1, chosen.workers), chosen.cluster)
        self._waiting: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._lives: dict[str, Live] = {}
        self._troubles: dict[str, str] = {}
        self._unstored: dict[str, str] = {}  # final states of jobs that could not be stored
        self._closing = threading.Event()
        store.interrupt_running(db)
        count = at_once or chosen.jobs_at_once
        self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()
        _before_exit(self.close)

    def put(self, job: str) -> None:
        self._lives[job] = Live()
        self._troubles.pop(job, None)
        self._unstored.pop(job, None)
        self._waiting.put(job)

    def cancel(self, job: str) -> None:
        live = self._lives.get(job)
        if live is None or live.ended.is_set():
            return
        live.cancelled.set()
        if live.started is None and one_job(self._db, job).state == "queued":
            store.set_state(self._db, job, "cancelled")

    def stopping(self, job: str) -> bool:
        live = self._lives.get(job)
        return live is not None and live.cancelled.is_set()

    def wait(self, job: str, timeout: int | float | None) -> None:
        """Wait until a job that this process runs has ended, or until the timeout in seconds."""
        if job in self._lives:
            self._lives[job].ended.wait(timeout)

    def rate(self, job: str, size_done: int) -> float | None:
        """Return the speed of a job, in size per second, since this process last started it; None if unknown."""
        live = self._lives.get(job)
        if live is None or live.started is None or size_done <= live.before:
            return None
        return (size_done - live.before) / (time.monotonic() - live.started)

    def partial(self, job: str) -> list[Row]:
        """Return the newest preliminary result rows of a job that this process has started; empty for other jobs."""
        live = self._lives.get(job)
        return live.rows if live else []

    def trouble(self, job: str) -> str | None:
        """Return the error of a job whose final state could not be stored at its end; None for other jobs."""
        return self._troubles.get(job)

    def close(self) -> None:
        """Stop all running jobs and accept no new jobs. Stopped jobs can be resumed later."""
        self._closing.set()
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join(timeout=5)

    def _take_requests(self) -> None:
        """Handle requests of other processes in the folder of runs: cancel-<job> files and backups."""
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
                raise Stopped  # cancelled before its start, which may not have been stored
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
            keeper.drop()  # the database was closed while the job ran
        except Exception as error:  # an unexpected error must not end the thread
            log.exception("Job %s failed", job)
            keeper.drop()
            self._end(
                job,
                "failed",
                f"The job failed because of a defect of Attention Atlas ({type(error).__name__}). Report it.",
            )
        finally:
            live.ended.set()

    def _end(self, job: str, state: str, error: str | None) -> None:
        try:
            store.set_state(self._db, job, state, error=error)
        except (StoreError, ReferenceError) as trouble:
            self._troubles[job], self._unstored[job] = f"{error or trouble}", state

    def _store_ends(self) -> None:
        """Store the final states that could not be stored before, for example because the disk was full."""
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
        """Add the units of the next round if the study works in rounds; return whether there are any."""
        study = find_study(known.study)
        if not study.in_rounds:
            return False
        self._all_done(known.job)
        units = execution.ask("more", known.study, known.options, store.job_rows(self._db, known.job)).units
        if units:
            store.add_units(self._db, known.job, known.options, units)
        return bool(units)

    def _all_done(self, job: str) -> None:
        """Raise JobError if any unit of the job failed."""
        outcomes = unit_outcomes(self._db, job)
        failed = [outcome.error for outcome in outcomes if outcome.state == "failed"]
        if failed:
            if len(failed) == len(outcomes) and len(set(failed)) == 1:
                raise JobError(failed[0])  # all units failed for the same reason
            raise JobError(f"{len(failed)} of {len(outcomes)} units of work failed. The first error is: {failed[0]}")

    def _run_units(self, known: Job, live: Live, execution: Execution) -> None:
        for unit, answer in execution.each_unit(known.study, known.options, open_units(self._db, known.job)):
            if unit is None:
                live.rows = live.rows if answer.rows is None else list(answer.rows)
                live.pause_summaries(answer.seconds)
                continue
            store.store_outcome(self._db, known.job, unit.position, answer)
            if time.monotonic() > live.next_summary:
                self._ask_summary(known, live, execution)

    def _ask_summary(self, known: Job, live: Live, execution: Execution) -> None:
        """Request a summary of the results of finished units, unless there are too many."""
        began = time.monotonic()
        if 0 < store.count_rows(self._db, known.job) <= SUMMARY_ROWS:
            execution.summarize(known.study, known.options, store.job_rows(self._db, known.job))
        live.pause_summaries(time.monotonic() - began)

    def _keep(self, known: Job, execution: Execution) -> None:
        """Summarise all rows and store them as a run."""
        job, options = known.job, known.options
        summary = execution.ask("summarize", known.study, options, store.job_rows(self._db, job)).rows
        provenance = provenance_of_run(options, merged(store.job_provenance(self._db, job)))
        with self._db.write():
            run = runs.record_run(self._db, known.study, options, provenance, title=known.title)
            runs.store_rows(self._db, run, summary or ())
            keep(self._db, run, lambda: iter(store.job_rows(self._db, job)))
            store.set_state(self._db, job, "done", run=run)


def keep(db: Database, run: str, partials: Callable[[], Iterator[Row]] = lambda: iter(())) -> None:
    """Store the additional outputs of a finished run, such as trained classifiers."""
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
    """Call `close` before the interpreter waits for the pools' threads, without keeping the runner alive."""
    ended = weakref.WeakMethod(close)

    def end() -> None:
        method = ended()
        if method is not None:
            method()

    # plain atexit hooks run only after loky's, which wait for running units
    getattr(threading, "_register_atexit", atexit.register)(end)
