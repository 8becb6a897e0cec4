"""README is short, and its commands are taken. The docs name every command and every page of the app."""

import re

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import core.__main__
from core import config
from pages.parts.shell.page_table import PAGES

README = (config.PROJECT / "README.md").read_text()
DOCS = config.PROJECT / "docs"
PROCESSES = [("app",), ("import-database",)]  # start something or say one sentence
TABLE = [line for line in (DOCS / "how-to" / "terminal.md").read_text().splitlines() if line.startswith("| `")]
SAID = [("hypothesis", what) for what in ("withdraw", "export", "verify")]
NO_ROWS = {("jobs", "cancel"), ("backup",), ("restore",), *PROCESSES, *SAID}  # say one sentence


def leaves(command, path=()):
    """Every command that can be run and is listed, with the words that lead to it; former names are hidden."""
    if hasattr(command, "commands"):
        for name, below in command.commands.items():
            if not below.hidden:
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


def test_readme_is_short_and_leads_on():
    assert len(README.splitlines()) <= 90
    for there in ("gallery.md", "how-to/index.md", "reference/glossary.md", "reference/environment.md"):
        assert f"](docs/{there})" in README


def test_every_page_of_the_app_is_in_the_table_of_tasks():
    asked = (DOCS / "how-to" / "index.md").read_text()
    assert [page.title for page in PAGES if page.name != "start" and f"*{page.title}" not in asked] == []


def test_every_command_and_study_is_in_the_table():
    assert len(COMMANDS) > 20
    assert undocumented(COMMANDS, TABLE) == []


def test_a_missing_one_would_be_seen():
    without = [line for line in TABLE if not line.startswith("| `study ")]
    assert {one.split()[0] for one in undocumented(COMMANDS, without)} == {"study"}
    fewer = [line.replace("`prune`", "") for line in TABLE]
    assert undocumented(COMMANDS, fewer) == ["study prune"]


@pytest.mark.thorough
@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_says_what_it_does_and_prints_rows_in_every_form(path):
    found = COMMANDS[path]
    options = {name for parameter in found.params for name in parameter.opts}
    assert found.help
    assert path in NO_ROWS or {"--json", "--csv", "--latex"} <= options
    for parameter in found.params:
        assert parameter.help, parameter.name


def test_the_environment_variables_it_names_are_read():
    source = (config.PROJECT / "core" / "config.py").read_text()
    for name in set(re.findall(r"ATLAS_[A-Z_]+", README)):
        assert name in source, name


def test_a_wrong_word_is_status_2():
    done = CliRunner().invoke(core.__main__.app, ["study", "nonsense"])
    assert done.exit_code == 2
