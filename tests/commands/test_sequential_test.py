"""`study disable --race` and `study sequential-test` as typed: verdicts, refusals; a job in rounds."""

import json

import pytest

from core.errors import AtlasError
from core.jobs import api
from core.jobs.executors import JobPlacement
from core.store import jobs as store
from core.store import runs
from core.store.database import Database
from tests.commands.asking import asking
from tests.studies.planted import CARRIER, save_planted, write_rows


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted")
    return save_planted(folder / "checkpoint"), write_rows(folder / "data", rows=150), folder


@pytest.fixture(scope="module")
def asked(planted):
    checkpoint, data, folder = planted
    return asking(checkpoint, data, folder / "atlas.duckdb")


@pytest.mark.slow
def test_a_race_in_place_of_a_sweep(asked):
    raced = json.loads(asked("disable", "--race", "--json"))
    assert raced["study"] == "sequential-test"
    whole = raced["rows"][0]
    assert (whole["matters"], whole["does not matter"], whole["over"]) == (1, 11, True)
    alone = json.loads(asked("race", "--margin", 0.02, "--limit", 0, "--json"))
    names = {row["name"] for row in alone["rows"] if row.get("verdict") == "matters"}
    assert names == {str(CARRIER)}
    assert alone["rows"][0]["margin"] == 0.02
    table = asked("disable", "--race")
    assert "1 matter, 11 do not, 0 are undecided" in table
    assert "first-order effects rank the heads with a correlation of" in table
    assert str(CARRIER) in table


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("disable", "--margin", 0.1), "Add --race"),
        (("disable", "--race", "--margin", 0), "above 0"),
        (("race", "--margin", -0.5), "above 0"),
        (("race", "--limit", 50), "at most all of them; got 64 of 50"),
        (("disable", "--race", "--what", "duplicates"), "heads, layers"),
    ],
)
def test_refusals(asked, arguments, said):
    with pytest.raises(AtlasError, match=said):
        asked(*arguments)


@pytest.mark.slow
def test_rounds_are_units_and_any_number_of_workers_gives_the_same_verdicts(planted, tmp_path):
    checkpoint, data, _ = planted
    options = {"checkpoint": str(checkpoint), "data": str(data), "margin": 0.1, "first": 16}
    found = [race_at(JobPlacement(workers=workers, threads=1), tmp_path, options) for workers in (1, 2)]
    assert found[0] == found[1]
    assert (found[0][0]["matters"], found[0][0]["over"]) == (1, True)


@pytest.mark.slow  # a cluster of two processes starts in some ten seconds
def test_a_dask_cluster_gives_the_verdicts_of_this_machine(planted, tmp_path):
    from distributed import LocalCluster

    checkpoint, data, _ = planted
    options = {"checkpoint": str(checkpoint), "data": str(data), "margin": 0.1, "first": 16}
    here = race_at(JobPlacement(workers=1, threads=1), tmp_path, options)
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        there = race_at(JobPlacement(cluster=cluster.scheduler_address), tmp_path, options)
    assert there == here
    assert here[0]["over"]


def race_at(place, folder, options):
    """The rows of a race run there, with a database of its own."""
    with Database(folder / f"{place.cluster or place.workers}.duckdb".replace("/", "-").replace(":", "-")) as db:
        keeper = api.runner(db, place)
        done = api.wait(db, api.start(db, "race", options), 600)
        assert done.state == "done", done.error
        keys = {one["key"].rsplit("-", 1)[0] for one in db.read("SELECT key FROM job_unit").to_dict("records")}
        assert keys >= {"round-0", "round-1", "round-2"}
        assert store.progress(db, done.job)["done"] == done.units
        rows = runs.run_rows(db, done.run)
        keeper.close()
    return rows
