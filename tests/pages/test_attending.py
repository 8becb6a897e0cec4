"""What heads attend to, token to token, head statistics: pasted sentences with the bundled encoder, stored runs."""

import pytest
from streamlit.testing.v1 import AppTest

import pages.parts.shell as shell
from core.jobs import running
from core.jobs.pools import Place
from core.studies import effective, features, relations, statistics
from pages.parts import resources

SENTENCES = "The old dog never bit the small child.\nShe said he saw it. | The dog said nothing."


@pytest.fixture
def db(tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    resources._database.clear()
    database = resources.database()
    keeper = running.runner(database, Place(workers=1))
    yield database
    keeper.close()
    resources._database.clear()
    database.close()


def opened(name: str) -> AppTest:
    page = AppTest.from_file(shell.__file__, default_timeout=180)
    page.run()
    return page.switch_page(f"../{name}.py").run()


def measured(name: str, sentences: str = SENTENCES) -> AppTest:
    page = opened(name)
    page.text_area(key="sentences").set_value(sentences)
    page.toggle(key="measure").set_value(True)
    return page.run()


def captions(page: AppTest) -> str:
    return "\n".join(one.value for one in page.caption)


def test_features_of_pasted_sentences(db):
    page = measured("features")
    assert not page.exception
    assert not page.error
    assert "pasted sentences, 2 inputs" in captions(page)
    assert "n = 2 inputs with nouns" in captions(page)
    assert "mean depth" in captions(page)
    assert any("Heads above the null" in one.value for one in page.subheader)
    heads = page.dataframe[0].value
    assert len(heads) == 36
    assert set(heads["head"]) == {f"L{a}H{b}" for a in range(1, 7) for b in range(1, 7)}
    page.selectbox(key="feature").set_value("negation")
    assert "n = 2 inputs with negation" in captions(page.run())


def test_a_feature_that_no_sentence_has_is_named_and_never_drawn_as_zero(db):
    page = measured("features", "Hm .")
    assert not page.error
    assert "pronoun" in captions(page)
    assert "no input has this feature" in captions(page)
    assert "pronoun" not in page.selectbox(key="feature").options


def test_unknown_features_are_one_sentence(db):
    page = opened("features")
    page.session_state["features"] = ["adverbs"]
    page.toggle(key="measure").set_value(True)
    assert "is none of them" in page.run().error[0].value


def test_links_of_pasted_sentences(db):
    page = measured("relations")
    assert not page.exception
    assert not page.error
    assert "subject looks at verb" in captions(page)
    assert "Always guessing the word at distance" in captions(page)
    assert {"accuracy", "baseline", "effect"} <= set(page.dataframe[0].value.columns)
    page.selectbox(key="relation").set_value("same-word")
    assert "other words of the other sentence" in captions(page.run())


def test_head_statistics_and_the_picture_of_heads(db):
    page = measured("statistics")
    assert not page.exception
    assert not page.error
    assert "in nats" in captions(page)
    assert "Jensen-Shannon distance, mean over" in captions(page)
    page.selectbox(key="statistic").set_value("previous")
    table = page.run().dataframe[0].value
    assert table["value"].between(0, 1).all()


def test_raw_and_effective_attention_side_by_side(db):
    page = opened("statistics")
    page.text_input(key="effective_text").set_value("A long text of words " * 10)
    page.run()
    assert not page.exception
    assert not page.error
    assert "need not sum to 1" in captions(page)
    assert [one.value for one in page.markdown if "attention**" in one.value] == [
        "**Raw attention**",
        "**Effective attention**",
    ]


@pytest.mark.parametrize("module", [features, relations, statistics])
def test_a_run_on_task_rows_is_stored_and_shown(db, module):
    study = module.STUDY.name
    job = running.start(db, study, {"limit": 4, "tasks": ["mrpc"]}, f"{study} of rows")
    assert running.wait(db, job, 300).state == "done", running.status(db, job).error
    page = opened(study)
    page.segmented_control(key="inputs").set_value("task rows")
    page.run()
    assert not page.exception
    assert not page.error
    assert "mrpc" in captions(page)
    assert "atlas\\-encoder" in captions(page)
    assert len(page.dataframe[0].value) == 36


def test_effective_attention_on_task_rows_is_shown(db):
    job = running.start(db, effective.STUDY.name, {"limit": 2, "tasks": ["mrpc"]}, "effective of rows")
    assert running.wait(db, job, 300).state == "done", running.status(db, job).error
    page = opened("statistics")
    assert not page.error
    assert {"**Raw**", "**Effective**"} <= {one.value for one in page.markdown}


def test_no_sentence_says_what_to_do(db):
    page = measured("features", "\n\n")
    assert "Between 1 and 200 sentences" in page.error[0].value
