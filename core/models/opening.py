"""Opening of checkpoints: bundled by name, a local folder, or a hub ID. Safetensors only, without remote code."""

import inspect
import json
import logging
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import torch
import transformers
from safetensors import SafetensorError
from torch import nn
from transformers import initialization

from .. import config
from ..errors import AtlasError, CheckpointError, InputError
from ..reading import read_in
from .adapters import Adapter, adapter_in, classes_of, merge, read_weights
from .checkpoint import Checkpoint, embedding_rows
from .classifier import POOLING_KEY, with_head
from .config_files import classifies, read_config
from .family import family_in
from .head_sets import head_sets, stretched, windows_of
from .hub import download
from .memory import WHOLE, maps_bytes, refuse_too_large, stored_weights
from .present import HUB_ID, bundled_names
from .pruned import cut_heads, restored
from .tokenizing import distrust, is_panic, refuse_unbounded, refuse_wild_rules, split, tokenizer_of
from .weights import (
    HEAD_FILE,
    has_tokenizer,
    hash_of_files,
    marks_of,
    refuse_half_a_checkpoint,
    refuse_what_leads_out,
    tensors_in,
    variant_of,
    weight_files,
)

# -------------------- Folders that open without an error and would answer with meaningless numbers


TRAINING = "training.json"


def refuse_fixed_patterns(folder: Path, name: str) -> None:
    """Raise CheckpointError if heads were trained with fixed attention patterns, which weight files do not store."""
    try:
        told = json.loads(read_in(folder, TRAINING))
    except (InputError, OSError, ValueError, RecursionError):
        return
    held = told.get("held") if isinstance(told, dict) else None
    if held and not isinstance(held, dict):
        raise CheckpointError(
            f'The field "held" in training.json of {name} must contain a list of heads for each fixed pattern; got '
            f"{json.dumps(held)[:60]}. If no head was trained with a fixed pattern, delete training.json; otherwise, "
            "save the checkpoint again."
        )
    if isinstance(held, dict) and any(held.values()):
        patterns = ", ".join(str(pattern) for pattern, heads in held.items() if heads)
        raise CheckpointError(
            "A checkpoint must be trained without fixed attention patterns, because weight files do not store them; "
            f"{name} was trained with fixed attention patterns ({patterns}). Choose another checkpoint."
        )


def refuse_windows(config: Any, name: str) -> None:
    """Raise CheckpointError if the attention window in a config is longer than the longest input of the model.

    After positions were stretched (Phi-3's 128k: a window of 262,144 of 131,072), such a window means no window.
    """
    if stretched(config):
        return
    window = max((wide for wide in windows_of(config) if wide is not None), default=0)
    positions = getattr(config, "max_position_embeddings", None)
    if isinstance(positions, int) and 0 < positions < window:
        key = {"modernbert": "local_attention", "gpt_neo": "window_size"}.get(config.model_type, "sliding_window")
        nullable = ", or set it to null if every layer attends to all tokens" * (key == "sliding_window")
        raise CheckpointError(
            f"The attention window of a layer must not exceed the number of positions; config.json of {name} has a "
            f"window of {window} but only {positions} positions. Correct {key}{nullable}."
        )


