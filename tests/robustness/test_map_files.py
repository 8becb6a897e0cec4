"""Archives of maps and their lines of facts that mean harm: one sentence, nothing brought in, nothing unpacked."""

import io
import json
import struct
import zipfile

import numpy as np
import pytest

from core.labelling import foreign_maps
from core.labelling.foreign_maps import import_maps
from core.patterns.labelled_files import read_map_file
from core.store import labels
from core.store.database import Database
from tests.robustness.doors import refused

FACTS = {"key": "a", "checkpoint": "mine", "layer": 0, "head": 0}


def array(length=4):
    stream = io.BytesIO()
    np.save(stream, np.full((length, length), 1 / length))
    return stream.getvalue()


def archive(*members, how=zipfile.ZIP_STORED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", how) as made:
        for name, content in members:
            made.writestr(name, content)
    return stream.getvalue()


def flagged(data, flag=1, *, method=None):
    """The same archive, its entries said to be encrypted, or packed by another method."""
    data = bytearray(data)
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = data.find(mark)
        while place >= 0:
            struct.pack_into("<H", data, place + at, flag)
            if method is not None:
                struct.pack_into("<H", data, place + at + 2, method)
            place = data.find(mark, place + 1)
    return bytes(data)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def twice(*names):
    return archive(*((name, array()) for name in names))


GOOD = archive(("a.npy", array()))
ARCHIVES = {
    "encrypted": flagged(GOOD),
    "one of two encrypted": GOOD[:0] + flagged(archive(("a.npy", array()), ("b.npy", array()))),
    "strong encryption": flagged(GOOD, 0x41),
    "an unknown method": flagged(GOOD, 0, method=97),
    "deflated in name only": flagged(GOOD, 0, method=8),
    "bzip2 in name only": flagged(GOOD, 0, method=12),
    "lzma in name only": flagged(GOOD, 0, method=14),
    "two of one name": twice("a.npy", "a.npy"),
    "two of one name, one without its ending": twice("a.npy", "a"),
    "a name that leads out": archive(("../a", b"x")),
    "no array": archive(("a.npy", b"no array")),
    "an array cut short": archive(("a.npy", array()[:100])),
    "a header without an end": archive(("a.npy", b"\x93NUMPY\x01\x00\xff\xff{")),
    "cut": GOOD[:-30],
    "its directory cut": GOOD[:-60] + GOOD[-22:],
    "nothing": b"",
    "a byte turned": GOOD[:60] + bytes([GOOD[60] ^ 1]) + GOOD[61:],
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", ARCHIVES)
def test_archives(tmp_path, name):
    file = tmp_path / "maps.npz"
    file.write_bytes(ARCHIVES[name])
    refused(lambda: read_map_file(file))


@pytest.fixture(scope="module")
def db(tmp_path_factory):
    database = Database(tmp_path_factory.mktemp("maps") / "atlas.duckdb")
    yield database
    database.close()


LINE = json.dumps(FACTS)
LINES = {
    "UTF-16 cut in a character": LINE.encode("utf-16")[:-1],
    "UTF-16 whose mark is that of the other byte order": b"\xfe\xff" + LINE.encode("utf-16-le"),
    "UTF-16 without a mark, cut in a character": LINE.encode("utf-16-le")[:-1],
    "UTF-16 with half a surrogate pair": LINE.replace("mine", "\ud83d").encode("utf-16", "surrogatepass"),
    "UTF-32 cut in a character": LINE.encode("utf-32")[:-1],
    "UTF-32 without a mark": LINE.encode("utf-32-le"),
    "Latin-1": LINE.replace("mine", "mün").encode("latin-1"),
    "half a character": LINE.encode()[:-1] + b"\xc3",
    "NUL": b"\0" * 100,
    "nested 5,000 deep": b'{"key": ' + b"[" * 5_000,
    "half a surrogate": LINE.replace("mine", "\\ud800").encode(),
    "no line": b"",
    "twice": f"{LINE}\n{LINE}".encode(),
    "a list": b"[1]",
    "more facts": json.dumps(FACTS | {"other": 1}).encode(),
    "a layer of -1": json.dumps(FACTS | {"layer": -1}).encode(),
    "a head of 1e9": json.dumps(FACTS | {"head": 1e9}).encode(),
    "a name that steers": json.dumps(FACTS | {"checkpoint": "a\u202eb"}).encode(),
    "tokens of another number": json.dumps(FACTS | {"tokens": ["a"]}).encode(),
}


@pytest.mark.parametrize("name", LINES)
def test_lines_of_facts(db, tmp_path, name):
    maps, facts = tmp_path / "maps.npz", tmp_path / "facts.jsonl"
    maps.write_bytes(GOOD)
    facts.write_bytes(LINES[name])
    refused(lambda: import_maps(db, maps, facts))
    assert labels.map_facts(db).empty


def test_a_file_of_facts_that_cannot_be_read_is_refused_with_the_reason(db, tmp_path, monkeypatch):
    (tmp_path / "maps.npz").write_bytes(GOOD)
    (tmp_path / "facts.jsonl").write_text(LINE)
    told = refused(lambda: import_maps(db, tmp_path / "maps.npz", tmp_path / "none.jsonl"))
    assert "none.jsonl cannot be used (No such file or directory)" in told
    assert "(Is a directory)" in refused(lambda: import_maps(db, tmp_path / "maps.npz", tmp_path))
    monkeypatch.setattr(foreign_maps, "MOST_BYTES", 10)
    assert "(larger than 0 MB)" in refused(lambda: import_maps(db, tmp_path / "maps.npz", tmp_path / "facts.jsonl"))
    assert labels.map_facts(db).empty


def test_of_two_bad_files_the_maps_are_named(db, tmp_path):
    (tmp_path / "maps.npz").write_bytes(b"no archive")
    assert "none.jsonl" not in refused(lambda: import_maps(db, tmp_path / "maps.npz", tmp_path / "none.jsonl"))


def test_a_good_pair_comes_in(tmp_path):
    maps, facts = tmp_path / "maps.npz", tmp_path / "facts.jsonl"
    maps.write_bytes(GOOD)
    facts.write_bytes(LINE.encode())
    with Database(tmp_path / "atlas.duckdb") as database:
        assert import_maps(database, maps, facts) == (1, 1)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_facts_in_another_unicode_encoding_are_those_in_utf_8(tmp_path, encoding):
    maps, facts = tmp_path / "maps.npz", tmp_path / "facts.jsonl"
    maps.write_bytes(GOOD)
    line = json.dumps(FACTS | {"checkpoint": "mün🙂", "tokens": ["a", "é", "–", "d"]}, ensure_ascii=False)
    with Database(tmp_path / "atlas.duckdb") as database:
        facts.write_bytes(line.encode())
        assert import_maps(database, maps, facts) == (1, 1)
        facts.write_bytes(line.encode(encoding))
        assert import_maps(database, maps, facts) == (1, 0)  # the same map: its id is a hash of its facts
        assert list(labels.map_facts(database)["checkpoint"]) == ["mün🙂"]
