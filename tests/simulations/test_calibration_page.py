"""docs/results/calibration.md: what is drawn again is new, what is not stands as it was."""

import re

from core import config
from tests.simulations.calibration_page import page
from tests.simulations.registry import Case, Outcome, Planted, known

NAMED = re.compile(r"tests/[a-z_/]+\.py")
BEFORE = """# Page

## Where nothing is

| study | world | inputs | draws | claims in | limit (at most) | within |
|---|---|--:|--:|--:|--:|---|
| a | kept | 20 | 60 | 5.0% | 11.7% | yes |
| a | again | 20 | 60 | 5.0% | 11.7% | yes |
"""


def test_a_case_that_is_not_drawn_stands_as_it_was():
    kept, again, new = (Case("a", world, "nothing", float, 20) for world in ("kept", "again", "new"))
    found = known("a", "found", Planted(0.25, "nats", lambda size: float), 20)
    made = page(
        [Outcome(again, 0.1, 200, 0.09), Outcome(found, 1.0, 200, 0.85)],
        [kept, again, new, found],
        BEFORE,
    )
    assert "| a | kept | 20 | 60 | 5.0% | 11.7% | yes |" in made
    assert "| a | again | 20 | 200 | 10.0% | 9.0% | **no** |" in made
    assert "| a | new | 20 | 0 |  |  | not drawn |" in made
    assert "| a | found | 20 | 0.5 nats | 200 | 100.0% | 85.0% | yes |" in made
    assert page([], [kept], made).count("| a | kept | 20 | 60 | 5.0% | 11.7% | yes |") == 1


def test_the_tests_that_the_page_names_are_there():
    named = NAMED.findall(page([], [], BEFORE))
    assert len(named) >= 5
    assert all((config.PROJECT / name).is_file() for name in named)
