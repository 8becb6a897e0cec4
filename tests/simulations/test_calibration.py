"""Every study keeps its promise in every world.

Each test run has a few draws of the smallest world of each study and expectation, the slow tests all draws of all.
"""

import numpy as np
import pytest

from core import config
from core.studies.lookup import study_modules
from tests.simulations import planted_draws, registry
from tests.simulations.attention_worlds import ROLES, relation_rows, role_rows, role_world
from tests.simulations.registry import Case, Outcome, as_json, limit, simulate
from tests.spread import one_in

CASES = registry.cases()
_FEWEST = {
    (case.study, case.expected): case
    for case in sorted(CASES, key=lambda case: case.inputs * case.quick, reverse=True)
    if case.quick
}
FEW = [case for case in CASES if case in _FEWEST.values()]  # the rest of 133 took 40 CPU seconds


def _check(case: Case, draws: int) -> None:
    outcome = simulate(case, draws)
    assert outcome.within, f"{case.name}: rate {outcome.rate:.3f} of {draws} draws, limit {outcome.limit:.3f}"


@pytest.mark.thorough
@pytest.mark.parametrize("case", one_in(8, FEW), ids=lambda case: case.name)
def test_few_draws(case: Case) -> None:
    _check(case, case.quick)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_all_draws(case: Case) -> None:
    _check(case, case.draws)


NOTHING_TO_CLAIM = {
    "budget",  # shares with intervals, whose coverage tests/scoring/test_budget.py draws
    "change",
    "effective",
    "draw-maps",
    "finetune",
    "index-frames",
    "development",  # numbers, with no test of them
    "measure-heads",  # several of the others in one job
}
ELSEWHERE = {
    "cross-fitted-prune": "prune",  # the same interval
    "cross-fitted-scores": "tests/report/test_calibration.py",  # of the claims that read them
    "discover": "tests/patterns/test_discovery.py",
    "edge-effects": "operators",
    "representation": "operators",
    "sinks": "tests/studies/test_sinks.py",
    "writes": "tests/studies/test_writes.py",
    "syntax": "probe",  # the same interval
    "translation": "disable",  # the same test
}


def test_every_study_has_its_worlds_or_a_reason() -> None:
    """A new study that claims something and has no case here fails."""
    told = {case.study for case in CASES}
    others = set(study_modules()) - told
    assert others == NOTHING_TO_CLAIM | set(ELSEWHERE)
    assert all(place in told or (config.PROJECT / place).is_file() for place in ELSEWHERE.values())


def test_known_worlds_plant_twice_what_is_asked_for() -> None:
    """In units of the study: its margin, or of a score or an effect; none is planted more strongly."""
    planted = [case.planted for case in CASES if case.expected == "found"]
    assert all(one and one.size == 2 * one.asked > 0 and one.unit for one in planted)
    by_margin = {case.study for case in CASES if case.planted and case.planted.is_margin}
    assert by_margin == {"sequential-test", "circuit", "roles", "hypothesis"}


WITHOUT_A_MARGIN = [case for case in CASES if case.planted and not case.planted.is_margin]


@pytest.mark.slow
@pytest.mark.parametrize("case", WITHOUT_A_MARGIN, ids=lambda case: case.name)
def test_what_is_asked_for_is_found_in_about_half_of_the_draws(case: Case) -> None:
    """What is called asked for is where a study begins to find: between a fifth and four fifths."""
    assert case.planted is not None
    draw = case.planted.draw_at(case.planted.asked)
    assert 0.2 <= sum(draw(seed) for seed in range(60)) / 60 <= 0.8


@pytest.mark.slow
@pytest.mark.parametrize(
    ("role", "times"), [(role, times) for role, (*_, strengths) in ROLES.items() for times in strengths]
)
def test_heads_of_a_role_have_so_many_times_the_baseline(role: str, times: float) -> None:
    """Of three draws, without the sink: what they are planted at."""
    rows = [
        row
        for seed in range(3)
        for row in role_rows(seed=seed, **role_world(role, times))
        if row["statistic"] == f"{role} without sink"
    ]
    weight, baseline = (sum(row[column] for row in rows) for column in ("value", "baseline"))
    assert weight / baseline == pytest.approx(times, rel=0.05)


@pytest.mark.thorough
def test_worlds_that_are_drawn_together_are_as_each_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Layers of one checkpoint, added up over numbers of inputs, with the values of a run of its own."""
    for name, inputs in (("FEW", 5), ("INPUTS", 15), ("MANY", 15)):
        monkeypatch.setattr(planted_draws, name, inputs)
    with planted_draws.together():
        both = [relation_rows("noise", 15, 0, causal=causal) for causal in (False, True)]
    for causal, rows in enumerate(both):
        alone = relation_rows("noise", 15, 0, causal=bool(causal))
        assert [row["feature"] for row in alone] == [row["feature"] for row in rows]
        for column in ("value", "effect", "contrast", "p"):
            first, other = (np.array([row.get(column, np.nan) for row in made], float) for made in (alone, rows))
            np.testing.assert_allclose(first, other, atol=1e-5)


def test_a_limit_is_the_binomial_one() -> None:
    """At 5 % 200 draws may have 18 claims, 9 of 10 planted ones may be missed in 30."""
    assert limit("nothing", 0.05, 200) == 18 / 200
    assert limit("found", 0.9, 200) == 170 / 200
    assert limit("at most", 1.5, 7) == 1.5


def test_a_study_that_always_claims_is_beyond_its_limit() -> None:
    """And one that never finds what was planted."""
    always = Case("s", "w", "nothing", lambda _: 1.0, 1)
    never = Case("s", "w", "found", lambda _: 0.0, 1)
    assert not simulate(always, 20).within
    assert not simulate(never, 20).within
    assert as_json([Outcome(never, 0.0, 20, 0.75)])["s"]["w"] == {
        "rate": 0.0,
        "draws": 20,
        "limit": 0.75,
        "expected": "found",
        "inputs": 1,
        "within": False,
    }


def test_medians_of_widths() -> None:
    wide = Case("s", "w", "at most", lambda seed: float(seed), 1, bound=1.5)
    assert simulate(wide, 3).rate == 1.0
    assert simulate(wide, 3).within
    assert not simulate(wide, 5).within
