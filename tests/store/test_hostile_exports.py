"""Exports that somebody changed: nothing of them is stored, and one sentence says why."""

import contextlib
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.errors import AtlasError, InputError
from core.store import exchange, labels, runs
from core.store.database import Database
from tests.spread import one_in
from tests.store.filling import contents, fill_every_table
from tests.store.labelling import a_map, event

NAN = np.full((6, 6), np.nan, "<f2").tobytes()
BIDI = "ada\u202egnp"
INJECTED = 'event") SELECT "event" FROM incoming; CREATE OR REPLACE VIEW undone AS SELECT event FROM label_event; --'


@pytest.fixture
def export(honest, tmp_path):
    """A copy of it, to be changed."""
    return Path(shutil.copytree(honest, tmp_path / "out"))


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    """An export of a database with maps and labels, as anybody may hand it on."""
    tmp_path = tmp_path_factory.mktemp("honest")
    with Database(tmp_path / "atlas.duckdb") as db:
        labels.store_maps(db, [a_map("m1"), a_map("m2", head=1)])
        labels.record_events(db, [event(1), event(2, "m2", "diagonal")])
        run = runs.record_run(db, "statistics", {}, runs.Provenance("atlas-encoder", "abc"))
        runs.store_rows(db, run, [{"statistic": "s", "layer": 0, "head": 0, "value": 0.5}])
        labels.change_class(db, "bert", labels.ClassChange("add", "wavy", eye="waves"), annotator="ada")
        exchange.export_all(db, tmp_path / "out")
    return tmp_path / "out"


def changed(folder, table, **columns):
    """Put values into the first row of a table of the export."""
    file = folder / f"{table}.parquet"
    rows = pq.read_table(file).to_pylist()
    rows[0] |= columns
    pq.write_table(pa.Table.from_pylist(rows), file)


def renamed(folder, table, **names):
    file = folder / f"{table}.parquet"
    old = pq.read_table(file)
    pq.write_table(old.rename_columns([names.get(name, name) for name in old.column_names]), file)


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """A database that stays empty: every import into it is refused."""
    with Database(tmp_path_factory.mktemp("empty") / "atlas.duckdb") as db:
        yield db, exchange.tables(db), views(db)


def views(db):
    return db.cursor().execute("SELECT sql FROM duckdb_views() WHERE NOT internal ORDER BY view_name").fetchall()


def refused(folder, empty):
    """The sentence that an import ends in, once nothing of it is found stored."""
    db, tables, views_before = empty
    with pytest.raises(AtlasError) as error:
        exchange.import_all(db, folder)
    for table in tables:
        assert db.cursor().execute(f'SELECT * FROM "{table}" LIMIT 1').fetchall() == []  # noqa: S608
    assert views(db) == views_before
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.thorough
def test_an_honest_export_comes_in(export, tmp_path):
    with Database(tmp_path / "other.duckdb") as db:
        assert exchange.import_all(db, export)["label_event"] == 2
        assert labels.decided(db, "bert", "ada") == {"m1": "vertical", "m2": "diagonal"}


def test_the_name_of_a_column_never_becomes_a_statement(export, empty):
    renamed(export, "label_event", event=INJECTED)
    assert "may have each column of the same table in the database once" in refused(export, empty)


@pytest.mark.thorough
@pytest.mark.parametrize("table", ["label_event", "attention_map", "run", "study_row", "head_score", "class_event"])
@pytest.mark.parametrize("name", one_in(4, [INJECTED, "", '"', "no_such", "EVENT\0"]))
def test_columns_that_a_table_has_not(export, empty, table, name):
    first = pq.read_schema(export / f"{table}.parquet").names[0]
    renamed(export, table, **{first: name})
    assert "may have each column of the same table in the database once" in refused(export, empty)


def test_a_column_that_comes_twice(export, empty):
    renamed(export, "label_event", note="class")
    assert "is unknown or duplicated" in refused(export, empty)


