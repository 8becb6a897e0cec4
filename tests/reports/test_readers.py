"""Text files as people's programs write them: each kind was reported of a neighbouring project, named beside it."""

import codecs
import csv
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.errors import InputError, StoreError
from core.frames.papers import parse_list, read_list
from core.frames.rows import parse_sentences, read_sentences, write_sentences
from core.labelling.foreign_maps import import_maps
from core.patterns.labelled_files import read_label_file
from core.reading import decoded, lines_of
from core.store.database import Database
from core.store.label_files import import_labels
from core.store.recovery import LockedError, explain
from core.studies.ablation.translation import read_translations
from core.studies.attention.inputs import pair_of
from core.studies.circuits.circuit import columns_of
from core.tasks.conllu import read_conllu, read_part
from core.tasks.glue import task_of
from core.tasks.own import checked, keep_rows, read_own, stretches
from core.tasks.tables import read_given, read_pasted
from core.writing import write_whole


@pytest.fixture
def db(tmp_path):
    with Database(tmp_path / "atlas.duckdb") as database:
        yield database


BODY = "fine,good\nbad,bad\nok,good\n"
MARKS = [codecs.BOM_UTF8, b""]


def written(folder, name, content):
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def as_rows(own):
    return [(row.text, row.pair, own.labels[row.label] if own.labels else str(row.label)) for row in own.rows]


def outcome(read):
    """Rows, or the sentence that refuses them."""
    try:
        return as_rows(read())
    except InputError as error:
        return str(error)


def in_terminal(folder, name, content):
    return outcome(lambda: read_own(str(written(folder, name, content))))


def uploaded(folder, name, content):
    def read():
        kept = keep_rows(decoded(content, name), folder / "kept", "list", learned=True, source=name)
        return read_own(str(kept))

    return outcome(read)


# ---------------------------------------------------------------- UPLOAD: the page and the terminal


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        # r-geoflow/geoflow#109: semicolons
        ("\ufeffsentence;label\r\nEin schöner Tag;gut\r\nEin Tag;schlecht\r\n" + "a;gut\r\n" * 3, "Ein schöner Tag"),
        ("sep=;\nsentence;label\nA day, a night;good\nNo;bad\n" + "a;good\n" * 3, "A day, a night"),
        # deepset-ai/haystack#1072: blank lines inside quotation marks
        ('sentence,label\n"One.\n\nTwo.",good\n' + BODY + BODY, "One.\n\nTwo."),
        # tablib#143: a line separator is no end of a line
        ("sentence,label\nA line\u2028and its end,good\n" + BODY + BODY, "A line\u2028and its end"),
        ('{"text": "A {brace}, 1", "label": 1.0}\n' + '{"text": "b", "label": 0}\n{"text": "c", "label": 1}\n' * 2,
         "A {brace}, 1"),
        ("sentence,label\nUn café,good\n".encode("utf-16") + (BODY + BODY).encode("utf-16-le"), "Un café"),
        ("sentence,label\nUn cafe,good\n".encode("utf-16-be") + (BODY + BODY).encode("utf-16-be"), "Un cafe"),
        ("sentence,label,,\na,good,,\nb,bad,,\nc,good,,\nd,bad,,\ne,good,,\n", "a"),  # `label;;` of a spreadsheet
        ("\n,sentence,label\n0,a,good\n1,b,bad\n2,c,good\n3,d,bad\n4,e,good\n", "a"),  # pandas' index
    ],
)  # fmt: skip
def test_a_table_is_the_same_rows_however_it_comes(tmp_path, content, expected):
    content = content if isinstance(content, bytes) else content.encode()
    name = "rows.jsonl" if content.startswith(b"{") else "rows.csv"
    rows = in_terminal(tmp_path, name, content)
    assert rows[0][0] == expected
    assert len(rows) in (5, 7)
    assert uploaded(tmp_path, name, content) == rows
    assert outcome(lambda: checked(read_given(decoded(content, "x")))) == rows


