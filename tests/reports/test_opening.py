"""Public reports about checkpoints that open wrongly: the right maps, or one sentence."""

import copy
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    AutoTokenizer,
    CanineConfig,
    CanineModel,
    CLIPConfig,
    EncoderDecoderConfig,
    ViTConfig,
    ViTModel,
    Wav2Vec2Config,
    Wav2Vec2Model,
)
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from typer.testing import CliRunner

import core.__main__
from core import notebook
from core.capture.running import capture, predict
from core.capture.selfcheck import run_checks
from core.errors import AtlasError, CheckpointError, InputError
from core.frames.records import place, places
from core.models.checkpoint import Checkpoint
from core.models.opening import open_checkpoint, saved_head
from core.models.present import present_weights, stamp_of
from pages.parts.widgets import context_bar
from tests.capture.conftest import SHARED, SIZES, TEXT, built, byte_level, tiny, wordpiece, writer
from tests.reports.checkpoints import (
    byte_bpe,
    saved,
    sized,
    unigram,
    with_config,
    with_template,
    with_tokenizer,
    with_weights,
)
from tests.robustness.doors import refused

LONG = "the old engine ran all night without a pause " * 30
TWO = ("A cat sat.", "It ran.")


@pytest.fixture
def bert(tmp_path) -> Path:
    return saved(tiny("bert"), tmp_path / "bert")


# ---------------------------------------------------------------- RELKEY, UNREAD: transformers#41170, adapters#372

