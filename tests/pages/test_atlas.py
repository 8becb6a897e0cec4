"""The atlas, the page of one head, and the views beyond weights, on rows that are known."""

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from core.atlas import shipped
from core.store import runs
from core.store.runs import Provenance
from pages.parts.atlas.atlas_view import axis_of
from pages.parts.atlas.gallery import small_map
from pages.parts.frame import resources, shell

NAME = "atlas-encoder"


def stored(db, study, statistic, values, **about):
    rows = [
        {"statistic": statistic, "layer": layer, "head": head, "value": float(value), "low": value - 0.01,
         "high": value + 0.01, "n": 40, **about}
        for (layer, head), value in np.ndenumerate(values)
    ]  # fmt: skip
    run = runs.record_run(db, study, {}, Provenance(checkpoint=NAME, task="sst2"))
    runs.store_rows(db, run, rows)


@pytest.fixture
def filled(tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    monkeypatch.setattr(shipped, "FILE", tmp_path / "none.parquet")
    resources.database.clear()
    db, chance = resources.database(), np.random.default_rng(0)
    for statistic in ("previous", "normalised entropy", "separator", "distance"):
        stored(db, "statistics", statistic, chance.random((2, 3)))
    stored(db, "roles", "previous", np.array([[0.9, 0.1, 0.1], [0.2, 0.1, 0.1]]), q=0.001, baseline=0.1)
    yield db
    resources.database.clear()


def opened(page):
    app = AppTest.from_file(shell.__file__, default_timeout=120).run()
    app.switch_page(f"../../{page}.py").run()
    assert not app.exception
    assert not app.error, app.error[0].value
    return app


def test_the_atlas_offers_every_stored_score_and_says_what_they_are(filled):
    app = opened("atlas")
    assert app.selectbox(key="across").options[:2] == ["entropy", "to previous"]
    assert "Clark et al. 2019" in " ".join(one.value for one in app.caption)
    app.segmented_control(key="layout").set_value("two places").run()
    assert not app.error
    assert not app.exception
    app.segmented_control(key="layout").set_value("alike heads").run()
    assert not app.exception
    assert "Measure head statistics" in app.info[0].value


def test_a_head_has_a_sentence_and_every_number_of_the_store(filled):
    app = opened("head")
    app.selectbox(key="head").set_value("L1H1").run()
    assert not app.exception
    assert "previous token 0.90" in app.markdown[0].value
    assert "roles, run " in app.caption[0].value
    shown = app.dataframe[0].value
    rows = runs.head_scores(filled)
    mine = rows[(rows["layer"] == 0) & (rows["head"] == 0)]
    assert sorted(shown["value"]) == sorted(mine["value"])
    assert {"low", "high", "n", "baseline", "source"} <= set(shown.columns)
    assert app.subheader[0].value == "Nearest heads"


def test_the_views_beyond_weights_compute_on_request(filled):
    app = opened("values")
    assert app.info
    app.toggle(key="compute").set_value(True).run()
    for kind in ("norms", "rollout", "flow", "value zeroing"):
        app.segmented_control(key="view").set_value(kind).run()
        assert not app.exception, kind
        assert not app.error, kind
        assert any("n = 1 input" in one.value for one in app.caption)


def test_an_axis_keeps_every_head_and_marks_what_is_unknown():
    known = {"value": [0.5, -0.25], "low": [0.4, None], "high": [0.6, None], "n": [3, 3]}
    rows = pd.DataFrame({"layer": [0, 1], "head": [1, 0]} | known)
    axis = axis_of(rows, "a score", (2, 2))
    assert axis.values == [None, 0.5, -0.25, None]
    assert axis.low == [None, 0.4, None, None]
    assert axis.domain == (-0.6, 0.6)  # signed: the same length both ways
    assert axis.diverging
    above = axis_of(rows.assign(value=[0.02, 0.2], low=[-0.1, 0.1]), "a share", (2, 2))
    assert not above.diverging  # an interval that reaches below 0 makes no difference of a share


def test_a_small_map_draws_the_weights_that_can_be_seen_and_no_markup_of_the_text():
    drawn = small_map(np.array([[0.9, 0.1], [0.01, 0.99]]), ("<b>", "x"))
    assert drawn.count("<rect") == 3
    assert "<b>" not in drawn
    assert "&lt;b&gt;" in drawn
