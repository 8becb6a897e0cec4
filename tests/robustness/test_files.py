"""Bad files, each tried on every reader it could meet: one sentence, and the store stays as it was."""

import json
from pathlib import Path

import pytest

from core.errors import InputError
from core.frames import papers, release
from core.frames import rows as frame_rows
from core.store import exchange, label_files, labels
from core.store.database import Database
from core.tasks import conllu, glue
from tests.robustness import files
from tests.robustness.doors import one_sentence, refused, refused_or_fine, unchanged
from tests.spread import one_in
from tests.store.labelling import a_map


@pytest.fixture(scope="module")
def db(tmp_path_factory):
    """One map. What is refused leaves it as it was, which each test looks at; who stores something takes `own_db`."""
    with one_map(tmp_path_factory.mktemp("store") / "atlas.duckdb") as database:
        yield database


@pytest.fixture
def own_db(tmp_path):
    with one_map(tmp_path / "store" / "atlas.duckdb") as database:
        yield database


def one_map(file: Path) -> Database:
    database = Database(file)
    labels.store_maps(database, [a_map("m1")])
    return database


def tsv(task: str):
    def read(file: Path):
        place = file.parent / glue.TASKS[task].name
        place.mkdir()
        file.rename(place / "train.tsv")
        return glue.read_rows(task, folder=file.parent)

    return read


READERS = {
    "a task's rows": tsv("sst2"),
    "rows of pairs": tsv("mrpc"),
    "annotated sentences": frame_rows.read_sentences,
    "published claims": papers.read_list,
    "gold trees": conllu.read_conllu,
    "a run": exchange.read_run,
}


@pytest.mark.parametrize("content", files.BYTES)
@pytest.mark.parametrize("reader", READERS)
def test_bytes_of_another_kind(tmp_path, reader, content):
    file = tmp_path / "upload.jsonl"
    file.write_bytes(files.BYTES[content])
    if reader == "gold trees":  # lines of text without a tree are no sentences, as CoNLL-U has it
        refused_or_fine(lambda: READERS[reader](file))
    else:
        refused(lambda: READERS[reader](file))


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", ["missing", "a folder"])
def test_files_that_are_none(tmp_path, reader, kind):
    file = tmp_path / "upload.jsonl"
    if kind == "a folder":
        file.mkdir()
    if reader in {"a task's rows", "rows of pairs"}:
        refused(lambda: glue.read_rows("sst2", folder=file))
    else:
        refused(lambda: READERS[reader](file))


@pytest.mark.parametrize(
    ("task", "name"), [("sst2", one) for one in files.SST2] + [("stsb", one) for one in files.STSB]
)
def test_a_task_file(tmp_path, task, name):
    file = tmp_path / "upload.tsv"
    file.write_text({"sst2": files.SST2, "stsb": files.STSB}[task][name])
    refused(lambda: tsv(task)(file))


@pytest.mark.parametrize("name", files.FRAMES)
def test_annotated_sentences(name):
    refused(lambda: frame_rows.parse_sentences(files.FRAMES[name]))


@pytest.mark.parametrize("name", files.PAPERS)
def test_lists_of_the_papers(name):
    refused(lambda: papers.parse_list(json.dumps([files.PAPERS[name]]), "upload.json"))


@pytest.mark.parametrize("name", files.CONLLU)
def test_gold_trees(tmp_path, name):
    file = tmp_path / "x.conllu"
    file.write_text(files.CONLLU[name])
    refused(lambda: conllu.read_conllu(file))


@pytest.mark.parametrize("name", files.XML)
def test_a_framenet_release(tmp_path, name):
    folder = files.framenet(tmp_path / "fndata-1.5", files.XML[name])

    def read():
        found = release.open_release(folder)
        for frame in found.frame_names:
            found.frame(frame)
        return found.lexical_units, found.documents

    said = refused(read)
    assert "root:" not in said  # nothing of /etc/passwd


@pytest.mark.parametrize("ending", [".jsonl", pytest.param(".parquet", marks=pytest.mark.slow)])  # tests/fuzz has both
@pytest.mark.parametrize("content", files.BYTES)
def test_label_files_of_another_kind(db, tmp_path, content, ending):
    file = tmp_path / f"labels{ending}"
    file.write_bytes(files.BYTES[content])
    with unchanged(db):
        try:
            report = label_files.import_labels(db, file)
        except InputError as error:
            one_sentence(str(error))
        else:
            assert report.new == 0
            assert report.rows == len(report.refused)
            assert all("\n" not in reason and len(reason) < 700 for _, reason in report.refused)


@pytest.mark.thorough
@pytest.mark.parametrize("name", files.LABELS)
def test_label_rows(db, tmp_path, name):
    """A bad row is named with its reason, and nothing of its file is kept."""
    rows_of_a_file(db, tmp_path, name, keep=False)


@pytest.mark.parametrize("name", one_in(6, files.LABELS))
def test_label_rows_whose_rest_is_kept(own_db, tmp_path, name):
    """As was asked: the good ones beside it."""
    rows_of_a_file(own_db, tmp_path, name, keep=True)


def rows_of_a_file(db: Database, folder: Path, name: str, *, keep: bool) -> None:
    file = folder / "labels.jsonl"
    good = json.dumps(files.LABEL | {"annotator": "grace"}) + "\n"
    file.write_text(good + files.LABELS[name])
    report = label_files.import_labels(db, file, keep_rest=keep)
    assert report.refused, "the bad row was taken"
    for number, reason in report.refused:
        assert number >= 2
        assert reason
        assert "\n" not in reason
        assert len(reason) < 700
    kept = labels.all_events(db)
    assert {row["annotator"] for row in kept} <= ({"grace", "ada"} if name == "a name twice" else {"grace"})
    assert bool(kept) == keep
    assert len(labels.map_facts(db)) == 1


def test_label_files_of_other_names(db, tmp_path):
    for name in ("labels.csv", "labels", "labels.jsonl.exe", "missing.jsonl", "missing.parquet"):
        with unchanged(db):
            refused(lambda name=name: label_files.import_labels(db, tmp_path / name))


@pytest.mark.thorough
@pytest.mark.parametrize("name", files.MANIFESTS)
def test_exports(tmp_path, name):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "atlas.json").write_text(files.MANIFESTS[name])
    db = Database(tmp_path / "new.duckdb")
    with unchanged(db):
        refused(lambda: exchange.import_all(db, tmp_path / "out"))
    db.close()


@pytest.mark.parametrize("name", files.CLASSES)
def test_changes_of_classes(db, name):
    given = {"kind": "add", "name": "wave", "eye": "A wave.", "colour": "#000000", "key": "6"} | files.CLASSES[name]
    with unchanged(db):
        refused(
            lambda: labels.change_class(
                db, "bert", labels.ClassChange(**given), annotator="ada", taken=("vertical", "block")
            )
        )
