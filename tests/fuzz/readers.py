"""What is fuzzed: each takes bytes, and may refuse them with an AtlasError, and with nothing else."""

import atexit
import json
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from core.errors import AtlasError, InputError

FOLDER = Path(tempfile.mkdtemp(prefix="fuzz-"))


def _file(data: bytes, name: str = "x.jsonl") -> Path:
    file = FOLDER / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(data)
    return file


def frame_rows(data: bytes) -> None:
    from core.frames.rows import read_sentences

    read_sentences(_file(data))


def paper_lists(data: bytes) -> None:
    from core.frames.papers import read_list

    read_list(_file(data))


def conllu(data: bytes) -> None:
    from core.tasks.conllu import read_conllu

    read_conllu(_file(data))


def task_rows(data: bytes) -> None:
    from core.tasks.glue import read_rows

    _file(b"sentence\tlabel\n" + data, "SST-2/train.tsv")
    read_rows("sst2", folder=FOLDER)


def run_files(data: bytes) -> None:
    from core.store.exchange import read_run

    read_run(_file(data))


def label_events(data: bytes) -> None:
    from core.store.label_checks import checked_event, checked_map

    found = json.loads(data)
    for check in (checked_event, checked_map):
        try:
            check(found if isinstance(found, dict) else {})
        except InputError:
            continue


def label_rows(data: bytes) -> None:
    from core.store import label_files

    db = _store()
    report = label_files.import_labels(db, _file(data))
    assert report.new + report.already + len({number for number, _ in report.refused}) <= report.rows
    assert all("\n" not in reason for _, reason in report.refused)


@cache
def _store():
    from core.store import labels
    from core.store.database import Database
    from tests.store.labelling import a_map

    db = Database(FOLDER / "atlas.duckdb")
    labels.store_maps(db, [a_map("m1")])
    atexit.register(_store.cache_clear)
    return db


def framenet_index(data: bytes) -> None:
    from core.frames.release import open_release

    (_release() / "frameIndex.xml").write_bytes(data)
    open_release(_release())


def framenet_frame(data: bytes) -> None:
    from core.frames.release import open_release

    (_release() / "frameIndex.xml").write_text(INDEX)
    (_release() / "frame" / "Motion.xml").write_bytes(data)
    open_release(_release()).frame("Motion")


@cache
def _release() -> Path:
    from tests.robustness import files

    return files.framenet(FOLDER / "fndata-1.7", INDEX)


def text_alignment(data: bytes) -> None:
    """Every piece of an encoded text names characters of it, in order, and is found by its own span."""
    text = data.decode("utf-8", "replace")
    encoding = _encoder().encode(text)
    for place, span in enumerate(encoding.offsets):
        if span is not None and span[0] < span[1]:
            assert 0 <= span[0] < span[1] <= len(text)
            assert place in encoding.pieces(*span)


@cache
def _encoder():
    from core import config
    from core.models.opening import open_checkpoint

    return open_checkpoint(config.ENCODER)


FRAMES = {"text": "Paul ran.", "target": [[5, 8]], "elements": [{"name": "A", "spans": [[0, 4]]}]}
PAPER = [{"sentence": "Paul ran .", "target": "ran", "fes": ["Paul"]}]
REPLICATION = [{"id": "1", "sentence": "Paul ran .", "links": [{"earlier": "Paul", "later": "ran"}]}]
TREE = "# text = Paul ran\n1\tPaul\tPaul\tPROPN\tNNP\t_\t2\tnsubj\t_\t_\n2\tran\trun\tVERB\tVBD\t_\t0\troot\t_\t_\n\n"
RUN = {"atlas_run": 1, "study": "s", "title": "t", "provenance": {"run": "r", "options": {}}}
EVENT = {
    "kind": "label",
    "batch": "b",
    "sequence": 1,
    "class_set": "bert",
    "map_id": "m",
    "annotator": "a",
    "class": "x",
}
LABEL = {"map_id": "m1", "class": "vertical", "class_set": "bert", "annotator": "ada"}
INDEX = (
    '<?xml version="1.0"?><frameIndex xmlns="http://framenet.icsi.berkeley.edu">'
    '<frame status="Finished" name="Motion" mDate="1" ID="7" cDate="1"/></frameIndex>'
)
FRAME = (
    '<?xml version="1.0"?><frame name="Motion" ID="7" xmlns="http://framenet.icsi.berkeley.edu"><definition>A.'
    '</definition><FE coreType="Core" ID="8" abbrev="A" name="Theme"><definition>B.</definition></FE>'
    '<FEcoreSet><memberFE ID="8" name="Theme"/></FEcoreSet></frame>'
)
READERS: dict[str, tuple[Callable[[bytes], None], list[bytes]]] = {
    "frame_rows": (frame_rows, [json.dumps(FRAMES).encode()]),
    "paper_lists": (paper_lists, [json.dumps(PAPER).encode(), json.dumps(REPLICATION).encode()]),
    "conllu": (conllu, [TREE.encode()]),
    "task_rows": (task_rows, [b"good\t1\nbad\t0\n"]),
    "run_files": (run_files, [json.dumps(RUN).encode() + b'\n{"a": 1}\n']),
    "label_events": (label_events, [json.dumps(EVENT).encode()]),
    "label_rows": (
        label_rows,
        [json.dumps(LABEL).encode() + b"\n", json.dumps(LABEL | EVENT | {"map_id": "m1"}).encode()],
    ),
    "framenet_index": (framenet_index, [INDEX.encode()]),
    "framenet_frame": (framenet_frame, [FRAME.encode()]),
    "text_alignment": (text_alignment, ["Paul\u2019s na\u00efve caf\u00e9 \u732b".encode()]),
}


def tried(name: str, data: bytes) -> None:
    """Hand `data` to a reader; its refusals are fine, anything else is a finding."""
    read, _ = READERS[name]
    try:
        read(data)
    except AtlasError as error:
        if "\n" in str(error):
            raise ValueError("a refusal is one line") from error
    except (ValueError, RecursionError):
        if name != "label_events":  # its JSON is parsed here, not there
            raise
