"""Agreement: whether annotators give the same classes to the same maps, their speed, and disputed maps."""

from datetime import date

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.patterns import agreement
from core.patterns.agreement import alpha_of_people
from core.patterns.snapshot import current_labels, known_class_set
from core.store import labels
from pages.parts.charts.encoding import Axes
from pages.parts.charts.matrices import matrix
from pages.parts.label.label_tools import (
    pick_class_set,
    retire_one,
    say_names_alike,
    say_unknown,
    show_by_way,
)
from pages.parts.label.map_pictures import show_disputed
from pages.parts.reports.result_card import show_own_answer
from pages.parts.shell import links, resources, url
from pages.parts.shell.messages import clear_errors, counted, plain
from pages.parts.team.bundled_labels import labels_to_read
from pages.parts.widgets.tables import show_table

MOST = 8


RELIABLE, TENTATIVE = 0.8, 0.667  # alpha from which labels are reliable, and allow tentative conclusions


def answer(rows, title: str) -> None:
    """Show Krippendorff's alpha over all annotators, and what it means by his convention."""
    everybody = alpha_of_people(rows)
    if not everybody.maps:
        return
    verdict = "is too low for reliable conclusions (below 0.667)"
    if everybody.alpha >= TENTATIVE:
        verdict = "allows tentative conclusions (0.667 to 0.8)"
    if everybody.alpha >= RELIABLE:
        verdict = "is reliable (0.8 or more)"
    included = " and ".join(f"{limit:g}" for limit in (TENTATIVE, RELIABLE) if everybody.low <= limit <= everybody.high)
    unsure = f"; the confidence interval includes {included}" if included else ""
    show_own_answer(
        "How well do annotators agree?",
        [title, f"n = {counted(everybody.maps, 'maps')} with labels by two or more annotators",
         counted(everybody.raters, "annotators")],
        f"Krippendorff's alpha over all annotators is {everybody.alpha:.2f}, which {verdict} by Krippendorff's "
        f"convention{unsure}.",
        f"95 % CI {everybody.low:.2f} to {everybody.high:.2f} over inputs. Alpha is 1 if all labels of a map are "
        "always the same, and 0 if annotators agree as often as by chance.",
        key="agreement",
    )  # fmt: skip


def pair(db, rows, raters: list[str], names: list[str]) -> None:
    left, right = st.columns(2)
    first = url.pick(left.selectbox, "First annotator", raters, key="first")
    second = url.pick(right.selectbox, "Second annotator", agreement.others(raters, first), key="second")
    with clear_errors():
        pair_agreement = agreement.agreement(rows, first, second)
        maps = counted(pair_agreement.maps, "maps")
        st.markdown(
            plain(
                f"These two annotators gave the same label to {pair_agreement.share:.0%} of {maps} that both labelled. "
                f"Cohen's kappa is {pair_agreement.kappa:.2f} (95 % CI {pair_agreement.low:.2f} to "
                f"{pair_agreement.high:.2f} over inputs)."
            )
        )
        counts = agreement.confusion(rows, first, second, names)
        st.altair_chart(
            matrix(
                counts,
                Axes(x="second", y="first", x_title=second, y_title=first),
                value="n",
                order=names,
                title=f"Labels by {first} (rows) and {second} (columns)",
            ),
            width="content",
        )


def disputed(db, rows, class_set: str) -> None:
    """Show maps with different labels that have not been adjudicated."""
    maps = agreement.disputed(rows)
    st.subheader("To adjudicate")
    if not maps:
        st.caption("No map has conflicting labels that still need adjudication.")
        return
    st.caption("1 map has labels that differ." if len(maps) == 1 else f"{len(maps)} maps have labels that differ. The "
               f"first {len(maps[:MOST])} are shown.")  # fmt: skip
    show_disputed(db, rows, maps[:MOST])
    retire_one(db, rows, maps[:MOST])
    if not db.person.may("annotator"):
        return
    links.link("projects/adjudication", "Decide on them", icon=":material/gavel:", class_set=class_set)


def show(tools: DeltaGenerator) -> None:
    db = resources.database()
    class_set = pick_class_set(db)
    db, _ = labels_to_read(db, class_set)
    say_unknown(db, class_set)
    standing = current_labels(db, class_set)
    if standing.empty:
        st.info(
            "No labels with this class set have been stored yet. Label maps or add the bundled annotations on "
            "“Annotate > Label”.",
            icon=":material/stylus:",
        )
        return
    raters = agreement.raters_of(standing)
    say_names_alike(db, class_set)
    if len(raters) < 2:
        st.info(
            "To measure agreement, a second annotator must label the maps, or you must label them a second time "
            "(pass 2 on “Annotate > Label”).",
            icon=":material/group:",
        )
    else:
        answer(standing, known_class_set(db, class_set).title)
        pair(db, standing, raters, list(known_class_set(db, class_set).names))
        disputed(db, standing, class_set)
    st.subheader("Pace")
    pace = labels.pace(db, class_set)
    show_table(
        pace,
        column_config={
            "per_hour": st.column_config.NumberColumn("labels per hour", format="%d"),
            "median_seconds": st.column_config.NumberColumn("median seconds"),
        },
    )
    show_by_way(standing[(standing["pass"] == 1) & (standing["queue_order"] != "adjudication")])
    flags = labels.flagged(db, class_set)
    if len(flags):
        st.subheader("Flags and notes")
        show_table(
            flags[["map_id", "kind", "annotator", "note", "checkpoint", "task", "layer", "head", "happened"]].assign(
                layer=flags["layer"] + 1, head=flags["head"] + 1
            ),
        )
    st.caption(
        plain(
            f"{counted(standing['map_id'].nunique(), 'maps')}, {counted(len(standing), 'labels')} by "
            f"{counted(standing['annotator'].nunique(), 'annotators')} · class set {class_set} · "
            f"{date.today():%d %B %Y} · for labels per hour, a pause of more than a minute counts as one minute"
        )
    )
