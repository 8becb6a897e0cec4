"""Evidence for the claims whose rows are weights of heads, shares, scores or probes, planted at a true value."""

import numpy as np
from scipy.stats import norm

from core.patterns.class_shares import moved_shares
from core.report.evidence import Evidence
from core.report.measures.maps import LOOKED_AT
from core.scoring.corrections import q_values
from core.scoring.intervals import student
from core.scoring.repetition import Repeated
from core.studies.ablation.knockout import contrasts
from tests.report.evidence_made import CHECKPOINT, evidence, found
from tests.simulations.planted_rows import (
    HALVES,
    HEADS,
    LUCK,
    ROWS,
    Planted,
    beyond,
    drawn,
    heads_of,
    in_seeds,
    of_layers,
    sweep_of,
    valued,
)

LOOKING = {"statistic": "max", "checkpoint": CHECKPOINT}
CHANGING = {"statistic": "max", "checkpoint": "difference"}  # before less after
HALF = HEADS[0] // 2

# ---------------------------------------------------------------- change, frames


def changed(most: slice, *, causal: bool) -> Planted:
    """Cosines of layers; those that are to change most lie lower by the effect."""

    def plant(effect: float, rng: np.random.Generator) -> Evidence:
        cosines = np.full(HEADS[0], 0.8)
        cosines[most] -= effect
        more = {"kind": "layer", "statistic": "cosine"}

        def rows() -> list[dict]:
            of_seed = cosines + rng.normal(0, LUCK, len(cosines))
            return [valued(value, rng, 100, 0.1, layer=k, **more) for k, value in enumerate(of_seed)]

        return evidence(*in_seeds("change", rows, "rte"), causal=causal)

    return plant


def kept_heads(effect: float, rng: np.random.Generator) -> Evidence:
    """Three seeds of fine-tuning: each head is one that is kept with the chance `effect`; a seed changes a tenth."""
    heads = 72
    kept = rng.random(heads) < effect
    turned = rng.random((3, heads)) < 0.1
    again = np.where(turned, rng.random((3, heads)) < effect, kept)
    more = {
        "kind": "match",
        "checkpoint": CHECKPOINT,
        "keys": "tokens",
        "visible": "all",
        "identical": False,
        "heads": heads,
        "others": heads,
        "draws": 99,
        "rows": 24,
        "n": 200,
        "weights_hash": "",
        "compare_hash": "",
    }
    rows = [
        more | {"compare": f"seed {k}", "matched": int(count), "same_place": int(count)}
        for k, count in enumerate(again.sum(1))
    ]
    return evidence(found("match", rows, "rte"))


def ranked(part: str, name: str) -> Planted:
    """A rank correlation of the gradient with another way to rank, as bootstrapped over 72 heads."""
    second = {"shapley": "Shapley value"}.get(name, name)

    def plant(effect: float, rng: np.random.Generator) -> Evidence:
        row = valued(effect, rng, 72, 0.8, kind="agreement", name=name, first="gradient", second=second)
        return evidence(found(part, [row], "mrpc"))

    return plant


def orders(effect: float, rng: np.random.Generator) -> Evidence:
    """What the order by Shapley value keeps beyond that by gradient, of a logit difference of 2."""
    row = valued(-2 * effect, rng, 100, 0.25, kind="order contrast", verdict="")
    total = {"kind": "sum", "with_all": 2.0, "with_none": 0.0, "values": 2.0, "n": 100}
    return evidence(found("shapley", [row, total], "mrpc"))


def frames(effect: float, rng: np.random.Generator) -> Evidence:
    """The first head lies above its null by the effect, or all lie below; q by Benjamini and Hochberg."""
    table = np.full(HEADS, 0.1 + min(effect, 0.0))
    table[0, 0] = 0.1 + effect
    rows = [row | {"kind": "head", "baseline": 0.1} for row in heads_of(table, rng, 473)]
    p = norm.sf([[(row["value"] - 0.1) / (row["value"] - row["low"]) * HALVES for row in rows]])
    names = [f"L{row['layer'] + 1}H{row['head'] + 1}" for row in rows]
    surviving = [name for name, q in zip(names, q_values(p)[0], strict=True) if q <= 0.05]
    summary = {
        "kind": "summary",
        "layers": HEADS[0],
        "heads": HEADS[1],
        "above_99": 1,
        "survivors": surviving,
        "beat_places": surviving,
        "n": 473,
        "links": 481,
        "links_before": 441,
        "average": "sentences",
        "line_99": 0.4,
    }
    return evidence(found("frames", [summary, *rows]))


