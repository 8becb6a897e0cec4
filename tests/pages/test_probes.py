"""The Probes and Subnetworks pages on what the project ships, and on a run of one's own."""

import json

import pytest
from streamlit.testing.v1 import AppTest

from core.store import shipped_record
from core.studies.probing.records import DrawnTree
from pages.parts.shell import resources, shell
from pages.parts.views.probes import GOLD, PROBE, arcs, tree_picture, words_table
from tests.pages.opening import switched

SHIPPED = json.loads(shipped_record.EXAMPLES.read_text())


@pytest.fixture(autouse=True)
def own_database(tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    resources.database.clear()
    yield
    resources.database.clear()


def opened(name, **query):
    app = AppTest.from_file(shell.__file__, default_timeout=60)
    app.query_params.update(query)
    app.run()
    return fine(switched(app, name).run())


def fine(app):
    assert not app.exception
    assert not app.error, app.error[0].value
    return app


def said(app):
    return " ".join(str(one.value) for one in [*app.markdown, *app.caption]).replace("\\", "")


def charts(app):
    return [json.loads(one.proto.spec) for one in app.get("vega_lite_chart")]


def test_every_study_is_shipped_with_its_options():
    assert set(SHIPPED) == {"syntax", "probe", "representation", "transfer", "subnetworks"}
    assert {known["options"]["checkpoint"] for known in SHIPPED.values()} == {"atlas-encoder"}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("view", "words"),
    [
        ("One sentence", "predicts the syntactic head of"),
        ("Syntax in attention", "less than all heads together"),
        ("Layers", "Centre of gravity, in layers"),
        ("Representation", "point in nearly the same direction"),
        ("Transfer", "differs from that of the last layer"),
    ],
)
def test_every_view_opens_on_a_result_and_says_of_what(view, words):
    app = opened("linguistics/probes", mode=view)
    text = said(app)
    assert words in text
    assert "atlas-encoder" in text
    assert "n = " in text or "n from" in text
    assert charts(app)


@pytest.mark.thorough
def test_a_layer_picture_shows_selectivity_too():
    app = opened("linguistics/probes", mode="Layers")
    app.segmented_control(key="shown_value").set_value("selectivity")
    fine(app.run())
    assert "selectivity" in json.dumps(charts(app)[0])


@pytest.mark.thorough
def test_subnetworks_open_on_curves_and_parts():
    text = said(opened("interventions/subnetworks"))
    assert "the score does not fall significantly up to" in text
    text += said(opened("interventions/subnetworks", mode="Good, bad and random"))
    assert "The difference “good minus bad” is" in text
    assert "the subnetworks lack" in text


@pytest.mark.thorough
def test_measuring_starts_a_job_with_what_was_chosen(monkeypatch):
    from core.jobs import api

    started = []
    monkeypatch.setattr(api, "start", lambda db, study, options, title: started.append((study, options)))
    app = opened("linguistics/probes", mode="Syntax in attention")
    app.button(key="measure_syntax").click().run()
    assert started == [("syntax", {"checkpoint": "atlas-encoder", "treebank": None, "limit": 2000})]


def test_arcs_are_marked_where_they_differ_from_gold_and_belong_to_both_words():
    tree = DrawnTree(
        name="s1",
        n=3,
        words=["dogs", "bark", "now"],
        relations=["nsubj", "root", "advmod"],
        gold=[1, 1, 1],
        drawn=[1, 1, 0],
        probability=[0.9, 0.8, 0.4],
    )
    drawn = arcs(tree.drawn, tree.gold, PROBE)
    assert set(drawn[drawn["arc"].str.startswith("probe-2")]["drawn"]) == {"not in gold"}
    assert set(drawn[drawn["arc"].str.startswith("probe-0")]["drawn"]) == {"as in gold"}
    assert set(drawn[drawn["arc"].str.startswith("probe-2")]["word"]) == {0, 2}  # a click on either keeps it
    assert (drawn["y"] > 0).all()
    assert (arcs(tree.gold, tree.gold, GOLD)["y"] < 0).all()
    table = words_table(tree, 2)
    assert table["text"].tolist() == ["now"]
    assert words_table(tree, 0)["text"].tolist() == ["dogs", "now"]  # with what the probe hangs on it
    assert table["probe head"].tolist() == ["dogs"]
    assert tree_picture(tree).to_dict()["layer"]


@pytest.mark.thorough
def test_a_run_of_ones_own_stands_before_the_shipped_one():
    from core.models.present import present_weights
    from core.store.runs import Provenance, record_run, store_rows

    db, known = resources.database(), SHIPPED["syntax"]
    options = known["options"] | {"treebank": "gold-trees"}
    run = record_run(
        db, "syntax", options, Provenance(checkpoint="atlas-encoder", weights_hash=present_weights("atlas-encoder"))
    )
    store_rows(db, run, known["rows"])
    app = opened("linguistics/probes", mode="Syntax in attention")
    assert "gold-trees" in said(app)
    assert "your result" in said(app)
    app.button(key="open_parsed_example-syntax").click()
    text = said(fine(app.run()))
    assert "parsed by machine" in text
    assert "gold-trees ·" not in text
