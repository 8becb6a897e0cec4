"""Reading and checking of config.json before a model is built. Does not import torch or transformers."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..attention import Head, all_heads
from ..errors import CheckpointError, InputError
from ..reading import read_in

CONFIG = "config.json"
LARGEST_CONFIG = 16 << 20  # bytes
MOST_LAYERS, MOST_HEADS = 1_000, 50_000  # of a model; those of the largest public ones are 126 and 16,128
MOST_CLASSES, LARGEST_SIZE = 100_000, 50_000_000
DEEPEST = 4  # configs within configs

_LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
_HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
_MORE_LAYERS = ("encoder_layers", "decoder_layers", "num_encoder_layers", "num_decoder_layers")
_MORE_HEADS = ("encoder_attention_heads", "decoder_attention_heads", "num_key_value_heads", "num_kv_heads")
_SIZES = (
    "vocab_size", "hidden_size", "d_model", "n_embd", "dim", "embedding_size", "intermediate_size", "d_ff", "d_inner",
    "ffn_dim", "n_inner", "hidden_dim", "head_dim", "d_kv", "max_position_embeddings", "n_positions", "n_ctx",
    "max_seq_len", "type_vocab_size", "encoder_ffn_dim", "decoder_ffn_dim", "attention_window", "sliding_window",
)  # fmt: skip
_WITHOUT_ATTENTION = ("linear_attention", "mamba", "recurrent", "conv", "moe", "mlp")  # kinds of layers of hybrids
_AT_LEAST_ONE = frozenset(
    (*_LAYERS, *_HEADS, "inner_group_num", "head_ratio", "vocab_size", "hidden_size", "d_model", "n_embd")
)


def read_config(folder: Path, name: str) -> dict[str, Any]:
    """Read and check the config.json of a checkpoint.

    Raises CheckpointError if it cannot be read, is not an object, or has an impossible size, class or label.
    """
    try:
        config = json.loads(read_in(folder, CONFIG, most=LARGEST_CONFIG), parse_constant=_constant)
    except (InputError, OSError, ValueError, RecursionError) as error:
        why = " ".join(str(error).split())[:120] or type(error).__name__
        raise CheckpointError(
            f"config.json of {name} cannot be read as JSON ({why}). Save or download the checkpoint again."
        ) from error
    if not isinstance(config, dict):
        raise CheckpointError(
            f"config.json of {name} must be a JSON object; got a {type(config).__name__}. Save the checkpoint again."
        )
    for part in _objects(config, name):
        _check_sizes(part, name)
    _check_names(config, name)
    return config


def layers_in(config: dict[str, Any]) -> int:
    """Return the number of layers in a model config; 0 if the config does not specify it."""
    listed = config.get("layers_block_type")
    named = (config[name] for name in (*_LAYERS, "encoder_layers") if isinstance(config.get(name), int))
    return next(named, min(len(listed), MOST_LAYERS) if isinstance(listed, list) else 0)


def heads_in(config: dict[str, Any]) -> int:
    """Return the number of attention heads per layer in a model config; 0 if the config does not specify it."""
    return next((config[name] for name in (*_HEADS, "encoder_attention_heads") if isinstance(config.get(name), int)), 0)


def all_heads_in(config: dict[str, Any]) -> list[Head]:
    """Return all heads in a model config, layer by layer; for an encoder-decoder, only the heads of the encoder.

    As in `head_sets`, layers of ALBERT hold `inner_group_num` attention layers each, and ConvBERT has one of
    `head_ratio` heads.
    """
    groups, ratio = (_whole(config, name) for name in ("inner_group_num", "head_ratio"))
    layers, heads = layers_in(config) * groups, heads_in(config)
    heads = max(1, heads // ratio) if heads else 0
    return all_heads(layers, heads, _attending_in(config)) if layers * heads <= MOST_HEADS else []


def _whole(config: dict[str, Any], name: str) -> int:
    value = config.get(name, 1)
    return value if isinstance(value, int) and value > 0 else 1


def _attending_in(config: dict[str, Any]) -> tuple[int, ...]:
    """Return the zero-based layers of a hybrid model that have attention according to its config; () if unknown or all.

    Reads the lists of transformers 5, and the older forms of Jamba, Bamba, LFM2, RecurrentGemma, Nemotron-H and
    Qwen3-Next.
    """
    layers = range(layers_in(config))
    kinds, repeated = config.get("layer_types") or config.get("layers_block_type"), config.get("block_types")
    indices = config.get("attn_layer_indices") or config.get("full_attn_idxs")
    pattern, interval = config.get("hybrid_override_pattern"), config.get("full_attention_interval")
    period, offset = config.get("attn_layer_period"), config.get("attn_layer_offset", 0)
    if isinstance(kinds, list) and len(kinds) >= len(layers):
        found = [k for k in layers if kinds[k] not in _WITHOUT_ATTENTION]
    elif isinstance(repeated, list) and repeated:
        found = [k for k in layers if repeated[k % len(repeated)] not in _WITHOUT_ATTENTION]
    elif isinstance(indices, list):
        found = [k for k in layers if k in indices]
    elif isinstance(pattern, str):
        found = [k for k in layers[: len(pattern)] if pattern[k] == "*"]
    elif isinstance(period, int) and period > 0:
        found = [k for k in layers if k % period == offset]
    elif isinstance(interval, int) and interval > 0:
        found = [k for k in layers if (k + 1) % interval == 0]
    else:
        return ()
    return tuple(found) if len(found) < len(layers) else ()


def classifies(config: dict[str, Any]) -> bool:
    """Return whether a model config describes a sequence classifier."""
    return any("SequenceClassification" in kind for kind in config.get("architectures") or ())


def _constant(text: str) -> float:
    if text == "NaN":
        raise ValueError("it has a value NaN")
    return float(text.replace("Infinity", "inf"))  # states of Mamba-like families have no upper limit


def _objects(config: dict[str, Any], name: str) -> Iterator[dict[str, Any]]:
    """Yield the config and the configs of its parts."""
    waiting = [(config, 0)]
    while waiting:
        part, depth = waiting.pop()
        yield part
        for key, value in part.items():
            if isinstance(value, dict) and (key.endswith("config") or key in ("encoder", "decoder")):
                if depth == DEEPEST:
                    raise _wrong(name, key, f"be at most {DEEPEST} configs deep", value)
                waiting.append((value, depth + 1))


def _check_sizes(config: dict[str, Any], name: str) -> None:
    layers = [_size(config, key, MOST_LAYERS, name) for key in (*_LAYERS, *_MORE_LAYERS)]
    heads = [_size(config, key, MOST_HEADS, name) for key in (*_HEADS, *_MORE_HEADS)]
    for key in ("inner_group_num", "head_ratio"):  # by which ALBERT multiplies layers, and ConvBERT divides heads
        if isinstance(config.get(key), list):
            raise _wrong(name, key, "be a whole number", config[key])
    deep = max(layers) * max(1, _size(config, "inner_group_num", MOST_LAYERS, name))
    _size(config, "head_ratio", MOST_HEADS, name)
    if deep * max(heads) > MOST_HEADS:
        raise CheckpointError(
            f"A model must have at most {MOST_HEADS:,} heads; config.json of {name} has {deep:,} layers of "
            f"{max(heads):,} heads. Correct config.json, or save the checkpoint again."
        )
    for key in _SIZES:
        _size(config, key, LARGEST_SIZE, name)
    _size(config, "num_labels", MOST_CLASSES, name)
    for key, value in config.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if key.endswith(("_eps", "epsilon")) and value is not None and not (number and 0 <= value <= 1):
            raise _wrong(name, key, "be a number from 0 to 1", value)


def _size(config: dict[str, Any], key: str, most: int, name: str) -> int:
    """Return a size in a model config by its name; 0 if missing, or if layers differ in size."""
    value = config.get(key)
    if value is None or isinstance(value, list):
        return 0
    least = -1 if key in ("sliding_window", "attention_window") else key in _AT_LEAST_ONE
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise _wrong(name, key, f"be a whole number from {int(least)} to {most:,}", value)
    return value


def _check_names(config: dict[str, Any], name: str) -> None:
    kind = config.get("model_type")
    if not isinstance(kind, str) or not kind:
        raise _wrong(name, "model_type", "name the model's family", kind)
    classes = config.get("architectures")
    if classes is not None and not (isinstance(classes, list) and all(isinstance(one, str) for one in classes)):
        raise _wrong(name, "architectures", "be a list of class names", classes)
    labels = config.get("id2label")
    if labels is not None and not (
        isinstance(labels, dict)
        and len(labels) <= MOST_CLASSES
        and all(key.isascii() and key.isdigit() and len(key) < 9 for key in labels)
        and all(isinstance(label, str | int | float) and not isinstance(label, bool) for label in labels.values())
    ):
        raise _wrong(name, "id2label", "be an object from numbers to class names", labels)


def _wrong(name: str, key: str, rule: str, value: Any) -> CheckpointError:
    shown = json.dumps(value, default=str)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    return CheckpointError(
        f"{key} in config.json of {name} must {rule}; got {shown}. Correct config.json, or save the checkpoint again."
    )
