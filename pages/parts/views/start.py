"""Start: what this is, all heads of a sentence at once, a field for one's own, four doors, what was done last."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core import config
from core.atlas import example
from core.drawing.panes import telling_head
from core.errors import AtlasError
from core.store import runs
from pages.parts.maps import maps_grid
from pages.parts.shell import links, resources
from pages.parts.shell.messages import plain

SENTENCE = (
    "See what every attention head of a BERT- or GPT-2-like model looks at, what it does there, and whether the model "
    "needs it."
)
DOORS = (
    ("maps", "See a sentence", "All heads at once, and each of them large"),
    ("reproduction", "Reproduce the paper", "Every figure and claim of Kovaleva et al. 2019 beside ours"),
    ("annotate", "Label maps", "By key, and train the classifier on your labels"),
    ("projects", "Lead a project", "Several people, agreement, one class a map"),
)
LAST = 4  # results of one's own


def show(tools: DeltaGenerator) -> None:
    """The picture at the left; the ways in at the right."""
    st.markdown(f"##### {SENTENCE}")
    left, right = st.columns([3, 2], gap="medium")
    with right:
        _ask()
        _doors()
        links.link("start/path", "New here? Four steps", icon=":material/route:")
        _last()
    with left:
        _picture()


def _ask() -> None:
    text = st.text_input(
        "A sentence of your own",
        key="start_text",
        placeholder="Type a sentence and press Enter",
        icon=":material/edit:",
    )
    if text.strip():
        del st.session_state["start_text"]
        links.go("maps", text=text)


def _doors() -> None:
    for target, label, description in DOORS:
        with st.container(border=True, gap=None, key=f"door_{target}"):
            links.link(target, label, bold=True)
            st.caption(description)


def _picture() -> None:
    """All heads of the bundled encoder on the example pair, captured beforehand: nothing is computed for it."""
    try:
        shown = resources.shown(config.ENCODER, example.TEXT, example.PAIR)
    except AtlasError as error:
        st.info(plain(error))
        return
    pane = maps_grid.pane_of(shown, config.ENCODER)
    maps_grid.show_grid([pane], caption=f"{example.TEXT} | {example.PAIR}", key="start_grid", opened={"head": "none"},
                        head=telling_head(shown.scores, shown.maps.part))  # fmt: skip
    st.caption(
        f"The {shown.maps.layers} x {shown.maps.heads} heads of the bundled encoder on “{example.TEXT}” and "
        f"“{example.PAIR}”: rows are tokens that look, columns tokens that are looked at. Click one."
    )


def _last() -> None:
    """What was done here last, if anything."""
    if not runs.any_rows(resources.database()):
        return
    own_runs = runs.runs(resources.database())
    from pages.parts.reports.result_list import show_briefly  # half a second, with Altair, that a first visit spares

    st.markdown("**Done last**")
    for run in own_runs[own_runs["rows"] > 0]["run"][:LAST]:
        show_briefly(str(run))
    links.link("results", "All results")
