"""A model run as a circuit: every edge of it as in A, every other edge with the sender's contribution from B."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from .edges import PairRun
from .layer_runs import attend, feed

BATCH_TOKENS = 4096


def circuit_logits(
    run: PairRun, circuits: Bool[Tensor, "circuit receiver sender"], *, batch_tokens: int = BATCH_TOKENS
) -> Float[Tensor, "circuit pair choice"]:
    """Logits of A under every circuit, each of which runs as a model of its own.

    Each receiver reads a stream of its own: from senders in the circuit what they add in this very run, from all others
    what they add in B. With every edge it is A's logits; with none, and B as long as A, B's.

    Args:
        circuits: True where the receiver reads the sender from A's side (`Graph.mask`).
        batch_tokens: tokens of circuits and pairs run together; one circuit at least.

    Returns:
        On the CPU, in the stack's dtype, float32 at least.
    """
    pairs, length = run.last.shape[:2]
    at_once = max(1, batch_tokens // (pairs * length))
    with torch.no_grad():
        parts = [_Circuits(run, batch).logits() for batch in circuits.to(run.last.device).split(at_once)]
    return torch.cat(parts).cpu()


@dataclass
class _Circuits:
    """Circuits side by side; `added` grows as senders run."""

    run: PairRun
    circuits: Bool[Tensor, "circuit receiver sender"]

    def logits(self) -> Float[Tensor, "circuit pair choice"]:
        """From the embeddings to the output."""
        run, graph = self.run, self.run.graph
        count = len(self.circuits)
        self.added = run.own[:1].unsqueeze(1).expand(-1, count, *run.own.shape[1:])  # [sender, circuit, pair, ...]
        for layer, block in enumerate(run.stack.blocks):
            first = graph.receiver(layer, 0, 0)
            read = block.seen(self.streams(list(range(first, first + 3 * graph.heads)), layer, with_heads=False))
            states = [self._projected(read[kind::3], layer, kind) for kind in range(3)]
            mixed = attend(run.stack, *states)
            mixed = mixed.unflatten(0, (count, -1)).transpose(2, 3)  # [circuit, pair, position, head, dim]
            heads = torch.einsum("cblhd,hdi->hcbli", mixed, block.separate["out"])
            self.added = torch.cat([self.added, heads])
            middle = self.streams([graph.block_receiver(layer)], layer, with_heads=True)[0]
            fed = feed(block, block.norms[1](middle) if block.norm_first else middle)
            self.added = torch.cat([self.added, fed[None]])
        last = self.streams([graph.block_receiver(graph.layers)], graph.layers, with_heads=False)[0]
        return run.stack.logits(last)

    def streams(self, receivers: Sequence[int], layer: int, *, with_heads: bool) -> Tensor:
        """The stream that each receiver reads. *Shape:* (receiver, circuit, pair, position, hidden).

        layer: whose input it is; with_heads: behind its heads, where the feed-forward block reads.
        """
        run, graph = self.run, self.run.graph
        stream = self._heard(receivers, 0, 1)
        for number in range(layer + with_heads):
            block, layer_run, start = run.stack.blocks[number], run.layers[number], graph.before_head(number)
            constant = layer_run.joined - layer_run.x - run.own[start : start + graph.heads].sum(0)
            stream = stream + self._heard(receivers, start, start + graph.heads) + constant
            if not block.norm_first:
                stream = block.norms[0](stream)
            if number < layer:
                stream = stream + self._heard(receivers, start + graph.heads, start + graph.heads + 1)
                if not block.norm_first:
                    stream = block.norms[1](stream)
        return stream

    def _heard(self, receivers: Sequence[int], start: int, stop: int) -> Tensor:
        """What these senders add for each receiver, summed."""
        other, chosen = self.run.other[start:stop], self.circuits[:, receivers, start:stop].to(self.run.own)
        moved = self.added[start:stop] - other[:, None]
        return torch.einsum("crs,scbli->rcbli", chosen, moved) + other.sum(0)

    def _projected(self, read: Float[Tensor, "head circuit pair position hidden"], layer: int, kind: int) -> Tensor:
        """Each head's queries, keys or values. *Shape:* (circuit x pair, head, position, dim)."""
        raw, name = self.run.stack.blocks[layer].separate, ("query", "key", "value")[kind]
        states = torch.einsum("hcbli,hdi->cbhld", read, raw[name]) + raw[f"{name}_bias"][:, None]
        return states.flatten(0, 1)
