"""The sources as trees, each read once in a process: a dozen tests look at all of them, which takes 2 s to read."""

import ast
from functools import cache
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]


@cache
def tree_of(file: Path) -> ast.Module:
    """Not to be changed: others see it too."""
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def nodes_of(file: Path) -> tuple[ast.AST, ...]:
    """All nodes of a file, as ast.walk gives them."""
    return tuple(ast.walk(tree_of(file)))


@cache
def files_of(*folders: str) -> tuple[Path, ...]:
    """The Python files in folders of the project, in order."""
    return tuple(file for folder in folders for file in sorted((PROJECT / folder).rglob("*.py")))