@pytest.mark.parametrize(
    ("content", "said"),
    [
        # Safiullah-Rahu/CSV-AI#8: a comma that nothing quotes
        (
            f"sentence,label\nI liked it, really,good\n{BODY}",
            "more columns than the first line of the file; row 1 of {name} has more",
        ),
        # lida#61: cp1252
        (f"sentence,label\nUn caf\xe9,good\n{BODY}".encode("cp1252"), "byte 22 (0xE9, line 2) is not UTF-8"),
        ("sentence,label\na,b\n".encode("utf-16") + b"\x00", "byte 41 (0x00, line 3) is not UTF-16"),
        (b"sentence,label\na\0b,c\n", "byte 17 (0x00, line 2) is not text"),
        (b"PK\x03\x04\x14\0\x06\0\x08\0\0\0", "rows.csv must be a text file; it is a ZIP archive or an Excel file"),
        (b"\x1f\x8b\x08\0abcdefg", "rows.csv must be a text file; it is compressed by gzip"),
        # sqlitebrowser#3284: a quotation mark that is never closed
        (f'sentence,label\na,b\n"Never closed,good\n{BODY}', "row that starts in line 3 of {name} is invalid"),
        (f"sentence,label\n,good\n{BODY}", "row 1 of {name} has no sentence"),
        (f"sentence,label\nx,\n{BODY}", "row 1 of {name} has no label"),
        ('{"sentence": "a"}\n[1]\n', "line 2 of {name} is a list"),
        ('{"sentence": "a"}\n{"sentence": "\\ud800"}\n', "line 2 of {name} contains an unpaired surrogate"),
    ],
)
def test_what_is_no_table_is_refused_in_the_same_sentence(tmp_path, content, said):
    content = content if isinstance(content, bytes) else content.encode()
    name = "rows.jsonl" if content.startswith(b"{") else "rows.csv"
    told = in_terminal(tmp_path, name, content)
    assert said.format(name=name) in told
    assert uploaded(tmp_path, name, content) == told
    if "byte" not in said and "text file" not in said:
        pasted = outcome(lambda: checked(read_given(content.decode())))
        assert pasted == told.replace(name, "the pasted text")


@pytest.mark.parametrize(
    "first", ["Text, please.", "Question", "A sentence.", "The text; and a label", "Label this text"]
)
def test_a_first_sentence_is_no_heading(first):  # streamlit#2608
    assert [row.text for row in read_pasted(f"{first}\nAnother one.\n")] == [first, "Another one."]


@pytest.mark.parametrize("first", ["sentence", "text,tag", "Sentence;Label", "id\ttext", "premise,hypothesis,label"])
def test_a_heading_is_no_sentence(first):
    assert len(read_given(f"{first}\n{first.replace('e', 'x')}\n").rows) == 1


def test_a_label_that_is_all_that_a_table_has_is_not_mistaken_for_a_list(tmp_path):
    assert "has none (it has" in in_terminal(tmp_path, "rows.csv", b"A first sentence.\nAnother, and more.\n")
    assert "has none (it has" in uploaded(tmp_path, "rows.csv", b"A first sentence.\nAnother, and more.\n")


# ---------------------------------------------------------------- TSVQUOTE (pytorch/text#349, #612), PIPE


def test_quotation_marks_are_text_in_a_table_with_tabs(tmp_path):
    table = 'sentence\tlabel\n"Why so\tgood\nthe best"\tbad\n"both"\tgood\nan "inner" one\tbad\n5" wide\tgood\n'
    rows = in_terminal(tmp_path, "rows.tsv", table.encode())
    assert [text for text, _, _ in rows] == ['"Why so', 'the best"', '"both"', 'an "inner" one', '5" wide']
    assert uploaded(tmp_path, "rows.tsv", table.encode()) == rows


def test_a_table_with_tabs_and_quoted_names_has_quoted_cells(tmp_path):
    table = '"sentence"\t"label"\n"a\tb"\t"x"\n"say ""no"""\t"y"\n' + '"c"\t"x"\n' * 3
    assert [text for text, _, _ in in_terminal(tmp_path, "rows.tsv", table.encode())][:2] == ["a\tb", 'say "no"']


def test_a_cell_with_tabs_that_is_quoted_as_in_csv_is_refused_by_its_row(tmp_path):
    table = 'sentence\tlabel\na\tx\n"say ""no"""\ty\n'
    assert "row 2 of rows.tsv has a quoted cell" in in_terminal(tmp_path, "rows.tsv", table.encode())


def test_a_bar_in_a_sentence_of_a_file_makes_no_pair():
    from pages.parts.widgets.own_rows import inputs_of

    class File:
        name = "rows.csv"

        def getvalue(self):
            return b"sentence\nHome | About us\nplain\n"

    assert inputs_of(File()) == [("Home | About us", None), ("plain", None)]
    assert pair_of("one | two") == ("one", "two")
    with pytest.raises(InputError, match="has 3 parts"):
        pair_of("Home | About | Contact")


