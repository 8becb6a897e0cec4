"""Temporary files lie in memory where there is room, and where they always did elsewhere."""

import os
import tempfile
from pathlib import Path

import pytest

from tests import temporary_files


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    """A folder that stands for memory, in a process that was told no other place."""
    monkeypatch.setattr(temporary_files, "MEMORY", tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", "as before")
    monkeypatch.setenv("TMPDIR", "")
    return tmp_path


def test_files_lie_in_a_folder_of_this_users_alone(place, monkeypatch):
    monkeypatch.setattr(temporary_files, "ENOUGH", 1)
    temporary_files.in_memory()
    folder = Path(tempfile.gettempdir())
    assert folder.parent == place
    assert folder.stat().st_mode & 0o777 == 0o700
    assert os.environ["TMPDIR"] == str(folder)


def test_with_too_little_room_nothing_changes(place, monkeypatch):
    monkeypatch.setattr(temporary_files, "ENOUGH", 1 << 60)
    temporary_files.in_memory()
    assert tempfile.tempdir == "as before"


def test_a_place_that_was_said_is_kept(place, monkeypatch):
    monkeypatch.setattr(temporary_files, "ENOUGH", 1)
    monkeypatch.setenv("TMPDIR", str(place))
    temporary_files.in_memory()
    assert tempfile.tempdir == "as before"


def test_a_machine_without_such_a_place_has_no_room(place, monkeypatch):
    monkeypatch.setattr(temporary_files, "MEMORY", place / "none")
    assert temporary_files.room() == 0