def harmless(effect: float, rng: np.random.Generator) -> Evidence:
    """Of the two heads that look most along frame links (`sweep_of` has them first) each changes the score so much."""
    table = np.full(HEADS, 0.1)
    table[0, :2] = 0.9
    some = frames(0.0, rng).results[0].rows[:1]
    rows = [*some, *(row | {"kind": "head", "baseline": 0.1} for row in heads_of(table, rng))]
    rates = np.where(np.arange(24) < 2, effect, 0.0)
    sweep = sweep_of(rates, ROWS["sst2"], rng, corrected=False)
    return evidence(found("frames", rows), found("heads", sweep, "sst2"))


# ---------------------------------------------------------------- what heads look at


def looked_at(layers: dict[str, list[float]], rng: np.random.Generator, **more: object) -> list[dict]:
    return [row for name, some in layers.items() for row in of_layers(some, rng, feature=name, **more)]


def early_late(effect: float, rng: np.random.Generator) -> Evidence:
    early, late = [0.3 + effect / 2] * HALF, [0.3 - effect / 2] * HALF
    rows = looked_at({"start": early + late, "separator": late + early}, rng, **LOOKING)
    return evidence(found("features", rows, "sst2"))


def stripes(effect: float, rng: np.random.Generator) -> Evidence:
    """All heads on the line of a stripe; then special tokens above it and nouns below, or the other way."""
    layers = {"start": [0.1 + effect] * HEADS[0], "noun": [0.1 - effect] * HEADS[0]}
    return evidence(found("features", beyond(looked_at(layers, rng, **LOOKING)), "sst2"))


def one_separator(effect: float, rng: np.random.Generator) -> Evidence:
    tasks = {"sst2": 0.3 + effect, "rte": 0.3, "mrpc": 0.3}
    return evidence(
        *(
            found("features", looked_at({"separator": [value] * HEADS[0]}, rng, **LOOKING), task)
            for task, value in tasks.items()
        )
    )


def classifying(effect: float, rng: np.random.Generator) -> Evidence:
    def rows() -> list[dict]:
        layers = {name: [0.2 + effect * (name == "separator") + rng.normal(0, LUCK)] * HEADS[0] for name in LOOKED_AT}
        return looked_at(layers, rng, statistic="classifying", checkpoint="tuned")

    return evidence(*in_seeds("features", rows, "sst2"))


def rise_and_fall(effect: float, rng: np.random.Generator) -> Evidence:
    late = {name: [0.3] * HALF + [0.3 + effect] * HALF for name in ("noun", "verb")}
    before = looked_at(late, rng, **LOOKING)
    return evidence(*in_seeds("features", lambda: before + changing(dict.fromkeys(late, effect), rng), "sst2"))


def changing(lost: dict[str, float], rng: np.random.Generator, **more: object) -> list[dict]:
    """All heads lose so much weight on these features in a seed, whose luck they share."""
    luck = {name: [value + rng.normal(0, LUCK)] * HEADS[0] for name, value in lost.items()}
    return looked_at(luck, rng, **CHANGING, **more)


def borders(effect: float, rng: np.random.Generator) -> Evidence:
    """All heads at the line or below it, or one above it."""
    table = np.full(HEADS, min(effect, 0.1))
    table[0, 0] = effect
    rows = beyond(heads_of(table, rng, feature="punctuation", **LOOKING))
    return evidence(found("features", rows, "sst2"), causal=True)


def special(effect: float, rng: np.random.Generator) -> Evidence:
    rows = [
        row
        for name in ("first", "separator")
        for row in of_layers([effect / 2] * HEADS[0], rng, statistic=name, task="sst2")
    ]
    return evidence(found("statistics", rows))


