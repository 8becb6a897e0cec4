"""The database in a folder that is mounted read-only: one message in the terminal and on pages."""

import shutil

import pytest

from core.store.database import Database
from tests.mounts import needs_mounts, with_read_only
from tests.store.test_database import run_python

pytestmark = needs_mounts
OPEN = """
import sys
from pathlib import Path
from core.errors import StoreError
from core.store.backup import restore
from core.store.database import Database
for act in (lambda: Database(sys.argv[1]), lambda: restore(sys.argv[2], Path(sys.argv[1]))):
    try:
        act()
    except StoreError as error:
        print(error)
"""
KILLED = """
import os, sys
from core.store.database import Database
with Database(sys.argv[1]).write() as cursor:
    cursor.execute("INSERT INTO study_row VALUES ('r', 1, '{}')")
os._exit(0)
"""
PAGES = """
import sys
from streamlit.testing.v1 import AppTest
import pages.parts.shell.shell as shell
from tests.pages.opening import switched
for name in ("annotate", "maps/maps"):
    page = AppTest.from_file(shell.__file__, default_timeout=90)
    page.run()
    switched(page, name).run()
    assert not page.exception, page.exception
    print(*(error.value for error in page.error), sep=" / ")
"""


@pytest.mark.thorough
@pytest.mark.parametrize("state", ["no database", "a database", "a database and its log"])
def test_a_folder_that_is_mounted_read_only_is_one_message(tmp_path, state):
    folder, copy = tmp_path / "data", tmp_path / "copy.duckdb"
    folder.mkdir()
    path = folder / "atlas.duckdb"
    Database(copy).close()
    if state == "a database":
        shutil.copy(copy, path)
    elif state == "a database and its log":
        run_python(KILLED, path)
        assert path.with_name("atlas.duckdb.wal").stat().st_size > 0
    opening, restoring = with_read_only(folder, OPEN, path, copy).splitlines()
    assert opening.startswith(f"The database {path} must be writable; it is read-only.")
    assert "Read-only file system" in restoring or "must be written to a new file" in restoring
    assert path.exists() == (state != "no database")


@pytest.mark.slow  # 5 CPU seconds: two pages in a process of their own
def test_pages_without_the_database_work_and_others_say_it_once(tmp_path):
    (tmp_path / "data").mkdir()
    labels, maps = with_read_only(
        tmp_path / "data", PAGES, ATLAS_DB=str(tmp_path / "data" / "atlas.duckdb")
    ).splitlines()
    assert "must be writable" in labels
    assert " / " not in labels
    assert maps == ""
