"""Rows of studies with the noise of GLUE's dev sets, planted: sweeps in which rows flip, heads, layers, scores."""

from collections.abc import Callable, Sequence

import numpy as np

from core.report.evidence import Evidence, StepResult
from core.scoring import effects
from tests.report.evidence_made import evidence, found, head_rows

ROWS = {"sst2": 872, "mrpc": 408, "rte": 277, "qnli": 5463, "heads": 32}  # of GLUE's dev sets; heads where they count
HEADS = (6, 4)  # layers, heads of each
HALVES = 1.959964  # standard errors in half of an interval
SEEDS, LUCK = 3, 0.01  # of fine-tuning, and their spread in weights and cosines: as much as in scores

Planted = Callable[[float, np.random.Generator], Evidence]


def drawn(true: float, sd: float, n: int, rng: np.random.Generator) -> tuple[float, float]:
    """A mean of n rows, and half of its interval."""
    error = sd / n**0.5
    return float(rng.normal(true, error)), HALVES * error


def valued(true: float, rng: np.random.Generator, n: int = 872, sd: float = 0.3, **more: object) -> dict:
    """A row with a value, its interval and n."""
    value, half = drawn(true, sd, n, rng)
    return {"value": value, "low": value - half, "high": value + half, "n": n} | more


def heads(best: float, others: float, rng: np.random.Generator, **more: object) -> list[dict]:
    """Rows of heads: the first has one true value, the others another."""
    table = np.full(HEADS, others)
    table[0, 0] = best
    return heads_of(table, rng, **more)


def heads_of(table: np.ndarray, rng: np.random.Generator, n: int = 872, **more: object) -> list[dict]:
    """Rows of heads with these true values, [layer, head]."""
    return [row | valued(row["value"], rng, n) for row in head_rows(table, **more)]


def of_layers(layers: Sequence[float], rng: np.random.Generator, **more: object) -> list[dict]:
    """Rows of heads, all of a layer with one true value."""
    return heads_of(np.repeat(np.asarray(layers, dtype=float)[:, None], HEADS[1], 1), rng, **more)


def beyond(rows: list[dict]) -> list[dict]:
    """Rows of heads whose value is what they have beyond a null of a tenth."""
    ends = {"effect": "value", "effect_low": "low", "effect_high": "high"}
    return [row | {name: row[end] for name, end in ends.items()} | {"baseline": 0.1} for row in rows]


def in_seeds(part: str, rows: Callable[[], list[dict]], task: str, *, seeds: int = SEEDS) -> list[StepResult]:
    """What a step says of each seed of fine-tuning. rows: of one seed, drawn anew."""
    results = []
    for seed in range(seeds):
        name = f"ours-s{seed}-000000"
        options, about = ({"after": (name,)}, {"after": name}) if part == "change" else ({"compare": name}, {})
        mine = [row | about for row in rows()]
        results.append(found(f"{part}-seeds" if seed else part, mine, task, options=options))
    return results


def sweep_of(rates: np.ndarray, n: int, rng: np.random.Generator, *, corrected: bool = True) -> list[dict]:
    """A sweep in which disabling a head changes each row's correctness by itself, on average by its rate."""
    heads = len(rates)
    draws = rng.random((n, heads))
    differences = (draws < 0.03 + np.maximum(rates, 0)).astype(float) - (draws > 0.97 + np.minimum(rates, 0))
    means, half = differences.mean(0), HALVES * differences.std(0, ddof=1) / n**0.5
    seed = int(rng.integers(2**31))
    p = effects.max_t(np.zeros(n), differences.T, seed=seed) if corrected else [1.0] * heads
    flipped = np.abs(differences).sum(0)
    rows: list[dict] = [{"kind": "baseline", "name": "untouched", "accuracy": 0.7, "n": n}]
    for k in range(heads):
        name = {"name": f"L{k // 4 + 1}H{k % 4 + 1}", "layer": k // 4, "head": k % 4}
        ends = {"accuracy_low": means[k] - half[k], "accuracy_high": means[k] + half[k]}
        change = {"accuracy_change": means[k], "p": float(p[k]), "n": n, "flipped": int(flipped[k])}
        rows.append({"kind": "variant"} | name | ends | change)
    over = effects.mean_intervals(np.zeros(n), differences.mean(1)[None], most=None)[0]
    ends = {"value": over.value, "low": over.low, "high": over.high, "heads": heads, "n": n}
    return [*rows, {"kind": "mean over heads", "name": "mean over heads", "metric": "accuracy"} | ends]


def swept(part: str, task: str, *, of_all: bool, heads: int = 24) -> Planted:
    """The effect is of all heads, or of one."""

    def plant(effect: float, rng: np.random.Generator) -> Evidence:
        rates = np.full(heads, effect) if of_all else np.where(np.arange(heads) == 0, effect, min(effect, 0.0))
        return evidence(found(part, sweep_of(rates, ROWS[task], rng, corrected=part == "heads"), task))

    return plant