MAPS = [
    {"weights": b"12345"}, {"weights": NAN}, {"length": -1}, {"length": 10**9}, {"length": 0}, {"length": 5},
    {"layer": -1}, {"layer": 2**31 - 1}, {"head": 10**6}, {"maximum": float("nan")}, {"maximum": 7.0},
    {"tokens": "[]"}, {"tokens": "not JSON"}, {"tokens": "[" * 5000}, {"tokens": '{"a": 1}'}, {"separators": "[6]"},
    {"separators": "[-1]"}, {"map_id": BIDI}, {"map_id": ""}, {"checkpoint": BIDI}, {"row_id": "x" * 201},
    {"weights": (np.ones((6, 6), "<f2") * 9).tobytes()}, {"map_id": "gone"},
]  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("columns", MAPS, ids=lambda row: "-".join(f"{k}={str(v)[:12]!a}" for k, v in row.items()))
def test_maps_that_are_none(export, empty, columns):
    changed(export, "attention_map", **columns)
    refused(export, empty)


EVENTS = [
    {"class": "unheard-of"},
    {"class_set": "no-set"},
    {"annotator": BIDI},
    {"annotator": ""},
    {"kind": "drop"},
    {"seconds": float("nan")},
    {"seconds": -1.0},
    {"probability": 2.0},
    {"sequence": -1},
    {"pass": 0},
    {"event": "tab:9"},
    {"map_id": "m9"},
    {"scale": "huge"},
    {"queue_order": "first"},
    {"note": "n" * 4001},
    {"ordinal": -5},
    {"ordinal": 2**62},
    {"annotator": "a\0b"},
    {"annotator": "x" * 201},
    {"class": None},
    {"seconds": float("inf")},
    {"annotator": "e\u0301"},
]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "columns", one_in(3, EVENTS), ids=lambda row: "-".join(f"{k}={str(v)[:12]!a}" for k, v in row.items())
)
def test_label_events_that_are_none(export, empty, columns):
    changed(export, "label_event", **columns)
    refused(export, empty)


OTHERS = [
    ("class_event", {"class": BIDI}),
    ("class_event", {"colour": "url(x)"}),
    (
        "class_event",
        {"kind": "drop"},
        "The kind of a class change must be one of set, add, rename, merge, delete; got 'drop'. Export the data again.",
    ),
    ("class_event", {"key": "Enter"}),
    ("run", {"options": "[1]"}, "run.options must be a JSON object; got '[1]'. Export the data again."),
    ("run", {"options": "no"}, "run.options must be JSON; got 'no'. Export the data again."),
    ("run", {"run": BIDI}),
    ("run", {"row_ids": "5"}, "run.row_ids must be a JSON list; got '5'. Export the data again."),
    ("study_row", {"body": "[]"}),
    ("study_row", {"body": "{"}),
    ("head_score", {"layer": 10**9}),
    ("head_score", {"head": -1}, "head_score.head must be from 0 to 9999; got -1. Export the data again."),
    ("head_score", {"layer": "x"}),
    ("run", {"created": "yesterday"}),
]


@pytest.mark.thorough
@pytest.mark.parametrize("wrong", [
    {"value": "0.5"}, {"value": [1]}, {"value": {}}, {"value": True}, {"value": float("nan")}, {"low": "x"},
    {"p": float("inf")}, {"layer": 0.5}, {"layer": "0"}, {"head": [0]}, {"statistic": 5}, {"statistic": ["s"]},
    {"checkpoint": {"a": 1}}, {"task": 3}, {"kind": []}, {"feature": 1.5}, {"q": "1"}, {"baseline": []},
], ids=str)  # fmt: skip
def test_bodies_whose_fields_have_another_type(export, empty, wrong):
    body = {"statistic": "s", "layer": 0, "head": 0, "value": 0.5} | wrong
    changed(export, "study_row", body=json.dumps(body))
    refused(export, empty)


@pytest.mark.thorough
@pytest.mark.parametrize(("table", "columns", "said"), [(*case, "")[:3] for case in OTHERS], ids=str)
def test_other_rows_that_are_none(export, empty, table, columns, said):
    changed(export, table, **columns)
    assert said in refused(export, empty)


