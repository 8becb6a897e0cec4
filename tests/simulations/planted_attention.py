"""A small encoder or decoder whose heads look where a world says, on real sentences: all weights are made by hand.

The embedding gives every piece planted features (noise of its own, kinds of word, position, the word itself, ends of
links); every layer hands them on unchanged; a head's query and key weights read some of them. So maps, words, tags and
the studies' own code are real, and where a head looks is known.
"""

import math
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial

import numpy as np
import torch
from transformers import BertConfig, BertModel, GPT2Config, GPT2Model

from core import config
from core.capture.words import groups_of
from core.models.checkpoint import Checkpoint
from core.models.encoding import Encoding
from core.models.opening import open_checkpoint
from core.scoring.links import Links
from core.studies.tagging import open_pipeline, tag
from core.tasks.features import NOUNS, PRONOUNS, VERBS, TaggedSentence
from core.tasks.glue import read_rows
from core.tasks.relations import links, relation_of

LAYERS, HEADS, WIDTH = 2, 8, 32
ALL_HEADS = LAYERS * HEADS
HIDDEN = HEADS * WIDTH
KINDS = ("noun", "pronoun", "verb", "content", "first")
CONTENT = frozenset({"NOUN", "PROPN", "VERB", "ADJ", "ADV", "NUM"})
NOISE, IDENTITY, LINK = 16, 16, 16
FREQUENCIES = 2 * math.pi / 96 * np.array([1, 2, 3, 5, 8, 11, 15, 20, 26, 33, 40, 47])
LONGEST = 48  # pieces: what FREQUENCIES tell apart
RADIUS = 16.0

_NAMES = ("noise", "kind", "position", "identity", "from", "to")
_WIDTHS = (NOISE, len(KINDS), 2 * len(FREQUENCIES), IDENTITY, LINK, LINK)
_STARTS = np.cumsum((0, *_WIDTHS)).tolist()
BLOCKS = {name: slice(a, b) for name, a, b in zip(_NAMES, _STARTS[:-1], _STARTS[1:], strict=True)}

Text = str | tuple[str, str]
Head = tuple[np.ndarray, np.ndarray, np.ndarray]  # query weights, query bias, key weights; each for WIDTH
World = Callable[[np.random.Generator], Head]


@cache
def bundled(causal: bool = False) -> Checkpoint:
    """The bundled encoder or decoder, whose tokenizer planted ones have."""
    return open_checkpoint(config.DECODER if causal else config.ENCODER)


@cache
def pipeline() -> object:
    """The bundled one."""
    return open_pipeline()


@cache
def tagged(text: Text) -> tuple[TaggedSentence, ...]:
    """Its words: those of each of its sentences."""
    return tuple(tag(_sentences(text), pipeline()))


@cache
def encoded(text: Text, causal: bool = False) -> Encoding:
    """A sentence or pair in pieces."""
    return bundled(causal).encode(*_sentences(text))


@cache
def pool(task: str, causal: bool = False) -> tuple[Text, ...]:
    """The bundled dev rows of a task that are at most LONGEST pieces."""
    rows = read_rows(task, "dev", folder=None, limit=None, seed=0)
    texts: list[Text] = [(row.text, row.pair) if row.pair else row.text for row in rows]
    return tuple(text for text in texts if len(encoded(text, causal)) <= LONGEST)


def _sentences(text: Text) -> list[str]:
    return [text] if isinstance(text, str) else list(text)


def drawn(task: str, inputs: int, seed: int, *, causal: bool = False) -> tuple[Text, ...]:
    """So many of a task's rows, without replacement."""
    texts = pool(task, causal)
    return tuple(texts[k] for k in permuted(len(texts), seed)[:inputs])


def permuted(count: int, seed: int) -> list[int]:
    """So many numbers in a drawn order."""
    return np.random.default_rng([seed, 1]).permutation(count).tolist()


# ---------------------------------------------------------------- worlds


def _nothing() -> Head:
    return np.zeros((WIDTH, _STARTS[-1])), np.zeros(WIDTH), np.zeros((WIDTH, _STARTS[-1]))