def parting(effect: float, rng: np.random.Generator) -> Evidence:
    """Short inputs are the same raw and effective; long ones part by the effect beyond what counts as parted."""
    rows = []
    for length, true, sd in ((9, 1.0, 0.0002), (81, 0.99 - effect, 0.02)):
        r = rng.normal(true, sd, 20)
        low, high = student(float(r.sum()), float((r**2).sum()), len(r)) or (None, None)
        about = {"statistic": "correlation by length", "task": "rte", "length_from": length, "length_to": length + 7}
        rows.append(about | {"mean": float(r.mean()), "n": len(r), "low": low, "high": high})
    return evidence(found("effective", rows))


def dominance(effect: float, rng: np.random.Generator) -> Evidence:
    weights = {"raw": 0.3 + effect, "effective": 0.3}
    rows = [
        row
        for kind, value in weights.items()
        for row in looked_at(
            {name: [value] * HEADS[0] for name in ("start", "separator", "punctuation")},
            rng,
            n=60,
            statistic=kind,
            task="sst2",
        )
    ]
    return evidence(found("effective", rows))


def ratios(effect: float, rng: np.random.Generator) -> Evidence:
    rows = []
    for k in range(HEADS[0]):
        value, half = drawn(effect, 0.5, ROWS["sst2"], rng)
        ends = {"ratio": value, "ratio_low": value - half, "ratio_high": value + half, "weight_on_separators": 0.5}
        rows.append({"kind": "layer", "name": f"L{k + 1}", "layer": k, "n": ROWS["sst2"]} | ends)
    return evidence(found("separators", rows, "sst2"))


def sinks(effect: float, rng: np.random.Generator) -> Evidence:
    """Every head has its sink at separators; the sinks of so many of them have half of the margin's effect, the others
    twice as much as the margin."""
    margin, count = 0.1, HEADS[0] * HEADS[1]
    about = {"checkpoint": CHECKPOINT, "task": "sst2", "feature": "separators", "baseline": margin}
    true = np.where(np.arange(count) < round(effect * count), margin / 2, 2 * margin).reshape(HEADS)
    rows = heads_of(true, rng, statistic="sink removed", verdict="undecided", **about)
    return evidence(found("sinks", rows, "sst2"))


def origins(effect: float, rng: np.random.Generator) -> Evidence:
    """Feed-forward blocks have more than words and places together by the effect."""
    about = {"kind": "head score", "statistic": "score share", "checkpoint": CHECKPOINT, "task": "sst2"}
    shares = {"feed-forward": 0.2 + effect, "position": 0.1, "token": 0.1}
    rows = [
        row | about for name, value in shares.items() for row in of_layers([value] * HEADS[0], rng, n=60, feature=name)
    ]
    looking = of_layers([0.9] * HEADS[0], rng, statistic="separator", task="sst2")
    return evidence(found("statistics", looking), found("why", rows))


# ---------------------------------------------------------------- shares of maps


CHANCE = np.array([[0.85, 0.1, 0.05], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])  # of each class to be taken for another
INPUTS = 60  # labelled, of which the classifier's confusions are known


def confusing(rng: np.random.Generator) -> np.ndarray:
    """What held-out maps of labelled inputs were taken for [input, true, predicted]."""
    return np.stack(
        [rng.multinomial(rng.multinomial(4, [0.5, 0.3, 0.2])[k], CHANCE[k], size=INPUTS) for k in range(3)], axis=1
    )


def moved(*names: str) -> Planted:
    """The first class grows by the effect, at the cost of the second, on the same inputs; a classifier counts both."""

    def plant(effect: float, rng: np.random.Generator) -> Evidence:
        n, classes = ROWS["rte"], (*names, "block")
        true = np.array([[0.3, 0.4, 0.3], [0.3 + effect, 0.4 - effect, 0.3]])
        before, after = (rng.multinomial(24, shares @ CHANCE, size=n) for shares in true)
        about = {"part": "moved", "checkpoint": "tuned", "inputs": n}
        rows = [
            about
            | {"class": one.name, "share": one.change, "low": one.low, "high": one.high}
            | {"low_all": one.low_all, "high_all": one.high_all}
            for one in moved_shares(before, after, classes, seed=int(rng.integers(2**31)))
        ]
        return evidence(found("shares", rows, "rte", options={"confusions": confusing(rng).tolist()}))

    return plant


