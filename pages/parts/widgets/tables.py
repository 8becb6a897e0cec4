"""Tables with empty cells for missing values, short distinct checkpoint names, and the height of their rows."""

from typing import Any

import streamlit as st

from core import glossary
from pages.parts.shell.messages import BETWEEN_NAMES, short_titles

ROW, MOST = 35, 400  # pixels of a row, and of a table that scrolls


def show_table(rows: Any, *, container: Any = st, height: int = MOST, **options: Any) -> Any:
    """Show rows as `st.dataframe` without row numbers; missing values are empty cells.

    `rows` are records, or a frame with formats (`frame.style`).
    """
    if hasattr(rows, "format_index"):  # a Styler, which is 40 ms to import
        return container.dataframe(rows, hide_index=True, placeholder="", height=height, **options)
    import pandas as pd  # not on a first page, whose context bar has no table yet

    frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(rows)
    if "checkpoint" in frame:  # files to download keep its whole path
        names = frame["checkpoint"]
        shorts = short_titles([name for name in names.dropna().unique() if isinstance(name, str)], BETWEEN_NAMES)
        frame = frame.assign(checkpoint=names.map(lambda name: shorts.get(name, name)))
    fitted = min(height, ROW + options.get("row_height", ROW) * len(frame) + 3)
    # Column names with spaces instead of underscores, with tooltips from the glossary
    names = [name for name in frame.columns if isinstance(name, str)]
    headings = {name: name.replace("_", " ") for name in names if "_" in name}
    meanings = {name: meaning for name in names if (meaning := glossary.column_meaning(name))}
    columns = {
        name: st.column_config.Column(headings.get(name, name), help=meaning) for name, meaning in meanings.items()
    }
    options["column_config"] = (headings | columns) | (options.get("column_config") or {})
    return container.dataframe(frame, hide_index=True, placeholder="", height=fitted, **options)
