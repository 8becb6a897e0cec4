"""Stored rows become records: every row that ships, no column of which is unknown; a lost column is an error."""

import ast

import pandas as pd
import pytest

from core.errors import StoreError
from core.interval import Estimate
from core.store import shipped_record
from core.studies.ablation import records as pruning
from core.studies.ablation import records as setup
from core.studies.contract import Study
from core.studies.lookup import find_study, study_modules
from core.studies.outcomes import RANKING, Metric, Metrics
from core.studies.records import Result
from tests.sources import files_of, nodes_of
from tests.studies.test_earlier_rows import EARLIER

OF_METRICS = {f"{name}{end}" for name in RANKING for end in ("", "_change", "_low", "_high", "_full")}


def columns_of(kind: type[Result]) -> set[str]:
    return {known.metadata.get("column", known.name) for known in kind.__dataclass_fields__.values()} | OF_METRICS


def kind_of(study: str, row) -> type[Result]:
    return [kind for kind in find_study(study).kinds if not kind.KINDS or row.get(kind.BY) in kind.KINDS][-1]


@pytest.mark.thorough
@pytest.mark.parametrize("study", [name for name in study_modules() if len(shipped_record.runs(name))])
def test_every_row_that_ships_is_read_and_has_no_column_that_is_unknown(study):
    rows = [row for run in shipped_record.runs(study)["run"] for row in shipped_record.run_rows(run)]
    records = list(find_study(study).records(rows))
    assert len(records) == len(rows) > 0
    for row, record in zip(rows, records, strict=True):
        assert type(record) is kind_of(study, row)
        columns = columns_of(type(record)) | {record.BY, "kind", "name"}
        assert set(row) <= columns, f"{type(record).__name__} lacks {set(row) - columns}"
        for name in set(row) & set(type(record).__dataclass_fields__) - {"metrics"}:
            assert getattr(record, name) == row[name], name


def test_every_study_says_which_records_its_rows_are():
    told = {name: find_study(name).kinds for name in study_modules()}
    assert all(told.values())
    for earlier in EARLIER:
        assert len(list(find_study(earlier["study"]).records(earlier["rows"]))) == len(earlier["rows"])


def test_rows_of_an_earlier_version_that_lack_a_column_are_left_out():
    whole = {"kind": "step", "order": "importance", "metric": "accuracy", "n": 8, "baseline": 1, "removed": 0,
             "share": 0.0, "score": 1, "change": 0.0, "low": None, "high": None}  # fmt: skip
    lost = {name: value for name, value in whole.items() if name != "share"}
    assert list(find_study("prune").records([lost, whole, {"kind": "of nobody"}])) == [pruning.PruneStep.of(whole)]


def test_no_study_writes_a_kind_of_row_by_hand():
    by_hand = [
        f"{file.name}:{node.lineno}"
        for file in files_of("core/studies")
        for node in nodes_of(file)
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and key.value == Result.BY and isinstance(value, ast.Constant)
    ]
    assert not by_hand, "make these rows from their records"


def test_every_study_gives_records():
    by_itself = [name for name in study_modules() if type(find_study(name)).rows is not Study.rows]
    assert not by_itself, "rows are what results write"


def test_a_column_that_every_such_row_has_is_missed():
    row = {
        "kind": "split half",
        "name": "L1H1",
        "chosen": 0.1,
        "held": 0.0,
        "low": 0.0,
        "high": 0.1,
        "same": 0.5,
        "n": 9,
    }
    with pytest.raises(StoreError, match='A row of SplitHalf must have the column "held_out"'):
        setup.SplitHalf.of(row)


def test_a_data_frame_gives_the_records_of_its_rows():
    rows = [
        {"kind": "step", "order": "importance", "task": "sst2", "metric": "accuracy", "n": 8, "baseline": 1,
         "removed": 0, "share": 0.0, "heads": "", "score": 1, "change": 0.0, "low": None, "high": None},
        {"kind": "step", "order": "importance", "task": "sst2", "metric": "accuracy", "n": 8, "baseline": 1,
         "removed": 3, "share": 0.5, "heads": "L1H1", "score": 0.5, "change": -0.5, "low": 0.25, "high": 0.75},
    ]  # fmt: skip
    direct = pruning.PruneStep.among(rows)
    assert direct == pruning.PruneStep.among(pd.DataFrame(rows).to_dict("records"))
    assert direct[0].low is None
    assert isinstance(direct[0].baseline, float)
    assert isinstance(direct[1].removed, int)