LAYER = "encoder.layer.0.attention.self"
UNREAD = {
    "relative positions": ({f"{LAYER}.distance_embedding.weight": torch.ones(3, 8)}, "relative positions"),
    "a bottleneck adapter": ({"encoder.layer.0.output.adapters.task.adapter_up.weight": torch.ones(32, 4)}, "adapter"),
    "LoRA that was not merged": ({f"{LAYER}.query.lora_A.default.weight": torch.ones(4, 32)}, "merge_and_unload"),
    "a layer that the config leaves out": ({"encoder.layer.3.output.dense.weight": torch.ones(32, 64)}, "3 layers"),
    "a prefix that was trained": ({"prefix_encoder.embedding.weight": torch.ones(4, 64)}, "adapter"),
    "scales of quantised weights": ({f"{LAYER}.query.weight_scale": torch.ones(32)}, "quantised"),
    "cross attention": ({"encoder.layer.0.crossattention.self.query.weight": torch.ones(32, 32)}, "trained it"),
    "an embedding that nothing adds": ({"embeddings.entity_embeddings.weight": torch.ones(3, 32)}, "entity_embeddings"),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", UNREAD)
def test_weights_of_layers_or_embeddings_that_nothing_reads_are_refused_by_name(bert, name):
    more, said = UNREAD[name]
    message = refused(lambda: open_checkpoint(str(with_weights(bert, more))))
    assert next(iter(more)) in message
    assert said in message


def test_relative_positions_are_refused_where_their_weights_are_missing_too(bert):
    with_config(bert, position_embedding_type="relative_key")
    assert "position_embedding_type" in refused(lambda: open_checkpoint(str(bert)))


@pytest.mark.parametrize("prefix", ["module.", "model.encoder."])
def test_weights_under_other_names_are_said_to_have_them(bert, prefix):  # what DDP and training frameworks save
    weights = load_file(bert / "model.safetensors")
    save_file({f"{prefix}{key}": value for key, value in weights.items()}, bert / "model.safetensors", {"format": "pt"})
    assert f"Remove {prefix!r}" in refused(lambda: open_checkpoint(str(bert)))


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_layers_beyond_the_config_are_refused_in_decoders(tmp_path, family):
    folder = saved(tiny(family), tmp_path / family)
    with_config(folder, **{"n_layer" if family == "gpt2" else "num_hidden_layers": 2})
    assert "2 layers" in refused(lambda: open_checkpoint(str(folder)))


def test_weights_outside_the_layers_are_noted_once_and_masks_and_positions_are_not(tmp_path, bert):
    masked = built("bert", SIZES, encodes=True, head=AutoModelForMaskedLM)
    folder = saved(masked, tmp_path / "masked")
    with_weights(folder, {"bert.embeddings.position_ids": torch.arange(64)[None]})
    opened = open_checkpoint(str(folder))
    assert len(opened.notes) == 1
    assert "outside the embeddings and layers" in opened.notes[0]
    with pytest.warns(UserWarning, match="outside the embeddings and layers") as said:
        notebook.open(folder)
    assert len(said) == 1
    assert open_checkpoint(str(folder), head="language").notes == ()
    old = saved(tiny("gpt2"), tmp_path / "gpt2")
    with_weights(old, {"h.0.attn.bias": torch.ones(1, 1, 8, 8), "h.0.attn.masked_bias": torch.tensor(-1e4)})
    assert open_checkpoint(str(old)).notes == ()


@pytest.mark.thorough
@pytest.mark.parametrize("study", ["features", "development"])  # one keeps its checkpoints, one does not
def test_a_study_prints_what_opening_noted_once_on_standard_error(tmp_path, study):
    masked = built("bert", SIZES, encodes=True, head=AutoModelForMaskedLM)
    folder = str(saved(masked, tmp_path / "masked"))
    cased = json.loads((Path(folder) / "tokenizer.json").read_text())
    cased["normalizer"]["lowercase"] = False
    with_tokenizer(Path(folder), json.dumps(cased), "BertTokenizerFast", unk_token="[UNK]")
    again = [str(shutil.copytree(folder, tmp_path / "later"))] if study == "development" else []
    words = ["study", study, folder, *again, "--text", TEXT[0], "--text", TEXT[1], "--json"]
    for _ in range(2):  # a checkpoint that a worker keeps open is noted for the next job too
        done = CliRunner().invoke(core.__main__.app, words, env={"ATLAS_DB": str(tmp_path / "atlas.duckdb")})
        assert done.exit_code == 0, done.output
        for said in ("outside the embeddings and layers", "would split texts otherwise"):
            assert done.stderr.count(said) == 1 + len(again), done.stderr
        assert f"{folder}: " in done.stderr
        assert json.loads(done.stdout)["rows"]


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_a_checkpoint_without_a_language_models_head_is_said_to_have_none(tmp_path, family):
    """It was told to be saved again, although nothing is wrong with it."""
    folder = saved(tiny(family), tmp_path / family)
    message = refused(lambda: open_checkpoint(str(folder), head="language"))
    assert "was saved without one" in message
    weights = load_file(folder / "model.safetensors")
    save_file({k: v for k, v in weights.items() if "layers.0.mlp" not in k and "layer.0.output" not in k},
              folder / "model.safetensors", {"format": "pt"})  # fmt: skip
    assert "must be in its file" in refused(lambda: open_checkpoint(str(folder), head="language"))


# ---------------------------------------------------------------- LoRA: a folder that holds an adapter alone


def adapter(folder: Path, base: str, weights: dict[str, torch.Tensor], **settings: object) -> Path:
    folder.mkdir()
    told = {"peft_type": "LORA", "base_model_name_or_path": base, "lora_alpha": 8, "r": 4, "task_type": None}
    (folder / "adapter_config.json").write_text(json.dumps(told | settings))
    save_file(weights, folder / "adapter_model.safetensors")
    return folder


def low_rank(path: str, outputs: int, inputs: int) -> dict[str, torch.Tensor]:
    torch.manual_seed(1)
    name = f"base_model.model.{path}"
    return {f"{name}.lora_A.weight": torch.randn(4, inputs), f"{name}.lora_B.weight": torch.randn(outputs, 4)}


@pytest.mark.thorough
@pytest.mark.parametrize("stabilised", [False, True])
@pytest.mark.parametrize(
    ("family", "path", "sizes"),
    [("bert", f"bert.{LAYER}.query", (32, 32)), ("gpt2", "transformer.h.0.attn.c_attn", (96, 32))],
)
def test_a_lora_adapter_is_added_to_the_weights_of_its_base(tmp_path, family, path, sizes, stabilised):
    base = saved(tiny(family), tmp_path / "base")
    weights = low_rank(path, *sizes)
    folder = adapter(tmp_path / "adapter", "somewhere/base", weights, use_rslora=stabilised)
    opened, plain = open_checkpoint(str(folder)), open_checkpoint(str(base))
    a, b = weights.values()
    change = (b @ a) * 8 / (2 if stabilised else 4)
    own = path.partition(".")[2] + ".weight"
    expected = plain.model.get_parameter(own) + (change.T if family == "gpt2" else change)
    torch.testing.assert_close(opened.model.get_parameter(own), expected)
    assert opened.weights_hash != plain.weights_hash
    assert saved_head(str(folder)) == "none"
    assert present_weights(str(folder)) == opened.weights_hash
    assert all(finding.passed for finding in run_checks(opened))


def test_pages_know_the_heads_of_an_adapter_and_notice_a_changed_base(tmp_path):
    base = saved(tiny("bert"), tmp_path / "base")
    folder = adapter(tmp_path / "adapter", "somewhere/base", low_rank(f"bert.{LAYER}.query", 32, 32))
    assert context_bar.heads_of(str(folder)) == context_bar.heads_of(str(base)) != []
    stamp = stamp_of(str(folder))
    with_weights(base, {"new": torch.zeros(1)})
    assert stamp_of(str(folder)) != stamp
    shutil.rmtree(base)
    assert (present_weights(str(folder)), context_bar.heads_of(str(folder))) == (None, [])


def test_a_classification_head_that_was_saved_with_an_adapter_is_used(tmp_path):
    saved(tiny("bert"), tmp_path / "base")
    head = {
        "base_model.model.classifier.weight": torch.randn(3, 32),
        "base_model.model.classifier.bias": torch.randn(3),
    }
    folder = adapter(tmp_path / "adapter", "base", low_rank(f"bert.{LAYER}.value", 32, 32) | head, task_type="SEQ_CLS")
    assert saved_head(str(folder)) == "classifier"
    opened = open_checkpoint(str(folder), head="classifier")
    assert len(opened.labels) == 3
    torch.testing.assert_close(opened.model.classifier.bias, head["base_model.model.classifier.bias"])
    assert predict(opened, [opened.encode(TEXT[0])]).shape == (1, 3)


ADAPTERS = {
    "of another kind": {"peft_type": "IA3"},
    "with DoRA": {"use_dora": True},
    "without a base": {"base_model_name_or_path": None},
    "of a base that is nowhere": {"base_model_name_or_path": "nobody/has-this"},
    "with alpha as a text": {"lora_alpha": "8"},
}


@pytest.mark.parametrize("name", ADAPTERS)
def test_adapters_that_cannot_be_merged_are_refused(tmp_path, name):
    saved(tiny("bert"), tmp_path / "base")
    weights = low_rank(f"bert.{LAYER}.query", 32, 32)
    folder = adapter(tmp_path / "adapter", "base", weights, **ADAPTERS[name])
    refused(lambda: open_checkpoint(str(folder)))


def test_an_adapter_whose_weights_fit_no_weight_is_refused(tmp_path):
    saved(tiny("bert"), tmp_path / "base")
    folder = adapter(tmp_path / "adapter", "base", low_rank(f"bert.{LAYER}.nothing", 32, 32))
    assert "nothing" in refused(lambda: open_checkpoint(str(folder)))


def test_an_adapter_beside_a_model_is_refused_because_it_may_be_merged_already(bert):
    (bert / "adapter_config.json").write_text("{}")
    assert "has been merged" in refused(lambda: open_checkpoint(str(bert)))


# ---------------------------------------------------------------- TOKCLS: transformers#45701, #45812, mellea#947

CL100K = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+"
QWEN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+"
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"
ROBERTA = {"bos_token": "<s>", "eos_token": "</s>", "cls_token": "<s>", "sep_token": "</s>", "pad_token": "<pad>",
           "unk_token": "<unk>", "mask_token": "<mask>"}  # fmt: skip
GPT = {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "unk_token": "<|endoftext|>"}
ALBERT = {
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
    "unk_token": "<unk>",
    "pad_token": "<pad>",
}
WRITTEN = {
    "RobertaTokenizerFast with Lowercase": ("roberta", byte_bpe(lowercase=True), "RobertaTokenizerFast", ROBERTA),
    "GPT2Tokenizer with a cl100k split": ("gpt2", byte_bpe(split=CL100K), "GPT2Tokenizer", GPT),
    "CodeGenTokenizer with digits": ("gpt2", byte_bpe(digits=True), "CodeGenTokenizer", GPT),
    "XLMRobertaTokenizer with Lowercase": ("xlm-roberta", unigram(lowercase=True), "XLMRobertaTokenizer", ROBERTA),
    "CamembertTokenizerFast with Lowercase": ("roberta", unigram(lowercase=True), "CamembertTokenizerFast", ROBERTA),
    "a cased AlbertTokenizerFast": ("albert", unigram(), "AlbertTokenizerFast", ALBERT),
    "OLMo-2 (cl100k, GPT2Tokenizer)": ("olmo2", byte_bpe(split=CL100K), "GPT2Tokenizer", GPT),
    "Qwen2": ("qwen2", byte_bpe(split=QWEN), "Qwen2Tokenizer", GPT),
    "SmolLM (digits, GPT2Tokenizer)": ("llama", byte_bpe(digits=True), "GPT2Tokenizer", GPT),
    "Granite (GPT2Tokenizer, digits)": ("granite", byte_bpe(digits=True), "GPT2Tokenizer", GPT),
    "BLOOM": ("bloom", byte_bpe(split=BLOOM), "BloomTokenizerFast", {**GPT, "add_prefix_space": False}),
    "GPT-2": ("gpt2", byte_bpe(), "GPT2Tokenizer", {**GPT, "add_prefix_space": False}),
}
SAMPLES = ["x = foo(bar) in the House", "NASA paid 31415 and 2024, didn't it?", "Café  42!\nnext", "我喜欢猫。"]
FAMILY_SIZES = {
    "bloom": {"hidden_size": 32, "n_layer": 3, "n_head": 4}, "granite": SHARED, "olmo2": SHARED, "qwen2": SHARED,
    "xlm-roberta": {**SIZES, "pad_token_id": 1},
}  # fmt: skip


def with_classes(folder: Path, name: str) -> tuple[Path, str]:
    family, written, kind, settings = WRITTEN[name]
    if family in ("roberta", "xlm-roberta"):
        written = with_template(written, "<s>", "</s>")
    if family == "albert":
        written = with_template(written, "[CLS]", "[SEP]")
    rows = Tokenizer.from_str(written).get_vocab_size()
    if family in FAMILY_SIZES:
        config = CONFIG_MAPPING[family](**{"vocab_size": rows, "pad_token_id": 0} | FAMILY_SIZES[family])
        AutoModel.from_config(config).save_pretrained(folder)
    else:
        saved(sized(family, rows), folder)
    return with_tokenizer(folder, written, kind, **settings), written


@pytest.mark.thorough
@pytest.mark.parametrize("name", WRITTEN)
def test_texts_are_split_as_tokenizer_json_says_whatever_its_class_is(tmp_path, name):
    folder, written = with_classes(tmp_path / "model", name)
    opened, reference = open_checkpoint(str(folder)), Tokenizer.from_str(written)
    for text in SAMPLES:
        expected = reference.encode(text, add_special_tokens=False).ids
        encoding = opened.encode(text)
        assert [encoding.ids[k] for k in encoding.ordinary] == expected, (text, opened.notes)
    assert opened.encode("the House").first == 0  # special tokens stay


def test_what_tokenizer_config_declares_wins(tmp_path):
    folder = saved(tiny("bert"), tmp_path / "cased")
    cased = json.loads((folder / "tokenizer.json").read_text())
    cased["normalizer"]["lowercase"] = False
    with_tokenizer(folder, json.dumps(cased), "BertTokenizerFast", do_lower_case=True, unk_token="[UNK]")
    opened = open_checkpoint(str(folder))
    assert opened.encode("The Dog").ids == opened.encode("the dog").ids
    rows = Tokenizer.from_str(byte_bpe()).get_vocab_size()
    other = saved(sized("gpt2", rows), tmp_path / "spaced")
    with_tokenizer(other, byte_bpe(), "GPT2Tokenizer", add_prefix_space=True, **GPT)
    opened = open_checkpoint(str(other))
    assert opened.encode("the House").ids == opened.encode(" the House").ids
    assert opened.notes == ()


# ---------------------------------------------------------------- TYPES: guwenbert#11, transformers#1538


@pytest.mark.parametrize("types", [0, 1])
def test_a_pair_has_type_0_throughout_where_the_model_has_one_type(types):
    roberta = built("roberta", {**SIZES, "type_vocab_size": max(types, 1)}, encodes=True)
    assert set(roberta.encode(*TWO).segments) == {0}
    assert {one for one in roberta.encode(*TWO).sentence if one is not None} == {0, 1}
    assert all(finding.passed for finding in run_checks(roberta))
    shown = notebook.open(roberta.model, roberta.tokenizer).show(*TWO)
    assert shown.panes


def test_token_types_are_never_given_to_a_decoder_as_tokens():
    """GPT-2 looks token types up among its tokens, so a tokenizer that names them would change every map."""
    gpt2 = tiny("gpt2")
    before = capture(gpt2, gpt2.encode(TEXT[0])).weights
    gpt2.tokenizer.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
    try:
        np.testing.assert_array_equal(capture(gpt2, gpt2.encode(TEXT[0])).weights, before)
    finally:
        gpt2.tokenizer.model_input_names = ["input_ids", "attention_mask"]


# ---------------------------------------------------------------- POSITIONS: transformers#4153, thai2transformers#73

TABLES = {
    "bert": (SIZES, 32), "roberta": (SIZES, 32), "xlm-roberta": (SIZES, 32), "camembert": (SIZES, 32),
    "xlm-roberta-xl": (SIZES, 32), "data2vec-text": (SIZES, 32), "esm": (SIZES, 32),
    "mpnet": (SIZES, 32), "ibert": (SIZES, 32), "electra": ({**SIZES, "embedding_size": 16}, 32),
    "gpt2": ({"n_embd": 32, "n_layer": 3, "n_head": 4}, 32),
    "opt": ({"hidden_size": 32, "ffn_dim": 64, "num_hidden_layers": 3, "num_attention_heads": 4,
             "word_embed_proj_dim": 32}, 32),
}  # fmt: skip


@pytest.mark.parametrize("family", TABLES)
def test_a_long_text_is_cut_to_the_rows_of_the_position_table(family):
    sizes, length = TABLES[family]
    padded = family in (
        "roberta",
        "xlm-roberta",
        "camembert",
        "xlm-roberta-xl",
        "data2vec-text",
        "esm",
        "mpnet",
        "ibert",
    )
    tokenizer = wordpiece() if family not in ("gpt2", "opt") else byte_level()
    ids = {"pad_token_id": 1 if padded else 0, "bos_token_id": 0, "eos_token_id": 0}
    rows = {"n_positions" if family == "gpt2" else "max_position_embeddings": length + 2 * padded}
    config = CONFIG_MAPPING[family](**ids, **{**sizes, **rows}, vocab_size=len(tokenizer))
    opened = Checkpoint(family, AutoModel.from_config(config).eval(), tokenizer)
    encoding = opened.encode(LONG)
    assert len(encoding) == length
    assert encoding.cut > 0
    with torch.no_grad():
        opened.model(**opened.inputs([encoding]))  # the last position is there


# ---------------------------------------------------------------- NOTEXT: bertviz#118


def images(folder: Path) -> str:
    ViTModel(ViTConfig(**SIZES, image_size=32)).save_pretrained(folder)
    return "pixel_values"


def speech(folder: Path) -> str:
    sizes = {"conv_dim": (8,), "conv_stride": (5,), "conv_kernel": (10,), "num_feat_extract_layers": 1,
             "num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2}  # fmt: skip
    Wav2Vec2Model(Wav2Vec2Config(**SIZES, **sizes)).save_pretrained(folder)
    return "input_values"


def characters(folder: Path) -> str:
    CanineModel(CanineConfig(**SIZES, num_hash_buckets=64, num_hash_functions=2)).save_pretrained(folder)
    return "canine"


def two_towers(folder: Path) -> str:
    text = {**SIZES, "vocab_size": 100}
    AutoModel.from_config(CLIPConfig(text_config=text, vision_config={**SIZES, "image_size": 32})).save_pretrained(
        folder
    )
    return "text_config"


def two_berts(folder: Path) -> str:
    small = CONFIG_MAPPING["bert"](**SIZES, vocab_size=100)
    EncoderDecoderConfig.from_encoder_decoder_configs(small, small).save_pretrained(folder)
    save_file({"encoder.x": torch.ones(2)}, folder / "model.safetensors")
    return "encoder, decoder"


@pytest.mark.parametrize("make", [images, speech, characters, two_towers, two_berts])
@pytest.mark.parametrize("vocabulary", [True, False])
def test_models_that_read_no_text_are_one_sentence(tmp_path, make, vocabulary):
    said = make(tmp_path)
    if vocabulary:
        wordpiece().save_pretrained(tmp_path)
    message = refused(lambda: open_checkpoint(str(tmp_path)))
    assert said in message or (make is characters and "token" in message)


# ---------------------------------------------------------------- NOTEBOOK: transformers#9542, bertviz#80


def test_a_token_without_an_embedding_is_a_sentence():
    gpt2 = writer("gpt2")
    tokenizer = AutoTokenizer.from_pretrained("data/models/atlas-decoder")
    with pytest.raises(CheckpointError, match="resize_token_embeddings"):
        notebook.open(gpt2.model, tokenizer).show("A cat sat.")


def test_a_model_of_images_is_a_sentence_in_a_notebook():
    with pytest.raises(CheckpointError, match="must read text"):
        notebook.open(ViTModel(ViTConfig(**SIZES, image_size=32)), wordpiece())


@pytest.mark.parametrize("left", [1, 3])
def test_heads_that_somebody_pruned_by_hand_are_a_sentence(left):
    bert = tiny("bert")
    attention = bert.model.encoder.layer[1].attention
    for name in ("query", "key", "value"):
        layer = getattr(attention.self, name)
        layer.weight = torch.nn.Parameter(layer.weight[: 8 * left])
        layer.bias = torch.nn.Parameter(layer.bias[: 8 * left])
    attention.self.num_attention_heads, attention.self.all_head_size = left, 8 * left
    attention.output.dense.weight = torch.nn.Parameter(attention.output.dense.weight[:, : 8 * left])
    with pytest.raises(CheckpointError, match=f"layer 2 has {left}"):
        notebook.open(bert.model, bert.tokenizer).show("A cat sat.")


@pytest.mark.parametrize("whole", [True, False])
def test_weights_without_values_are_a_sentence_in_a_notebook(whole):  # low_cpu_mem_usage, device_map
    bert = tiny("bert")
    (bert.model if whole else bert.model.encoder.layer[1].attention.self.query).to("meta")
    with pytest.raises(CheckpointError, match=r'must be in memory; .* is on the device "meta"'):
        notebook.open(bert.model, bert.tokenizer)


def test_a_model_inside_data_parallel_has_the_same_maps():
    bert = tiny("bert")
    expected = notebook.open(bert.model, bert.tokenizer).maps("A cat sat.").weights
    inside = notebook.open(torch.nn.DataParallel(bert.model), bert.tokenizer).maps("A cat sat.").weights
    assert (inside == expected).all()


@pytest.mark.parametrize("given", [5, None, ["a", "b"], b"a cat", ("a cat", None)])
def test_what_is_no_text_is_a_sentence_in_a_notebook(given):
    bert = tiny("bert")
    opened = notebook.open(bert.model, bert.tokenizer)
    for call, texts in ((opened.maps, [given]), (opened.show, [given]), (opened.show, ["A cat.", given or 0])):
        with pytest.raises(InputError, match="text must be a string, and pair a string or None; got"):
            call(*texts)


def test_half_a_character_is_a_sentence():
    bert = tiny("bert")
    with pytest.raises(InputError, match="contains an unpaired surrogate"):
        notebook.open(bert.model, bert.tokenizer).maps("A cat \ud83d sat.")


@pytest.mark.parametrize(("most", "said"), [(2, "the limit is 2"), (-1, None), (0, None), (8.0, None)])
def test_a_limit_of_the_tokenizer_is_kept_or_named(most, said):
    bert = tiny("bert")
    tokenizer = copy.deepcopy(bert.tokenizer)  # other tests have the same one
    tokenizer.model_max_length = most
    opened = notebook.open(bert.model, tokenizer)
    if said:
        with pytest.raises(InputError, match=said):
            opened.maps("A cat sat.")
    else:
        assert len(opened.maps("A cat sat on it.").tokens) == (8 if most == 8.0 else 14)


def test_a_model_in_training_mode_has_no_dropout_in_its_maps():
    bert = tiny("bert")
    expected = notebook.open(bert.model, bert.tokenizer).maps("A cat sat.").weights
    for module in bert.model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.5
    bert.model.train()
    assert (notebook.open(bert.model, bert.tokenizer).maps("A cat sat.").weights == expected).all()
    assert bert.model.training


def test_a_layer_that_was_removed_by_hand_is_a_sentence():
    bert = tiny("bert")
    del bert.model.encoder.layer[1]
    with pytest.raises(CheckpointError, match=r"in bert .* only 2 of the 3 layers do so"):
        notebook.open(bert.model, bert.tokenizer).maps("A cat sat.")


# ---------------------------------------------------------------- CJK: bertviz#6, #40, flashtext#113


@pytest.mark.parametrize(
    ("text", "phrase", "spans"),
    [
        ("我喜欢猫和狗。", "我", [(0, 1)]),
        ("我喜欢猫和狗。", "喜欢", [(1, 3)]),
        ("熊猫看猫", "猫", [(1, 2), (3, 4)]),
        ("彼は猫を見た。", "見た", [(4, 6)]),
        ("ฉันรักแมว", "รัก", [(3, 6)]),
        ("ກິນເຂົ້າ", "ກິນ", [(0, 3)]),
        ("고양이를 봤다", "고양이", [(0, 3)]),
        ("AI技術です", "AI", [(0, 2)]),
        ("the cat and concatenate", "cat", [(4, 7)]),
        ("naïve café", "caf", []),
        ("กี่", "ก", []),  # a consonant without its vowel sign
        ("don't", "n't", []),
    ],
)
def test_words_of_scripts_without_spaces_are_found_by_characters(text, phrase, spans):
    assert places(text, phrase) == spans


def test_a_character_that_occurs_twice_asks_which():
    with pytest.raises(AtlasError, match="2 times"):
        place("熊猫看猫", "猫")
    assert place("熊猫看猫", "猫#2") == (3, 4)


# ---------------------------------------------------------------- BYTES: ecco#51, captum#1360, inseq#301


def test_a_piece_of_a_character_is_named_by_the_character_and_its_part():
    encoding = tiny("gpt2").encode("我 Ł 😂d")
    assert encoding.tokens[1:4] == ("我", "我[2/3]", "我[3/3]")
    assert {"Ł", "Ł[2/2]", "😂", "😂[4/4]", "d"} <= set(encoding.tokens)
    assert not any("\ufffd" in token for token in encoding.tokens)


def test_a_character_that_was_cut_is_named_by_its_bytes():
    encoding = tiny("gpt2").encode("我我", max_length=6)
    assert encoding.tokens[-2:] == ("<0xE6>", "<0x88>")


# ---------------------------------------------------------------- small: offsets, causality, variants, NaN


def test_offsets_that_hold_a_space_are_those_of_the_word(tmp_path):
    """tokenizers leaves the space in the offsets of a piece where trim_offsets is false."""
    opened = built("bert", SIZES, encodes=True)
    whole = json.loads(byte_bpe())
    whole["post_processor"] = {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0],
                               "trim_offsets": False, "add_prefix_space": False}  # fmt: skip
    folder = with_tokenizer(saved(sized("roberta", 420), tmp_path / "r"), json.dumps(whole), "PreTrainedTokenizerFast",
                            **ROBERTA)  # fmt: skip
    opened = open_checkpoint(str(folder))
    encoding = opened.encode("the old engine", "ran all night")
    texts = {source[slice(*span)] for source, sentence in ((encoding.text, 0), (encoding.pair, 1))
             for span, own in zip(encoding.offsets, encoding.sentence, strict=True) if own == sentence}  # fmt: skip
    assert not any(text != text.strip() for text in texts)


CAUSALITY = {
    "a BERT that is a decoder": ("bert", {**SIZES, "is_decoder": True}, True),
    "a RoBERTa that is a decoder": ("roberta", {**SIZES, "is_decoder": True}, True),
    "a Gemma 3 that is bidirectional": (
        "gemma3_text",
        {**SHARED, "head_dim": 8, "sliding_window": 8, "query_pre_attn_scalar": 8, "use_bidirectional_attention": True,
         "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]},
        False,
    ),
    "a Gemma 3": ("gemma3_text", {**SHARED, "head_dim": 8, "query_pre_attn_scalar": 8}, True),
    "a Llama with is_causal false": ("llama", {**SHARED, "is_causal": False}, False),
}  # fmt: skip


@pytest.mark.parametrize("name", CAUSALITY)
def test_causality_is_that_of_the_config(name):
    family, sizes, causal = CAUSALITY[name]
    checkpoint = built(family, sizes, encodes=not causal or family in ("bert", "roberta"))
    assert checkpoint.causal == checkpoint.sets[0].causal == causal
    found = {finding.name: finding for finding in run_checks(checkpoint)}
    assert found["causality"].passed, found["causality"].seen
    maps = capture(checkpoint, checkpoint.encode(LONG, max_length=20))
    for layer, weights in enumerate(maps.weights):
        assert ((weights > 0).all(0) == maps.visible(layer)).all()


def test_a_file_of_one_variant_opens_and_two_are_refused(bert):
    expected = open_checkpoint(str(bert)).model.state_dict()
    (bert / "model.safetensors").rename(bert / "model.fp16.safetensors")
    found = open_checkpoint(str(bert)).model.state_dict()
    assert all(torch.equal(found[name], value) for name, value in expected.items())
    (bert / "model.fp32.safetensors").write_bytes((bert / "model.fp16.safetensors").read_bytes())
    assert "Keep one" in refused(lambda: open_checkpoint(str(bert)))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_weight_that_is_no_number_is_refused_when_a_checkpoint_is_opened(tmp_path, value):
    checkpoint = tiny("bert")
    with torch.no_grad():
        checkpoint.model.encoder.layer[1].attention.self.query.weight[9, 3] = value
    message = refused(lambda: open_checkpoint(str(saved(checkpoint, tmp_path / "nan"))))
    assert f"{LAYER.replace('0', '1')}.query.weight" in message


def test_scores_and_outputs_that_are_no_numbers_name_the_layer_and_the_head():
    """On the CPU, PyTorch's SDPA answers a query that is NaN with 0, so a broken head would look harmless."""
    checkpoint = tiny("bert")
    classifier = Checkpoint("nan", _classifier(), checkpoint.tokenizer)
    with torch.no_grad():
        classifier.model.bert.encoder.layer[1].attention.self.query.weight[9, 3] = float("nan")
    encoding = classifier.encode(TEXT[0])
    for run in (lambda: predict(classifier, [encoding]), lambda: capture(classifier, encoding)):
        with pytest.raises(AtlasError, match="L2H2"):
            run()
    assert not any(finding.passed and "nan" in finding.seen for finding in run_checks(classifier))
    last = Checkpoint("nan", _classifier(), checkpoint.tokenizer)
    with torch.no_grad():
        last.model.bert.encoder.layer[2].output.dense.bias[0] = float("nan")
    with pytest.raises(CheckpointError, match="layer 3"):
        predict(last, [encoding])
    assert not any(finding.passed and "nan" in finding.seen for finding in run_checks(last))


def _classifier() -> torch.nn.Module:
    from transformers import AutoModelForSequenceClassification

    return built("bert", SIZES, encodes=True, head=AutoModelForSequenceClassification).model


def test_why_no_word_is_predicted_is_true():
    """It asked for [MASK] although [MASK] was typed, where the checkpoint has no head that predicts words."""
    from pages.parts.views.ablation import _why_nothing

    bare, masked = tiny("bert"), built("bert", SIZES, encodes=True, head=AutoModelForMaskedLM)
    assert "without a head that predicts words" in _why_nothing(bare, bare.encode("the [MASK] ran"))
    assert "type [MASK]" in _why_nothing(masked, masked.encode("the dog ran"))
