"""Imports go down only, and tests that are expensive stay few."""

import ast
import graphlib
import importlib
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sources import PROJECT, files_of, nodes_of, tree_of

SOURCES = [*files_of("core", "pages"), PROJECT / "app.py"]


def test_imports_go_down_only():
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert "5 kept, 0 broken" in done.stdout


def test_no_modules_import_each_other_in_a_circle():
    """At their tops: which of two is imported first must not matter. graphlib names the circle."""
    names = {".".join(file.relative_to(PROJECT).with_suffix("").parts): file for file in SOURCES}
    graph = {}
    for name, file in names.items():
        nodes = [n for n in tree_of(file).body if isinstance(n, ast.ImportFrom)]
        wanted = {f"{n.module}.{alias.name}" for n in nodes for alias in n.names} | {str(n.module) for n in nodes}
        graph[name] = wanted & names.keys()
    assert list(graphlib.TopologicalSorter(graph).static_order())


TESTS = sorted((PROJECT / "tests").rglob("test_*.py"))
INTERPRETERS = 36  # files of tests that start a Python of their own: 2 CPU seconds each time, and 5 with torch

BROWSER_WALKS = 8  # tests in a browser by default, 1 to 12 CPU seconds each; others are thorough or slow


def marked(file: Path, marker: str) -> list[str]:
    """Tests of a file that carry a marker, by themselves or with the whole file."""
    tree = tree_of(file)
    of_file = [
        node for node in tree.body if isinstance(node, ast.Assign) and f"mark.{marker}" in ast.unparse(node.value)
    ]
    of_file = [node for node in of_file if ast.unparse(node.targets[0]) == "pytestmark"]
    tests = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    return [
        f"{file.name}::{node.name}"
        for node in tests
        if of_file or any(f"mark.{marker}" in ast.unparse(one) for one in node.decorator_list)
    ]


def test_what_makes_tests_dear_stays_rare():
    """Counted, as a time would depend on the machine; `--cpu-report` says what each test takes."""
    left_out = {test for file in TESTS for mark in ("slow", "thorough") for test in marked(file, mark)}
    workers = [test for file in TESTS for test in marked(file, "processes") if test not in left_out]
    assert len(workers) <= 3, workers
    interpreters = [file.name for file in TESTS if "sys.executable" in file.read_text(encoding="utf-8")]
    assert len(interpreters) <= INTERPRETERS, interpreters
    walks = [test for file in TESTS for test in marked(file, "browser") if test not in left_out]
    assert len(walks) <= BROWSER_WALKS, walks
    fresh = [file.name for file in TESTS if re.search(r"serving\([^)]*fresh=True", file.read_text(encoding="utf-8"))]
    assert len(fresh) <= 1, fresh


@pytest.mark.parametrize("name", ["utils", "helpers", "common", "base", "misc"])
def test_no_module_has_a_name_that_says_nothing(name):
    assert not [file for file in SOURCES if name in file.relative_to(PROJECT).with_suffix("").parts]


@pytest.mark.thorough
def test_imports_inside_functions_say_what_they_cost_at_the_top():
    """docs/decisions/026: a module of core that needs torch is named at the top and loads when it is used."""
    lines = []
    for file in SOURCES:
        text = file.read_text(encoding="utf-8").splitlines()
        functions = [n for n in nodes_of(file) if isinstance(n, ast.FunctionDef)]
        inside = [n for function in functions for n in ast.walk(function) if isinstance(n, ast.Import | ast.ImportFrom)]
        lines += [(f"{file.relative_to(PROJECT)}:{n}", text[n - 1]) for n in {node.lineno for node in inside}]
    assert not [where for where, line in lines if "  # " not in line]


@pytest.mark.thorough
def test_core_imports_its_own_modules_relatively():
    """So that an installed `attention_atlas.core` never reaches for another package named `core`."""
    absolute = []
    for file in files_of("core"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            absolute += [f"{file.relative_to(PROJECT)}:{node.lineno}" for name in names if name.split(".")[0] == "core"]
    assert absolute == []


def test_every_public_function_of_core_says_what_it_does():
    missing = []
    for file in files_of("core"):
        for node in tree_of(file).body:
            public = isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
            if public and not ast.get_docstring(node):
                missing.append(f"{file.relative_to(PROJECT)}:{node.lineno} {node.name}")
    assert not missing


@pytest.mark.parametrize("folder", ["core", "pages", "data"])
def test_every_name_that_is_imported_inside_a_function_is_there(folder):
    missing = []
    for file in files_of(folder):
        for node in nodes_of(file):
            if not isinstance(node, ast.ImportFrom) or (node.module or "").split(".")[0] not in (
                "core",
                "pages",
                "data",
            ):
                continue
            module = importlib.import_module(str(node.module))
            for name in node.names:
                if not hasattr(module, name.name) and not importlib.util.find_spec(f"{node.module}.{name.name}"):
                    missing.append(f"{file.relative_to(PROJECT)}:{node.lineno} {node.module}.{name.name}")
    assert not missing


def test_what_a_docstring_says_is_raised_stands_in_one_form():
    assert not [
        f"{file.relative_to(PROJECT)}:{number}"
        for file in files_of("core")
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1)
        if re.search(r"\bErrors: ", line)
    ], "Raises, in Google's form"


def test_the_table_of_layers_names_every_package():
    page = (PROJECT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = [entry.stem for entry in sorted((PROJECT / "core").iterdir()) if entry.suffix == ".py" or entry.is_dir()]
    rooms = [room for room in rooms if not room.startswith("__")]
    assert not [room for room in rooms if f"`core/{room}`" not in page and f"`core/{room}.py`" not in page]
