"""Sentences of one's own wherever a page takes rows of a task: pasted or uploaded, estimated, refused in a sentence."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from core.store import jobs
from core.store.database import Person
from core.tasks.glue import read_rows
from pages.parts.shell import shell
from pages.parts.widgets import own_rows
from tests.pages.opening import switched

LIST = "The first sentence.\nThe second, with a comma.\n"
TABLE = "text,label\nA good film.,positive\nA bad film.,negative\n"
PLACES = {  # page: of its picker of tasks the key, and what must be chosen before it is seen
    "linguistics": ("tasks_features", {}),
    "linguistics/relations": ("tasks_relations", {}),
    "statistics": ("tasks_statistics", {}),
    "heads": ("measure_tasks", {}),
    "statistics/shares": ("tasks_sst2", {}),
    "finetuning": ("tasks_sst2", {}),
    "interventions/pruning": ("rows", {}),
    "interventions/subnetworks": ("rows", {}),
    "linguistics/probes": ("rows", {"mode": "Transfer"}),
    "interventions/patching": ("rows", {"mode": "A task's rows"}),
    "interventions": ("rows", {"mode": "A task's rows"}),
}
VIEWS = [*PLACES, "interventions: Training without"]


def opened(place: str) -> tuple[AppTest, str]:
    """The page on the view that takes rows, and the key of its picker."""
    name, _, mode = place.partition(": ")
    key, query = PLACES[name]
    app = AppTest.from_file(shell.__file__, default_timeout=120)
    switched(app, name, **(query | ({"mode": mode} if mode else {}))).run()
    return app, "held_tasks" if mode == "Training without" else key


@pytest.mark.parametrize(
    "place", [place if k % 4 == 0 else pytest.param(place, marks=pytest.mark.slow) for k, place in enumerate(VIEWS)]
)  # the same picker everywhere
def test_a_list_is_pasted_and_chosen(db, place):
    app, key = opened(place)
    assert not app.exception
    app.text_area(key=f"own_{key}_pasted").set_value(LIST)
    app.button(key=f"own_{key}_use").click().run()
    assert not app.error, app.error[0].value
    chosen = app.session_state[key]
    file = chosen[0] if isinstance(chosen, list) else chosen
    assert [row.text for row in read_rows(file, "dev")] == LIST.splitlines()
    picker = app.multiselect(key=key) if isinstance(chosen, list) else app.selectbox(key=key)
    assert Path(file).name in picker.options  # by its name and not by its folder
    said = " ".join(caption.value for caption in app.caption).replace("\\", "")
    assert (
        "The time cannot be estimated yet" in said or 'has no column "label"' in said or "must be a classifier" in said
    )


@pytest.mark.thorough
def test_a_table_is_uploaded_with_its_labels(db):
    app, key = opened("interventions")
    app.file_uploader(key=f"own_{key}_file").upload("films.csv", TABLE.encode(), "text/csv").run()
    app.button(key=f"own_{key}_use").click().run()
    rows = read_rows(app.session_state[key], "dev")
    assert Path(app.session_state[key]).stem.startswith("films"), "under the name that its file had"
    assert [(row.text, row.label) for row in rows] == [("A good film.", 1), ("A bad film.", 0)]


def test_the_maps_page_steps_through_a_list(db):
    app = switched(AppTest.from_file(shell.__file__, default_timeout=120), "maps").run()
    app.text_area(key="own_pasted").set_value(LIST)
    app.button(key="own_use").click().run()
    assert app.session_state["text"] == "The first sentence."
    app.button(key="own_on").click().run()
    assert app.session_state["text"] == "The second, with a comma."


@pytest.mark.thorough
def test_the_sentences_that_are_measured_at_once_come_from_a_file_too(db):
    app = switched(AppTest.from_file(shell.__file__, default_timeout=120), "linguistics")
    app.query_params["inputs"] = "sentences"
    app.run()
    app.file_uploader(key="sentences_file").upload("films.csv", TABLE.encode(), "text/csv").run()
    app.toggle(key="measure").set_value(True).run()
    assert not app.error, app.error[0].value
    assert "2 inputs" in " ".join(caption.value for caption in app.caption)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("lines", "said"), [("", "empty text"), ("a\tb\tc", "has 3 parts"), ("sentence,label\na,x\nb,\n", "no label")]
)
def test_what_is_no_list_is_one_sentence(db, lines, said):
    app, key = opened("interventions/pruning")
    app.text_area(key=f"own_{key}_pasted").set_value(lines)
    app.button(key=f"own_{key}_use").click().run()
    (error,) = app.error  # once, not in the preview and again for the button
    assert said in error.value
    assert app.session_state[key] == "sst2"


BROKEN = b'sentence,label\n"never closed,x\n'


@pytest.mark.thorough
@pytest.mark.parametrize("place", ["interventions/pruning", "maps"])
def test_an_invalid_upload_is_explained_once(db, place):
    if place == "maps":
        app, key = switched(AppTest.from_file(shell.__file__, default_timeout=120), "maps").run(), "own"
    else:
        app, key = opened(place)
        key = f"own_{key}"
    app.file_uploader(key=f"{key}_file").upload("films.csv", BROKEN, "text/csv").run()
    app.button(key=f"{key}_use").click().run()
    assert ["films.csv" in error.value for error in app.error] == [True]


def test_an_invalid_upload_to_measure_is_explained_once(db):
    app = switched(AppTest.from_file(shell.__file__, default_timeout=120), "linguistics")
    app.query_params["inputs"] = "sentences"
    app.run()
    app.file_uploader(key="sentences_file").upload("films.csv", BROKEN, "text/csv").run()
    app.toggle(key="measure").set_value(True).run()
    assert ["films.csv" in error.value for error in app.error] == [True]


def test_sentences_without_labels_are_refused_before_the_job(db):
    app, key = opened("finetuning")
    app.text_area(key=f"own_{key}_pasted").set_value(LIST)
    app.button(key=f"own_{key}_use").click().run()
    (button,) = [button for button in app.button if button.label == "Fine-tune"]
    button.click().run()
    assert 'has no column "label"' in app.error[0].value.replace("\\", "")
    assert jobs.jobs(db).empty


def test_a_viewer_leaves_no_file(db, monkeypatch, tmp_path):
    app, key = opened("linguistics")
    viewer = db.acting_as(Person("eve", "viewer"))
    monkeypatch.setattr(own_rows, "resources", SimpleNamespace(database=lambda: viewer))
    app.text_area(key=f"own_{key}_pasted").set_value(LIST)
    app.button(key=f"own_{key}_use").click().run()
    assert "The role annotator is required" in app.error[0].value
    assert not list(tmp_path.rglob("*.csv"))
