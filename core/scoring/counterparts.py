"""Counterparts: which head of one checkpoint corresponds to which head of another, by similarity of rows.

The similarity of two heads is 1 minus the mean Jensen-Shannon distance (base 2, square root) of their rows for the same
query, averaged within inputs first (1: identical rows; 0: no common key). The matching is one to one with the largest
total similarity (`linear_sum_assignment` of scipy). A match is a counterpart if it is significantly more similar than
random weights with matched entropy, clearly closer than any other head of either checkpoint (Lowe's ratio, 2004,
section 7.1), similar enough, and the same in both halves of the inputs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its parts load when they are used
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from .corrections import ALPHA

HALVES = 2
GROUPS = 16  # intervals resample groups of inputs (number modulo GROUPS); even groups are one half
LEAST = 0.5  # least similarity of a counterpart
NEARER = 0.8  # largest distance of a counterpart, as a fraction of that to any other head
STEPS = 20  # of the search for a power: its logarithm then is known to 2e-5
SMALLEST = 1e-38  # weight whose logarithm is taken in place of that of 0
ROUNDING = 1e-6  # divergence that float32 cannot tell from 0: a distance of 0.001


def _p_log_p(weights: Tensor) -> Tensor:
    return weights.clamp_min(SMALLEST).log_().mul_(weights)


def mean_distances(
    first: Float[Tensor, "head row key"], other_rows: Float[Tensor, "other row key"], inputs: Int[Tensor, " row"]
) -> Float[Tensor, "input head other"]:
    """Return, for each input, the mean Jensen-Shannon distance (0 to 1) between the attention rows of each pair of
    heads. `inputs` has the index of the input to which each row belongs. Every input must have at least one row."""
    count = int(inputs.max()) + 1
    share = torch.zeros(len(inputs), count, dtype=first.dtype, device=first.device)
    share[torch.arange(len(inputs)), inputs] = 1
    share /= share.sum(0)
    halved, own_entropy, other_entropy = other_rows / 2, _p_log_p(first) / 2, _p_log_p(other_rows) / 2
    means = []
    for rows, entropy in zip(first, own_entropy, strict=True):
        terms = (entropy + other_entropy).sub_(_p_log_p(halved + rows / 2))  # exactly 0 for equal entries
        divergence = terms.sum(-1).div_(np.log(2)).clamp_(0, 1)
        means.append(divergence.masked_fill_(divergence < ROUNDING, 0.0).sqrt_() @ share)
    return torch.stack(means).permute(2, 0, 1)


@dataclass(frozen=True)
class SimilaritySums:
    """Sums of distances between the attention rows of each pair of heads, for each group of inputs."""

    sums: Float[np.ndarray, "group head other"]
    inputs: Int[np.ndarray, " group"]

    def merge(self, other: "SimilaritySums") -> "SimilaritySums":
        return SimilaritySums(self.sums + other.sums, self.inputs + other.inputs)

    @property
    def n(self) -> int:
        return int(self.inputs.sum())

    def similarity(self) -> Float[np.ndarray, "head other"]:
        """Return the similarity of each pair of heads, which is 1 minus their mean distance; NaN if there are no
        inputs."""
        return 1 - self.sums.sum(0) / self.n if self.n else np.full(self.sums.shape[1:], np.nan)

    def halves(self) -> tuple[int, int]:
        """Return how many inputs are in even-numbered groups, and how many are in odd-numbered groups."""
        return int(self.inputs[::HALVES].sum()), int(self.inputs[1::HALVES].sum())

    def half(self, number: int) -> Float[np.ndarray, "head other"]:
        """Return the similarity of each pair of heads, computed from one half of the inputs. `number` (0 or 1) selects
        the half, which must not be empty."""
        return 1 - self.sums[number::HALVES].sum(0) / self.halves()[number]

    def half_widths(self) -> Float[np.ndarray, "head other"]:
        """Return half the width of the 95 % interval for the similarity of each pair of heads. Intervals are computed
        over groups of inputs, and are NaN for fewer than two groups."""
        return _half_widths(self.sums, self.inputs)

    def margins(self, head: int, match: int) -> Float[np.ndarray, "end other"]:
        """Return by how much the similarity of two matched heads exceeds their similarity to other heads.

        Value, low and high of the 95 % interval of each difference. The head is compared with all other heads of the
        second checkpoint, then the match with all other heads of the first. Bounds are NaN for fewer than two groups
        of inputs.
        """
        own = self.sums[:, head, match]
        others = np.concatenate(
            [np.delete(self.sums[:, head], match, axis=1), np.delete(self.sums[:, :, match], head, axis=1)], axis=1
        )
        differences = others - own[:, None]
        value, width = differences.sum(0) / max(1, self.n), _half_widths(differences, self.inputs)
        return np.stack([value, value - width, value + width])


def _half_widths(sums: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    """Student's 95 % half width of the ratio sums / inputs over groups (linearised); NaN for one group."""
    used = inputs > 0
    groups, n = int(used.sum()), int(inputs.sum())
    if groups < 2:
        return np.full(sums.shape[1:], np.nan)
    parts = sums[used] - sums.sum(0) / n * inputs[used].reshape(-1, *([1] * (sums.ndim - 1)))
    return scipy.special.stdtrit(groups - 1, 0.975) * np.sqrt((parts**2).sum(0) * groups / (groups - 1)) / n


