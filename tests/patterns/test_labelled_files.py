"""Maps and labels from elsewhere: what cannot be used is refused in one sentence that names it."""

import json
import zipfile

import numpy as np
import pytest

from core.codebook.registry import BERT
from core.errors import InputError
from core.patterns import labelled_files
from core.patterns.labelled_files import matched, read_label_file, read_map_file

UNIFORM = np.full((4, 4), 0.25, dtype=np.float32)


def saved(tmp_path, **maps):
    file = tmp_path / "maps.npz"
    np.savez(file, **maps)
    return file


def lines(tmp_path, *rows):
    file = tmp_path / "labels.jsonl"
    file.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return file


def test_maps_of_every_float_are_read_and_rows_sum_to_one_exactly(tmp_path):
    near = np.full((3, 3), 0.3311, dtype=np.float64)
    found = read_map_file(saved(tmp_path, a=UNIFORM, b=near))
    assert list(found) == ["a", "b"]
    assert all(one.dtype == np.float32 and np.allclose(one.sum(1), 1, atol=1e-6) for one in found.values())


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (np.full((4, 4), 0.2), "sums to 0.8"),
        (np.full((3, 4), 0.25), "square"),
        (np.full(4, 0.25), "square"),
        (np.zeros((0, 0)), "square"),
        (np.eye(4, dtype=np.int64), "floats"),
        (np.full((4, 4), np.nan), "from 0 to 1"),
        (np.array([[2.0, -1.0], [0.5, 0.5]]), "from 0 to 1"),
        (np.array([[{"a": 1}, 2], [3, 4]], dtype=object), "pickled"),
    ],
)
def test_a_map_that_is_none_is_named(tmp_path, bad, said):
    with pytest.raises(InputError, match=said) as refused:
        read_map_file(saved(tmp_path, fine=UNIFORM, wrong=bad))
    assert "wrong" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x05\x06" + b"\0" * 8, b"PK\x03\x04" + b"x" * 400])
def test_what_is_no_archive_is_said(tmp_path, content):
    file = tmp_path / "maps.npz"
    file.write_bytes(content)
    with pytest.raises(InputError, match="archive"):
        read_map_file(file)


def test_a_damaged_archive_and_a_missing_file_are_said(tmp_path):
    file = saved(tmp_path, a=UNIFORM)
    whole = bytearray(file.read_bytes())
    whole[60:90] = b"\xff" * 30
    file.write_bytes(whole)
    with pytest.raises(InputError):
        read_map_file(file)
    with pytest.raises(InputError, match="cannot be opened"):
        read_map_file(tmp_path / "none.npz")


def test_an_archive_of_a_million_entries_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    file = tmp_path / "maps.npz"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.npy", b"")
    whole = bytearray(file.read_bytes())
    at = whole.rfind(b"PK\x05\x06")
    whole[at + 8 : at + 12] = b"\xff\xff\xff\xff"  # as many as the field holds, which a zip64 of a million says too
    file.write_bytes(whole)
    monkeypatch.setattr(zipfile.ZipFile, "__init__", lambda *_: pytest.fail("the archive was opened"))
    with pytest.raises(InputError, match="at most 50,000 maps"):
        read_map_file(file)


def test_an_archive_with_more_entries_than_its_end_says_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(labelled_files, "MOST_MAPS", 1)
    file = tmp_path / "maps.npz"
    np.savez(file, a=UNIFORM, b=UNIFORM)
    whole = bytearray(file.read_bytes())
    at = whole.rfind(b"PK\x05\x06")
    whole[at + 8 : at + 12] = b"\x01\x00\x01\x00"
    file.write_bytes(whole)
    with pytest.raises(InputError, match=r"at most 1 maps; maps\.npz has 2"):
        read_map_file(file)


def test_entries_that_unpack_to_more_than_memory_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(labelled_files, "MOST_BYTES", 1000)
    file = tmp_path / "maps.npz"
    np.savez_compressed(file, a=np.zeros((64, 64), dtype=np.float32))
    with pytest.raises(InputError, match="Split the file"):
        read_map_file(file)


def test_a_header_that_promises_more_than_there_is_is_refused(tmp_path):
    file = tmp_path / "maps.npz"
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000, 1000000), }"
    header += b" " * (117 - len(header)) + b"\n"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(InputError):
        read_map_file(file)


def test_labels_are_matched_with_their_maps(tmp_path):
    file = lines(tmp_path, {"key": "b", "class": "Block"}, "", {"key": "a", "class": "vertical", "length": 4})
    labels = read_label_file(file, BERT.names, "bert")
    assert [(one.key, one.name, one.length) for one in labels] == [("b", "block", None), ("a", "vertical", 4)]
    found = matched({"a": UNIFORM, "b": np.eye(2, dtype=np.float32)}, labels)
    assert [len(one) for one in found] == [2, 4]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("{", "line 2"),
        ("[1]", "must be a JSON object"),
        ('{"key": "b"}', "class"),
        ({"key": "b", "class": "zigzag"}, "zigzag"),
        ({"key": "b", "class": "overall", "class_set": "gpt2"}, "gpt2"),
        ({"key": "a", "class": "block"}, "again"),
        ({"key": "b", "class": "block", "length": "four"}, "length"),
    ],
)
def test_a_line_that_is_no_label_is_named(tmp_path, row, said):
    with pytest.raises(InputError, match=said):
        read_label_file(lines(tmp_path, {"key": "a", "class": "vertical"}, row), BERT.names, "bert")


def test_labels_without_their_map_or_of_another_length_are_refused(tmp_path):
    maps = {"a": UNIFORM}
    with pytest.raises(InputError, match="must belong to a map in the map file; there is no map called 'b'"):
        matched(maps, read_label_file(lines(tmp_path, {"key": "b", "class": "block"}), BERT.names, "bert"))
    with pytest.raises(InputError, match="4 tokens, but the label file has length 5"):
        matched(maps, read_label_file(lines(tmp_path, {"key": "a", "class": "block", "length": 5}), BERT.names, "bert"))
    with pytest.raises(InputError, match="at least one"):
        read_label_file(lines(tmp_path, ""), BERT.names, "bert")
    with pytest.raises(InputError, match=r"none\.jsonl cannot be read \(No such file"):
        read_label_file(tmp_path / "none.jsonl", BERT.names, "bert")
