"""A tensor as a sum of named contributions, with compact storage for those that do not depend on the input.

Contributions that depend on the input (words, heads, feed-forward sublayers) are as large as the stream. Positions,
segments and constants are a few vectors, scaled at each position by LayerNorms, so projecting them is cheap.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from .contributors import BIAS, LAST_BIAS, Contributor

Role = Literal["stream", "heads", "branch"]


@dataclass(frozen=True)
class FrozenNorm:
    """The contributions that add up to the input of a LayerNorm or RMSNorm. `is_centred` is True if the norm subtracts
    the mean (LayerNorm)."""

    components: tuple[Contributor, ...]
    parts: Float[Tensor, "component batch position hidden"]
    is_centred: bool
    eps: float

    @cached_property
    def spread(self) -> Float[Tensor, "batch position"]:
        """Return the standard deviation (LayerNorm) or root mean square (RMSNorm) by which the norm divides at each
        position."""
        return self._spread(self.parts.sum(0))

    def spread_with(
        self, component: Contributor, replacement: Float[Tensor, " hidden"]
    ) -> Float[Tensor, "batch position"]:
        """Return the divisor of the norm at each position if one contribution is replaced by a constant vector."""
        return self._spread(self.parts.sum(0) - self.parts[self.components.index(component)] + replacement)

    def _spread(self, states: Tensor) -> Tensor:
        states = states - states.mean(-1, keepdim=True) if self.is_centred else states
        return (states.pow(2).mean(-1) + self.eps).sqrt()


@dataclass(frozen=True)
class HeldNorm:
    """A LayerNorm or RMSNorm whose scale is fixed, which makes it linear.

    Attributes:
        is_centred: whether it subtracts the mean (LayerNorm) or not (RMSNorm).
        scale: 1 / the standard deviation (or root mean square) of each row.
    """

    is_centred: bool
    scale: Float[Tensor, "*rows 1"]
    weight: Float[Tensor, " hidden"] | None

    def write(self, parts: Tensor, out: Tensor) -> None:
        """Normalise the contributions (component, *rows, hidden), and write the result to an existing tensor."""
        factor = self.scale if self.weight is None else self.scale * self.weight
        if self.is_centred:
            torch.sub(parts, parts.mean(-1, keepdim=True), out=out).mul_(factor)
        else:
            torch.mul(parts, factor, out=out)


@dataclass(frozen=True)
class FixedPart:
    """A contribution that is a weighted sum of a few fixed vectors. The weights differ between positions.

    Attributes:
        vectors: summed; position axes have length 1 or that of the tensor.
        scales: of each vector and row; None if all are 1.
    """

    component: Contributor
    vectors: Float[Tensor, "vector *places hidden"]
    scales: Float[Tensor, "vector *rows 1"] | None = None

    def normed(self, norm: HeldNorm) -> "FixedPart":
        vectors = self.vectors - self.vectors.mean(-1, keepdim=True) if norm.is_centred else self.vectors
        vectors = vectors if norm.weight is None else vectors * norm.weight
        scale = norm.scale[None].expand(len(vectors), *norm.scale.shape)
        return replace(self, vectors=vectors, scales=scale if self.scales is None else self.scales * scale)

    def projected(self, weight: Float[Tensor, "hidden out"]) -> "FixedPart":
        """Return this contribution with its vectors multiplied by a weight matrix."""
        return replace(self, vectors=self.vectors @ weight)

    def add_to(self, tensor: Float[Tensor, "*rows out"]) -> None:
        if self.scales is None:
            tensor += self.vectors.sum(0)
        elif self.vectors.shape[1:-1].numel() == 1:  # one vector, scaled differently in each place
            rows = self.scales.expand(-1, *tensor.shape[:-1], 1).flatten(1)
            tensor.view(-1, tensor.shape[-1]).addmm_(rows.mT, self.vectors.flatten(1))
        else:
            for vector, scale in zip(self.vectors, self.scales, strict=True):
                tensor.addcmul_(vector.expand_as(tensor), scale.expand_as(tensor))

    def renamed(self, component: Contributor) -> "FixedPart":
        return replace(self, component=component)


def fixed_part(component: Contributor, vector: Float[Tensor, " hidden"], axes: int) -> FixedPart:
    """Return a contribution that adds the same vector at every position of a tensor. `axes` is its number of axes."""
    return FixedPart(component, vector.expand(1, *(1 for _ in range(axes - 1)), len(vector)))


class Sum:
    """A tensor represented as a sum of contributions, which are computed on first access.

    Attributes:
        components: the component of each contribution: those as large as the tensor, then the fixed ones.
        role: "stream" (the residual stream, or a part of it), "heads" (the output of a sublayer by head), "branch" (a
            projection of the stream: queries, keys, the inside of a feed-forward sublayer).
        norm: the last LayerNorm that was applied, if requested.
        fixed: contributions of a few vectors; several may belong to one component.
        blocks: for role "heads", the output of the sublayer by head, whose slices are the contributions; otherwise
            None. *Shape:* (batch, query, head, dim).
    """

    blocks: Tensor | None = None

    def __init__(
        self,
        names: Sequence[Contributor],
        make: Callable[[], Tensor],
        role: Role,
        norm: FrozenNorm | None = None,
        fixed: Sequence[FixedPart] = (),
    ) -> None:
        """Create a sum of the contributions that `make` returns, [component, ...], named by `names`."""
        self.names, self.fixed = tuple(names), tuple(fixed)
        self.components = tuple(dict.fromkeys((*self.names, *(part.component for part in self.fixed))))
        self.role, self.norm = role, norm
        self._make: Callable[[], Tensor] | None = make if self.names else None
        self._chunks: tuple[Tensor, ...] = ()

    @property
    def chunks(self) -> tuple[Tensor, ...]:
        """Return all contributions except the fixed ones, as one or several tensors [component, ...]."""
        if self._make is not None:
            self._chunks, self._make = (self._make(),), None  # its sources can be freed
        return self._chunks

    @property
    def parts(self) -> Tensor:
        """Return all contributions in one tensor, whose first axis is the component."""
        if not self.fixed and len(self.chunks) == 1:
            return self.chunks[0]
        width = (self.chunks[0] if self.chunks else self.fixed[0].vectors).shape[-1]
        return self._written(lambda chunk, out: out.copy_(chunk), lambda part: part, width)

    def projected(
        self, weight: Float[Tensor, "hidden out"], bias: FixedPart | None, role: Role, *, spares: bool = False
    ) -> "Sum":
        """Apply a linear projection to all contributions, and store the results in one tensor. If `spares`, the
        projection of the first contribution is computed for the first input only."""
        added = () if bias is None else (bias,)
        is_spared = spares and bool(self.names)

        def multiply(chunk: Tensor, out: Tensor) -> None:
            torch.mm(chunk.flatten(0, -2), weight, out=out.flatten(0, -2))

        def change(part: FixedPart) -> FixedPart:
            return part if part is bias else part.projected(weight)

        def make() -> Tensor:
            whole = self.with_fixed((*self.fixed, *added))
            return whole._written(multiply, change, weight.shape[1], is_spared=is_spared)

        names = dict.fromkeys((*self.components, *(part.component for part in added)))
        first = [replace(component, is_spared=is_spared) for component in self.names[:1]]
        return Sum((*first, *list(names)[len(first) :]), make, role, self.norm)

    def _written(
        self,
        write: Callable[[Tensor, Tensor], object],
        change: Callable[[FixedPart], FixedPart],
        width: int,
        *,
        is_spared: bool = False,
    ) -> Tensor:
        """Return all contributions. is_spared: the first one for the first input only."""
        fixed, rows = [change(part) for part in self.fixed], self._rows()
        whole = (fixed[0].vectors if fixed else self.chunks[0]).new_empty((len(self.components), *rows, width))
        start = 0
        for chunk in self.chunks:
            read, out = _widened(chunk, torch.Size((*rows, chunk.shape[-1]))), whole[start : start + len(chunk)]
            start += len(chunk)
            if is_spared and start == len(chunk):
                out[0, 1:] = 0.0
                write(read[:1, :1], out[:1, :1])
                read, out = read[1:], out[1:]
            write(read, out)
        whole[start:] = 0.0
        for part in fixed:
            part.add_to(whole[self.components.index(part.component)])
        return whole

    def _rows(self) -> torch.Size:
        shapes = [chunk.shape[1:-1] for chunk in self.chunks]
        for part in self.fixed:
            shapes += [part.vectors.shape[1:-1], *([] if part.scales is None else [part.scales.shape[1:-1]])]
        return torch.broadcast_shapes(*shapes)

    def with_fixed(self, fixed: Sequence[FixedPart]) -> "Sum":
        """Return a copy of this sum with its fixed contributions (`FixedPart`) replaced by `fixed`."""
        found = Sum(self.names, lambda: torch.empty(0), self.role, self.norm, fixed)
        found._chunks, found._make = self.chunks, None
        return found

    def mapped(self, function: Callable[[Tensor], Tensor], *, broadcasts: bool = False) -> "Sum":
        """Apply a linear function to each contribution. Fixed contributions (`FixedPart`) are expanded to full tensors.

        `function` maps (*rows, width), or all contributions (component, *rows, width) at once if it broadcasts.
        """
        over_parts = function if broadcasts else torch.func.vmap(function)
        found = Sum(self.components, lambda: over_parts(self.parts), self.role, self.norm)
        found.blocks = self.blocks if self.role == "heads" else None
        return found

    def times(self, weight: Float[Tensor, "hidden out"], role: Role) -> "Sum":
        """Return the sum multiplied by a weight matrix. To save memory, fixed contributions (`FixedPart`) are usually
        not expanded to full tensors."""
        fixed = [part.projected(weight) for part in self.fixed]
        if len({chunk.dim() for chunk in self.chunks}) > 1:  # one of them was broadcast
            return Sum(self.components, lambda: self.parts @ weight, role, self.norm)
        return Sum(self.names, lambda: torch.cat([chunk @ weight for chunk in self.chunks]), role, self.norm, fixed)

    def plus(self, other: "Sum") -> "Sum":
        """Add two sums of contributions. Contributions of the same component are added together."""
        role = self.role if self.role == other.role else "stream"
        norm, fixed = self.norm or other.norm, (*self.fixed, *other.fixed)
        if not set(self.names) & set(other.names) and role == "stream":  # computed now so that its sources can be freed
            found = Sum((*self.names, *other.names), lambda: torch.empty(0), role, norm, fixed)
            found._chunks, found._make = (*self.chunks, *other.chunks), None
            return found
        names = tuple(dict.fromkeys((*self.components, *other.components)))
        return Sum(names, partial(_added, names, self, other), role, norm)

    def normed(self, norm: HeldNorm, bias: Float[Tensor, " hidden"] | None) -> "Sum":
        """Return this sum after a LayerNorm. The LayerNorm bias is stored as the component "last bias", and the
        previous "last bias" is merged into the component "bias"."""
        if LAST_BIAS in self.names:
            return self._with_last_as_constant().normed(norm, bias)
        fixed = [part.normed(norm) for part in self.fixed]
        # Merge vectors of one component with equal scales
        alike: dict[tuple[Contributor, torch.Size], list[FixedPart]] = {}
        for one in [part.renamed(BIAS) if part.component == LAST_BIAS else part for part in fixed]:
            alike.setdefault((one.component, one.vectors.shape[1:]), []).append(one)
        fixed = [
            FixedPart(
                some[0].component,
                torch.cat([one.vectors for one in some]),
                torch.cat([one.scales for one in some if one.scales is not None]),
            )
            for some in alike.values()
        ]
        if bias is not None:
            fixed.append(fixed_part(LAST_BIAS, bias, norm.scale.dim()))
        make = partial(_normed, self.chunks, norm, self._rows())
        return Sum(self.names, make, self.role, self.norm, fixed)

    def settled(self) -> "Sum":
        """Return this sum with the component "last bias" merged into the component "bias"."""
        if LAST_BIAS in self.names:
            return self._with_last_as_constant()
        return self.with_fixed([part.renamed(BIAS) if part.component == LAST_BIAS else part for part in self.fixed])

    def _with_last_as_constant(self) -> "Sum":
        parts, last = self.parts, self.components.index(LAST_BIAS)
        others = [number for number in range(len(self.components)) if number != last]
        rest = Sum(tuple(self.components[k] for k in others), lambda: parts[others], self.role, self.norm)
        return rest.plus(Sum((BIAS,), lambda: parts[last][None], self.role))


def _added(names: Sequence[Contributor], first: Sum, second: Sum) -> Tensor:
    shape = torch.broadcast_shapes(first.parts.shape[1:], second.parts.shape[1:])
    left, right = (_widened(added.parts, shape) for added in (first, second))
    whole = left.new_empty((len(names), *shape))
    whole[: len(left)] = left
    for component, part in zip(second.components, right, strict=True):
        place = names.index(component)
        whole[place] = whole[place] + part if component in first.components else part
    return whole


def _normed(chunks: Sequence[Tensor], norm: HeldNorm, rows: torch.Size) -> Tensor:
    hidden, start = chunks[0].shape[-1], 0
    whole = chunks[0].new_empty((sum(map(len, chunks)), *rows, hidden))
    for chunk in chunks:
        norm.write(_widened(chunk, torch.Size((*rows, hidden))), whole[start : start + len(chunk)])
        start += len(chunk)
    return whole


def _widened(parts: Tensor, shape: torch.Size) -> Tensor:
    """Return contributions to a tensor that was broadcast to this shape."""
    missing = (1,) * (len(shape) - parts.dim() + 1)
    return parts.reshape(len(parts), *missing, *parts.shape[1:]).expand(-1, *shape)
