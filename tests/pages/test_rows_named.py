"""Rows of a folder in GLUE's form: read wherever a picker calls them by the task's name."""

import pytest
from streamlit.testing.v1 import AppTest

from pages.parts.label import label_tools
from pages.parts.shell import shell
from pages.parts.widgets import job_progress, pickers
from tests.pages.opening import switched


@pytest.fixture
def glue(tmp_path, monkeypatch):
    folder = tmp_path / "glue"
    (folder / "MRPC").mkdir(parents=True)
    rows = "".join(f"{k % 2}\t{k}\t{k}\tThe first of {k}.\tThe second of {k}.\n" for k in range(6))
    for split in ("train", "dev"):
        (folder / "MRPC" / f"{split}.tsv").write_text(f"Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n{rows}", "utf-8")
    monkeypatch.setenv("ATLAS_GLUE", str(folder))
    pickers.task_rows.cache_clear()
    yield str(folder)
    pickers.task_rows.cache_clear()


def opened(name, **query):
    app = AppTest.from_file(shell.__file__, default_timeout=120)
    return switched(app, name, **query).run()


@pytest.mark.thorough
def test_a_study_reads_the_folder_that_its_tasks_are_named_for(db, glue, monkeypatch):
    started = []
    monkeypatch.setattr(job_progress, "begin", lambda study, options, title, *_: started.append((options, title)))
    app = opened("statistics", tasks_statistics="mrpc")
    assert "MRPC" in app.multiselect(key="tasks_statistics").options
    assert app.text_input(key="folder").value == glue
    app.button(key="start_statistics").click().run()
    app.text_input(key="folder").set_value("").run()
    assert "Uses the bundled examples, which only imitate the task." in [one.value for one in app.caption]
    app.button(key="start_statistics").click().run()
    assert [options["data"] for options, _ in started] == [glue, None]
    assert [title.rpartition(" on ")[2] for _, title in started] == ["MRPC", "MRPC-like"]


def test_maps_to_label_are_drawn_from_the_folder(db, glue, monkeypatch):
    asked = []
    monkeypatch.setattr(label_tools, "drawn", lambda name, options: asked.append(options) or 0)

    def page():
        from pages.parts.label.label_tools import draw_maps

        draw_maps()

    app = AppTest.from_function(page, default_timeout=60).run()
    assert app.text_input(key="draw_folder").value == glue
    next(button for button in app.button if button.label == "Sample").click().run()
    assert [options["data"] for options in asked] == [glue]


def test_a_row_to_look_at_is_of_the_folder(db, glue):
    app = opened("maps")
    assert not app.exception
    assert app.selectbox(key="row_task").options[0] == "MRPC"
    assert "The first of 0." in [text.value.split("\n")[0] for text in app.text]


def test_without_a_folder_rows_are_only_like_a_tasks(db, monkeypatch):
    monkeypatch.delenv("ATLAS_GLUE", raising=False)
    app = opened("maps")
    assert app.selectbox(key="row_task").options[0] == "MRPC-like"
