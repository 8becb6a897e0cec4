"""Results that ship, damaged or changed, and a notebook's widget told harm by its browser: sentences, no script."""

import json
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core import config
from core.store import shipped_record
from tests.robustness.doors import refused

RUN = {
    "run": "r1",
    "study": "shares",
    "title": "t",
    "options": "{}",
    "row_ids": "[]",
    "created": "2026-01-01",
    "code_version": "1",
    "checkpoint": "c",
    "rows": 1,
}
ROW = {"run": "r1", "position": 0, "body": '{"share": 0.5}'}


@pytest.fixture
def record(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "RECORD", tmp_path)
    keep(tmp_path, "run.parquet", RUN)
    keep(tmp_path, "row.parquet", ROW)
    (tmp_path / "about.json").write_text('{"note": "n"}')
    shipped_record._runs.cache_clear()
    yield tmp_path
    shipped_record._runs.cache_clear()


def keep(folder, name, row):
    pq.write_table(pa.table({key: [value] for key, value in row.items()}), folder / name)


def read():
    shipped_record.about()
    shipped_record.runs()
    return shipped_record.run_rows("r1")


def test_a_record_is_read(record):
    assert read() == [{"share": 0.5}]


def bytes_of(name, change):
    return lambda folder: (folder / name).write_bytes(change((folder / name).read_bytes()))


def changed(name, row):
    return lambda folder: keep(folder, name, row)


def without(name, row, column):
    return changed(name, {key: value for key, value in row.items() if key != column})


TAMPERED = {
    f"{name}, {what}": bytes_of(name, change)
    for name in ("run.parquet", "row.parquet", "about.json")
    for what, change in {
        "empty": lambda _: b"",
        "cut": lambda data: data[: len(data) // 2],
        "noise": lambda _: b"\xff" * 500,
        "HTML": lambda _: b"<html>404</html>",
        "NUL": lambda data: b"\0" * len(data),
    }.items()
}
TAMPERED |= {
    f"runs without {name}": without("run.parquet", RUN, name) for name in ("run", "study", "created", "options")
}
TAMPERED |= {f"rows without {name}": without("row.parquet", ROW, name) for name in ROW}
TAMPERED |= {
    "a row that is no JSON": changed("row.parquet", ROW | {"body": "{"}),
    "a row that is a list": changed("row.parquet", ROW | {"body": "[1]"}),
    "a row that is a number": changed("row.parquet", ROW | {"body": "7"}),
    "a row nested 5,000 deep": changed("row.parquet", ROW | {"body": "[" * 5_000}),
    "a row of bytes": changed("row.parquet", ROW | {"body": b"\xff\xfe"}),
    "a row of nothing": changed("row.parquet", ROW | {"body": None}),
    "rows of another file": changed("row.parquet", RUN),
    "a note nested 5,000 deep": lambda folder: (folder / "about.json").write_text('{"a":' * 5_000),
    "a note that is a list": lambda folder: (folder / "about.json").write_text("[1]"),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_a_record_that_was_damaged_or_changed_is_a_sentence(record, name):
    TAMPERED[name](record)
    assert "Get the folder of bundled results from the repository again" in refused(read)


def test_rows_that_were_altered_since_are_not_shown_as_the_record(record):
    about = {"note": "n", "form": shipped_record.FORM}
    about["sha256"] = {name: shipped_record.hash_of(record / name) for name in ("run.parquet", "row.parquet")}
    (record / "about.json").write_text(json.dumps(about))
    assert read() == [{"share": 0.5}]
    keep(record, "row.parquet", ROW | {"body": '{"share": 0.7}'})
    assert "the SHA-256 of their file row.parquet differs" in refused(read)
    keep(record, "row.parquet", ROW)
    assert read() == [{"share": 0.5}]
    keep(record, "run.parquet", RUN | {"task": "rte"})
    assert "the SHA-256 of their file run.parquet differs" in refused(read)


@pytest.mark.parametrize("form", [shipped_record.FORM + 1, 0, "2", None, [1]])
def test_a_record_of_another_version_is_a_sentence(record, form):
    (record / "about.json").write_text(json.dumps({"note": "n", "form": form}))
    assert "Get the folder of bundled results that belongs to this version" in refused(read)


@pytest.mark.parametrize("name", ["run.parquet", "row.parquet"])
def test_a_record_without_a_table_is_a_sentence(record, name):
    (record / name).unlink()
    assert f"their file {name} is missing" in refused(read)


def test_what_ships_is_as_it_was_made():
    """The record in the project has the hashes that it names."""
    known = json.loads((config.PROJECT / "data" / "record" / "about.json").read_text(encoding="utf-8"))
    folder = config.PROJECT / "data" / "record"
    assert known["form"] == shipped_record.FORM
    assert known["sha256"] == {name: shipped_record.hash_of(folder / name) for name in ("run.parquet", "row.parquet")}
    assert sum(file.stat().st_size for file in folder.iterdir()) <= 6_600_000


# ---------------------------------------------------------------- the widget


@pytest.fixture(scope="module")
def widget():
    from core import notebook

    return notebook.open(config.ENCODER).show("A </script><script>alert(1)</script> sentence.", height=300)


SCRIPT = "</script><script>alert(1)</script>"


@pytest.mark.parametrize(
    "view",
    [
        {"head": SCRIPT},
        {SCRIPT: 1},
        {"head": None},
        {"head": "L99H99"},
        {"head": ["L1H1"]},
        {"head": {"a": [SCRIPT]}},
        {"head": float("nan")},
        {"head": "\ud800"},
        {"head": "L1H1", "lines": [[[[SCRIPT]]]]},
        {"\u2028": "\u2028<!--<script>"},
    ],
    ids=str,
)
def test_a_widget_whose_browser_says_harm_saves_a_page_that_runs_no_script(widget, tmp_path, view):
    widget.view = view
    page = widget.save(tmp_path / "maps.html").read_text(encoding="utf-8")
    assert SCRIPT not in page
    assert "<script>alert(1)" not in page
    assert "<!--<script>" not in page


class Elements(HTMLParser):
    """The elements of a page with the names of their attributes, and every value of an attribute."""

    def __init__(self, page):
        super().__init__()
        self.found, self.values = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, sorted(name for name, _ in attrs)))
        self.values += [value or "" for _, value in attrs]


