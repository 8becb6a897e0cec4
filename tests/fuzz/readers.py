"""What is fuzzed: each takes bytes, and may refuse them with an AtlasError, and with nothing else."""

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
    from core.frames.rows import read_rows

    read_rows(_file(data))


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
READERS: dict[str, tuple[Callable[[bytes], None], list[bytes]]] = {
    "frame_rows": (frame_rows, [json.dumps(FRAMES).encode()]),
    "paper_lists": (paper_lists, [json.dumps(PAPER).encode(), json.dumps(REPLICATION).encode()]),
    "conllu": (conllu, [TREE.encode()]),
    "task_rows": (task_rows, [b"good\t1\nbad\t0\n"]),
    "run_files": (run_files, [json.dumps(RUN).encode() + b'\n{"a": 1}\n']),
    "label_events": (label_events, [json.dumps(EVENT).encode()]),
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
