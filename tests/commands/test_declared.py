"""A command of a record: what a terminal says becomes the record, and what it leaves out keeps its default."""

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from core.commands.parameters import FORMS, PLACES, of_record
from core.errors import InputError
from core.studies.contract import Flag


@dataclass(frozen=True)
class Options:
    file: Annotated[str, Flag("a file", argument=True)]
    task: Annotated[list[str] | None, Flag("several times")] = None
    limit: Annotated[int, Flag("rows", least=1)] = 100
    quick: Annotated[bool, Flag("in a hurry", name="--quick")] = False


def said(*words, beside=FORMS):
    heard = []

    def do(*told):
        """What it does."""
        heard.append(told)

    app = typer.Typer()
    app.command()(of_record(Options, beside=beside)(do))
    return CliRunner().invoke(app, words, catch_exceptions=True), heard


def test_what_is_said_becomes_the_record():
    done, heard = said("rows.csv", "--task", "rte", "--task", "sst2", "--quick", "--json")
    assert done.exit_code == 0
    assert heard == [(Options("rows.csv", ["rte", "sst2"], 100, True), "json")]


def test_a_command_with_workers_is_told_where():
    done, heard = said("rows.csv", "--workers", "3", beside=FORMS | PLACES)
    assert done.exit_code == 0
    ((options, form, where),) = heard
    assert (options, form, where.workers) == (Options("rows.csv"), "table", 3)


def test_help_has_bounds_and_defaults():
    text = said("--help")[0].output
    assert "What it does." in text
    for word in ("--limit", "--quick", "--latex", "x>=1", "default: 100"):
        assert word in text
    assert "--no-quick" not in text
    assert "--workers" not in text


@pytest.mark.parametrize("words", [("rows.csv", "--limit", "0"), (), ("rows.csv", "--limit", "few")])
def test_what_cannot_be_is_refused(words):
    done, heard = said(*words)
    assert done.exit_code == 2
    assert heard == []


def test_two_forms_are_refused():
    done, heard = said("rows.csv", "--json", "--csv")
    assert isinstance(done.exception, InputError)
    assert heard == []
