"""Words that new users did not understand stay away from pages, the terminal and README."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from core.tasks.glue import sampled
from pages.parts.widgets import pickers
from tests.sources import PROJECT, files_of, nodes_of

UNCLEAR = (
    "beside it",
    "at most an input",
    "weigh rare",
    "turn on measure",
    "turn on compute",
    "1 units",
    "{n} units",
    "1 rows",
    "nothing is stored yet",
    "coming soon",
    "see the code",
)
PIECES = re.compile(r"(?<!word )(?<!part of )\bpieces\b(?! (of a word|of words|\(parts of words\)))", re.IGNORECASE)
NAMES_THE_UNIT = {"pages/parts/views/workbench.py"}  # its help says what pieces are
# Phrases of the former style that must not come back, and the folders that are free of them (more are added).
FORMER = (
    "stands beside", "stand beside", "of one's own", "one's own", "beyond luck", "is none of them", "is none:",
    "is none;", "was asked for", "were asked for", "; seen ", "do the last step again", "mend it", "lets go of",
    "was let go of", "stands in the place of", "nobody was handed", "surely differ", "goes on with it",
)  # fmt: skip
REWRITTEN = (
    "core/labelling", "core/store", "core/jobs", "core/commands", "core/tasks", "core/frames", "core/drawing",
    "core/notebook", "core/tuning", "core/probing", "core/patterns", "core/codebook", "core/capture", "core/scoring",
)  # fmt: skip
BUNDLED = re.compile(r"(?<![\w/-])SST-2(?!-like)[^.|:]{0,40}\bbundled\b|\bbundled\b[^.|:]{0,30}\bSST-2(?!-like)\b")
# a line beside a diagonal is where the eye sees it
ALLOWED = {"core/codebook/sets/bert.py", "core/codebook/sets/gpt2.py"}


@cache
def shown(file: Path) -> list[str]:
    """The texts of a module that are no docstring."""
    bare = {id(node.value) for node in nodes_of(file) if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in nodes_of(file)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare
    ]


@pytest.mark.parametrize("words", UNCLEAR)
def test_unclear_words_stay_away(words):
    files = files_of("pages", "core/commands")
    there = {
        str(file.relative_to(PROJECT))
        for file in files
        for text in shown(file)
        if words in " ".join(text.lower().split())
    }
    assert there <= ALLOWED
    assert words not in (PROJECT / "README.md").read_text(encoding="utf-8").lower()


@pytest.mark.parametrize("folder", REWRITTEN)
def test_phrases_of_the_former_style_stay_away(folder):
    there = {
        f"{file.relative_to(PROJECT)}: {text}"
        for file in files_of(folder)
        for text in shown(file)
        if any(words in " ".join(text.lower().split()) for words in FORMER)
    }
    assert not there


def test_the_former_style_is_recognised(tmp_path):
    file = tmp_path / "old.py"
    file.write_text('raise ValueError(f"A kind is one of {kinds}; {kind} is none of them: choose one.")')
    assert any("is none of them" in text for text in shown(file))


@pytest.mark.parametrize("folder", ["pages", "core/commands"])
def test_pieces_are_pieces_of_words(folder):
    there = {
        f"{file.relative_to(PROJECT)}: {text}"
        for file in files_of(folder)
        for text in shown(file)
        if " " in text and PIECES.search(text)
    }
    assert not [line for line in there if line.split(":")[0] not in NAMES_THE_UNIT]


PAGES = sorted(str(file.relative_to(PROJECT)) for file in PROJECT.glob("docs/**/*.md"))


@pytest.mark.thorough
@pytest.mark.parametrize("file", ["README.md", *PAGES])
def test_the_bundled_rows_are_only_like_a_tasks(file):
    text = " ".join((PROJECT / file).read_text(encoding="utf-8").split())
    assert not BUNDLED.search(text)


def test_bundled_rows_are_named_so_wherever_a_task_is_picked(monkeypatch):
    assert sampled("SST-2: accuracy on MRPC, not SST-2-like twice") == (
        "SST-2-like: accuracy on MRPC-like, not SST-2-like twice"
    )
    monkeypatch.delenv("ATLAS_GLUE", raising=False)
    assert pickers.rows_name("sst2") == "SST-2-like"
    monkeypatch.setenv("ATLAS_GLUE", "/a/folder")
    assert pickers.rows_name("sst2") == "SST-2"


def test_readme_says_what_happens_and_by_whom():
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    assert "does not open a browser" in readme  # .streamlit/config.toml: headless
    assert "labels were made by an AI model" in " ".join(readme.split())
