"""Which tests share a worker of xdist: those of a file, and files that share what is dear to make.

Where tests of the browser lie in both workers, each starts a chromium and a parent of servers (10 CPU seconds); so do
the trees of all sources (2) and the report of the record (4). `--dist loadfile` asks for tests by file, and gets this.
"""

from functools import cache
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

PROJECT = Path(__file__).resolve().parents[1]
SHARED = {  # what a file names
    "mark.browser": "browser",
    "import serving": "browser",
    "tests.sources": "sources",
    "record_report": "record",
}
FIRST = "browser"  # it waits for pages more than it computes: the other worker has something to do meanwhile


@cache
def scope_of(file: str) -> str:
    """A file's own name, or that of what it shares with others."""
    path = PROJECT / file
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return next((name for word, name in SHARED.items() if word in text), file)


class BySharing(LoadFileScheduling):
    """Whole files, and whole groups of them; the browser's first."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(super()._split_scope(nodeid))

    def _assign_work_unit(self, node: WorkerController) -> None:
        if FIRST in self.workqueue:
            self.workqueue.move_to_end(FIRST, last=False)
        super()._assign_work_unit(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    return BySharing(config, log) if config.getvalue("dist") == "loadfile" else None
