"""Open a checkpoint: bundled by name, a local folder, or a hub id. Safetensors only, no code from elsewhere."""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Literal

import torch
import transformers
from safetensors import SafetensorError

from core import config
from core.errors import CheckpointError
from core.models.bundled_checkpoints import bundled_names
from core.models.checkpoint import Checkpoint
from core.models.classifier import with_head
from core.models.eight_bits import in_eight_bits
from core.models.family import family_of
from core.models.head_sets import head_sets
from core.models.hub import download
from core.models.memory import WHOLE, maps_bytes, refuse_too_large, stored_weights
from core.models.pruned import cut_heads, restored
from core.models.refusals import refuse_held, refuse_windows
from core.models.tokenizing import distrust, is_panic, refuse_unbounded, refuse_wild_rules, split
from core.models.weights import (
    HEAD_FILE,
    hash_of_files,
    marks_of,
    refuse_half_a_checkpoint,
    refuse_what_leads_out,
    weight_files,
)

HeadKind = Literal["none", "classifier", "language"]
Progress = Callable[[float, str], None]  # share done 0 to 1, what is happening

_HUB_ID = re.compile(r"^(?P<name>[A-Za-z0-9][\w.-]*(?:/[\w.-]+)?)(?:@(?P<revision>[\w./-]+))?$")
_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
_CLASSIFIER_NAMES = ("classifier", "score", "pre_classifier", "logits_proj", "qa_outputs", "summary.summary")


def open_checkpoint(
    name: str,
    *,
    revision: str | None = None,
    head: HeadKind = "none",
    dtype: str = "float32",
    device: str = "auto",
    on_progress: Progress | None = None,
) -> Checkpoint:
    """Open a checkpoint in eval mode.

    Args:
        name: bundled name, folder, hub id, or owner/model@revision.
        revision: of a hub id; None for its newest.
        head: "none" for the bare Transformer, "classifier" for a fine-tuned sequence classifier, "language" for masked-
            or next-token prediction, or translation.
        dtype: float32, bfloat16, float16, "int8" (weights of linear layers, by torchao), "stored" as the file has it,
            or "auto": float32, and as stored from memory.LARGE parameters on.
        device: as `choose_device` takes it.
        on_progress: hears what it will take before it is read.

    Returns:
        The model without gradients, its tokenizer and the hash of its weights.

    Raises:
        CheckpointError: in one sentence, for names that lead nowhere, pickled weights, damaged files, a missing head,
            what does not fit into memory, or a hub that cannot be reached.
    """
    if dtype not in (*_DTYPES, "int8", "stored", "auto"):
        raise CheckpointError(f"A checkpoint opens as {', '.join(_DTYPES)}, int8 or stored; {dtype!r} was asked for.")
    eight, dtype = dtype == "int8", "float32" if dtype == "int8" else dtype
    folder = locate(name, revision=revision, on_progress=on_progress)
    refuse_half_a_checkpoint(folder, name)
    weights = tuple(weight_files(folder, name, HEAD_FILE))
    before = marks_of(weights)
    refuse_held(folder, name)
    stored, where = stored_weights(weights), choose_device(device)
    dtype = stored.opened_as(dtype)
    taken = refuse_too_large(name, stored, dtype, where, maps=_maps_taken(folder))
    if on_progress is not None:
        on_progress(0.0, taken)
    model, tokenizer = _load(folder, name, head, _DTYPES[dtype])
    if name not in bundled_names():
        distrust(tokenizer)
    refuse_other_vocabulary(model, tokenizer, name)
    if marks_of(weights) != before:
        raise CheckpointError(f"The weights of {name} were changed while they were opened; open it again.")
    model = in_eight_bits(model, name) if eight else model
    model = model.to(where).eval().requires_grad_(requires_grad=False)
    return Checkpoint(
        name=name,
        model=model,
        tokenizer=tokenizer,
        revision=revision,
        weights_hash=hash_of_files(weights, before),
    )


def weights_taken(name: str, dtype: str = "auto") -> int:
    """Bytes that the weights of a local checkpoint will take; 0 where nothing can be read, which opening it says."""
    try:
        stored = stored_weights(weight_files(local(name), name, HEAD_FILE))
    except (OSError, ValueError, RuntimeError, CheckpointError):
        return 0
    return stored.bytes_as(stored.opened_as(dtype))


def choose_device(device: str) -> str:
    """ "auto" is what ATLAS_DEVICE says; where it says nothing, CUDA, then MPS, then the CPU.

    Raises:
        CheckpointError: naming a device that this machine lacks.
    """
    chosen = config.settings().device if device == "auto" else device
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if chosen == "auto":
        return next(name for name, is_there in there.items() if is_there)
    if not there.get(chosen.partition(":")[0]):
        raise CheckpointError(
            f"Models run on a device of this machine, {' or '.join(name for name in there if there[name])}, but "
            f"{chosen!r} was asked for; correct ATLAS_DEVICE or leave it out."
        )
    return chosen


def _maps_taken(folder: Path) -> int:
    """Bytes of all maps of an input of WHOLE tokens; 0 where the config cannot be read, which loading it says."""
    try:
        config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False)
        sets = head_sets(config, family_of(config.model_type))
    except Exception:  # each family's config fails with classes of its own
        return 0
    return sum(maps_bytes(own.layers, own.heads, WHOLE) for own in sets)


# ---------------------------------------------------------------- finding the folder


def local(name: str) -> Path:
    """Where a checkpoint's folder is if it is here: bundled, of a package, or a folder; never downloads."""
    if name in config.packaged_checkpoints():
        return config.packaged_checkpoints()[name]
    return config.BUNDLED_MODELS / name if name in bundled_names() else Path(name).expanduser()


