"""Every architecture of the installed transformers that has a text config: maps and an ablation, or one error."""

import re

import pytest
from transformers import AutoModel

from core.capture.reach import reach_of
from core.errors import CheckpointError
from core.models.checkpoint import Checkpoint
from tests.families.conformance import TABLE, Outcome, outcome_of, table
from tests.families.tiny import architectures, tiny_config, tokenizer_of

REQUIRED = ("mpnet", "roformer", "rembert", "megatron-bert", "gptj", "codegen", "bloom", "mpt", "xglm")


@pytest.mark.slow  # tiny models of some 470 architectures: 10 minutes of the processor
def test_every_architecture_is_supported_or_refused_in_one_error():
    outcomes = {family: outcome_of(family) for family in architectures()}
    assert {family: outcome.wrong for family, outcome in outcomes.items() if outcome.wrong} == {}
    assert [family for family in REQUIRED if outcomes[family].kind != "full"] == []
    observed = set(re.findall(r"^\| ([\w.-]+) \| yes \|", TABLE.read_text(encoding="utf-8"), re.MULTILINE))
    assert {family for family in observed & set(outcomes) if not outcomes[family].maps} == set()


@pytest.mark.parametrize(
    "family", ["mpnet", "roformer", "xlm", "squeezebert", "openai-gpt", "gpt_neox_japanese", "ibert"]
)
def test_families_outside_the_interface_pass_their_self_check(family):
    assert outcome_of(family) == Outcome(family, True, "disable, zero, fixed patterns, cut edges, gates")


@pytest.mark.thorough
@pytest.mark.parametrize("family", ["zamba", "zaya", "sam3_lite_text_text_model"])
def test_families_with_odd_configs_pass_their_self_check(family):
    """Layers that are tied; keys that are 0 in untrained weights; a text model with the input name of images."""
    assert outcome_of(family).kind == "full"


def test_an_i_bert_that_computes_in_integers_is_refused():
    tokenizer = tokenizer_of("ibert")
    settings = tiny_config("ibert", len(tokenizer))
    settings.quant_mode = True  # its softmax gives integers, so rows do not sum to 1
    model = AutoModel.from_config(settings, attn_implementation="eager").eval()
    with pytest.raises(CheckpointError, match="ibert model does not compute one attention map"):
        reach_of(Checkpoint("integers", model, tokenizer))


@pytest.mark.parametrize("family", ["llava", "clip", "yoso", "rwkv", "pegasus_x", "vits", "dots3_note_text"])
def test_what_has_no_map_of_a_text_is_refused(family):
    outcome = outcome_of(family)
    assert (outcome.kind, outcome.wrong) == ("refused", "")
    assert outcome.why


def test_the_table_names_each_architecture_once_with_its_outcome():
    written = table([Outcome("b", why="no text"), Outcome("a", True, "all", True), Outcome("c", True, why="refused")])
    assert "| a | yes | all operators | yes |  |" in written
    assert "| c | yes | no | whole maps | refused |" in written
    assert "| b | no text |" in written
    assert "| maps and interventions work | 1 |" in written
