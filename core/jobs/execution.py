"""Work of a job: submitted to a pool, collected as it ends, started again when a worker dies."""

import contextlib
import queue
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Future
from dataclasses import asdict, replace
from typing import Any

from ..errors import JobError
from .answers import Answer
from .executors import JobPlacement, Pool
from .records import JobUnit

LOOK_SECONDS = 0.1  # how often a job looks for a cancel
CRASHES = 2  # times a unit may end its worker before it counts as failed


class Stopped(Exception):  # noqa: N818 - a request, not an error
    """Raised where the job was cancelled, or the process ends."""


class ClusterGoneError(JobError):
    """Raised where the cluster stopped answering."""


class PoolKeeper:
    """The pool of one thread, kept between jobs while it is the right one."""

    def __init__(self) -> None:
        self.pool: Pool | None = None

    def at(self, place: JobPlacement) -> Pool:
        if self.pool is None or self.pool.place != place or place.cluster:
            self.drop()
            self.pool = Pool(place)
        return self.pool

    def drop(self) -> None:
        if self.pool is not None:
            with contextlib.suppress(OSError, RuntimeError):  # it may be gone already
                self.pool.end()
        self.pool = None


class Execution:
    """Work of one job: submits, collects, notices a cancel, and starts again when a worker dies."""

    def __init__(self, keeper: PoolKeeper, place: JobPlacement, stopped: Callable[[], bool]):
        self._keeper, self._place, self._stopped = keeper, place, stopped
        self._pool = keeper.at(place)
        self._finished: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()
        self._running: dict[Future[Any], tuple[JobUnit | None, tuple[Any, ...]]] = {}
        self._summarising = False

    def ask(self, task: str, *arguments: Any) -> Answer:
        """One answer. Raises JobError with the sentence the worker gave, or Stopped."""
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
            raise JobError(f"The worker died {CRASHES + 1} times at this step; try fewer workers or a smaller one.")
        if answer.error is not None:
            raise JobError(answer.error)
        return answer

    def summarize(self, *arguments: Any) -> None:
        """Ask for a summary of partial rows; `each_unit` yields it as (None, answer)."""
        if not self._summarising:
            self._summarising = True
            self._submit(None, "summarize", *arguments)

    def each_unit(
        self, study: str, options: Mapping[str, Any], units: Sequence[JobUnit]
    ) -> Iterator[tuple[JobUnit | None, Answer]]:
        """(unit, answer) in the order they end; a unit whose worker dies runs again, alone, then counts as failed."""
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
        except BrokenExecutor as error:  # a worker died since the last answer: seen like a death at this step
            future = Future()
            future.set_exception(error)
        self._running[future] = (unit, arguments)
        future.add_done_callback(self._finished.put)
        return future

    def _next_ended(self) -> tuple[JobUnit | None, Future[Any]] | None:
        """The next future that ended, with its unit; None after LOOK_SECONDS. Raises Stopped."""
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
        """What the worker answered; None when it died."""
        try:
            return Answer.of(future.result())
        except BrokenExecutor:
            return None
        except CancelledError as error:
            raise ClusterGoneError(
                f"The cluster at {self._place.cluster} stopped answering; resume the job when it is back."
            ) from error
        except Exception as error:  # what the cluster says of a task it gave up, KilledWorker for one
            return _died(f"{type(error).__name__}: {error}")

    def _renew(self) -> None:
        self._running.clear()
        self._summarising = False
        self._keeper.drop()
        self._pool = self._keeper.at(self._place)


def _died(why: str = "") -> Answer:
    said = " ".join(why.split())[:300] or "killed, often for memory"
    return Answer(error=f"The worker process died in this unit ({said}); retry it.")
