"""Findings that somebody changed: no picture makes the server or a browser ask another site, none stops the app."""

import json
import socket
import threading
import time
from copy import deepcopy

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.attention import Head
from core.drawing import conversion
from core.drawing.page import MapsSource, PackedMaps, grid_of, html_page
from core.errors import InputError
from core.findings import export, pinning
from core.findings.figures import SCHEMA, picture_of_map, pictures_of
from core.store import exchange, findings
from core.store.database import Database
from core.store.findings import Finding, checked_maps, checked_picture, drawable
from tests.drawing.made import random_maps, random_pane
from tests.findings.test_findings import ROWS

HEADS, INTERVALS = pictures_of("statistics", ROWS)
ELSEWHERE = "http://127.0.0.1:9/x"
MARKS = (
    {"type": "image", "url": ELSEWHERE},
    "image",
    {"type": "rect", "href": ELSEWHERE},
    "text",
    {"type": "geoshape"},
)
CHANGES = {
    "an address of data": {"data": {"url": ELSEWHERE}},
    "an address beside the values": {"data": {"values": [], "url": ELSEWHERE}},
    "data by name": {"data": {"name": "elsewhere"}, "datasets": {"elsewhere": []}},
    "generated data": {"data": {"sequence": {"start": 0, "stop": 1e12}}},
    "values as an address": {"data": {"values": ELSEWHERE}},
    "no data": {"data": None},
    "rows in rows": {"data": {"values": [{"head": {"url": ELSEWHERE}}]}},
    "a row that is a text": {"data": {"values": [ELSEWHERE]}},
    "data of a transform": {"transform": [{"lookup": "head", "from": {"data": {"url": ELSEWHERE}, "key": "a"}}]},
    "a program": {"transform": [{"calculate": "sequence(1e12)", "as": "x"}]},
    "a link": {"encoding": {**HEADS["encoding"], "href": {"field": "head"}}},
    "addresses of images": {"encoding": {**HEADS["encoding"], "url": {"field": "head"}}},
    "an expression": {"encoding": {"x": {"field": "head", "axis": {"labelExpr": "datum.label"}}}},
    "a field that is a program": {"encoding": {"x": {"field": "a']+fetch('//x')+datum['a"}}},
    "a layer with an address": {"layer": [{"data": {"url": ELSEWHERE}, "mark": "rect"}]},
    "views beside each other": {"hconcat": [{"data": {"url": ELSEWHERE}, "mark": "rect"}]},
    "options of the page": {"usermeta": {"embedOptions": {"loader": {"baseURL": ELSEWHERE}}}},
    "another language": {"$schema": "https://vega.github.io/schema/vega/v6.json"},
    "a schema elsewhere": {"$schema": ELSEWHERE},
    "settings": {"config": {"background": ELSEWHERE}},
    "parameters": {"params": [{"name": "x", "expr": "1"}]},
    "a width that fills the memory": {"width": 1e9},
    "a step that fills the memory": {"width": {"step": 1e9}},
    "a width that is none": {"height": -1},
    "a long text": {"title": "x" * 100_000},
    "many rows": {"data": {"values": [{"head": 1}] * 20_001}},
    **{f"the mark {mark}": {"mark": mark} for mark in MARKS},
}


def test_what_this_program_draws_may_be_drawn():
    for picture in (HEADS, INTERVALS, picture_of_map(random_maps(2, 3, 6), Head(0, 0))):
        assert checked_picture(picture) == picture
        assert checked_picture(json.loads(json.dumps(picture))) == picture


@pytest.mark.thorough
@pytest.mark.parametrize("change", CHANGES)
def test_a_picture_that_was_changed_is_neither_drawn_nor_converted_nor_imported(change, tmp_path):
    picture = deepcopy(HEADS) | CHANGES[change]
    assert not drawable(picture)
    finding = Finding("run", "t", "n", "a", "c", pictures=(picture,))
    for draws in (export.html, export.svgs):
        with pytest.raises(InputError, match="contain its data"):
            draws([finding])
    with Database(tmp_path / "from.duckdb") as db:
        findings.pin(db, finding)
        assert findings.findings(db)[0].pictures == ()  # what an earlier version took is not shown
        exchange.export_all(db, tmp_path / "out")
    with Database(tmp_path / "into.duckdb") as db:
        with pytest.raises(InputError, match="contain its data"):
            exchange.import_all(db, tmp_path / "out")
        assert findings.findings(db) == []


