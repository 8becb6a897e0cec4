"""SQL that is put together: every part of it is text of the code, a quoted name or a row of question marks."""

import ast
from pathlib import Path

import duckdb
import pytest

from core import config
from core.store.rows import among, quoted

ROOT = Path(config.__file__).parents[1]
FILES = sorted([*(ROOT / "core").rglob("*.py"), *(ROOT / "pages").rglob("*.py")])
RUN = {"execute", "executemany", "read", "sql", "query"}
SAFE = {"quoted", "marks", "among", "int"}


def unsafe(source: str) -> list[str]:
    """Parts of statements in `source` that are neither text of the code nor made by `quoted`, `marks` or `among`."""
    tree, found = ast.parse(source), []
    constants = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    constants |= {  # parts of statements that another module of the store has as a constant
        name.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.level == 1  # of the same folder
        for name in node.names
        if name.name.isupper()
    }
    for node in tree.body:  # in their order: one may be made of those above it
        is_joined = isinstance(node, ast.Assign) and isinstance(node.value, ast.JoinedStr)
        if is_joined and all(_is_safe(part, constants) for part in _parts(node.value)):
            constants |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    for function in [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.Module))]:
        made = constants | _made_safely(function)
        for call in [node for node in ast.walk(function) if isinstance(node, ast.Call) and _runs_sql(node)]:
            found += [ast.unparse(part) for part in _parts(call.args[0]) if not _is_safe(part, made)]
    return sorted(set(found))


def _runs_sql(node: ast.Call) -> bool:
    named = isinstance(node.func, ast.Attribute) and node.func.attr in RUN
    text = named and node.args and any(isinstance(getattr(part, "value", None), str) for part in ast.walk(node.args[0]))
    return bool(text) and isinstance(node.args[0], (ast.JoinedStr, ast.BinOp, ast.Call))


def _parts(node: ast.expr) -> list[ast.expr]:
    """What is put into a statement beside its own text."""
    if isinstance(node, ast.JoinedStr):
        return [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
    if isinstance(node, ast.BinOp):
        return _parts(node.left) + _parts(node.right)
    return [] if isinstance(node, ast.Constant) else [node]


def _is_safe(part: ast.expr, made: set[str]) -> bool:
    if isinstance(part, ast.Call):
        return isinstance(part.func, ast.Name) and part.func.id in SAFE
    return isinstance(part, ast.Name) and part.id in made


def _made_safely(function: ast.AST) -> set[str]:
    """Names that a function assigns from a safe call, alone or side by side."""
    names: set[str] = set()
    for node in ast.walk(function):
        if not isinstance(node, ast.Assign):
            continue
        target = node.targets[0]
        beside = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
        pairs = zip(target.elts, node.value.elts, strict=False) if beside else [(target, node.value)]
        for name, value in pairs:
            if isinstance(value, ast.JoinedStr) and all(_is_safe(part, set()) for part in _parts(value)):
                names |= {each.id for each in ast.walk(name) if isinstance(each, ast.Name)}
            if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in SAFE:
                names |= {each.id for each in ast.walk(name) if isinstance(each, ast.Name)}
    return names


@pytest.mark.parametrize("file", [file for file in FILES if "store" in file.parts], ids=lambda file: file.stem)
def test_no_statement_of_the_store_holds_a_name_that_is_not_quoted(file):
    assert unsafe(file.read_text(encoding="utf-8")) == []


@pytest.mark.thorough
def test_no_statement_outside_the_store_is_put_together():
    strays = [file for file in FILES if "store" not in file.parts and _composes(file.read_text(encoding="utf-8"))]
    assert strays == []


def _composes(source: str) -> bool:
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call) and _runs_sql(node)]
    texts = [ast.unparse(node.args[0]).upper() for node in calls]
    return any("SELECT" in text or "INSERT" in text or "DELETE" in text for text in texts)


@pytest.mark.parametrize(
    "statement",
    [
        'cursor.execute(f"SELECT {column} FROM run")',
        "cursor.execute(f'SELECT \"{column}\" FROM run')",
        'db.read("SELECT * FROM " + table)',
        'db.read("SELECT * FROM {}".format(table))',
        'cursor.execute(f"SELECT * FROM run WHERE run = {run}")',
    ],
)
def test_the_check_sees_what_is_not_quoted(statement):
    assert unsafe(f"def ask(cursor, db, table, column, run):\n    {statement}\n")


def test_a_statement_of_the_module_is_safe_where_all_its_parts_are():
    source = """
ONE = "WITH one AS (SELECT 1)"
TWO = f"{ONE}, two AS (SELECT 2)"
THREE = f"{TWO}, three AS ({asked()})"

def ask(db):
    db.read(f"{TWO} SELECT * FROM two")
    db.read(f"{THREE} SELECT * FROM three")
"""
    assert unsafe(source) == ["THREE"]


@pytest.mark.parametrize(
    "name", ["plain", 'a"b', '"', '""', 'x") SELECT 1; --', "a\nb", "naïve", "'", ";", "\U0001f600", "select"]
)
def test_a_quoted_name_is_one_name(name):
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t ({quoted(name)} INTEGER)")
    assert [row[0] for row in connection.execute("DESCRIBE t").fetchall()] == [name]
    theirs, values = among(name, [1, 2])
    assert connection.execute(f"SELECT count(*) FROM t WHERE {theirs}", values).fetchall() == [(0,)]  # noqa: S608
