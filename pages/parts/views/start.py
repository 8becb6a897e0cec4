"""Start: the model and a sentence, all heads, four entry points, and recent results."""

from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.atlas import example
from core.drawing.panes import telling_head
from core.errors import AtlasError
from core.store import runs
from pages.parts.atlas import analysing
from pages.parts.maps import maps_grid
from pages.parts.shell import context, links, resources
from pages.parts.shell.messages import plain
from pages.parts.widgets import context_bar

SENTENCE = (
    "See what each attention head of a BERT- or GPT-2-like model attends to, what it does, and whether the model "
    "needs it."
)
DOORS = (
    ("maps", "See a sentence", "Show and enlarge all heads"),
    ("reproduction", "Reproduce the paper", "Compare each claim of Kovaleva et al. 2019 with our results"),
    ("annotate", "Label maps", "Label by keyboard, and retrain the classifier"),
    ("projects", "Lead a project", "Measure the agreement of several annotators"),
)
LAST = 4  # results of one's own


def show(tools: DeltaGenerator) -> None:
    now = context.now()
    if context_bar.was_typed("start") and (now.text or "").strip():
        links.go("maps", text=now.text)
    analysing.offer_button(tools)
    st.markdown(f"##### {SENTENCE}")
    analysing.show_analysis(str(now.checkpoint))
    _picture(str(now.checkpoint), (now.text or "").strip(), now.pair_or_none)
    for column, (target, label, description) in zip(st.columns(len(DOORS)), DOORS, strict=True):
        with column, st.container(border=True, gap=None, key=f"door_{target}", height="stretch"):
            links.link(target, label, bold=True)
            st.caption(description)
    links.link("start/path", "New here? Four steps", icon=":material/route:")
    _last()


def _picture(checkpoint: str, text: str, pair: str | None) -> None:
    """Show all heads of the chosen model for the chosen sentence, or for the example pair (captured in advance)."""
    is_chosen = bool(text)
    text, pair = (text, pair) if is_chosen else (example.TEXT, example.PAIR)
    try:
        shown = resources.shown(checkpoint, text, pair)
    except AtlasError as error:
        st.info(plain(error))
        return
    pane = maps_grid.pane_of(shown, checkpoint)
    said = f"“{plain(text)}”" + (f" and “{plain(pair)}”" if pair else "")
    st.caption(
        f"All {shown.maps.layers * shown.maps.heads} heads of {plain(Path(checkpoint).name)} on "
        f"{'this input' if is_chosen else 'an example'}: {said}. In each map, the row token attends to the column "
        "token. One input (n = 1) allows no significance test."
    )
    maps_grid.show_grid([pane], caption=f"{text} | {pair}" if pair else text, key="start_grid",
                        head=telling_head(shown.scores, shown.maps.part))  # fmt: skip


def _last() -> None:
    """Show recent results, if any."""
    if not runs.any_rows(resources.database()):
        return
    own_runs = runs.runs(resources.database())
    from pages.parts.reports.result_list import show_briefly  # half a second, with Altair, that a first visit spares

    st.markdown("**Recent results**")
    for run in own_runs[own_runs["rows"] > 0]["run"][:LAST]:
        show_briefly(str(run))
    links.link("results", "All results")
