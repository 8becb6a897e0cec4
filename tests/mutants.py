"""Would a test notice? Mutants of modules of core, each tried on the tests of its own module (mutmut).

    python -m tests.mutants                                        # modules that differ from HEAD
    python -m tests.mutants core/scoring/*.py --share 0.05         # a seeded sample of each

A copy of the tracked files in build/mutants is changed, never the tree. The table has, of each module, how many
mutants there are, were tried, and survived; each survivor is shown by the line that it changes. The checks of array
shapes are off, so that what kills a mutant is a test.
"""

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

PROJECT = Path(__file__).resolve().parents[1]
COPY = PROJECT / "build" / "mutants" / "tree"
SETTINGS = """
[tool.mutmut]
source_paths = ["core"]
only_mutate = ["{module}"]
also_copy = ["data", "pages", "tests", "pyproject.toml", "app.py"]
pytest_add_cli_args_test_selection = ["{tests}"]
pytest_add_cli_args = ["-o", "addopts=-q --strict-markers", "-m", "not slow and not browser", "-p", "no:cacheprovider"]
timeout_constant = 5.0
"""
SURVIVED = 0  # the exit status of tests that noticed nothing


@dataclass(frozen=True)
class Tried:
    """A module's mutants: how many there are, how many were tried, and the changed lines of those that survived."""

    module: str
    mutants: int
    tried: int
    survivors: tuple[str, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 1 where fewer than --least of the tried mutants were killed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", help="files of core; default: those that differ from HEAD")
    parser.add_argument("--share", type=float, default=1.0, help="of each module's mutants, drawn with --seed")
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--least", type=float, default=0.9, help="share that has to be killed")
    asked = parser.parse_args(arguments)
    copy_tree()
    results = []
    for module in asked.modules or changed_modules():
        results.append(tried(module, asked.share, asked.seed))
        show(results[-1])
    total = sum(result.tried for result in results)
    killed = total - sum(len(result.survivors) for result in results)
    print(f"{killed} of {total} mutants killed")
    return int(killed < asked.least * total)


def changed_modules() -> list[str]:
    """Files of core that differ from HEAD."""
    lines = _output("git", "diff", "--name-only", "--diff-filter=d", "HEAD", "--", "core").splitlines()
    return [line for line in lines if line.endswith(".py")]


def copy_tree() -> None:
    """Tracked files as they are now, in COPY."""
    shutil.rmtree(COPY, ignore_errors=True)
    for name in _output("git", "ls-files").splitlines():
        if (PROJECT / name).is_file():
            (COPY / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(PROJECT / name, COPY / name)


def tests_of(module: str) -> str:
    """The test file of a module, or the folder of its room's tests."""
    path = Path(module)
    file = Path("tests", *path.parts[1:-1], f"test_{path.stem}.py")
    return str(file if (PROJECT / file).is_file() else file.parent)


def tried(module: str, share: float, seed: int) -> Tried:
    """The module's mutants, or a share of them, on its tests."""
    text = (PROJECT / "pyproject.toml").read_text(encoding="utf-8")
    settings = text + SETTINGS.format(module=module, tests=tests_of(module))
    (COPY / "pyproject.toml").write_text(settings, encoding="utf-8")
    shutil.rmtree(COPY / "mutants", ignore_errors=True)
    _mutmut("run", "--max-children", "1", "core.no such mutant")  # makes them, and times the tests
    record = COPY / "mutants" / f"{module}.meta"
    names = sorted(json.loads(record.read_text())["exit_code_by_key"]) if record.is_file() else []
    if not names:
        return Tried(module, 0, 0, ())
    chosen = np.random.default_rng(seed).choice(names, max(1, round(share * len(names))), replace=False).tolist()
    said = _mutmut("run", "--max-children", "1", *chosen)
    statuses = json.loads(record.read_text())["exit_code_by_key"]
    if all(statuses[name] is None for name in chosen):
        print(f"{module}: could not be tried on {tests_of(module)}:\n{said[-1500:]}", file=sys.stderr)
        return Tried(module, len(names), 0, ())
    survivors = [name for name in chosen if statuses[name] == SURVIVED]
    return Tried(module, len(names), len(chosen), tuple(_change(name) for name in survivors))


def show(result: Tried) -> None:
    """A line, the survivors below it."""
    print(f"{result.module}: {result.mutants} mutants, {result.tried} tried, {len(result.survivors)} survived")
    for survivor in result.survivors:
        print(f"    {survivor}", flush=True)


def _change(name: str) -> str:
    lines = _mutmut("show", name).splitlines()
    return f"{name.rpartition('.')[2]}: " + " ".join(line.strip() for line in lines if line[:2] in ("- ", "+ "))


def _mutmut(*arguments: str) -> str:
    command = [sys.executable, "-m", "mutmut", *arguments]
    return subprocess.run(command, cwd=COPY, capture_output=True, text=True, check=False).stdout


def _output(*command: str) -> str:
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    sys.exit(main())
