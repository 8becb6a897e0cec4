"""The command that says which families a version of transformers breaks."""

import subprocess
import sys

import pytest

from core.models.family import FAMILIES
from tests.families import __main__ as command
from tests.families.tiny import tiny_of_record


@pytest.mark.thorough
def test_every_record_has_a_tiny_checkpoint_of_its_family():
    assert [family for family in FAMILIES if tiny_of_record(family).family.model_type != family] == []


def test_a_family_that_broke_is_named_with_what_broke(monkeypatch, capsys):
    from transformers.models.bert import modeling_bert

    honest = modeling_bert.eager_attention_forward

    def other(*arguments, **options):
        output, weights = honest(*arguments, **options)
        return output, weights + 0.01  # as if a new version computed its maps in another way

    monkeypatch.setattr(modeling_bert, "eager_attention_forward", other)
    monkeypatch.setattr(sys, "argv", ["families", "bert", "gpt2"])
    assert command.main() == 1
    said = capsys.readouterr().out
    assert "bert             equal to eager: largest difference 1.0e-02" in said
    assert "gpt2             passed" in said
    assert said.strip().endswith("broke: bert")


@pytest.mark.slow  # every family's self-check in a process of its own, half a minute
def test_no_family_is_broken_by_the_version_that_is_installed():
    done = subprocess.run([sys.executable, "-m", "tests.families"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "broke: none" in done.stdout
