"""Indexing a FrameNet folder through the study's own units, into a real database."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from core.errors import InputError
from core.frames.records import FrameReading, Skipped, overlap
from core.frames.release import open_release
from core.frames.rows import parse_sentences
from core.jobs import api
from core.jobs.executors import JobPlacement
from core.store import runs
from core.store.database import Database
from core.store.frames import Search, find_annotations, indexed_releases
from core.studies.contract import ChunkUnit, Finished, Unit
from core.studies.frames.frame_heads import Filter, FrameHeadsOptions, chosen, select
from core.studies.frames.index_frames import STUDY, UNITS_A_SLICE, IndexFramesOptions
from tests.frames.conftest import _INDEXES, unpack


@pytest.fixture(scope="module")
def small(shared_data, tmp_path_factory):
    """Two documents of release 1.5, one of which NLTK rejects, and no lexical units."""
    return unpack(
        shared_data / "framenet/fndata-1.5.tar.xz",
        tmp_path_factory.mktemp("fn"),
        (*_INDEXES, "fulltext/PropBank__T", "fulltext/PropBank__BellRinging"),
    )


@pytest.mark.slow
def test_a_release_is_read_kept_and_found(small, tmp_path):
    options = IndexFramesOptions(str(small))
    assert {unit.arguments.inputs for unit in STUDY.units(options)} == {"text"}
    with Database(tmp_path / "a.duckdb") as db:
        keeper = api.runner(db, JobPlacement(workers=1))
        done = api.wait(db, api.start(db, "index-frames", {"data": str(small)}), 300)
        keeper.close()
        assert done.state == "done", done.error
        rows = runs.run_rows(db, done.run)
        assert any("Unknown frame id: 398" in one["why"] for row in rows for one in row["skipped"])
        known = indexed_releases(db)
        assert known["annotations"].tolist() == [sum(row["annotations"] for row in rows)]
        assert known["annotations"][0] > 100
        assert known[["release", "folder", "run"]].values.tolist() == [["fndata-1.5", str(small), done.run]]
        found = find_annotations(db, Search(text="bell"), limit=5)
        sentences = parse_sentences("\n".join(found["body"])).sentences
        assert [one.text for one in sentences] == found["text"].tolist()
        stored = db.read("SELECT body FROM frame_annotation")["body"]
        direct = [one for reading in open_release(small).sentences() for one in reading.sentences]
        assert any(overlap(one.spans, sentence.target) for sentence in direct for one in sentence.elements)
        for core in ("core_sets", "core_type"):  # the paper's filter selects from the index what it does from the files
            rules = Filter(longest_sentence=None, core=core)  # two documents: their sentences are long
            kept = {one.id for one in select(parse_sentences("\n".join(stored)).sentences, rules).kept}
            assert kept == {one.id for one in select(direct, rules).kept} != set()
        with pytest.raises(InputError, match="cannot be imported"):
            STUDY.keep(db, Finished("r1", "Index", options, rows))


@pytest.mark.slow
def test_lexical_units_are_sliced(release_units):
    assert [unit.key for unit in release_units[:2]] == ["lu-0", "lu-400"]
    assert sum(unit.size for unit in release_units if unit.arguments.inputs == "lu") == 11829


@pytest.fixture(scope="module")
def release_units(small):
    (small / "lu").mkdir()
    try:
        yield STUDY.units(IndexFramesOptions(str(small)))
        (indexed,) = STUDY.run(
            IndexFramesOptions(str(small)), Unit("lu-0", ChunkUnit("", "lu", 11800, 11800 + UNITS_A_SLICE))
        ).partial.slices
        assert len(indexed.skipped) == 29, "every missing file is named"
    finally:
        (small / "lu").rmdir()


def test_no_folder_is_a_sentence(monkeypatch):
    monkeypatch.delenv("ATLAS_FRAMENET", raising=False)
    with pytest.raises(InputError, match="ATLAS_FRAMENET"):
        STUDY.units(IndexFramesOptions())


def test_a_slice_has_the_sentences_of_its_units_and_names_what_was_skipped(monkeypatch):
    """A release of 401 lexical units, each with one sentence; of the last one nothing can be read."""
    sentences = chosen(FrameHeadsOptions())[0].kept[:2]

    def exemplars(unit):
        if unit == 400:
            return FrameReading((), (Skipped("lu400.xml", "it is not there"),))
        return FrameReading((sentences[unit % 2],), ())

    release = SimpleNamespace(name="fn", folder=Path("fn"), lexical_units=range(401), documents=[], exemplars=exemplars)
    monkeypatch.setattr("core.studies.frames.index_frames.open_release", lambda folder: release)
    options, found = IndexFramesOptions("fn"), []
    for start, count in ((0, 400), (400, 0)):
        (indexed,) = STUDY.run(
            options, Unit(f"lu-{start}", ChunkUnit("", "lu", start, start + UNITS_A_SLICE))
        ).partial.slices
        assert (indexed.release, indexed.folder, indexed.annotations) == ("fn", "fn", count)
        found += list(indexed.sentences())
    assert indexed.skipped_lines == [{"where": "lu400.xml", "why": "it is not there"}]
    assert [row["text"] for row in found[:2]] == [one.text for one in sentences]
    assert len(found) == 400


def test_slices_are_kept_by_release_and_counted_with_what_was_skipped(tmp_path, monkeypatch):
    sentences = chosen(FrameHeadsOptions())[0].kept[:6]
    gone = Skipped("lu3.xml", "it is not there")

    def slices(name, *parts):
        folder = tmp_path / name
        release = SimpleNamespace(
            name=name, folder=folder, lexical_units=range(len(parts)), documents=[],
            exemplars=lambda unit: FrameReading(tuple(parts[unit]), (gone,) if unit else ()),
        )  # fmt: skip
        monkeypatch.setattr("core.studies.frames.index_frames.open_release", lambda folder: release)
        return [
            STUDY.run(IndexFramesOptions(name), Unit("u", ChunkUnit("", "lu", k, k + 1))).partial
            for k in range(len(parts))
        ]

    partials = [*slices("old", sentences[:1]), *slices("new", sentences[1:4], sentences[4:])]
    results = STUDY.results(IndexFramesOptions("x"), STUDY.merge(IndexFramesOptions("x"), partials))
    assert [(one.release, one.annotations, len(one.skipped)) for one in results] == [
        ("old", 1, 0), ("new", 3, 0), ("new", 2, 1),
    ]  # fmt: skip
    rows = [one.as_row() for one in results]
    assert STUDY.shown(rows) == [
        [{"release": "old", "annotations": 1, "skipped": 1}, {"release": "new", "annotations": 5, "skipped": 1}]
    ]
    (warning,) = STUDY.warnings(rows)
    assert gone.where in warning
    assert gone.why in warning
    with Database(tmp_path / "a.duckdb") as db:
        STUDY.keep(db, Finished("r1", "Index", IndexFramesOptions("x"), rows, lambda: iter(partials)))
        known = indexed_releases(db).set_index("release")
        assert known["annotations"].to_dict() == {"old": 1, "new": 5}
        assert known["folder"].to_dict() == {"old": str(tmp_path / "old"), "new": str(tmp_path / "new")}
        assert set(known["run"]) == {"r1"}
        stored = parse_sentences("\n".join(db.read("SELECT body FROM frame_annotation")["body"])).sentences
        assert sorted(one.text for one in stored) == sorted(one.text for one in sentences)


def test_ten_lexical_units_are_the_work_of_one_document(monkeypatch, tmp_path):
    (tmp_path / "lu").mkdir()
    release = SimpleNamespace(name="fn", folder=tmp_path, lexical_units=range(401), documents=range(13))
    monkeypatch.setattr("core.studies.frames.index_frames.open_release", lambda folder: release)
    work = [(unit.key, unit.size) for unit in STUDY.units(IndexFramesOptions("fn"))]
    assert work == [("lu-0", 400), ("lu-400", 1), ("text-0", 120), ("text-12", 120)]
