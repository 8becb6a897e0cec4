"""`python -m core heads` and `python -m core study frame-heads`, as a user types them."""

import json
import os
import subprocess
import sys

import pytest

SENTENCE = "The old cook was getting angry about the soup."


def core(*arguments, db=None):
    environment = os.environ | ({"ATLAS_DB": str(db)} if db else {})
    return subprocess.run(
        [sys.executable, "-m", "core", *arguments], capture_output=True, text=True, check=False, env=environment
    )


def test_heads_ranks_every_head_of_one_sentence():
    done = core(
        "heads", "atlas-encoder", "--sentence", SENTENCE, "--target", "angry", "--element", "The old cook", "--json"
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["study"] == "heads"
    assert len(found["rows"]) == 36
    assert [row["rank"] for row in found["rows"]][0] == 1
    assert all(0 <= row["score"] <= 1 and row["places"] > 1 for row in found["rows"])
    assert found["provenance"]["tokens"][0] == "[CLS]"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--target", "furious", "--element", "The old cook"], '"furious" is not in'),
        (["--target", "the", "--element", "The old cook"], ""),
        (["--target", "angry", "--element", "getting angry"], "must not share characters"),
        (["--target", "angry", "--element", "cook", "--direction", "sideways"], "sideways"),
    ],
)
def test_bad_input_is_one_sentence(arguments, sentence):
    done = core("heads", "atlas-encoder", "--sentence", SENTENCE, *arguments)
    if sentence:
        assert done.returncode == 2
        assert sentence in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
    else:
        assert done.returncode == 0, "a word that occurs once is found whatever its case elsewhere"


def test_a_target_that_occurs_twice_must_be_numbered():
    twice = ["heads", "atlas-encoder", "--sentence", "She ran and he ran fast today", "--element", "She", "--target"]
    assert 'write "ran#1"' in core(*twice, "ran").stderr
    assert core(*twice, "ran#2").returncode == 0


def test_a_decoder_says_which_direction_it_cannot_look():
    done = core("heads", "atlas-decoder", "--sentence", SENTENCE, "--target", "angry", "--element", "The old cook")
    assert done.returncode == 2
    assert "later_to_earlier" in done.stderr


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
    done = core(
        "study",
        "frame-heads",
        "atlas-encoder",
        "--sentences",
        str(file),
        "--draws",
        "99",
        "--json",
        db=tmp_path / "a.duckdb",
    )
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
