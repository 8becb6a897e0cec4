"""Heads pruned from a checkpoint: cut out by `pruned_heads` of transformers 4, or set to 0 by this project.

transformers 5 does not read `pruned_heads`, so the smaller matrices do not fit its model. They are padded with zeros: a
head without weights attends uniformly and adds nothing, and other heads are unchanged.
"""

import re
from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from torch import Tensor

from ..attention import Head
from ..errors import CheckpointError

KEY = "atlas_pruned_heads"  # in config.json: ["L1H2", ...]
_CUT = "pruned_heads"  # of transformers 4: {"0": [1], ...}, layers and heads from 0
_FUSED = re.compile(r"\.c_attn\.(weight|bias)$")  # query, key and value one after another, along the last axis
_LAYER = re.compile(r"\.(\d+)\.(?:\w+\.)*?(?:attention|attn|self_attn)\.")


def cut_heads(config: Any, name: str) -> dict[int, list[int]]:
    """Return the zero-based heads in each layer that the config of a checkpoint lists as pruned.

    Raises CheckpointError if the config names a layer or head that the model does not have.
    """
    said = getattr(config, _CUT, None) or {}
    layers, heads = int(getattr(config, "num_hidden_layers", 0)), int(getattr(config, "num_attention_heads", 0))
    try:
        cut = {int(layer): sorted({int(str(head)) for head in gone}) for layer, gone in said.items() if gone}
        known = all(0 <= layer < layers and gone[0] >= 0 and gone[-1] < heads for layer, gone in cut.items())
    except (TypeError, ValueError, AttributeError):
        known = False
    if not known:
        raise CheckpointError(
            f'The entry pruned_heads in config.json must list existing heads by layer, such as {{"0": [1]}}, for '
            f"{layers} layers with {heads} heads each; {name} has {str(said)[:80]}. Correct the entry, or save the "
            "checkpoint again."
        )
    return cut


def restored(files: list[Path], config: Any, cut: dict[int, list[int]], name: str) -> dict[str, Tensor]:
    """Return the weights of a pruned checkpoint by name, with zeros for the pruned attention heads.

    Raises CheckpointError if the weights of a pruned layer do not have the expected size.
    """
    heads = int(config.num_attention_heads)
    width = int(getattr(config, "head_dim", None) or config.hidden_size // heads)
    weights = {name: tensor for file in files for name, tensor in load_file(file).items()}
    filled: set[int] = set()
    for key, tensor in weights.items():
        found = _LAYER.search(f".{key}")
        if found and (gone := cut.get(int(found[1]))):
            kept = [head for head in range(heads) if head not in gone]
            weights[key] = _filled(tensor, key, kept, heads, width)
            filled |= {int(found[1])} if weights[key] is not tensor else set()
    if other := sorted(set(cut) - filled):
        raise CheckpointError(
            "The weights of a layer in pruned_heads of config.json must have the size of the remaining heads; those of "
            f"layer {other[0] + 1} of {name} have another size. Remove pruned_heads if no heads are missing; "
            "otherwise, save the checkpoint again with all heads."
        )
    if getattr(config, "num_hidden_groups", None) == 1:  # ALBERT: all layers have the same weights
        cut = dict.fromkeys(range(int(config.num_hidden_layers)), cut[0])
    names = [str(Head(layer, head)) for layer, gone in sorted(cut.items()) for head in gone]
    setattr(config, KEY, [*(getattr(config, KEY, None) or []), *names])
    delattr(config, _CUT)
    return weights


def _filled(tensor: Tensor, name: str, kept: list[int], heads: int, width: int) -> Tensor:
    """Return the tensor with zeros for pruned heads along each axis with the length of the remaining heads."""
    fused = _FUSED.search(name) is not None
    parts = 3 if fused else 1
    for axis in [tensor.dim() - 1] if fused else range(tensor.dim()):
        if tensor.shape[axis] != parts * len(kept) * width:
            continue
        split = tensor.movedim(axis, 0)
        rest = split.shape[1:]
        whole = tensor.new_zeros(parts, heads, width, *rest)
        whole[:, kept] = split.reshape(parts, len(kept), width, *rest)
        tensor = whole.reshape(parts * heads * width, *rest).movedim(0, axis).contiguous()
    return tensor
