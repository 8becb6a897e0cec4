"""`python -m core heads` and `python -m core study frame-heads`, as a user types them."""

import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from core.__main__ import app
from core.errors import InputError

SENTENCE = "The old cook was getting angry about the soup."


def core(*arguments, db=None):
    """A process of its own, as in a terminal."""
    environment = os.environ | ({"ATLAS_DB": str(db)} if db else {})
    return subprocess.run(
        [sys.executable, "-m", "core", *arguments], capture_output=True, text=True, check=False, env=environment
    )


def refusal(*arguments):
    """The sentence a command ends with; `main` prints it and exits with 2."""
    error = CliRunner().invoke(app, ["heads", *arguments]).exception
    assert isinstance(error, InputError)
    return str(error)


@pytest.mark.slow  # 7 CPU seconds, a process with torch; heads are ranked in tests/studies/test_frame_heads.py
def test_heads_ranks_every_head_of_one_sentence():
    done = core(
        "heads", "atlas-encoder", "--sentence", SENTENCE, "--target", "angry", "--element", "The old cook", "--json"
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["study"] == "heads"
    assert len(found["rows"]) == 36
    assert found["rows"][0]["rank"] == 1
    assert all(0 <= row["score"] <= 1 and row["places"] > 1 for row in found["rows"])
    assert found["provenance"]["tokens"][0] == "[CLS]"


@pytest.mark.thorough
def test_bad_input_is_one_sentence_and_exit_status_2():
    done = core("heads", "atlas-encoder", "--sentence", SENTENCE, "--target", "furious", "--element", "The old cook")
    assert done.returncode == 2
    assert '"furious" is not in' in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--target", "angry", "--element", "getting angry"], "must not overlap"),
        (["--target", "angry", "--element", "cook", "--direction", "sideways"], "sideways"),
        (["--target", "angry", "--element", "cook#2"], "number after # must be from 1 to 1"),
    ],
)
def test_what_makes_no_link_is_refused(arguments, said):
    assert said in refusal("atlas-encoder", "--sentence", SENTENCE, *arguments)


def test_a_target_that_occurs_twice_must_be_numbered():
    twice = ["atlas-encoder", "--sentence", "She ran and he ran fast today", "--element", "She", "--target"]
    assert 'Write "ran#1"' in refusal(*twice, "ran")
    assert CliRunner().invoke(app, ["heads", *twice, "ran#2"]).exit_code == 0


def test_a_decoder_says_which_direction_it_cannot_look():
    asked = ["atlas-decoder", "--sentence", SENTENCE, "--target", "angry", "--element", "The old cook"]
    assert "later_to_earlier" in refusal(*asked)


@pytest.mark.slow
def test_the_study_prints_heads_and_who_survives(tmp_path):
    rows = [
        {
            "text": f"The {who} was getting angry today.",
            "target": [[17 + len(who), 22 + len(who)]],
            "elements": [{"name": "Experiencer", "spans": [[0, 4 + len(who)]], "core_set": True}],
        }
        for who in ("cook", "judge", "nurse", "pilot", "clerk", "baker")
    ]
    file = tmp_path / "some.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    asked = ["study", "frame-heads", "atlas-encoder", "--sentences", str(file), "--draws", "99", "--json"]
    done = core(*asked, db=tmp_path / "a.duckdb")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {row["kind"] for row in found["rows"]} == {"summary", "head", "sentence"}
    summary = found["rows"][0]
    assert summary["n"] == 6
    assert summary["draws"] == 99
    heads = [row for row in found["rows"] if row["kind"] == "head"]
    assert len(heads) == 36
    assert all(row["low"] <= row["value"] <= row["high"] for row in heads)
    assert len(found["provenance"]["weights_hash"]) == 64