def test_metrics_are_read_off_the_columns_that_they_name():
    row = {
        "kind": "variant",
        "name": "L1H1",
        "p": 0.2,
        "n": 40,
        "pearson": 0.7,
        "pearson_change": -0.1,
        "pearson_low": -0.2,
        "pearson_high": 0.05,
        "pearson_apart": 0.3,
        "pearson_apart_low": 0.1,
        "pearson_apart_high": 0.4,
    }
    metric = setup.AblatedTarget.of(row).metrics.first
    assert (metric.name, metric.value, metric.change) == ("pearson", 0.7, Estimate(-0.1, -0.2, 0.05))
    assert (metric.apart, metric.control) == (Estimate(0.3, 0.1, 0.4), None)
    assert setup.AblatedTarget.of(row).metrics.of("accuracy") is None


def test_a_record_is_written_as_the_row_that_it_is_read_from():
    metrics = Metrics((Metric("accuracy", 0.7, Estimate(-0.1, -0.2, 0.05), apart=Estimate(0.3, 0.1, 0.4)),))
    variant = setup.AblatedTarget(
        name="L1H1",
        layer=0,
        head=0,
        heads="L1H1",
        operator="disable",
        what="heads",
        task="sst2",
        n=40,
        metrics=metrics,
        flipped=3,
        mcnemar=0.5,
        p=0.2,
    )
    row = variant.as_row()
    assert list(row)[:6] == ["kind", "name", "layer", "head", "heads", "operator"]
    assert (row["kind"], row["accuracy_change"], row["accuracy_apart_low"]) == ("variant", -0.1, 0.1)
    assert "folds" not in row  # which only cross-fitted sweeps have
    assert "parts" not in row
    assert setup.AblatedTarget.of(row) == variant


def test_what_is_not_defined_is_written_as_nothing_and_not_left_out():
    metrics = Metrics((Metric("pearson", None),))
    row = setup.AblatedTarget(name="L1", layer=0, n=4, metrics=metrics, p=1.0).as_row()
    assert {name: row[name] for name in ("head", "flipped", "mcnemar", "pearson", "pearson_change", "pearson_low")} == {
        "head": None,
        "flipped": None,
        "mcnemar": None,
        "pearson": None,
        "pearson_change": None,
        "pearson_low": None,
    }
    assert "pearson_change" not in setup.Unmodified(n=4, metrics=metrics).as_row()


def test_a_cut_has_the_change_of_each_metric_with_its_interval_as_a_number():
    row = {"kind": "cut", "name": "all layers", "edges": "noun-verb", "layer": None, "n": 40}
    row |= {"accuracy": 0.8, "accuracy_change": -0.1, "accuracy_low": -0.2, "accuracy_high": 0.05, "f1": 0.7}
    found = setup.EdgeCut.of(row | {"f1_change": -0.3, "f1_low": -0.4, "f1_high": -0.2}).numbers()
    assert [(one.name, one.what, one.value, one.low, one.high, one.n) for one in found] == [
        ("all layers", "change of accuracy", -0.1, -0.2, 0.05, 40),
        ("all layers", "change of f1", -0.3, -0.4, -0.2, 40),
    ]


def test_estimates_of_different_units_are_not_added():
    share, weight = Estimate(0.4, 0.3, 0.5, "share"), Estimate(0.2, 0.1, 0.3, "weight")
    with pytest.raises(TypeError, match='the same unit; got "share" and "weight"'):
        share - weight
    assert (share + share).unit == (-share).unit == (share - Estimate(0.1)).unit == "share"
    assert ((share - Estimate(0.1, 0.0, 0.2)).low, (share - Estimate(0.1, 0.0, 0.2)).high) == pytest.approx((0.1, 0.5))
