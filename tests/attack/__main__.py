"""Attack the app with inputs that mean harm and print what held: `python -m tests.attack [--json] [--category NAME]`.

Each input is a parametrised test; it holds when nobody got in, nothing stored changed and one sentence was said.
`--table FILE ...` reads what `--json` printed, of one run or of several with a part of the categories each, and writes
the table in docs/explanation/security.md.
"""

import argparse
import contextlib
import importlib
import io
import json
import os
import pkgutil
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table


def registered() -> dict[str, tuple[str, ...]]:
    """Files of tests, or tests of a file (`file.py::test_name`), by category: every module here may hold some.

    A new kind of attack is a new module of this package with `CATEGORIES`, so that nobody edits the lists of others.
    """
    found: dict[str, tuple[str, ...]] = {}
    for module in sorted(pkgutil.iter_modules([str(Path(__file__).parent)]), key=lambda module: module.name):
        if module.name != "__main__":
            for name, tests in importlib.import_module(f"tests.attack.{module.name}").CATEGORIES.items():
                found[name] = (*found.get(name, ()), *tests)
    return found


CATEGORIES = registered()
GROUPS = {  # names of categories by module
    module.name: list(importlib.import_module(f"tests.attack.{module.name}").CATEGORIES)
    for module in pkgutil.iter_modules([str(Path(__file__).parent)])
    if module.name != "__main__"
}


@dataclass(frozen=True)
class Count:
    """How one category went: inputs that were tried, and how many of them held."""

    tried: int
    held: int


class Outcomes:
    """A plugin of pytest that keeps what became of each input. failed: names of those that did not hold."""

    def __init__(self) -> None:
        self.tried: set[str] = set()
        self.failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.outcome != "skipped":
            self.tried.add(report.nodeid)
        if report.failed:
            self.failed.add(report.nodeid)

    def of(self, tests: tuple[str, ...]) -> Count:
        """The inputs of these files and tests; one whose preparation or end failed did not hold."""
        tried = {
            name for name in self.tried | self.failed if name.split("::")[0] in tests or name.split("[")[0] in tests
        }
        return Count(len(tried), len(tried - self.failed))


def attacked(names: list[str]) -> dict[str, Count]:
    """Every input of these categories, tried in one run of pytest (its hook on types takes one run a process)."""
    outcomes, quiet = Outcomes(), io.StringIO()
    tests = [test for name in names for test in CATEGORIES[name]]
    with contextlib.redirect_stdout(quiet):
        pytest.main(
            [*dict.fromkeys(tests), "-q", "-p", "no:cacheprovider", "--no-header", "--tb=short"], plugins=[outcomes]
        )
    if outcomes.failed or not outcomes.tried:
        sys.stderr.write(quiet.getvalue())
    return {name: outcomes.of(CATEGORIES[name]) for name in names}


def main() -> None:
    """Print {category: {tried, held}}; exit status 1 where something did not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--category", choices=CATEGORIES, action="append", help="only this one; may be repeated")
    parser.add_argument("--table", nargs="+", type=Path, metavar="FILE", help="write the table of the docs from these")
    options = parser.parse_args()
    if options.table:
        write_table([json.loads(file.read_text(encoding="utf-8")) for file in options.table])
        return
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # commands inherit it; a shell's `&` would have it ignored
    counts = attacked(options.category or list(CATEGORIES))
    if options.json:
        print(json.dumps({name: asdict(count) for name, count in counts.items()}))
    else:
        Console().print(_table(counts))
    sys.exit(any(count.held < count.tried or not count.tried for count in counts.values()))


DOCS = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "security.md"
HEADING = "| group (`tests/attack`) | categories | inputs tried | held |\n|---|---|---|---|\n"


def write_table(runs: Sequence[Mapping[str, Mapping[str, int]]]) -> None:
    """Write the counts of these runs, which together must have every category, as the table of the docs."""
    counts = {name: run[name] for name in CATEGORIES for run in runs if name in run}
    if missing := set(CATEGORIES) - set(counts):
        sys.exit(f"These categories were not run: {', '.join(sorted(missing))}. Run them with --category.")
    rows = []
    for group, names in [*GROUPS.items(), ("all", list(CATEGORIES))]:
        tried, held = (sum(counts[name][key] for name in names) for key in ("tried", "held"))
        rows.append(f"| {group} | {len(names)} | {tried:,} | {held:,} |\n")
    before, following, after = DOCS.read_text(encoding="utf-8").partition("\n## Known limits")
    text = before.partition(HEADING)[0].rstrip("\n")
    DOCS.write_text(f"{text}\n\n{HEADING}{''.join(rows)}{following}{after}", encoding="utf-8")


def _table(counts: dict[str, Count]) -> Table:
    table = Table("category", "tried", "held", title="Inputs that mean harm")
    for name, count in counts.items():
        table.add_row(name, str(count.tried), str(count.held))
    table.add_row("all", str(sum(c.tried for c in counts.values())), str(sum(c.held for c in counts.values())))
    return table


if __name__ == "__main__":
    main()
