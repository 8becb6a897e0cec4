"""Pictures of maps with captions: maps side by side, with their labels, and the codebook of a class set."""

import base64
from collections.abc import Sequence
from html import escape

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.codebook.classes import ClassSet
from core.codebook.registry import border_maps, borders, drawn_map
from core.drawing.conversion import map_picture, png_bytes
from core.patterns import agreement
from core.patterns.raster import from_float16
from core.patterns.snapshot import current_labels
from core.store import labels
from core.store.database import Database
from pages.parts.shell.messages import plain, short_names

EXEMPLARS, EXEMPLAR, SMALL = 2, 150, 100  # maps a class in the codebook, and their pixels in both layouts


def pictures(db: Database, names: list[str], captions: list[str] | None = None, *, width: int = 160) -> None:
    """Show maps side by side, on the scale 0 to 1, with checkpoint and head of each map and a caption."""
    rows = labels.maps_of(db, names)
    models = short_names([row["checkpoint"] for row in rows])
    heads = [f"{models[row['checkpoint']]} L{row['layer'] + 1}H{row['head'] + 1}" for row in rows]
    if captions:
        heads = [f"{head}: {caption}" for head, caption in zip(heads, captions, strict=True)]
    show_pictures([map_picture(from_float16(row["weights"], row["length"])) for row in rows], heads, width=width)


def show_pictures(pixels: Sequence[np.ndarray], captions: Sequence[str], *, width: int) -> None:
    """Show images of maps (RGB, 0 to 255) side by side, with captions as alternative text."""
    figures = "".join(
        f'<figure style="margin:0;width:{width}px">'
        f'<img alt="Attention map: {escape(caption, quote=True)}" width="{width}" '
        f'src="data:image/png;base64,{base64.b64encode(png_bytes(drawn)).decode()}">'
        f'<figcaption style="font-size:0.8rem;opacity:0.86">{escape(caption)}</figcaption></figure>'
        for drawn, caption in zip(pixels, captions, strict=True)
    )
    st.html(f'<div style="display:flex;flex-wrap:wrap;gap:0.6rem">{figures}</div>')


def show_disputed(db: Database, standing: pd.DataFrame, maps: list[str], *, named: bool = True) -> None:
    """Show these maps with the labels of all annotators, with their names if `named`, otherwise with numbers of
    votes."""
    opinions = agreement.opinions(standing[standing["map_id"].isin(maps)]).loc[maps]
    votes = [row.dropna() for _, row in opinions.iterrows()]
    captions = [
        "; ".join(f"{who}: {class_name}" for who, class_name in (row if named else row.value_counts()).items())
        for row in votes
    ]
    pictures(db, maps, captions)


def codebook(db: Database, classes: ClassSet, container: DeltaGenerator) -> None:
    """Show the codebook behind a button; its maps are loaded when it is opened."""
    drawer = container.popover(
        "Codebook", icon=":material/menu_book:", width="stretch", key="codebook", on_change="rerun"
    )
    if drawer.open:
        with drawer:
            show_codebook(db, classes)


def show_codebook(db: Database, classes: ClassSet, *, columns: bool = True) -> None:
    """Show each class with its description and two labelled maps, or synthetic maps until there are any."""
    standing = current_labels(db, classes.name)
    for member in classes.classes:
        text, maps = st.columns(2) if columns else (st.container(), st.container())
        key = f"{plain(member.key)} · " if member.key else ""
        text.markdown(f"**{key}{plain(member.title)}** \n\n{plain(member.eye)}")
        drawn_maps = [drawn_map(classes.name, member.name, length=24, seed=k) for k in range(EXEMPLARS)]
        map_ids = list(standing.loc[standing["class"] == member.name, "map_id"].drop_duplicates())[:EXEMPLARS]
        with maps:
            if len(map_ids) == EXEMPLARS:
                pictures(db, map_ids, width=EXEMPLAR if columns else SMALL)
            elif pixels := [map_picture(weights) for weights in drawn_maps if weights is not None]:
                captions = ["synthetic map"] * EXEMPLARS
                show_pictures(pixels, captions, width=EXEMPLAR if columns else SMALL)
            else:
                st.caption("No example is shown, because fewer than two maps have this class.")
    blank = classes.present(classes.codebook.blank) if classes.codebook else None
    belong = f"; their class is {plain(classes.named(blank).title)}" if blank else ""
    st.caption(
        "Nearly uniform maps (largest weight below 0.1) look blank on the scale from 0 to 1. With a separate colour "
        f"scale for each map, they look striped{belong}. Rows are queries and columns are keys."
    )
    show_borders(classes, width=112 if columns else 72)


def show_borders(classes: ClassSet, *, width: int) -> None:
    """Show maps close to the borders between classes that are often confused, with the rules that separate them."""
    for border in borders(classes.name):
        if not set(border.classes) <= set(classes.names):
            continue  # somebody merged or deleted one of them
        low, high = (classes.named(name).title for name in border.classes)
        st.markdown(
            f"**{plain(low)} or {plain(high)}: {plain(border.name.replace('-', ' '))}** \n\n{plain(border.rule_text)}"
        )
        for name, title in zip(border.classes, (low, high), strict=True):
            maps = [border_map for border_map in border_maps(border.name) if border_map.class_name == name]
            drawn = [map_picture(border_map.weights, own_scale=border.own_scale) for border_map in maps]
            show_pictures(drawn, [f"{title}: {border.caption(border_map.value)}" for border_map in maps], width=width)
