"""How the work of a job is handed out, by a pool whose answers are known: how much at a time, deaths, and a cancel."""

from concurrent.futures import BrokenExecutor, Future

import pytest

from core.jobs.execution import CRASHES, Execution, PoolKeeper, Stopped
from core.jobs.executors import JobPlacement
from core.jobs.records import JobUnit

PLACE = JobPlacement(workers=1)


class Pool:
    """Answers at once, or goes wrong as often as told in the unit of a key. It is its own keeper."""

    place, in_flight = PLACE, 2

    def __init__(self, troubles=(), ends_with=None):
        self.troubles, self.ends_with, self.sent = dict(troubles), ends_with, 0

    def at(self, place):
        return self

    def drop(self):
        """Nothing is left to end."""

    def end(self):
        raise self.ends_with

    def submit(self, task, *arguments):
        self.sent += 1
        future, troubles = Future(), self.troubles.get(arguments[-1].get("key"))
        if troubles:
            future.set_exception(troubles.pop())
        else:
            future.set_result({"rows": [{"task": task}]})
        return future


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
    assert "died in this unit (killed, often for memory); retry it" in ended["unit-1"].error
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
    assert answer.error == "The worker process died in this unit (MemoryError: too much); retry it."


def test_a_cancel_is_noticed_while_one_answer_is_waited_for():
    with pytest.raises(Stopped):
        Execution(Pool(), PLACE, lambda: True).ask("divide", "tiny", {})


@pytest.mark.parametrize("error", [OSError("closed"), RuntimeError("shut down")])
def test_a_pool_that_is_gone_already_is_let_go_of(error):
    keeper = PoolKeeper()
    keeper.pool = Pool(ends_with=error)
    keeper.drop()
    assert keeper.pool is None