Tensors = Mapping[str, tuple[str, tuple[int, ...]]]  # dtype and shape of each tensor in a file
_PARTS = ("text_config", "vision_config", "audio_config", "encoder", "decoder", "text_encoder", "thinker_config")
_NO_WEIGHTS = re.compile(r"(position_ids|inv_freq|masked_bias|_float_tensor|\bversion)$|(attn|attention)\.bias$")
_CLASSIFIER_NAMES = ("classifier", "score", "pre_classifier", "logits_proj", "qa_outputs", "summary.summary")
_WHAT_TO_DO = (
    (r"lora_|base_layer", "Merge the LoRA adapter into the model with peft (merge_and_unload), and save the model."),
    (r"adapter|prefix_|prompt|ia3", "These are weights of an adapter. Open the model with the library that "
     "trained it, merge or remove the adapter, and save the model."),
    (r"_scale(_inv)?$|qweight|qzeros|scales$|absmax|quant_", "These belong to quantised weights. Open a checkpoint "
     "with weights in float32, bfloat16 or float16."),
    (r"distance_embedding", "Version 5 of transformers no longer computes the relative positions of this family. "
     "Choose a checkpoint with absolute positions."),
)  # fmt: skip
_COMPUTING = {"create_weight", "get_embedding"}  # methods of tables of positions that compute their numbers
MOST_COMPUTED = 1_000_000  # numbers of a table of positions that no file has; Pegasus computes 1024 x 1024
_ADDED = re.compile(r"lora_|^(\w+\.)?(prefix_encoder|prompt_embeddings|prompt_encoder)\.")  # added by an adapter


def refuse_no_text(config: Any, name: str) -> None:
    """Raise CheckpointError if a config describes a model without text input, or a combination of several models."""
    try:
        sized = all(hasattr(config, size) for size in ("num_hidden_layers", "num_attention_heads"))
    except RuntimeError as error:  # sizes by layer (Dots3 Note): transformers raises its own class
        raise CheckpointError(
            f"Every layer of a checkpoint must have the same number of heads; the layers of {name} "
            f"({config.model_type}) differ. Choose another checkpoint."
        ) from error
    if not sized:
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
        return  # loading it raises the error
    kind = kinds[0] if isinstance(kinds, tuple) else kinds
    if (
        kind is not None
        and kind.main_input_name != "input_ids"
        and "input_ids" not in inspect.signature(kind.forward).parameters
    ):
        raise CheckpointError(_no_text(name, f"reads {kind.main_input_name}, not text"))


def _no_text(name: str, why: str) -> str:
    return (
        f"A checkpoint must read text through token embeddings; {name} {why}. Choose a text model, or save the part "
        "that reads text as a checkpoint of its own."
    )


_CORRECT_THE_SIZES = "Correct the sizes in config.json, or save the checkpoint again."


def refuse_more_layers(settings: Any, tensors: Tensors, name: str) -> None:
    """Raise CheckpointError if config.json specifies far more layers than the weight files contain."""
    layers = getattr(settings, "num_hidden_groups", settings.num_hidden_layers)  # the layers of an ALBERT share weights
    layers *= getattr(settings, "inner_group_num", 1)
    layers = max(
        layers, *(getattr(settings, decoder, None) or 0 for decoder in ("decoder_layers", "num_decoder_layers"))
    )
    numbered = {tuple(re.findall(r"(?<=\.)\d+(?=\.)", f".{key}")) for key in tensors} - {()}
    if layers > 2 * len(numbered) + 50:  # a thousand layers take seconds even without memory
        raise CheckpointError(
            f"config.json must match the weights; config.json of {name} describes {layers:,} layers, but the weights "
            f"have at most {len(numbered):,}. {_CORRECT_THE_SIZES}"
        )


def refuse_other_sizes(build: Callable[[], Any], tensors: Tensors, name: str) -> None:
    """Raise CheckpointError if config.json describes a much larger model than the weight files contain.

    The model is first built without memory, on the meta device of PyTorch.
    """
    stored = sum(math.prod(shape) for _, shape in tensors.values())
    with torch.device("meta"), initialization.no_init_weights():
        model = build()
    asked = sum(tensor.numel() for tensor in (*model.parameters(), *model.buffers()))
    if asked > 4 * stored + 50_000_000:
        raise CheckpointError(
            f"config.json must match the weights; config.json of {name} describes {asked:,} parameters, but the "
            f"weights have {stored:,}. {_CORRECT_THE_SIZES}"
        )
    shapes = {shape for _, shape in tensors.values()}
    for key, table in _tables(model):
        own = next((shape for other, (_, shape) in tensors.items() if _same_weight(key, other)), None)
        if own is not None and own[:1] < tuple(table.shape[:1]):
            raise CheckpointError(_other_size(key, name, own, table.shape))
        # a table that transformers computes, number by number in Python; those of tied weights have a shape of the file
        if own is None and tuple(table.shape) not in shapes and table.numel() > stored / 8 + MOST_COMPUTED:
            raise CheckpointError(
                f"config.json must match the weights; config.json of {name} describes a table with {len(table):,} rows "
                f"of {table.shape[1]:,} numbers, but all weights together have only {stored:,} numbers. "
                f"{_CORRECT_THE_SIZES}"
            )


