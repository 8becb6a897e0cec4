"""Compiled modules are kept: 700 modules of ours and 300 rewritten files of tests take 12 CPU seconds to compile.

Each worker of xdist and each process that a test starts would do so anew where PYTHONDONTWRITEBYTECODE is set, as on
many build machines. In a fresh clone workers begin together, so each begins at another place and compiles a part.
"""

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.sources import PROJECT, files_of

# From here on, also in processes that begin here.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.hookimpl(hookwrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """The second worker and later ones import from another place on than the first, which goes from the beginning."""
    worker = getattr(session.config, "workerinput", {"workerid": "gw0", "workercount": 1})
    number = int(worker["workerid"].removeprefix("gw"))
    if number and session.config.args_source is session.config.ArgsSource.TESTPATHS:
        files = [file.relative_to(PROJECT) for file in files_of("tests") if file.name.startswith("test_")]
        names = [".".join(file.with_suffix("").parts) for file in files]
        first = len(names) * number // worker["workercount"]
        for name in (*names[first:], *reversed(names[:first])):
            with suppress(Exception, pytest.skip.Exception):  # it is told where the file itself is collected
                importlib.import_module(name)
    yield
