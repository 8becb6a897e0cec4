"""How the work of a job is handed out, by a pool whose answers are known: how much at a time, deaths, and a cancel."""

import os
from concurrent.futures import BrokenExecutor, Future

import pytest

from core.config import code_version
from core.errors import JobError
from core.jobs import executors, worker
from core.jobs.executors import JobPlacement
from core.jobs.records import JobUnit
from core.jobs.remote import ByValue
from core.jobs.scheduler import CRASHES, Execution, PoolKeeper, Stopped

PLACE = JobPlacement(workers=1)


class Pool:
    """Answers at once, or goes wrong as often as told in the unit of a key. It is its own keeper."""

    place, in_flight = PLACE, 2

    def __init__(self, troubles=(), ends_with=None):
        self.troubles, self.ends_with = dict(troubles), ends_with
        self.sent, self.tasks = 0, []

    def at(self, place):
        return self

    def drop(self):
        """Nothing is left to end."""

    def end(self):
        raise self.ends_with

    def submit(self, task, *arguments):
        self.sent += 1
        self.tasks.append(task)
        future, troubles = Future(), self.troubles.get(key_of(arguments[-1]))
        if troubles:
            future.set_exception(troubles.pop())
        else:
            future.set_result({"rows": [{"task": task}]})
        return future


def key_of(argument):
    return argument.get("key") if isinstance(argument, dict) else None


def units(count):
    return [JobUnit(key=f"unit-{k}", size=1, arguments={}, position=k, attempts=0) for k in range(count)]


def test_no_more_units_are_under_way_than_the_pool_takes():
    pool = Pool()
    ended = []
    for unit, _ in Execution(pool, PLACE, lambda: False).each_unit("tiny", {}, units(5)):
        ended.append(unit.position)
        assert pool.sent - len(ended) < pool.in_flight
    assert ended == list(range(5))


def test_a_unit_that_ends_its_worker_each_time_fails_with_a_sentence_and_the_others_are_done():
    died = BrokenExecutor("gone")
    execution = Execution(Pool({"unit-1": [died] * 9, "unit-2": [died]}), PLACE, lambda: False)
    ended = {unit.key: answer for unit, answer in execution.each_unit("tiny", {}, units(3))}
    assert "died in this unit (killed, often for lack of memory). Retry it." in ended["unit-1"].error
    assert ended["unit-1"].deaths == CRASHES
    assert [ended[key].error for key in ("unit-0", "unit-2")] == [None, None]
    assert 1 <= ended["unit-2"].deaths <= CRASHES


def test_a_death_counts_once_and_its_unit_is_done_again():
    execution = Execution(Pool({"unit-1": [BrokenExecutor("gone")]}), PLACE, lambda: False)
    ended = {unit.key: (answer.error, answer.deaths) for unit, answer in execution.each_unit("tiny", {}, units(2))}
    assert ended == {"unit-0": (None, 0), "unit-1": (None, 1)}


def test_what_a_cluster_says_of_a_unit_that_it_gave_up_is_the_units_error():
    execution = Execution(Pool({"unit-0": [MemoryError("too\nmuch")]}), PLACE, lambda: False)
    ((_, answer),) = execution.each_unit("tiny", {}, units(1))
    assert answer.error == "The worker process died in this unit (MemoryError: too much). Retry it."


def test_a_cancel_is_noticed_while_one_answer_is_waited_for():
    with pytest.raises(Stopped):
        Execution(Pool(), PLACE, lambda: True).ask("divide", "tiny", {})


def test_a_step_that_ends_its_worker_each_time_is_given_up_after_three():
    pool = Pool({"asked": [BrokenExecutor("gone")] * 9})
    with pytest.raises(JobError, match=r"^The worker process died 3 times in this step"):
        Execution(pool, PLACE, lambda: False).ask("divide", "tiny", {"key": "asked"})
    assert pool.tasks == ["divide"] * 3


