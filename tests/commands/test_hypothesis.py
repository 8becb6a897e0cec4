"""`hypothesis add|list|withdraw`: what it prints, and one sentence for what it refuses."""

import json
import re
import shlex

import pytest
from typer.testing import CliRunner

import core.__main__
from core import config
from core.errors import AtlasError
from core.studies.hypotheses.records import CRITERIA

ADD = (
    "add",
    "atlas-encoder",
    "--head",
    "L1H1",
    "--predicate",
    "offset",
    "--thought",
    "sst2:train:20",
    "--judged",
    "sst2:dev:20",
)


@pytest.fixture
def command(tmp_path):
    def run(*words):
        done = CliRunner().invoke(
            core.__main__.app, ["hypothesis", *words], env={"ATLAS_DB": str(tmp_path / "a.duckdb"), "COLUMNS": "300"}
        )
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


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((*ADD,), "parameter offset"),
        ((*ADD, "--set", "offset"), "written like feature=noun"),
        (("test", "nothing"), '"nothing" is unknown'),
        (("withdraw", "nothing"), 'must be given by its ID; got "nothing"'),
    ],
)
def test_what_cannot_be_is_one_sentence(command, words, why):
    with pytest.raises(AtlasError, match=why):
        command(*words)


@pytest.mark.slow  # 15 CPU s: a job of four studies, and all of it again
def test_the_worked_example_of_the_docs_is_what_comes_of_its_commands(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (config.PROJECT / "docs" / "explanation" / "hypotheses.md").read_text(encoding="utf-8")
    typed = [shlex.split(line) for line in re.findall(r"^python -m core hypothesis (.+)$", text, re.MULTILINE)]
    assert [words[0] for words in typed] == ["add", "list", "test", "export", "verify"]
    for words in typed:
        said = command(*words)
    assert said == "crate: 7 criteria are unchanged (tolerance 0.0001).\n"
    (row,) = json.loads(command("list", "--json"))["rows"]
    met = [name for name in CRITERIA if row[name.replace(" ", "_")] == "met"]
    assert met == ["seen", "held out", "explained", "specific", "stable", "transfers"]
    written = " ".join(text.split())
    assert f"(weights {row['weights_hash'][:12]}) attends to the first token on 100 RTE-like examples" in written
    listed = ", ".join(f"*{name}*" for name in met[:-1])
    assert f"meets six of seven criteria ({listed} and *{met[-1]}*)" in written
    assert (row["causal"], "The criterion *causal* was not tested." in written) == ("not tested", True)
