"""Rows as CSV that a spreadsheet opens and does not run, and that steers no terminal."""

import re

import pandas as pd

RUN = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")  # a cell that starts so is a formula to some spreadsheet
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # which can erase lines of a terminal


def csv_text(rows: pd.DataFrame) -> str:
    """`rows` as CSV, without their index. A text that a spreadsheet would run gets an apostrophe before it, which
    spreadsheets do not show; numbers stay as they are."""
    cells = rows.copy(deep=False)
    cells.columns = pd.Index([_harmless(name) for name in cells.columns])
    for place, kind in enumerate(cells.dtypes):
        if not pd.api.types.is_numeric_dtype(kind):
            cells.isetitem(place, cells.iloc[:, place].map(_harmless))
    return cells.to_csv(index=False)


def _harmless(value: object) -> object:
    if not isinstance(value, str):
        return value
    text = value.replace("\r\n", "\n").replace("\r", "\n")  # a bare return would begin a row of its own
    text = _CONTROLS.sub(lambda found: ascii(found[0])[1:-1], text)
    return f"'{text}" if value.lstrip(" ").startswith(RUN) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
