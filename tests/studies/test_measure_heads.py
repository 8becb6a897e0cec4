"""Several studies of a checkpoint's heads as one job: each leaves the rows that it has alone."""

import json
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from core.atlas.scores import run_here
from core.errors import InputError, JobError
from core.models.present import present_weights
from core.store import runs
from core.store.database import Database
from core.store.rows import plain
from core.store.runs import Provenance
from core.studies.contract import Done, Study, Unit, as_json
from core.studies.headline import Headline
from core.studies.hypotheses import measure_heads
from core.studies.hypotheses.measure_heads import STUDY, Asked, MeasuredStudy, MeasureHeadsOptions, missing
from core.studies.lookup import find_study
from core.studies.merging import Summed
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


# ---------------------------------------------------------------- rounds of toy studies


@dataclass(frozen=True)
class CountOptions:
    checkpoint: str = "c"
    first: int = 1
    rounds: int = 1
    fails: str = ""


@dataclass(frozen=True)
class Total:
    total: Summed[int]
    units: Summed[int]


class Counting(Study[CountOptions, Total]):
    """Adds the numbers of its units; a later round has one unit more than the units before it."""

    name, options, partial, arguments = "counting", CountOptions, Total, dict

    def _units(self, options, before, wanted):
        return [Unit(f"unit {before + k}", {"number": before + k}, 7 + before + k) for k in range(wanted)]

    def units(self, options):
        if options.fails == "units":
            raise InputError("No such rows.")
        return self._units(options, 0, options.first)

    def more(self, options, partials):
        whole = self.merge(options, partials)
        if options.fails == "more":
            raise JobError("No more rounds.")
        done = {1: 1, 4: 2, 11: 3}.get(whole.units, 9) if options.first == 1 else 9
        return self._units(options, whole.units, {1: 3, 2: 7}[done]) if done < options.rounds else []

    def run(self, options, unit):
        number = unit.arguments["number"]
        if options.fails == f"run {number}":
            raise InputError(f"Unit {number} broke.")
        return Done(Total(number + 1, 1), Provenance(weights_hash="w", row_ids=(f"row {number % 3}",)))

    def rows(self, options, merged):
        if options.fails == "rows":
            raise InputError("Nothing to tell.")
        score = {"statistic": "s", "layer": 0, "head": 0, "value": merged.total}
        return [score, score | {"head": 1}, {"statistic": "s", "units": merged.units}]

    def headline(self, rows):
        return Headline(f"The sum is {rows[0]['value']}.", 1, "rows") if rows[0]["value"] > 1 else None


class Once(Counting):
    name = "once"
    more = Study.more


def toys(monkeypatch, **asked):
    """A joint job of studies of these names: `once...` has one round, the others go on."""
    kinds = {name: Once if name.startswith("once") else Counting for name in asked}
    known = {name: type(kind.__name__, (kind,), {"name": name})() for name, kind in kinds.items()}
    monkeypatch.setattr(measure_heads, "find_study", known.__getitem__)
    return MeasureHeadsOptions("c", tuple(Asked(name, json.dumps(options)) for name, options in asked.items()))


def test_studies_of_one_job_go_on_in_rounds_of_their_own_and_fail_alone(monkeypatch):
    """Sums of 1 to 11 (three rounds), of 1 (one round), of 1 to 4 (two rounds); one study breaks in its second unit."""
    options = toys(
        monkeypatch,
        three={"rounds": 3},
        once={},
        none={"rounds": 2, "fails": "units"},
        two={"rounds": 2},
        broken={"rounds": 2, "first": 2, "fails": "run 1"},
        stuck={"rounds": 2, "fails": "more"},
        once_untold={"fails": "rows"},
    )
    wanted, partials, rounds = STUDY.units(options), [], []
    while wanted:
        rounds.append([(unit.key, unit.arguments.number, unit.arguments.order, unit.size) for unit in wanted])
        done = [STUDY.run(options, unit) for unit in wanted]
        assert {one.provenance.weights_hash for one in done} <= {"w", None}
        partials += [one.partial for one in done][::-1]  # as they come in
        wanted = STUDY.more(options, partials)
    numbers = [0, 1, 3, 4, 4, 5, 6]
    assert rounds[0] == [
        (f"{options.studies[number].study} unit {order}", number, order, 7 + order)
        for number, order in zip(numbers, [0, 0, 0, 0, 1, 0, 0], strict=True)
    ]
    assert rounds[1] == [
        (f"{name} unit {k}", at, k, 7 + k) for name, at in (("three", 0), ("two", 3)) for k in (1, 2, 3)
    ]
    assert rounds[2] == [(f"three unit {k}", 0, k, 7 + k) for k in range(4, 11)]
    assert len(rounds) == 3
    found = STUDY.results(options, STUDY.merge(options, partials))
    assert [(one.study, one.says, one.scores) for one in found] == [
        ("three", "The sum is 66.", 2),
        ("once", "3 rows", 2),
        ("two", "The sum is 10.", 2),
        ("broken", "left out: Unit 1 broke.", 0),
        ("stuck", "3 rows", 2),
        ("once_untold", "left out: Nothing to tell.", 0),
    ]
    assert found[0].provenance == {"weights_hash": "w", "row_ids": ["row 0", "row 1", "row 2"]}
    assert [row.get("value") for row in found[2].kept] == [10, 10, None]
    rows = [one.as_row() for one in found]
    said = STUDY.headline(rows)
    assert said.sentence == (
        "These studies were run: three, once, two, stuck. The result of each study is stored separately."
    )
    assert (said.n, said.of) == (8, "scores of heads")


def test_where_no_study_can_run_the_first_reason_is_given(monkeypatch):
    fails = toys(monkeypatch, one={"fails": "units"}, two={"fails": "units", "first": 3})
    with pytest.raises(InputError, match="No such rows"):
        STUDY.units(fails)
    none = toys(monkeypatch, once={"fails": "run 0"}, once_untold={"fails": "rows"})
    parts = [STUDY.run(none, unit).partial for unit in STUDY.units(none)]
    with pytest.raises(InputError, match="left out: Unit 0 broke"):
        STUDY.results(none, STUDY.merge(none, parts))


def test_what_cannot_be_one_job_is_refused_in_a_sentence():
    with pytest.raises(InputError, match="only once; got norms twice"):  # whose options would be those of the last one
        STUDY.units(MeasureHeadsOptions(NAME, (*ASKED, Asked("norms"))))
    with pytest.raises(InputError, match="must not include measure-heads"):
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
