"""Every figure of README is one that its command printed; the commands themselves are run again with the slow tests."""

import json
import re

import pytest

from core import config
from tests.readme_figures import COMMANDS, FILE, answer, figures

README = (config.PROJECT / "README.md").read_text(encoding="utf-8")
ON_ONE_LINE = re.sub(r"\s+", " ", README)
KEPT = json.loads(FILE.read_text(encoding="utf-8"))


def test_what_is_kept_is_of_the_commands_that_are_run():
    assert {name: kept["command"] for name, kept in KEPT.items()} == {name: COMMANDS[name] for name in KEPT}


def test_the_head_that_looks_at_the_next_token():
    scores = KEPT["atlas"]["figures"]
    ((_, _, value, n),) = [head for head in scores["next"] if head[:2] == [1, 1]]
    assert value == max(head[2] for head in scores["next"])
    assert f"next token ({value:.2f} of\n   its weight on {n} rows" in README
    assert all(head[2] > 0.5 for head in scores["separator"] if head[0] >= 3)
    assert "all of layers 4 to 6 mostly at [SEP]" in README
    assert all(head[2] > 0.5 for head in scores["first"] if head[0] == 0)


def test_the_lines_of_a_check_and_the_shape_of_maps():
    check, maps = KEPT["check"]["figures"], KEPT["maps"]["figures"]
    words = {6: "Six"}
    assert f"{words[check['rows']]} lines that say `passed`" in README
    assert check["passed"] == check["rows"]
    tokens = maps["tokens"]
    assert f"`{maps['layers']} layers x {maps['heads']} heads x {tokens} x {tokens} tokens in maps.npz`" in README


def test_the_classifier_on_what_it_never_saw():
    checkpoints, heads, inputs = (
        KEPT["train"]["figures"][f"unseen {what}"] for what in ("checkpoints", "heads", "inputs")
    )
    shown = [f"{each['macro_f1']:.2f}, {each['low']:.2f} to {each['high']:.2f}" for each in (heads, inputs)]
    first = f"{checkpoints['macro_f1']:.2f}, 95 % interval {checkpoints['low']:.2f} to {checkpoints['high']:.2f}"
    assert f"checkpoints ({first}), heads ({shown[0]}) and inputs ({shown[1]}) that it never saw" in ON_ONE_LINE
    assert f"of the {checkpoints['maps']:,} bundled maps alone" in ON_ONE_LINE
    guesses = ", ".join(f"{each['identity_f1']:.2f}" for each in (checkpoints, heads, inputs))
    assert f"guessing from the head's name gives: {guesses}" in ON_ONE_LINE


def test_the_accuracy_of_a_fine_tuning_beside_the_constants():
    run = KEPT["finetune"]["figures"]
    rows = f"{run['accuracy']:.2f} on the {run['dev_rows']} bundled SST-2-like dev rows"
    assert f"an accuracy of {rows} beside the constant predictor's {run['baseline']['accuracy']:.2f}" in ON_ONE_LINE


def test_no_figure_between_0_and_1_stands_in_readme_that_no_command_printed():
    """Decimals of a share: those of the figures above, and what the papers print."""
    printed = {f"{number:.2f}" for number in _numbers(KEPT)} | {f"{number:.3f}" for number in _numbers(KEPT)}
    papers = {"0.86"}
    text = re.sub(r"==\S+|`[^`]*`|https?://\S+|^ {4}.*$", "", README, flags=re.MULTILINE)
    assert set(re.findall(r"(?<![\d.])0\.\d+(?![\d.]| GB)", text)) <= printed | papers


def _numbers(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for each in value for number in _numbers(each)]
    return [value] if isinstance(value, float) else []


@pytest.mark.slow  # minutes of training; numbers move in the third place with the machine
@pytest.mark.parametrize("name", sorted(KEPT))
def test_the_commands_still_print_them(name):
    assert list(_numbers(figures(name, answer(COMMANDS[name])))) == pytest.approx(_numbers(KEPT[name]), abs=0.02)