@pytest.mark.parametrize(
    "text",
    [
        SCRIPT, "<img src=https://evil.example/x onerror=alert(1)>", '"><a href="javascript:alert(1)">x</a>',
        "![c](https://evil.example/c.png)", "\x1b]8;;https://evil.example\x07x", "a\u202egnp.exe", "<!--", "]]>",
        "</style><style>@import url(https://evil.example)</style>", "\ud800", "\x00", "${alert(1)}",
        "' onload='alert(1)",
    ],
    ids=ascii,
)  # fmt: skip
def test_names_and_tokens_that_mean_harm_are_text_in_a_saved_widget(tmp_path, text):
    from core.drawing.page import MapsSource
    from core.drawing.panes import Pane
    from core.drawing.payload import as_bytes
    from core.notebook.showing import MapsWidget

    def saved(name):
        pane = Pane(title=name, layers=1, heads=1, tokens=(name, name), weights=as_bytes(np.full((1, 1, 2, 2), 0.5)))
        source = MapsSource(name, name, name, name, part=name, revision=name).with_command(name)
        widget = MapsWidget([pane], source, head="L1H1", note=name)
        return Elements(widget.save(tmp_path / "maps.html").read_text(encoding="utf-8"))

    page = saved(text)
    assert page.found == saved("name").found
    assert not [value for value in page.values if value.startswith(("javascript:", "https://evil"))]


@pytest.mark.parametrize("view", ["L1H1", 7, ["head"], None])
def test_a_view_is_a_record_of_choices(widget, view):
    import traitlets

    with pytest.raises(traitlets.TraitError):
        widget.view = view
