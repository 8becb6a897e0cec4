"""Rooms of core whose modules load when they are used: all are listed, none comes in unasked, threads may race."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent
ROOMS = sorted(stub.parent for stub in (PROJECT / "core").rglob("__init__.pyi"))
SLOW = """import time
time.sleep(0.3)  # the other thread comes in meanwhile
value = 7
"""


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_a_room_lists_all_its_modules(room):
    modules = {file.stem for file in room.glob("*.py")} | {file.parent.name for file in room.glob("*/__init__.py")}
    listed = (room / "__init__.pyi").read_text(encoding="utf-8").split()
    assert set(listed[3::6]) == modules - {"__init__"}


def test_a_room_loads_nothing_by_itself():
    names = [".".join(room.relative_to(PROJECT).parts) for room in ROOMS]
    script = (
        f"import sys, importlib; [importlib.import_module(name) for name in {names}]\n"
        "print(sorted({'torch', 'numpy', 'pandas', 'scipy'} & set(sys.modules)))\n"
        "from core import scoring; print(scoring.runs.__name__)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=PROJECT)
    assert done.stdout.split("\n")[:2] == ["[]", "core.scoring.runs"]


def test_threads_that_use_a_module_first_at_the_same_moment_all_get_it_whole(tmp_path, monkeypatch):
    room = tmp_path / "room_of_a_test"
    room.mkdir()
    (room / "slow.py").write_text(SLOW, encoding="utf-8")
    (room / "__init__.pyi").write_text("from . import slow as slow\n", encoding="utf-8")
    (room / "__init__.py").write_text((PROJECT / "core/capture/__init__.py").read_text(encoding="utf-8"))
    monkeypatch.syspath_prepend(tmp_path)
    import room_of_a_test

    seen, together = [], threading.Barrier(4)

    def use() -> None:
        together.wait()
        seen.append(room_of_a_test.slow.value)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [7] * 4
