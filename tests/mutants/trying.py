"""A pytest plugin: one collected session, forked for each mutant, which meets only the tests that run its lines.

First a fork for each file of tests runs it once, with the statements of the mutants' modules saying that they run, and
keeps which test runs which line and how long it takes (build/mutants/reached), until core, the file or what its folder
shares changes. Each later fork turns one function into its mutant and runs the tests that reach the changed lines, the
quickest first, then others of their files, which may look at what a fixture or a cached function made there, until one
fails. Forks start from a session in which no test has run, so no cached result hides a mutant. Time is the processor's:
a fork that does nothing for a while is ended, not one that a busy machine keeps waiting.
"""

import ctypes
import hashlib
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
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import Phase, settings

from tests.mutants.changes import Mutant, turn_into
from tests.mutants.reaching import Statements

settings.register_profile(
    "mutants", deadline=None, database=None, derandomize=True, phases=(Phase.explicit, Phase.generate)
)

STATUSES = {0: "survived", 1: "killed", 2: "unplaced", 3: "killed elsewhere"}  # by exit status; below 0 is a signal
SURVIVED, KILLED, UNPLACED, ELSEWHERE = STATUSES
LIMIT = 5.0  # seconds of processor time that a mutant has beside four times what its tests took
IDLE = 30.0  # seconds without work after which a mutant waits for what never comes
LOOK = 0.05  # seconds between two looks at the forks
PAUSED = 5.0  # seconds between two looks after which the machine had something else to do: what ran is tried again


