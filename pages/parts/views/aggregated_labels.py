"""Aggregated labels: one class per map from several annotators, their skill, and likely label errors."""

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.labelling import adjudicating, crowd
from core.patterns import agreement
from core.patterns.agreement import alpha_of_people
from core.patterns.snapshot import known_class_set, snapshot
from core.patterns.truth import Method, Truth, truth
from core.store import labels
from pages.parts.charts.curves import bars, values_with_intervals
from pages.parts.charts.encoding import Axes, Layers
from pages.parts.charts.matrices import matrix
from pages.parts.label import label_tools
from pages.parts.label.map_pictures import pictures
from pages.parts.reports.result_card import show_own_answer
from pages.parts.reports.study_view import details
from pages.parts.shell import links, people, resources, url
from pages.parts.shell.messages import clear_errors, counted, plain
from pages.parts.team.bundled_labels import labels_to_read
from pages.parts.widgets.files import show_files
from pages.parts.widgets.tables import show_table

MOST = 200  # rows of the table of maps
MOST_TIES = 8  # maps of the gallery
NAMES: dict[Method, str] = crowd.METHODS | {"majority": "most votes"}  # within a sentence
SKILLS: dict[Method, str] = {
    "majority": "Share of other annotators who gave the same label",
    "dawid-skene": "Expected share of correct labels (own labels count)",
    "mace": "Probability of not guessing",
}


def maps_table(truth, rows: pd.DataFrame) -> pd.DataFrame:
    """Return one row per map, least certain first: class, whether it was adjudicated, probability, votes."""
    best = truth.soft.max(axis=1)
    about = pd.DataFrame({"class": truth.labels.fillna("(tie)"), "adjudicated": truth.adjudicated, "probability": best})
    first_pass = rows[(rows["pass"] == 1) & (rows["queue_order"] != "adjudication")]
    about["votes"] = first_pass.drop_duplicates(["map_id", "annotator"]).groupby("map_id").size()
    return (
        about.fillna({"votes": 0})
        .astype({"votes": int})
        .join(truth.soft)
        .sort_values("probability")
        .rename_axis("map")
        .reset_index()
    )


def skills(truth) -> None:
    """Show the skill of each annotator as a bar, highest first."""
    with_skill = [person for person in truth.people if person.skill == person.skill]
    if not with_skill:
        st.caption("Annotators can be compared as soon as two of them have labelled the same map.")
        return
    frame = pd.DataFrame([
        {"annotator": f"{person.name} (n = {person.compared:,})", "share": person.skill} for person in with_skill[::-1]
    ])  # fmt: skip
    st.altair_chart(
        bars(frame, Axes(x="share", y="annotator"), title=SKILLS[truth.method], domain=(0, 1)), key="skills"
    )


def class_counts(truth) -> Layers:
    """Show how many maps have each class, and how many are tied."""
    counts = truth.labels.fillna("(tied)").value_counts()
    order = [*truth.probabilities.columns, "(tied)"]
    frame = pd.DataFrame([{"class": name, "maps": int(counts.get(name, 0))} for name in order])
    return values_with_intervals(frame, Axes(x="class", y="maps", x_title=""), title="Number of maps in each class")


def gallery(db, truth, rows: pd.DataFrame) -> None:
    """Show tied maps with the votes of their annotators."""
    ties = list(truth.ties)
    st.markdown(f"**{counted(len(ties), 'ties')}" + (f", the first {MOST_TIES}**" if len(ties) > MOST_TIES else "**"))
    if not ties:
        st.caption("There are no ties: every map has one most likely class.")
        return
    first_pass = rows[(rows["pass"] == 1) & (rows["queue_order"] != "adjudication")]
    given = first_pass.groupby("map_id")["class"].apply(lambda classes: " or ".join(dict.fromkeys(classes)))
    shown = ties[:MOST_TIES]
    pictures(db, shown, [str(given[name]) for name in shown], width=150)
    links.link("projects/adjudication", "Decide on them", icon=":material/gavel:")


def person_part(db, truth, class_set: str, names: list[str]) -> None:
    show_table(crowd.people_table(truth, labels.pace(db, class_set)))
    who = url.pick(st.selectbox, "Confusion of", [person.name for person in truth.people], key="who")
    person = next(somebody for somebody in truth.people if somebody.name == who)
    long = person.confusion.reset_index().melt("true", var_name="given", value_name="share")
    st.altair_chart(
        matrix(
            long.fillna(0.0),
            Axes(x="given", y="true"),
            value="share",
            order=names,
            title=f"Labels by {who} for maps of each estimated true class",
        ),
        width="content",
    )


def agreement_part(votes: pd.DataFrame, names: list[str]) -> None:
    """Show alpha with its interval, and kappa of two annotators and of pairs of classes."""
    all_ = alpha_of_people(votes)
    if not all_.maps:
        st.caption("Agreement can be shown as soon as two annotators have labelled the same map.")
        return
    between = f"95 % {all_.low:.2f} to {all_.high:.2f} over inputs, {counted(all_.maps, 'maps')}, "
    between += counted(all_.raters, "annotators")
    st.metric("Krippendorff's alpha", f"{all_.alpha:.3f}", between, delta_color="off", delta_arrow="off")
    raters = agreement.raters_of(votes)
    left, right = st.columns(2)
    first = url.pick(left.selectbox, "First", raters, key="first")
    second = url.pick(right.selectbox, "Second", agreement.others(raters, first), key="second")
    with clear_errors():
        pair_agreement = agreement.agreement(votes, first, second)
        st.caption(
            f"Cohen's kappa {pair_agreement.kappa:.3f} (95 % CI {pair_agreement.low:.2f} to "
            f"{pair_agreement.high:.2f} over inputs), {pair_agreement.share:.0%} equal labels, "
            f"{counted(pair_agreement.maps, 'maps')}"
        )
        pairs = agreement.pair_agreements(votes, first, second, names)
        rows = [{"classes": " / ".join(p.classes), "maps": p.maps, "differ": p.differ, "kappa": p.kappa} for p in pairs]
        by_pair, by_name = st.columns(2)
        show_table(rows, container=by_pair)
        by_class = agreement.class_agreements(votes, first, second, names)
        show_table([vars(each) for each in by_class], container=by_name)
        with st.expander("Agreement between each pair of annotators"):
            everybody = [vars(each) for each in agreement.rater_pairs(votes)]
            show_table(pd.DataFrame(everybody))


