"""A pytest plugin: one collected session, forked for each mutant, which meets only the tests that run its lines.

The first fork runs every test once, under coverage, and tells which test runs which line and how long it takes. Each
later fork turns one function into its mutant and runs the tests that reach the changed lines until one fails. Forks
start from a session in which no test has run, so no cached result hides a mutant.
"""

import io
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import Phase, settings

from tests.mutants.changes import Mutant, turn_into

settings.register_profile(
    "mutants", deadline=None, database=None, derandomize=True, phases=(Phase.explicit, Phase.generate)
)

SURVIVED, KILLED = 0, 1
LIMIT = 5.0  # seconds of processor time that a mutant has beside ten times what its tests took
PATIENCE = 30.0  # seconds that the tests of one mutant may take when nothing is changed; the quickest first


@dataclass
class Reached:
    """Which tests run a line, how long each took, and which failed without a mutant."""

    by_line: dict[str, dict[int, list[int]]]
    seconds: list[float]
    failed: list[str]
    modules: list[str]

    def tests(self, mutant: Mutant) -> list[int]:
        """Tests that run the changed lines; those of the whole function where none of its lines is counted."""
        lines = self.by_line.get(mutant.module, {})
        for first, last in (mutant.lines, mutant.function_lines):
            tests = {test for line in range(first, last + 1) for test in lines.get(line, ())}
            if tests:
                return sorted(tests, key=self.seconds.__getitem__)
        return []


class Trying:
    """Tries mutants in place of running the tests, for so many minutes; `told(mutant, status)` hears of each."""

    def __init__(self, mutants: Sequence[Mutant], told: Callable[[Mutant, str], None], minutes: float):
        self.mutants, self.told, self.end = mutants, told, time.monotonic() + 60 * minutes

    def pytest_collection(self):
        settings.load_profile("mutants")  # after the conftest's own

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session) -> bool:
        started = time.monotonic()
        reached = self._reached(session)
        print(
            f"{len(session.items)} tests, {time.monotonic() - started:.0f} s; not used, for they fail unchanged: "
            f"{reached.failed}",
            flush=True,
        )
        for name in reached.modules:
            with suppress(Exception):
                import_module(name)
        for mutant in self.mutants:
            if time.monotonic() > self.end:
                break
            tests = self._in_patience(reached, mutant)
            self.told(mutant, self._tried(session, mutant, tests, reached) if tests else "uncovered")
        return True

    def _in_patience(self, reached: Reached, mutant: Mutant) -> list[int]:
        kept, total = [], 0.0
        for test in reached.tests(mutant):
            total += reached.seconds[test]
            if kept and total > PATIENCE:
                break
            kept.append(test)
        return kept

    def _reached(self, session) -> Reached:
        answer = Path(tempfile.mkdtemp()) / "reached.json"
        _wait(_forked(lambda: self._run_unchanged(session, answer)))
        read = json.loads(answer.read_text())
        lines = {
            file: {int(line): tests for line, tests in by_line.items()} for file, by_line in read.pop("lines").items()
        }
        return Reached(lines, **read)

    def _run_unchanged(self, session, answer: Path) -> int:
        from coverage import Coverage

        failures: list[int] = []
        hear = _Failures(lambda test: failures.append(test))
        session.config.pluginmanager.register(hear)
        files = sorted({str(Path(mutant.module).resolve()) for mutant in self.mutants})
        coverage, seconds, loaded = Coverage(data_file=None, include=files), [], set(sys.modules)
        coverage.start()
        for number, item in enumerate(session.items):
            hear.test, began = number, time.monotonic()
            coverage.switch_context(str(number))
            _run(session, [item, *session.items[number + 1 : number + 2]], 1)
            seconds.append(time.monotonic() - began)
        coverage.stop()
        lines: dict[str, dict[int, list[int]]] = defaultdict(dict)
        for file in files:
            for line, contexts in coverage.get_data().contexts_by_lineno(file).items():
                tests = sorted({int(context) for context in contexts if context} - set(failures))
                lines[str(Path(file).relative_to(Path.cwd()))][line] = tests
        failed = [session.items[number].nodeid for number in sorted(set(failures))]
        modules = [name for name in sys.modules if name not in loaded and not name.startswith("tests")]
        answer.write_text(json.dumps({"lines": lines, "seconds": seconds, "failed": failed, "modules": modules}))
        return 0

    def _tried(self, session, mutant: Mutant, tests: list[int], reached: Reached) -> str:
        expected = sum(reached.seconds[test] for test in tests)

        def run() -> int:
            limit = int(LIMIT + 10 * expected)
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            signal.alarm(4 * limit)
            session.config.pluginmanager.register(_Failures(lambda test: os._exit(KILLED)))
            turn_into(mutant)
            _run(session, [session.items[test] for test in tests])
            return SURVIVED

        status = _wait(_forked(run))
        return {SURVIVED: "survived", KILLED: "killed"}.get(status, "timeout" if status < 0 else "killed")


class _Failures:
    """Hears of each test that fails, before a report is made of it."""

    def __init__(self, told: Callable[[int], None]):
        self.told, self.test = told, 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item, call):
        if (
            call.excinfo is None
            or call.excinfo.errisinstance(pytest.skip.Exception)
            or item.get_closest_marker("xfail")
        ):
            return
        self.told(self.test)


def _run(session, items: list, most: int | None = None) -> None:
    """The items in order, each torn down as far as the next one needs; the first `most` of them."""
    session.config.get_terminal_writer()._file = io.StringIO()
    for item, after in list(zip(items, [*items[1:], None], strict=True))[:most]:
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=after)


def _forked(work: Callable[[], int]) -> tuple[int, str]:
    """The number of a process that does the work, silently, and its folder for temporary files."""
    folder = tempfile.mkdtemp(prefix="mutant-")
    sys.stdout.flush()
    process = os.fork()
    if process:
        return process, folder
    status = KILLED
    try:
        os.setpgid(0, 0)
        empty = os.open(os.devnull, os.O_RDWR)
        for number in (1, 2):
            os.dup2(empty, number)
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        status = work()
    except BaseException:  # a mutant may raise anything while it is put in place
        status = KILLED
    finally:
        os._exit(status)


def _wait(forked: tuple[int, str]) -> int:
    """The exit status; what it left behind is ended and removed."""
    process, folder = forked
    _, status = os.waitpid(process, 0)
    with suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)
    return os.waitstatus_to_exitcode(status)