# ---------------------------------------------------------------- BOM (OpenCTI#122, UD_French-GSD#13), LINESEP

WORDS = "1\tDogs\tdog\tNOUN\tNNS\t_\t2\tnsubj\t_\t_\n2\tbark\tbark\tVERB\tVBP\t_\t0\troot\t_\t_\n\n"
FRAME = {"id": "a", "text": "The cook\u2028was angry about the soup.", "target": [[13, 18]]}
FRAME["elements"] = [{"name": "Topic", "spans": [[19, 33]]}]
PAPER = [{"sentence": "The dog barks .", "target": "barks", "fes": ["The dog"]}]
READERS = {
    "conllu": (lambda file: read_conllu(file)[0].words[0].text, WORDS, "Dogs"),
    "frames.jsonl": (lambda file: read_sentences(file).sentences[0].id, json.dumps(FRAME), "a"),
    "papers.json": (lambda file: read_list(file).sentences[0].target_text, json.dumps(PAPER), "barks"),
    "translation.tsv": (lambda file: read_translations(file)[0].source, "un\u2028deux\tone two\n", "un\u2028deux"),
    "foils.tsv": (lambda file: columns_of(str(file))[0][0], "a\u2028b\tc\n", "a\u2028b"),
    "story.txt": (lambda file: stretches(str(file))[0], "Once upon a time.", "Once upon a time."),
    "labels.jsonl": (
        lambda file: read_label_file(file, ["vertical"], "bert")[0].key,
        '{"key": "m\\u00e9", "class": "vertical"}\n', "mé",
    ),
}  # fmt: skip


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("kind", READERS)
def test_every_reader_takes_a_byte_order_mark_and_utf_16(tmp_path, kind, encoding):
    read, text, expected = READERS[kind]
    assert read(written(tmp_path, kind, text.encode(encoding))) == expected


@pytest.mark.parametrize("kind", READERS)
def test_every_reader_names_a_byte_that_is_no_text(tmp_path, kind):
    read, text, _ = READERS[kind]
    with pytest.raises(InputError, match=rf"byte {len(text.encode()) + 3} \(0xE9, line \d+\) is not UTF-8"):
        read(written(tmp_path, kind, text.encode() + b"x e\xe9e"[1:]))


def test_what_our_own_writer_writes_is_read_again():  # wbolster/jsonlines#53, datalad#3523
    sentences = parse_sentences(json.dumps(FRAME)).sentences
    assert parse_sentences(write_sentences(sentences), source="rows").sentences == sentences
    two = json.dumps(dict(FRAME, id="b"), ensure_ascii=False) + "\n" + write_sentences(sentences)
    assert len(parse_sentences(two).sentences) == 2


@pytest.mark.parametrize("mark", MARKS)
def test_metadata_and_labels_take_a_byte_order_mark(db, tmp_path, mark):
    np.savez(tmp_path / "maps.npz", m0=np.full((2, 2), 0.5, np.float32))
    facts = written(tmp_path, "facts.jsonl", mark + b'{"key": "m0", "checkpoint": "c", "layer": 0.0, "head": 1}\n')
    assert import_maps(db, tmp_path / "maps.npz", facts) == (1, 1)
    map_id = db.cursor().execute("SELECT map_id FROM attention_map").fetchone()[0]
    row = json.dumps({"map_id": map_id, "class": "vertical", "class_set": "bert", "annotator": "ada"})
    done = import_labels(db, written(tmp_path, "labels.jsonl", mark + row.encode()))
    assert (done.new, done.refused) == (1, [])


# ---------------------------------------------------------------- SIGN (happy-transformer#248), PANDAS


@pytest.mark.parametrize("labels", [("-1", "1"), ("-1", "0", "1"), ("-", "--"), ("-", "+"), ("1-2", "12")])
def test_a_sign_tells_labels_apart(tmp_path, labels):
    lines = [f"text {k},{labels[k % len(labels)]}" for k in range(30)]
    own = read_own(str(written(tmp_path, "rows.csv", "\n".join(["sentence,label", *lines]))))
    assert own.labels == tuple(sorted(labels))
    from core.tasks.glue import label_order

    assert label_order(task_of(str(own.path)), dict(enumerate(reversed(own.labels)))) == tuple(
        reversed(range(len(labels)))
    )


