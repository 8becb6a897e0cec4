"""What each study may claim in each world, and how often it does: one list that the worlds' modules fill.

A module of `MODULES` has CASES. A case draws its world by a seed and says whether the study claimed something there
(1.0 or 0.0; or the share of its intervals that hold the truth). Expectations:

    nothing   nothing of that kind is there: a claim in at most 5 % of draws, over all heads and names together
    found     what was planted is found in at least 90 % of draws
    covers    intervals hold the truth at least as often as `bound` says
    at most   a plain number, such as a width over an oracle's, whose median over draws is at most `bound`

A rate is judged against the binomial limit of its draws: the furthest that a true rate of exactly `bound` goes in 99
of 100 such simulations.
"""

import importlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.stats import binom, norm

_NAMES = (
    "attention_worlds",
    "frame_worlds",
    "share_worlds",
    "effect_worlds",
    "race_worlds",
    "together_worlds",
    "counterpart_worlds",
    "dossier_worlds",
)
MODULES = tuple(f"tests.simulations.{name}" for name in _NAMES)
SURE = 0.99  # of simulations stay within a limit when the true rate is exactly at its bound

Expected = Literal["nothing", "found", "covers", "at most"]
BOUNDS: dict[Expected, float] = {"nothing": 0.05, "found": 0.9, "covers": 0.93}


TWICE = 2.0  # what is planted in known worlds, over what the study asks for


@dataclass(frozen=True)
class Planted:
    """What a known world plants.

    asked: the least that the study asks for, in `unit`: its margin, or, of a test without one, the size whose estimate
    is just significant on so many rows (`least_mean`), which half of the draws then find. draw_at: size to the draw.
    """

    asked: float
    unit: str
    draw_at: Callable[[float], Callable[[int], float]]
    is_margin: bool = False

    @property
    def size(self) -> float:
        """Twice what is asked for."""
        return TWICE * self.asked


def least_mean(rows: int, several: int = 1, *, sides: int = 2) -> float:
    """The mean, in a row's standard deviations, that is just significant at 5 % over so many tests on so many rows."""
    return float(norm.isf(0.05 / sides / several) / rows**0.5)


@dataclass(frozen=True)
class Case:
    """One study in one world.

    draw: seed to claim; inputs: n of each draw; draws: of the whole form; quick: of the form that every test run has
    (0: the whole form alone); bound: another than `BOUNDS` has; world_of: what cases of one drawn world share, so that
    it is drawn once for all of them ("": nothing). planted: of worlds where something is to be found.
    """

    study: str
    world: str
    expected: Expected
    draw: Callable[[int], float]
    inputs: int
    draws: int = 200
    quick: int = 0
    bound: float | None = None
    world_of: str = ""
    planted: Planted | None = None

    @property
    def name(self) -> str:
        return f"{self.study}: {self.world}"

    @property
    def wanted(self) -> float:
        """The rate that is asked for."""
        return BOUNDS[self.expected] if self.bound is None else self.bound


def known(study: str, world: str, planted: Planted, inputs: int, **how: Any) -> Case:
    """A world where twice of what is asked for is planted."""
    draw = planted.draw_at(planted.size)
    return Case(study, world, "found", draw, inputs, planted=planted, **how)


@dataclass(frozen=True)
class Outcome:
    """rate: share of draws (of "at most" the median); limit: how far it may go in so many draws."""

    case: Case
    rate: float
    draws: int
    limit: float

    @property
    def within(self) -> bool:
        """Whether the rate keeps to its limit."""
        upwards = self.case.expected in ("found", "covers")
        return self.rate >= self.limit if upwards else self.rate <= self.limit

    @property
    def row(self) -> dict[str, float | int | str | bool]:
        """As `--json` writes it."""
        case = self.case
        return {
            "rate": round(self.rate, 4),
            "draws": self.draws,
            "limit": round(self.limit, 4),
            "expected": case.expected,
            "inputs": case.inputs,
            "within": self.within,
        }


def limit(expected: Expected, bound: float, draws: int) -> float:
    """How far the rate of so many draws may go: binomial, except of a plain number."""
    if expected == "at most":
        return bound
    return float(binom.ppf(SURE if expected == "nothing" else 1 - SURE, draws, bound)) / draws


def simulate(case: Case, draws: int) -> Outcome:
    """The rate over seeds 0 to draws - 1."""
    return outcome(case, [float(case.draw(seed)) for seed in range(draws)])


def outcome(case: Case, drawn: Sequence[float]) -> Outcome:
    """What so many draws come to."""
    values, draws = np.array(drawn), len(drawn)
    rate = np.median(values) if case.expected == "at most" else values.mean()
    return Outcome(case, float(rate), draws, limit(case.expected, case.wanted, draws))


def cases(modules: Iterable[str] = MODULES) -> list[Case]:
    """All of them; two of one study and world must not stand beside each other."""
    listed = [case for module in modules for case in importlib.import_module(module).CASES]
    twice = {case.name for case in listed if sum(other.name == case.name for other in listed) > 1}
    if twice:
        raise ValueError(f"A study and world must be registered once; twice: {', '.join(sorted(twice))}.")
    return listed


def as_json(outcomes: Iterable[Outcome]) -> dict[str, dict[str, dict[str, float | int | str | bool]]]:
    """{study: {world: {rate, draws, limit, ...}}}."""
    nested: dict[str, dict[str, dict[str, float | int | str | bool]]] = {}
    for outcome in outcomes:
        nested.setdefault(outcome.case.study, {})[outcome.case.world] = outcome.row
    return nested
