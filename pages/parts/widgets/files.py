"""Download of a result: rows, charts in the colours of the light theme, and a self-contained page with both."""

import io
import zipfile
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any, Literal

import altair as alt
import pandas as pd
import streamlit as st

from core.drawing import conversion, theme
from core.drawing.csv import csv_text
from core.drawing.page import Chart, Part, Table, html_page


def show_files(
    rows: pd.DataFrame,
    pictures: Sequence[Any],
    name: str,
    *,
    of: str = "Rows",
    key: str = "",
    page: Callable[[], str] | None = None,
    folded: bool = True,
) -> None:
    """Show a menu of downloads: rows as CSV, figures as SVG and PNG, and a page with both, created on demand.

    name: of the files, without ending. of: what a row is. key: if a page shows several. page: content of the page, if
    it has more than rows and figures. folded: False shows the buttons side by side.
    """
    picture = "Picture" if len(pictures) == 1 else "Pictures"
    downloads: list[tuple[str, str, Callable[[], str | bytes]]] = [(f"{of} (CSV)", "csv", lambda: csv_text(rows))]
    if pictures:
        downloads += [
            (f"{picture} (SVG)", "svg", lambda: exported(together(pictures), "svg")),
            (f"{picture} (PNG)", "png", lambda: exported(together(pictures), "png")),
        ]
    downloads.append(("Page (HTML)", "html", page or (lambda: results_page(rows, pictures, name))))
    menu = (
        st.popover("Save", icon=":material/download:", help="Save the rows and the plots as files.")
        if folded
        else st.container(horizontal=True)
    )
    for label, kind, make in downloads:
        menu.download_button(
            label, make, f"{name}.{kind}", on_click="ignore", key=f"{kind}|{name}|{key}", icon=":material/download:"
        )


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def results_page(rows: pd.DataFrame, pictures: Sequence[Any], name: str) -> str:
    """Return rows and interactive figures as one self-contained page."""
    parts: list[Part] = [Chart(together(pictures).to_dict())] if pictures else []
    table = Table([str(column) for column in rows.columns], rows.to_numpy(dtype=object).tolist(), "Rows")
    return html_page(name, [*parts, table], lead=f"{date.today():%d %B %Y}")


# ---------------------------------------------------------------- charts as files


def together(drawn: Sequence[Any]) -> Any:
    """Combine several charts into one for a file, three per row."""
    return drawn[0] if len(drawn) == 1 else alt.concat(*drawn, columns=3).resolve_scale(color="independent")


def exported(chart: alt.TopLevelMixin, kind: Literal["svg", "png"]) -> bytes:
    """Return the chart as a file in the colours of the light theme; PNG at twice the size."""
    specification = chart.to_dict() | {"background": theme.theme()["light"]["backgroundColor"]}
    specification.setdefault("config", {})["range"] = theme.ranges()["light"]
    if kind == "svg":
        return conversion.svgs_of([specification])[0].encode()
    return conversion.png_of(specification)
