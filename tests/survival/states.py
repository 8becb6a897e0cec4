"""States of the file and the disk: the fast tests of the store, each reported by name."""

import subprocess
import sys

from tests.pages.browsing import PROJECT

FILES = (
    *("tests/store/test_database.py", "tests/store/test_earlier_schemas.py", "tests/store/test_full_disk.py"),
    *("tests/store/test_exchange.py", "tests/jobs/test_full_disk.py", "tests/pages/test_trouble_browser.py"),
)


def main() -> dict[str, object]:
    """Second process, newer version, truncated file, corrupt log, earlier schemas, exports, full disk, read-only."""
    command = [sys.executable, "-m", "pytest", *FILES, "-q", "-rA", "-m", "not slow", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith(("PASSED", "FAILED", "ERROR", "SKIPPED"))]
    found = {line.split("::", 1)[-1].split(" - ")[0]: line.split(" ", 1)[0].lower() for line in lines}
    return found | {"passed": done.returncode == 0}
