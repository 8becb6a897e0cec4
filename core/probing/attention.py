"""The attention-only dependency probe of Clark et al. 2019, section 5.

p(governor(i) = j) is proportional to exp(sum_k w_k A_k[i, j] + u_k A_k[j, i]) over all heads k. "No governor" is scored
by attention to and from the first and last special token. With words, w_k and u_k depend linearly on the embeddings of
both words. Trained by cross-entropy; the epoch with the lowest dev loss is used.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from .ragged import Ragged

EPOCHS, RATE, BATCH, PIECES = 8, 0.05, 32, 1200
WORD_RATE = 0.01


@dataclass(frozen=True)
class Sentences:
    """Attention maps, trees and word embeddings of sentences, as data for a dependency probe.

    Attributes:
        maps: of each sentence, [head, position, position], with the special tokens around its words.
        scored: whether each word counts.
        words: word embeddings of each sentence, [word, dim]; None for attention only.
    """

    maps: Ragged
    heads: Sequence[Int[np.ndarray, " _"]]
    scored: Sequence[np.ndarray]
    words: Ragged | None = None

    def __len__(self) -> int:
        return len(self.heads)

    def batches(self, seed: int | None = None) -> Iterator[list[int]]:
        """Yield batches of sentence indices. All sentences in a batch have the same length. If `seed` is not None, the
        order is random."""
        by_length: dict[int, list[int]] = {}
        order = np.random.default_rng(seed).permutation(len(self)) if seed is not None else np.arange(len(self))
        for number in order.tolist():
            by_length.setdefault(len(self.heads[number]), []).append(number)
        every = []
        for length, some in by_length.items():
            size = max(1, min(BATCH, PIECES // length))
            every += [some[k : k + size] for k in range(0, len(some), size)]
        if seed is not None:
            np.random.default_rng(seed + 1).shuffle(every)
        yield from every

    def tensors(self, numbers: Sequence[int]) -> tuple[Tensor, Tensor | None]:
        """Return float32 maps [sentence, head, position, position] and embeddings [sentence, word, dim] (or None)."""
        maps = torch.from_numpy(np.stack([self.maps.get(k) for k in numbers]).astype(np.float32))
        if self.words is None:
            return maps, None
        return maps, torch.from_numpy(np.stack([self.words.get(k) for k in numbers]).astype(np.float32))

    def targets(self, numbers: Sequence[int]) -> Int[Tensor, "sentence word"]:
        """Return the class of each word: 0 for a root, j + 1 for the governor j, -100 for words that are not scored."""
        candidates = []
        for k in numbers:
            heads = np.asarray(self.heads[k])
            target = np.where(heads == np.arange(len(heads)), 0, heads + 1)
            candidates.append(np.where(self.scored[k], target, -100))
        return torch.from_numpy(np.stack(candidates))


class AttentionProbe(nn.Module):
    """Scores candidate governors (syntactic heads) of words from attention and, if `dim` > 0, from word embeddings."""

    def __init__(self, heads: int, dim: int = 0) -> None:
        super().__init__()
        self.there, self.back = nn.Parameter(torch.zeros(heads)), nn.Parameter(torch.zeros(heads))
        self.root = nn.Parameter(torch.zeros(4, heads))  # to the first, to the last, from the first, from the last
        self.rootless = nn.Parameter(torch.zeros(1))
        shape = (2, 2, heads, dim)  # forward or backward; of the dependent or the candidate
        self.by_word = nn.Parameter(torch.zeros(shape)) if dim else None

    def forward(
        self, maps: Float[Tensor, "sentence head place place"], words: Tensor | None = None
    ) -> Float[Tensor, "sentence word candidate"]:
        """Return a logit for each candidate governor of each word. The logit of the word itself is -inf.

        Candidate 0 means no governor, and candidate j + 1 is word j. `words` are embeddings [sentence, word, dim] or
        None.
        """
        inner = maps[:, :, 1:-1, 1:-1]
        score = torch.einsum("k,bkij->bij", self.there, inner) + torch.einsum("k,bkij->bji", self.back, inner)
        if self.by_word is not None and words is not None:
            of_word = torch.einsum("dekv,bwv->debwk", self.by_word, words)
            for way, form in enumerate(("bkij", "bkji")):
                score = score + torch.einsum(f"{form},bik->bij", inner, of_word[way, 0])
                score = score + torch.einsum(f"{form},bjk->bij", inner, of_word[way, 1])
        sides = torch.stack([maps[:, :, 1:-1, 0], maps[:, :, 1:-1, -1], maps[:, :, 0, 1:-1], maps[:, :, -1, 1:-1]])
        root = torch.einsum("sk,sbkw->bw", self.root, sides) + self.rootless
        own = torch.eye(score.shape[-1], dtype=torch.bool)
        return torch.cat([root[:, :, None], score.masked_fill(own, float("-inf"))], -1)


def train(train: Sentences, dev: Sentences, *, seed: int = 0, epochs: int = EPOCHS) -> AttentionProbe:
    """Train a dependency probe. Return the probe with the lowest dev loss or, if no loss is finite, the untrained
    probe."""
    dim = train.words.shapes[0][1] if train.words is not None else 0
    probe = AttentionProbe(train.maps.shapes[0][0], dim)
    weights = [value for name, value in probe.named_parameters() if name != "by_word"]
    groups = [{"params": weights, "lr": RATE}]
    if probe.by_word is not None:
        groups.append({"params": [probe.by_word], "lr": WORD_RATE})
    optimizer = torch.optim.Adam(groups)
    steps = epochs * len(list(train.batches()))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0.02, 1 - step / max(1, steps)))
    best, kept = float("inf"), {name: value.clone() for name, value in probe.state_dict().items()}
    for epoch in range(epochs):
        for batch in train.batches(seed * 1000 + epoch):
            optimizer.zero_grad()
            _loss(probe, train, batch).backward()
            optimizer.step()
            schedule.step()
        with torch.no_grad():
            total = sum(float(_loss(probe, dev, batch, "sum")) for batch in dev.batches())
        loss = total / max(1, sum(int(mask.sum()) for mask in dev.scored))
        if loss < best:
            best, kept = loss, {name: value.clone() for name, value in probe.state_dict().items()}
    probe.load_state_dict(kept)
    return probe


def _loss(probe: AttentionProbe, sentences: Sentences, some: Sequence[int], reduction: str = "mean") -> Tensor:
    scores, targets = probe(*sentences.tensors(some)), sentences.targets(some)
    total = nn.functional.cross_entropy(scores.flatten(0, 1), targets.flatten(), reduction="sum")
    return total / max(1, int((targets >= 0).sum())) if reduction == "mean" else total


def predict(probe: AttentionProbe, sentences: Sentences) -> list[Float[np.ndarray, "_ _"]]:
    """Return log probabilities [word, candidate governor] for each sentence. Candidate 0 means no governor, and
    candidate j + 1 is word j."""
    predictions: dict[int, np.ndarray] = {}
    with torch.no_grad():
        for batch in sentences.batches():
            chosen = probe(*sentences.tensors(batch)).log_softmax(-1).numpy()
            predictions |= dict(zip(batch, chosen, strict=True))
    return [predictions[k] for k in range(len(sentences))]


def greedy(scores: Float[np.ndarray, "word candidate"]) -> Int[np.ndarray, " word"]:
    """Return the most likely governor of each word, as in Clark et al. These governors may not form a tree."""
    chosen = scores.argmax(-1)
    return np.where(chosen == 0, np.arange(len(chosen)), chosen - 1)


def shuffled(heads: Sequence[Int[np.ndarray, " _"]], *, seed: int = 0) -> list[Int[np.ndarray, " _"]]:
    """Draw random governors. Their distances from the words are sampled from the distances of gold governors."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([np.asarray(chosen) - np.arange(len(chosen)) for chosen in heads])
    return [_drawn(len(chosen), offsets, rng) for chosen in heads]


def _drawn(words: int, offsets: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    places, drawn = np.arange(words), np.full(words, -1)
    while (out := (drawn < 0) | (drawn >= words)).any():
        drawn[out] = places[out] + rng.choice(offsets, int(out.sum()))
    return drawn
