"""Counterparts and Development: a stored match as a picture with both heads' maps, and the curves that ship."""

import json
from pathlib import Path

import pandas as pd
import pytest

from core.models.present import present_weights
from core.store.database import Database
from core.store.runs import Provenance, record_run, store_rows
from core.studies.comparison.development import OWN, bundled_curves, role_records
from core.studies.comparison.records import Beginning, Counterpart, CounterpartsSummary
from pages.parts.shell import resources
from pages.parts.views.development import roles_picture
from tests.pages.opening import opened

NAME = "atlas-encoder"


WEIGHTS = present_weights(NAME)
MATCHED = Provenance(checkpoint=NAME, weights_hash=f"{WEIGHTS} and {WEIGHTS}", task="sst2")


def matched_rows() -> list[dict]:
    """A match of the bundled encoder's heads with its own, all at their own place."""
    heads = [
        Counterpart(
            checkpoint=NAME,
            compare=NAME,
            layer=layer,
            head=head,
            match_layer=layer,
            match_head=head,
            similarity=0.9,
            low=0.8,
            high=0.95,
            margin=0.1,
            p=0.01,
            agrees=True,
            matched=True,
            best_layer=layer,
            best_head=head,
            best=0.9,
            n=24,
        )
        for layer in range(6)
        for head in range(6)
    ]
    summary = CounterpartsSummary(
        checkpoint=NAME,
        compare=NAME,
        keys="tokens",
        visible="all",
        identical=False,
        matched=36,
        same_place=36,
        heads=36,
        others=36,
        draws=99,
        rows=24,
        n=24,
        weights_hash=WEIGHTS,
        compare_hash=WEIGHTS,
    )
    return [record.as_row() for record in (*heads, summary)]


def store_match(file: Path) -> None:
    """That match, stored in the database `file`."""
    with Database(file) as db:
        run = record_run(db, "match", {"checkpoint": NAME, "compare": NAME}, MATCHED, title="Heads of A in B")
        store_rows(db, run, matched_rows())


@pytest.fixture
def database(tmp_path, monkeypatch):
    """The file of a database that there is not yet."""
    file = tmp_path / "atlas.duckdb"
    monkeypatch.setenv("ATLAS_DB", str(file))
    resources.database.clear()
    yield file
    resources.database.clear()


@pytest.fixture
def matched(database):
    store_match(database)


def plain_text(parts):
    """Without the backslashes that keep Markdown out of names."""
    return " ".join(part.value for part in parts).replace("\\", "")


def charts(app):
    return [json.loads(chart.proto.spec) for chart in app.get("vega_lite_chart")]


def test_a_match_is_a_picture_with_ribbons_and_both_maps(matched):
    app = opened("heads/counterparts", head="L2H3")
    assert not app.exception
    assert not app.error
    said = plain_text(app.markdown)
    assert "36 of 36 heads of atlas-encoder have a counterpart" in said
    assert "L2H3 has a counterpart: its similarity with L2H3 is 0.90" in said
    assert len(charts(app)) == 3  # the ribbons, and two maps


@pytest.mark.thorough
def test_one_head_names_its_counterpart(matched):
    app = opened("heads/one", head="L2H3")
    assert not app.exception
    assert "Counterparts in other checkpoints" in [one.value for one in app.subheader]


@pytest.mark.thorough
@pytest.mark.shipped
def test_one_head_stands_beside_its_counterpart_where_another_checkpoint_is_chosen(database):
    """The match that ships: before and after fine-tuning."""
    app = opened("heads/one", checkpoint=NAME, beside="atlas-encoder-sst2", head="L2H2")
    assert not app.exception
    assert "Beside atlas-encoder-sst2" in plain_text(app.subheader)
    said = plain_text(app.caption)
    assert "L2H2 is matched with L2H2, similarity" in said
    assert "scores differ significantly" in plain_text(app.markdown).replace("**", "")
    assert any("significant" in table.value.columns for table in app.dataframe)
    app = opened("heads/one", checkpoint=NAME, beside="atlas-decoder", head="L2H2")
    assert not app.exception
    assert "may behave differently" in plain_text(app.caption)


@pytest.mark.thorough
def test_development_opens_on_the_curves_that_ship(database):
    app = opened("heads/development")
    assert not app.exception
    assert app.subheader[0].value == "When in training do heads take on their roles?"
    said = app.markdown[0].value.replace("\\", "")
    start = "**During training, heads come to attend mostly to one kind of token, in this order: next token (1 head,"
    assert said.startswith(start)
    assert "pre-training of atlas-encoder" in plain_text(app.caption)
    roles, curves = charts(app)
    assert "during training" in json.dumps(roles["title"])
    points = bundled_curves("atlas-encoder")[OWN]
    begun = [record for record in role_records(points) if isinstance(record, Beginning)]
    picture = roles_picture(begun, list(dict.fromkeys(point.snapshot for point in points))).to_dict()
    drawn = pd.DataFrame(next(iter(picture["datasets"].values())))
    last = drawn[drawn["snapshot"] == "100 %"].set_index("role")["heads"]
    assert (last["next token"], last["previous token"], last["separators"], last["first token"]) == (1, 2, 19, 6)
    assert drawn.groupby("role")["heads"].apply(lambda heads: heads.is_monotonic_increasing).all()
    assert "facet" in curves
    app = opened("heads/development", run_of="seed 1", score="class diagonal")
    assert not app.exception
    assert "In 2 training runs from other seeds" in plain_text(app.markdown)
    assert "n = 80 inputs" in plain_text(app.caption)


def test_two_checkpoints_stand_beside_each_other_by_matched_heads():
    import pandas as pd

    from pages.parts.atlas.head_pictures import at_its_counterparts

    best = {"best_layer": 0, "best_head": 0, "best": 0.9}
    where = {"n": 24, "checkpoint": "A", "compare": "B", "similarity": 0.9} | best
    found = [Counterpart(layer=0, head=1, match_layer=1, match_head=0, matched=True, **where)]
    scores = pd.DataFrame([{"layer": 1, "head": 0, "value": 0.7}, {"layer": 0, "head": 1, "value": 0.2}])
    assert at_its_counterparts(scores, found).to_dict("records") == [{"layer": 0, "head": 1, "value": 0.7}]


@pytest.mark.thorough
@pytest.mark.shipped
def test_the_atlas_has_a_switch_for_matched_heads(database):
    """The match that ships: before and after fine-tuning."""
    app = opened("heads/overview", checkpoint=NAME, beside="atlas-encoder-sst2", layout="two places")
    assert not app.exception
    (switch,) = [toggle for toggle in app.toggle if toggle.label == "By matched heads"]
    switch.set_value(True).run()
    assert not app.exception
    assert "of 36 heads have a counterpart" in plain_text(app.caption)
