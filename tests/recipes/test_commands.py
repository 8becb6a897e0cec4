"""What model cards and recipes say to type has every argument that the programs ask for, and says what is missing."""

import re
import shlex

import pytest

from core import config
from data.recipes import english, pretrain


@pytest.mark.parametrize("name", [config.ENCODER, config.DECODER])
def test_the_command_of_a_model_card_is_one_that_pretraining_takes(name, monkeypatch):
    card = (config.BUNDLED_MODELS / name / "README.md").read_text()
    typed = shlex.split(re.search(r"`python -m (data\.recipes\.pretrain [^`]+)`", card).group(1))
    monkeypatch.setattr("sys.argv", typed)
    assert pretrain.options().out.name == name  # argparse exits where an argument is missing or unknown


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["test"], "`test` needs --pipeline"),
        (["test", "--pipeline", "somewhere"], "en_ewt-ud-test.conllu"),
        (["train", "--work", "w"], "`train` needs --out"),
    ],
)
def test_the_pipelines_program_says_in_one_sentence_what_it_lacks(given, said, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["english", *given, "--treebank", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        english.main()
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
