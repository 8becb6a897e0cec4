"""Jobs without worker processes: each unit still goes in and comes out as JSON's own types, through `worker.perform`.

A worker process takes 5 CPU seconds to import what a study needs, and a test has it already. Tests of what only
processes do (dying, being killed, threads of arithmetic) have the marker `processes`.
"""

import json
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from core.jobs.executors import JobPlacement


class InProcess(Executor):
    """One thread that does one task after another; what waits is dropped when it is shut down."""

    def __init__(self, place: JobPlacement):
        self._tasks: queue.SimpleQueue[tuple[Future, Callable, tuple] | None] = queue.SimpleQueue()
        self._ended = threading.Event()
        threading.Thread(target=self._work, daemon=True).start()

    def submit(self, fn: Callable, /, *arguments: Any, **options: Any) -> Future:
        future: Future = Future()
        self._tasks.put((future, fn, tuple(json.loads(json.dumps(arguments)))))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False, kill_workers: bool = False) -> None:
        self._ended.set()
        self._tasks.put(None)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            future, perform, arguments = task
            if self._ended.is_set() or not future.set_running_or_notify_cancel():
                future.cancel()
                continue
            try:
                future.set_result(json.loads(json.dumps(perform(*arguments))))
            except BaseException as error:  # as a process's error comes back with its future
                future.set_exception(error)
