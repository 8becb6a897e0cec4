"""Searching indexed FrameNet annotations in a real database file."""

import pytest

from core.errors import InputError
from core.store.database import Database
from core.store.frames import Search, find_annotations, indexed_releases, replace_release, skipped_of


def row(number, text, frame, unit, *elements):
    return {
        "id": f"r:{number}",
        "text": text,
        "target": [[0, 1]],
        "frame": frame,
        "lexical_unit": unit,
        "elements": [{"name": name, "spans": [[1, 2]]} for name in elements],
    }


ROWS = [
    row(1, "He walked home", "Self_motion", "walk.v", "Self_mover", "Goal"),
    row(2, "He was angry", "Emotion_directed", "angry.a", "Experiencer"),
    row(
        3, "An old man was agitated about that 100% sure plan", "Emotion_directed", "agitated.a", "Experiencer", "Topic"
    ),
]


@pytest.fixture
def db(tmp_path):
    opened = Database(tmp_path / "a.duckdb")
    replace_release(opened, "fndata-1.5", ROWS, folder="/x", run="r1", skipped=[{"where": "d.xml", "why": "no"}])
    yield opened
    opened.close()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("asked", "ids"),
    [
        ({"frame": "emotion directed"}, ["r:2", "r:3"]),
        ({"frame": "Emotion", "unit": "agit"}, ["r:3"]),
        ({"element": "topic"}, ["r:3"]),
        ({"unit": "walk.v", "element": "Goal"}, ["r:1"]),
        ({"text": "100%"}, ["r:3"]),
        ({"text": "he", "most_words": 3}, ["r:1", "r:2"]),
        ({"text": "%"}, ["r:3"]),
        ({"frame": "Emotion", "limit": 1}, ["r:2"]),
        ({"text": "'; DROP TABLE frame_annotation; --"}, []),
        ({"frame": "Emotion", "release": "fndata-1.7"}, []),
    ],
)
def test_a_search_finds_by_frame_unit_element_and_words(db, asked, ids):
    rest = {name: asked[name] for name in ("release", "limit") if name in asked}
    search = Search(**{name: value for name, value in asked.items() if name not in rest})
    assert find_annotations(db, search, **rest)["id"].tolist() == ids


def test_a_search_for_nothing_is_refused(db):
    with pytest.raises(InputError, match="Fill in at least one"):
        find_annotations(db, Search(frame="  "))


def test_indexing_again_replaces_a_release_and_leaves_others(db):
    replace_release(db, "fndata-1.7", ROWS[:1], folder="/y", run="r2", skipped=[])
    replace_release(db, "fndata-1.5", ROWS[1:2], folder="/x", run="r3", skipped=[])
    found = indexed_releases(db).set_index("release")
    assert found["annotations"].to_dict() == {"fndata-1.5": 1, "fndata-1.7": 1}
    for frame, release in (("Emotion_directed", "fndata-1.5"), ("Self_motion", "fndata-1.7")):
        assert set(find_annotations(db, Search(frame=frame))["release"]) == {release}
    assert skipped_of(db, "fndata-1.5") == []


def test_what_was_skipped_is_kept(db):
    assert skipped_of(db, "fndata-1.5") == [{"where": "d.xml", "why": "no"}]
    assert skipped_of(db, "none") == []
