"""A CSV of the user's own as a task: typed on pages, its errors in one sentence, fine-tuned and swept end to end."""

from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from core.store import jobs
from core.store.people import Person, RightsError
from pages.parts.shell import shell
from pages.parts.widgets import pickers
from tests.capture.conftest import tiny
from tests.pages.opening import switched
from tests.studies.through_json import rows_of

pytestmark = pytest.mark.slow


@pytest.fixture
def mail(tmp_path):
    lines = [f"the {'cat' if k % 2 else 'dog'} sat on mat {k},{'cats' if k % 2 else 'dogs'}" for k in range(40)]
    file = tmp_path / "mail.csv"
    file.write_text("sentence,label\n" + "\n".join(lines) + "\n")
    return str(file)


def test_an_own_task_goes_through_tuning_change_sweep_features_and_maps(mail, tmp_path):
    base = tiny("bert")
    base.model.save_pretrained(tmp_path / "tiny")
    base.tokenizer.save_pretrained(tmp_path / "tiny")
    checkpoint = str(tmp_path / "tiny")
    settings = {"epochs": 1, "batch": 8, "max_length": 24}
    tuned = rows_of(
        "finetune",
        {
            "checkpoint": checkpoint,
            "tasks": [mail],
            "seeds": [0],
            "settings": settings,
            "out": str(tmp_path / "out"),
        },
    )
    (run,) = (row for row in tuned if row["kind"] == "run")
    assert (run["train_rows"], run["dev_rows"], run["task"]) == (32, 8, mail)
    assert [row["kind"] for row in tuned] == ["run", "mean", "baseline"]  # no paper printed anything of it
    folder = run["folder"]
    assert "tiny-mail-pretrained-s0" in folder
    assert {row["task"] for row in rows_of("change", {"before": checkpoint, "after": [folder]})} == {mail}
    swept = rows_of("disable", {"checkpoint": folder, "task": mail, "limit": None})
    assert {row["n"] for row in swept if row["kind"] in ("baseline", "variant")} == {8}
    assert {row["task"] for row in rows_of("draw-maps", {"checkpoint": checkpoint, "tasks": [mail], "count": 4})} == {
        mail
    }
    measured = rows_of("features", {"checkpoint": checkpoint, "tasks": [mail], "features": ["noun"]})
    assert {row["task"] for row in measured} == {mail}


def test_a_path_is_typed_on_the_fine_tune_page_and_an_error_names_the_column(db, mail, tmp_path, monkeypatch):
    page = AppTest.from_file(shell.__file__, default_timeout=60).run()
    page = switched(page, "finetuning").run()
    (tasks,) = [one for one in page.multiselect if one.label == "Tasks"]
    (tmp_path / "bad.csv").write_text("sentence,mark\na,b\n")
    tasks.set_value([str(tmp_path / "bad.csv")]).run()
    (button,) = [one for one in page.button if one.label == "Fine-tune"]
    button.click().run()
    assert 'bad.csv has no "label"' in page.error[0].value
    assert jobs.jobs(db).empty
    started = []
    monkeypatch.setattr("core.jobs.api.start", lambda db, study, options, title: started.append((options, title)))
    (tasks,) = [one for one in page.multiselect if one.label == "Tasks"]
    tasks.set_value([mail, "sst2"]).run()
    (button,) = [one for one in page.button if one.label == "Fine-tune"]
    button.click().run()
    ((options, title),) = started
    assert options["tasks"] == [mail, "sst2"]
    assert title.endswith("on mail.csv, SST-2-like")


def test_a_viewer_cannot_have_a_file_of_the_server_read(db, mail, monkeypatch):
    viewer = db.acting_as(Person("eve", "viewer"))
    monkeypatch.setattr(pickers, "resources", SimpleNamespace(database=lambda: viewer))
    with pytest.raises(RightsError, match="must be annotator"):
        pickers.named([mail])
    assert pickers.named(["sst2"]) == "SST-2"
