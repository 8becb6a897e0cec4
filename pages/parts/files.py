"""What a result can be kept as."""

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from pages.parts import charts


def show_files(rows: pd.DataFrame, pictures: Sequence[Any], name: str, *, of: str = "Rows", key: str = "") -> None:
    """Buttons: the rows as CSV, the pictures together as SVG and PNG; each is made when it is asked for.

    name: of the files, without ending. of: what a row is, for the button. key: set where a page shows several.
    """
    picture = "Picture" if len(pictures) == 1 else "Pictures"
    made: list[tuple[str, str, Callable[[], str | bytes]]] = [(f"{of} (CSV)", "csv", lambda: rows.to_csv(index=False))]
    if pictures:
        made += [
            (f"{picture} ({kind.upper()})", kind, lambda kind=kind: charts.exported(charts.together(pictures), kind))
            for kind in ("svg", "png")
        ]
    for place, (label, kind, make) in zip(st.columns([1, 1, 1, 3]), made, strict=False):
        place.download_button(
            label, make, f"{name}.{kind}", on_click="ignore", key=f"{kind}|{name}|{key}", icon=":material/download:"
        )
