"""README is a door: short, and what it says to type is taken. The docs behind it name every command and every page."""

import re
import shlex

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import core.__main__
from core import config
from pages.parts.shell.page_table import PAGES

README = (config.PROJECT / "README.md").read_text()
DOCS = config.PROJECT / "docs"
TABLE = [line for line in (DOCS / "terminal.md").read_text().splitlines() if line.startswith("| `")]
PROCESSES = [("app",), ("import-database",)]  # start something or say one sentence
SAID = [("hypothesis", what) for what in ("withdraw", "export", "verify")]
NO_ROWS = {("jobs", "cancel"), ("backup",), ("restore",), *PROCESSES, *SAID}  # say one sentence


def leaves(command, path=()):
    """Every command that can be run, with the words that lead to it."""
    if hasattr(command, "commands"):
        for name, below in command.commands.items():
            yield from leaves(below, (*path, name))
    else:
        yield path, command


COMMANDS = dict(leaves(get_command(core.__main__.app)))


def undocumented(paths, lines):
    """Commands that no line of the table names: alone, or in the line that starts with their group."""
    missing = []
    for first, *rest in paths:
        mine = [line for line in lines if re.match(rf"\| `{re.escape(first)}\b", line) or f"`{first} " in line]
        said = {word for line in mine for quoted in re.findall("`([^`]+)`", line) for word in quoted.split()}
        if not mine or not set(rest) <= said:
            missing.append(" ".join((first, *rest)))
    return missing


def test_readme_is_a_door_and_not_the_house():
    assert len(README.splitlines()) <= 110
    for there in ("docs/questions.md", "docs/terminal.md", "docs/glossary.md", "docs/environment.md"):
        assert f"]({there})" in README


def test_every_page_of_the_docs_says_for_whom_it_is_and_is_found_by_a_question():
    pages = sorted(DOCS.glob("*.md"))
    assert [page.name for page in pages if not page.read_text().split("\n\n")[1].startswith("For ")] == []
    asked = (DOCS / "questions.md").read_text()
    assert [page.name for page in pages if page.name != "questions.md" and f"]({page.name})" not in asked] == []


def test_every_page_of_the_app_is_found_by_a_question():
    asked = (DOCS / "questions.md").read_text()
    assert [page.title for page in PAGES if page.name != "start" and f"*{page.title}" not in asked] == []


def test_every_command_and_study_is_in_the_table():
    assert len(COMMANDS) > 20
    assert undocumented(COMMANDS, TABLE) == []


def test_a_missing_one_would_be_seen():
    without = [line for line in TABLE if not line.startswith("| `study ")]
    assert {one.split()[0] for one in undocumented(COMMANDS, without)} == {"study"}
    fewer = [line.replace("`prune`", "") for line in TABLE]
    assert undocumented(COMMANDS, fewer) == ["study prune"]


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_says_what_it_does_and_prints_rows_in_every_form(path):
    found = COMMANDS[path]
    options = {name for parameter in found.params for name in parameter.opts}
    assert found.help
    assert path in NO_ROWS or {"--json", "--csv", "--latex"} <= options
    for parameter in found.params:
        assert parameter.help, parameter.name


def test_what_the_readme_says_to_type_exists():
    typed = re.findall(r"^ +python -m core (.+)$", README, flags=re.MULTILINE)
    assert len(typed) >= 6
    for line in typed:
        words = shlex.split(line)
        path = next(path for path in COMMANDS if tuple(words[: len(path)]) == path)
        known = {name for parameter in COMMANDS[path].params for name in (*parameter.opts, *parameter.secondary_opts)}
        assert {word for word in words if word.startswith("--")} <= known, line


def test_the_environment_variables_it_names_are_read():
    source = (config.PROJECT / "core" / "config.py").read_text()
    for name in set(re.findall(r"ATLAS_[A-Z_]+", README)):
        assert name in source, name


def test_a_wrong_word_is_status_2():
    done = CliRunner().invoke(core.__main__.app, ["study", "nonsense"])
    assert done.exit_code == 2
