"""Partial results merge as their types declare, and units in any order give equal results."""

import random
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pytest
import torch

from core.errors import JobError
from core.scoring.intervals import Means
from core.studies import lookup
from core.studies.ablation import setup
from core.studies.attention import effective, inputs
from core.studies.contract import ChunkUnit
from core.studies.merging import (
    AllOf,
    MergedBy,
    OfFirst,
    PerExample,
    PerExampleFirst,
    Positions,
    Smallest,
    SortedBy,
    Summed,
    merged,
)
from tests.studies.planted import save_planted, write_rows
from tests.studies.through_json import rows_of


@dataclass(frozen=True)
class Counted:
    """Counts of a task from an input on."""

    task: str
    start: Smallest[int]
    by_length: Summed[dict[int, tuple[float, int]]]
    names: AllOf[str] = ()


@dataclass(frozen=True)
class Measured:
    """Some examples."""

    rows: Positions
    layers: int
    changed: PerExample
    moved: PerExampleFirst
    total: Summed[np.ndarray]
    pieces: Annotated[tuple[Counted, ...], MergedBy("task", order="start")]
    runs: Annotated[tuple[Counted, ...], SortedBy("start")]
    every: tuple[Counted, ...]
    loss: OfFirst[float]
    exact: PerExample | None = None
    attending: tuple[int, ...] = (0, 2)


def counted(start, **lengths):
    return Counted(
        f"task {start % 2}", start, {int(name[1:]): (count, 1) for name, count in lengths.items()}, (str(start),)
    )


def measured(rows, loss=0.5, **changes):
    places = np.array(rows, dtype=int)
    pieces = tuple(counted(row, n3=1.0) for row in rows)
    values = {
        "changed": np.stack([places * 10, places * 20]),
        "moved": places[:, None] / 10,
        "total": places.sum(keepdims=True),
    }
    return Measured(places, 3, **values, pieces=pieces, runs=pieces, every=pieces, loss=loss, **changes)


def test_every_declaration_merges_the_same_in_any_order():
    partials = [measured([4, 0]), measured([]), measured([3, 1, 2])]
    for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
        whole = merged([partials[k] for k in order])
        np.testing.assert_array_equal(whole.rows, [0, 1, 2, 3, 4])
        np.testing.assert_array_equal(whole.changed, [[0, 10, 20, 30, 40], [0, 20, 40, 60, 80]])
        np.testing.assert_array_equal(whole.moved[:, 0], [0, 0.1, 0.2, 0.3, 0.4])
        assert whole.total.tolist() == [10]
        assert whole.pieces == (
            Counted("task 0", 0, {3: (3.0, 3)}, ("0", "2", "4")),
            Counted("task 1", 1, {3: (2.0, 2)}, ("1", "3")),
        )
        assert [run.start for run in whole.runs] == [0, 1, 2, 3, 4]
        assert sorted(run.start for run in whole.every) == [0, 1, 2, 3, 4]
        assert (whole.layers, whole.loss, whole.exact, whole.attending) == (3, 0.5, None, (0, 2))


def test_values_that_some_units_lack_come_from_those_that_have_them():
    exact = measured([1], exact=np.array([[7.0]]))
    assert merged([measured([]), exact]).exact.tolist() == [[7.0]]
    assert merged([measured([]), measured([])]).rows.tolist() == []


def test_values_that_must_be_equal_are_compared():
    with pytest.raises(
        JobError, match=r"All units of a job must have the same Measured.attending; got \(0, 2\) and \(1,\)"
    ):
        merged([measured([0]), measured([1], attending=(1,))])

    @dataclass(frozen=True)
    class Drawn:
        pairs: np.ndarray | None

    drawn = [Drawn(None), Drawn(np.array([3, 1])), Drawn(np.zeros(0, dtype=int)), Drawn(np.array([3, 1]))]
    assert merged(drawn).pairs.tolist() == [3, 1]
    with pytest.raises(JobError, match=r"the same Drawn\.pairs"):
        merged([*drawn, Drawn(np.array([1, 3]))])


def test_merging_leaves_the_partial_results_as_they_are():
    @dataclass(frozen=True)
    class Sums:
        means: Summed[Means]

    parts = []
    for number in range(2):
        means = Means(1, 1, 1)
        means.update(0, np.ones((1, 1, 1)), np.ones((1, 1)), [number])
        parts.append(Sums(means))
    assert merged(parts).means.counts.sum() == merged(parts).means.counts.sum() == 2
    assert parts[0].means.counts.sum() == 1


# ---------------------------------------------------------------- studies


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted")
    torch.set_num_threads(1)
    checkpoint = save_planted(folder / "checkpoint")
    data = write_rows(folder / "data", 24)
    return {"checkpoint": str(checkpoint), "data": str(data), "limit": None, "task": "sst2"}


STUDIES = {
    "importance": {"split": "dev"}, "knockout": {"edges": ["separators", "noun-adjective"]}, "operators": {},
    "patch": {"floor": 0.0}, "perturb": {}, "separators": {}, "pairs": {}, "shapley": {"orders": 2, "judge_rows": 8},
    "gates": {"fit_rows": 12, "samples": 4, "starts": 1, "steps": 3}, "why": {"removal": 4},
    "roles": {"period": 5, "sequences": 4}, "statistics": {}, "features": {}, "relations": {}, "norms": {},
    "redundancy": {}, "effective": {}, "sinks": {}, "writes": {},
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("study", STUDIES)
def test_units_in_any_order_give_equal_results(monkeypatch, options, study):
    monkeypatch.setattr(setup, "ROWS_A_UNIT", 9)
    monkeypatch.setattr(inputs, "ROWS_A_UNIT", 9)
    monkeypatch.setattr(effective, "ROWS_A_UNIT", 9)
    monkeypatch.setattr(setup, "FIT_STEPS", 2)
    given = options | STUDIES[study]
    if lookup.find_study(study).arguments is ChunkUnit:
        given["tasks"] = [given.pop("task")]
    rows = rows_of(study, given)
    shuffled = rows_of(study, given, order=random.Random(3))  # noqa: S311 - the order of units
    assert len(rows) == len(shuffled) > 0

    def kinds(row):  # its texts and counts, then its measured numbers
        floats = {name: value for name, value in row.items() if isinstance(value, float)}
        return {name: value for name, value in row.items() if name not in floats}, floats

    pairs = zip(*(sorted(map(kinds, some), key=str) for some in (rows, shuffled)), strict=True)
    for (texts, floats), (other_texts, other_floats) in pairs:
        assert texts == other_texts
        assert floats == pytest.approx(other_floats, rel=1e-6, abs=1e-9, nan_ok=True)
