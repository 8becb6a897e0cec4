"""The corpus of bad inputs, each tried where it comes in: on a page, in a command, or in a job that a page starts.

A try returns the sentence that was said, or None where the input was taken as it is. `python -m tests.robustness`
tries them all and prints the table; a kind is one line in KINDS.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from streamlit.testing.v1 import AppTest

from core import config
from core.codebook.registry import BERT
from core.errors import AtlasError
from core.jobs import api
from core.store import labels, runs
from core.store.database import Database
from core.store.runs import Provenance
from pages.parts.shell import resources, shell
from tests.pages.opening import VIEWS, switched
from tests.robustness import files, folders, texts
from tests.robustness.doors import contents, one_sentence, terminal
from tests.store.labelling import a_map, event

PATIENCE = 120  # s, on a machine that is busy
JOB_BOOKS = {"job", "job_unit", "job_outcome", "job_row"}  # that a job failed is written down


class Place:
    """A store with something in it, a folder for files, and the doors."""

    def __init__(self, folder: Path):
        self.folder, self._fresh = folder, count()
        self.db = Database(folder / "store" / "atlas.duckdb")
        labels.store_maps(self.db, [a_map("m1")])
        labels.record_events(self.db, [event(1)])
        runs.store_rows(self.db, runs.record_run(self.db, "heads", {}, Provenance()), [{"a": 1}])

    def file(self, name: str, content: bytes | str) -> Path:
        """A file of this name in a folder of its own."""
        file = self.folder / str(next(self._fresh)) / name
        file.parent.mkdir(parents=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
        return file

    def stored(self) -> dict[str, list]:
        """Everything in the store but the books of jobs."""
        return {name: rows for name, rows in contents(self.db).items() if name not in JOB_BOOKS}

    def command(self, *words: str) -> str | None:
        """`python -m core WORDS`: exit status 2 and a sentence, or 0."""
        status, _, said = terminal(*words)
        assert status in (0, 2), (status, said)
        assert "Traceback" not in said
        if status == 0:
            return None
        return "The command's options are wrong." if "Usage:" in said else said.strip().splitlines()[-1]

    def page(self, name: str, query: Mapping[str, str] | None = None, **state: Any) -> AppTest:
        """A page that was opened with a link, then given `state`."""
        app = AppTest.from_file(shell.__file__, default_timeout=PATIENCE)
        switched(app.run(), name, **(query or {})).run()
        return self.given(app, **state) if state else app

    def given(self, app: AppTest, **state: Any) -> AppTest:
        for key, value in state.items():
            app.session_state[key] = value
        return app.run()

    def job(self, study: str, options: Mapping[str, Any]) -> str | None:
        """What the Jobs page says of a job that a page started with these options."""
        now = api.wait(self.db, api.start(self.db, study, options), PATIENCE)
        assert now.state in {"done", "failed"}, now.state
        return now.error


def said(app: AppTest) -> str | None:
    """The sentence a page shows, if it shows one. A traceback or a defect of ours fails here."""
    assert not app.exception, app.exception[0].value
    for error in app.error:
        one_sentence(error.value.replace("\\", ""))
    return app.error[0].value.replace("\\", "") if app.error else None


# ---------------------------------------------------------------- where each kind comes in


def text(place: Place, value: str) -> str | None:
    return said(place.page("maps", text=value)) or said(place.page("maps", text="A first sentence.", pair=value))


def name_of_a_checkpoint(place: Place, value: str) -> str | None:
    if value.isascii() or value.encode("utf-8", "ignore").decode() == value:  # a link cannot hold half a surrogate pair
        said(place.page("maps", {"text": "Hello there.", "checkpoint": value}))
    return place.command("check", value)


def checkpoint(place: Place, value: Callable[[Path], None]) -> str | None:
    folder = place.folder / f"checkpoint{next(place._fresh)}"
    folder.mkdir()
    made = folders.made(config.BUNDLED_MODELS / config.ENCODER, value, folder)
    found = place.command("check", str(made))
    assert not (folder / "owned").exists(), "code of the checkpoint ran"
    return found


def query(place: Place, value: Mapping[str, str]) -> str | None:
    return max((said(place.page(name, value)) or "" for name in VIEWS), key=len) or None


def label_row(place: Place, value: str) -> str | None:
    file = place.file("labels.jsonl", value)
    _refused_on_the_page(place, file)
    return place.command("labels", "import", str(file), "--all-or-nothing")


def _refused_on_the_page(place: Place, file: Path) -> None:
    app = place.page("annotate")
    next(one for one in app.segmented_control if one.label == "What to do").set_value("Files").run()
    uploader = next(one for one in app.file_uploader if one.label == "Import labels")
    uploader.set_value((file.name, file.read_bytes(), "application/octet-stream")).run()
    next(one for one in app.toggle if one.label.startswith("Skip invalid rows")).set_value(False)
    next(one for one in app.button if one.label == "Import").click().run()
    assert said(app) or app.dataframe


def label_file(place: Place, value: bytes) -> str | None:
    names = ("labels.jsonl", "labels.parquet", "labels.csv")
    found = [place.command("labels", "import", str(place.file(name, value)), "--all-or-nothing") for name in names]
    return found[-1]


def sentences(place: Place, value: bytes | str) -> str | None:
    app = place.page("linguistics/frames", {"mode": "A set of sentences"}, frame_source="upload")
    content = value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")
    return said(app.file_uploader("frame_file").set_value(("sentences.jsonl", content, "text/plain")).run())


def list_of_a_paper(place: Place, value: Any) -> str | None:
    app = place.page("linguistics/frames", {"mode": "A set of sentences"}, frame_source="upload")
    content = json.dumps([value]).encode()
    return said(app.file_uploader("frame_file").set_value(("list.json", content, "application/json")).run())


def rows_of(task: str) -> Callable[[Place, str | bytes], str | None]:
    def use(place: Place, value: str | bytes) -> str | None:
        folder = place.file("train.tsv", value).parent
        options = {"checkpoint": config.ENCODER, "tasks": [task], "split": "train", "data": str(folder), "limit": 4}
        return place.job("statistics", options)

    return use


def own_task(place: Place, value: str | bytes) -> str | None:
    file = place.file("own.csv", value)
    return place.job("statistics", {"checkpoint": config.ENCODER, "tasks": [str(file)], "split": "train", "limit": 4})


def treebank(place: Place, value: str | bytes) -> str | None:
    folder = place.file("x-dev.conllu", value).parent
    (folder / "x-test.conllu").write_bytes((folder / "x-dev.conllu").read_bytes())
    return place.job("dependencies", {"checkpoint": config.ENCODER, "treebank": str(folder)})


def framenet(place: Place, value: str) -> str | None:
    folder = place.folder / f"fndata{next(place._fresh)}"
    found = place.job("index-frames", {"data": str(files.framenet(folder / "fndata-1.7", value))})
    assert "root:" not in str(found)  # nothing of /etc/passwd
    return found


def export(place: Place, value: str) -> str | None:
    folder = place.file("atlas.json", value).parent
    with at(folder.parent / f"new{next(place._fresh)}.duckdb"):
        return place.command("import", str(folder))


def run(place: Place, value: bytes) -> str | None:
    waiting = place.db.path.parent / "runs" / "bad.jsonl"
    waiting.parent.mkdir(exist_ok=True)
    waiting.write_bytes(value)
    try:
        app = place.page("results/jobs")
        assert said(app) is None
        (line,) = [one.value for one in app.markdown if one.value.startswith("**bad")]
        return line.split(" · ", 1)[1].replace("\\", "")
    finally:
        waiting.unlink()


def change_of_classes(place: Place, value: Mapping[str, Any]) -> str | None:
    given = {"kind": "add", "name": "wave", "eye": "A wave.", "colour": "#000000", "key": "6"} | dict(value)
    try:
        labels.change_class(place.db, "bert", labels.ClassChange(**given), annotator="ada", taken=BERT.names)
    except AtlasError as error:
        return str(error)
    return None


def command(place: Place, value: list[str]) -> str | None:
    with at(place.folder / "commands" / "atlas.duckdb"):
        return place.command(*value)


def setting(place: Place, value: dict[str, str]) -> str | None:
    with environment(value):
        return place.command("jobs", "list")


@contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


@contextmanager
def at(database: Path) -> Iterator[None]:
    """Another database for a moment."""
    with environment({"ATLAS_DB": str(database)}):
        yield


class Kind(NamedTuple):
    """Inputs of one kind. door: where they are tried, in words; use: tries one."""

    cases: Mapping[str, Any]
    door: str
    use: Callable[[Place, Any], str | None]


KINDS: dict[str, Kind] = {
    "texts and pairs": Kind(texts.TEXTS, "page Attention maps", text),
    "names of checkpoints": Kind(texts.NAMES, "page Attention maps; check", name_of_a_checkpoint),
    "checkpoints and configs": Kind(folders.FOLDERS, "check FOLDER", checkpoint),
    "query strings": Kind(texts.QUERIES, "every page", query),
    "rows of labels (JSONL)": Kind(files.LABELS, "page Label maps; labels import", label_row),
    "files in place of labels": Kind(files.BYTES, "labels import, three endings", label_file),
    "annotated sentences (JSONL)": Kind(files.FRAMES | files.BYTES, "page Frames, upload", sentences),
    "lists of the papers (JSON)": Kind(files.PAPERS, "page Frames, upload", list_of_a_paper),
    "rows of SST-2 (TSV)": Kind(files.SST2 | files.BYTES, "a job of Head statistics", rows_of("sst2")),
    "rows of STS-B (TSV)": Kind(files.STSB, "a job of Head statistics", rows_of("stsb")),
    "tasks of one's own (CSV)": Kind(files.OWN | files.BYTES, "a job of Head statistics", own_task),
    "treebanks (CoNLL-U)": Kind(files.CONLLU | files.BYTES, "a job of Token to token", treebank),
    "FrameNet releases (XML)": Kind(files.XML, "a job of Frames", framenet),
    "exports": Kind(files.MANIFESTS, "import DIR", export),
    "runs": Kind(files.BYTES, "page Jobs", run),
    "changes of classes": Kind(files.CLASSES, "what page Label maps calls", change_of_classes),
    "commands": Kind(texts.COMMANDS, "python -m core", command),
    "settings": Kind(texts.SETTINGS, "jobs list", setting),
}


@contextmanager
def opened(folder: Path) -> Iterator[Place]:
    """A place under `folder`, with the settings that its doors read."""
    with environment({"ATLAS_DB": str(folder / "store" / "atlas.duckdb"), "ATLAS_WORKERS": "1"}):
        resources.database.clear()
        place = Place(folder)
        try:
            yield place
        finally:
            api.runner(place.db).close()
            place.db.close()
            resources.database.clear()


def tried(place: Place, kind: str, name: str) -> str | None:
    """Try one input; what was said. Fails on a traceback, on anything but one sentence, and on a changed store."""
    if kind == "query strings":
        place.page("annotate/classifier")  # keeps the classifier of a training that has ended meanwhile
        place.page("statistics/shares")  # takes the bundled classifier where there is none
    one, before = KINDS[kind], place.stored()
    found = one.use(place, one.cases[name])
    if found is not None:
        one_sentence(found)
    changed = [table for table, rows in place.stored().items() if rows != before[table]]
    assert not changed, f"the store changed: {changed}"
    return found
