"""An app that others use reads files only in the folders it was given, whatever leads out of them."""

import shutil

import pytest

from core import config
from core.errors import AtlasError, CheckpointError
from core.frames.release import open_release
from core.models.opening import locate
from core.studies.attention import dependencies
from core.studies.frames import frame_heads
from core.studies.tagging import open_pipeline
from core.studies.tuning.change import task_tuned_on
from core.tasks.glue import read_rows
from tests.robustness.doors import refused

DOORS = {
    "a checkpoint": lambda place: locate(str(place)),
    "a task's rows": lambda place: read_rows("sst2", folder=place),
    "a task of one's own": lambda place: read_rows(str(place / "rows.csv")),
    "a language pipeline": lambda place: open_pipeline(str(place)),
    "a treebank": lambda place: dependencies.file_of(str(place), "dev"),
    "annotated sentences": lambda place: frame_heads.read(
        frame_heads.FrameHeadsOptions(sentences=str(place / "rows.jsonl"))
    ),
    "the folder of a release": lambda place: open_release(place),
    "a fine-tuned checkpoint's task": lambda place: task_tuned_on(str(place)),
}


@pytest.fixture
def given(tmp_path, monkeypatch):
    """The folder that the app was given, beside one that it was not."""
    for name in ("given", "other"):
        shutil.copytree(config.BUNDLED_MODELS / config.ENCODER, tmp_path / name)
        (tmp_path / name / "training.json").write_text('{"task": "sst2"}')
        (tmp_path / name / "rows.csv").write_text("sentence,label\n" + "good,yes\nbad,no\n" * 5)
        (tmp_path / name / "train.tsv").write_text("sentence\tlabel\ngood\t1\n")
        (tmp_path / name / "x-dev.conllu").write_text("")
    (tmp_path / "given" / "link").symlink_to(tmp_path / "other")
    monkeypatch.setenv("ATLAS_FOLDERS", str(tmp_path / "given"))
    return tmp_path / "given"


@pytest.mark.thorough
@pytest.mark.parametrize("way", ["other", "given/../other", "given/link", "missing"])
@pytest.mark.parametrize("door", DOORS)
def test_nothing_leads_out(given, door, way):
    said = refused(lambda: DOORS[door](given.parent / way))
    assert "a folder that this app may" in said or "training.json" in said


@pytest.mark.parametrize("door", ["a checkpoint", "a task's rows", "a task of one's own", "a treebank"])
def test_what_lies_inside_is_read(given, door):
    assert DOORS[door](given)


def test_our_own_folders_are_always_inside(given, tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_FOLDERS", "")
    monkeypatch.setenv("ATLAS_GLUE", str(tmp_path / "glue"))
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "store" / "atlas.duckdb"))
    assert locate(config.ENCODER)
    assert config.within(tmp_path / "glue" / "SST-2")
    assert config.within(tmp_path / "store" / "runs" / "finetuned" / "x")
    assert not config.within(given)


def test_a_hub_id_is_no_folder(given, monkeypatch):
    """A name that could be both is looked for on the hub only, so that it tells nothing about folders here."""
    monkeypatch.chdir(given.parent)
    with pytest.raises(CheckpointError, match="hub cannot be reached"):
        locate("other")


def test_without_the_setting_any_folder_opens(given, monkeypatch):
    monkeypatch.delenv("ATLAS_FOLDERS")
    assert locate(str(given.parent / "other"))
    with pytest.raises(AtlasError):
        config.inside("~nobody-here/x")
