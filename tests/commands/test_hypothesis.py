"""`hypothesis add|list|withdraw`: what it prints, and one sentence for what it refuses."""

import json

import pytest
from typer.testing import CliRunner

import core.__main__
from core.errors import AtlasError

ADD = ("add", "atlas-encoder", "--head", "L1H1", "--predicate", "offset", "--thought", "sst2:train:20",
       "--judged", "sst2:dev:20")  # fmt: skip


@pytest.fixture
def command(tmp_path):
    def run(*words):
        done = CliRunner().invoke(core.__main__.app, ["hypothesis", *words],
                                  env={"ATLAS_DB": str(tmp_path / "a.duckdb"), "COLUMNS": "300"})  # fmt: skip
        if done.exception and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.stdout

    return run


def test_what_was_registered_is_listed_and_withdrawn_never_deleted(command):
    (added,) = json.loads(command(*ADD, "--set", "offset=first", "--json"))["rows"]
    assert (added["says"], added["batch_number"]) == ("L1H1 looks at the first token", 1)
    command("withdraw", added["hypothesis"], "--note", "a typing error")
    (listed,) = json.loads(command("list", "--json"))["rows"]
    assert listed["withdrawn"]
    assert {**listed, "withdrawn": None} == added
    assert json.loads(command("list", "--checkpoint", "gpt2", "--json"))["rows"] == []


@pytest.mark.parametrize(
    ("words", "why"),
    [((*ADD,), "parameter offset"), ((*ADD, "--set", "offset"), "written like feature=noun"),
     (("test", "nothing"), "is none"), (("withdraw", "nothing"), "is none")],
)  # fmt: skip
def test_what_cannot_be_is_one_sentence(command, words, why):
    with pytest.raises(AtlasError, match=why):
        command(*words)