def locate(name: str, *, revision: str | None = None, on_progress: Progress | None = None) -> Path:
    """The local folder of a checkpoint; a hub id, or owner/model@revision, is downloaded first."""
    if name in config.packaged_checkpoints() or name in bundled_names():
        return local(name)
    if command := config.how_to_install(name):
        raise CheckpointError(
            f"{name} is in a package of weights that is not installed here: {command}, and try again."
        )
    try:
        folder = Path(name).expanduser()
        readable = config.within(folder)
        is_folder, is_file = readable and folder.is_dir(), readable and folder.is_file()
    except (OSError, ValueError, RuntimeError):  # too long, NUL, or the home of somebody unknown
        readable, is_folder, is_file = True, False, False
    if is_file:
        raise CheckpointError(
            f"A checkpoint is a folder with config.json and safetensors; {name} is a file: give the folder it lies in."
        )
    if is_folder:
        return _checked(folder, name)
    hub_id = _HUB_ID.match(name)
    if hub_id is None or ".." in name:
        if not readable:
            config.inside(name)
        raise CheckpointError(
            f'No folder and no hub id is called "{name[:120]}"; bundled names that open: '
            f"{', '.join(bundled_names()) or 'none'}."
        )
    return _downloaded(hub_id["name"], revision or hub_id["revision"], on_progress)


def _checked(folder: Path, name: str) -> Path:
    if not (folder / "config.json").is_file():
        raise CheckpointError(
            f"A checkpoint folder must hold config.json; {name} has none: give the folder that save_pretrained wrote."
        )
    refuse_what_leads_out(folder, name)
    refuse_unbounded(folder, name)
    return folder


def _downloaded(name: str, revision: str | None, on_progress: Progress | None) -> Path:
    folder = download(name, revision, on_progress)
    refuse_unbounded(folder, name)
    return folder


# ---------------------------------------------------------------- loading


def _load(folder: Path, name: str, head: HeadKind, dtype: torch.dtype) -> tuple[Any, Any]:
    quiet_loading()
    beside = head == "classifier" and (folder / HEAD_FILE).is_file()  # a head of ours over the plain Transformer
    head = "none" if beside else head
    try:
        config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False)
        refuse_windows(config, name)
        refuse_wild_rules(folder, name)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        opener: Any = _auto_class(head, config.model_type)
        source: dict[str, Any] = {"pretrained_model_name_or_path": folder}
        if cut := cut_heads(config, name):
            opener = opener._model_mapping[type(config)]  # an Auto class takes no weights without a folder
            source = {"pretrained_model_name_or_path": None}
            source["state_dict"] = restored(weight_files(folder, name), config, cut)
        model, report = opener.from_pretrained(
            **source,
            config=config,
            dtype=dtype,
            trust_remote_code=False,
            use_safetensors=True,
            output_loading_info=True,
            # None: SDPA where transformers has it for the family, else eager
            attn_implementation=None if family_of(config.model_type).interceptable else "eager",
        )
        model = with_head(folder, model, tokenizer) if beside else model
    except CheckpointError:
        raise
    except SafetensorError as error:
        raise CheckpointError(
            f"The weights of {name} cannot be read ({error}); the file is damaged or was cut "
            "short: copy or download it again."
        ) from error
    except BaseException as error:  # each family, tokenizer and config check fails with classes of its own
        if not isinstance(error, Exception) and not is_panic(error):
            raise
        raise CheckpointError(
            f"{name} cannot be opened as a Transformer checkpoint: {_first_line(error)} "
            "Check its config.json and tokenizer files."
        ) from error
    _refuse_missing(report, name, head)
    return model, tokenizer


def refuse_other_vocabulary(model: Any, tokenizer: Any, name: str) -> None:
    """Raises CheckpointError for a tokenizer whose pieces are not those that the model has rows for."""
    transformer = model if hasattr(model, "get_input_embeddings") else model.base  # under a head of ours
    rows = transformer.get_input_embeddings().num_embeddings
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
            f"{max(numbers)}: save the one that the checkpoint was trained with."
        )


@cache
def quiet_loading() -> None:
    """No progress bars and warnings of transformers on the terminal: what matters is raised as a sentence."""
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()


def _auto_class(head: HeadKind, model_type: str) -> Any:
    if head == "classifier":
        return transformers.AutoModelForSequenceClassification
    family = family_of(model_type)
    if head == "language" and family.translates:
        return transformers.AutoModelForSeq2SeqLM
    if head == "language":
        return transformers.AutoModelForCausalLM if family.causal else transformers.AutoModelForMaskedLM
    return transformers.AutoModel


def _refuse_missing(report: dict[str, Any], name: str, head: HeadKind) -> None:
    """transformers fills weights it does not find at random; only a pooler that nobody reads may be filled."""
    missing = [key for key in report["missing_keys"] if "pooler" not in key]
    if not missing and not report["mismatched_keys"]:
        return
    if head == "classifier" and all(key.startswith(_CLASSIFIER_NAMES) for key in missing):
        raise CheckpointError(
            f"A classifier must have a trained classification head; {name} has none: fine-tune it "
            "on a task first, or choose a fine-tuned checkpoint."
        )
    shown = (missing or [str(key) for key in report["mismatched_keys"]])[0]
    raise CheckpointError(
        f"Every weight of a checkpoint must be in its file; {name} lacks {len(missing) or 'some'} of "
        f"them, {shown} first: save it again with save_pretrained."
    )


def _first_line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    line = text[0] if text else type(error).__name__
    return line if line.endswith(".") else line + "."
