"""Outputs of heads (before W_O), and replacements for them: mean, resample, constant, patch.

Each source returns replacements for inputs of equal length (core.capture.interventions.StandInSource). The class of a
position is first ([CLS] or the start token), separator, or other. It depends only on the token itself, so causal models
remain causal.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ..errors import InputError, InterventionError
from ..models.checkpoint import Checkpoint
from ..models.encoding import Encoding
from .interventions import Given
from .reach import is_interceptable
from .running import batches, by_layer, prepared

# ---------------------------------------------------------------- what every layer hands on, batch by batch


def layer_outputs(
    checkpoint: Checkpoint, encodings: Sequence[Encoding]
) -> Iterator[tuple[list[int], Float[Tensor, "layer batch position hidden"]]]:
    """Yield, for each batch, the indices of its inputs, and the hidden states (float32) after the embeddings and after
    each layer.

    The last output is after the final LayerNorm, if there is one. Raises InterventionError if the family does not
    return hidden states.
    """
    for chosen in batches(encodings):
        with torch.no_grad(), prepared(checkpoint):
            tensors = checkpoint.inputs([encodings[k] for k in chosen])
            states = checkpoint.model(**tensors, output_hidden_states=True).hidden_states
        if states is None or len(states) != checkpoint.layers + 1:
            raise InterventionError(
                f"Probes need the output of every layer, which {checkpoint.family.model_type} models do not return. "
                "Choose a checkpoint like BERT or GPT-2."
            )
        yield chosen, torch.stack([state.float().cpu() for state in states])


def input_embeddings(checkpoint: Checkpoint, encoding: Encoding) -> Float[Tensor, "position hidden"]:
    """Return the token embeddings of an input, without position embeddings, float32."""
    table = checkpoint.model.get_input_embeddings().weight
    return table[torch.tensor(encoding.ids, device=table.device)].float().cpu()


CLASSES = ("first", "separator", "other")
BY = ("class", "position", "all")


@contextmanager
def outputs_reported(checkpoint: Checkpoint) -> Iterator[list[Float[Tensor, "batch query head dim"]]]:
    """Yield an empty list, to which the next forward pass appends the outputs of heads (before W_O) in each layer.
    Raises InterventionError if the outputs are not available."""
    if not is_interceptable(checkpoint):
        raise InterventionError(
            "Head outputs can only be read from models that use the attention interface of transformers; "
            f"{checkpoint.family.model_type} models do not. Choose another checkpoint."
        )
    kept: list[Tensor] = []
    with torch.no_grad(), prepared(checkpoint) as run:
        run.reporter = kept.append
        yield kept


def batched_outputs(
    checkpoint: Checkpoint, encodings: Sequence[Encoding]
) -> Iterator[tuple[list[int], Float[Tensor, "layer batch query head dim"]]]:
    """Yield, for each batch, the indices of its inputs and the outputs of all heads before the output projection W_O.
    Raises InterventionError if the outputs are not available."""
    for inputs in batches(encodings):
        with outputs_reported(checkpoint) as kept:
            checkpoint.model(**checkpoint.inputs([encodings[k] for k in inputs]))
        yield inputs, by_layer(checkpoint, kept)


def head_outputs(checkpoint: Checkpoint, encodings: Sequence[Encoding]) -> list[Float[Tensor, "layer _ head dim"]]:
    """Return the outputs of all heads before W_O for each input. Raises InterventionError if they are not available."""
    kept: dict[int, Tensor] = {}
    for inputs, outputs in batched_outputs(checkpoint, encodings):
        kept |= {k: outputs[:, row] for row, k in enumerate(inputs)}
    return [kept[k] for k in range(len(encodings))]


def classes_of(encoding: Encoding) -> Int[Tensor, " position"]:
    """Return the class of each position in an input, as an index in CLASSES: first token (0), separator (1) or other
    (2)."""
    classes = torch.full((len(encoding),), 2)
    classes[list(encoding.separators)] = 1
    if encoding.first is not None:
        classes[encoding.first] = 0
    return classes


# ---------------------------------------------------------------- mean and constant


@dataclass(frozen=True)
class ByClass:
    """Replacement outputs of every head by token class or position, for "mean" ablation or optimal constants.

    Attributes:
        outputs: before W_O; classes in the order of CLASSES.
        n: number of positions of each class (or absolute position, or in total).
        positions: outputs by absolute position; later positions use their class. None: by class only.
        weights_hash: of the checkpoint that computed them; "" if unknown.
    """

    operator: Literal["mean", "constant"]
    outputs: Float[Tensor, "layer class head dim"]
    n: tuple[int, ...]
    positions: Float[Tensor, "layer position head dim"] | None = None
    weights_hash: str = ""  # of the checkpoint that was measured

    def given(self, encodings: Sequence[Encoding], inputs: Sequence[int]) -> Given:
        """Return the replacement outputs at each position of a batch, chosen by token class or absolute position."""
        classes = torch.stack([classes_of(encoding) for encoding in encodings]).to(self.outputs.device)
        outputs = self.outputs[:, classes]
        if self.positions is not None:
            known = min(outputs.shape[2], self.positions.shape[1])
            outputs[:, :, :known] = self.positions[:, None, :known]
        return Given(outputs)


def mean_outputs(checkpoint: Checkpoint, encodings: Sequence[Encoding], *, by: str = "class") -> ByClass:
    """Return the mean output of every head over reference inputs, by default separately for each token class.

    `by` is "class", absolute "position", or "all". Classes that do not occur get the mean over all positions. Raises
    InputError without inputs or for an unknown `by`, and InterventionError if outputs are not available.
    """
    if not encodings:
        raise InputError(
            "Mean ablation needs at least one reference input; got none. Name examples from which the mean is computed."
        )
    if by not in BY:
        raise InputError(f'Mean ablation can average outputs by {", ".join(BY)}; got "{by}". Choose one of them.')
    # Sums [layer, class or position, head, dim] and counts, in float64.
    groups = len(CLASSES) if by == "class" else max(len(encoding) for encoding in encodings) if by == "position" else 1
    sums, counts = torch.zeros(0), torch.zeros(groups, dtype=torch.float64)
    for inputs, outputs in batched_outputs(checkpoint, encodings):
        layers, batch, length, heads, dim = outputs.shape
        if by == "class":
            places = torch.stack([classes_of(encodings[k]) for k in inputs])
        else:
            places = torch.arange(length).expand(batch, -1) * int(by == "position")
        member = torch.nn.functional.one_hot(places.flatten(), groups).double()
        flat = outputs.double().cpu().reshape(layers, batch * length, heads * dim)
        part = torch.einsum("pg,lpd->lgd", member, flat).view(layers, groups, heads, dim)
        sums = part if not sums.numel() else sums + part
        counts = counts + member.sum(0)
    whole = sums.sum(1) / counts.sum()
    means = sums / counts.clamp(min=1)[None, :, None, None]
    means[:, counts == 0] = whole[:, None]
    kept = means.to(next(checkpoint.model.parameters()).dtype)
    n = tuple(int(count) for count in counts)
    if by == "class":
        return ByClass("mean", kept, n, weights_hash=checkpoint.weights_hash)
    overall = whole[:, None].expand(-1, len(CLASSES), -1, -1).to(kept)
    return ByClass("mean", overall, n, kept if by == "position" else None, checkpoint.weights_hash)


# ---------------------------------------------------------------- another row's outputs


@dataclass(frozen=True)
class Donors:
    """Replacement outputs for "resample" ablation: the head outputs for a random reference example that differs from
    the input and is nearest in length. Positions are stretched to the length of the input.

    The choice depends on the seed, the draw number and the tokens of the input, but not on the batch. Raises InputError
    for fewer than two different examples.
    """

    checkpoint: Checkpoint
    encodings: tuple[Encoding, ...]
    seed: int = 0
    draw: int = 0
    operator: Literal["resample"] = "resample"

    @property
    def weights_hash(self) -> str:
        return self.checkpoint.weights_hash

    def __post_init__(self) -> None:
        if len({encoding.ids for encoding in self.encodings}) < 2:
            raise InputError(
                "Resample ablation needs at least two different reference inputs; got "
                f"{len({encoding.ids for encoding in self.encodings})}. Choose more inputs."
            )

    def chosen(self, encoding: Encoding) -> Encoding:
        """Choose a random reference example among those nearest in length to the input, excluding identical inputs."""
        others = [other for other in self.encodings if other.ids != encoding.ids]
        nearest = min(abs(len(other) - len(encoding)) for other in others)
        near = [other for other in others if abs(len(other) - len(encoding)) == nearest]
        generator = np.random.default_rng([self.seed, self.draw, *encoding.ids])
        return near[int(generator.integers(len(near)))]

    def given(self, encodings: Sequence[Encoding], inputs: Sequence[int]) -> Given:
        return self.resampled(encodings, lambda donors: head_outputs(self.checkpoint, donors))

    def resampled(
        self,
        encodings: Sequence[Encoding],
        outputs_of: Callable[[Sequence[Encoding]], Sequence[Float[Tensor, "layer _ head dim"]]],
    ) -> Given:
        """Return the replacement outputs for a batch: `outputs_of` applied to randomly chosen reference examples."""
        outputs = outputs_of([self.chosen(encoding) for encoding in encodings])
        return Given(torch.stack([_stretched(output, len(encodings[0])) for output in outputs], 1))


def _stretched(outputs: Float[Tensor, "layer query head dim"], length: int) -> Float[Tensor, "layer place head dim"]:
    own = outputs.shape[1]
    if own == length:
        return outputs
    places = torch.linspace(0, own - 1, length).round().long() if length > 1 else torch.zeros(1, dtype=torch.long)
    return outputs[:, places.to(outputs.device)]


# ---------------------------------------------------------------- the same words of another input


@dataclass(frozen=True)
class Alignment:
    """Aligned positions of two inputs, as pairs (position in A, position in B)."""

    pairs: tuple[tuple[int, int], ...]

    def within(self, first: Encoding, second: Encoding) -> "Alignment":
        """Return this alignment. Raises InputError if it has no pairs, or has positions outside the two inputs."""
        if not self.pairs:
            raise InputError(
                f'The two inputs of a pair must have corresponding tokens; "{first.text[:40]}" and '
                f'"{second.text[:40]}" have none. Choose inputs that differ in only a few words.'
            )
        for side, (encoding, name) in enumerate(((first, "first"), (second, "second"))):
            beyond = [pair[side] for pair in self.pairs if not 0 <= pair[side] < len(encoding)]
            if beyond:
                raise InputError(
                    f"A position in the {name} input must be from 1 to {len(encoding)}; got {beyond[0] + 1}. "
                    "Choose a position inside this input."
                )
        return self


def check_pairs(
    what_needs: str, firsts: Sequence[Encoding], seconds: Sequence[Encoding], alignments: Sequence[Alignment]
) -> None:
    """Raise InputError if pairs of inputs are missing or incomplete, or aligned positions are missing or outside an
    input. `what_needs` begins the message about pairs, such as "Patching needs"."""
    if not firsts and not seconds and not alignments:
        raise InputError(f"{what_needs} at least one pair of inputs; got none. Add pairs.")
    if not len(firsts) == len(seconds) == len(alignments):
        raise InputError(
            f"{what_needs} pairs of inputs with one token alignment per pair; got {len(firsts)} first inputs, "
            f"{len(seconds)} second inputs and {len(alignments)} alignments. Pass equal numbers of each."
        )
    for first, second, alignment in zip(firsts, seconds, alignments, strict=True):
        alignment.within(first, second)


@dataclass(frozen=True)
class Patched:
    """Activation patching: at aligned positions, the outputs of heads are replaced by those for a partner input.

    Attributes:
        outputs: of the partner of each input of the run, before W_O.
        weights_hash: of the checkpoint that computed them; "" if unknown.
    """

    outputs: Sequence[Float[Tensor, "layer _ head dim"]]
    alignments: Sequence[Alignment]
    operator: Literal["patch"] = "patch"
    weights_hash: str = ""  # of the checkpoint that was measured

    def given(self, encodings: Sequence[Encoding], inputs: Sequence[int]) -> Given:
        """Return the head outputs for the partner inputs at aligned positions. Other positions are not replaced."""
        rows, length, example = len(encodings), len(encodings[0]), self.outputs[inputs[0]]
        outputs = example.new_zeros(example.shape[0], rows, length, *example.shape[2:])
        places: Bool[Tensor, "batch query"] = torch.zeros(rows, length, dtype=torch.bool, device=example.device)
        for row, k in enumerate(inputs):
            theirs, own = (list(side) for side in zip(*self.alignments[k].pairs, strict=True))
            outputs[:, row, own] = self.outputs[k][:, theirs]
            places[row, own] = True
        return Given(outputs, places)

    def of_input(self, number: int) -> "Patched":
        return replace(self, outputs=[self.outputs[number]], alignments=[self.alignments[number]])
