"""A race of every head against the full sweep: time at BERT-base's size, verdicts from effects that were recorded.

Time does not depend on the weights, verdicts do. So the two are joined: `recorded/*.npz` hold the exact and first-order
effects of every head of two checkpoints fine-tuned on SST-2 on its 872 dev rows (the bundled encoder, 36 heads; MiniLM,
72). A race over 144 heads gives head h of layer l the effects of MiniLM's head h of layer l // 2, which says which
heads are open at which look; each look's rows are then run on a BERT-base with random weights and timed.

Sizes: RACE_ROWS rows of one length time the full sweep (default 8; 872 is all) and each look of the race, or more where
RACE_TOKENS tokens (default one pack) hold more; both are scaled by tokens. RACE_SWEEPS null sweeps a recording (200).
"""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import t

from core.capture.losses import LabelledRows, effects, first_order
from core.capture.sweeping import PACK_TOKENS, Computing, cost_of, every_head, sweep
from core.models.checkpoint import Checkpoint
from core.models.encoding import Encoding
from core.scoring.sequential_test import Rules, Standings, next_step, standings
from core.studies.ablation.sequential_test import BACKWARD, HOPELESS, SHARE, clipped
from core.tasks.glue import read_rows
from tests.benchmarks.sweep import SHARED, base

RECORDED = Path(__file__).parent / "recorded"
ROWS, TOKENS, SWEEPS = (
    int(os.environ.get(name, value))
    for name, value in (("RACE_ROWS", 8), ("RACE_TOKENS", PACK_TOKENS), ("RACE_SWEEPS", 200))
)
MARGIN = SHARE * np.log(2)  # the default: both classes of SST-2 are about as frequent
CLIP = float(np.log(2))  # the default: what knowing nothing costs
MARGINS = (0.1, 0.05, MARGIN, 0.02, 0.01)


@dataclass(frozen=True)
class Recording:
    """Effects of every head on the clipped loss [head, row]."""

    exact: np.ndarray
    layers: int
    heads: int

    @property
    def costs(self) -> np.ndarray:
        return np.array([cost_of(one, self.layers) for one in every_head(self.layers, self.heads)])

    def drawn(self, order: np.ndarray) -> "Recording":
        return Recording(self.exact[:, order], self.layers, self.heads)


@dataclass(frozen=True)
class Raced:
    """One race: where it ended, and its looks (heads open, rows from, to)."""

    state: Standings
    looks: list[tuple[np.ndarray, int, int]]


def recorded(name: str, clip: float = CLIP) -> Recording:
    with np.load(RECORDED / f"{name}.npz") as stored:
        exact, loss = (stored[field].astype(float) for field in ("exact", "loss"))
        return Recording(clipped(loss, exact, clip), int(stored["layers"]), int(stored["heads"]))


def rules_for(recording: Recording, margin: float) -> Rules:
    heads, rows = recording.exact.shape
    return Rules(margin, max(CLIP, 2 * margin), rows, heads, hopeless=HOPELESS)


