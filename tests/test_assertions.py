"""Every test can fail by an assertion, and what tests take of core's private names is listed with its reason."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sources import files_of, nodes_of

TESTS = [file for file in files_of("tests") if "node_modules" not in file.parts]
# Of libraries (`wait_for` is a locator's), and `tried`: it raises what is neither an answer nor a refusal of a reader.
ASSERTING = {"raises", "warns", "expect", "fail", "run_state_machine_as_test", "wait_for", "tried"}

STEP = "a step with an oracle of its own, which the whole would hide"
STATE = "what a process keeps, looked at or emptied between tests"
FAULT = "where a fault is put, or the process beside it is met"
TABLE = "every entry of a table is met"
PRIVATE = {
    "_alphas": STEP, "_as_change": STEP, "_balanced": STEP, "_bent": STEP, "_calibrated": STEP,
    "_class_weights": STEP, "_each_disabled": STEP, "_figures": STEP, "_folds": STEP, "_hash": STEP, "_heated": STEP,
    "_HeldOut": STEP, "_log_odds": STEP, "_nodes": STEP, "_option": STEP, "_projected": STEP,
    "_exemplar": STEP, "_Maps": STEP, "_grown": STEP, "_of_all": STEP, "_statistics": STEP,
    "_of_forest": STEP, "_quantile": STEP, "_rate": STEP, "_relations": STEP, "_show": STEP, "_spread": STEP,
    "_temperature": STEP, "_to_check": STEP, "_unbent": STEP, "_why_kept": STEP, "_zipped": STEP,
    "_in_drawn_order": STEP, "_checked": STEP, "_checkpoints_under": STEP, "_every": STEP, "_input": STEP,
    "_levelled": STEP, "_ROW": FAULT, "_why_nothing": STEP, "_Rows": STEP, "_rows_of": STEP,
    "_newest": STEP, "_ordered": STEP, "_database": STATE, "_FOREIGN": STATE, "_runs": STATE, "_take": STATE,
    "_warn": STATE, "_hints": STATE, "_KNOWN": STATE, "_about": STEP, "_labels": STEP, "_over_inputs": STEP,
    "_bytes": STEP, "_folder": STEP, "_size": STEP,
    "_cluster": FAULT, "_connect": FAULT, "_save": FAULT,
    "_BUILDERS": TABLE, "_NAME": TABLE, "_PAST": TABLE, "_PAYLOADS": TABLE, "_WRITERS": TABLE,
}  # fmt: skip


def functions(file: Path) -> Iterator[ast.FunctionDef]:
    return (node for node in nodes_of(file) if isinstance(node, ast.FunctionDef))


def calls_of(function: ast.FunctionDef) -> set[str]:
    """The last word of everything that it calls."""
    nodes = [node.func for node in ast.walk(function) if isinstance(node, ast.Call)]
    return {node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "") for node in nodes}


@pytest.mark.thorough
def test_every_test_asserts_something_itself_or_by_a_function_of_the_tests():
    """By name: a function counts that asserts, or that calls one that does, wherever it stands."""
    calls, asserting, tests = defaultdict(set), set(ASSERTING), set()
    for file in TESTS:
        for function in functions(file):
            calls[function.name] |= calls_of(function)
            asserting |= {name for name in calls[function.name] if name.startswith("assert_")}
            if any(isinstance(node, ast.Assert) for node in ast.walk(function)):
                asserting.add(function.name)
            if function.name.startswith("test_"):
                tests.add(function.name)
    for _ in range(3):
        asserting |= {name for name, called in calls.items() if called & asserting}
    assert len(tests) > 2500
    assert tests <= asserting, tests - asserting


def taken(file: Path) -> Iterator[str]:
    """Private names of core and pages in a file of tests: imported, or of an imported module or class."""
    imported = {}
    for node in nodes_of(file):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("core", "pages"):
            imported |= {name.asname or name.name: name.name for name in node.names}
    yield from (name for name in imported.values() if name.startswith("_") and not name.startswith("__"))
    for node in nodes_of(file):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            root = node.value
            if isinstance(root, ast.Name) and root.id in imported:
                yield node.attr


def test_private_names_that_tests_take_have_a_reason_each():
    names = {name for file in TESTS for name in taken(file)}
    assert len(names) > 30
    assert names <= set(PRIVATE), names - set(PRIVATE)
