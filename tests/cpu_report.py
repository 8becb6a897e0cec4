"""What each test costs in CPU seconds, with every process that it started: `pytest --cpu-report=FILE`.

Wall time says how busy the machine is; CPU seconds say what a test asks of it. Of a test's processes both the ended and
the living are counted, so that a server or a browser that outlives a test is billed to the tests that use it.
"""

import json
import os
from collections import defaultdict
from pathlib import Path

import pytest

_TICKS = os.sysconf("SC_CLK_TCK")


def _living() -> dict[int, tuple[int, float]]:
    """Parent and CPU seconds, with ended children's, of every process."""
    found = {}
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            fields = Path(entry.path, "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        found[int(entry.name)] = int(fields[1]), sum(map(int, fields[11:15])) / _TICKS
    return found


def cpu_seconds() -> float:
    """Of this process and of all that descend from it."""
    own = os.times()
    total, children = own.user + own.system + own.children_user + own.children_system, defaultdict(list)
    processes = _living()
    for pid, (parent, _) in processes.items():
        children[parent].append(pid)
    queue = children[os.getpid()]
    while queue:
        pid = queue.pop()
        total += processes[pid][1]
        queue += children[pid]
    return total


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cpu-report", metavar="FILE", help="write the CPU seconds of each test, its processes with it")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--cpu-report"):
        config.pluginmanager.register(_Report(Path(config.getoption("--cpu-report"))))


class _Report:
    def __init__(self, path: Path) -> None:
        self.path, self.last, self.seconds = path, 0.0, {}

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        done = yield
        now = cpu_seconds()
        done.get_result().cpu_seconds, self.last = now - self.last, now

    @pytest.hookimpl
    def pytest_collection_finish(self, session):
        self.last = cpu_seconds()
        self.seconds[":collection"] = {"call": self.last}

    def pytest_runtest_logreport(self, report):
        self.seconds.setdefault(report.nodeid, {})[report.when] = round(getattr(report, "cpu_seconds", 0), 3)
        self.seconds[report.nodeid]["wall"] = self.seconds[report.nodeid].get("wall", 0) + report.duration

    def pytest_sessionfinish(self, session):
        if not hasattr(session.config, "workerinput"):
            self.path.write_text(json.dumps(self.seconds, indent=1))