def test_a_label_of_no_class_that_was_taken_back_does_not_hold_an_export_up(export, tmp_path):
    file = export / "label_event.parquet"
    rows = pq.read_table(file).to_pylist()
    undo = rows[0] | {"event": "tab:3", "sequence": 3, "kind": "undo", "undoes": "tab:1", "class": None, "ordinal": 3}
    rows[0] |= {"class": "unheard-of"}
    pq.write_table(pa.Table.from_pylist([*rows, undo], schema=pq.read_schema(file)), file)
    with Database(tmp_path / "other.duckdb") as db:
        exchange.import_all(db, export)
        assert labels.decided(db, "bert", "ada") == {"m2": "diagonal"}


MANIFESTS = ["", "[]", "[" * 100_000, '{"tables": 5}', '{"tables": {}, "migrations": [[]]}', "\0"]


@pytest.mark.parametrize(
    "text", [*MANIFESTS, '{"tables": {"undone": 1}, "migrations": []}'], ids=lambda text: ascii(text[:30])
)
def test_a_manifest_that_is_none(export, empty, text):
    (export / exchange.MANIFEST).write_text(text, encoding="utf-8")
    refused(export, empty)


@pytest.mark.thorough
@pytest.mark.parametrize("table", ["attention_map", "label_event", "run"])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.99])
def test_a_table_that_was_cut(export, empty, table, share):
    file = export / f"{table}.parquet"
    data = file.read_bytes()
    file.write_bytes(data[: int(len(data) * share)])
    refused(export, empty)


@pytest.mark.thorough
@pytest.mark.parametrize("place", one_in(3, range(0, 100, 7)))
def test_flipped_bytes_never_end_in_a_traceback_and_never_in_half_a_table(export, tmp_path, place):
    file = export / "label_event.parquet"
    data = bytearray(file.read_bytes())
    at = len(data) * place // 100
    data[at : at + 8] = bytes(255 - byte for byte in data[at : at + 8])
    file.write_bytes(bytes(data))
    with Database(tmp_path / "other.duckdb") as db:
        with contextlib.suppress(AtlasError):  # anything else is a traceback
            exchange.import_all(db, export)
        assert len(labels.all_events(db)) in (0, 2)


@pytest.mark.parametrize(
    "row",
    [{"layer": 10**9, "head": 0}, {"layer": -1, "head": 0}, {"layer": 0, "head": 10**9}, {"layer": 0.5e10, "head": 1}],
    ids=str,
)
def test_a_runs_file_with_heads_that_no_model_has(tmp_path, row):
    heading = {"atlas_run": 1, "study": "s", "title": "t", "provenance": {"run": "r", "options": {}}}
    file = tmp_path / "bad.jsonl"
    file.write_text(json.dumps(heading) + "\n" + json.dumps({"statistic": "x", "value": 1.0} | row))
    with Database(tmp_path / "atlas.duckdb") as db, pytest.raises(InputError, match="must be from 0"):
        exchange.import_run(db, file)


@pytest.mark.thorough
def test_what_every_table_may_hold_comes_back(tmp_path):
    with Database(tmp_path / "atlas.duckdb") as db:
        names = fill_every_table(db)
        exchange.export_all(db, tmp_path / "all")
        before = contents(db, names)
    with Database(tmp_path / "other.duckdb") as other:
        exchange.import_all(other, tmp_path / "all")
        # They say that they came in, or belong to jobs with work left: tests/store/test_exchange.py
        apart = {"run", "hypothesis_event", "finding", "classifier", "job_row", "job_outcome"}
        after = contents(other, names)
        assert all(after[name] == before[name] for name in before.keys() - apart)


@pytest.mark.parametrize(
    ("field", "value", "wanted"),
    [("layer", 1.5, "a whole number"), ("head", "2", "a whole number"), ("value", "0.5", "a number"),
     ("n", None, None), ("p", True, "a number"), ("name", 5, "text"), ("what", ["w"], "text"), ("layer", 2.0, None),
     ("q", None, None), ("other", ["w"], None)],
)  # fmt: skip
def test_the_type_of_a_field_that_does_not_fit_is_said(field, value, wanted):
    row = {"what": "w", field: value}
    if wanted is None:
        exchange.check_fields(row, "a row")
    else:
        with pytest.raises(InputError, match=f"The field {field} must be {wanted}; got "):
            exchange.check_fields(row, "a row")