@pytest.mark.parametrize("labels", [("not ok", "Not-OK"), ("label_1", "label 1"), ("-1", "\N{MINUS SIGN}1")])
def test_labels_that_only_spelling_tells_apart_are_refused(tmp_path, labels):
    lines = [f"text {k},{labels[k % 2]}" for k in range(10)]
    with pytest.raises(InputError, match="Use the same spelling"):
        read_own(str(written(tmp_path, "rows.csv", "\n".join(["sentence,label", *lines]))))


def test_whole_numbers_that_pandas_made_floats_stay_whole(db, tmp_path):
    np.savez(tmp_path / "maps.npz", m0=np.full((2, 2), 0.5, np.float32))
    facts = written(tmp_path, "facts.jsonl", '{"key": "m0", "checkpoint": "c", "layer": 0, "head": 1}\n')
    import_maps(db, tmp_path / "maps.npz", facts)
    map_id = db.cursor().execute("SELECT map_id FROM attention_map").fetchone()[0]
    label = {"map_id": map_id, "class": "vertical", "class_set": "bert", "kind": "label", "batch": "b"}
    rows = [
        label | {"annotator": name, "sequence": k, "pass": p}
        for k, (name, p) in enumerate([("ada", 1), ("ben", None)], 7)
    ]
    frame = pd.DataFrame(rows)
    assert frame["pass"].dtype == float  # one is missing
    frame.to_parquet(tmp_path / "labels.parquet")
    done = import_labels(db, tmp_path / "labels.parquet")
    assert (done.new, done.refused) == (2, [])
    frame.astype({"sequence": float}).to_parquet(tmp_path / "floats.parquet")
    again = import_labels(db, tmp_path / "floats.parquet")
    assert (again.new, again.already, again.refused) == (0, 2, [])


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_what_pandas_misses_is_absent_in_labels(db, tmp_path, ending):
    """Nullable integers, NaN in columns of numbers and texts, categories and an index."""
    np.savez(tmp_path / "maps.npz", m0=np.full((2, 2), 0.5, np.float32))
    facts = written(tmp_path, "facts.jsonl", '{"key": "m0", "checkpoint": "c", "layer": 0, "head": 1, "task": NaN}\n')
    assert import_maps(db, tmp_path / "maps.npz", facts) == (1, 1)
    map_id = db.cursor().execute("SELECT map_id FROM attention_map").fetchone()[0]
    frame = pd.DataFrame(
        {
            "map_id": map_id,
            "class": pd.Categorical(["vertical", "diagonal"]),
            "class_set": "bert",
            "annotator": ["ada", "ben"],
            "pass": pd.array([1, None], dtype="Int64"),
            "probability": [0.5, np.nan],
            "note": [np.nan, "sure"],
            "happened": pd.to_datetime(["2026-01-31T12:00:00Z", None]),
        },
        index=[7, 9],
    )
    file = tmp_path / f"labels.{ending}"
    if ending == "parquet":
        frame.to_parquet(file)
    else:  # as a script writes what frame.to_dict gives: NaN, which JSON does not have
        rows = frame.assign(happened=frame["happened"].astype(str).where(frame["happened"].notna(), np.nan))
        rows = [{k: None if v is pd.NA else v for k, v in row.items()} for row in rows.to_dict("records")]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        assert "NaN" in file.read_text()
    done = import_labels(db, file)
    assert (done.new, done.refused) == (2, [])
    kept = db.cursor().execute("SELECT class, probability, note FROM label_event ORDER BY annotator").fetchall()
    assert kept == [("vertical", 0.5, None), ("diagonal", None, "sure")]


def test_a_sentence_or_label_that_is_missing_is_not_the_word_nan(tmp_path):
    lines = [json.dumps({"sentence": f"row {k}", "label": k % 2}) for k in range(9)]
    for line in ('{"sentence": "a", "label": NaN}', '{"sentence": NaN, "label": 1}'):
        content = "\n".join([*lines, line]).encode()
        said = in_terminal(tmp_path, "rows.jsonl", content)
        assert "row 10" in said, said
        assert said == uploaded(tmp_path, "rows.jsonl", content)


@pytest.mark.parametrize("cell", ['["A", "cat"]', '{"text": "A cat"}'])
def test_a_list_of_words_is_no_sentence(tmp_path, cell):
    """Its brackets and commas were read as text; a column that nobody reads may have lists."""
    lines = [json.dumps({"sentence": f"row {k}", "label": k % 2, "tokens": ["row"]}) for k in range(9)]
    assert "row 0" in str(in_terminal(tmp_path, "rows.jsonl", "\n".join(lines)))
    said = in_terminal(tmp_path, "lists.jsonl", "\n".join([*lines, f'{{"sentence": {cell}, "label": 1}}']))
    assert '"sentence" in line 10 of lists.jsonl is a list or an object' in said


