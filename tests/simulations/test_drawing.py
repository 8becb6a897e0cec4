"""A long run of simulations can be stopped and taken up: nothing is drawn twice, and worlds are drawn once."""

from collections import defaultdict

from tests.simulations import drawing
from tests.simulations.registry import Case


def _case(study, drawn, world_of=""):
    def draw(seed):
        drawn.append((study, seed))
        return float(seed % 2)

    return Case(study, "w", "nothing", draw, 1, world_of=world_of)


def test_a_run_is_taken_up_where_it_stopped(tmp_path):
    drawn, file = [], tmp_path / "values.jsonl"
    case = _case("a", drawn)
    drawing.drawn([case], lambda _: 2, defaultdict(dict), file)
    (outcome,) = drawing.drawn([case], lambda _: 4, drawing.read([file]), file)
    assert drawn == [("a", 0), ("a", 1), ("a", 2), ("a", 3)]
    assert (outcome.rate, outcome.draws) == (0.5, 4)
    assert drawing.read([file, tmp_path / "none"])["a: w"] == {0: 0.0, 1: 1.0, 2: 0.0, 3: 1.0}


def test_cases_of_one_world_are_drawn_seed_by_seed():
    drawn = []
    cases = [_case("a", drawn, "w 20"), _case("b", drawn), _case("c", drawn, "w 20")]
    outcomes = drawing.drawn(cases, lambda case: 1 + (case.study == "a"), defaultdict(dict), None)
    assert drawn == [("a", 0), ("c", 0), ("a", 1), ("b", 0)]
    assert [outcome.case.study for outcome in outcomes] == ["a", "b", "c"]
