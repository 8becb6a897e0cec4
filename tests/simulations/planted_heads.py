"""Heads with known habits on real sentences: those that know no frames must not survive, those that do must.

Maps are made by hand: logits of noise and of a habit, then a softmax over what the query sees. Heads that attend to
pronouns or to content words whatever the query, also near ones first, also only where a query leaves [SEP] alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.frames.records import AnnotatedSentence, links_of
from core.scoring import link_tests
from core.scoring.links import Links, Looked, QueryResiduals, exchange_groups, pairs_of, relation_score, shifted

_PRONOUNS = "i you he she it we they me him her us them my your his its our their"
_FUNCTION = (
    "a an the and or but of in on at to for with from by as that this these those is was are were be been had has have "
    "do did does not no so if then when would will could can may might should about into over out up there"
)
PRONOUNS = frozenset(_PRONOUNS.split())
FUNCTION = PRONOUNS | frozenset(_FUNCTION.split())
HABITS = (
    "pronouns",
    "content words",
    "content words nearby",
    "leaves [SEP] alone",
    "first word",
    "three back",
    "random",
)
HEADS = (*HABITS, "links")


@dataclass(frozen=True)
class Words:
    """A sentence as words between [CLS] and [SEP]: lower-cased words and links as positions (1 is the first word)."""

    words: tuple[str, ...]
    links: Links

    @property
    def ordinary(self) -> tuple[int, ...]:
        return tuple(range(1, len(self.words) + 1))


def words_of(sentence: AnnotatedSentence) -> Words:
    """A sentence split at spaces; its links by the words that they touch."""
    places, start = [], 0
    for word in sentence.text.split():
        start = sentence.text.index(word, start)
        places.append((start, start + len(word)))
        start += len(word)

    def touched(spans: Sequence[tuple[int, int]]) -> tuple[int, ...]:
        return tuple(k + 1 for k, (a, b) in enumerate(places) if any(a < end and begin < b for begin, end in spans))

    links = tuple((touched(one.element), touched(one.target)) for one in links_of(sentence))
    bare = tuple(sentence.text[a:b].lower().strip(".,;:!?\"'()") for a, b in places)
    return Words(bare, links)


def maps_of(one: Words, direction: str, rng: np.random.Generator, *, causal: bool) -> np.ndarray:
    """Maps [head, query, key] of HEADS on a sentence."""
    length = len(one.words) + 2
    logits = 0.7 * rng.normal(size=(len(HEADS), length, length))
    pronoun, content = np.zeros(length), np.zeros(length)
    pronoun[1:-1] = [word in PRONOUNS for word in one.words]
    content[1:-1] = [bool(word) and word not in FUNCTION for word in one.words]
    gaps = np.abs(np.arange(length)[:, None] - np.arange(length))
    strength = rng.uniform(2, 3)
    logits[0] += strength * pronoun
    logits[1] += strength * content
    logits[2] += strength * content - 0.4 * gaps
    logits[3] += strength * content
    logits[3, :, -1 if not causal else 0] += np.where(pronoun > 0, 0, 4)  # a pronoun leaves it alone, others do not
    logits[4, :, 1] += 3
    logits[5] += 3 * (np.arange(length)[:, None] - np.arange(length) == 3)
    for query, key in pairs_of(one.links, direction=direction, causal=causal):
        logits[-1, query, key] += 1.5
    if causal:
        logits += np.where(np.tri(length, dtype=bool), 0, -1e9)
    raw = np.exp(logits - logits.max(-1, keepdims=True))
    return (raw / raw.sum(-1, keepdims=True)).astype(np.float32)


def planted(
    sentences: Sequence[Words], *, direction: str, causal: bool, seed: int, draws: int = 999
) -> link_tests.LinkTest:
    """The verdict on HEADS over sentences of which the chosen direction sees a pair."""
    rng, how = np.random.default_rng(seed), {"direction": direction, "causal": causal}
    chosen = [one for one in sentences if pairs_of(one.links, **how)]
    maps = [maps_of(one, direction, rng, causal=causal) for one in chosen]
    lengths = [len(one.words) + 2 for one in chosen]
    looked = [Looked(k, pairs_of(one.links, **how), one.ordinary) for k, one in enumerate(chosen)]
    residuals = QueryResiduals(looked, layers=1, heads=len(HEADS), longest=max(lengths), causal=causal)
    for k, own in enumerate(maps):
        residuals.update(0, own[None], [k])
    places = [
        np.stack([relation_score(own, at, **how) for at in shifted(one.links, one.ordinary)])
        for own, one in zip(maps, chosen, strict=True)
    ]
    groups = [
        np.stack([[relation_score(maps[i], chosen[j].links, **how) for j in group] for i in group])
        for group in exchange_groups(lengths, seed=seed)
    ]
    query, share = (
        link_tests.Null(
            np.sum([one[0] for one in residuals.result(kind)], axis=0),
            link_tests.place_draws(residuals.result(kind), draws, seed=seed + number),
        )
        for number, kind in enumerate(("weight", "share"))
    )
    return link_tests.verdict(
        np.stack([one[0] for one in places]),
        link_tests.place_draws(places, draws, seed=seed),
        link_tests.exchange_draws(groups, draws, seed=seed),
        query,
        share,
    )


@dataclass(frozen=True)
class Survival:
    """Of so many planted sets: in how many each of HEADS beats the place nulls, and survives all."""

    direction: str
    sets: int
    sentences: int
    places: dict[str, int]
    survive: dict[str, int]


def simulate(
    sentences: Sequence[Words], *, direction: str, causal: bool = False, sets: int, draws: int = 999
) -> Survival:
    """Planted sets, each with noise of its own."""
    tests = [planted(sentences, direction=direction, causal=causal, seed=seed, draws=draws) for seed in range(sets)]
    places, survive = (
        {name: int(sum(getattr(test, verdict)[k] for test in tests)) for k, name in enumerate(HEADS)}
        for verdict in ("beats_places", "survives")
    )
    return Survival(direction, sets, tests[0].n, places, survive)


def table(survivals: Sequence[Survival]) -> str:
    """Markdown: planted sets in which a head beats the place nulls / survives all four."""
    lines = ["| head | " + " | ".join(f"{one.direction} (n = {one.sentences})" for one in survivals) + " |"]
    lines.append("|---" * (len(survivals) + 1) + "|")
    for name in HEADS:
        cells = (f"{one.places[name]} / {one.survive[name]} of {one.sets}" for one in survivals)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)
