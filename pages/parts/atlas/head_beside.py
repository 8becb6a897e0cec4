"""One head beside its counterpart in the checkpoint that it is compared with, or the head of the same number there."""

import pandas as pd
import streamlit as st

from core.atlas.head_pair import scores_beside
from core.attention import Head
from core.studies.score_records import label_of
from pages.parts.atlas import choices
from pages.parts.atlas.head_counterparts import matched_with
from pages.parts.atlas.head_neighbours import input_of, show_maps, thumbnail
from pages.parts.shell import context, links, url
from pages.parts.shell.messages import plain
from pages.parts.widgets.head_links import say_missing
from pages.parts.widgets.tables import show_table


def show_beside(checkpoint: str, head: Head, task_scores: pd.DataFrame, task: str | None) -> None:
    """Both heads' maps of one input and the scores that they share; nothing where no other checkpoint is chosen."""
    beside = context.now().beside
    if beside in (None, checkpoint):
        return
    other_checkpoint = str(beside)
    st.subheader(plain(f"Beside {other_checkpoint}"), anchor=False)
    partner = _partner(checkpoint, head, other_checkpoint)
    shown_input = input_of(checkpoint, head, task_scores, task)
    if shown_input is not None:
        maps = [
            thumbnail(checkpoint, head, shown_input, f"{head}, here"),
            thumbnail(other_checkpoint, partner, shown_input, f"{partner} of {other_checkpoint}"),
        ]
        show_maps(maps, "beside_maps")
    scores = choices.scores_of(other_checkpoint)
    if scores.empty:
        st.caption(plain(f"Nothing is stored of {other_checkpoint}: measure it on its own page."))
        if not say_missing(other_checkpoint):
            links.link("heads/one", f"{partner} of {other_checkpoint}", checkpoint=other_checkpoint, head=str(partner))
        return
    _show_scores(scores_beside(task_scores, head, choices.on_task(scores, task), partner), partner, other_checkpoint)


def _partner(checkpoint: str, head: Head, other_checkpoint: str) -> Head:
    """Its counterpart where the two checkpoints were matched and that is wished, else the head of the same number."""
    counterparts = matched_with(checkpoint, other_checkpoint)
    matches = [
        record for record in counterparts if (record.layer, record.head) == (head.layer, head.head) and record.match
    ]
    explained = "Its counterpart (Heads > Counterparts), not the head of the same number"
    if matches and url.switch(st.toggle, "By matched heads", key="by_counterpart", default=True, help=explained):
        record = matches[0]
        st.caption(
            plain(f"{head} is matched with {record.match}, similarity {record.similarity:.2f}, n = {record.n} inputs.")
        )
        return Head.parse(record.match)
    if not matches:
        why = f"{head} has no counterpart beyond chance there" if counterparts else "The two were not matched yet"
        st.caption(plain(f"{why}: the head of the same number is shown, which need not be the same head."))
        links.link("heads/counterparts", checkpoint=checkpoint, beside=other_checkpoint, head=str(head))
    return head


def _show_scores(differences: pd.DataFrame, partner: Head, other_checkpoint: str) -> None:
    differences = differences[~differences["score"].isin(choices.HIDDEN)]
    if differences.empty:
        st.caption(plain(f"Nothing that is known of both heads on the same rows ({partner} of {other_checkpoint})."))
        return
    sure, tested = int(differences["sure"].eq(True).sum()), int(differences["sure"].notna().sum())
    st.markdown(f"**{sure} of {tested} scores** surely differ (5 % over all of them together).")
    shown = pd.DataFrame(
        {
            "what": [label_of(key) for key in differences["score"]],
            "here": [
                _number(*row) for row in differences[["first", "first_low", "first_high"]].itertuples(index=False)
            ],
            "there": [
                _number(*row) for row in differences[["second", "second_low", "second_high"]].itertuples(index=False)
            ],
            "there less here": differences["difference"],
            "surely": differences["sure"].map({True: "yes", False: "no"}),
        }
    )
    show_table(shown, height=260, column_config={"there less here": st.column_config.NumberColumn(format="%+.3g")})
    st.caption(
        "In brackets 95 % intervals over inputs; a z test of each difference, corrected over the scores (Bonferroni), "
        "with both heads' errors added as if their inputs were others. Clearest first."
    )


def _number(value: float, low: float, high: float) -> str:
    return f"{value:.3g}" if pd.isna(low) else f"{value:.3g} [{low:.3g}, {high:.3g}]"
