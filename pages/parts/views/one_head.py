"""One head: all that is known of it with its sources, the heads most like it, and its gallery."""

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.atlas.head import facts, sentence
from core.atlas.head_page import Gallery
from core.attention import Head
from core.studies.lookup import section_of
from core.studies.score_records import label_of
from pages.parts.atlas import choices
from pages.parts.atlas.dossier import Dossier
from pages.parts.atlas.gallery import show_gallery
from pages.parts.atlas.head_beside import show_beside
from pages.parts.atlas.head_effects import show_what_it_does
from pages.parts.atlas.head_hypotheses import show_hypotheses
from pages.parts.atlas.head_neighbours import show_counterparts, show_nearest
from pages.parts.atlas.head_pictures import show_three_maps, show_where_it_looks
from pages.parts.atlas.head_why import show_why
from pages.parts.atlas.measuring import offer_missing, offer_to_measure
from pages.parts.shell import context, links, resources, url
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets.files import show_files
from pages.parts.widgets.head_links import is_missing, show_links
from pages.parts.widgets.pin import offer_pin
from pages.parts.widgets.tables import show_table

EVERYTHING = "everything"
ABOUT = {  # what a head's scores are about, as their studies say, and the views that show those
    "pattern class": ("statistics/shares",),
    "where it looks": ("statistics", "linguistics/tokens"),
    "relations and frames": ("linguistics/relations", "linguistics/frames"),
    "why it looks there": ("maps/why",),
    "beyond weights": ("linguistics/tokens", "statistics/effective", "maps/norms"),
    "effect": ("interventions/ablation", "interventions/pruning", "interventions/patching"),
    "fine-tuning": ("finetuning/change",),
    "likeness": ("heads/similar",),
    "hypotheses": ("heads/one",),
}


def head_here(scores: pd.DataFrame) -> Head:
    """The context's head; the first that has scores, with a word, where the checkpoint has none of that name."""
    heads = [Head(int(a), int(b)) for a, b in sorted(set(zip(scores["layer"], scores["head"], strict=True)))]
    named_heads = context.heads_named(context.now().head or "")
    if named_heads and named_heads[0] in heads:
        return named_heads[0]
    if named_heads:
        st.caption(f"Nothing is stored of {named_heads[0]} here: {heads[0]} is shown.")
    return heads[0]


def show_facts(scores: pd.DataFrame, head: Head) -> None:
    """One sentence, each part with its source."""
    head_facts = facts(scores, head)
    st.markdown(f"**{plain(str(head))}**: {plain(sentence(head_facts))}")
    if head_facts:
        st.caption(plain("Sources: " + "; ".join(f"{fact.about}: {fact.source}" for fact in head_facts)))


def show_scores(scores: pd.DataFrame, head: Head) -> pd.DataFrame:
    """Every score with interval, baseline and source, or those about one thing, and the pages that they come from;
    returns what is shown."""
    head_scores = scores[(scores["layer"] == head.layer) & (scores["head"] == head.head)]
    head_scores = head_scores[~head_scores["score"].isin(choices.HIDDEN)]
    sections = head_scores["score"].str.partition("/")[0].map(section_of)
    offered = [name for name in ABOUT if (sections == name).any()]
    chosen = url.pick(st.segmented_control, "About", [EVERYTHING, *offered], key="about", required=True)
    pages: tuple[str, ...] = ()
    if chosen != EVERYTHING:
        pages = ABOUT[chosen]
        head_scores = head_scores[sections == chosen]
    head_scores = head_scores.set_index("score").loc[choices.keys_of(head_scores)].reset_index()
    head_scores.insert(0, "what", [label_of(key) for key in head_scores["score"]])
    columns = ["what", "value", "low", "high", "baseline", "q", "n", "task", "source"]
    numbers = ["value", "low", "high", "baseline", "q"]
    shown = head_scores[columns].assign(n=head_scores["n"].astype("Int64"), task=head_scores["task"].fillna(""))
    shown = shown.style.format("{:.3g}", subset=numbers, na_rep="").format("{:d}", subset=["n"], na_rep="")
    show_table(shown, height=360)
    if pages:
        with st.container(horizontal=True):
            st.caption("These come from")
            for page in pages:
                links.link(page)
    return head_scores[columns]


def show(tools: DeltaGenerator) -> None:
    """The view."""
    with clear_errors():
        checkpoint = str(context.now().checkpoint)
        scores = choices.scores_of(checkpoint)
        choices.say_left_out(checkpoint)
        if len(scores):
            task, head = choices.task_here(scores), head_here(scores)
            task_scores = choices.on_task(scores, task)
            show_facts(task_scores, head)
            missing = is_missing(checkpoint)
            if not missing:
                with clear_errors():
                    show_three_maps(checkpoint, head, task_scores, task)
            show_where_it_looks(task_scores, head)
            if not missing:
                with clear_errors():
                    show_why(checkpoint, head, task_scores, task)
            show_what_it_does(checkpoint, task_scores, head)
            show_beside(checkpoint, head, task_scores, task)
            show_nearest(task_scores, head, checkpoint, task)
            show_counterparts(checkpoint, head, task_scores, task)
            show_links(checkpoint, head, current_view="heads/one")
            show_hypotheses(checkpoint, head, task_scores, task)
            gallery = Gallery()
            if not missing:
                offer_missing(checkpoint, task, task_scores=task_scores, causal=resources.checkpoint(checkpoint).causal)
                st.subheader("Gallery", anchor=False)
                with clear_errors():
                    gallery = show_gallery(checkpoint, head, task)
            st.subheader("Every score", anchor=False)
            rows = show_scores(task_scores, head)
            dossier = Dossier(head, checkpoint, task, task_scores, rows, gallery)
            show_files(rows, [], f"head-{head}", page=dossier.page)
            offer_pin(dossier.pin, key="pin_head")
        else:
            offer_to_measure(checkpoint, scores=scores)
