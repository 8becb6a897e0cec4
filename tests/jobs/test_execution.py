"""How the work of a job is handed out, by a pool whose answers are known: how much at a time, deaths, and a cancel."""

from concurrent.futures import BrokenExecutor, Future

import pytest

from core.jobs.execution import CRASHES, Execution, PoolKeeper, Stopped
from core.jobs.executors import JobPlacement
from core.jobs.records import JobUnit

PLACE = JobPlacement(workers=1)


class Pool:
    """Answers at once; a worker dies in each unit whose key is among `deadly`. It is its own keeper."""

    place, in_flight = PLACE, 2

    def __init__(self, *deadly, ends_with=None):
        self.deadly, self.ends_with, self.sent = deadly, ends_with, 0

    def at(self, place):
        return self

    def drop(self):
        """Nothing is left to end."""

    def end(self):
        raise self.ends_with

    def submit(self, task, *arguments):
        self.sent += 1
        future = Future()
        if task == "unit" and arguments[-1]["key"] in self.deadly:
            future.set_exception(BrokenExecutor("gone"))
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
    execution = Execution(Pool("unit-1"), PLACE, lambda: False)
    ended = {unit.key: answer for unit, answer in execution.each_unit("tiny", {}, units(3))}
    assert "died in this unit (killed, often for memory); retry it" in ended["unit-1"].error
    assert ended["unit-1"].deaths == CRASHES
    assert [ended[key].error for key in ("unit-0", "unit-2")] == [None, None]


def test_a_cancel_is_noticed_while_one_answer_is_waited_for():
    with pytest.raises(Stopped):
        Execution(Pool(), PLACE, lambda: True).ask("divide", "tiny", {})


@pytest.mark.parametrize("error", [OSError("closed"), RuntimeError("shut down")])
def test_a_pool_that_is_gone_already_is_let_go_of(error):
    keeper = PoolKeeper()
    keeper.pool = Pool(ends_with=error)
    keeper.drop()
    assert keeper.pool is None
