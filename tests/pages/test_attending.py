"""What heads attend to, token to token, head statistics: pasted sentences with the bundled encoder, stored runs."""

import json

import pytest
from streamlit.testing.v1 import AppTest

import pages.parts.shell.shell as shell
from core import config
from core.jobs import api
from core.jobs.executors import JobPlacement
from core.store import runs
from core.studies.attention import effective, features, relations, statistics
from pages.parts.maps import maps_grid
from pages.parts.reports.stored_runs import DIFFERENCE
from pages.parts.shell import resources
from pages.parts.views.workbench import EFFECTIVE
from tests.pages.opening import switched

SENTENCES = "The old dog never bit the small child.\nShe said he saw it. | The dog said nothing."


@pytest.fixture
def db(tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    resources._database.clear()
    database = resources.database()
    keeper = api.runner(database, JobPlacement(workers=1))
    yield database
    keeper.close()
    resources._database.clear()
    database.close()


def opened(name: str, **query: str) -> AppTest:
    page = AppTest.from_file(shell.__file__, default_timeout=180)
    page.run()
    for key, value in query.items():
        page.query_params[key] = value
    return switched(page, name).run()


def measured(name: str, sentences: str = SENTENCES) -> AppTest:
    page = opened(name, inputs="sentences")
    page.text_area(key="sentences").set_value(sentences)
    page.toggle(key="measure").set_value(True)
    return page.run()


def captions(page: AppTest) -> str:
    return "\n".join(one.value for one in page.caption).replace("\\", "")


@pytest.mark.thorough
def test_features_of_pasted_sentences(db):
    page = measured("linguistics")
    assert not page.exception
    assert not page.error
    assert "n = 2 inputs · atlas-encoder · typed sentences" in captions(page)
    assert "mean depth" in captions(page)
    assert "Which heads attend to nouns?" in [one.value for one in page.subheader]
    assert any("This was not tested, because there are fewer than 12 inputs" in one.value for one in page.markdown)
    heads = page.dataframe[0].value
    assert len(heads) == 36
    assert set(heads["head"]) == {f"L{a}H{b}" for a in range(1, 7) for b in range(1, 7)}
    assert set(heads["q"]) == {"too few"}  # inputs for a test, in words
    page.selectbox(key="feature").set_value("negation")
    assert "Which heads attend to negation?" in [one.value for one in page.run().subheader]


@pytest.mark.thorough
def test_a_feature_that_no_sentence_has_is_named_and_never_drawn_as_zero(db):
    page = measured("linguistics", "Hm .")
    assert not page.error
    assert "pronoun" in captions(page)
    assert "no input has this feature" in captions(page)
    assert "pronoun" not in page.selectbox(key="feature").options


def test_unknown_features_are_one_sentence(db):
    page = opened("linguistics", inputs="sentences")
    page.session_state["features"] = ["adverbs"]
    page.toggle(key="measure").set_value(True)
    assert "Choose one" in page.run().error[0].value


def test_links_of_pasted_sentences(db):
    page = measured("linguistics/relations")
    assert not page.exception
    assert not page.error
    assert "In which heads does the subject attend to the verb?" in [one.value for one in page.subheader]
    assert "The best one predicts the word at distance" in captions(page)
    assert {"accuracy", "baseline", "effect"} <= set(page.dataframe[0].value.columns)
    page.selectbox(key="relation").set_value("same-word")
    assert "all other words in the sentence that contains the key" in captions(page.run())


@pytest.mark.thorough
def test_a_head_leads_to_its_maps_on_the_first_sentence(db):
    page = measured("linguistics")
    (maps,) = [link for link in page.main if link.type == "page_link" and "Maps of L" in link.proto.label]
    assert "text=The+old+dog" in maps.proto.query_string


@pytest.mark.slow
def test_the_difference_between_two_checkpoints_is_shown(db):
    same = str(config.BUNDLED_MODELS / "atlas-encoder")  # by another name, so that all differences are 0
    wanted = {"limit": 9, "tasks": ["stsb", "rte"], "compare": same, "features": ["noun"]}
    job = api.start(db, "features", wanted, "features of two")
    assert api.wait(db, job, 300).state == "done", api.status(db, job).error
    page = opened("linguistics")
    page.segmented_control(key="inputs").set_value("task rows")
    page.run().segmented_control(key="place").set_value(DIFFERENCE)
    page.run()
    assert not page.exception
    assert not page.error
    assert "differs significantly in 0 of 36 heads" in "\n".join(one.value for one in page.markdown)
    differences = page.dataframe[0].value
    assert (differences["value"] == 0).all()
    assert (differences["p"] == "too few").all()  # nine inputs are


@pytest.mark.slow
def test_heads_that_two_tasks_share_are_named(db):
    wanted = {"limit": 12, "tasks": ["stsb", "rte"], "relations": ["same-word"]}
    job = api.start(db, "relations", wanted, "same word")
    assert api.wait(db, job, 300).state == "done", api.status(db, job).error
    page = opened("linguistics/relations")
    page.segmented_control(key="inputs").set_value("task rows")
    page.run()
    assert not page.exception
    assert "that are significant on every task: " in captions(page)


@pytest.mark.thorough
def test_head_statistics_and_the_picture_of_heads(db):
    page = measured("statistics")
    assert not page.exception
    assert not page.error
    assert "in nats" in captions(page)
    page.selectbox(key="statistic").set_value("previous")
    table = page.run().dataframe[0].value
    assert table["value"].between(0, 1).all()
    page = measured("heads/similar")
    assert "Distances are Jensen-Shannon distances, averaged over" in captions(page)
    charts = [json.loads(one.proto.spec) for one in page.get("vega_lite_chart")]
    scatter = next(one for one in charts if one["layer"][0]["mark"]["type"] == "circle")
    titles = {layer["encoding"][axis]["title"] for layer in scatter["layer"] for axis in "xy"}
    assert titles == {"first direction", "second direction"}
    page.segmented_control(key="colour").set_value("class")
    assert "First compute them on “Statistics > Pattern shares”" in page.run().info[0].value


@pytest.mark.thorough
def test_heads_are_coloured_by_their_stored_pattern_class(db):
    heads = [
        {
            "part": "head",
            "checkpoint": "atlas-encoder",
            "layer": k,
            "head": j,
            "class": "vertical" if k else "diagonal",
            "share": 1.0,
            "counts": {},
            "inputs": 3,
        }
        for k in range(6)
        for j in range(6)
    ]
    run = runs.record_run(db, "pattern-shares", {"checkpoints": ["atlas-encoder"]}, runs.Provenance())
    runs.store_rows(db, run, heads)
    page = measured("heads/similar")
    page.segmented_control(key="colour").set_value("class")
    page.run()
    assert not page.exception
    assert not any("Pattern shares" in one.value for one in page.info)
    charts = [json.loads(one.proto.spec) for one in page.get("vega_lite_chart")]
    assert any(layer["encoding"].get("color", {}).get("field") == "class" for c in charts for layer in c["layer"])


def test_raw_and_effective_attention_side_by_side(db):
    page = opened("statistics/effective")
    page.text_input(key="text").set_value("A long text of words " * 10)
    page.run()
    assert not page.exception
    assert not page.error
    assert "each query sees all keys" in captions(page)


@pytest.mark.thorough
@pytest.mark.parametrize("checkpoint", ["atlas-encoder", "atlas-decoder"])
def test_the_maps_page_shows_raw_and_effective_side_by_side(db, checkpoint):
    page = opened("maps")
    page.selectbox(key="checkpoint").set_value(checkpoint)
    page.text_input(key="text").set_value("A long text of words " * 10)
    page.selectbox(key="compare").set_value(EFFECTIVE)
    page.run()
    assert not page.exception
    assert not page.error
    compared = maps_grid.with_effective(checkpoint, resources.shown(checkpoint, "A long text of words " * 10, None))
    assert [pane.title for pane in compared.panes[:2]] == ["raw", "effective"]
    assert len(compared.panes) == 3
    assert "need not sum to 1" in compared.note


@pytest.mark.parametrize(
    ("module", "view"),
    [
        (features, "linguistics"),
        pytest.param(relations, "linguistics/relations", marks=pytest.mark.slow),
        pytest.param(statistics, "statistics", marks=pytest.mark.slow),
    ],
)  # 1.8 CPU seconds each: a job and a page
def test_a_run_on_task_rows_is_stored_and_shown(db, module, view):
    study = module.STUDY.name
    job = api.start(db, study, {"limit": 4, "tasks": ["mrpc"]}, f"{study} of rows")
    assert api.wait(db, job, 300).state == "done", api.status(db, job).error
    page = opened(view)
    page.segmented_control(key="inputs").set_value("task rows")
    page.run()
    assert not page.exception
    assert not page.error
    assert "MRPC" in captions(page)
    assert "atlas-encoder" in captions(page)
    assert len(page.dataframe[0].value) == 36


@pytest.mark.thorough
def test_effective_attention_on_task_rows_is_shown(db):
    job = api.start(db, effective.STUDY.name, {"limit": 2, "tasks": ["mrpc"]}, "effective of rows")
    assert api.wait(db, job, 300).state == "done", api.status(db, job).error
    page = opened("statistics/effective")
    assert not page.error
    titles = " ".join(one.proto.spec for one in page.get("vega_lite_chart"))
    for words in ("Raw attention", "Effective attention", "Difference attention"):
        assert words in titles


def test_no_sentence_says_what_to_do(db):
    page = measured("linguistics", "\n\n")
    assert "must be between 1 and 200; got 0" in page.error[0].value