def meaningful(effect: float, rng: np.random.Generator) -> Evidence:
    """Every head has so large a share of maps that could carry meaning; a classifier counts them."""
    n, classes = ROWS["rte"], ("vertical", "heterogeneous", "block")
    about = {"part": "head", "checkpoint": "tuned", "inputs": n, "class": "vertical", "share": 0.5}
    seen = np.array([1 - effect, effect * 0.6, effect * 0.4]) @ CHANCE
    rows = [
        about | {"layer": k // 4, "head": k % 4, "counts": dict(zip(classes, map(int, some), strict=True))}
        for k, some in enumerate(rng.multinomial(n, seen, size=HEADS[0] * HEADS[1]))
    ]
    return evidence(found("shares", rows, "rte", options={"confusions": confusing(rng).tolist()}))


# ---------------------------------------------------------------- scores


def tuned(better: str, other: str, task: str = "sst2") -> Planted:
    """Three seeds of two initialisations, whose luck is a point; dev rows, as many as SST-2's, are the same for all
    seeds of one."""

    def plant(effect: float, rng: np.random.Generator) -> Evidence:
        n, rows = ROWS["sst2"], []
        for name, true in ((better, 0.7 + effect), (other, 0.7)):
            of_rows = rng.binomial(n, true) / n
            seeds = of_rows + rng.normal(0, 0.01, 3)
            about = {"metric": "accuracy", "task": task, "note": "", "constant": 0, "initialisation": name}
            rows += [
                about | {"kind": "run", "dev_rows": n, "accuracy": of_seed, "seed": seed}
                for seed, of_seed in enumerate(seeds)
            ]
            mean = {"accuracy": seeds.mean(), "accuracy_sd": seeds.std(ddof=1), "n": 3}
            rows.append(about | {"kind": "mean"} | mean)
        rows.append({"kind": "baseline", "metric": "accuracy", "task": task, "accuracy": 0.3, "n": n})
        return evidence(found("tuning", rows, task))

    return plant


def losing(stsb: range, rte: range) -> list[dict[str, np.ndarray]]:
    return [
        {task: np.where(np.isin(np.arange(24), list(some)), -0.2, 0.0)} for task, some in (("stsb", stsb), ("rte", rte))
    ]


def shared(effect: float, rng: np.random.Generator) -> Evidence:
    """Six heads cost each task much; of all of them this share costs both."""
    both = {0.5: 4, 1.0: 6, 0.0: 0}[effect]
    sweeps = {name: rates for one in losing(range(6), range(6 - both, 12 - both)) for name, rates in one.items()}
    return evidence(
        *(found("heads", sweep_of(rates, ROWS["sst2"], rng, corrected=False), task) for task, rates in sweeps.items())
    )


def same_predictions(effect: float, rng: np.random.Generator) -> Evidence:
    """Each head changes each prediction with this chance."""
    rows = sweep_of(np.zeros(24), ROWS["sst2"], rng, corrected=False)
    flips = iter(rng.binomial(ROWS["sst2"], effect, 24))
    rows = [row | {"flipped": int(next(flips))} if row["kind"] == "variant" else row for row in rows]
    return evidence(found("heads", rows, "sst2"), causal=True)


def dependencies(effect: float, rng: np.random.Generator) -> Evidence:
    labels = ("nsubj", "obj", "det", "amod", "case", "advmod", "mark")
    rows = [
        valued(0.5 + effect, rng, 300, 0.5, feature=name, baseline=0.5, dev=0.6, layer=0, head=0, statistic="forward")
        for name in labels
    ]
    return evidence(found("dependencies", rows))


# ---------------------------------------------------------------- probes


def named(kind: str, name: str, true: float, rng: np.random.Generator, n: int = 600, **more: object) -> dict:
    return valued(true, rng, n, 0.5, kind=kind, name=name, **more)


def trees(effect: float, rng: np.random.Generator) -> Evidence:
    """A branching baseline, and the best head above it by the effect."""
    head = named("best head", "L1H1", 0.3 + effect, rng, 2000, whole_trees=0.0)
    ends = {"rooted": head["value"], "rooted_low": head["low"], "rooted_high": head["high"]}
    return evidence(found("syntax", [head | ends, named("baseline", "right-branching", 0.3, rng, 2000)]))


def syntax(effect: float, rng: np.random.Generator) -> Evidence:
    rows = [named("probe", "attention and embeddings", 0.5 + effect, rng, 2000)]
    rows.append(named("probe", "attention and embeddings, random weights", 0.5, rng, 2000))
    rows.append(named("baseline", "right-branching", 0.5, rng, 2000))
    return evidence(found("syntax", rows))


def hierarchy(effect: float, rng: np.random.Generator) -> Evidence:
    layers = [0.5] + [0.5] * HALF + [0.5 + effect] * HALF
    about = {"probe": "linear", "property": "main auxiliary, rules part"}
    rows = [named("probe", f"layer {k}", value, rng, layer=k, **about) for k, value in enumerate(layers)]
    return evidence(found("probe", rows))


def transfer(effect: float, rng: np.random.Generator) -> Evidence:
    layers = [0.5, 0.7, 0.7, 0.7 + effect, 0.7 + effect, 0.7, 0.7]
    about = {"reading": "mean over tokens", "metric": "accuracy", "task": "sst2"}
    rows = [named("classifier", f"layer {k}", value, rng, 872, layer=k, **about) for k, value in enumerate(layers)]
    return evidence(found("transfer", rows, "sst2"))


def without_a_third(effect: float, rng: np.random.Generator) -> Evidence:
    change = valued(effect, rng, ROWS["sst2"], 0.2)
    ends = {"change": change["value"], "change_low": change["low"], "change_high": change["high"]}
    row = {"kind": "curve", "name": "30 %", "scope": "global", "moment": "before", "share": 0.3, "constant": 0.5}
    return evidence(found("subnetworks", [change | row | ends], "sst2"))


def subnetworks(effect: float, rng: np.random.Generator) -> Evidence:
    rows = [named("subnetwork", name, 0.8, rng, constant=0.5) for name in ("full", "good", "bad", "random")]
    rows.append(valued(effect, rng, ROWS["sst2"], 0.3, kind="difference", name="good less bad"))
    return evidence(found("subnetworks", rows, "sst2"))


# ---------------------------------------------------------------- further sentences


def little(effect: float, rng: np.random.Generator) -> Evidence:
    """All heads have this cosine, in one seed more and in another less."""

    def rows() -> list[dict]:
        table = np.full(HEADS, effect + rng.normal(0, LUCK))
        return heads_of(table, rng, 1000, kind="head", statistic="cosine")

    return evidence(*in_seeds("change", rows, "rte"))


def late_stripes(effect: float, rng: np.random.Generator) -> Evidence:
    """All heads have a stripe; in the last third so many of them at [SEP], the others at nouns, and below at nouns."""
    late = HEADS[0] // 3
    at_separator = np.zeros(HEADS, dtype=bool)
    at_separator[-late:].flat[: round(effect * late * HEADS[1])] = True
    tables = {"separator": np.where(at_separator, 0.4, 0.05), "noun": np.where(at_separator, 0.05, 0.4)}
    about = LOOKING | {"checkpoint": "tuned"}

    def rows() -> list[dict]:
        return beyond([row for name, table in tables.items() for row in heads_of(table, rng, feature=name, **about)])

    return evidence(*in_seeds("features", rows, "sst2"))


def fifth_layer(effect: float, rng: np.random.Generator) -> Evidence:
    rates = np.where(np.arange(6) == 2, effect, 0.0)  # layer 3 of 6 lies where layer 5 of 12 does
    sweep = [
        row | {"layer": k - 1} if row["kind"] == "variant" else row
        for k, row in enumerate(sweep_of(rates, ROWS["rte"], rng, corrected=False))
    ]
    return evidence(found("layers", sweep, "rte"))


# ---------------------------------------------------------------- the last sentences


def settings_beside(part: str) -> Planted:
    """Three seeds by other settings beside three by the plan's, whose luck is half a point."""

    def plant(effect: float, rng: np.random.Generator) -> Evidence:
        return evidence(
            *(
                found(name, seeds_of(true, rng), "sst2", options={} if name == "tuning" else None)
                for name, true in (("tuning", 0.8), (part, 0.8 + effect))
            )
        )

    return plant


def seeds_of(true: float, rng: np.random.Generator) -> list[dict]:
    """A mean over three seeds on SST-2's rows, and a constant predictor."""
    n = ROWS["sst2"]
    seeds = rng.binomial(n, true) / n + rng.normal(0, 0.005, 3)
    about = {"metric": "accuracy", "task": "sst2", "note": "", "constant": 0, "initialisation": "pretrained"}
    mean = {"kind": "mean", "accuracy": seeds.mean(), "accuracy_sd": seeds.std(ddof=1), "n": 3}
    baseline = {"kind": "baseline", "metric": "accuracy", "task": "sst2", "accuracy": 0.5, "n": 1}
    return [about | {"kind": "run", "dev_rows": n, "accuracy": seeds[0]}, about | mean, baseline]


def ends_of_sentences(effect: float, rng: np.random.Generator) -> Evidence:
    """First and last token have the effect beyond others nearby, and lose it with fine-tuning."""
    ends = dict.fromkeys(("first", "last"), effect)
    before = beyond(looked_at({name: [effect] * HEADS[0] for name in ends}, rng, **LOOKING))
    return evidence(*in_seeds("features", lambda: before + changing(ends, rng), "sst2"), causal=True)


def same_words(effect: float, rng: np.random.Generator) -> Evidence:
    """All heads are ones that both tasks lose by; so large a share of them looks at the same word, by a tenth."""
    every = range(HEADS[0] * HEADS[1])
    looking = (np.arange(len(every)) < effect * len(every)).reshape(HEADS)
    ends = {"contrast": "effect", "contrast_low": "effect_low", "contrast_high": "effect_high"}
    rows = [
        row | {name: row[end] for name, end in ends.items()}
        for way in ("forward", "backward")
        for row in beyond(heads_of(np.where(looking, 0.1, -0.1), rng, task="rte", feature="same-word", statistic=way))
    ]
    sweeps = [
        found("heads", sweep_of(np.full(len(every), -0.2), ROWS["sst2"], rng, corrected=False), task)
        for task in ("stsb", "rte")
    ]
    return evidence(*sweeps, found("relations", rows))


def repeating(effect: float, rng: np.random.Generator) -> Evidence:
    """All heads are by the effect nearer to another head than to themselves; three draws of random weights are not."""
    n, rows = ROWS["sst2"] // 2, []
    for draw, true in enumerate((effect, -0.05, -0.05, -0.05)):
        value = rng.normal(true, 0.15 / n**0.5, HEADS[0] * HEADS[1])
        width = np.full(len(value), HALVES * 0.15 / n**0.5)
        share, low, high = Repeated(value, value - width, value + width, np.zeros(len(value), dtype=int), n).share()
        about = {"kind": "repeats at random", "draw": draw} if draw else {"kind": "repeats"}
        rows.append(
            about | {"checkpoint": CHECKPOINT, "task": "sst2", "share": share, "low": low, "high": high, "n": n}
        )
    return evidence(found("redundancy", rows))


def linking(effect: float, rng: np.random.Generator) -> Evidence:
    """Cutting links of adjectives moves the logits by the effect more than cutting those of prepositions."""
    n = ROWS["sst2"] // 3  # rows that have both
    other = np.abs(rng.normal(0, 0.3, n))
    moved = {"noun-adjective": other + rng.normal(effect, 0.3, n), "noun-preposition": other}
    links = {name: np.full(n, 2) for name in moved}
    rows = [one.as_row() for one in contrasts("sst2", moved, links)]
    return evidence(found("word-links", rows, "sst2"))
