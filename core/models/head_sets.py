"""The sets of heads of a model: one, or of an encoder-decoder three, and how far a query sees in each layer."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from ..errors import CheckpointError
from .family import INTERFACE, Family, family_in

Windows = tuple[int | None, ...]


@dataclass(frozen=True)
class HeadSet:
    """Heads of one kind of attention.

    Attributes:
        part: "" of a model with one set; else encoder, decoder or cross.
        causal: whether a query sees no later key.
        first: which call of attention within a forward its first layer is, from 0.
        step: how many calls further the next layer is; an encoder-decoder calls its decoder's own and its cross
            attention in turn.
        attending: the layers that have attention, in order, of a hybrid in which others have none; empty: all have.
    """

    part: str
    layers: int
    heads: int
    causal: bool
    first: int = 0
    step: int = 1
    attending: tuple[int, ...] = ()

    def call(self, layer: int) -> int:
        """Which call of attention within a forward a layer is, from 0; of a hybrid the layer's own number."""
        return self.first + layer * self.step

    def layer_of(self, call: int) -> int:
        """The layer that a call of this set belongs to."""
        return (call - self.first) // self.step

    @property
    def numbers(self) -> Sequence[int]:
        """The numbers of its layers that have attention, from 0."""
        return self.attending or range(self.layers)

    @property
    def calls(self) -> Sequence[int]:
        """Return the numbers of the attention calls of this stack, in order."""
        return self.attending or range(self.first, self.first + self.layers * self.step, self.step)


def head_sets(config: Any, family: Family, attending: tuple[int, ...] = ()) -> tuple[HeadSet, ...]:
    """The sets of a model, in the order that pages show them. attending: as of `attending_layers`.

    ALBERT's layers may hold several attention layers each (`inner_group_num`), which count one by one. ConvBERT
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
    """The layers of a hybrid that have attention, by the model's own numbers from 0; () if all layers have it.

    Read off the modules: in a hybrid (Jamba, Qwen3-Next) some members of the list of layers hold no module that calls
    transformers' attention interface.
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


def set_named(sets: Sequence[HeadSet], part: str) -> HeadSet:
    """The set of a part; "" is the first. Raises CheckpointError where the model has no such part."""
    for head_set in sets:
        if part in ("", head_set.part):
            return head_set
    raise CheckpointError(
        f"Only an encoder-decoder has heads called {part}; this checkpoint has one set of heads: name them like L1H2."
        if len(sets) == 1
        else f"The parts of an encoder-decoder are {', '.join(own.part for own in sets)}; {part!r} is none of them."
    )


def windows_of(config: Any) -> Windows:
    """How many keys a query of each layer sees at most, itself among them; None where it sees all, () if all layers do.

    Read from the config as transformers' own masks do: `layer_types` beside `sliding_window`, ModernBERT's
    `local_attention` (half on each side), GPT-Neo's `attention_layers` beside `window_size`, and configs with values by
    layer (NeoMME), where an encoder sees `sliding_window` keys on each side.
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
    """Whether rotary positions were scaled to reach further than those the model was first trained on."""
    scaling = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    first = getattr(config, "original_max_position_embeddings", None) or scaling.get("original_max_position_embeddings")
    positions = getattr(config, "max_position_embeddings", None)
    return isinstance(first, int) and isinstance(positions, int) and first < positions


def _first_of(config: Any, names: Sequence[str], otherwise: int) -> int:
    return next((value for name in names if (value := getattr(config, name, None)) is not None), otherwise)
