"""The sources as trees, each read once in a process: a dozen tests look at all of them, which takes 2 s to read."""

import ast
from functools import cache
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]


@cache
def tree_of(file: Path) -> ast.Module:
    """The syntax tree with relative imports as absolute ones. Shared: must not be changed."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    if file.is_relative_to(PROJECT):
        at_the_top = file == PROJECT / "data" / "recipes" / "attention_atlas.py"  # beside `core` in a wheel
        name_imports_from_the_top(tree, () if at_the_top else file.relative_to(PROJECT).parts[:-1])
    return tree


def name_imports_from_the_top(tree: ast.Module, package: tuple[str, ...]) -> None:
    """Replace `from ..scoring import x` in a module of `package` by `from core.scoring import x`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            node.module = ".".join((*package[: len(package) - node.level + 1], *filter(None, [node.module])))
            node.level = 0


@cache
def nodes_of(file: Path) -> tuple[ast.AST, ...]:
    """All nodes of a file, as ast.walk gives them."""
    return tuple(ast.walk(tree_of(file)))


@cache
def files_of(*folders: str) -> tuple[Path, ...]:
    """The Python files in folders of the project, in order."""
    return tuple(file for folder in folders for file in sorted((PROJECT / folder).rglob("*.py")))
