"""Databases that earlier states of the project left, with results of an encoder that was bundled before: every page
opens on them, and no number of other weights stands there as today's."""

import gzip
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core import config
from core.atlas import scores
from core.models.present import present_weights
from core.store import runs
from core.store.database import Database
from pages.parts.reports.stored_runs import known_runs, present_runs
from pages.parts.shell import resources, shell

FILES = sorted((Path(__file__).parents[1] / "store" / "files").glob("*.duckdb.gz"))
OF_OTHER_WEIGHTS = [file for file in FILES if file.name.startswith("weights-")]
NAMES = [page.name for page in shell.PAGES]
ALWAYS = ("heads", "statistics")  # the others with the slow tests: 3 s a page
PAGES = [name if name in ALWAYS else pytest.param(name, marks=pytest.mark.slow) for name in NAMES]
pytestmark = pytest.mark.shipped


@pytest.fixture
def upgraded(request, tmp_path, monkeypatch):
    """The database of an earlier state where this app looks for its own."""
    path = tmp_path / "atlas.duckdb"
    path.write_bytes(gzip.decompress(request.param.read_bytes()))
    monkeypatch.setenv("ATLAS_DB", str(path))
    resources.database.clear()
    yield path
    resources.database.clear()


def named(file):
    return file.name.removesuffix(".duckdb.gz")


@pytest.mark.thorough
@pytest.mark.parametrize("upgraded", OF_OTHER_WEIGHTS, ids=named, indirect=True)
def test_scores_of_earlier_weights_are_not_the_atlas(upgraded):
    with Database(upgraded) as db:
        now = present_weights(config.ENCODER)
        (old,) = set(runs.runs(db)["weights_hash"])
        assert old != now
        frame = scores.atlas(db, checkpoint=config.ENCODER, task="sst2", measure=False)
        assert len(frame)
        assert not frame["source"].str.contains(", run ").any()  # which only rows of the user's own say
        second = frame[(frame.score == "statistics/next") & (frame.layer == 1) & (frame["head"] == 1)]
        assert second["value"].tolist() == [pytest.approx(0.92, abs=0.03)]
        assert scores.left_out(db, config.ENCODER).startswith("216 stored scores of atlas-encoder are not shown")


@pytest.mark.parametrize("upgraded", OF_OTHER_WEIGHTS[:1], ids=named, indirect=True)
def test_a_run_of_earlier_weights_comes_last_and_says_so(upgraded):
    for study in ("statistics", "features", "pattern-shares"):
        *_, last = known_runs(study)
        assert last.source == "yours"
        assert last.origin == "your result, measured on earlier weights (147b9daf) of this checkpoint"
        assert last.run not in {stored.run for stored in present_runs(study)}


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(
    "upgraded",
    [
        OF_OTHER_WEIGHTS[0],
        *(pytest.param(file, marks=pytest.mark.slow) for file in FILES if file != OF_OTHER_WEIGHTS[0]),
    ],
    ids=lambda file: named(file) if isinstance(file, Path) else None,
    indirect=True,
)
def test_a_page_opens_on_it_and_marks_what_is_of_other_weights(name, upgraded):
    app = AppTest.from_file(shell.__file__, default_timeout=60).run()
    app.switch_page(f"../../{name}.py").run()
    assert not app.exception
    assert not app.error, app.error[0].value
    assert app.title
    for caption in app.caption:
        if "your own" in caption.value and "atlas-encoder" in caption.value:
            assert "on earlier weights" in caption.value or "unknown weights" in caption.value, caption.value
