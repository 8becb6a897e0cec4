"""Names of components: sublayers and layers that can be ablated besides heads, and the graph of all components.

An ablated sublayer adds nothing to the residual stream; an ablated layer is the identity. In models with the LayerNorm
after a sublayer (BERT), this LayerNorm is still applied when the sublayer is ablated.

In the component graph, senders are the embeddings, every head and every feed-forward sublayer. Receivers are the query,
key and value of every head, every feed-forward sublayer and the output. Edges lead from a sender to a later receiver.
Both are numbered in execution order.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, cast, get_args

import numpy as np
from jaxtyping import Bool

from ..attention import Head
from ..errors import InputError, check_choice

PartKind = Literal["attention", "feedforward", "layer"]
PART_KINDS: tuple[str, ...] = get_args(PartKind)
SHOWN = {"attention": "attention block", "feedforward": "feed-forward block", "layer": "whole layer"}

_NAME = re.compile(r"^L(\d{1,9})[ -]?(attention|feedforward|layer)$", re.IGNORECASE)


class LayerBlock(NamedTuple):
    """A sublayer or a whole layer. Layers count from 0: `str(LayerBlock(2, "attention"))` is "L3-attention"."""

    layer: int
    kind: PartKind

    def __str__(self) -> str:
        return f"L{self.layer + 1}-{self.kind}"

    @classmethod
    def parse(cls, name: str) -> "LayerBlock":
        """Parse the name of a sublayer or layer, such as "L3-attention" (one-based, any case)."""
        read = _NAME.match(name.strip())
        if not read or int(read[1]) == 0:
            raise InputError(
                "A sublayer or layer must be named like L3-attention, L3-feedforward or L3-layer, with layers "
                f'counted from 1; got "{name[:40]}". Correct the name.'
            )
        return cls(int(read[1]) - 1, cast(PartKind, read[2].lower()))

    def within(self, layers: int, heads: int) -> "LayerBlock":
        """Return this component. Raises InputError if a model with this number of layers does not have it."""
        if not 0 <= self.layer < layers:
            raise InputError(
                f"A layer of this checkpoint must be from L1 to L{layers}; got {self}. Choose one of these layers."
            )
        return self


Component = Head | LayerBlock


def parse_components(names: str) -> list[Component]:
    """Parse comma-separated names of heads and sublayers, such as "L1H2,L3-attention"."""
    parts = [name.strip() for name in names.split(",") if name.strip()]
    return [LayerBlock.parse(name) if "-" in name else Head.parse(name) for name in parts]


def every_part(layers: int, kinds: Iterable[str]) -> list[LayerBlock]:
    """Return the sublayers or layers of the given kinds, layer by layer. Raises InputError for an unknown kind."""
    wanted = list(kinds)
    check_choice("A component of a layer", wanted, PART_KINDS)
    return [LayerBlock(layer, cast(PartKind, kind)) for layer in range(layers) for kind in wanted]


# ---------------------------------------------------------------- the component graph


Input = Literal["q", "k", "v", ""]
INPUTS: tuple[Input, ...] = ("q", "k", "v")
EMBEDDINGS, OUTPUT = "embeddings", "output"


class Edge(NamedTuple):
    """An edge of the component graph, given by the indices of its sender and receiver."""

    sender: int
    receiver: int


@dataclass(frozen=True)
class Graph:
    """The component graph of a Transformer. Senders write to the residual stream, and receivers read from it. Each
    sender has edges to all later receivers."""

    layers: int
    heads: int

    @property
    def senders(self) -> int:
        return 1 + self.layers * (self.heads + 1)

    @property
    def receivers(self) -> int:
        """Return the number of receivers. Each head counts as three receivers: its query, key and value."""
        return self.layers * (3 * self.heads + 1) + 1

    def receiver(self, layer: int, head: int, kind: int) -> int:
        """Return the receiver index of one input of a head; `kind` is 0 for query, 1 for key and 2 for value."""
        return layer * (3 * self.heads + 1) + 3 * head + kind

    def block_receiver(self, layer: int) -> int:
        """Return the index, among all receivers, of the feed-forward sublayer of a layer. If `layer` equals the number
        of layers, return the index of the model output."""
        return layer * (3 * self.heads + 1) + (3 * self.heads if layer < self.layers else 0)

    def before_head(self, layer: int) -> int:
        """Return how many senders precede the first head of a layer, which is the index of this head among senders."""
        return 1 + layer * (self.heads + 1)

    def before(self, receiver: int) -> int:
        """Return the number of senders that are computed before a receiver."""
        layer, index = divmod(receiver, 3 * self.heads + 1)
        if layer == self.layers:
            return self.senders
        return self.before_head(layer) + (self.heads if index == 3 * self.heads else 0)

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """Return every edge of the graph, sorted by receiver and then by sender."""
        return tuple(
            Edge(sender, receiver) for receiver in range(self.receivers) for sender in range(self.before(receiver))
        )

    def sender_name(self, sender: int) -> str:
        """Return the name of a sender, such as "embeddings", "L1H2" or "L1-feedforward"."""
        if sender == 0:
            return EMBEDDINGS
        layer, index = divmod(sender - 1, self.heads + 1)
        return f"L{layer + 1}-feedforward" if index == self.heads else str(Head(layer, index))

    def receiver_name(self, receiver: int) -> tuple[str, Input]:
        """Return the name of a receiver, such as "L1H2" or "output", and the name of its input. The input is "q", "k"
        or "v" for heads, otherwise ""."""
        layer, index = divmod(receiver, 3 * self.heads + 1)
        if layer == self.layers:
            return OUTPUT, ""
        if index == 3 * self.heads:
            return f"L{layer + 1}-feedforward", ""
        return str(Head(layer, index // 3)), INPUTS[index % 3]

    def layer_of(self, receiver: int) -> int:
        """Return the zero-based layer of a receiver, or the number of layers for the output."""
        return receiver // (3 * self.heads + 1)

    def kind(self, edge: Edge) -> str:
        """Return the kind of an edge, such as "head to head", "embeddings to feed-forward" or "head to output"."""
        sender = "embeddings" if edge.sender == 0 else "head"
        if edge.sender and (edge.sender - 1) % (self.heads + 1) == self.heads:
            sender = "feed-forward"
        name, kind = self.receiver_name(edge.receiver)
        return f"{sender} to {'head' if kind else name if name == OUTPUT else 'feed-forward'}"

    def mask(self, edges: list[Edge]) -> Bool[np.ndarray, "receiver sender"]:
        """Return a boolean mask that is True for the given edges."""
        chosen = np.zeros((self.receivers, self.senders), dtype=bool)
        for edge in edges:
            chosen[edge.receiver, edge.sender] = True
        return chosen


def ends_of(name: str) -> tuple[Head, Head, str]:
    """Parse the name of an edge between heads, such as "L1H2>L3H4.q". Raises InputError for any other name."""
    sender, arrow, rest = name.partition(">")
    reader, dot, kind = rest.partition(".")
    if not arrow or not dot or kind not in INPUTS:
        raise InputError(
            "An edge must be written as sender, reader and input (q, k or v), such as L1H2>L3H4.q; got "
            f'"{name[:40]}". Correct the edge.'
        )
    ends = Head.parse(sender.strip()), Head.parse(reader.strip())
    if ends[0].layer >= ends[1].layer:
        raise InputError(
            f"An edge must lead to a head in a later layer; got an edge from {ends[0]} to {ends[1]}. Choose a head "
            "in a later layer as the end of the edge."
        )
    return (*ends, kind)


def edge_name(sender: Head, reader: str, kind: str) -> str:
    """Return the name of an edge from one head to another, such as "L1H2>L3H4.q" for an edge to the query of L3H4."""
    return f"{sender}>{reader}.{kind}"
