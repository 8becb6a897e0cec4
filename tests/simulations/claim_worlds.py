"""What the report's claims decide in worlds that are known: rows are planted with the noise of GLUE's dev sets, the
claim's own test reads them. No checkpoint is run.

Of each claim three worlds: nothing is there (null), an effect at twice the margin (twice), and one inside it (inside).
Where the margin is 0 "twice" is two points of a score, or as much as the world says, and "inside" is as much the other
way: the sentence is wrong.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from core.report.claims import claim
from core.report.claims.outcomes import FAILS, HOLDS, UNDECIDED
from core.report.evidence import Evidence
from tests.report.evidence_made import evidence, found, head_rows
from tests.simulations import planted_claims as planted
from tests.simulations.planted_rows import HEADS, LUCK, ROWS, Planted, drawn, heads, heads_of, in_seeds, swept

DRAWS = 200
WORLDS = ("null", "twice", "inside")


@dataclass(frozen=True)
class World:
    """Of one claim: how rows are planted at a true value; true values by world; those where the sentence is true."""

    claim: str
    n: int
    plant: Planted
    truth: dict[str, float]
    true: frozenset[str]


def pruned(effect: float, rng: np.random.Generator) -> Evidence:
    """A curve of pruning whose step at two fifths changes the score."""
    n = ROWS["sst2"]
    value, half = drawn(effect, 0.2, n, rng)
    step = {"kind": "step", "order": "importance", "metric": "accuracy", "n": n, "baseline": 0.9}
    rows = [
        step
        | {"removed": k, "share": share, "change": c, "score": 0.9 + c}
        | {"low": 0.9 + c - half, "high": 0.9 + c + half}
        for k, (share, c) in enumerate(((0.0, 0.0), (0.4, value)))
    ]
    return evidence(found("prune", rows, "sst2"))


# ---------------------------------------------------------------- weights of heads


def neighbours(effect: float, rng: np.random.Generator) -> Evidence:
    rows = [row for side in ("previous", "next") for row in heads(effect, effect, rng, statistic=side, task="sst2")]
    return evidence(found("statistics", rows))


def separators(effect: float, rng: np.random.Generator) -> Evidence:
    return evidence(found("statistics", heads(effect, effect, rng, statistic="separator", task="sst2")))


def gaining(task: str, *features: str, n: int = 872) -> Planted:
    """An eighth of the heads gain (all of them, where they lose); each seed has its luck with each head. The study's
    difference is before less after."""

    def plant(effect: float, rng: np.random.Generator) -> Evidence:
        true = np.where((np.arange(HEADS[0] * HEADS[1]) < 3).reshape(HEADS), effect, min(effect, 0.0))
        about = {"statistic": "max", "checkpoint": "difference"}

        def rows() -> list[dict]:
            return [
                row
                for feature in features
                for row in heads_of(-true - rng.normal(0, LUCK, HEADS), rng, n, feature=feature, **about)
            ]

        return evidence(*in_seeds("features", rows, task))

    return plant


def sink(effect: float, rng: np.random.Generator) -> Evidence:
    rows = [row | {"kind": "head", "baseline": 0.05, "survives": False} for row in heads(effect, effect, rng)]
    summary = {
        "kind": "summary",
        "layers": HEADS[0],
        "heads": HEADS[1],
        "above_99": 1,
        "survivors": [],
        "beat_places": [],
        "n": 20,
        "links": 20,
        "links_before": 19,
        "average": "sentences",
        "line_99": 0.4,
    }
    return evidence(*(found(part, [summary, *rows]) for part in ("sink", "sinkless")), causal=True)


def pronouns(effect: float, rng: np.random.Generator) -> Evidence:
    """The first head is diagonal and above the others by the effect; where it is below them a broad head is best."""
    rows = heads(
        0.3 + max(effect, 0.0), 0.3, rng, task="rte", feature="noun-pronoun", statistic="forward", baseline=0.3, q=0.0
    )
    if effect < 0:
        rows[1] = rows[1] | {end: rows[1][end] - effect for end in ("value", "low", "high")}
    places = [
        {
            "task": "rte",
            "statistic": "place",
            "layer": row["layer"],
            "head": row["head"],
            "kind": "other" if k else "previous",
        }
        for k, row in enumerate(rows)
    ]
    return evidence(found("relations", rows), found("statistics", places))


def roles(effect: float, rng: np.random.Generator) -> Evidence:
    """Each head has a role on three tasks, on all of them the same: kept with the chance `effect`, or lost."""
    kept = rng.random(32) < effect
    rows = head_rows([np.where(kept, 0.9, 0.1)], statistic="previous", task="mnli")
    rows = [row | {"n": 100_000} for row in rows]
    for task in ("rte", "mrpc", "wnli"):
        rows += [row | {"n": 10} for row in head_rows([[0.9] * len(kept)], statistic="previous", task=task)]
        rows += [row | {"kind": "previous"} for row in head_rows([[0.0] * len(kept)], statistic="place", task=task)]
    return evidence(found("statistics", rows))


OF = {  # n of rows that are no task's dev rows
    "frame-heads": 473,
    "dependencies": 300,
    "separator-origin": 60,
    "effective-drops": 40,
    "dominance": 60,
    "negation-qnli": 100,
    "last-two-layers": 100,
    "gpt2-changes": 100,
    "no-whole-tree": 2000,
    "attention-syntax": 2000,
    "hierarchical": 600,
    "little-change": 1000,
    "keeps-its-heads": 72,
    "words-of-both": 24,
    "repeated-patterns": 436,
    "adjectives-matter": 290,
    "gradient-and-effect": 72,
    "gradient-and-shapley": 72,
    "gradient-and-gate": 72,
    "greedy-by-gradient": 100,
}


def _world(name: str, task: str, plant: Planted, null: float, twice: float, inside: float, *true: str) -> World:
    return World(
        name, OF.get(name, ROWS[task]), plant, dict(zip(WORLDS, (null, twice, inside), strict=True)), frozenset(true)
    )


PLANTED = (
    _world("random-head", "rte", swept("heads", "rte", of_all=True), 0.0, 0.02, -0.02, "twice"),
    _world("some-head", "sst2", swept("heads", "sst2", of_all=False), 0.0, 0.02, -0.02, "twice"),
    _world("first-layer", "rte", swept("layers", "rte", of_all=False), 0.0, 0.02, -0.02, "twice"),
    _world("prunable", "sst2", pruned, 0.0, -0.02, -0.005, "null", "inside"),
    _world("neighbours", "sst2", neighbours, 0.5, 0.6, 0.4, "twice"),
    _world("separators", "sst2", separators, 0.5, 0.6, 0.4, "twice"),
    _world("all-heads-carry", "sst2", sink, 0.4, 0.5, 0.3, "twice"),
    _world("more-to-nouns", "sst2", gaining("rte", "noun", "object"), 0.0, 0.1, -0.1, "twice"),
    _world("noun-pronoun", "sst2", pronouns, 0.0, 0.1, -0.1, "twice"),
    *(
        _world(f"gradient-and-{name}", "heads", planted.ranked(part, name), 0.5, 0.8, 0.2, "twice")
        for name, part in (("effect", "shapley"), ("shapley", "shapley"), ("gate", "gates"))
    ),
    _world("greedy-by-gradient", "heads", planted.orders, -0.05, 0.0, -0.1, "twice"),
    _world("keeps-its-heads", "heads", planted.kept_heads, 0.5, 0.7, 0.3, "twice"),
    _world("keeps-its-role", "heads", roles, 0.5, 0.3, 0.7, "twice"),
    _world("more-vertical", "rte", planted.moved("vertical", "diagonal"), 0.0, 0.1, -0.1, "twice"),
    _world("few-meaningful", "rte", planted.meaningful, 0.5, 0.4, 0.6, "twice"),
    _world("last-two-layers", "heads", planted.changed(slice(-2, None), causal=False), 0.0, 0.1, -0.1, "twice"),
    _world("gpt2-changes", "heads", planted.changed(slice(2, None), causal=True), 0.0, 0.1, -0.1, "twice"),
    _world("frame-heads", "heads", planted.frames, 0.0, 0.2, -0.05, "twice"),
    _world("harmless", "sst2", planted.harmless, 0.0, -0.02, -0.005, "null", "inside"),
    _world("cls-early", "sst2", planted.early_late, 0.0, 0.1, -0.1, "twice"),
    _world("not-linguistic", "sst2", planted.stripes, 0.0, 0.1, -0.1, "twice"),
    _world("one-separator", "sst2", planted.one_separator, 0.0, 0.1, -0.1, "twice"),
    _world("cls-row", "sst2", planted.classifying, 0.0, 0.1, -0.1, "twice"),
    _world("shares-stay", "rte", planted.moved("vertical", "diagonal"), 0.0, 0.2, 0.05, "null", "inside"),
    _world("pretraining", "sst2", planted.tuned("pretrained", "random"), 0.0, 0.02, -0.02, "twice"),
    _world("random-learns", "sst2", planted.tuned("random", "pretrained"), 0.0, 0.02, -0.02, "twice"),
    _world("shared-heads", "sst2", planted.shared, 0.5, 1.0, 0.0, "twice"),
    _world("nothing-changes", "sst2", planted.same_predictions, 0.0, 0.01, 0.001, "null"),
    _world("one-is-enough", "sst2", swept("alone", "sst2", of_all=True), 0.0, -0.02, -0.005, "null", "inside"),
    _world("separator-gradients", "sst2", planted.ratios, 0.5, 0.4, 0.6, "twice"),
    _world("separator-effects", "heads", planted.sinks, 0.5, 1.0, 0.0, "twice"),
    _world("separator-origin", "heads", planted.origins, 0.1, 0.2, 0.05, "twice"),
    _world("dependencies", "heads", planted.dependencies, 0.0, 0.1, -0.1, "twice"),
    _world("effective-drops", "heads", planted.parting, 0.0, 0.02, -0.005, "twice"),
    _world("dominance", "heads", planted.dominance, 0.0, 0.1, -0.1, "twice"),
    _world("special-tokens", "sst2", planted.special, 0.5, 0.6, 0.4, "twice"),
    _world("no-stripes", "sst2", planted.borders, 0.1, 0.2, 0.05, "null", "inside"),
    _world("rise-and-fall", "sst2", planted.rise_and_fall, 0.0, 0.1, -0.1, "twice"),
    _world("negation-qnli", "heads", gaining("qnli", "negation", n=100), 0.0, 0.2, -0.2, "twice"),
    _world("layer-costs", "qnli", swept("layers", "qnli", of_all=True, heads=6), 0.0, -0.004, -0.001, "null", "inside"),
    _world("tuned-beats-untuned", "sst2", planted.tuned("pretrained", "untrained"), 0.0, 0.02, -0.02, "twice"),
    _world("no-whole-tree", "heads", planted.trees, 0.1, 0.2, 0.05, "inside"),
    _world("attention-syntax", "heads", planted.syntax, 0.0, 0.1, -0.1, "twice"),
    _world("hierarchical", "heads", planted.hierarchy, 0.0, 0.1, -0.1, "twice"),
    _world("middle-transfers", "sst2", planted.transfer, 0.0, 0.1, -0.1, "twice"),
    _world("a-third-can-go", "sst2", planted.without_a_third, 0.0, -0.02, -0.005, "null", "inside"),
    _world("good-and-bad", "sst2", planted.subnetworks, 0.0, 0.02, -0.02, "twice"),
    _world("random-below-untuned", "sst2", planted.tuned("untrained", "random", "qnli"), 0.0, 0.02, -0.02, "twice"),
    _world("fifth-layer", "rte", planted.fifth_layer, 0.0, 0.02, -0.02, "twice"),
    _world("little-change", "heads", planted.little, 0.9, 0.95, 0.85, "twice"),
    _world("late-stripes", "sst2", planted.late_stripes, 0.5, 1.0, 0.0, "twice"),
    *(
        _world(name, "sst2", planted.settings_beside(part), 0.0, -0.02, -0.005, "null", "inside")
        for name, part in (("classified-by-separator", "by-separator"), ("fresh-last-layers", "fresh-last-layers"))
    ),
    _world("first-and-last", "sst2", planted.ends_of_sentences, 0.0, 0.1, -0.1, "twice"),
    _world("repeated-patterns", "heads", planted.repeating, 0.0, 0.1, -0.1, "twice"),
    _world("adjectives-matter", "heads", planted.linking, 0.0, 0.1, -0.1, "twice"),
    _world("words-of-both", "heads", planted.same_words, 0.5, 0.9, 0.1, "twice"),
)


def decisions(world: World, name: str, draws: int, seed: int = 0) -> list[str]:
    """What the claim decides of each draw of one world."""
    known = claim(world.claim)
    assert known
    rng = np.random.default_rng([seed, WORLDS.index(name), len(world.claim)])
    return [known.test(world.plant(world.truth[name], rng))[0].outcome for _ in range(draws)]


def rates(world: World, draws: int = DRAWS) -> dict[str, float]:
    """The worse of the worlds where a "holds" (or "does not hold") is false, and how often twice is undecided."""
    found_in = {name: decisions(world, name, draws) for name in WORLDS}
    share = {
        name: {word: words.count(word) / draws for word in (HOLDS, FAILS, UNDECIDED)}
        for name, words in found_in.items()
    }
    return {
        "false_holds": max((share[name][HOLDS] for name in WORLDS if name not in world.true), default=0.0),
        "false_fails": max((share[name][FAILS] for name in world.true), default=0.0),
        "undecided_at_2x": share["twice"][UNDECIDED],
    }


def limit(draws: int) -> float:
    """How far a true rate of 5 % goes in so many draws, in 99.7 % of such simulations."""
    return float(binom.ppf(0.997, draws, 0.05)) / draws


def as_json(
    draws: int = DRAWS, *, only: Collection[str] = (), before: Mapping[str, dict[str, float]] | None = None
) -> dict[str, dict[str, float]]:
    """{claim: {false_holds, false_fails, undecided_at_2x}}. only: claims to draw, the others as they were before."""
    asked = {world.claim: world for world in PLANTED if not only or world.claim in only}
    known = before or {}
    return {
        world.claim: rates(asked[world.claim], draws) if world.claim in asked else known[world.claim]
        for world in PLANTED
        if world.claim in asked or world.claim in known
    }
