"""`python -m core check` and `maps`, as a user types them."""

import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

import numpy as np
import pytest
from typer.testing import CliRunner

from core.__main__ import app, main


@pytest.fixture
def core(monkeypatch):
    """What a command prints and its exit status, from the same `main` in this process."""

    def command(*arguments):
        monkeypatch.setattr(sys, "argv", ["core", *arguments])
        with redirect_stdout(StringIO()) as printed, redirect_stderr(StringIO()) as said:
            try:
                main()
                status = 0
            except SystemExit as end:
                status = end.code or 0
        return subprocess.CompletedProcess(arguments, status, printed.getvalue(), said.getvalue())

    return command


def test_check_prints_every_finding(core):
    done = core("check", "atlas-encoder", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["study"] == "check"
    assert len(found["provenance"]["weights_hash"]) == 64
    assert {row["check"] for row in found["rows"]} >= {"rows sum to 1", "equal to eager"}
    assert all(row["passed"] for row in found["rows"])


@pytest.mark.parametrize(("checkpoint", "first"), [("atlas-encoder", "[CLS]"), ("atlas-decoder", "<|endoftext|>")])
def test_maps_writes_weights_and_tokens(core, tmp_path, checkpoint, first):
    out = tmp_path / "maps.npz"
    done = core("maps", checkpoint, "--text", "The cat sat.", "--pair", "It purred.", "--out", str(out))
    assert done.returncode == 0, done.stderr
    with np.load(out) as saved:
        weights, tokens = saved["weights"], saved["tokens"]
    assert weights.shape[2:] == (len(tokens), len(tokens))
    assert np.allclose(weights.sum(-1), 1, atol=1e-5)
    assert tokens[0] == first


def test_maps_of_a_part_of_an_encoder_decoder_have_the_sources_keys(core, tmp_path):
    out = tmp_path / "cross.npz"
    asked = ["maps", "atlas-translator", "--part", "cross", "--text", "the red dog sees a cat", "--out", str(out)]
    done = core(*asked)
    assert done.returncode == 0, done.stderr
    assert "3 layers x 4 heads x 7 x 7 tokens" in done.stdout
    with np.load(out) as saved:
        assert saved["key_tokens"].tolist() == ["the", "red", "dog", "sees", "a", "cat", "</s>"]
        assert saved["tokens"].tolist() == ["<s>", "ul", "kavo", "zin", "en", "miru", "opata"]  # its own translation
        assert np.allclose(saved["weights"].sum(-1), 1, atol=1e-5)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["maps", "atlas-encoder", "--text", " ", "--out", "x.npz"], "must contain visible text"),
        (["maps", "atlas-encoder", "--text", "a", "--out", "/no/such/folder/x.npz"], "in an existing folder"),
        (["check", "no/such"], "or open one of atlas-decoder"),
        (["maps", "atlas-encoder", "--text", "a", "--part", "cross", "--out", "x.npz"], "one set of heads"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_status_2(core, arguments, sentence):
    done = core(*arguments)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_file_that_ends_in_html_is_a_page_to_explore(tmp_path):
    out = tmp_path / "maps.html"
    words = ["maps", "atlas-encoder", "--text", "The <b>cat</b> sat.", "--words", "--out", str(out), "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    (row,) = json.loads(done.stdout)["rows"]
    assert (row["layers"], row["heads"]) == (6, 6)
    page = out.read_text()
    assert "Content-Security-Policy" in page
    assert "<b>cat</b>" not in page
    assert "--words --out maps.html" in page
    small = CliRunner().invoke(app, [*words[:-1], "--megabytes", "0.1"])
    assert small.exit_code == 0
