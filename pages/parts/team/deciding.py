"""The labelling sheet of maps in dispute, with what people said of each."""

from collections.abc import Sequence

from core.codebook.classes import ClassSet
from core.labelling.adjudicating import PASS, Dispute
from core.patterns.agreement import PASS_WORD
from core.store import labels
from core.store.database import Database
from pages.parts.label.label_sheet import MOST_MAPS, UNDO_STEPS, header_of, with_maps


def sheet_of(
    db: Database, disputes: Sequence[Dispute], classes: ClassSet, annotator: str, *, named: bool
) -> tuple[str, bytes]:
    """The payload's name and its bytes. named: with the names of who voted, else with letters in their place."""
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
    """Votes, notes and doubts of a map in words."""
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
