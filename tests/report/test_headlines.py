"""Headlines of results: true of rows whose answer is known, and of every study that ships."""

import pytest

from core.report.headlines import HEADLINES, headline
from core.store import shipped

SWEEP = [
    {"kind": "baseline", "name": "untouched", "n": 40, "accuracy": 0.8},
    {"kind": "variant", "name": "L1H1", "accuracy_change": 0.025, "accuracy_low": 0.0, "accuracy_high": 0.05, "p": 0.4,
     "n": 40},
    {"kind": "variant", "name": "L1H2", "accuracy_change": -0.25, "accuracy_low": -0.4, "accuracy_high": -0.1,
     "p": 0.01, "n": 40},
]  # fmt: skip


def test_a_sweep_names_the_worst_head_with_its_interval():
    said = headline("disable", SWEEP)
    assert said.sentence.startswith("Without L1H2 accuracy changes most, by -25.0 points; 1 of 2 changes")
    assert (said.n, said.of, said.baseline) == (40, "rows", "untouched 80.0")
    assert said.interval == "95 % interval -40.0 to -10.0"


def test_a_null_is_said_beside_the_head_that_beats_it():
    rows = [
        {"layer": 0, "head": k, "feature": "noun", "statistic": "max", "value": v, "baseline": 0.1, "effect": v - 0.1,
         "q": q, "n": 7}
        for k, (v, q) in enumerate([(0.9, 0.5), (0.4, 0.01)])
    ]  # fmt: skip
    said = headline("features", rows)
    assert said.sentence.startswith("L1H2 looks at noun most beyond random tokens: 0.40 against 0.10; 1 of 2")
    assert said.baseline == "null 0.10"


@pytest.mark.parametrize("rows", [[], [{"kind": "of an earlier version"}]])
def test_rows_of_an_earlier_version_are_counted(rows):
    assert headline("disable", rows).sentence == f"{len(rows)} rows"
    assert headline("no such study", rows).sentence == f"{len(rows)} rows"


def test_every_result_that_ships_has_a_sentence_and_its_n():
    known = shipped.runs()
    assert len(known)
    for run in known.itertuples():
        said = headline(run.study, shipped.run_rows(run.run))
        assert run.study in HEADLINES
        assert not said.sentence[0].isdigit() or " of " in said.sentence, run.title
        assert said.sentence.endswith("."), run.title
        assert said.n, run.title