def uniform(rng: np.random.Generator) -> Head:
    """Every key alike."""
    return _nothing()


def distance(rng: np.random.Generator) -> Head:
    """The distance alone: a random curve, or a peak at an offset."""
    query, bias, key = _nothing()
    peaked = rng.random() < 0.5
    phases = (
        FREQUENCIES * rng.choice([-3, -2, -1, 1, 2, 3]) if peaked else rng.uniform(0, 2 * math.pi, len(FREQUENCIES))
    )
    parts = np.ones(len(FREQUENCIES)) if peaked else rng.normal(size=len(FREQUENCIES))
    parts *= rng.uniform(1, 3) * (2.0 / len(FREQUENCIES) * 2 if peaked else 1 / np.linalg.norm(parts))
    for m, (phase, part) in enumerate(zip(phases, parts, strict=True)):
        at = BLOCKS["position"].start + 2 * m
        turn = np.array([[math.cos(phase), -math.sin(phase)], [math.sin(phase), math.cos(phase)]])
        query[2 * m : 2 * m + 2, at : at + 2] = part * turn
        key[2 * m : 2 * m + 2, at : at + 2] = np.eye(2)
    return query, bias, key


def kind(rng: np.random.Generator) -> Head:
    """One kind of word alone, whatever the query is."""
    query, bias, key = _nothing()
    bias[0] = rng.uniform(1.5, 4)
    key[0, BLOCKS["kind"].start + rng.integers(len(KINDS))] = 1.0
    return query, bias, key


def noise(rng: np.random.Generator) -> Head:
    """Noise of every pair of pieces, another in every input. Queries read one half of the noise of a piece and keys the
    other: of one and the same, a piece would be something to itself (the trace of a random matrix is not 0)."""
    query, bias, key = _nothing()
    start, half = BLOCKS["noise"].start, NOISE // 2
    for weights, at in ((query, start), (key, start + half)):
        weights[:NOISE, at : at + half] = rng.normal(size=(NOISE, half)) / half**0.5
    return query * rng.uniform(0.15, 0.5), bias, key


def same_word(rng: np.random.Generator) -> Head:
    """Words that are spelled alike, and noise."""
    query, bias, key = _half_noise(rng)
    query[NOISE:, BLOCKS["identity"]] = rng.uniform(2, 4) * np.eye(IDENTITY)
    key[NOISE:, BLOCKS["identity"]] = np.eye(IDENTITY)
    return query, bias, key


def linked(rng: np.random.Generator, strength: float) -> Head:
    """From one end of the planted links to the other, and noise."""
    query, bias, key = _half_noise(rng)
    query[NOISE:, BLOCKS["from"]] = strength * np.eye(LINK)
    key[NOISE:, BLOCKS["to"]] = np.eye(LINK)
    return query, bias, key


def at_nouns(rng: np.random.Generator, strength: float) -> Head:
    """At nouns, and noise."""
    query, bias, key = _half_noise(rng)
    bias[NOISE] = strength
    key[NOISE, BLOCKS["kind"].start + KINDS.index("noun")] = 1.0
    return query, bias, key


def at_previous(rng: np.random.Generator, strength: float) -> Head:
    """At the token before."""
    query, bias, key = _nothing()
    for m, phase in enumerate(FREQUENCIES):
        at = BLOCKS["position"].start + 2 * m
        turn = np.array([[math.cos(phase), math.sin(phase)], [-math.sin(phase), math.cos(phase)]])
        query[2 * m : 2 * m + 2, at : at + 2] = strength / len(FREQUENCIES) * turn
        key[2 * m : 2 * m + 2, at : at + 2] = np.eye(2)
    return query, bias, key


def at_same_word(rng: np.random.Generator, strength: float) -> Head:
    """At words that are spelled alike, and noise."""
    query, bias, key = same_word(rng)
    query[NOISE:, BLOCKS["identity"]] = strength * np.eye(IDENTITY)
    return query, bias, key


