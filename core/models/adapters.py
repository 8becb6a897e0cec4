"""LoRA adapters: the base checkpoint is opened and the adapter is added to its weights.

W + (alpha / r) B A for every pair of matrices (Hu et al. 2021), or alpha / sqrt(r) with rank-stabilised LoRA.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ..errors import CheckpointError, InputError
from ..reading import read_in

if TYPE_CHECKING:
    from torch import Tensor, nn

SETTINGS, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
OTHER_WEIGHTS = ("adapter_model.bin", "adapter.safetensors", "pytorch_adapter.bin", "adapters.safetensors")
_BEFORE = "base_model.model."
_UNREAD = ("alpha_pattern", "use_dora", "lora_bias", "trainable_token_indices", "layer_replication", "megatron_config")
_HEADS: dict[str, Literal["none", "classifier", "language"]] = {
    "SEQ_CLS": "classifier", "CAUSAL_LM": "language", "SEQ_2_SEQ_LM": "language",
}  # fmt: skip


@dataclass(frozen=True)
class Adapter:
    """A LoRA adapter that is stored in a folder and can be merged into its base model.

    Attributes:
        base: name of the checkpoint that it was trained on, from its settings.
        alpha: factor of its products, which are divided by the rank.
        stabilised: divide by the square root of the rank instead.
    """

    folder: Path
    base: str
    revision: str | None
    alpha: float
    stabilised: bool
    head: Literal["none", "classifier", "language"]

    @property
    def file(self) -> Path:
        return self.folder / WEIGHTS

    def base_folder(self) -> Path | None:
        """Find the base model at the path in the adapter settings or near the adapter. Return its folder, or None if
        the base model is not found."""
        named = Path(self.base)
        for place in (named, self.folder / named, self.folder.parent / named.name, self.folder.parent):
            if (place / "config.json").is_file():
                return place
        return None


def adapter_in(folder: Path, name: str) -> Adapter | None:
    """Return the LoRA adapter in a folder, or None.

    Raises CheckpointError for a damaged or unsupported adapter, or if the folder also has the weights of a model.
    """
    found = [file for file in (SETTINGS, WEIGHTS, *OTHER_WEIGHTS) if (folder / file).is_file()]
    if not found:
        return None
    model = [file for file in ("model.safetensors", "model.safetensors.index.json") if (folder / file).is_file()]
    if model:
        raise CheckpointError(
            f"A folder must contain either a model or an adapter; {name} contains {model[0]} and {found[0]}. If "
            f"the adapter has been merged into the model, delete {found[0]}; otherwise, move the adapter to a separate "
            "folder."
        )
    if WEIGHTS not in found or SETTINGS not in found:
        raise CheckpointError(
            f"A LoRA adapter must have {SETTINGS} and {WEIGHTS}; {name} has {', '.join(found)}. Add the missing file, "
            "or merge the adapter into its base with the library that trained it, and save the merged model."
        )
    try:
        told = json.loads(read_in(folder, SETTINGS))
    except (InputError, OSError, ValueError, RecursionError) as error:
        why = " ".join(str(error).split())[:120] or type(error).__name__
        raise CheckpointError(
            f"{SETTINGS} of {name} cannot be read as JSON ({why}). Save the adapter again."
        ) from error
    if not isinstance(told, dict):
        raise CheckpointError(
            f"{SETTINGS} of {name} must be a JSON object; it contains another value. Save the adapter again."
        )
    unread = [key for key in _UNREAD if told.get(key)]
    if told.get("peft_type") != "LORA" or unread:
        kind = f"LoRA with {unread[0]}" if unread else repr(told.get("peft_type"))[:40]
        raise CheckpointError(
            f"Only plain LoRA adapters can be merged here; the adapter in {name} is {kind}. Merge it with peft "
            "(model.merge_and_unload()), and save the merged model with its tokenizer."
        )
    head = _HEADS.get(str(told.get("task_type")), "none")
    alpha, base, revision = told.get("lora_alpha"), told.get("base_model_name_or_path"), told.get("revision")
    if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not math.isfinite(alpha):
        raise CheckpointError(f"lora_alpha in {SETTINGS} of {name} must be a finite number; got {alpha!r}. Correct it.")
    if revision is not None and not isinstance(revision, str):
        raise CheckpointError(f"revision in {SETTINGS} of {name} must be text or null; got {revision!r}. Correct it.")
    if not isinstance(base, str) or not base:
        raise CheckpointError(
            f"base_model_name_or_path in {SETTINGS} of {name} must name the checkpoint that the adapter was trained "
            f"on; got {base!r}. Write its folder or its hub ID there."
        )
    return Adapter(folder, base, revision, float(alpha), told.get("use_rslora") is True, head)


def classes_of(weights: "dict[str, Tensor]") -> int | None:
    """Return the number of classes in the classification head of an adapter; None if it has no such head."""
    for key, value in weights.items():
        if value.ndim == 2 and key.endswith(("score.weight", "classifier.weight", "classifier.out_proj.weight")):
            return int(value.shape[0])
    return None


def read_weights(adapter: Adapter, name: str) -> "dict[str, Tensor]":
    """Return a dictionary of the tensors in the weight file of a LoRA adapter, by tensor name."""
    from safetensors.torch import load_file  # imports torch, which finding the base does not need

    try:
        weights = load_file(adapter.file)
    except Exception as error:  # the library's own class or an error of the system
        raise CheckpointError(f"{WEIGHTS} of {name} cannot be read ({error}). Save the adapter again.") from error
    return {key.removeprefix(_BEFORE): value.float() for key, value in weights.items()}


def merge(model: "nn.Module", adapter: Adapter, weights: "dict[str, Tensor]", name: str) -> set[str]:
    """Merge a LoRA adapter into a model in place, and return the names of parameters that the adapter stores in full.

    Raises CheckpointError for a LoRA tensor that fits no parameter, or a full tensor with another shape.
    """
    import torch  # as in `read_weights`
    from torch import nn  # as above

    own, prefix = dict(model.named_parameters()), f"{getattr(model, 'base_model_prefix', '')}."

    def parameter(asked: str) -> str | None:
        """Return the name that a parameter of the adapter has in this model, with or without the base prefix. Return
        None if the model has no such parameter."""
        return next((one for one in (asked, asked.removeprefix(prefix), prefix + asked) if one in own), None)

    whole: set[str] = set()
    with torch.no_grad():
        for key, value in weights.items():
            path, marked, kind = key.replace(".default", "").rpartition(".lora_")
            found = parameter(
                f"{path}.weight" if marked else key.replace(".default", "").replace(".modules_to_save", "")
            )
            if not marked and (found is None or own[found].shape != value.shape):
                if found is not None or "lora" in key:
                    raise _unread(name, key)
            elif not marked and found is not None:
                own[found].copy_(value)
                whole.add(found)
            elif kind in ("A.weight", "embedding_A"):
                other = weights.get(key.replace(".lora_A.", ".lora_B.").replace("lora_embedding_A", "lora_embedding_B"))
                if found is None or other is None or value.ndim != 2 or other.ndim != 2 or other.shape[1] != len(value):
                    raise _unread(name, key)
                change = other @ value * (adapter.alpha / (math.sqrt(len(value)) if adapter.stabilised else len(value)))
                if not isinstance(model.get_submodule(found.rpartition(".")[0]), nn.Linear):
                    change = change.T  # Conv1D and embeddings are stored the other way round
                if change.shape != own[found].shape:
                    raise _unread(name, key)
                own[found].add_(change.to(own[found].dtype))
            elif kind not in ("B.weight", "embedding_B"):
                raise _unread(name, key)
    return whole


def _unread(name: str, key: str) -> CheckpointError:
    return CheckpointError(
        f"Every weight of a LoRA adapter must match the name and shape of a weight of its base checkpoint; {key[:120]} "
        f"of {name} does not. Check base_model_name_or_path in {SETTINGS}, or merge the adapter with peft "
        "(model.merge_and_unload()) and save the merged model."
    )
