"""Which head of one checkpoint is which of another: how alike their rows are, matchings, and what chance would give.

Similarity of two heads = 1 - mean Jensen-Shannon distance of their rows for the same query (base 2, square root), the
mean of an input's rows first, then over inputs. 1: the same rows; 0: no key in common. A matching is one to one and of
the largest total similarity (scipy's `linear_sum_assignment`).
"""

from dataclasses import dataclass

import numpy as np
import scipy  # its parts load when they are used
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

HALVES = 2
SMALLEST = 1e-38  # weight whose logarithm is taken in place of that of 0
ROUNDING = 1e-6  # divergence that float32 cannot tell from 0: a distance of 0.001
NORMAL = 1.959964  # of a 95 % interval


def _p_log_p(weights: Tensor) -> Tensor:
    return weights.clamp_min(SMALLEST).log_().mul_(weights)


def _distances(first: Tensor, other_rows: Tensor, own_entropy: Tensor, other_entropy: Tensor) -> Tensor:
    """Jensen-Shannon distance (base 2, square root; 0 to 1) of rows to rows, of halved weights and halved p ln p.

    Rows that are equal up to float32's rounding are exactly 0 apart: entries are subtracted before they are added up.
    """
    mixture = other_rows + first
    divergence = (own_entropy + other_entropy).sub_(_p_log_p(mixture)).sum(-1).div_(np.log(2)).clamp_(0, 1)
    return divergence.masked_fill_(divergence < ROUNDING, 0.0).sqrt_()


def mean_distances(
    first: Float[Tensor, "head row key"], other_rows: Float[Tensor, "other row key"], inputs: Int[Tensor, " row"]
) -> Float[Tensor, "input head other"]:
    """Mean Jensen-Shannon distance of every two heads over the rows of each input.

    Args:
        first: rows of one checkpoint's heads, which sum to 1.
        other_rows: the same rows of the other checkpoint's heads.
        inputs: which input a row is of, from 0; each number up to the largest has a row.

    Returns:
        *Range:* 0 (the same rows) to 1 (no key in common).
    """
    count = int(inputs.max()) + 1
    share = torch.zeros(len(inputs), count, dtype=first.dtype, device=first.device)
    share[torch.arange(len(inputs)), inputs] = 1
    share /= share.sum(0)
    halved, own_entropy, other_entropy = other_rows / 2, _p_log_p(first) / 2, _p_log_p(other_rows) / 2
    means = [
        _distances(rows / 2, halved, entropy, other_entropy) @ share
        for rows, entropy in zip(first, own_entropy, strict=True)
    ]
    return torch.stack(means).permute(2, 0, 1)


@dataclass(frozen=True)
class SimilaritySums:
    """Sums over inputs that similarities, their intervals and both halves' are made of.

    Attributes:
        sums: of distances, by half of the inputs. *Shape:* (half, head, other head).
        squares: of squared distances. *Shape:* (head, other head).
        inputs: how many, by half.
    """

    sums: Float[np.ndarray, "half head other"]
    squares: Float[np.ndarray, "head other"]
    inputs: tuple[int, int]

    def merge(self, other: "SimilaritySums") -> "SimilaritySums":
        """The sums over the inputs of both."""
        inputs = (self.inputs[0] + other.inputs[0], self.inputs[1] + other.inputs[1])
        return SimilaritySums(self.sums + other.sums, self.squares + other.squares, inputs)

    @property
    def n(self) -> int:
        """How many inputs there are in both halves together."""
        return sum(self.inputs)

    def similarity(self) -> Float[np.ndarray, "head other"]:
        """Similarity of every two heads over all inputs. *Range:* 0 to 1; NaN without any."""
        with np.errstate(invalid="ignore"):
            return 1 - self.sums.sum(0) / self.n if self.n else np.full_like(self.squares, np.nan)

    def half(self, number: int) -> Float[np.ndarray, "head other"]:
        """Similarity over one half of the inputs.

        Args:
            number: 0 or 1, of a half that has inputs.

        Returns:
            *Range:* 0 to 1.
        """
        return 1 - self.sums[number] / self.inputs[number]

    def half_widths(self) -> Float[np.ndarray, "head other"]:
        """Half the width of each similarity's 95 % interval over inputs (normal); NaN for fewer than two."""
        if self.n < 2:
            return np.full_like(self.squares, np.nan)
        variance = np.maximum(self.squares / self.n - (self.sums.sum(0) / self.n) ** 2, 0) * self.n / (self.n - 1)
        return NORMAL * np.sqrt(variance / self.n)


