"""The gallery of a head: small maps of the inputs where a score is highest, at its deciles, and lowest."""

import numpy as np
import pandas as pd
import streamlit as st

from core import capture, studies
from core.atlas.head_page import Gallery, Shelved
from core.attention import Head
from core.studies.attention import norms, statistics
from core.studies.score_records import find_score
from core.tasks.glue import drawn
from pages.parts.atlas.choices import is_task, pick_score
from pages.parts.atlas.small_maps import SmallMap, show_small_maps
from pages.parts.reports import attending
from pages.parts.shell import resources, url
from pages.parts.shell.messages import plain
from pages.parts.widgets import pickers
from pages.parts.widgets.tables import show_table

MOST_ROWS = 300  # as many as the bundled samples have
LONGEST = 48  # pieces of a small map
TASK_ROWS, OWN = "task rows", "own sentences"
OFFERED = [
    f"{study.name}/{score.name}" for study in (statistics.STUDY, norms.STUDY) for score in study.head_scores if score.of
]


def show_gallery(checkpoint: str, head: Head, task: str | None) -> Gallery:
    """Choose a score and inputs, then see the chosen maps; returns them, for a file.

    Errors: CheckpointError, InputError.
    """
    with st.container(horizontal=True, vertical_alignment="bottom"):
        key = pick_score("Score", OFFERED, OFFERED[3], key="gallery_score")
        source = url.pick(st.segmented_control, "Inputs", [TASK_ROWS, OWN], key="gallery_inputs", required=True)
        is_on = url.switch(st.toggle, "Show the gallery", key="gallery", help="Runs every input once")
    texts = ()
    if is_on:
        texts = _own_sentences() if source == OWN else _rows(task if task and is_task(task) else "sst2")
    if not texts:
        st.info(
            "Turn the gallery on to see inputs where this score is highest, at its deciles, and lowest.",
            icon=":material/gallery_thumbnail:",
        )
        return Gallery()

    values = resources.input_scores(checkpoint, texts, key)[:, head.layer, head.head]
    shelf = studies.attention.gallery.chosen(values)
    if not shelf:
        st.info("No input has this score: choose another.", icon=":material/info:")
        return Gallery()
    shelved = []
    for example in shelf:
        shown = resources.shown(checkpoint, *texts[example.input], most=LONGEST)
        text = " | ".join(filter(None, texts[example.input]))
        weights = _weights(checkpoint, shown, key, head)
        shelved.append(Shelved(example.where, example.value, text, shown.maps.tokens, weights, shown.maps.causal))
    score = find_score(key)
    definition = f"{score.label}: {score.formula}"
    summary = f"n = {int((~np.isnan(values)).sum())} inputs · mean {np.nanmean(values):.3f}"
    maps = [SmallMap(f"{example.where}: {example.value:.3f}", example.weights, example.tokens) for example in shelved]
    show_small_maps(maps, key="gallery_maps")
    st.caption(plain(f"{checkpoint} · {head} · {definition} · {summary} · rows are queries, columns keys"))
    said_of_each = [{"where": example.where, "value": example.value, "text": example.text} for example in shelved]
    show_table(pd.DataFrame(said_of_each), height=200)
    return Gallery(shelved, f"{definition} · {summary}")


def _weights(checkpoint: str, shown: resources.Shown, key: str, head: Head) -> np.ndarray:
    if not key.startswith("norms/"):
        return shown.maps.weights[head.layer, head.head]

    maps = capture.norms.norm_maps(resources.checkpoint(checkpoint), shown.encoding).heads[head.layer, head.head]
    return maps / np.maximum(maps.sum(-1, keepdims=True), 1e-12)


def _rows(task: str) -> tuple[tuple[str, str | None], ...]:
    rows = drawn(pickers.task_rows(task, "dev", pickers.data_folder()), MOST_ROWS, seed=0)
    return tuple((row.text, row.pair) for row in rows)


def _own_sentences() -> tuple[tuple[str, str | None], ...]:
    text = pickers.pick_text("Sentences, one a line", key="gallery_texts", default=attending.EXAMPLES, height=110)
    texts = attending.typed_texts(text)[: attending.MOST_SENTENCES]
    return tuple((given, None) if isinstance(given, str) else given for given in texts)
