"""Rooms of core whose modules load when they are used: all are listed, none comes in unasked, threads may race."""

import ast
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path

import pytest

from tests.sources import PROJECT, files_of, nodes_of, tree_of

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


@pytest.mark.thorough
def test_a_room_loads_nothing_by_itself():
    names = [".".join(room.relative_to(PROJECT).parts) for room in ROOMS]
    script = (
        f"import sys, importlib; [importlib.import_module(name) for name in {names}]\n"
        "print(sorted({'torch', 'numpy', 'pandas', 'scipy'} & set(sys.modules)))\n"
        "from core import scoring; print(scoring.influence.__name__)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=PROJECT)
    assert done.stdout.split("\n")[:2] == ["[]", "core.scoring.influence"]


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


@cache
def names_of(module: Path) -> set[str]:
    """What a module has at its top: definitions, assignments and imports."""
    names: set[str] = set()
    for node in nodes_of(module):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        names |= {getattr(node, "name", "")} if isinstance(node, ast.FunctionDef | ast.ClassDef) else set()
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
    return names


def parts_of(node: ast.expr) -> list[str]:
    """`studies.attention.measures.observe` by its names; [] of what is no such chain."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    return [node.id, *names] if isinstance(node, ast.Name) else []


def is_there(names: list[str]) -> bool:
    """Whether rooms, rooms in them and their modules have what a chain names, as far as their module's top."""
    place = PROJECT / "core"
    for number, name in enumerate(names):
        if (place / name / "__init__.pyi").exists() and number + 1 < len(names):
            place = place / name
        elif number and (place / f"{name}.py").exists():
            return number + 1 == len(names) or names[number + 1] in names_of(place / f"{name}.py")
        else:
            return (place / name).is_dir()
    return True


@pytest.mark.parametrize("folder", ["core", "pages", "data", "tests"])
def test_what_is_named_in_a_room_is_there(folder):
    """`capture.running.run`: without an import of its own, a wrong name would be seen only when it is used."""
    rooms, missing = {room.name for room in (PROJECT / "core").iterdir() if (room / "__init__.py").exists()}, []
    for file in files_of(folder):
        froms = [node for node in tree_of(file).body if isinstance(node, ast.ImportFrom) and node.module == "core"]
        mine = {alias.name for node in froms for alias in node.names if alias.asname is None} & rooms
        for node in nodes_of(file):
            names = parts_of(node) if isinstance(node, ast.Attribute) else []
            if len(names) > 2 and names[0] in mine and not is_there(names):
                missing.append(f"{file.relative_to(PROJECT)}:{node.lineno} {'.'.join(names)}")
    assert not missing


def test_a_wrong_name_in_a_room_is_found():
    assert is_there(["capture", "running", "run"])
    assert is_there(["studies", "attention", "measures", "observe"])
    for wrong in (
        "capture.running.nothing",
        "capture.nothing.run",
        "studies.attention.measures.nowhere",
        "studies.attention.nothing.run",
        "studies.nothing.measures.run",
    ):
        assert not is_there(wrong.split(".")), wrong