def _half_noise(rng: np.random.Generator) -> Head:
    query, bias, key = noise(rng)
    return query, bias, key


WORLDS: dict[str, World] = {
    "uniform": uniform,
    "distance": distance,
    "kind of word": kind,
    "noise": noise,
    "same word": same_word,
}
KNOWN: dict[str, Callable[[np.random.Generator, float], Head]] = {
    "links": linked,
    "nouns": at_nouns,
    "previous": at_previous,
    "the same word": at_same_word,
}


def world_of(name: str) -> World:
    """One of WORLDS, or one of KNOWN at a strength: "links at 1.5"."""
    planted_thing, _, strength = name.partition(" at ")
    return partial(KNOWN[planted_thing], strength=float(strength)) if strength else WORLDS[name]


# ---------------------------------------------------------------- the encoder


@dataclass(frozen=True)
class Planter:
    """Features of pieces by the ids of an input. relation: whose links have codes of their own; frames: links of some
    inputs; forward: from dependent to governor, and from element to target."""

    seed: int
    relation: str | None = None
    forward: bool = True
    frames: Mapping[tuple[int, ...], Links] = field(default_factory=dict)

    def of(self, encoding: Encoding, tagged: Sequence[TaggedSentence]) -> np.ndarray:
        """[position, feature]."""
        rng = np.random.default_rng([self.seed, zlib.crc32(np.array(encoding.ids).tobytes())])
        planted = np.zeros((len(encoding), _STARTS[-1]))
        planted[:, BLOCKS["noise"]] = rng.normal(size=(len(encoding), NOISE))
        angles = np.arange(len(encoding))[:, None] * FREQUENCIES
        planted[:, BLOCKS["position"]] = np.stack([np.cos(angles), np.sin(angles)], -1).reshape(len(encoding), -1)
        if encoding.ids not in _WORDS:
            _WORDS[encoding.ids] = _words_planted(encoding, tagged)
        planted += _WORDS[encoding.ids]
        self._links(planted, encoding, tagged, rng)
        return planted

    def _links(
        self, planted: np.ndarray, encoding: Encoding, tagged: Sequence[TaggedSentence], rng: np.random.Generator
    ) -> None:
        for element, target in self.frames.get(encoding.ids, ()):
            code = _code_of(rng)
            planted[list(element if self.forward else target), BLOCKS["from"]] += code
            planted[list(target if self.forward else element), BLOCKS["to"]] += code
        if self.relation is None:
            return
        for number, sentence in enumerate(tagged):
            for a, b in links(relation_of(self.relation), sentence.words):
                code = _code_of(rng)
                ends = [list(encoding.pieces(*sentence.spans[k], number)) for k in ((a, b) if self.forward else (b, a))]
                planted[ends[0], BLOCKS["from"]] += code
                planted[ends[1], BLOCKS["to"]] += code


_WORDS: dict[tuple[int, ...], np.ndarray] = {}  # ids of an input: what its words have, in every draw


def _words_planted(encoding: Encoding, tagged: Sequence[TaggedSentence]) -> np.ndarray:
    """Kinds and identity of the words."""
    planted, start = np.zeros((len(encoding), _STARTS[-1])), BLOCKS["kind"].start
    identities = _identities([word.text.casefold() for sentence in tagged for word in sentence.words])
    for number, sentence in enumerate(tagged):
        for word, (a, b) in zip(sentence.words, sentence.spans, strict=True):
            at = list(encoding.pieces(a, b, number))
            kinds = (word.tag in NOUNS, word.tag in PRONOUNS, word.tag in VERBS, word.pos in CONTENT)
            planted[at, start : start + len(kinds)] = kinds
            planted[at, BLOCKS["identity"]] = identities[word.text.casefold()]
    ordinary = [word for word in groups_of(encoding) if encoding.offsets[word[0]] is not None]
    planted[list(ordinary[0]) if ordinary else [], start + KINDS.index("first")] = 1.0
    if not tagged:
        planted[:, BLOCKS["identity"]] = [_code(str(number), IDENTITY) for number in encoding.ids]
    return planted


