"""Attention edges that a knockout cuts, by name: to separators, across sentences, on diagonals, or between chosen
words.

Edges are cut by -inf before the softmax (Geva et al. 2023, "Dissecting recall of factual associations"). In causal
models, the first query attends only to itself; only chosen words can cut that edge.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor

from ..errors import InputError
from ..models.encoding import Encoding

EDGES = {
    "separators": "every column of a separator",
    "first": "the column of the first token",
    "across": "between the words of the two sentences, both ways",
    "current": "from each token to itself",
    "previous": "from each token to the one before",
    "next": "from each token to the one after",
}
_OFFSETS = {"current": 0, "previous": -1, "next": 1}


@dataclass(frozen=True)
class NamedEdges:
    """A named set of attention edges (query-key pairs), such as all edges to separators.

    In causal models, edges to later keys and the edge from the first token to itself are excluded. Instances are
    hashable.
    """

    kind: str
    causal: bool

    def __call__(self, encoding: Encoding) -> Bool[Tensor, "query key"]:
        """Return True for each edge that is cut; all False if the input has no such edges."""
        length = len(encoding)
        edges = torch.zeros(length, length, dtype=torch.bool)
        if self.kind in _OFFSETS:
            offset = _OFFSETS[self.kind]
            edges |= torch.diag(torch.ones(max(0, length - abs(offset)), dtype=torch.bool), offset)[:length, :length]
        elif self.kind == "separators":
            edges[:, list(encoding.separators)] = True
        elif self.kind == "first" and encoding.first is not None:
            edges[:, encoding.first] = True
        elif self.kind == "across":
            sentences = torch.tensor([-1 if sentence is None else sentence for sentence in encoding.sentence])
            edges = (sentences[:, None] >= 0) & (sentences[None] >= 0) & (sentences[:, None] != sentences[None])
        if self.causal:
            edges = edges.tril()
            edges[0, 0] = False
        return edges


@dataclass(frozen=True, eq=False)
class LinkEdges:
    """The attention edges between linked positions of each input. Links are pairs (earlier, later). If `causal`, only
    the edge from the later to the earlier position is cut, otherwise both edges are cut."""

    links: Mapping[Encoding, Sequence[tuple[int, int]]]
    causal: bool

    def __call__(self, encoding: Encoding) -> Bool[Tensor, "query key"]:
        edges = torch.zeros(len(encoding), len(encoding), dtype=torch.bool)
        for earlier, later in self.links.get(encoding, ()):
            edges[later, earlier] = True
            edges[earlier, later] = not self.causal
        return edges


def edges_of(kind: str, *, causal: bool) -> NamedEdges:
    """Return the set of attention edges with the given name. Raises InputError if the name is unknown, or if it is
    "next" and the model is causal."""
    if kind not in EDGES:
        raise InputError(
            f"The kind of edges to cut must be one of {', '.join(EDGES)}, or edges between chosen words; got "
            f'"{kind}". Choose one of them.'
        )
    if causal and kind == "next":
        raise InputError(
            'Edges of the kind "next" do not exist in a causal model, which never attends to later tokens. '
            "Choose current or previous."
        )
    return NamedEdges(kind, causal)


def between(queries: Sequence[int], keys: Sequence[int]) -> Callable[[Encoding], Bool[Tensor, "query key"]]:
    """Return a function that marks the attention edges of an input from given queries to given keys.

    Raises InputError without queries or keys; the function raises InputError if a position is outside the input.
    """
    if not queries or not keys:
        raise InputError(
            "Edges between words can be cut only if query words and key words are chosen; at least one of the two "
            "lists is empty. Choose words for both."
        )

    def edges(encoding: Encoding) -> Tensor:
        beyond = [place for place in (*queries, *keys) if not 0 <= place < len(encoding)]
        if beyond:
            raise InputError(
                f"A token position must be from 1 to {len(encoding)}; got {beyond[0] + 1}. Choose a position in "
                "this range."
            )
        cut = torch.zeros(len(encoding), len(encoding), dtype=torch.bool)
        cut[torch.tensor(list(queries))[:, None], torch.tensor(list(keys))] = True
        return cut

    return edges