def _tables(model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the name and weights of each embedding, and of each table of floats that is computed."""
    for path, module in model.named_modules():
        held = (
            {"weight": module.weight} if isinstance(module, nn.Embedding) else dict(module.named_buffers(recurse=False))
        )
        for name, table in held.items():
            if table is not None and table.ndim == 2 and table.is_floating_point():
                yield f"{path}.{name}".lstrip("."), table


def _same_weight(key: str, other: str) -> bool:
    """Return whether two names denote one weight, one of them possibly inside a model with a head."""
    return key == other or key.endswith(f".{other}") or other.endswith(f".{key}")


def _other_size(key: str, name: str, stored: Sequence[int], wanted: Sequence[int], several: str = "") -> str:
    return (
        f"Every weight must have the size that config.json gives; {key} of {name} has {tuple(stored)} in the file "
        f"and {tuple(wanted)} by config.json{several}. Correct config.json; if heads were pruned, list "
        "them there as pruned_heads."
    )


def refuse_unread(model: Any, unread: Collection[str], tensors: Tensors, name: str) -> tuple[str, ...]:
    """Check that a model uses all weights of its checkpoint. Return one message if some weights are unused, otherwise
    an empty tuple. Buffers, such as positions and masks, may be unused.

    `unread` names unused tensors, and `tensors` has dtype and shape of every tensor in the file. Raises CheckpointError
    if weights of the embeddings or layers are unused.
    """
    base = getattr(model, "base_model", model)
    prefix = f"{getattr(model, 'base_model_prefix', '')}."
    parts = {part for part, _ in base.named_children() if "pooler" not in part}
    weights = sorted(key for key in unread if not _is_buffer(key, tensors))
    inside = [key for key in weights if key.removeprefix(prefix).partition(".")[0] in parts or _ADDED.search(key)]
    if inside:
        advice = next((what for mark, what in _WHAT_TO_DO if any(re.search(mark, key) for key in inside)), None)
        layers = model.config.num_hidden_layers
        if any(int(number) >= layers for key in inside for number in re.findall(r"\.(\d+)\.", f".{key}")[:1]):
            advice = advice or f"config.json has only {layers} layers. Correct it, or save the checkpoint again."
        raise CheckpointError(
            f"A model must use every weight in its embeddings and layers; {len(inside)} weights of {name} are unused, "
            f"such as {inside[0][:120]}. "
            + (advice or "Save the checkpoint again with the version of transformers that trained it.")
        )
    if str(getattr(model.config, "position_embedding_type", "")).startswith("relative_key") and not any(
        "distance_embedding" in key for key, _ in model.named_parameters()
    ):
        raise CheckpointError(
            f"{name} uses relative positions (position_embedding_type), which this version of transformers cannot "
            f"compute. {_WHAT_TO_DO[-1][1]}"
        )
    if not weights:
        return ()
    if len(weights) == 1:
        return (f"One weight outside the embeddings and layers is not used ({weights[0][:80]}).",)
    return (f"{len(weights)} weights outside the embeddings and layers are not used, such as {weights[0][:80]}.",)


def _is_buffer(key: str, tensors: Tensors) -> bool:
    """Return whether a tensor has positions or masks, which older versions of transformers saved."""
    kind, shape = next(
        (own for other, own in tensors.items() if other == key or other.endswith(f".{key}")), ("F32", ())
    )
    if not kind.startswith(("F", "BF")):
        return True
    return bool(_NO_WEIGHTS.search(key)) and not (key.endswith(".bias") and len(shape) != 4)


def refuse_missing(model: Any, report: Mapping[str, Any], name: str, head: str, *, given: Collection[str] = ()) -> None:
    """Raise CheckpointError if the weight files lack a parameter that the model needs."""
    computed = {f"{path}.weight" for path, module in model.named_modules() if _COMPUTING & set(dir(type(module)))}
    left = computed.union(given)
    missing = sorted(key for key in report["missing_keys"] if "pooler" not in key and key not in left)
    mismatched = sorted(key for key in report["mismatched_keys"] if key[0] not in given)
    if mismatched:
        key, stored, wanted = mismatched[0]
        raise CheckpointError(_other_size(key, name, stored, wanted, f" ({len(mismatched)} weights differ)"))
    if not missing:
        return
    if head == "classifier" and all(key.startswith(_CLASSIFIER_NAMES) for key in missing):
        raise CheckpointError(
            f"A classifier must have a trained classification head; {name} has none. Fine-tune it on a task "
            "first, or choose a fine-tuned checkpoint."
        )
    base = f"{model.base_model_prefix}."
    inside = model.base_model is model or any(key.startswith(base) for key in missing)
    if head == "language" and missing and not inside:
        raise CheckpointError(
            f"Predicting words needs a trained language model head; {name} was saved without one ({missing[0]}). "
            "Choose a checkpoint with such a head."
        )
    renamed = next((key for key in report["unexpected_keys"] if missing and key.endswith(f".{missing[0]}")), None)
    if renamed is not None:
        raise CheckpointError(
            f"Weights must have the names that their model class expects; {missing[0]} is named "
            f"{renamed[:120]} in the file of {name}. Remove {renamed.removesuffix(missing[0])[:60]!r} from "
            "the names, or save the model with save_pretrained."
        )
    raise CheckpointError(
        f"Every weight of a checkpoint must be in its file; {name} lacks {len(missing)} of them, such as "
        f"{missing[0]}. Save the checkpoint again with save_pretrained."
    )


def refuse_no_numbers(model: Any, name: str) -> None:
    """Raise CheckpointError if a weight of a model is NaN or infinite."""
    for key, weight in model.named_parameters():
        if weight.is_floating_point() and not torch.isfinite(weight.sum(dtype=torch.float32)):
            broken = int((~torch.isfinite(weight)).sum())
            if broken:
                raise CheckpointError(
                    f"Every weight must be a finite number; {broken:,} values of {key} in {name} are NaN or "
                    "infinite. Download the checkpoint again, or choose an earlier checkpoint of this training "
                    "run."
                )


def refuse_other_vocabulary(model: Any, tokenizer: Any, name: str) -> None:
    """Raise CheckpointError if a tokenizer has tokens for which the model has no embedding."""
    rows = embedding_rows(model)
    if rows is None:
        raise CheckpointError(_no_text(name, "has no table of them"))
    if not getattr(tokenizer, "is_fast", False):
        return  # encoding raises the error
    try:
        numbers = list(tokenizer.get_vocab().values())
        split(tokenizer, "A short sentence.")
    except BaseException as error:  # the tokenizers library panics with a class of its own above Exception
        if not isinstance(error, Exception) and not is_panic(error):
            raise
        raise CheckpointError(
            f"The tokenizer of a checkpoint must be able to split a sentence into tokens; the tokenizer of {name} "
            "fails on a plain sentence. Save or download it again."
        ) from error
    if len(numbers) <= len(set(tokenizer.all_special_ids)):
        raise CheckpointError(
            f"A tokenizer must have tokens other than special tokens; the tokenizer of {name} has none. Put the "
            "original tokenizer into the folder of the checkpoint."
        )
    if len(set(numbers)) != len(numbers):
        raise CheckpointError(
            f"The tokens of a tokenizer must have different IDs; the tokenizer of {name} has {len(numbers)} tokens but "
            f"only {len(set(numbers))} different IDs. Put the original tokenizer into the folder of the "
            "checkpoint."
        )
    if not 0 <= min(numbers) <= max(numbers) < rows:
        raise CheckpointError(
            f"Token IDs must be smaller than the number of embeddings, {rows}; the tokenizer of {name} has IDs up to "
            f"{max(numbers)}. Put the original tokenizer into the folder of the checkpoint, or call "
            "model.resize_token_embeddings(len(tokenizer)) and train the new embeddings."
        )


# ---------------------------------------------------------------- weights of linear layers in 8 bits, by torchao


def in_eight_bits(model: nn.Module, name: str) -> nn.Module:
    """Quantise the linear layers of a model to int8 weights in place, and return the model.

    Raises CheckpointError if torchao is missing or there is nothing to quantise.
    """
    if not any(isinstance(module, nn.Linear) for module in model.modules()):
        raise CheckpointError(
            f"8-bit weights need linear layers; {name} has none (GPT-2 uses Conv1D layers). Open it as bfloat16."
        )
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)  # warnings about CUDA kernels that a CPU cannot load
    try:
        from torchao.quantization import Int8WeightOnlyConfig, quantize_  # optional package
    except (ImportError, OSError, RuntimeError) as error:
        raise CheckpointError(
            "8-bit weights need torchao, which cannot be imported. Run pip install torchao==0.18.0, or open the "
            "checkpoint as bfloat16."
        ) from error
    finally:
        logging.disable(before)
    quantize_(model, Int8WeightOnlyConfig())
    return model


HeadKind = Literal["none", "classifier", "language"]
Progress = Callable[[float, str], None]  # fraction done from 0 to 1, and the current step

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def open_checkpoint(
    name: str,
    *,
    revision: str | None = None,
    head: HeadKind = "none",
    dtype: str = "float32",
    device: str = "auto",
    on_progress: Progress | None = None,
) -> Checkpoint:
    """Load a checkpoint in eval mode, without gradients.

    Raises CheckpointError if the name is unknown, weights are pickled, files are damaged, the head is missing, it does
    not fit into memory, or the hub cannot be reached.

    Args:
        revision: of a hub ID; None for the newest.
        head: "none" for the bare Transformer, "classifier" for a fine-tuned sequence classifier, "language" for masked-
            or next-token prediction, or translation.
        dtype: float32, bfloat16, float16, "int8" (weights of linear layers, by torchao), "stored" as in the file, or
            "auto": float32, or as stored from memory.LARGE parameters on.
        device: as in `choose_device`.
    """
    if dtype not in (*_DTYPES, "int8", "stored", "auto"):
        raise CheckpointError(
            f"The dtype of a checkpoint must be one of {', '.join(_DTYPES)}, int8, stored or auto; got {dtype!r}. "
            "Choose one of them."
        )
    eight, dtype = dtype == "int8", "float32" if dtype == "int8" else dtype
    given = locate(name, revision=revision, on_progress=on_progress)
    adapter = adapter_in(given, name)
    folder = given if adapter is None else _base_folder(adapter, name, on_progress)
    quiet_loading()
    with _as_sentences(name):
        settings = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False)
    refuse_no_text(settings, name)
    refuse_half_a_checkpoint(folder, name)
    weights = (*weight_files(folder, name, HEAD_FILE), *([adapter.file] if adapter else []))
    before = marks_of(weights)
    published = config.PUBLISHED_SHA256.get(name)
    if published and hash_of_files(weights, before) != published:
        raise CheckpointError(
            f"The weights of {name} must be those that its authors published (SHA-256 {published[:8]}); the "
            "installed file has another SHA-256. Install it again: "
            f"{config.how_to_install(name, again=True)}."
        )
    refuse_fixed_patterns(folder, name)
    stored, where = stored_weights(weights), choose_device(device)
    tensors, ours = tensors_in(weights), name in bundled_names()
    dtype = stored.opened_as(dtype)
    with _as_sentences(name):
        if not ours:
            refuse_more_layers(settings, tensors, name)
        sets = head_sets(settings, family_in(settings))
    taken = refuse_too_large(
        name, stored, dtype, where, maps=sum(maps_bytes(own.layers, own.heads, WHOLE) for own in sets)
    )
    if on_progress is not None:
        on_progress(0.0, taken)
    asked = _Asked(name, folder, settings, head, _DTYPES[dtype], weights, tensors, adapter, ours)
    model, tokenizer, notes = _load(asked)
    if not asked.ours:
        distrust(tokenizer)
    refuse_other_vocabulary(model, tokenizer, name)
    if marks_of(weights) != before:
        raise CheckpointError(f"The weights of {name} changed while they were being opened. Open it again.")
    model = in_eight_bits(model, name) if eight else model
    model = model.to(where).eval().requires_grad_(requires_grad=False)
    checkpoint = Checkpoint(
        name=name,
        model=model,
        tokenizer=tokenizer,
        revision=revision,
        weights_hash=hash_of_files(weights, before),
        notes=notes,
    )
    if not asked.ours:
        _refuse_what_fails(checkpoint)
    return checkpoint


def weights_taken(name: str, dtype: str = "auto") -> int:
    """Return how many bytes of memory the weights of a local checkpoint need; 0 if the checkpoint cannot be read."""
    try:
        folder = local(name)
        if not config.within(folder):
            return 0
        stored = stored_weights(weight_files(folder, name, HEAD_FILE))
    except (OSError, ValueError, RuntimeError, AtlasError):
        return 0
    return stored.bytes_as(stored.opened_as(dtype))


def choose_device(device: str) -> str:
    """Return the torch device for an option. "auto" means ATLAS_DEVICE or, if it is not set, the first available of
    CUDA, MPS and CPU. Raises CheckpointError if the device is not available."""
    chosen = config.settings().device if device == "auto" else device
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if chosen == "auto":
        return next(name for name, is_there in there.items() if is_there)
    if not there.get(chosen.partition(":")[0]):
        raise CheckpointError(
            f"The device must be {' or '.join(name for name in there if there[name])} on this machine; got "
            f"{chosen!r}. {'Correct or unset ATLAS_DEVICE' if device == 'auto' else 'Choose one of them'}."
        )
    return chosen


# ---------------------------------------------------------------- finding the folder


def local(name: str) -> Path:
    """Return the folder of a checkpoint that is bundled, installed as a package, or given as a path."""
    if name in config.packaged_checkpoints():
        return config.packaged_checkpoints()[name]
    return config.BUNDLED_MODELS / name if name in bundled_names() else Path(name).expanduser()


def locate(name: str, *, revision: str | None = None, on_progress: Progress | None = None) -> Path:
    """Return the folder of a checkpoint. If it is a hub ID (owner/model or owner/model@revision), download it first."""
    if name in config.packaged_checkpoints() or name in bundled_names():
        return local(name)
    if command := config.how_to_install(name):
        raise CheckpointError(f"The package with the weights of {name} is not installed. Run {command}, and try again.")
    try:
        folder = Path(name).expanduser()
        readable = config.within(folder)
        is_folder, is_file = readable and folder.is_dir(), readable and folder.is_file()
    except (OSError, ValueError, RuntimeError):  # too long, NUL, or the home of an unknown user
        readable, is_folder, is_file = True, False, False
    if is_file:
        raise CheckpointError(
            f"A checkpoint must be a folder with config.json and safetensors; {name} is a file. Give its folder."
        )
    if is_folder:
        return _checked(folder, name)
    hub_id = HUB_ID.fullmatch(name)
    if hub_id is None or ".." in name:
        if not readable:
            config.inside(name)
        raise CheckpointError(
            f"A checkpoint must be a folder, a hub ID or a bundled name ({', '.join(bundled_names()) or 'none'}); "
            f'got "{name[:120]}". Correct the name.'
        )
    name = hub_id["name"]
    folder = download(name, revision or hub_id["revision"], on_progress)
    refuse_unbounded(folder, name)
    return folder


def _checked(folder: Path, name: str) -> Path:
    if not (folder / "config.json").is_file() and not (folder / "adapter_config.json").is_file():
        raise CheckpointError(
            f"A checkpoint folder must contain config.json; {name} has no such file. Give the folder that "
            "save_pretrained wrote."
        )
    refuse_what_leads_out(folder, name)
    refuse_unbounded(folder, name)
    return folder


def _base_folder(adapter: Adapter, name: str, on_progress: Progress | None) -> Path:
    """Return the folder of an adapter's base checkpoint: on this machine, otherwise from the hub."""
    beside = adapter.base_folder()
    if beside is not None and config.within(beside):
        return _checked(beside, name)
    try:
        return locate(adapter.base, revision=adapter.revision, on_progress=on_progress)
    except AtlasError as error:
        raise CheckpointError(
            f"{name} is a LoRA adapter whose base {adapter.base[:120]} cannot be opened: {error} Put the base into a "
            "folder next to the adapter, or name its folder as base_model_name_or_path in adapter_config.json."
        ) from error


# ---------------------------------------------------------------- loading


@dataclass(frozen=True)
class _Asked:
    """What is opened: folder and files of the checkpoint, its config, the requested head and dtype."""

    name: str
    folder: Path
    settings: Any
    head: HeadKind
    dtype: torch.dtype
    weights: tuple[Path, ...]
    tensors: Tensors
    adapter: Adapter | None
    ours: bool


@contextmanager
def _as_sentences(name: str) -> Iterator[None]:
    """Convert any error to a CheckpointError, because families, tokenizers and configs raise many kinds."""
    try:
        yield
    except AtlasError:
        raise
    except SafetensorError as error:
        raise CheckpointError(
            f"The weights of {name} cannot be read ({error}), because the file is damaged or incomplete. Copy or "
            "download it again."
        ) from error
    except BaseException as error:
        if not isinstance(error, Exception) and not is_panic(error):
            raise
        raise CheckpointError(
            f"{name} cannot be opened as a Transformer checkpoint: {_in_a_line(error)} "
            "Check its config.json and tokenizer files."
        ) from error


def _load(asked: _Asked) -> tuple[Any, Any, tuple[str, ...]]:
    """Return the model, its tokenizer, and notes on what was left out or replaced."""
    name, folder, settings, tensors = asked.name, asked.folder, asked.settings, asked.tensors
    beside = asked.head == "classifier" and (folder / HEAD_FILE).is_file()  # the Atlas's own head
    head: HeadKind = "none" if beside else asked.head
    adapter = None if asked.adapter is None else (asked.adapter, read_weights(asked.adapter, name))
    with _as_sentences(name):
        refuse_windows(settings, name)
        where = folder if adapter is None or not has_tokenizer(adapter[0].folder) else adapter[0].folder
        refuse_wild_rules(where, name)
        tokenizer, notes = tokenizer_of(where, name, ours=asked.ours)
        if adapter is not None and head == "classifier" and (classes := classes_of(adapter[1])):
            settings.num_labels = classes
        kind: Any = _auto_class(head, settings)
        # None: SDPA where transformers has it for the family, else eager
        how = None if family_in(settings).interceptable else "eager"
        if not asked.ours:
            refuse_other_sizes(lambda: kind.from_config(settings, attn_implementation=how), tensors, name)
        source: dict[str, Any] = {"pretrained_model_name_or_path": folder, "variant": variant_of(asked.weights[0])}
        if cut := cut_heads(settings, name):
            kind = kind._model_mapping[type(settings)]  # an Auto class takes no weights without a folder
            source = {"pretrained_model_name_or_path": None}
            source["state_dict"] = restored(weight_files(folder, name), settings, cut, name)
        model, report = kind.from_pretrained(
            **source,
            config=settings,
            dtype=asked.dtype,
            trust_remote_code=False,
            use_safetensors=True,
            ignore_mismatched_sizes=True,  # the error below names them and their sizes
            output_loading_info=True,
            attn_implementation=how,
        )
        whole = set() if adapter is None else merge(model, *adapter, name)
        unread = refuse_unread(model, report["unexpected_keys"], tensors, name)
        notes += () if asked.ours else unread  # most uses leave out the head of a bundled checkpoint
        refuse_missing(model, report, name, head, given=whole)
        if not asked.ours:
            refuse_no_numbers(model, name)
        model = with_head(folder, model, tokenizer) if beside else model
    return model, tokenizer, notes


def _refuse_what_fails(checkpoint: Checkpoint) -> None:
    """Run a checkpoint on a short sentence. Raises CheckpointError if it fails or returns NaN or infinite values."""
    name = checkpoint.name
    try:
        encoding = checkpoint.encode("A short sentence.")
    except InputError:  # an alphabet without these letters
        return
    try:
        with torch.no_grad():
            output = checkpoint.model(**checkpoint.inputs([encoding]))[0]
    except BaseException as error:
        if not isinstance(error, Exception) and not is_panic(error):
            raise
        raise CheckpointError(
            f"A checkpoint must be able to process a sentence, but {name} fails on one. {_in_a_line(error)} Check "
            "that config.json belongs to these weights."
        ) from error
    if isinstance(output, torch.Tensor) and not torch.isfinite(output).all():
        check = "Check" if checkpoint.dtype == "float32" else "Open it as float32, and check"
        raise CheckpointError(
            f"The outputs of a checkpoint must be finite; {name} computes NaN or infinite values as "
            f"{checkpoint.dtype}. {check} config.json (layer_norm_eps, scale factors)."
        )


@cache
def quiet_loading() -> None:
    """Suppress the progress bars and warnings of transformers."""
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()


def _auto_class(head: HeadKind, settings: Any) -> Any:
    if head == "classifier":
        return transformers.AutoModelForSequenceClassification
    family = family_in(settings)
    if head == "language" and family.translates:
        return transformers.AutoModelForSeq2SeqLM
    if head == "language":
        masked = not family.causal and type(settings) in transformers.MODEL_FOR_MASKED_LM_MAPPING
        return transformers.AutoModelForMaskedLM if masked else transformers.AutoModelForCausalLM
    return transformers.AutoModel


def _in_a_line(error: BaseException) -> str:
    """A library's message in one line, without names of Python classes."""
    line = " ".join(str(error).split()).partition(" Errors:")[0].removeprefix("Validation error for field ")
    line = re.sub(r"<class '(?:\w+\.)*(\w+)'>|<(?:\w+\.)*(\w+) object at 0x\w+>", r"\1\2", line)[:240]
    return f"{(line or type(error).__name__).rstrip('.')}."


# -------------------- Which head a checkpoint was saved with, read from its config without opening the weights


_LANGUAGE = ("MaskedLM", "CausalLM", "LMHead", "PreTraining", "ConditionalGeneration", "MarianMT")


def saved_head(name: str, *, revision: str | None = None) -> HeadKind:
    """Return which output layer a checkpoint has ("classifier", "language" or "none") without loading its weights.

    Raises CheckpointError if the checkpoint is not found, cannot be downloaded, or its config is invalid.
    """
    folder = locate(name, revision=revision)
    if (adapter := adapter_in(folder, name)) is not None:
        return adapter.head
    config = read_config(folder, name)
    if classifies(config) or POOLING_KEY in config:
        return "classifier"
    return (
        "language" if any(mark in kind for kind in config.get("architectures") or () for mark in _LANGUAGE) else "none"
    )