def _code_of(rng: np.random.Generator) -> np.ndarray:
    code = rng.normal(size=LINK)
    return np.asarray(code / np.linalg.norm(code))


def _identities(words: Sequence[str]) -> dict[str, np.ndarray]:
    """A code for each word of an input. Those that come again have codes at right angles to each other (as many as the
    width allows): drawn ones would make a word something like another, and a head of the same word look at both."""
    codes = {word: _code(word, IDENTITY) for word in words}
    again = [word for word, times in Counter(words).items() if times > 1][:IDENTITY]
    if again:
        bases = np.linalg.qr(np.stack([codes[word] for word in again]).T)[0].T
        codes |= dict(zip(again, bases, strict=True))
    for word in codes.keys() - set(again) if again else ():
        rest = codes[word] - bases.T @ (bases @ codes[word])
        codes[word] = rest / max(np.linalg.norm(rest), 1e-9) if len(again) < IDENTITY else 0 * rest
    return codes


@cache
def _code(word: str, width: int) -> np.ndarray:
    code = np.random.default_rng(zlib.crc32(word.encode())).normal(size=width)
    return np.asarray(code / np.linalg.norm(code))


class _Embeddings(torch.nn.Module):
    """Planted features in place of the words': known inputs by their ids, others without tags."""

    def __init__(self, planter: Planter, planted: dict[tuple[int, ...], np.ndarray]):
        super().__init__()
        self.planter, self.planted = planter, planted

    def forward(self, input_ids: torch.Tensor, **_: object) -> torch.Tensor:
        return torch.from_numpy(np.stack([self._row(tuple(ids)) for ids in input_ids.tolist()])).float()

    def _row(self, ids: tuple[int, ...]) -> np.ndarray:
        if ids not in self.planted:
            nothing: tuple[None, ...] = (None,) * len(ids)
            bare = Encoding("", None, ids, (0,) * len(ids), ("",) * len(ids), nothing, nothing, 0, (len(ids) - 1,))
            self.planted[ids] = self.planter.of(bare, ())
        return spread(self.planted[ids])


