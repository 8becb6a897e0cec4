"""Executors for units of work: processes on this machine, or a Dask cluster."""

import asyncio
import os
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from ..config import code_version
from ..errors import JobError
from . import worker
from .remote import ByValue, perform_there

LARGE, KEPT = 2**18, 8  # bytes from which an argument is scattered; number of scattered arguments to remember
ANSWERS_SECONDS = 5.0  # time limit for an answer of a scheduler
IDLE_SECONDS = 60  # a local worker without work ends after this time and frees its memory


@dataclass(frozen=True)
class JobPlacement:
    """Where the units of a job run: in worker processes on this machine, or on a cluster.

    `threads` is the number of torch threads in each local worker (None: the cores are divided among the workers).
    """

    workers: int = 1
    cluster: str | None = None
    threads: int | None = None

    @property
    def threads_each(self) -> int:
        return self.threads or max(1, (os.cpu_count() or 1) // self.workers)


class Pool:
    """A pool of workers that run the units of jobs, and the number of units to submit at the same time."""

    def __init__(self, place: JobPlacement):
        self.place = place
        self.executor = _cluster(place.cluster) if place.cluster else worker_processes(place)
        self.in_flight = 10_000 if place.cluster else 2 * place.workers
        self._code = code_version() if place.cluster else None
        self._scattered: deque[tuple[Any, Any]] = deque(maxlen=KEPT)
        self._perform = ByValue(perform_there) if place.cluster else worker.perform

    def submit(self, task: str, *arguments: Any) -> Future[Any]:
        if self.place.cluster:
            arguments = tuple(map(self._sent, arguments))
        return self.executor.submit(self._perform, task, self._code, *arguments)

    def _sent(self, argument: Any) -> Any:
        """Send large or shared arguments to the cluster once instead of with every task."""
        from dask.sizeof import sizeof  # 0.1 s, only for a cluster

        for known, future in self._scattered:
            if known is argument:
                return future
        if sizeof(argument) < LARGE:
            return argument
        client = self.executor._client  # type: ignore[attr-defined]
        future = client.scatter(argument, broadcast=True, hash=False)  # to all workers, because any of them may die
        self._scattered.append((argument, future))
        return future

    def end(self) -> None:
        """Stop all local workers immediately, aborting running units of work, or disconnect from the cluster."""
        if self.place.cluster:
            client = self.executor._client  # type: ignore[attr-defined]
            self.executor.shutdown(wait=False)
            client.close(timeout=2)
        else:
            self.executor.shutdown(wait=False, kill_workers=True)  # type: ignore[call-arg]


def worker_processes(place: JobPlacement) -> Executor:
    """Create a pool of local worker processes that do not import the __main__ module of this process."""
    from loky import ProcessPoolExecutor  # 0.1 s at start, only for jobs
    from loky.backend import get_context  # 0.1 s at start, only for jobs

    threads = str(place.threads_each)
    environment: Mapping[str, str] = {
        **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), threads),
        "OMP_WAIT_POLICY": "PASSIVE",  # spinning threads take 25 times as long on a busy machine
        "TOKENIZERS_PARALLELISM": "false",
        "LOKY_MAX_MEMORY_LEAK_SIZE": "1e15",  # a growing worker caches models; it does not leak
    }
    return ProcessPoolExecutor(
        place.workers,
        timeout=IDLE_SECONDS,
        context=get_context("loky"),
        initializer=worker.prepare,
        initargs=(os.getpid(),),
        env=environment,
    )


def _cluster(address: str) -> Executor:
    try:
        from distributed import Client  # 0.4 s, only for a cluster
    except ImportError as error:
        raise JobError(
            "A cluster needs Dask, which is not installed. Run pip install 'attention-atlas[cluster]', or omit "
            "the cluster to run on this machine."
        ) from error
    try:
        with ThreadPoolExecutor(1) as thread:  # the thread of a notebook already runs an event loop
            thread.submit(asyncio.run, asyncio.wait_for(_greet(address), ANSWERS_SECONDS)).result()
        client = Client(address, timeout=f"{ANSWERS_SECONDS:.0f}s", set_as_default=False)
    except Exception as error:  # Dask raises many kinds of errors for answers of other services
        raise JobError(
            f"A Dask scheduler must answer at {address[:120]}; none did. Start one with `dask scheduler`, or omit "
            "the cluster to run on this machine."
        ) from error
    return client.get_executor(pure=False)


async def _greet(address: str) -> None:
    """Ask a scheduler for its identity. Dask's own client would wait forever for a service that never answers."""
    from distributed import Security
    from distributed.core import rpc

    async with rpc(address, connection_args=Security().get_connection_args("client")) as scheduler:
        answer = await scheduler.identity()
    if not isinstance(answer, Mapping) or answer.get("type") != "Scheduler":
        raise ValueError("another service")
