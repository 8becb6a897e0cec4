"""Attack the app with inputs that mean harm and print what held: `python -m tests.attack [--json] [--category NAME]`.

Each input is a parametrised test; it holds when nobody got in, nothing stored changed and one sentence was said.
"""

import argparse
import contextlib
import io
import json
import os
import sys

import pytest
from rich.console import Console
from rich.table import Table

CATEGORIES = {
    "secrets and names of who signs in": ("tests/test_sign_in.py",),
    "roles": ("tests/store/test_people.py",),
    "label events and outboxes": ("tests/store/test_labels.py", "tests/survival/test_label_store.py"),
    "label files": ("tests/store/test_label_files.py", "tests/store/test_round_trips.py"),
    "files that are read": ("tests/robustness/test_files.py",),
    "files that are written": ("tests/test_writing.py",),
    "folders and links": ("tests/robustness/test_inside.py",),
    "database files and cursors": ("tests/store/test_database.py", "tests/store/test_earlier_schemas.py"),
    "checkpoints and texts": ("tests/robustness/test_checkpoints.py", "tests/models/test_weights.py"),
}


class Count:
    """Counts the inputs of a run of pytest. tried: those that ran; failed: names of those that did not hold."""

    def __init__(self) -> None:
        self.tried = 0
        self.failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.tried += report.when == "call" and report.outcome != "skipped"
        if report.failed:
            self.failed.add(report.nodeid)


def attacked(files: tuple[str, ...]) -> Count:
    """Every input of these files, tried."""
    count, quiet = Count(), io.StringIO()
    with contextlib.redirect_stdout(quiet):
        pytest.main([*files, "-q", "-p", "no:cacheprovider", "--no-header", "--tb=short"], plugins=[count])
    if count.failed:
        sys.stderr.write(quiet.getvalue())
    return count


def main() -> None:
    """Print {category: {tried, held}}; exit status 1 where something did not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--category", choices=CATEGORIES)
    options = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    names = [options.category] if options.category else list(CATEGORIES)
    counts = {name: attacked(CATEGORIES[name]) for name in names}
    found = {name: {"tried": one.tried, "held": one.tried - len(one.failed)} for name, one in counts.items()}
    if options.json:
        print(json.dumps(found))
    else:
        table = Table("category", "tried", "held", title="Inputs that mean harm")
        for name, one in found.items():
            table.add_row(name, str(one["tried"]), str(one["held"]))
        table.add_row("all", *(str(sum(one[key] for one in found.values())) for key in ("tried", "held")))
        Console().print(table)
    sys.exit(any(one.failed for one in counts.values()))


if __name__ == "__main__":
    main()