def test_keys_that_differ_in_case_alone_are_refused(tmp_path):
    said = in_terminal(tmp_path, "rows.jsonl", '{"sentence": "a", "Sentence": "b", "label": 1}\n' * 9)
    assert "Column names must differ in more than case" in said


def test_whole_numbers_as_floats_are_the_labels_of_a_checkpoint(tmp_path):
    from core.tasks.glue import label_order

    rows = "".join(f"text {k},{k % 2}.0\n" for k in range(20))
    own = read_own(str(written(tmp_path, "rows.csv", f",sentence,label\n{rows}".replace("text", "0,text"))))
    assert label_order(task_of(str(own.path)), {0: "1", 1: "0"}) == (1, 0)
    mixed = f"sentence,label\n{rows}a,1\n"
    with pytest.raises(InputError, match="Use the same spelling"):
        read_own(str(written(tmp_path, "mixed.csv", mixed)))


def test_frames_that_pandas_misses_are_absent():
    rows = "\n".join(json.dumps(dict(FRAME, id=float("nan"), frame=float("nan"))) for _ in range(2))
    read = parse_sentences(rows)
    assert [(sentence.id, sentence.frame) for sentence in read.sentences] == [("1", None), ("2", None)]


@pytest.mark.parametrize("length", [2.0, 2])
def test_lengths_of_label_files_may_be_floats(tmp_path, length):
    line = json.dumps({"key": "a", "class": "vertical", "length": length, "head": float("nan")})
    (label,) = read_label_file(written(tmp_path, "labels.jsonl", line), ["vertical"], "bert")
    assert (label.length, label.head) == (2, None)


# ---------------------------------------------------------------- NFS (duckdb#13017, #5651, trino#25802)


@pytest.mark.parametrize(
    "reason",
    [
        "File locks are not supported for this file system", "Conflicting lock is held in PID 0.",
        # what F_GETLK gives where there is no lock service: ENOLCK, ENOSYS, EINVAL, ESTALE, EIO
        "No locks available.", "Function not implemented.", "Invalid argument.", "Stale file handle.",
        "Input/output error.",
    ],
)  # fmt: skip
def test_a_folder_without_locks_is_said_to_have_none(reason):
    error = explain(
        OSError(f'IO Error: Could not set lock on file "/net/a.duckdb": {reason} See also'), Path("/net/a.duckdb")
    )
    assert type(error) is StoreError
    assert "must be on a file system with file locks" in str(error)
    for held, who in (("python (PID 7)", "process 7 (python)"), ("PID 7", "another process")):
        locked = explain(OSError(f"Could not set lock on file: Conflicting lock is held in {held}."), Path("a"))
        assert isinstance(locked, LockedError)
        assert f"{who} has it open" in str(locked)


def test_a_file_is_replaced_in_a_folder_that_keeps_no_permissions(tmp_path, monkeypatch):  # SMB refuses chmod
    def refuse(self, mode):
        raise PermissionError(1, "Operation not permitted", str(self))

    file = written(tmp_path, "scores.csv", "before")
    monkeypatch.setattr(Path, "chmod", refuse)
    write_whole(file, "after")
    assert file.read_text() == "after"


# ---------------------------------------------------------------- small ones


@pytest.mark.parametrize("comment", ["# text =", "# text = ", "# text =  "])
def test_an_empty_text_comment_says_nothing(tmp_path, comment):
    file = written(tmp_path, "x-dev.conllu", f"{comment}\n{WORDS}")
    assert read_conllu(file)[0].text == "Dogs bark"


@pytest.mark.parametrize("content", ["", "# a comment alone\n\n"])
def test_a_split_without_sentences_is_one_sentence(tmp_path, content):
    written(tmp_path, "x-dev.conllu", content)
    with pytest.raises(InputError, match="must have at least one sentence"):
        read_part(str(tmp_path), "dev")


def test_rows_whose_id_is_null_are_numbered():
    rows = "\n".join(json.dumps(dict(FRAME, id=None)) for _ in range(2))
    assert [sentence.id for sentence in parse_sentences(rows).sentences] == ["1", "2"]


