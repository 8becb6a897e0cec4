"""Ablation of sublayers and layers, or replacement of their outputs.

Forward hooks on the modules that write to the residual stream act during one forward pass and only in the calling
thread, so sessions can share a model. Families without a record here raise an InterventionError.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ..errors import InterventionError
from ..models.checkpoint import Checkpoint
from .components import LayerBlock
from .function import of_this_thread

_WRITERS = {  # last linear module of a layer's attention and feed-forward blocks
    "bert": ("attention.output.dense", "output.dense"),
    "roberta": ("attention.output.dense", "output.dense"),
    "electra": ("attention.output.dense", "output.dense"),
    "distilbert": ("attention.out_lin", "ffn.lin2"),
    "modernbert": ("attn.Wo", "mlp.Wo"),
    "gpt2": ("attn.c_proj", "mlp.c_proj"),
    "opt": ("self_attn.out_proj", "fc2"),
    "llama": ("self_attn.o_proj", "mlp.down_proj"),
    "gpt_neox": ("attention.dense", "mlp.dense_4h_to_h"),
}


@dataclass(frozen=True)
class PartChange:
    """A change to one sublayer or layer of a model: an ablation, or a replacement of its outputs.

    Attributes:
        outputs: for each input, what the sublayer adds to the residual stream, or the output of the layer. None ablates
            it: a sublayer adds nothing, and a layer is the identity.
        places: for each input, the positions that `outputs` replaces. None: all.
    """

    part: LayerBlock
    outputs: Sequence[Float[Tensor, "_ hidden"]] | None = None
    places: Sequence[Bool[Tensor, " _"]] | None = None


def layers_of(checkpoint: Checkpoint) -> list[nn.Module]:
    """Return the layer modules of a model, in order. Raises InterventionError if they cannot be found."""
    kind = checkpoint.family.model_type
    paths = _WRITERS.get(kind)
    for module in checkpoint.model.modules() if paths else ():
        stack = list(module) if isinstance(module, nn.ModuleList) else []
        if paths and len(stack) == checkpoint.layers and paths[0] in dict(stack[0].named_modules()):
            return stack
    raise InterventionError(
        f"Sublayers and layers can only be ablated or patched in models of the families {', '.join(_WRITERS)}; "
        f"got a model of the family {kind}. Ablate or patch heads instead."
    )


def writer(checkpoint: Checkpoint, part: LayerBlock) -> nn.Module:
    """Return the module that computes what a sublayer adds to the residual stream. For a layer, return the layer
    itself."""
    layer = layers_of(checkpoint)[part.within(checkpoint.layers, checkpoint.heads).layer]
    if part.kind == "layer":
        return layer
    return layer.get_submodule(_WRITERS[checkpoint.family.model_type][int(part.kind == "feedforward")])


@contextmanager
def parts_changed(checkpoint: Checkpoint, changes: Sequence[PartChange], inputs: Sequence[int]) -> Iterator[None]:
    """Apply changes of sublayers and layers to all forward passes of this thread within this context."""

    def hook(change: PartChange) -> Any:
        def replace(_: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any], output: Any) -> Any:
            hidden = output[0] if isinstance(output, tuple) else output
            if change.outputs is not None:
                replaced = torch.stack([change.outputs[k] for k in inputs]).to(hidden)
                if change.places is not None:
                    places = torch.stack([change.places[k] for k in inputs]).to(hidden.device)
                    replaced = torch.where(places[:, :, None], replaced, hidden)
            elif change.part.kind == "layer":
                replaced = arguments[0] if arguments else named["hidden_states"]
            else:
                replaced = torch.zeros_like(hidden)
            return (replaced, *output[1:]) if isinstance(output, tuple) else replaced

        return replace

    with ExitStack() as stack:
        for change in sorted(changes, key=lambda edit: edit.outputs is not None):
            handle = writer(checkpoint, change.part).register_forward_hook(
                of_this_thread(hook(change)), with_kwargs=True
            )
            stack.callback(handle.remove)
        yield


@contextmanager
def parts_kept(
    checkpoint: Checkpoint, parts: Sequence[LayerBlock]
) -> Iterator[dict[LayerBlock, Float[Tensor, "batch position hidden"]]]:
    """Yield a dictionary that the next forward pass of this thread fills with outputs of layers and sublayers. A
    sublayer outputs what it adds to the residual stream. Raises InterventionError if modules cannot be found."""
    kept: dict[LayerBlock, Tensor] = {}

    def hook(part: LayerBlock) -> Any:
        def keep(_: nn.Module, __: tuple[Any, ...], output: Any) -> None:
            kept[part] = output[0] if isinstance(output, tuple) else output

        return keep

    with ExitStack() as stack:
        for part in parts:
            stack.callback(writer(checkpoint, part).register_forward_hook(of_this_thread(hook(part))).remove)
        yield kept