def similarity_sums(
    distances: Float[np.ndarray, "input head other"], numbers: Int[np.ndarray, " input"]
) -> SimilaritySums:
    """Sums of inputs' mean distances.

    Args:
        distances: of every two heads, as `mean_distances` gives them. *Range:* 0 to 1.
        numbers: of the inputs in the whole study, whose parity says their half.

    Returns:
        What similarities and their intervals are made of.
    """
    values = np.asarray(distances, dtype=float)
    halves = [values[numbers % HALVES == half] for half in range(HALVES)]
    sums = np.stack([half.sum(0) for half in halves])
    return SimilaritySums(sums, (values**2).sum(0), (len(halves[0]), len(halves[1])))


@dataclass(frozen=True)
class Matching:
    """For each head its match, one to one; -1 where the other checkpoint has fewer heads and none is left.

    Attributes:
        match: number of the matched head.
        best: number of the most similar head, whichever other head has it too.
        margin: similarity to the match less the largest to any other head; negative where another is more alike, NaN
            without a match or another head.
        agrees: whether both halves of the inputs give this match.
    """

    match: Int[np.ndarray, " head"]
    best: Int[np.ndarray, " head"]
    margin: Float[np.ndarray, " head"]
    agrees: Bool[np.ndarray, " head"]


def one_to_one(similarity: Float[np.ndarray, "head other"]) -> Int[np.ndarray, " head"]:
    """The matching of largest total similarity.

    Args:
        similarity: of every two heads, without NaN.

    Returns:
        Number of each head's match; -1 for heads that are left over because the other checkpoint has fewer.
    """
    match = np.full(len(similarity), -1)
    heads, partners = scipy.optimize.linear_sum_assignment(similarity, maximize=True)
    match[heads] = partners
    return match


def matching(sums: SimilaritySums) -> Matching:
    """Matches over all inputs, and whether each half alone gives the same. A half without inputs agrees with none."""
    similarity = sums.similarity()
    match = one_to_one(similarity)
    halves = [one_to_one(sums.half(number)) for number in range(HALVES) if sums.inputs[number]]
    agrees = (match >= 0) & (len(halves) == HALVES)
    for half in halves:
        agrees &= half == match
    margin = np.full(len(match), np.nan)
    for head, partner in enumerate(match):
        unmatched = np.delete(similarity[head], partner)
        if partner >= 0 and len(unmatched):
            margin[head] = similarity[head, partner] - unmatched.max()
    return Matching(match, similarity.argmax(1), margin, agrees)


def beyond_chance(
    observed: Float[np.ndarray, " head"], drawn: Float[np.ndarray, "draw head"]
) -> Float[np.ndarray, " head"]:
    """p of each head's similarity beside the largest that it has to any head of random weights, corrected over heads.

    Each head is measured against its own draws (a head that spreads evenly is like anything random), in their standard
    deviations with the observed one among them; p counts the draws whose largest over all heads is as far out (max-T,
    Westfall and Young 1993).

    Args:
        observed: similarity of each head to its match; NaN where it has none. *Range:* 0 to 1.
        drawn: of each draw of random weights the head's largest similarity. *Range:* 0 to 1.

    Returns:
        *Range:* 1 / (draws + 1) to 1. NaN where a head has no match.
    """
    together = np.concatenate([observed[None], drawn])
    spread = together.std(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = np.where(spread > 0, (together - together.mean(0)) / spread, 0.0)
    largest = np.nanmax(np.where(np.isnan(scaled[1:]), -np.inf, scaled[1:]), axis=1)
    p = (1 + (largest[:, None] >= scaled[0] - 1e-12).sum(0)) / (1 + len(drawn))
    return np.where(np.isnan(observed), np.nan, p)