def similarity_sums(
    distances: Float[np.ndarray, "input head other"], numbers: Int[np.ndarray, " input"]
) -> SimilaritySums:
    """Sum the distances between heads within groups of inputs. The group of an input is its index modulo GROUPS."""
    sums = np.zeros((GROUPS, *distances.shape[1:]))
    np.add.at(sums, numbers % GROUPS, np.asarray(distances, dtype=float))
    return SimilaritySums(sums, np.bincount(numbers % GROUPS, minlength=GROUPS))


@dataclass(frozen=True)
class Matching:
    """A one-to-one matching between the heads of two checkpoints; -1 for a head without a match.

    Attributes:
        best: the most similar head, which several heads may share.
        margin: similarity to the match minus the largest similarity of either to another head of the other checkpoint;
            NaN without a match or another head.
        low, high: 95 % interval of the margin over inputs; `low` is below that of the difference to every other head.
        agrees: whether both halves of the inputs yield this match.
    """

    match: Int[np.ndarray, " head"]
    best: Int[np.ndarray, " head"]
    margin: Float[np.ndarray, " head"]
    low: Float[np.ndarray, " head"]
    high: Float[np.ndarray, " head"]
    agrees: Bool[np.ndarray, " head"]


def one_to_one(similarity: Float[np.ndarray, "head other"]) -> Int[np.ndarray, " head"]:
    """Match heads one to one to maximise their total similarity. Return the match of each head; -1 if it has none."""
    match = np.full(len(similarity), -1)
    heads, partners = scipy.optimize.linear_sum_assignment(similarity, maximize=True)
    match[heads] = partners
    return match


def matching(sums: SimilaritySums) -> Matching:
    """Match the heads of two checkpoints over all inputs, and test whether both halves of the inputs yield the same
    matches. If one half has no inputs, no match counts as reproduced."""
    similarity = sums.similarity()
    match = one_to_one(similarity)
    halves = [one_to_one(sums.half(number)) for number in range(HALVES) if sums.halves()[number]]
    agrees = (match >= 0) & (len(halves) == HALVES)
    for half in halves:
        agrees &= half == match
    ends = np.full((3, len(match)), np.nan)
    for head, partner in enumerate(match):
        margins = sums.margins(head, int(partner)) if partner >= 0 else np.empty((3, 0))
        if margins.size:
            ends[:, head] = margins.min(1)
    return Matching(match, similarity.argmax(1), ends[0], ends[1], ends[2], agrees)


def counterparts(
    similarity: Float[np.ndarray, " head"], p: Float[np.ndarray, " head"], matches: Matching
) -> Bool[np.ndarray, " head"]:
    """Return which heads have a counterpart in another checkpoint, that is, a match that is both similar and reliable.

    p (`beyond_chance`) must be at most ALPHA, the similarity at least LEAST, the interval of the margin above 0, the
    halves must agree, and the distance must be at most NEARER times that to any other head. NaN counts as no match.
    """
    distance = 1 - similarity
    near = distance <= NEARER * (distance + matches.margin)
    return (p <= ALPHA) & (similarity >= LEAST) & (matches.low > 0) & near & matches.agrees


def mean_entropy(rows: Sequence[Float[Tensor, "head _ _"]]) -> Float[Tensor, " head"]:
    """Return the mean entropy of the attention rows of each head, in nats, from blocks of rows."""
    sums = torch.stack([torch.special.entr(block).sum((1, 2)) for block in rows])
    return sums.sum(0) / sum(block.shape[1] for block in rows)


def sharpened(rows: Float[Tensor, "head row key"], factor: Float[Tensor, " head"]) -> Float[Tensor, "head row key"]:
    """Return the attention rows after multiplying the attention scores (logits) by a factor."""
    scores = torch.log(rows.clamp_min(SMALLEST)).masked_fill(rows == 0, -torch.inf)
    return torch.softmax(scores * factor[:, None, None], -1)


def entropy_factors(
    rows: Sequence[Float[Tensor, "head _ _"]], entropy: Float[Tensor, " head"]
) -> Float[Tensor, " head"]:
    """Return the factor by which to multiply the attention scores of each head, so that its mean row entropy is
    `entropy`, in nats. Factors are limited to the range from e^-7 to e^9."""
    low, high = torch.full_like(entropy, -7.0), torch.full_like(entropy, 9.0)  # logarithms of the factor
    for _ in range(STEPS):
        middle = (low + high) / 2
        is_sharp = mean_entropy([sharpened(block, middle.exp()) for block in rows]) < entropy
        low, high = torch.where(is_sharp, low, middle), torch.where(is_sharp, middle, high)
    return ((low + high) / 2).exp()


def beyond_chance(
    observed: Float[np.ndarray, " head"], drawn: Float[np.ndarray, "draw head"]
) -> Float[np.ndarray, " head"]:
    """Test whether each head is more similar to its match than to heads with random weights. Return p values with
    correction for multiple heads (max-T; Westfall and Young 1993).

    Each head is compared with its own draws (uniform heads are similar to anything random), by the logarithm of the
    distance in standard deviations. p is at least 1 / (draws + 1), and NaN without a match.

    Args:
        observed: similarity of each head to its match; NaN without a match.
        drawn: largest similarity of the head in each draw of random weights.
    """
    together = -np.log(np.maximum(0, 1 - np.concatenate([observed[None], drawn])) + ROUNDING**0.5)
    spread = together.std(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = np.where(spread > 0, (together - together.mean(0)) / spread, 0.0)
    largest = np.nanmax(np.where(np.isnan(scaled[1:]), -np.inf, scaled[1:]), axis=1)
    p = (1 + (largest[:, None] >= scaled[0] - 1e-12).sum(0)) / (1 + len(drawn))
    return np.where(np.isnan(observed), np.nan, p)
