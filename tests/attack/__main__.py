"""Attack the app with inputs that mean harm and print what held: `python -m tests.attack [--json] [--category NAME]`.

Each input is a parametrised test; it holds when nobody got in, nothing stored changed and one sentence was said.
"""

import argparse
import contextlib
import io
import json
import os
import signal
import sys
from dataclasses import asdict, dataclass

import pytest
from rich.console import Console
from rich.table import Table

CATEGORIES = {
    "secrets and names of who signs in": ("tests/test_sign_in.py",),
    "cookies and sessions of who signed in": ("tests/pages/test_sign_in_cookie.py", "tests/test_sign_in_sessions.py"),
    "requests, uploads and connections": ("tests/pages/test_guard.py", "tests/pages/test_connections.py"),
    "what a page sends to a project": ("tests/pages/test_team_doors.py", "tests/labelling/test_assignment_service.py"),
    "archives of maps": ("tests/robustness/test_map_files.py",),
    "clusters": ("tests/jobs/test_cluster_faults.py",),
    "results that ship, and the notebook's widget": ("tests/robustness/test_record.py",),
    "roles": ("tests/store/test_people.py",),
    "label events and outboxes": (
        "tests/store/test_labels.py",
        "tests/store/test_retiring.py",
        "tests/survival/test_label_store.py",
    ),
    "label files": ("tests/store/test_label_files.py", "tests/store/test_round_trips.py"),
    "files that are read": ("tests/robustness/test_files.py",),
    "files that are written": ("tests/test_writing.py",),
    "folders and links": ("tests/robustness/test_inside.py",),
    "database files and cursors": ("tests/store/test_database.py", "tests/store/test_earlier_schemas.py"),
    "arguments of commands": ("tests/commands/test_terminal_inputs.py",),
    "exports and runs that come in": ("tests/store/test_hostile_exports.py", "tests/store/test_exchange.py"),
    "statements that are put together": ("tests/store/test_statements.py",),
    "cells that spreadsheets run": ("tests/drawing/test_csv.py",),
    "results of other weights": ("tests/studies/test_standing.py",),
    "treebanks and FrameNet releases": ("tests/robustness/test_corpora.py", "tests/tasks/test_conllu.py"),
    "kills at system calls": ("tests/survival/test_kills_at_every_call.py",),
    "outboxes of several tabs": ("tests/pages/test_outbox_browser.py",),
    "damaged blocks and backups": ("tests/store/test_damaged_blocks.py", "tests/store/test_backup.py"),
    "disks that fail or are full": ("tests/store/test_failing_disk.py", "tests/store/test_full_disk.py"),
    "jobs cancelled while they store": ("tests/jobs/test_cancel_while_storing.py",),
    "checkpoints and texts": ("tests/robustness/test_checkpoints.py", "tests/models/test_weights.py"),
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

    def of(self, files: tuple[str, ...]) -> Count:
        """The inputs of these files; one whose preparation or end failed did not hold."""
        tried = {name for name in self.tried | self.failed if name.split("::")[0] in files}
        return Count(len(tried), len(tried - self.failed))


def attacked(names: list[str]) -> dict[str, Count]:
    """Every input of these categories, tried in one run of pytest (its hook on types takes one run a process)."""
    outcomes, quiet = Outcomes(), io.StringIO()
    files = [file for name in names for file in CATEGORIES[name]]
    with contextlib.redirect_stdout(quiet):
        pytest.main([*files, "-q", "-p", "no:cacheprovider", "--no-header", "--tb=short"], plugins=[outcomes])
    if outcomes.failed or not outcomes.tried:
        sys.stderr.write(quiet.getvalue())
    return {name: outcomes.of(CATEGORIES[name]) for name in names}


def main() -> None:
    """Print {category: {tried, held}}; exit status 1 where something did not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--category", choices=CATEGORIES)
    options = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # commands inherit it; a shell's `&` would have it ignored
    counts = attacked([options.category] if options.category else list(CATEGORIES))
    if options.json:
        print(json.dumps({name: asdict(count) for name, count in counts.items()}))
    else:
        Console().print(_table(counts))
    sys.exit(any(count.held < count.tried or not count.tried for count in counts.values()))


def _table(counts: dict[str, Count]) -> Table:
    table = Table("category", "tried", "held", title="Inputs that mean harm")
    for name, count in counts.items():
        table.add_row(name, str(count.tried), str(count.held))
    table.add_row("all", str(sum(c.tried for c in counts.values())), str(sum(c.held for c in counts.values())))
    return table


if __name__ == "__main__":
    main()
