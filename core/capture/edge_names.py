"""The nodes and edges of a Transformer as a graph: who writes to the residual stream, and who reads what it wrote.

Senders are the embeddings, every head and every feed-forward block; receivers are every head's query, key and value,
every feed-forward block and the output. An edge goes from a sender to a receiver that runs after it. Numbers of
senders and receivers are their places in the order in which they run.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool

from ..attention import Head
from ..errors import InputError

Input = Literal["q", "k", "v", ""]
INPUTS: tuple[Input, ...] = ("q", "k", "v")
EMBEDDINGS, OUTPUT = "embeddings", "output"


class Edge(NamedTuple):
    """An edge of the graph: the numbers of its sender and its receiver."""

    sender: int
    receiver: int


@dataclass(frozen=True)
class Graph:
    """The nodes and edges of a model with so many layers and so many heads in each."""

    layers: int
    heads: int

    @property
    def senders(self) -> int:
        """How many senders there are."""
        return 1 + self.layers * (self.heads + 1)

    @property
    def receivers(self) -> int:
        """How many receivers there are; a head is three."""
        return self.layers * (3 * self.heads + 1) + 1

    def receiver(self, layer: int, head: int, kind: int) -> int:
        """The number of a head's input: kind 0 query, 1 key, 2 value."""
        return layer * (3 * self.heads + 1) + 3 * head + kind

    def block_receiver(self, layer: int) -> int:
        """The number of a feed-forward block's input; the output's where `layer` is one past the last."""
        return layer * (3 * self.heads + 1) + (3 * self.heads if layer < self.layers else 0)

    def before_head(self, layer: int) -> int:
        """How many senders run before the heads of a layer."""
        return 1 + layer * (self.heads + 1)

    def before(self, receiver: int) -> int:
        """How many senders run before a receiver."""
        layer, index = divmod(receiver, 3 * self.heads + 1)
        if layer == self.layers:
            return self.senders
        return self.before_head(layer) + (self.heads if index == 3 * self.heads else 0)

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """Every edge, receivers in their order, then senders."""
        return tuple(
            Edge(sender, receiver) for receiver in range(self.receivers) for sender in range(self.before(receiver))
        )

    def sender_name(self, sender: int) -> str:
        """The name of a sender: "embeddings", "L1H2" or "L1-feedforward"."""
        if sender == 0:
            return EMBEDDINGS
        layer, index = divmod(sender - 1, self.heads + 1)
        return f"L{layer + 1}-feedforward" if index == self.heads else str(Head(layer, index))

    def receiver_name(self, receiver: int) -> tuple[str, Input]:
        """The name of a receiver, "L1H2", "L1-feedforward" or "output", and which input of a head it is, else ""."""
        layer, index = divmod(receiver, 3 * self.heads + 1)
        if layer == self.layers:
            return OUTPUT, ""
        if index == 3 * self.heads:
            return f"L{layer + 1}-feedforward", ""
        return str(Head(layer, index // 3)), INPUTS[index % 3]

    def layer_of(self, receiver: int) -> int:
        """The layer of a receiver; of the output the number of layers."""
        return receiver // (3 * self.heads + 1)

    def kind(self, edge: Edge) -> str:
        """The kind of an edge: "embeddings", "head" or "feed-forward" to "head", "feed-forward" or "output"."""
        sender = "embeddings" if edge.sender == 0 else "head"
        if edge.sender and (edge.sender - 1) % (self.heads + 1) == self.heads:
            sender = "feed-forward"
        name, kind = self.receiver_name(edge.receiver)
        return f"{sender} to {'head' if kind else name if name == OUTPUT else 'feed-forward'}"

    def mask(self, edges: list[Edge]) -> Bool[np.ndarray, "receiver sender"]:
        """Which senders each receiver hears in a circuit.

        Returns:
            True where an edge is.
        """
        chosen = np.zeros((self.receivers, self.senders), dtype=bool)
        for edge in edges:
            chosen[edge.receiver, edge.sender] = True
        return chosen


def ends_of(name: str) -> tuple[Head, Head, str]:
    """The sender, the reader and which of its inputs a name like "L1H2>L3H4.q" says. Raises InputError for others."""
    sender, arrow, rest = name.partition(">")
    reader, dot, kind = rest.partition(".")
    if not arrow or not dot or kind not in INPUTS:
        raise InputError(f'An edge is written like L1H2>L3H4.q, with q, k or v; "{name[:40]}" is not: correct it.')
    ends = Head.parse(sender.strip()), Head.parse(reader.strip())
    if ends[0].layer >= ends[1].layer:
        raise InputError(
            f"{ends[1]} cannot read {ends[0]}, which does not run before it: name a head of a later layer."
        )
    return (*ends, kind)


def edge_name(sender: Head, reader: str, kind: str) -> str:
    """The name of an edge, as `ends_of` reads it: "L1H2>L3H4.q"."""
    return f"{sender}>{reader}.{kind}"
