"""CSV without formulas that spreadsheets would execute, and without control characters for terminals."""

import re

import pandas as pd

RUN = (
    "=",
    "+",
    "-",
    "@",
    "\t",
    "\r",
    "＝",
    "＋",
    "－",
    "＠",
)  # some spreadsheet treats a cell that starts with one of these as a formula
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # can erase lines of a terminal


def csv_text(rows: pd.DataFrame) -> str:
    """Convert a table to CSV. Cells that a spreadsheet would execute as formulas get a leading apostrophe."""
    cells = rows.copy(deep=False)
    cells.columns = pd.Index([_harmless(name) for name in cells.columns])
    for place, kind in enumerate(cells.dtypes):
        if not pd.api.types.is_numeric_dtype(kind):
            cells.isetitem(place, cells.iloc[:, place].map(_harmless))
    return cells.to_csv(index=False)


def _harmless(value: object) -> object:
    if not isinstance(value, str):
        return value
    text = value.replace("\r\n", "\n").replace("\r", "\n")  # a carriage return would start a new row
    text = _CONTROLS.sub(lambda found: ascii(found[0])[1:-1], text)
    return f"'{text}" if value.lstrip(" ").startswith(RUN) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
