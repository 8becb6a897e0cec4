"""Folders that open without an error and would answer with meaningless numbers."""

import json
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import initialization

from ..errors import CheckpointError
from .checkpoint import embedding_rows
from .head_sets import stretched, windows_of
from .memory import Stored
from .tokenizing import is_panic, split

TRAINING = "training.json"


def refuse_held(folder: Path, name: str) -> None:
    """Refuse a model that was trained with heads held at fixed patterns, which its file does not hold."""
    try:
        told = json.loads((folder / TRAINING).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return
    held = told.get("held") if isinstance(told, dict) else None
    if held and not isinstance(held, dict):
        raise CheckpointError(
            f"held in training.json of {name} must name heads by the pattern that they are held at; got "
            f"{json.dumps(held)[:60]}. Delete training.json if no head was held, or save the checkpoint again."
        )
    if isinstance(held, dict) and any(held.values()):
        patterns = ", ".join(str(pattern) for pattern in held)
        raise CheckpointError(
            f"A checkpoint must be the model that was measured; {name} was trained with heads held at fixed patterns "
            f"({patterns}), which its weights do not hold, so maps and scores would be another model's: open the free "
            "one trained beside it."
        )


def refuse_windows(config: Any, name: str) -> None:
    """Raises CheckpointError for a layer whose window is longer than the positions that the model has. Where positions
    were stretched after training (Phi-3's 128k: a window of 262,144 of 131,072) it stands for no window at all."""
    if stretched(config):
        return
    window = max((wide for wide in windows_of(config) if wide is not None), default=0)
    positions = getattr(config, "max_position_embeddings", None)
    if isinstance(positions, int) and 0 < positions < window:
        raise CheckpointError(
            f"A layer's window is within the model's positions; config.json of {name} promises {window} tokens of "
            f"{positions}: set sliding_window to null where every layer sees all, or correct it."
        )


_PARTS = ("text_config", "vision_config", "audio_config", "encoder", "decoder", "text_encoder", "thinker_config")
_NO_WEIGHTS = re.compile(r"(position_ids|inv_freq|masked_bias|_float_tensor|\bversion)$|(attn|attention)\.bias$")
_CLASSIFIER_NAMES = ("classifier", "score", "pre_classifier", "logits_proj", "qa_outputs", "summary.summary")
_WHAT_TO_DO = (
    (r"lora_|base_layer", "Merge the LoRA adapter into the model with peft (model.merge_and_unload()), and save it."),
    (r"adapter|prefix_tuning|prompt|ia3", "These are an adapter's weights: open the model with the library that "
     "trained it, merge or remove the adapter, and save the model."),
    (r"distance_embedding", "Relative positions of this family are computed by transformers 4 and not by version 5: "
     "choose a checkpoint with absolute positions."),
)  # fmt: skip


def refuse_no_text(config: Any, name: str) -> None:
    """Raises CheckpointError where the config is of a model that reads no text, or of several models in one."""
    if not all(hasattr(config, size) for size in ("num_hidden_layers", "num_attention_heads")):
        parts = [part for part in _PARTS if getattr(config, part, None) is not None]
        raise CheckpointError(
            f"A checkpoint must be one Transformer with layers and heads; {name} ({config.model_type}) "
            + (
                f"is a model of several parts ({', '.join(parts)}). Load it with transformers, save the part that "
                "reads text with save_pretrained, and open that folder."
                if parts
                else "has none. Choose a Transformer that reads text."
            )
        )
    try:
        kinds = transformers.MODEL_MAPPING[type(config)]
    except KeyError:
        return  # loading it says what is wrong
    kind = kinds[0] if isinstance(kinds, tuple) else kinds
    if kind is not None and kind.main_input_name != "input_ids":
        raise CheckpointError(_no_text(name, f"reads {kind.main_input_name}, not text"))


def _no_text(name: str, why: str) -> str:
    return (
        f"A checkpoint must read text through token embeddings; {name} {why}. Choose a text model, or save the part "
        "that reads text as a checkpoint of its own."
    )


def refuse_other_sizes(build: Callable[[], Any], stored: Stored, name: str) -> None:
    """Raises CheckpointError where config.json asks for a much larger model than the file holds.

    The model is built without memory (on PyTorch's meta device) before it is built with.
    """
    with torch.device("meta"), initialization.no_init_weights():
        model = build()
    asked = sum(tensor.numel() for tensor in (*model.parameters(), *model.buffers()))
    if asked > 4 * stored.parameters + 50_000_000:
        raise CheckpointError(
            f"config.json must describe the weights; that of {name} asks for {asked:,} numbers, and the file holds "
            f"{stored.parameters:,}. Correct the sizes in config.json, or save the checkpoint again."
        )


def refuse_unread(
    model: Any, unread: Collection[str], tensors: Mapping[str, tuple[str, tuple[int, ...]]], name: str
) -> tuple[str, ...]:
    """Refuse a checkpoint whose embeddings or layers have weights that the model does not use.

    Args:
        unread: names of tensors in the file that the model did not take.
        tensors: dtype and shape of every tensor in the file, by name.

    Returns:
        A sentence about weights elsewhere that are not used; () where there are none.

    Raises:
        CheckpointError: weights inside the embeddings or layers are not used.
    """
    base = getattr(model, "base_model", model)
    prefix = f"{getattr(model, 'base_model_prefix', '')}."
    parts = {part for part, _ in base.named_children() if "pooler" not in part}
    weights = sorted(key for key in unread if not _is_buffer(key, tensors))
    inside = [key for key in weights if key.removeprefix(prefix).partition(".")[0] in parts or re.search("lora_", key)]
    if inside:
        advice = next((what for mark, what in _WHAT_TO_DO if any(re.search(mark, key) for key in inside)), None)
        raise CheckpointError(
            f"Every weight of a checkpoint's embeddings and layers must be used; {len(inside)} of {name} would not be, "
            f"{inside[0][:120]} first. "
            + (
                advice
                or f"config.json has {model.config.num_hidden_layers} layers: correct it, or save the checkpoint again "
                "with the version of transformers that trained it."
            )
        )
    if str(getattr(model.config, "position_embedding_type", "")).startswith("relative_key") and not any(
        "distance_embedding" in key for key, _ in model.named_parameters()
    ):
        raise CheckpointError(f"The positions of {name} are relative (position_embedding_type). {_WHAT_TO_DO[2][1]}")
    if not weights:
        return ()
    if len(weights) == 1:
        return (f"One weight outside the embeddings and layers is not used ({weights[0][:80]}).",)
    return (f"{len(weights)} weights outside the embeddings and layers are not used, {weights[0][:80]} first.",)


def _is_buffer(key: str, tensors: Mapping[str, tuple[str, tuple[int, ...]]]) -> bool:
    """Whether a tensor holds positions or masks, which older versions of transformers saved with the weights."""
    kind, shape = next(
        (own for other, own in tensors.items() if other == key or other.endswith(f".{key}")), ("F32", ())
    )
    if not kind.startswith(("F", "BF")):
        return True
    return bool(_NO_WEIGHTS.search(key)) and not (key.endswith(".bias") and len(shape) != 4)


def refuse_missing(model: Any, report: Mapping[str, Any], name: str, head: str, *, given: Collection[str] = ()) -> None:
    """Raises CheckpointError for a weight that is not in the file, except a pooler's, which nobody reads.

    Args:
        head: as `open_checkpoint` takes it.
    """
    missing = sorted(key for key in report["missing_keys"] if "pooler" not in key and key not in given)
    mismatched = [key for key in report["mismatched_keys"] if key[0] not in given]
    if not missing and not mismatched:
        return
    if head == "classifier" and all(key.startswith(_CLASSIFIER_NAMES) for key in missing):
        raise CheckpointError(
            f"A classifier must have a trained classification head; {name} has none: fine-tune it "
            "on a task first, or choose a fine-tuned checkpoint."
        )
    base = f"{model.base_model_prefix}."
    inside = model.base_model is model or any(key.startswith(base) for key in missing)
    if head == "language" and missing and not inside:
        raise CheckpointError(
            f"Predicting words takes a trained head for it; {name} was saved without one ({missing[0]}): choose a "
            "checkpoint with a language model's head."
        )
    shown = (missing or [str(key) for key in mismatched])[0]
    raise CheckpointError(
        f"Every weight of a checkpoint must be in its file; {name} lacks {len(missing) or 'some'} of "
        f"them, {shown} first: save it again with save_pretrained."
    )


def refuse_no_numbers(model: Any, name: str) -> None:
    """Raises CheckpointError for a weight that is NaN or infinite."""
    for key, weight in model.named_parameters():
        if weight.is_floating_point() and not torch.isfinite(weight.sum(dtype=torch.float32)):
            broken = int((~torch.isfinite(weight)).sum())
            if broken:
                raise CheckpointError(
                    f"Every weight must be a finite number; {broken:,} values of {key} in {name} are NaN or infinite. "
                    "Download the checkpoint again, or choose an earlier one of its training."
                )


def refuse_other_vocabulary(model: Any, tokenizer: Any, name: str) -> None:
    """Raises CheckpointError for a model without token embeddings, or a tokenizer with other tokens than they have."""
    rows = embedding_rows(model)
    if rows is None:
        raise CheckpointError(_no_text(name, "has no table of them"))
    if not getattr(tokenizer, "is_fast", False):
        return  # encoding says what is needed
    try:
        numbers = list(tokenizer.get_vocab().values())
        split(tokenizer, "A short sentence.")
    except BaseException as error:  # the tokenizers library panics with a class of its own above Exception
        if not isinstance(error, Exception) and not is_panic(error):
            raise
        raise CheckpointError(f"The tokenizer of {name} cannot split a sentence; save or download it again.") from error
    if len(set(numbers)) != len(numbers) or len(numbers) <= len(set(tokenizer.all_special_ids)):
        raise CheckpointError(
            f"A tokenizer knows pieces, each under a number of its own; that of {name} knows {len(numbers)} under "
            f"{len(set(numbers))} numbers: save the one that the checkpoint was trained with."
        )
    if not 0 <= min(numbers) <= max(numbers) < rows:
        raise CheckpointError(
            f"A tokenizer's pieces have numbers below the model's {rows} embeddings; that of {name} goes up to "
            f"{max(numbers)}: save the one that the checkpoint was trained with, or call "
            "model.resize_token_embeddings(len(tokenizer)) and train the new embeddings."
        )
