"""A FrameNet release through NLTK's reader: the real 1.5, and folders that cannot be read."""

import pytest

from core.errors import InputError
from core.frames.records import words
from core.frames.release import Document, open_release


@pytest.mark.slow  # 10 CPU seconds of NLTK reading a release
def test_the_index_of_release_1_5(release):
    assert len(release.lexical_units) == 11829
    assert len(release.frame_names) == 1019
    assert sum(bool(release.frame(name).core_sets) for name in release.frame_names[:60]) > 0


@pytest.mark.slow  # 10 CPU seconds of NLTK reading a release
def test_frames_carry_coreness_and_core_sets(release):
    found = release.frame("Emotion_directed")
    assert set(found.core_sets[1]) == {"State", "Expressor", "Experiencer"}
    assert found.elements["Experiencer"] == "Core"
    assert found.elements["Degree"] != "Core"
    assert release.frame("Abusing").core_sets == ()
    with pytest.raises(InputError, match="Emotion_undirected_x"):
        release.frame("Emotion_undirected_x")


@pytest.mark.slow  # 10 CPU seconds of NLTK reading a release
def test_exemplars_have_spans_by_character(release):
    unit = next(one for one in release.lexical_units if one.name == "agitated.a")
    found = release.exemplars(unit)
    example = next(one for one in found.sentences if one.text.startswith("He was becoming agitated"))
    assert example.target_text == "agitated"
    assert [(one.name, words(example.text, one.spans), one.in_core_set) for one in example.elements] == [
        ("Experiencer", "He", True)
    ]
    assert release.exemplars(unit) == found, "reading again gives the same, although NLTK's copy was dropped"


@pytest.mark.slow  # 20 CPU seconds of NLTK reading a release anew
def test_a_document_that_nltk_rejects_is_skipped_and_named(release):
    named = {one.name: one for one in release.documents}
    found = release.full_text(named["PropBank__TicketSplitting.xml"])
    assert found.sentences == ()
    assert found.skipped[0].where == "PropBank__TicketSplitting.xml"
    assert "Unknown frame id: 398" in found.skipped[0].why
    assert len(release.full_text(named["PropBank__BellRinging.xml"]).sentences) > 100


@pytest.mark.slow  # 10 CPU seconds of NLTK reading a release
def test_a_missing_lexical_unit_file_or_document_is_skipped(release):
    unit = next(one for one in release.lexical_units if not (release.folder / f"lu/lu{one.number}.xml").exists())
    assert f"lu{unit.number}.xml" in release.exemplars(unit).skipped[0].where
    assert release.full_text(Document(10**9, "none.xml")).skipped[0].where == "none.xml"


@pytest.mark.slow  # 26 CPU seconds of NLTK reading all of a release
def test_release_1_7_without_lu_gives_its_full_texts(shared_data, tmp_path):
    from tests.frames.conftest import _INDEXES, unpack

    folder = unpack(
        shared_data / "framenet/fndata-1.7-partial.tar.xz", tmp_path, (*_INDEXES, "fulltext/ANC__110CYL067")
    )
    readings = open_release(tmp_path).sentences()  # the folder above it is accepted too
    first = next(readings)
    assert "no folder lu" in first.skipped[0].why
    assert sum(len(one.sentences) for one in readings) > 50
    assert folder.name == "fndata-1.7"


def test_a_folder_that_is_no_release_is_named(tmp_path):
    with pytest.raises(InputError, match=r"must be a folder; .*nowhere is not"):
        open_release(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"lacks frameIndex\.xml"):
        open_release(tmp_path)


MINIATURE = {  # what a release is opened by, with one of each
    "frameIndex": '<frameIndex><frame ID="7" name="Emotion" mDate="x"/></frameIndex>',
    "luIndex": '<luIndex><lu ID="9" name="glad.a" frameID="7" frameName="Emotion" status="New" hasAnnotation="true"/>'
    "</luIndex>",
    "fulltextIndex": "<fulltextIndex></fulltextIndex>",
    "frRelation": "<frameRelations></frameRelations>",
    "semTypes": "<semTypes></semTypes>",
}


@pytest.fixture
def miniature(tmp_path):
    folder = tmp_path / "fndata-1.5"
    for made in (folder, folder / "frame"):
        made.mkdir(mode=0o755)
        made.chmod(0o755)
    for name, text in MINIATURE.items():
        (folder / f"{name}.xml").write_text(text)
        (folder / f"{name}.xml").chmod(0o644)
    return folder


def test_files_that_others_may_write_are_told_with_the_remedy(miniature):
    (miniature / "frRelation.xml").chmod(0o664)
    with pytest.raises(InputError, match=f"chmod -R go-w {miniature}"):
        open_release(miniature)


def test_a_damaged_index_is_refused_without_a_traceback(miniature):
    assert list(open_release(miniature).frame_names) == ["Emotion"]
    (miniature / "luIndex.xml").write_text('<!DOCTYPE a [<!ENTITY b "c">]><luIndex><lu name="&b;"/></luIndex>')
    with pytest.raises(InputError, match="Unpack the release again"):
        open_release(miniature)