def doubts_part(db, class_set: str) -> None:
    """Show likely label errors, and a button that queues them."""
    if st.button(
        "Find label errors",
        help="Classifies each map with a classifier that is trained on other inputs, and lists the labels that the "
        "classifier contradicts. This can take minutes.",
    ):
        with clear_errors(), st.spinner("Training classifiers on other inputs ..."):
            st.session_state["_doubts"] = (class_set, adjudicating.doubted(snapshot(db, class_set)))
    cached_doubts = st.session_state.get("_doubts")
    if cached_doubts is None or cached_doubts[0] != class_set:
        return
    suspects = cached_doubts[1]
    st.caption(
        f"{counted(len(suspects), 'labels')} may be wrong, because a classifier that was not trained on their "
        "input predicts another class with high confidence (confident learning)."
    )
    show_table([vars(suspect) for suspect in suspects[:MOST]])
    by = people.annotator_name(key="doubts_by")
    if (
        suspects
        and db.person.may("annotator")
        and st.button("Add these maps to the adjudication queue", disabled=not by)
    ):
        with clear_errors():
            st.success(
                "Maps added to the adjudication queue: "
                f"{adjudicating.queue_doubts(db, class_set, suspects, annotator=by)}"
            )
    links.link("projects/adjudication", "Decide on them", icon=":material/gavel:")


def show(tools: DeltaGenerator) -> None:
    db = resources.database()
    left, middle, right = st.columns([2, 2, 3], vertical_alignment="bottom")
    class_set, project = label_tools.pick_labels(db, (left, middle))
    if project is None:
        db, _ = labels_to_read(db, class_set)
    names = list(known_class_set(db, class_set).names)
    votes = crowd.votes_of(db, class_set, project)
    if votes[(votes["pass"] == 1) & (votes["queue_order"] != "adjudication")].empty:
        st.info("This selection has no labels yet. Label maps on Annotate > Label.", icon=":material/stylus:")
        return
    advice = crowd.advice(votes, names)
    recommended: Method = "dawid-skene" if advice.worth else "majority"
    method = url.pick(
        right.segmented_control, "One class per map by", crowd.METHODS, key="method", default=recommended, required=True
    )
    truth = judged(votes, tuple(names), method)
    table = maps_table(truth, votes)
    most = truth.labels.value_counts()
    several = int((table["votes"] > 1).sum())
    show_own_answer(
        "Which class does each map have?",
        [counted(len(votes), "labels"), counted(votes["annotator"].nunique(), "annotators"), f"class set {class_set}"],
        f"{len(table) - len(truth.ties):,} of {counted(len(table), 'maps')} have one class by "
        f"{NAMES[method]}; {len(truth.ties)} {'is' if len(truth.ties) == 1 else 'are'} tied."
        + (f" The most frequent class is {most.index[0]} ({most.iloc[0]:,} maps)." if len(most) else ""),
        ("Every map has" if several == len(table) else f"{several:,} of the maps have")
        + " labels by two or more annotators"
        + ("" if several == len(table) else "; for the other maps, one label decides")
        + f". Recommended: {NAMES[recommended]}.",
        key="aggregated",
    )
    left, right = st.columns([2, 3])
    with left:
        st.altair_chart(class_counts(truth), key="class_counts")
        skills(truth)
    with right:
        gallery(db, truth, votes)
    maps, people_tab, agreement_tab, doubts = st.tabs(["Maps", "Annotators", "Agreement", "Likely label errors"])
    with maps:
        show_table(table.head(MOST), height=300)
        st.caption(
            f"The table shows the {counted(min(MOST, len(table)), 'maps')} whose class is least certain. To train a "
            "classifier on the class probabilities (soft labels), choose an aggregation method on “Annotate > "
            "Classifier”, under “Combine several labels of a map by”."
        )
        show_files(table, [], f"truth-{class_set}-{method}", of="Soft labels", folded=False)
    with people_tab:
        person_part(db, truth, class_set, names)
    with agreement_tab:
        agreement_part(votes, names)
    with doubts:
        doubts_part(db, class_set)
    with details():
        st.markdown(plain(advice.sentence))
        st.caption("For each annotator, n counts the maps that another annotator also labelled.")
        st.caption(
            "The method “Most votes” compares an annotator only with the other annotators of the same maps. The "
            "other annotators can be wrong as well."
        )
        st.caption(
            "Dawid-Skene and MACE jointly estimate the classes of maps and the skills of annotators. These estimates, "
            "and the confusion matrices under *Annotators*, also use the labels of the compared annotator."
        )


# ---------------------------------------------------------------- judging


@st.cache_data(show_spinner="Aggregating the labels ...", max_entries=12)
def judged(labelled: pd.DataFrame, names: tuple[str, ...], method: Method) -> Truth:
    return truth(labelled, names, method)
