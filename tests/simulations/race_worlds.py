"""Worlds of sequential tests: effects exactly at the margin that a few rows carry, or that few rows are against.

Effects are in margins. A row's effect is one of two values, the rarer of which is as large as it may be (the clip), so
that the mean is exactly the margin and either verdict is wrong. The rows drawn often hold too few of the rare ones, or
none. Cases for `registry`.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from core.scoring.sequential_test import Rules, standings
from tests.simulations.registry import Case, Planted, known

MARGIN = 1.0
# What most rows have and what rare ones have; the clip is the larger in size.
AT_THE_MARGIN = {
    "1.3 margins, rarely -2": (1.3, -2.0),
    "0.9 margins, rarely 2": (0.9, 2.0),
    "2 margins, rarely -20": (2.0, -20.0),
    "0, rarely 20": (0.0, 20.0),
}
PAIRS_SIZES = ((1, 24), (30, 24), (30, 100), (300, 100), (2188, 100))
ROWS_SIZES = ((1, 300), (30, 300), (300, 872), (2188, 2000))


def two_values(seed: int, edges: int, rows: int, world: str, *, common: bool = False) -> np.ndarray:
    """Effects [edge, row] of a mean of exactly one margin. common: rare rows are the same for all edges."""
    usual, rare = AT_THE_MARGIN[world]
    share = (MARGIN - usual) / (rare - usual)
    is_rare = np.random.default_rng([seed, edges, rows]).random((1 if common else edges, rows)) < share
    return np.broadcast_to(np.where(is_rare, rare, usual), (edges, rows))


def claims_at_the_margin(edges: int, rows: int, world: str, common: bool, seed: int) -> float:
    """Whether any edge has a verdict."""
    clip = max(map(abs, AT_THE_MARGIN[world]))
    rules = Rules(MARGIN, clip, rows, edges, first=24 if clip == 2 else 64)
    return float(len(standings(two_values(seed, edges, rows, world, common=common), rules).open) < edges)


def finds_beyond_the_margin(edges: int, pairs: int, mean: float, seed: int) -> float:
    """The share of edges found to matter whose effects spread by one margin and are cut at two."""
    effects = np.random.default_rng([seed, edges, pairs]).normal(mean, 1.0, (edges, pairs))
    verdicts = standings(effects, Rules(MARGIN, 2.0, pairs, edges, first=24)).verdicts
    return verdicts.count("matters") / edges


def _cases() -> Iterator[Case]:
    for world, (_, rare) in AT_THE_MARGIN.items():
        study, sizes = ("circuit", PAIRS_SIZES) if abs(rare) == 2 else ("sequential-test", ROWS_SIZES)
        for edges, rows in sizes:
            for common in (False, True) if edges == 300 else (False,):
                draw = partial(claims_at_the_margin, edges, rows, world, common)
                name = f"{edges} at the margin, {world}{', the same rows' if common else ''}, n = {rows}"
                large = edges * rows > 10**6
                yield Case(study, name, "nothing", draw, rows, draws=20 if large else 200, quick=20 * (edges == 30))
    for edges, pairs in ((1, 100), (30, 100), (300, 100), (2188, 100)):
        draw_at = partial(partial, finds_beyond_the_margin, edges, pairs)
        planted = Planted(MARGIN, "margins", draw_at, is_margin=True)
        world = f"{edges} of twice the margin, spread by a margin, n = {pairs}"
        yield known("circuit", world, planted, pairs, draws=200 if edges < 300 else 20, bound=0.8)


CASES: tuple[Case, ...] = tuple(_cases())