@pytest.mark.parametrize("picture", [None, [], "x", 1, {}, {"data": []}])
def test_what_is_no_picture_is_not_drawn(picture):
    assert not drawable(picture)


ENDS = (
    "</script><meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<!--<script>",
    "a b",
    "=AAA",
    "é",
    "AA\n",
)


@pytest.mark.thorough
@pytest.mark.parametrize("maps", ENDS)
def test_maps_that_are_not_packed_get_into_no_page_and_no_store(maps, tmp_path):
    finding = Finding("maps", "t", "n", "a", "c", maps=maps)
    with pytest.raises(InputError, match="base64"):
        export.html([finding])
    with Database(tmp_path / "from.duckdb") as db:
        source = MapsSource("atlas-encoder", "a cat")
        grid = grid_of([random_pane(2, 3, 6)], source, head="L2H1")
        pinning.pin_maps(db, grid, source, random_maps(2, 3, 6), pinning.Remark("maps"))
        (honest,) = findings.findings(db)
        assert checked_maps(honest.maps)
        exchange.export_all(db, tmp_path / "out")
    file = tmp_path / "out" / "finding.parquet"
    rows = pq.read_table(file).to_pylist()
    pq.write_table(pa.Table.from_pylist([rows[0] | {"maps": maps}]), file)
    with Database(tmp_path / "into.duckdb") as db, pytest.raises(InputError, match="base64"):
        exchange.import_all(db, tmp_path / "out")


def test_the_template_escapes_maps():
    page = html_page("t", [PackedMaps(ENDS[0])])
    assert "<meta http-equiv=refresh" not in page
    assert "&lt;meta" in page


@pytest.mark.parametrize(
    "chart",
    [
        {"data": {"url": "ADDRESS"}, "mark": "point"},
        {"data": {"values": [{"a": 1}]}, "mark": {"type": "image", "url": "ADDRESS"}},
        {"data": {"values": [{"a": 1}]}, "layer": [{"data": {"url": "ADDRESS"}, "mark": "point"}]},
        {"data": {"values": [{"u": "ADDRESS"}]}, "mark": "image", "encoding": {"url": {"field": "u"}}},
    ],
)
def test_a_conversion_asks_nobody(chart):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.5)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/x.png"
        asked = json.loads(json.dumps(chart).replace("ADDRESS", address))
        for convert in (lambda: conversion.svgs_of([asked]), lambda: conversion.png_of(asked)):
            with pytest.raises(InputError, match="must not contain a URL, a link or an image"):
                convert()
        with pytest.raises(TimeoutError):
            listener.accept()


@pytest.mark.thorough
def test_a_chart_without_end_is_ended_while_others_go_on_and_the_next_is_drawn():
    endless = HEADS | {"data": {"sequence": {"start": 0, "stop": 3e8}}}  # 1e12 ends at once
    turns = []
    stop = threading.Event()

    def count():
        while not stop.wait(0.01):
            turns.append(time.monotonic())

    counting = threading.Thread(target=count)
    counting.start()
    with pytest.raises(InputError, match="2 seconds"):
        conversion.svgs_of([endless], seconds=2.0)
    stop.set()
    counting.join()
    assert len(turns) > 5  # the interpreter's lock was free meanwhile
    (drawn,) = conversion.svgs_of([HEADS])
    assert drawn.startswith("<svg")


def test_a_chart_that_cannot_be_drawn_is_a_sentence():
    with pytest.raises(InputError, match="could not be exported"):
        conversion.svgs_of([{"$schema": SCHEMA, "data": {"values": []}, "mark": 7}])
