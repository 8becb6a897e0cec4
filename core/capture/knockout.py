"""Which edges of attention a knockout cuts, by name: separators, across sentences, diagonals, or chosen words.

Geva et al. (2023, "Dissecting recall of factual associations") cut edges by -inf before the softmax. In causal models
the first query sees only itself, so no kind but chosen words takes that away.
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
    """The edges of one kind on any input. Hashable, so that a study can name it.

    Attributes:
        causal: whether edges to later keys are left out, and the first token's to itself.
    """

    kind: str
    causal: bool

    def __call__(self, encoding: Encoding) -> Bool[Tensor, "query key"]:
        """True where an edge is cut; nowhere where the input lacks the kind (no second sentence, no separator)."""
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
    """Links between named positions of each input.

    Attributes:
        links: of each input, (earlier, later) positions from 0.
        causal: whether only the later one's edge to the earlier is cut; otherwise both ways are.
    """

    links: Mapping[Encoding, Sequence[tuple[int, int]]]
    causal: bool

    def __call__(self, encoding: Encoding) -> Bool[Tensor, "query key"]:
        """True where a link of this input is; nowhere for an input that has none."""
        edges = torch.zeros(len(encoding), len(encoding), dtype=torch.bool)
        for earlier, later in self.links.get(encoding, ()):
            edges[later, earlier] = True
            edges[earlier, later] = not self.causal
        return edges


def edges_of(kind: str, *, causal: bool) -> NamedEdges:
    """The edges of a kind. Raises InputError for an unknown one, and for "next" in causal models."""
    if kind not in EDGES:
        raise InputError(f'Edges to cut are {", ".join(EDGES)}, or chosen words; "{kind}" is none of them.')
    if causal and kind == "next":
        raise InputError("A causal model has no edge to the next token: choose current or previous.")
    return NamedEdges(kind, causal)


def between(queries: Sequence[int], keys: Sequence[int]) -> Callable[[Encoding], Bool[Tensor, "query key"]]:
    """The edges from some positions to others of one input.

    Args:
        queries: positions that look, from 0.
        keys: positions that are looked at, from 0.

    Returns:
        Called with the input it says True where an edge is cut; it raises InputError where a position lies outside.

    Raises:
        InputError: there are no queries, or no keys.
    """
    if not queries or not keys:
        raise InputError("A knockout of words needs words that look and words they look at; one of them is empty.")

    def edges(encoding: Encoding) -> Tensor:
        beyond = [place for place in (*queries, *keys) if not 0 <= place < len(encoding)]
        if beyond:
            raise InputError(
                f"The input has positions 1 to {len(encoding)}; position {beyond[0] + 1} was named: choose one of them."
            )
        cut = torch.zeros(len(encoding), len(encoding), dtype=torch.bool)
        cut[torch.tensor(list(queries))[:, None], torch.tensor(list(keys))] = True
        return cut

    return edges
