"""Decomposition of the attention scores of one layer for one input, after a forward pass by `layer_scores`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from ...capture.contributions import HeadInputs, take_head_inputs
from ...capture.contributors import Contributor
from ...errors import InputError, check_choice
from ...models.checkpoint import Checkpoint
from ...models.encoding import Encoding
from ...scoring.score_parts import cell_terms

BY_PLACE = "added by place alone"  # a bias of the scores themselves (T5)


@dataclass(frozen=True)
class CellTerm:
    """The part of an attention score that comes from one contribution to the query and one contribution to the key.

    Terms are log odds between keys (nats), relative to their mean over visible keys. `query_part` and `key_part` name
    the contributions, such as "position 5", "L1H4's output on 'teacher'" or, for groups, "heads of L1".
    """

    query_part: str
    key_part: str
    value: float
    query_group: str = ""
    key_group: str = ""


@dataclass(frozen=True)
class Cell:
    """The attention score of a query and a key, relative to the query's mean score. The `terms` sum to this score."""

    score: float
    weight: float
    terms: tuple[CellTerm, ...]

    def largest(self, count: int) -> list[CellTerm]:
        """Return the terms with the largest absolute values, then the sum of all other terms as one term."""
        rest = self.terms[count:]
        others = [CellTerm(f"{len(rest)} others", "", sum(term.value for term in rest))] if rest else []
        return [*self.terms[:count], *others]


@dataclass(frozen=True)
class LayerScores:
    """The attention scores of all heads in one layer on one input, decomposed into contributions.

    `key_encoding` holds the tokens of the keys, which differ from those of the queries only in cross-attention.
    """

    inputs: HeadInputs
    encoding: Encoding
    key_encoding: Encoding

    def cell(self, head: int, query: int, key: int) -> Cell:
        """Decompose an attention score into terms. Raises InputError for an unknown head or token, or a hidden key."""
        self.check(head, query, key)
        visible = self._visible(head)[query]
        inputs = self.inputs
        terms = cell_terms(
            inputs.query[:, 0, head, query], inputs.key[:, 0, head], key, visible, scaling=inputs.scaling
        )
        named = [
            CellTerm(
                in_words(inputs.query_components[a], self.encoding, query),
                in_words(inputs.key_components[b], self.key_encoding, key),
                float(terms[a, b]),
                inputs.query_components[a].group,
                inputs.key_components[b].group,
            )
            for a in range(terms.shape[0])
            for b in range(terms.shape[1])
        ]
        if inputs.bias is not None:
            row = inputs.bias[0, head, query]
            named.append(CellTerm(BY_PLACE, BY_PLACE, float(row[key] - row[visible].mean())))
        named.sort(key=lambda term: -abs(term.value))
        score = float(sum(term.value for term in named))
        return Cell(score, float(inputs.weights[0, head, query, key]), tuple(named))

    def groups(self, side: Literal["query", "key"]) -> list[str]:
        """List the groups of contributions to queries or keys, such as "position" or "heads of L2", in layer order."""
        components = self.inputs.query_components if side == "query" else self.inputs.key_components
        return list(dict.fromkeys(part.group for part in sorted(components, key=lambda part: part.order)))

    def map_of(self, head: int, group: str, side: Literal["query", "key"] = "key") -> Float[Tensor, "query key"]:
        """Compute the attention map that a head would have if its keys (or queries) contained only one group of
        contributions. Raises InputError for an unknown head or group."""
        self.check(head, 0, 0)
        check_choice("A group of contributions", group, self.groups(side))
        inputs = self.inputs
        query, key = inputs.whole_query[0, head], inputs.whole_key[0, head]
        if side == "query":
            query = _of_group(inputs.query[:, 0, head], inputs.query_components, group)
        else:
            key = _of_group(inputs.key[:, 0, head], inputs.key_components, group)
        scores = (query @ key.mT * inputs.scaling).masked_fill(~self._visible(head), -torch.inf)
        return torch.softmax(scores, -1)

    def _visible(self, head: int) -> Tensor:
        visible = self.inputs.visible[0]
        return visible[min(head, len(visible) - 1)]

    def check(self, head: int, query: int, key: int) -> None:
        """Raise InputError if the head does not exist in the layer, or if a token does not exist in the input."""
        sizes = (self.inputs.query.shape[2], self.inputs.query.shape[3], self.inputs.key.shape[3])
        for name, number, size in zip(("head", "query", "key"), (head, query, key), sizes, strict=True):
            if not 0 <= number < size:
                raise InputError(
                    f"The {name} in layer {self.inputs.layer + 1} must be from 1 to {size}; got {number + 1}. "
                    "Choose a number in this range."
                )


def _of_group(states: Tensor, components: Sequence[Contributor], group: str) -> Tensor:
    return states[[number for number, component in enumerate(components) if component.group == group]].sum(0)


def in_words(component: Contributor, encoding: Encoding, position: int) -> str:
    """Describe a contribution at a position as text, such as "position 5" or "L1H4's output on 'cat'"."""
    token = encoding.tokens[position]
    match component.kind:
        case "position":
            return f"position {position + 1}"
        case "token":
            return f"the word '{token}'"
        case "segment":
            return f"segment {encoding.segments[position] + 1}"
        case "head" | "attention" | "feed-forward":
            return f"{component.label}'s output on '{token}'"
    return "a constant" if component.kind == "bias" else component.label


def layer_scores(checkpoint: Checkpoint, encoding: Encoding, layer: int, *, part: str = "") -> LayerScores:
    """Decompose the attention scores in a layer for one input into contributions of embeddings, earlier heads and MLPs.

    `part` is the kind of heads in an encoder-decoder ("": the first). Raises InputError if the layer does not exist,
    and InterventionError if the model cannot be decomposed exactly.
    """
    heads = checkpoint.head_set(part)
    if not 0 <= layer < heads.layers:
        raise InputError(
            f"The layer of {checkpoint.name} must be from 1 to {heads.layers}; got {layer + 1}. Choose a layer in "
            "this range."
        )
    layers: list[HeadInputs] = []
    take_head_inputs(
        checkpoint, [encoding], lambda inputs, _: layers.append(inputs), layers=[layer], part=part, by_head=True
    )
    has_target = heads.part in ("decoder", "cross") and encoding.target is not None
    queries = encoding.target if has_target and encoding.target is not None else encoding
    return LayerScores(layers[0], queries, encoding if heads.part == "cross" else queries)
