"""Adjudication: decisions by key on maps whose labels differ or are doubted. Every decision is an event."""

from collections.abc import Sequence
from datetime import date

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.codebook.classes import ClassSet
from core.labelling import adjudicating
from core.labelling.adjudicating import PASS, Dispute
from core.labelling.crowd import votes_of
from core.patterns.agreement import PASS_WORD
from core.patterns.snapshot import known_class_set
from core.store import labels, projects
from core.store.database import Database
from pages.parts.label import label_tools
from pages.parts.label.label_sheet import MOST_MAPS, UNDO_STEPS, header_of, send_maps, show_sheet, with_maps
from pages.parts.label.map_pictures import show_disputed
from pages.parts.shell import people, resources, url
from pages.parts.shell.messages import counted, plain
from pages.parts.team.bundled_labels import SHOWN, show_bundled_disputes
from pages.parts.widgets.tables import show_table


def show(tools: DeltaGenerator) -> None:
    db = resources.database()
    left, *places = st.columns(3, vertical_alignment="bottom")
    class_set, project = label_tools.pick_labels(db, places)
    with left:
        annotator = people.annotator_name()
    shows_names = url.switch(
        tools.toggle,
        "Show who voted",
        key="named",
        help="By default, the names of annotators are hidden, so that your decision depends only on the map.",
    )
    classes = known_class_set(db, class_set)
    if not annotator:
        waiting = adjudicating.disputes(db, class_set, project)
        need = "map needs" if len(waiting) == 1 else "maps need"
        if waiting:
            st.subheader("Which maps need a decision?", anchor=False)
            st.markdown(
                f"**{len(waiting):,} {need} a decision, because labels differ or a classifier contradicts the label.**"
            )
        st.caption("Enter your name above to decide. Your name is saved with each decision.")
        if waiting:
            shown, votes = waiting[:SHOWN], votes_of(db, class_set, project)
            show_disputed(db, votes, [dispute.map_id for dispute in shown], named=shows_names)
            if len(waiting) > len(shown):
                with_labels = "the label of each annotator" if shows_names else "the number of labels of each class"
                st.caption(f"The first {len(shown)} of these maps are shown, with {with_labels}.")
        show_bundled_disputes(db, class_set, named=shows_names)
        return
    db.person.must("annotator", "decide on maps")
    if project is not None and projects.frozen_now(db, project) is not None:
        st.info(
            "This project is closed, so no decisions can be made. To decide on its maps, open it again under "
            "*Projects > Setup*.",
            icon=":material/lock:",
        )
        show_decisions(db, class_set, project)
        return
    key = (class_set, project, annotator, shows_names, classes)
    cached_queue = st.session_state.get("queue")
    if (
        cached_queue is None or cached_queue[0] != key
    ):  # the queue as it was first made, so that what the browser holds stays the same
        disputes = adjudicating.disputes(db, class_set, project)
        cached_queue = (key, disputes, sheet_of(db, disputes, classes, annotator, named=shows_names))
        st.session_state["queue"] = cached_queue
    disputes, (queue_name, maps_payload) = cached_queue[1:]
    if not disputes:
        st.success(
            "No map needs a decision: all labels agree with each other and with the classifier, or have been decided.",
            icon=":material/done_all:",
        )
    send_maps(maps_payload)
    show_sheet(queue_name)
    doubted = sum(dispute.doubt is not None for dispute in disputes)
    st.caption(
        plain(
            f"When this page was opened, {counted(len(disputes), 'maps')} needed a decision; a classifier "
            f"contradicts the label of {doubted} of them · class set {class_set} · {date.today():%d %B %Y} · keys: "
            f"digits decide, Space skips, n writes a note, Backspace undoes"
        )
    )
    show_decisions(db, class_set, project)


def show_decisions(db, class_set: str, project: str | None) -> None:
    """Show the current decisions, newest first."""
    votes = votes_of(db, class_set, project)
    decisions = votes[votes.queue_order == "adjudication"].iloc[::-1]
    if len(decisions):
        with st.expander(f"Number of decisions before this page was opened: {len(decisions)}"):
            shown = decisions[["happened", "annotator", "map_id", "class"]]
            show_table(shown.rename(columns={"happened": "when, UTC", "annotator": "who", "map_id": "map"}))


# ---------------------------------------------------------------- decisions


def sheet_of(
    db: Database, disputes: Sequence[Dispute], classes: ClassSet, annotator: str, *, named: bool
) -> tuple[str, bytes]:
    """Return the name and bytes of the payload. `named`: with the names of annotators, otherwise with letters."""
    stack = labels.undoable(db, classes.name, annotator, passing=PASS, most=UNDO_STEPS)
    header = header_of(db, classes, annotator, PASS, "adjudication") | {
        "queued": len(disputes),
        "stack": [step | {"class": classes.resolved(step["class"]) if step["class"] else None} for step in stack],
    }
    rows = labels.maps_of(db, [dispute.map_id for dispute in disputes[:MOST_MAPS]])
    return with_maps(
        header, rows, about={dispute.map_id: {"said": said_of(dispute, classes, named=named)} for dispute in disputes}
    )


def said_of(dispute: Dispute, classes: ClassSet, *, named: bool) -> list[str]:
    """Return votes, notes and doubts about a map as text."""
    people = [
        who.partition(PASS_WORD) for who, _ in (*dispute.votes, *dispute.notes)
    ]  # a second pass is no other person
    letters = {who: f"Person {chr(65 + k % 26)}" for k, who in enumerate(dict.fromkeys(who for who, *_ in people))}
    shown = {"".join(each): "".join(each) if named else letters[each[0]] + "".join(each[1:]) for each in people}
    votes = "; ".join(f"{shown[who]}: {classes.named(cls).title}" for who, cls in dispute.votes)
    lines = [votes, *(f"Note by {shown[who]}: {words}" for who, words in dispute.notes)]
    if dispute.doubt:
        title = next((labelled.title for labelled in classes.classes if labelled.name == dispute.doubt), dispute.doubt)
        by = f", queued by {dispute.queued_by}" if named and dispute.queued_by else ""
        lines.append(f"A classifier that was not trained on this input predicts {title}{by}.")
    return lines
