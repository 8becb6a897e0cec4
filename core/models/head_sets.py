"""Sets of heads of a model: one, or three for an encoder-decoder; and the attention windows of layers."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from .family import INTERFACE, Family, family_in

Windows = tuple[int | None, ...]


@dataclass(frozen=True)
class HeadSet:
    """A set of attention heads: all heads of a model or, in an encoder-decoder, of one stack or of cross-attention.

    Attributes:
        part: "" for a model with one set; otherwise encoder, decoder or cross.
        first: index of the attention call of its first layer in a forward pass.
        step: distance to the call of the next layer; the decoder of an encoder-decoder calls self- and cross-attention
            in turn.
        attending: the layers of a hybrid model that have attention; empty: all.
    """

    part: str
    layers: int
    heads: int
    causal: bool
    first: int = 0
    step: int = 1
    attending: tuple[int, ...] = ()

    def call(self, layer: int) -> int:
        """Return the index of the attention call that computes a layer; in a hybrid model, the layer index."""
        return self.first + layer * self.step

    def layer_of(self, call: int) -> int:
        return (call - self.first) // self.step

    @property
    def numbers(self) -> Sequence[int]:
        """Return the zero-based indices of the layers that have attention heads."""
        return self.attending or range(self.layers)

    @property
    def calls(self) -> Sequence[int]:
        """Return the indices of the attention calls of this set in a forward pass, as in `call`."""
        return self.attending or range(self.first, self.first + self.layers * self.step, self.step)


def head_sets(config: Any, family: Family, attending: tuple[int, ...] = ()) -> tuple[HeadSet, ...]:
    """Return the sets of attention heads in a model config. `attending` lists the layers with attention; () means all.

    Layers of ALBERT may have several attention layers each (`inner_group_num`), which count separately. ConvBERT
    replaces some heads of the config by convolutions (`head_ratio`).
    """
    layers, heads = int(config.num_hidden_layers), int(config.num_attention_heads)
    layers *= int(getattr(config, "inner_group_num", 1))
    heads = max(1, heads // int(getattr(config, "head_ratio", 1)))
    if not family.translates:
        return (HeadSet("", layers, heads, family.causal, attending=attending),)
    deep = int(_first_of(config, ("decoder_layers", "num_decoder_layers"), layers))
    wide = int(_first_of(config, ("decoder_attention_heads",), heads))
    return (
        HeadSet("encoder", layers, heads, causal=False),
        HeadSet("decoder", deep, wide, causal=True, first=layers, step=2),
        HeadSet("cross", deep, wide, causal=False, first=layers + 1, step=2),
    )


def attending_layers(model: Any) -> tuple[int, ...]:
    """Return the zero-based layers with attention in a hybrid model (Jamba, Qwen3-Next); () if all layers have
    attention.

    Layers without attention contain no module that calls the attention interface of transformers.
    """
    layers = getattr(model.config, "num_hidden_layers", 0)
    for module in model.modules():
        if not isinstance(module, nn.ModuleList) or len(module) != layers:
            continue
        attending = tuple(k for k, layer in enumerate(module) if any(map(_calls_interface, layer.modules())))
        if attending:
            return attending if len(attending) < layers else ()
    return ()


def _calls_interface(module: nn.Module) -> bool:
    code = getattr(inspect.unwrap(type(module).forward), "__code__", None)
    return code is not None and INTERFACE in code.co_names


def windows_of(config: Any) -> Windows:
    """Return the attention window of each layer: how many keys a query can see, including its own position. None means
    no limit in a layer, and () means no limit in any layer.

    Read from the config as in the masks of transformers: `layer_types` with `sliding_window`, `local_attention` of
    ModernBERT (half on each side), `attention_layers` with `window_size` of GPT-Neo, and configs with values by layer
    (NeoMME), whose encoder sees `sliding_window` keys on each side.
    """
    layers = int(config.num_hidden_layers)
    if getattr(config, "is_heterogeneous", False):
        windows = [getattr(own, "sliding_window", None) for own in config.per_layer_config]
        sides = 1 if family_in(config).causal else 2
        found = tuple(None if window is None else sides * window + sides - 1 for window in windows)
        return found if any(window is not None for window in found) else ()
    if config.model_type == "modernbert":
        wide = 2 * (int(config.local_attention) // 2) + 1
        local = ["sliding" in kind for kind in config.layer_types]
    elif config.model_type == "gpt_neo":
        wide, local = int(config.window_size), [kind == "local" for kind in config.attention_layers]
    elif (window := getattr(config, "sliding_window", None)) is not None:
        kinds = getattr(config, "layer_types", None)
        wide, local = int(window), ["sliding" in kind for kind in kinds] if kinds else [True] * layers
        if getattr(config, "use_bidirectional_attention", None) in (True, "all"):
            wide = 2 * wide - 1  # Gemma 3 sees `sliding_window` - 1 keys on each side
    else:
        return ()
    if stretched(config) and wide >= int(config.max_position_embeddings):
        return ()
    return tuple(wide if is_local else None for is_local in local) if any(local) else ()


def stretched(config: Any) -> bool:
    """Return whether a model config scales rotary positions to support longer inputs than in pretraining."""
    scaling = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    first = getattr(config, "original_max_position_embeddings", None) or scaling.get("original_max_position_embeddings")
    positions = getattr(config, "max_position_embeddings", None)
    return isinstance(first, int) and isinstance(positions, int) and first < positions


def _first_of(config: Any, names: Sequence[str], otherwise: int) -> int:
    return next((value for name in names if (value := getattr(config, name, None)) is not None), otherwise)