@dataclass
class Reached:
    """Which tests run a line, how long each took, and which failed without a mutant.

    Args:
        by_line: by file of core and line, the tests that run it, by their numbers in the session.
        seconds: what each test took; of one that was not run, without end.
        beside: by test, all of its file.
    """

    by_line: dict[str, dict[int, list[int]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    seconds: dict[int, float] = field(default_factory=dict)
    beside: dict[int, list[int]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    modules: set[str] = field(default_factory=set)

    def add(self, found: dict, numbers: dict[str, int]) -> None:
        """What one file's run found; `numbers` of its tests, by name."""
        good = {name: number for name, number in numbers.items() if name in found["seconds"]}
        failed = set(found["failed"])
        self.failed += found["failed"]
        self.modules |= set(found["modules"])
        own = [number for name, number in good.items() if name not in failed]
        for name, number in good.items():
            self.seconds[number], self.beside[number] = found["seconds"][name], own
        for file, lines in found["lines"].items():
            for line, names in lines.items():
                self.by_line[file][int(line)] += [good[name] for name in names if name in good and name not in failed]

    def tests(self, mutant: Mutant, patience: float, own: Callable[[int], bool]) -> list[int]:
        """Tests that run the changed lines (those of the whole function where none of its lines is counted), then
        others of their files; the room's `own` before others', each as many as take no longer than `patience` seconds,
        and at least one."""
        lines = self.by_line.get(mutant.module, {})
        for first, last in (mutant.lines, mutant.function_lines):
            reaching = {test for line in range(first, last + 1) for test in lines.get(line, ())}
            if reaching:
                break
        others = {test for number in reaching for test in self.beside[number]} - reaching
        kept: list[int] = []
        for is_own in (True, False):
            total = 0.0
            for tests in (reaching, others):
                for test in sorted((test for test in tests if own(test) == is_own), key=self.seconds.__getitem__):
                    if not kept or total + self.seconds[test] <= patience:
                        kept.append(test)
                        total += self.seconds[test]
        return kept


@dataclass
class Fork:
    """A process at work on a mutant, its processor time so far, and at how many more looks it may be where it was."""

    mutant: Mutant
    tests: list[int]
    folder: str
    looks: float = IDLE / LOOK
    spent: int = 0
    undisturbed: bool = True


class Trying:
    """Tries mutants in place of running the tests; `told(mutant, status, test)` hears of each.

    Args:
        mutant_of: makes a mutant from its key; it is asked when the mutant's turn has come.
        modules: whose lines are looked for among what tests reach; those of all mutants, and maybe more.
        minutes: how long, when all tests have been run unchanged.
        patience: seconds that the tests of one mutant may take when nothing is changed.
        kept: the folder of what is known of which test reaches what.
    """

    def __init__(
        self,
        keys: Sequence[str],
        mutant_of: Callable[[str], Mutant],
        told: Callable[[Mutant, str, str], None],
        *,
        modules: Sequence[str],
        minutes: float,
        patience: float,
        workers: int,
        kept: Path,
    ):
        self.keys, self.mutant_of, self.told = list(keys), mutant_of, told
        self.modules, self.minutes = list(modules), minutes
        self.patience, self.workers, self.kept = patience, workers, kept
        self.forks: dict[int, Fork] = {}

    def pytest_collection(self):
        settings.load_profile("mutants")  # after the conftest's own

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session) -> bool:
        reached = self._reached(session)
        print(
            f"{len(session.items)} tests, {sum(reached.seconds.values()):.0f} s; not used, for they fail unchanged: "
            f"{reached.failed}",
            flush=True,
        )
        for name in reached.modules:
            with suppress(Exception):
                import_module(name)
        waiting, end = self.keys[::-1], time.monotonic() + 60 * self.minutes
        while (waiting and time.monotonic() < end) or self.forks:
            while waiting and len(self.forks) < self.workers and time.monotonic() < end:
                mutant = self.mutant_of(waiting.pop())
                own = own_folder(mutant)
                tests = reached.tests(
                    mutant, self.patience, lambda test, own=own: session.items[test].nodeid.startswith(own)
                )
                if tests:
                    self._begin(session, mutant, tests, sum(reached.seconds[test] for test in tests))
                else:
                    self.told(mutant, "uncovered", "")
            waiting += [mutant.key for mutant in self._ended()]
        return True

    def _begin(self, session, mutant: Mutant, tests: list[int], expected: float) -> None:
        limit = int(LIMIT + 4 * expected)

        own = own_folder(mutant)

        def run() -> int:
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            session.config.pluginmanager.register(
                _Failures(lambda name: _killed(name, KILLED if name.startswith(own) else ELSEWHERE))
            )
            try:
                turn_into(mutant)
            except (AttributeError, LookupError, StopIteration):
                return UNPLACED
            _run(session, [session.items[test] for test in tests])
            return SURVIVED

        process, folder = _forked(run)
        self.forks[process] = Fork(mutant, tests, folder)

    def _ended(self) -> list[Mutant]:
        """Mutants to be tried again, as the machine was paused while they ran; what became of others is told."""
        began, again = time.monotonic(), []
        time.sleep(LOOK)
        paused = time.monotonic() - began > PAUSED
        for process, fork in list(self.forks.items()):
            before, fork.spent = fork.spent, _spent(process)
            fork.looks = fork.looks - 1 if fork.spent == before else IDLE / LOOK
            fork.undisturbed &= not paused
            if fork.looks < 0 and fork.undisturbed:
                os.kill(process, signal.SIGKILL)
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                del self.forks[process]
                killer = Path(fork.folder, "killer")
                killer_name = killer.read_text(encoding="utf-8") if killer.is_file() else ""
                _cleared(process, fork.folder)
                if fork.undisturbed:
                    self.told(fork.mutant, STATUSES.get(os.waitstatus_to_exitcode(status), "timeout"), killer_name)
                else:
                    again.append(fork.mutant)
        return again

    def _reached(self, session) -> Reached:
        """Of each file of tests, from what is kept or from a run."""
        reached, by_file = Reached(), defaultdict(list)
        statements = Statements(self.modules)
        for number, item in enumerate(session.items):
            by_file[item.path].append(number)
        shared = set(Path("tests").glob("*.py")) - set(Path("tests").glob("test_*.py"))
        common = _digest([*sorted(Path("core").rglob("*.py")), *sorted(shared)])
        for path, numbers in by_file.items():
            beside = sorted(other for other in path.parent.glob("*.py") if not other.name.startswith("test_"))
            names = " ".join(session.items[number].nodeid for number in numbers)
            answer = self.kept / f"{path.stem}-{_digest([path, *beside], common + names)}.json"
            if not answer.is_file() or not set(self.modules) <= set(json.loads(answer.read_text()).get("of", ())):
                print(f"{path.name}: {len(numbers)} tests", flush=True)
                process, folder = _forked(
                    lambda answer=answer, numbers=numbers: _unchanged(session, numbers, answer, statements)
                )
                os.waitpid(process, 0)
                _cleared(process, folder)
            if answer.is_file():
                names = {session.items[number].nodeid: number for number in numbers}
                reached.add(json.loads(answer.read_text()), names)
        return reached


def own_folder(mutant: Mutant) -> str:
    """What the names of its room's tests begin with; of what has no room, all tests'."""
    parts = Path(mutant.module).parts
    return f"tests/{parts[1]}/" if len(parts) > 2 else "tests/"


def _spent(process: int) -> int:
    """The processor time of a process that is ours, in ticks; with its children's that have ended."""
    return sum(map(int, Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:15]))


def _digest(paths, begun: str = "") -> str:
    told = hashlib.sha256(begun.encode())
    for path in paths:
        told.update(path.read_bytes())
    return told.hexdigest()[:12]


def _unchanged(session, numbers: list[int], answer: Path, statements: Statements) -> int:
    """Run these tests, and write which of them runs which line of the modules that say so."""
    failures: set[str] = set()
    session.config.pluginmanager.register(_Failures(failures.add))
    loaded, seconds = set(sys.modules), {}
    statements.place()
    lines: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    items = [session.items[number] for number in numbers]
    for number, item in enumerate(items):
        began = time.process_time()
        _run(session, items[number : number + 2], 1)
        seconds[item.nodeid] = round(time.process_time() - began, 4)
        for module, line in statements.taken():
            lines[module][line].append(item.nodeid)
    modules = [name for name in sys.modules if name not in loaded and not name.startswith("tests")]
    found = {
        "of": sorted(statements.modules),
        "lines": lines,
        "seconds": seconds,
        "failed": sorted(failures),
        "modules": modules,
    }
    answer.parent.mkdir(parents=True, exist_ok=True)
    answer.with_suffix(".part").write_text(json.dumps(found))
    answer.with_suffix(".part").replace(answer)
    return 0


class _Failures:
    """Hears of each test that fails, by name, before a report is made of it."""

    def __init__(self, told: Callable[[str], object]):
        self.told = told

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item, call):
        if (
            call.excinfo is None
            or call.excinfo.errisinstance(pytest.skip.Exception)
            or item.get_closest_marker("xfail")
        ):
            return
        self.told(item.nodeid)


def _run(session, items: list, most: int | None = None) -> None:
    """The items in order, each torn down as far as the next one needs; the first `most` of them."""
    session.config.get_terminal_writer()._file = io.StringIO()
    for item, after in list(zip(items, [*items[1:], None], strict=True))[:most]:
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=after)


def _killed(test: str, status: int) -> None:
    """End this process, and say which test failed."""
    Path(tempfile.gettempdir(), "killer").write_text(test, encoding="utf-8")
    os._exit(status)


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
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: whoever ends this run ends its forks
        empty = os.open(os.devnull, os.O_RDWR)
        for number in (1, 2):
            os.dup2(empty, number)
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        status = work()
    except BaseException:  # a mutant may raise anything while it is put in place
        status = KILLED
    finally:
        os._exit(status)


def _cleared(process: int, folder: str) -> None:
    """What the process left behind is ended and removed."""
    with suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)
