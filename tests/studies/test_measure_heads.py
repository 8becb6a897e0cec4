"""Several studies of a checkpoint's heads as one job: each leaves the rows that it has alone."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from core.atlas.scores import run_here
from core.errors import InputError
from core.models.present import present_weights
from core.store import runs
from core.store.database import Database
from core.store.rows import plain
from core.studies.contract import as_json
from core.studies.hypotheses.measure_heads import STUDY, Asked, MeasuredStudy, MeasureHeadsOptions, missing
from core.studies.lookup import find_study
from tests.studies.through_json import rows_of

NAME = "atlas-encoder"
FEW = {"checkpoint": NAME, "tasks": ["sst2"], "limit": 4}
ASKED = (Asked("statistics", json.dumps(FEW)), Asked("norms", json.dumps(FEW | {"features": ["noun"]})))


@pytest.mark.thorough
def test_each_study_is_kept_as_a_run_with_the_rows_that_it_has_alone(tmp_path):
    unfit = Asked("operators", json.dumps({"checkpoint": NAME, "operators": ["zero", "mean"], "limit": 4}))
    options = MeasureHeadsOptions(NAME, (*ASKED, unfit))
    assert STUDY.read(json.loads(json.dumps(as_json(options)))) == options
    rows = rows_of("measure-heads", as_json(options))
    assert "classifier" in MeasuredStudy.among(rows)[2].says
    with Database(tmp_path / "a.duckdb") as db:
        STUDY.keep(db, SimpleNamespace(options=options, rows=rows, run="r"))
        kept = runs.runs(db)
        assert sorted(kept["study"]) == ["norms", "statistics"]
        assert set(kept["weights_hash"]) == {present_weights(NAME)}
        for run in kept.itertuples():
            study = find_study(run.study)
            alone = plain(run_here(study, study.read(json.loads(run.options))))
            np.testing.assert_equal(runs.run_rows(db, run.run), json.loads(json.dumps(alone)))
            assert len(json.loads(run.row_ids)) == 4
    assert "statistics, norms" in STUDY.headline(rows).sentence


@pytest.mark.thorough
def test_a_study_that_goes_in_rounds_has_the_rows_that_it_has_alone():
    own = {"checkpoint": "atlas-encoder-sst2", "limit": 16, "what": "layers"}
    options = as_json(MeasureHeadsOptions("atlas-encoder-sst2", (Asked("disable", json.dumps(own)),)))
    (measured,) = MeasuredStudy.among(rows_of("measure-heads", options))
    alone = rows_of("disable", as_json(find_study("disable").read(own)))
    np.testing.assert_equal(list(measured.kept), json.loads(json.dumps(plain(alone))))


def test_what_cannot_be_one_job_is_refused_in_a_sentence():
    with pytest.raises(InputError, match="cannot contain the study"):
        STUDY.units(MeasureHeadsOptions(NAME, (Asked(STUDY.name),)))
    with pytest.raises(InputError, match="must be one of"):
        STUDY.units(MeasureHeadsOptions(NAME, (Asked("statistics", '{"rows": 3}'),)))


def test_what_is_missing_is_what_is_not_measured_and_could_be():
    def named(checkpoint, *measured):
        return [one.study for one in missing(checkpoint, "sst2", measured=set(measured), class_set="bert")]

    every = named("atlas-encoder-sst2")
    assert {"statistics", "pattern-shares", "why", "importance", "operators"} <= set(every)
    assert not {"importance", "operators"} & set(named(NAME))  # it has no classifier
    assert set(every) - set(named("atlas-encoder-sst2", "roles", "why")) == {"roles", "why"}
    assert all(
        find_study(one.study).read(json.loads(one.given)) == one.options
        for one in missing(NAME, None, measured={"why"}, class_set="bert")
    )
