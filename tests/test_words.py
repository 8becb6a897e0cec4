"""Words that new users did not understand stay away from pages, the terminal and README."""

import ast
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[1]
UNCLEAR = ("beside it", "at most an input", "weigh rare", "turn on measure", "1 units", "{n} units")
ALLOWED = {"core/patterns/classes.py"}  # a line beside a diagonal is where the eye sees it


def shown(file: Path) -> list[str]:
    """The texts of a module that are no docstring."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [node.value for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare]  # fmt: skip


@pytest.mark.parametrize("words", UNCLEAR)
def test_unclear_words_stay_away(words):
    files = [*(PROJECT / "pages").rglob("*.py"), *(PROJECT / "core" / "commands").rglob("*.py")]
    there = {
        str(file.relative_to(PROJECT))
        for file in files
        for text in shown(file)
        if words in " ".join(text.lower().split())
    }
    assert there <= ALLOWED
    assert words not in (PROJECT / "README.md").read_text(encoding="utf-8").lower()


def test_readme_says_what_happens_and_by_whom():
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    assert "none opens by itself" in readme  # .streamlit/config.toml: headless
    assert "labels are by an AI model" in " ".join(readme.split())
