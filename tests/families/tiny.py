"""Tiny random checkpoints of every architecture of transformers, from its config class alone."""

import inspect
from functools import cache
from typing import Any

import torch
from transformers import AutoModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

from core.models.checkpoint import Checkpoint
from core.models.family import family_of
from tests.capture.conftest import FAMILIES as OLD_FAMILIES
from tests.capture.conftest import (
    NEW_FAMILIES,
    SINKS,
    TRANSLATORS,
    built,
    byte_level,
    newer,
    tiny,
    translator,
    wordpiece,
)

LAYERS, HEADS = 4, 4
HYBRIDS = {"glm5_next_text"}  # records with attention in some layers only: statistics of every layer refuse them
_SIZES = (
    (
        32,
        "hidden_size d_model n_embd dim emb_dim embed_dim embedding_size word_embed_proj_dim model_dim lru_width "
        "moe_intermediate_size shared_expert_intermediate_size moe_shared_expert_intermediate_size "
        "expert_ffn_hidden_size ffn_hidden_size entity_emb_size",
    ),
    (
        LAYERS,
        "num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers num_decoder_layers "
        "num_encoder_layers",
    ),
    (
        HEADS,
        "num_attention_heads n_head n_heads num_heads encoder_attention_heads decoder_attention_heads "
        "num_encoder_attention_heads num_decoder_attention_heads attention_heads num_experts num_local_experts "
        "n_routed_experts moe_num_experts linear_num_key_heads linear_num_value_heads "
        "linear_num_heads index_n_heads swa_num_attention_heads",
    ),
    (
        2,
        "num_key_value_heads num_kv_heads num_experts_per_tok num_experts_per_token moe_k moe_topk top_k_experts "
        "swa_num_key_value_heads",
    ),
    (
        8,
        "head_dim attention_head_dim dim_head d_kv global_head_dim swa_head_dim qk_rope_head_dim qk_nope_head_dim "
        "v_head_dim linear_head_dim index_head_dim linear_key_head_dim linear_value_head_dim mamba_d_head "
        "mamba_head_dim mamba_n_heads mamba_num_heads d_head",
    ),
    (
        64,
        "intermediate_size n_inner ffn_dim encoder_ffn_dim decoder_ffn_dim d_ff d_inner hidden_dim feed_forward_size "
        "shared_intermediate_size intermediate_size_mlp dim_ff",
    ),
    (16, "q_lora_rank kv_lora_rank"),
    (1, "n_group topk_group"),
    (512, "n_positions n_ctx max_position_embeddings max_seq_len"),
)
SIZES = {name: size for size, names in _SIZES for name in names.split()}
_MROPE = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 1, 1]}
OVERRIDES: dict[str, dict[str, Any]] = {  # where sizes hang together
    "albert": {"inner_group_num": 2},
    "bamba": {"attn_layer_indices": [1, 3]},
    "chameleon": {"vocabulary_map": {"<image>": 3}},
    "codegen": {"rotary_dim": 4},
    "dbrx": {
        "attn_config": {"kv_n_heads": 2, "clip_qkv": 8.0, "rope_theta": 10000.0},
        "ffn_config": {"ffn_hidden_size": 64, "moe_num_experts": 2, "moe_top_k": 1},
    },
    "dots1": {"n_shared_experts": 1},
    "dots3_note_text": {"num_key_value_heads": HEADS},
    "esm": {"mask_token_id": 4, "pad_token_id": 0},
    "esmc": {"num_key_value_heads": HEADS},
    "cohere_compass_text": {
        "rope_parameters": {
            kind: {"rope_type": "default", "rope_theta": 10000.0} for kind in ("full_attention", "sliding_attention")
        }
    },
    "cosmos3_edge_text": {"rope_parameters": _MROPE},
    "funnel": {"block_sizes": [2, 2], "architectures": ["FunnelModel"]},
    "falcon_h1": {"mamba_d_ssm": 64},
    "gemma3n_text": {"num_kv_shared_layers": 0},
    "glm5_next_text": {"num_key_value_heads": HEADS, "qk_rope_head_dim": 0},
    "gpt_neo": {"attention_types": [[["global", "local"], 2]]},
    "gptj": {"rotary_dim": 4},
    "gradium_phonon_tts": {"flow_head_config": {"condition_dim": 32}},
    "granitemoehybrid": {"layer_types": ["mamba", "attention", "mamba", "attention"]},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1, "use_mamba_kernels": False},
    "lfm2_moe": {"layer_types": ["conv", "full_attention", "conv", "full_attention"]},
    "neomme": {"head_dim": 16, "layer_types": ["full_attention", "sliding_attention"] * 2, "sliding_window": 4},
    "mamba2": {"num_heads": 8, "head_dim": 8, "expand": 2},
    "pocket_tts": {"flow_head_config": {"condition_dim": 32}},
    "qwen4_exp_text": {
        "indexer_n_heads": HEADS,
        "indexer_kv_heads": 1,
        "indexer_head_dim": 8,
        "indexer_budget": 64,
        "indexer_compress_ratio": 4,
    },
    "reformer": {"axial_pos_embds": False},
    "vits": {"speaking_rate": 1e6, "upsample_initial_channel": 16, "flow_size": 16},  # otherwise it speaks for minutes
    "xmod": {"languages": ["en_XX"], "default_language": "en_XX"},
    "zamba": {"layers_block_type": ["linear_attention", "hybrid"] * 2, "attention_head_dim": 16},
    "zamba2": {"layers_block_type": ["mamba", "hybrid"] * 2},
    "zaya": {"num_experts_per_tok": 1},
    **{name: {"rope_parameters": _MROPE} for name in ("qwen2_vl_text", "qwen2_5_vl_text")},
    **{
        name: {"rope_parameters": _MROPE | {"partial_rotary_factor": 1.0}}
        for name in ("glm4v_text", "glm4v_moe_text", "glm_image_text", "glm_ocr_text")
    },
}


