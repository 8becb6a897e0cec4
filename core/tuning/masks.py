"""Weights of a model held at 0: which may go, which go first by magnitude, and how they stay away while it learns.

Prunable are the matrices of the Transformer's layers; embeddings, LayerNorms, biases, pooler and classification
head stay (Gordon et al. 2020). A mask is True where a weight stays.
"""

from collections.abc import Mapping
from typing import Literal

import torch
from jaxtyping import Bool
from torch import Tensor, nn
from torch.nn.utils import prune

from ..errors import InputError
from .model import layers_of

Scope = Literal["global", "layer"]
SCOPES: tuple[str, ...] = ("global", "layer")
Masks = Mapping[str, Bool[Tensor, "..."]]


def prunable(model: nn.Module) -> dict[str, list[str]]:
    """Names of the parameters that may go, by layer. Raises InputError for families whose layers share weights."""
    stack, layers = layers_of(model)
    groups = {}
    for number, layer in enumerate(layers):
        names = [f"{stack}.{number}.{name}" for name, value in layer.named_parameters() if value.ndim == 2]
        groups[f"L{number + 1}"] = names
    return groups


def magnitude_masks(model: nn.Module, share: float, scope: Scope) -> dict[str, Bool[Tensor, "_ _"]]:
    """Masks without the weights that are nearest to 0: of all layers together, or of each layer.

    Args:
        share: of these weights, 0 to 1; exactly round(share x weights) go.
        scope: "global": of all layers together; "layer": of each layer.

    Returns:
        By the parameter's name: True where a weight stays.

    Raises:
        InputError: the share lies outside 0 to 1, the scope is unknown, or the family's layers share weights.
    """
    if not 0 <= share <= 1 or scope not in SCOPES:
        raise InputError(
            f"A share of weights lies between 0 and 1 and goes by {' or '.join(SCOPES)}; seen {share:g} by {scope!r}."
        )
    layers, values = prunable(model), dict(model.named_parameters())
    groups = [[name for names in layers.values() for name in names]] if scope == "global" else list(layers.values())
    return {
        name: mask
        for group in groups
        for name, mask in _smallest({parameter: values[parameter] for parameter in group}, share).items()
    }


def _smallest(values: Mapping[str, Tensor], share: float) -> dict[str, Tensor]:
    flat = torch.cat([value.detach().abs().flatten() for value in values.values()])
    kept = torch.ones(len(flat), dtype=torch.bool, device=flat.device)
    kept[flat.argsort(stable=True)[: round(share * len(flat))]] = False
    parts = kept.split([value.numel() for value in values.values()])
    return {name: part.view(value.shape) for (name, value), part in zip(values.items(), parts, strict=True)}


def hold(model: nn.Module, masks: Masks) -> None:
    """Keep masked weights at 0 from now on, also while the model learns; they get no gradient."""
    for name, mask in masks.items():
        path, _, parameter = name.rpartition(".")
        prune.custom_from_mask(model.get_submodule(path), parameter, mask.to(next(model.parameters()).device))


def zeroed(model: nn.Module, masks: Masks) -> None:
    """Set masked weights to 0 once."""
    values = dict(model.named_parameters())
    with torch.no_grad():
        for name, mask in masks.items():
            values[name].mul_(mask.to(values[name]))