def spread(planted: np.ndarray) -> np.ndarray:
    """[position, HIDDEN]: of one length and mean 0, so that no LayerNorm changes it."""
    half = np.zeros((len(planted), HIDDEN // 2))
    half[:, : planted.shape[1]] = planted
    half[:, -1] = np.sqrt(np.maximum(RADIUS**2 - (planted**2).sum(1), 0))
    return np.concatenate([half, -half], 1) * (HIDDEN // 2) ** 0.5 / RADIUS


BACK = RADIUS / (HIDDEN // 2) ** 0.5
SMALL = 1e-3  # of values and outputs, where there are any: what heads add must not change what is planted


@dataclass(frozen=True)
class Part:
    """One head: weights of query, key and value, [WIDTH, feature] each, and the query's bias."""

    weights: tuple[torch.Tensor, torch.Tensor, torch.Tensor]
    bias: torch.Tensor


class _Reading(torch.nn.Linear):
    """Reads the planted features alone: no weight is on the others."""

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.linear(states[..., : _STARTS[-1]], self.weight[:, : _STARTS[-1]], self.bias)


class _Nothing(torch.nn.Linear):
    """Of weights that are all 0."""

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return states.new_zeros(*states.shape[:-1], self.out_features)


def _bert(heads: list[list[Part]], *, values: bool) -> BertModel:
    sizes: dict[str, int] = {"vocab_size": 8, "hidden_size": HIDDEN, "intermediate_size": 4}
    sizes |= {"num_hidden_layers": len(heads), "num_attention_heads": HEADS}
    config = BertConfig(**sizes, max_position_embeddings=512, tie_word_embeddings=False)
    model = BertModel(config, add_pooling_layer=False).eval().requires_grad_(False)
    for layer, own in zip(model.encoder.layer, heads, strict=True):
        attention = layer.attention.self
        attention.query, attention.key = _Reading(HIDDEN, HIDDEN), _Reading(HIDDEN, HIDDEN)
        if not values:
            attention.value, layer.attention.output.dense = _Nothing(HIDDEN, HIDDEN), _Nothing(HIDDEN, HIDDEN)
        output = layer.attention.output.dense
        for part in (output, layer.output.dense, attention.query, attention.key, attention.value):
            part.weight.requires_grad_(False).zero_()
            part.bias.requires_grad_(False).zero_()
        if values:
            output.weight.copy_(SMALL * torch.eye(HIDDEN))
        names = ("query", "key", "value") if values else ("query", "key")
        for number, head in enumerate(own):
            rows = slice(number * WIDTH, (number + 1) * WIDTH)
            for name, weight in zip(names, head.weights, strict=False):
                getattr(attention, name).weight[rows, : weight.shape[1]] = weight
            attention.query.bias[rows] = head.bias
    return model


def _gpt2(heads: list[list[Part]], *, values: bool) -> GPT2Model:
    sizes = {"vocab_size": 8, "n_positions": 512, "n_embd": HIDDEN, "n_layer": len(heads), "n_head": HEADS}
    config = GPT2Config(**sizes, n_inner=4, tie_word_embeddings=False)
    model = GPT2Model(config).eval().requires_grad_(False)
    model.wpe.weight.zero_()
    for block, own in zip(model.h, heads, strict=True):
        block.attn.c_attn = _Reading(HIDDEN, 3 * HIDDEN)
        for part in (block.attn.c_attn, block.attn.c_proj, block.mlp.c_proj):
            part.weight.requires_grad_(False).zero_()
            part.bias.requires_grad_(False).zero_()
        block.attn.c_proj.weight.copy_(SMALL * torch.eye(HIDDEN))
        for number, head in enumerate(own):
            for which, weight in enumerate(head.weights):
                rows = slice(which * HIDDEN + number * WIDTH, which * HIDDEN + (number + 1) * WIDTH)
                block.attn.c_attn.weight[rows, : weight.shape[1]] = weight
            block.attn.c_attn.bias[number * WIDTH : (number + 1) * WIDTH] = head.bias
        if not values:
            block.attn.c_proj, block.mlp = _Nothing(HIDDEN, HIDDEN), _Nothing(HIDDEN, HIDDEN)
    return model


def _part(world: World, values: str, rng: np.random.Generator) -> Part:
    query, bias, key = (torch.from_numpy(part).float() for part in world(rng))
    value = torch.zeros(WIDTH, _STARTS[-1])
    if values:
        block = BLOCKS[values]
        value[:NOISE, block] = torch.from_numpy(rng.normal(size=(NOISE, block.stop - block.start))).float() * SMALL
    return Part((query * BACK * WIDTH**0.5, key * BACK, value * BACK), bias * WIDTH**0.5)


def planted(
    world: World | Sequence[World],
    texts: Sequence[Text],
    seed: int,
    *,
    relation: str | None = None,
    causal: bool = False,
    values: str = "",
    frames: Mapping[tuple[int, ...], Links] | None = None,
    noise_of: int | None = None,
) -> Checkpoint:
    """Heads of one world, each with its own draw, on these texts; of several worlds LAYERS of each, as each would have
    alone. values: the block that value vectors read; noise_of: the seed of what is planted in the pieces, where it is
    another."""
    heads = []
    for each in [world] if callable(world) else world:
        rng = np.random.default_rng([seed, 2])
        heads += [[_part(each, values, rng) for _ in range(HEADS)] for _ in range(LAYERS)]
    model = (_gpt2 if causal else _bert)(heads, values=bool(values))
    checkpoint = Checkpoint("planted", model, bundled(causal).tokenizer, weights_hash=f"planted {seed}")
    planter, features = Planter(seed if noise_of is None else noise_of, relation, frames=frames or {}), {}
    for text in texts:
        features[encoded(text, causal).ids] = planter.of(encoded(text, causal), tagged(text))
    embeddings = _Embeddings(planter, features)
    if causal:
        model.wte = embeddings
    else:
        model.embeddings = embeddings
    return checkpoint