def test_a_row_of_a_file_is_counted_in_the_file(tmp_path):
    from core.commands.maps import MapsOptions, _input

    table = "sentence,label\n" + "".join(f"row {k},{'ab'[k % 2]}\n" for k in range(1, 11))
    file = str(written(tmp_path, "rows.csv", table))
    assert _input(MapsOptions("c", tmp_path / "o", task=file, row=2)) == ("row 2", None)
    with pytest.raises(InputError, match="from 1 to 10"):
        _input(MapsOptions("c", tmp_path / "o", task=file, row=11))


def test_a_list_of_the_paper_is_read_from_text_with_its_mark():
    assert parse_list(decoded(codecs.BOM_UTF8 + json.dumps(PAPER).encode(), "x"), "x").sentences[0].target == ((8, 13),)


@pytest.mark.parametrize("text", ["a\nb\n", "a\r\nb", "a\rb\r", "a\nb"])
def test_lines_end_in_three_ways(text):
    assert lines_of(text) == ["a", "b"]


# ---------------------------------------------------------------- the same bytes through upload, paste and terminal

PIECES = [
    *[
        "sentence",
        "label",
        "sentence2",
        "split",
        "text",
        "score",
        "a",
        "train",
        "dev",
        "1",
        "-1",
        "é",
        ",",
        ";",
        "|",
        "'",
        "{",
        "}",
        ":",
    ]
]
PIECES += ["\u2028", "\x85", "\t", '"', '""', "\n", "\r\n", "\r", " ", "\ufeff", "\0", "\x0b", "\x1c"]
HEADINGS = ["", "sentence\n", "sentence,label\n", "Sentence;label;;\r\n", "sentence\tlabel\n"]
HEADINGS += ['"sentence"\t"label"\n', "text,sentence2,score\n", "sep=;\nsentence;split\n", '{"sentence": "a"}\n']
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252", "latin-1"]


@st.composite
def contents(draw):
    """A file: a heading, pieces that readers stumble over, and an encoding; or any bytes."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=60))
    if draw(st.booleans()):  # a table as a program writes it
        cells = st.lists(st.sampled_from(PIECES[:-3]), min_size=1, max_size=4).map("".join)
        stream = io.StringIO()
        writer = csv.writer(stream, delimiter=draw(st.sampled_from(",;")))
        writer.writerows([("sentence", "label"), *((draw(cells), "ab"[k % 2]) for k in range(draw(st.integers(5, 8))))])
        return stream.getvalue().encode(draw(st.sampled_from(ENCODINGS[:4])), errors="ignore")
    rows = draw(st.lists(st.lists(st.sampled_from(PIECES), max_size=8).map("".join), max_size=8))
    text = draw(st.sampled_from(HEADINGS)) + draw(st.sampled_from(["\n", "\r\n", "\r"])).join(rows)
    return text.encode(draw(st.sampled_from(ENCODINGS)), errors="ignore")


@pytest.mark.thorough
@given(content=contents(), ending=st.sampled_from(["csv", "tsv", "jsonl"]))
@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_the_same_bytes_are_the_same_rows_or_the_same_error(tmp_path, content, ending):
    name = f"rows.{ending}"
    (tmp_path / name).unlink(missing_ok=True)
    told = in_terminal(tmp_path, name, content)
    assert uploaded(tmp_path, name, content) == told
    try:
        text = decoded(content, name)
    except InputError:
        return  # nobody can paste it
    table = outcome(lambda: checked(read_given(text)))
    try:
        form = read_given(text).form
    except InputError:
        form = "list"  # one of whose lines is no sentence
    if isinstance(told, list) and (ending == "jsonl") == text.lstrip().startswith("{"):
        assert table == told or form == "list"  # a first line that may be a sentence, as "Text"
    if isinstance(table, list) and form != "list" and isinstance(told, str):
        assert ending == "jsonl" or form == "JSON lines"  # the name says another form


@given(text=st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_a_list_that_is_pasted_or_uploaded_is_the_same_sentences(tmp_path, text):
    def sentences(read):
        try:
            return [tuple(pasted) for pasted in read()]
        except InputError as error:
            return str(error).replace("list.txt", "the pasted text")

    if "\0" not in text and not text.startswith("\ufeff"):
        content = text.encode()
        assert sentences(lambda: read_pasted(decoded(content, "list.txt"), "list.txt")) == sentences(
            lambda: read_pasted(text)
        )
