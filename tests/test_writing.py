"""A file is whole or not there: whatever happens while it is written, what was there before stays."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from core.errors import AtlasError, InputError, StoreError
from core.writing import replacing, write_whole
from tests.robustness.doors import one_sentence

PROJECT = Path(__file__).resolve().parents[1]


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_content_takes_the_place_and_keeps_the_rights_of_the_file_before(tmp_path):
    file = tmp_path / "deep" / "rows.jsonl"
    write_whole(file, "a")
    file.chmod(0o640)
    write_whole(file, "naïve")
    assert file.read_text() == "naïve"
    assert file.stat().st_mode & 0o777 == 0o640
    assert names(file.parent) == ["rows.jsonl"]


def test_a_link_stays_a_link(tmp_path):
    write_whole(tmp_path / "there", "old")
    (tmp_path / "link").symlink_to(tmp_path / "there")
    write_whole(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there").read_text() == "new"


def looping(folder):
    (folder / "a").symlink_to(folder / "b")
    (folder / "b").symlink_to(folder / "a")
    return folder / "a"


def a_folder(folder):
    (folder / "a").mkdir()
    return folder / "a"


def below_a_file(folder):
    (folder / "a").write_text("")
    return folder / "a" / "b"


def a_pipe(folder):
    os.mkfifo(folder / "a")
    return folder / "a"


PLACES = {
    "a link loop": looping,
    "a folder": a_folder,
    "below a file": below_a_file,
    "a name too long": lambda folder: folder / ("x" * 300),
    "a NUL": lambda folder: folder / "a\0b",
    "a device": lambda folder: Path("/dev/null"),
    "a full device": lambda folder: Path("/dev/full"),
    "a pipe": a_pipe,
    "a kernel file": lambda folder: Path("/proc/version"),
}


@pytest.mark.parametrize("name", PLACES)
def test_places_that_cannot_be_written_are_one_sentence(tmp_path, name):
    place = PLACES[name](tmp_path)
    before = names(tmp_path)
    with pytest.raises(StoreError) as error:
        write_whole(place, "x", StoreError)
    one_sentence(str(error.value))
    assert names(tmp_path) == before


def test_the_longest_name_that_the_system_takes_is_taken(tmp_path):
    write_whole(tmp_path / ("x" * 255), "x")
    assert (tmp_path / ("x" * 255)).read_text() == "x"


def test_an_error_while_it_is_written_keeps_what_was_there(tmp_path):
    file = tmp_path / "rows"
    write_whole(file, "before")
    with pytest.raises(ZeroDivisionError), replacing(file) as part:
        part.write_text(f"half {1 / 0}")
    assert file.read_text() == "before"
    assert names(tmp_path) == ["rows"]


def limited(size: int):
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def test_a_full_disk_keeps_what_was_there(tmp_path):
    """A file-size limit stands for the full disk."""
    file = tmp_path / "rows"
    write_whole(file, "before")
    code = "import sys; from core.errors import AtlasError; from core.writing import write_whole\n"
    code += "try: write_whole(sys.argv[1], 'x' * 100000)\nexcept AtlasError as error: print(error)"
    done = subprocess.run(
        [sys.executable, "-c", code, str(file)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        preexec_fn=lambda: limited(4096),
    )
    assert "disk is full" in done.stdout, done.stderr
    one_sentence(done.stdout)
    assert file.read_text() == "before"
    assert names(tmp_path) == ["rows"]


def test_a_kill_while_it_is_written_keeps_what_was_there(tmp_path):
    file = tmp_path / "rows"
    write_whole(file, "before")
    code = "import os, sys; from core.writing import replacing\n"
    code += "with replacing(sys.argv[1]) as part:\n part.write_text('half'); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", code, str(file)], cwd=PROJECT)
    assert file.read_text() == "before"


def test_an_error_of_another_kind_is_not_renamed(tmp_path):
    with pytest.raises(InputError, match="own words"), replacing(tmp_path / "a", StoreError):
        raise InputError("A sentence in its own words.")
    assert issubclass(InputError, AtlasError)