def architectures() -> list[str]:
    """The names of every architecture that AutoModel opens and that has a vocabulary or a text config in it."""
    return sorted(name for name in MODEL_MAPPING_NAMES if name in CONFIG_MAPPING and _has_text(CONFIG_MAPPING[name]))


def is_composite(model_type: str) -> bool:
    """Whether a config of this architecture is made of configs of others, as that of a text and a vision model."""
    kind = CONFIG_MAPPING[model_type]
    return bool(getattr(kind, "sub_configs", None)) and not _has_layers(kind)


def _has_layers(config: Any) -> bool:
    """Whether a config has layers of its own, as that of MPT, whose `attn_config` is no model."""
    return bool({"num_hidden_layers", "n_layers"} & set(inspect.signature(config.__init__).parameters))


def _has_text(config: Any) -> bool:
    parts = getattr(config, "sub_configs", None)
    if parts and not _has_layers(config):
        return any("vision" not in name and "audio" not in name for name in parts)
    return any(name.endswith("vocab_size") for name in inspect.signature(config.__init__).parameters)


def tiny_config(model_type: str, vocabulary: int) -> Any:
    """A config of a few layers and heads; as the class makes it if it is composite."""
    kind = CONFIG_MAPPING[model_type]
    if is_composite(model_type):
        return kind()
    parameters = inspect.signature(kind.__init__).parameters
    options: dict[str, Any] = {name: size for name, size in SIZES.items() if name in parameters}
    if "kv_lora_rank" in options:
        options["num_key_value_heads"] = HEADS
    for name, parameter in parameters.items():
        if name.endswith("vocab_size") and isinstance(parameter.default, int | None):
            options[name] = vocabulary
        if name.endswith("_token_id") and isinstance(parameter.default, int):
            options[name] = 0
        if name in ("initializer_range", "init_std"):
            options[name] = 0.2  # wide enough that attention is not uniform
    options |= OVERRIDES.get(model_type, {})
    config = kind(**options)
    if getattr(config, "is_encoder_decoder", False) and getattr(config, "decoder_start_token_id", None) is None:
        config.decoder_start_token_id = 0
    return config


def tokenizer_of(model_type: str) -> Any:
    """A tokenizer that adds no special token for a decoder, one with BERT's template otherwise."""
    family = family_of(model_type)
    return byte_level() if family.causal and not family.translates else wordpiece()


@cache
def tiny_of(model_type: str) -> Checkpoint:
    """A random checkpoint of an architecture. Raises whatever its config or model class does."""
    tokenizer = tokenizer_of(model_type)
    torch.manual_seed(0)
    how = {} if family_of(model_type).interceptable else {"attn_implementation": "eager"}  # as it is opened
    model = AutoModel.from_config(tiny_config(model_type, len(tokenizer)), **how).eval()
    for name, weight in model.named_parameters():
        if weight.ndim == 2 and not weight.any():  # NeoMME's attention adds nothing before it is trained
            torch.nn.init.normal_(weight, std=0.2)
        if name.endswith("qk_norm.temp"):  # ZAYA's keys are 0 before this scale is trained
            torch.nn.init.ones_(weight)
    return Checkpoint(name=f"tiny-{model_type}", model=model, tokenizer=tokenizer)


def tiny_of_record(model_type: str) -> Checkpoint:
    """A random checkpoint of a family with a record: with its windows and shared keys where it has them."""
    if model_type in TRANSLATORS:
        return translator(model_type)
    if model_type == "gpt_oss":
        return built(model_type, SINKS, encodes=False)
    if model_type in NEW_FAMILIES:
        return newer(model_type)
    return tiny(model_type) if model_type in OLD_FAMILIES else tiny_of(model_type)
