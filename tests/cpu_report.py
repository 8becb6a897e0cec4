"""What the tests cost in CPU seconds, with every process that they start; `pytest --cpu-report=FILE` says it of each.

Wall time says how busy the machine is; CPU seconds say what a test asks of it. Of a test's processes both the ended and
the living are counted, so that a server or a browser that outlives a test is billed to the tests that use it.

After each run a line says what all took, and others name tests that took more than LARGEST without the marker `slow`.
The costs of a test include 3 looks at all processes, .1 s each beside a browser.
They fail nothing: where cores share their caches a test takes twice its CPU seconds now and then. What does fail,
without a clock, is more of what costs: tests/test_floors.py counts it.
"""

import json
import os
from contextlib import suppress
from pathlib import Path

import pytest

LARGEST = 8  # CPU seconds of one test; of the whole suite 600
_TICKS = os.sysconf("SC_CLK_TCK")


def _children(pid: int) -> list[int]:
    """The living processes that a process started, by any of its threads."""
    found: list[int] = []
    with suppress(OSError):  # it ended meanwhile
        for task in os.scandir(f"/proc/{pid}/task"):
            found += map(int, Path(task.path, "children").read_bytes().split())
    return found


def _seconds(pid: int) -> float:
    """CPU seconds of a living process, with its ended children's."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0.0  # it ended meanwhile
    return sum(map(int, fields[11:15])) / _TICKS


def own_seconds() -> float:
    """Of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def cpu_seconds() -> float:
    """Of this process and of all that descend from it, found from parent to child: all that runs here is not looked at,
    which took 2 ms, 40 CPU seconds of a run with `--cpu-report`."""
    total, queue = own_seconds(), _children(os.getpid())
    while queue:
        pid = queue.pop()
        total += _seconds(pid)
        queue += _children(pid)
    return total


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cpu-report", metavar="FILE", help="write the CPU seconds of each test, its processes with it")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--cpu-report")
    config.pluginmanager.register(_Costs(Path(path) if path else None))


class _Costs:
    """Adds up what tests took; in a worker of xdist, tells its reports and its sum to the controller."""

    def __init__(self, path: Path | None) -> None:
        self.path, self.last, self.of_workers = path, 0.0, 0.0
        self.now = cpu_seconds if path else own_seconds
        self.tests: dict[str, dict[str, float]] = {}
        self.slow: set[str] = set()

    def pytest_collection_finish(self) -> None:
        self.last = self.now()
        self.tests[":collection"] = {"call": self.last}

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        done = yield
        now = self.now()
        done.get_result().cpu_seconds, self.last = now - self.last, now

    def pytest_runtest_logreport(self, report) -> None:
        costs = self.tests.setdefault(report.nodeid, {})
        costs[report.when] = round(getattr(report, "cpu_seconds", 0.0), 3)
        if "slow" in report.keywords:
            self.slow.add(report.nodeid)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node) -> None:
        self.of_workers += getattr(node, "workeroutput", {}).get("cpu_seconds", 0.0)

    def pytest_sessionfinish(self, session) -> None:
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["cpu_seconds"] = cpu_seconds()
        elif self.path:
            self.path.write_text(json.dumps(self.tests, indent=1))

    def pytest_terminal_summary(self, terminalreporter) -> None:
        total = self.of_workers or cpu_seconds()
        terminalreporter.write_line(f"{total:.0f} CPU seconds, of all processes")
        large = [(costs.get("call", 0.0), test) for test, costs in self.tests.items() if test not in self.slow]
        for seconds, test in sorted(large, reverse=True):
            if seconds > LARGEST and test != ":collection":
                terminalreporter.write_line(f"{seconds:.0f} CPU seconds without the marker slow: {test}")
