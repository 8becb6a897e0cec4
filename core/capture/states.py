"""What every layer hands on, batch by batch: the embeddings' output, then each layer's."""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from ..errors import InterventionError
from ..models.checkpoint import Checkpoint
from ..models.encoding import Encoding
from .running import batches, model_inputs, prepared


def layer_outputs(
    checkpoint: Checkpoint, encodings: Sequence[Encoding]
) -> Iterator[tuple[list[int], Float[Tensor, "layer batch position hidden"]]]:
    """What the embeddings and every layer hand on, batch by batch.

    Yields:
        Which inputs a batch holds, by their places among `encodings`; and the outputs of the embeddings (layer 0) and
        of layers 1 to the last, float32, on the CPU. The last is after the final LayerNorm where the family has one.

    Raises:
        InterventionError: the family does not hand them over.
    """
    for chosen in batches(encodings):
        with torch.no_grad(), prepared(checkpoint):
            tensors = model_inputs(checkpoint, [encodings[k] for k in chosen])
            states = checkpoint.model(**tensors, output_hidden_states=True).hidden_states
        if states is None or len(states) != checkpoint.layers + 1:
            raise InterventionError(
                f"Layers are probed where a model hands over the output of every one; {checkpoint.family.model_type} "
                "does not: choose a BERT- or GPT-2-like checkpoint."
            )
        yield chosen, torch.stack([state.float().cpu() for state in states])


def input_embeddings(checkpoint: Checkpoint, encoding: Encoding) -> Float[Tensor, "position hidden"]:
    """The rows of the embedding table for an input's pieces: no position, no context.

    Returns:
        Float32, on the CPU.
    """
    table = checkpoint.model.get_input_embeddings().weight
    return table[torch.tensor(encoding.ids, device=table.device)].float().cpu()