def test_one_summary_is_asked_for_at_a_time_and_comes_between_the_units():
    execution = Execution(pool := Pool(), PLACE, lambda: False)
    for _ in range(2):
        execution.summarize("tiny", {}, [{}])
    ended = [(unit and unit.key, answer.rows) for unit, answer in execution.each_unit("tiny", {}, units(1))]
    assert pool.tasks == ["summarize", "unit"]
    assert ended == [(None, [{"task": "summarize"}]), ("unit-0", [{"task": "unit"}])]


@pytest.mark.parametrize("error", [OSError("closed"), RuntimeError("shut down")])
def test_a_pool_that_is_gone_already_is_let_go_of(error):
    keeper = PoolKeeper()
    keeper.pool = Pool(ends_with=error)
    keeper.drop()
    assert keeper.pool is None


# ---------------------------------------------------------------- what a pool hands its executor


class Executor:
    """Writes down what it is told."""

    def __init__(self):
        self.told = []
        self._client = self  # as Dask's executor has it

    def submit(self, *given):
        self.told.append(("submit", *given))

    def scatter(self, argument, *, broadcast, hash):
        self.told.append(("scatter", len(argument), broadcast, hash))
        return "sent"

    def shutdown(self, **named):
        self.told.append(("shutdown", named))

    def close(self, timeout):
        self.told.append(("close", timeout))


def test_a_cluster_is_sent_the_codes_version_a_function_by_value_and_what_is_large_once(monkeypatch):
    executor = Executor()
    monkeypatch.setattr(executors, "_cluster", lambda address: executor)
    pool, large = executors.Pool(JobPlacement(cluster="tcp://127.0.0.1:9")), "x" * executors.LARGE
    for number in range(2):
        pool.submit("unit", "tiny", large, number)
    pool.end()
    scattered, first, second, *ends = executor.told
    assert scattered == ("scatter", executors.LARGE, True, False)
    assert [given[2:] for given in (first, second)] == [("unit", code_version(), "tiny", "sent", k) for k in range(2)]
    assert isinstance(first[1], ByValue)
    assert ends == [("shutdown", {"wait": False}), ("close", 2)]
    assert pool.in_flight > 1000  # whatever the cluster has for workers


def test_workers_here_have_two_units_each_and_are_killed_in_the_middle_of_them(monkeypatch):
    executor = Executor()
    monkeypatch.setattr(executors, "worker_processes", lambda place: executor)
    pool = executors.Pool(JobPlacement(workers=3))
    pool.submit("unit", "tiny")
    pool.end()
    assert executor.told == [
        ("submit", worker.perform, "unit", None, "tiny"),
        ("shutdown", {"wait": False, "kill_workers": True}),
    ]
    assert pool.in_flight == 6


def test_worker_processes_are_prepared_and_give_their_memory_back_at_rest(monkeypatch, real_workers):
    import loky

    made = []
    monkeypatch.setattr(loky, "ProcessPoolExecutor", lambda *given, **named: made.append((given, named)))
    real_workers(JobPlacement(workers=2, threads=3))
    ((given, named),) = made
    assert (given, named["timeout"], named["initargs"]) == ((2,), executors.IDLE_SECONDS, (os.getpid(),))
    assert named["initializer"] is worker.prepare
    assert (named["env"]["OMP_NUM_THREADS"], named["env"]["TOKENIZERS_PARALLELISM"]) == ("3", "false")


def test_a_summary_is_asked_for_once_the_last_one_is_there():
    pool = Pool()
    execution = Execution(pool, PLACE, lambda: False)
    for _ in range(2):
        execution.summarize("tiny", {}, [])
    assert pool.tasks == ["summarize"]
    ended = [unit for unit, _ in execution.each_unit("tiny", {}, units(3))]
    assert ended.count(None) == 1
    assert len(ended) == 4
    execution.summarize("tiny", {}, [])
    assert pool.tasks.count("summarize") == 2
    list(execution.each_unit("tiny", {}, units(1)))
    execution._renew()  # a summary that went with its worker is asked for again
    execution.summarize("tiny", {}, [])
    assert pool.tasks.count("summarize") == 3
