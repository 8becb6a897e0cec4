"""Tiny random checkpoints of every family, with real tokenizers made on the spot."""

import string
from functools import cache
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoModel, AutoModelForCausalLM, PreTrainedTokenizerFast
from transformers import configuration_utils as _  # noqa: F401  registers the families
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from core.models.checkpoint import Checkpoint
from core.models.family import family_of

TEXT = [
    "the old engine ran all night without a pause .",
    "nobody in the village heard it stop , did they ?",
    "isn't it strange that a small dog can carry such a heavy bag",
    "She saw the man; he didn't see her.",
]


@cache
def wordpiece() -> PreTrainedTokenizerFast:
    """A lower-cased WordPiece vocabulary with BERT's template; written down, as the trainer breaks ties by chance."""
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = sorted({word for text in TEXT for word in text.lower().replace(".", " ").replace("'", " ").split()})
    letters = [*string.ascii_lowercase, *string.digits, *string.punctuation]
    pieces = [*specials, *letters, *(f"##{letter}" for letter in letters), *words[::2], "can"]  # the others are split
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    pairs = [(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=pairs
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


@cache
def byte_level() -> PreTrainedTokenizerFast:
    """A byte-level BPE vocabulary that adds no special token, like GPT-2's."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=320, special_tokens=["<|endoftext|>"], initial_alphabet=alphabet)
    tokenizer.train_from_iterator(TEXT, trainer)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<|endoftext|>", eos_token="<|endoftext|>")


SIZES = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 64}
ENCODERS = {
    "bert": SIZES,
    "roberta": SIZES,
    "albert": {**SIZES, "embedding_size": 16},
    "electra": {**SIZES, "embedding_size": 16},
    "distilbert": {"dim": 32, "n_layers": 3, "n_heads": 4, "hidden_dim": 64},
    # with layer norms: without them, random weights this wide saturate, and some heads reach no output
    "mobilebert": {**SIZES, "embedding_size": 16, "intra_bottleneck_size": 32, "normalization_type": "layer_norm"},
    "modernbert": SIZES,
    "xlnet": {"d_model": 32, "n_layer": 3, "n_head": 4, "d_inner": 64},
}
DECODERS = {
    "gpt2": {"n_embd": 32, "n_layer": 3, "n_head": 4},
    "opt": {
        "hidden_size": 32,
        "ffn_dim": 64,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "word_embed_proj_dim": 32,
    },
    "llama": {**SIZES, "num_key_value_heads": 2},
    "gpt_neox": SIZES,
    "gpt_neo": {
        "hidden_size": 32,
        "num_layers": 3,
        "num_heads": 4,
        "attention_types": [[["global", "local", "global"], 1]],
    },
}
FAMILIES = [*ENCODERS, *DECODERS]

# of today, in tests of their own (test_families.py): shared key heads, and windows shorter than the inputs
SHARED = {**SIZES, "num_key_value_heads": 2}
WIDE = {**SHARED, "head_dim": 8}
WINDOW = 5  # a causal query's own key and the 4 before; of an encoder 2 on each side
NEW_ENCODERS = {
    "modernbert": {**SIZES, "local_attention": WINDOW - 1, "global_attn_every_n_layers": 2},
    "xlm-roberta": SIZES,
    "eurobert": {**SHARED, "mask_token_id": 0},
    "deberta": {**SIZES, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    "deberta-v2": {**SIZES, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 8},
}
NEW_DECODERS = {
    "falcon": {**SIZES, "multi_query": True},
    "mistral": {**SHARED, "sliding_window": WINDOW},
    "qwen2": {**SHARED, "sliding_window": WINDOW, "use_sliding_window": True, "max_window_layers": 1},
    "qwen3": WIDE,
    "gemma": WIDE,
    "gemma2": {**WIDE, "sliding_window": WINDOW, "query_pre_attn_scalar": 8, "attn_logit_softcapping": 2.0},
    "gemma3_text": {
        **WIDE,
        "sliding_window": WINDOW,
        "query_pre_attn_scalar": 8,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    },
    "phi": SIZES,
    "phi3": {**SHARED, "sliding_window": WINDOW},
    "olmo2": SHARED,
}
SINKS = {**WIDE, "sliding_window": WINDOW, "num_local_experts": 2, "num_experts_per_tok": 1}
NEW_FAMILIES = [*NEW_ENCODERS, *NEW_DECODERS]
# encoder-decoders: 3 encoder and 2 decoder layers; of a BART the two have their own numbers of heads
BART = {
    "d_model": 32,
    "encoder_layers": 3,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
}
T5 = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 3, "num_decoder_layers": 2, "num_heads": 4}
TRANSLATORS = {"bart": BART, "mbart": BART, "marian": BART, "t5": T5, "mt5": T5}


def tiny(model_type: str, *, seed: int = 0) -> Checkpoint:
    """A random checkpoint of a family: 3 layers of 4 heads. Weights are wide enough that attention is not uniform."""
    return built(model_type, {**ENCODERS, **DECODERS}[model_type], encodes=model_type in ENCODERS, seed=seed)


def newer(model_type: str) -> Checkpoint:
    """The same of a family of today; layers that see a window see WINDOW keys."""
    return built(model_type, {**NEW_ENCODERS, **NEW_DECODERS}[model_type], encodes=model_type in NEW_ENCODERS)


@cache
def translator(model_type: str, head: Any = AutoModel) -> Checkpoint:
    """A random encoder-decoder; its decoder starts with [CLS]. head: the class that opens it."""
    ends = {"decoder_start_token_id": 2, "eos_token_id": 3, "pad_token_id": 0, "bos_token_id": 2, "init_std": 0.2}
    tokenizer = wordpiece()
    torch.manual_seed(0)
    sizes = TRANSLATORS[model_type] | ends | {"vocab_size": len(tokenizer)}
    model = head.from_config(CONFIG_MAPPING[model_type](**sizes)).eval()
    return Checkpoint(name=f"tiny-{model_type}", model=model, tokenizer=tokenizer)


def writer(model_type: str) -> Checkpoint:
    """A random decoder with its language head."""
    sizes = {**DECODERS, **NEW_DECODERS, "gpt_oss": SINKS}[model_type]
    return built(model_type, sizes, encodes=False, head=AutoModelForCausalLM)


def built(model_type: str, sizes: dict, *, encodes: bool, seed: int = 0, head: Any = AutoModel) -> Checkpoint:
    tokenizer = wordpiece() if encodes else byte_level()
    options = {"initializer_range": 0.2} | sizes | {"vocab_size": len(tokenizer)}
    for role in ("pad", "bos", "eos", "cls", "sep"):
        options[f"{role}_token_id"] = 0
    torch.manual_seed(seed)
    how = {} if family_of(model_type).interceptable else {"attn_implementation": "eager"}  # as they are opened
    model = head.from_config(CONFIG_MAPPING[model_type](**options), **how).eval()
    return Checkpoint(name=f"tiny-{model_type}", model=model, tokenizer=tokenizer)


@pytest.fixture(scope="module", params=FAMILIES)
def checkpoint(request: pytest.FixtureRequest) -> Checkpoint:
    return tiny(request.param)