def joined(recording: Recording, layers: int = 12, heads: int = 12) -> Recording:
    """The recording stretched to another shape: layer l takes that of l / layers, head h likewise."""
    source = [
        (layer * recording.layers // layers) * recording.heads + head * recording.heads // heads
        for layer in range(layers)
        for head in range(heads)
    ]
    return Recording(recording.exact[source], layers, heads)


def race(recording: Recording, rules: Rules) -> Raced:
    """A race over effects that are known, in the order of their rows."""
    exact, looks = np.full_like(recording.exact, np.nan), []
    while not (step := next_step(exact, rules)).over:
        rows = slice(step.start, step.stop)
        exact[step.heads, rows] = recording.exact[step.heads, rows]
        looks.append((step.heads, step.start, step.stop))
    return Raced(standings(exact, rules), looks)


def full_verdicts(recording: Recording, margin: float) -> list[str]:
    """Of the full sweep: simultaneous t-intervals over all rows."""
    heads, rows = recording.exact.shape
    half = t.ppf(1 - 0.05 / (2 * heads), rows - 1) * recording.exact.std(1, ddof=1) / np.sqrt(rows)
    size = np.abs(recording.exact.mean(1))
    return list(np.select([size - half > margin, size + half < margin], ["matters", "does not matter"], "open"))


def passes(recording: Recording, raced: Raced, rows: int, first: int) -> tuple[float, float]:
    """Forward passes of a row: of the full sweep, and of the race."""
    costs = recording.costs
    looks = sum((stop - start) * (1 + costs[heads].sum()) for heads, start, stop in raced.looks)
    return rows * (1 + costs.sum()), looks + BACKWARD * first


def judged(recording: Recording, margin: float, seeds: int = 10) -> dict[str, float]:
    """Means over seeds: forward ratio, heads left open (share), contradictions and verdicts where the full is open."""
    rows = recording.exact.shape[1]
    rules, wanted, found = rules_for(recording, margin), full_verdicts(recording, margin), []
    for seed in range(seeds):
        some = recording.drawn(np.random.default_rng(seed).permutation(rows))
        raced = race(some, rules)
        pairs = [(a, b) for a, b in zip(raced.state.verdicts, wanted, strict=True) if a != "open" and a != b]
        undecided = sum(b == "open" for _, b in pairs)
        full, took = passes(some, raced, rows, rules.first)
        evaluations = rows * len(wanted) / raced.state.rows.sum()
        found.append((full / took, evaluations, len(raced.state.open) / len(wanted), len(pairs) - undecided, undecided))
    names = ("forward_ratio", "rows_ratio", "open", "contradictions", "decided_where_full_is_open")
    return dict(zip(names, np.mean(found, 0).tolist(), strict=True))


def null_sweeps(recording: Recording, margin: float, sweeps: int) -> int:
    """Of sweeps whose heads all lie exactly at the margin: how many had any verdict. Rows are drawn with replacement
    from the recording, each head's mean moved to plus or minus the margin."""
    heads, rows = recording.exact.shape
    wrong = 0
    for seed in range(sweeps):
        generator = np.random.default_rng([17, seed])
        drawn = recording.drawn(generator.integers(0, rows, rows))
        sides = generator.choice([-margin, margin], heads)[:, None]
        moved = drawn.exact - recording.exact.mean(1, keepdims=True) + sides
        at_the_margin = Recording(moved, recording.layers, recording.heads)
        wrong += len(race(at_the_margin, rules_for(recording, margin)).state.open) < heads
    return wrong


# ---------------------------------------------------------------- time


def alike(encodings: Sequence[Encoding], count: int) -> list[Encoding]:
    """Some rows of the commonest length: the batches that a sweep of all rows makes."""
    lengths = [len(one) for one in encodings]
    commonest = max(sorted(set(lengths)), key=lengths.count)
    if count >= len(encodings):
        return list(encodings)
    return [one for one in encodings if len(one) == commonest][:count]


def tokens(encodings: Sequence[Encoding]) -> int:
    return sum(len(one) for one in encodings)


def seconds(work) -> np.ndarray:
    """Seconds by the CPU of one thread, which other work changes little, and by the clock, on a machine at rest."""
    cpu, clock = time.process_time(), time.perf_counter()
    work()
    return np.array([time.process_time() - cpu, time.perf_counter() - clock])


def timed(checkpoint: Checkpoint, encodings: Sequence[Encoding], raced: Raced, first: int) -> dict[str, np.ndarray]:
    """Seconds (CPU, clock) of the full sweep and of every part of the race, each from some of its rows and scaled by
    tokens."""
    variants, whole = every_head(12, 12), tokens(encodings)
    some = alike(encodings, ROWS)
    found = {"full": whole / tokens(some) * seconds(lambda: sweep(checkpoint, some, variants))}
    looks = np.zeros(2)
    for heads, start, stop in raced.looks:
        chosen, rows = [variants[k] for k in heads], encodings[start:stop]
        part = alike(rows, max(ROWS, round(TOKENS / (1 + len(chosen)) / (whole / len(encodings)))))
        spent = seconds(
            lambda part=part, chosen=chosen: effects(checkpoint, LabelledRows(part, [0] * len(part)), chosen)
        )
        looks += spent * tokens(rows) / tokens(part)
    middle = alike(encodings, 16)
    rate = seconds(lambda: first_order(checkpoint, middle, [0] * len(middle))) / tokens(middle)
    found["looks"], found["first_order"] = looks, rate * tokens(encodings[:first])
    return found


def main() -> dict[str, object]:
    recordings = {name: recorded(name) for name in ("encoder", "minilm")}
    figures: dict[str, object] = {"margin": MARGIN}
    at_default = {name: judged(one, MARGIN) for name, one in recordings.items()}
    heads = sum(len(one.exact) for one in recordings.values())
    figures["contradictions"] = sum(one["contradictions"] for one in at_default.values())
    figures["open"] = sum(at_default[name]["open"] * len(one.exact) for name, one in recordings.items()) / heads
    figures["null_false"] = max(null_sweeps(one, MARGIN, SWEEPS) for one in recordings.values())
    figures["null_sweeps"] = SWEEPS
    for name, one in recordings.items():
        for margin in MARGINS:
            said = judged(one, margin)
            figures |= {f"{name} at {margin:.3g}, {field}": value for field, value in said.items()}
    wide = joined(recordings["minilm"])
    rows = wide.exact.shape[1]
    order = np.random.default_rng(0).permutation(rows)
    rules = rules_for(wide, MARGIN)
    raced = race(wide.drawn(order), rules)
    full, took = passes(wide, raced, rows, rules.first)
    figures["forward_ratio"] = full / took
    checkpoint = base()
    dev = read_rows("sst2", "dev", folder=SHARED / "glue")
    encodings = [checkpoint.encode(dev[k].text, dev[k].pair) for k in order]
    sweep(checkpoint, encodings[:1], every_head(12, 12)[:2], computing=Computing(packed=True))  # warm up
    spent = timed(checkpoint, encodings, raced, rules.first)
    figures["time_ratio"], figures["time_ratio by the clock"] = spent["full"] / (spent["looks"] + spent["first_order"])
    for name, (cpu, clock) in spent.items():
        figures |= {f"seconds, {name}": float(cpu), f"seconds by the clock, {name}": float(clock)}
    figures["looks, heads x rows"] = " ".join(f"{len(heads)}x{stop - start}" for heads, start, stop in raced.looks)
    figures["backward, passes"] = float((spent["first_order"] / rules.first * full / spent["full"])[0])
    return figures | {"rows timed of the full sweep": ROWS}
