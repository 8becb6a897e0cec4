"""What attention to sink tokens does: where sinks are, and the outputs without a sink's contribution.

A head adds sum_j p[i, j] o_j to query i, with o_j = v_j W_O. A change replaces the value v_s at the keys s of one kind
by 0 or by its mean over inputs, for all queries, and leaves the attention weights as they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ..attention import visible_keys
from ..models.checkpoint import Checkpoint
from ..models.encoding import Encoding
from .norms import Contributions, contributions
from .running import batches, prepared

KINDS = ("first token", "separators", "punctuation")
TOKENS = 2048  # in one forward pass, over changes
LARGE, MASSIVE = 100, 1000  # times the median magnitude of a layer (Sun et al. 2024)


def keys_of(encoding: Encoding) -> Bool[np.ndarray, "kind key"]:
    """Return masks of the first token, the separators and the punctuation among the keys of an input."""
    keys = np.zeros((len(KINDS), len(encoding)), dtype=bool)
    keys[0, encoding.first or 0] = True
    keys[1, list(encoding.separators)] = True
    keys[2, list(encoding.punctuation)] = True
    return keys


# ---------------------------------------------------------------- where sinks are


@dataclass(frozen=True)
class SinkSums:
    """The attention of each head to each kind of sink token, and the contribution of these tokens to the head's output.
    NaN for inputs without such tokens.

    Attributes:
        share: mean over the queries of the text of the attention to keys of the kind.
        even: the same under uniform attention.
        length: mean |o_s|, divided by the median |o_j| of the input.
        energy: share of the head's output that comes from these keys: sum_i <p_is o_s, z_i> / sum_i |z_i|^2.
        rank: participation ratio of the head's outputs over queries; 1 if they all point the same way.
        values: mean of v_s over all such keys of all inputs.
        varies: share of the mean squared norm of o_s that is variance; 0 for a constant.
    """

    share: Float[np.ndarray, "input layer head kind"]
    even: Float[np.ndarray, "input layer kind"]
    length: Float[np.ndarray, "input layer head kind"]
    energy: Float[np.ndarray, "input layer head kind"]
    rank: Float[np.ndarray, "input layer head"]
    values: Float[np.ndarray, "layer head kind dim"]
    varies: Float[np.ndarray, "layer head kind"]


def find_sinks(checkpoint: Checkpoint, encodings: Sequence[Encoding]) -> SinkSums:
    """Measure the attention of every head to first tokens, separators and punctuation. Raises InputError if value
    vectors cannot be read."""
    shape = (len(encodings), checkpoint.layers, checkpoint.heads, len(KINDS))
    share, length, energy = (np.full(shape, np.nan) for _ in range(3))
    even, rank = np.full((*shape[:2], len(KINDS)), np.nan), np.full(shape[:3], np.nan)
    totals: dict[int, list[Tensor]] = {}  # by layer: sums of v, of o R^T, and of its squared norm
    counts = torch.zeros(len(KINDS), dtype=torch.float64)
    kinds = [torch.from_numpy(keys_of(encoding)) for encoding in encodings]
    for keys in kinds:
        counts += keys.sum(1)
    windows = checkpoint.windows or (None,) * checkpoint.layers

    def take(layer: int, taken: Contributions, inputs: list[int]) -> None:
        added = torch.matmul(taken.values, taken.projection.triangle)  # as long as o, and smaller
        for row, number in enumerate(inputs):
            keys, encoding = kinds[number], encodings[number]
            places, there = keys.to(added), keys.any(1).numpy()
            seen = visible_keys(
                np.arange(len(encoding)), len(encoding), causal=checkpoint.causal, window=windows[layer]
            )
            queries = np.array([k for k in encoding.ordinary if seen[k].sum() > 1], dtype=int)
            values, lengths = added[row], added[row].norm(dim=-1)
            sums = [torch.einsum("ck,hkd->hcd", places, one) for one in (taken.values[row], values)]
            squares = torch.einsum("ck,hk->hc", places, lengths**2)
            new = [one.double().cpu() for one in (*sums, squares)]
            totals[layer] = list(map(torch.add, totals[layer], new)) if layer in totals else new
            if not len(queries):
                continue
            weights = taken.weights[row][:, queries]
            outputs = torch.matmul(weights, values)
            on_kind = torch.einsum("hqk,ck->hcq", weights, places)
            of_kind = torch.einsum("hqk,ck,hkd->hcqd", weights, places, values)
            whole = (outputs**2).sum((1, 2)).clamp(min=1e-30)
            gram = torch.matmul(outputs, outputs.transpose(1, 2))
            usual = lengths.median(-1).values.clamp(min=1e-30)
            mean = torch.einsum("ck,hk->hc", places, lengths) / places.sum(1).clamp(min=1)
            share[number, layer] = np.where(there, on_kind.mean(-1).double().cpu(), np.nan)
            length[number, layer] = np.where(there, (mean / usual[:, None]).double().cpu(), np.nan)
            energy[number, layer] = np.where(
                there, ((of_kind * outputs[:, None]).sum((2, 3)) / whole[:, None]).double().cpu(), np.nan
            )
            rank[number, layer] = (whole**2 / (gram**2).sum((1, 2)).clamp(min=1e-30)).double().cpu()
            visible = seen[queries]
            shares = np.array([(visible & own).sum(1) / visible.sum(1) for own in keys.numpy()]).mean(1)
            even[number, layer] = np.where(there, shares, np.nan)

    contributions(checkpoint, encodings, take)
    dim = next(iter(totals.values()))[0].shape[-1]
    means = np.zeros((checkpoint.layers, checkpoint.heads, len(KINDS), dim))
    varies = np.full(means.shape[:3], np.nan)
    for layer, (values, added, squares) in totals.items():
        n = counts.clamp(min=1)[:, None]
        means[layer] = (values / n).numpy()
        size = squares / n[:, 0]
        varies[layer] = (1 - (added / n).pow(2).sum(-1) / size.clamp(min=1e-30)).clamp(min=0).numpy()
    return SinkSums(share, even, length, energy, rank, means, varies)


# ---------------------------------------------------------------- massive activations


class Massive(NamedTuple):
    """The largest absolute entry of the hidden states after one layer, as a multiple of the median for the same input.

    Attributes:
        kind: index into KINDS of the token that has it; -1 for other tokens.
        large, massive: mean number of entries per input above LARGE and MASSIVE times the median.
    """

    ratio: float
    channel: int
    kind: int
    large: float
    massive: float


def massive_activations(checkpoint: Checkpoint, encodings: Sequence[Encoding]) -> list[Massive]:
    """Return the largest activation after every layer (massive activations of Sun et al. 2024, arXiv 2402.17762)."""
    found = [Massive(0.0, 0, -1, 0.0, 0.0)] * checkpoint.layers
    model = getattr(checkpoint.model, "base", checkpoint.model)
    for inputs in batches(encodings):
        with torch.no_grad():
            states = model(**checkpoint.inputs([encodings[k] for k in inputs]), output_hidden_states=True).hidden_states
        for layer, after in enumerate(states[1 : checkpoint.layers + 1]):
            for row, number in enumerate(inputs):
                sizes = after[row].abs().double()
                ratios = sizes / sizes.median().clamp(min=1e-30)
                position, channel = divmod(int(ratios.argmax()), ratios.shape[-1])
                kinds = np.flatnonzero(keys_of(encodings[number])[:, position])
                own = Massive(
                    float(ratios.max()), channel, int(kinds[0]) if len(kinds) else -1,
                    float((ratios > LARGE).sum()), float((ratios > MASSIVE).sum()),
                )  # fmt: skip
                so_far, share = found[layer], 1 / len(encodings)
                best = max(so_far, own, key=lambda one: one.ratio)
                found[layer] = best._replace(
                    large=so_far.large + share * own.large, massive=so_far.massive + share * own.massive
                )
    return found


# ---------------------------------------------------------------- effects


@dataclass(frozen=True)
class SinkChange:
    """An ablation of one head. If `how` is "head", the output of the head is set to 0. If `how` is "zero" or "mean",
    its value vectors at sink tokens of one `kind` are set to 0 or to their mean over inputs."""

    layer: int
    head: int
    how: str
    kind: int = 0
    mean: Float[np.ndarray, " dim"] | None = None


def measure_of(checkpoint: Checkpoint) -> str:
    """Return the name of the measure for output changes, such as "KL divergence of the token distributions"."""
    if checkpoint.labels is not None:
        return "change of the score" if len(checkpoint.labels) == 1 else "KL divergence of the label distribution"
    if checkpoint.model.get_output_embeddings() is not None:
        return "KL divergence of the token distributions"
    return "cosine distance of the mean token vector"


def output_changes(
    checkpoint: Checkpoint, encodings: Sequence[Encoding], targets: Sequence[Sequence[SinkChange]]
) -> Float[np.ndarray, "target input"]:
    """Return the output change that each set of ablations causes for each input. `measure_of` names the measure. The
    divergence is KL(unchanged || changed) in nats, averaged over positions for language models."""
    effects = np.zeros((len(targets), len(encodings)))
    for inputs in batches(encodings):
        some = [encodings[k] for k in inputs]
        before = _output(checkpoint, some, [()] * len(some))
        together = max(1, TOKENS // (len(some) * len(some[0])))  # targets in one forward pass
        for start in range(0, len(targets), together):
            part = targets[start : start + together]
            rows = [changes for changes in part for _ in some]
            after = _output(checkpoint, list(some) * len(part), rows)
            moved = _moved(before.repeat(len(part), *[1] * (before.dim() - 1)), after)
            effects[start : start + len(part), inputs] = moved.reshape(len(part), -1).cpu().numpy()
    return effects


def _output(checkpoint: Checkpoint, some: Sequence[Encoding], changes: Sequence[Sequence[SinkChange]]) -> Tensor:
    """The output of a batch, each row with its own changes: log-probabilities [batch, position, class], scores, or
    vectors."""
    by_layer: dict[int, list[tuple[int, SinkChange]]] = {}
    for row, own in enumerate(changes):
        for change in own:
            by_layer.setdefault(change.layer, []).append((row, change))
    held: dict[int, Tensor] = {}
    kinds = {id(encoding): torch.from_numpy(keys_of(encoding)) for encoding in some}

    def watch(layer: int, weights: Tensor) -> None:
        held[layer] = weights

    def mix(layer: int, output: Tensor, values: Tensor, _: Tensor | None) -> Tensor:
        weights = held.pop(layer) if layer in held else None
        output = output.clone() if layer in by_layer else output
        for row, change in by_layer.get(layer, ()):
            if change.how == "head" or weights is None:
                output[row, :, change.head] = 0
                continue
            keys = kinds[id(some[row])][change.kind].to(values.device)
            new = 0.0 if change.mean is None else torch.from_numpy(change.mean).to(values)
            shift = new - values[row, change.head, keys]
            on_keys = weights[row, change.head, :, : len(keys)][:, keys].to(values.dtype)
            output[row, :, change.head] += torch.matmul(on_keys, shift)
        return output

    watched = [layer for layer, own in by_layer.items() if any(change.how != "head" for _, change in own)]
    with torch.no_grad(), prepared(checkpoint, watcher=watch if watched else None, layers=watched) as run:
        run.mixer = mix if by_layer else None
        out: Any = checkpoint.model(**checkpoint.inputs(some))
    if getattr(out, "logits", None) is None:
        return out.last_hidden_state.double().mean(1)
    logits = out.logits.double()
    if logits.shape[-1] == 1:
        return logits[:, 0]
    return (logits if logits.dim() == 3 else logits[:, None]).log_softmax(-1)


def _moved(before: Tensor, after: Tensor) -> Float[Tensor, " batch"]:
    if before.dim() == 1:
        return (after - before).abs()
    if before.dim() == 2:
        return 1 - torch.cosine_similarity(before, after, dim=-1)
    return (before.exp() * (before - after)).sum(-1).mean(-1).clamp(min=0)
