"""The forms of the Projects page: a new project, and the people of one."""

from typing import Any

import pandas as pd
import streamlit as st

from core.labelling import assignment_service
from core.labelling.assignment import ORDERS, AnnotatorStatus, Rules
from core.labelling.projects import ProjectRecipe, make_project, order_anew
from core.store import classifiers, labels, projects
from core.store.database import Database
from core.store.erasure import known_people
from core.store.projects import Heading
from pages.parts.label.label_sheet import hints_of
from pages.parts.label.label_tools import classes_now
from pages.parts.shell import people
from pages.parts.shell.messages import clear_errors, plain
from pages.parts.widgets.tables import show_table

ORDER_TITLES = {
    "random": "at random",
    "uncertain": "most uncertain first",
    "disagreement": "disagreements first",
}


def admin_name() -> str:
    """Who makes and changes projects: the one signed in, else a name that is typed."""
    with st.columns(2)[0]:
        return people.annotator_name("Your name")


def new_project(db: Database, class_sets: list[str], by: str) -> None:
    """The form of a new project; makes it and goes to it."""
    facts = labels.map_facts(db)
    above = st.container()  # where an error is seen wherever the form is scrolled to
    left, right = st.columns([3, 2])
    title = left.text_input("Title", key="project_title", max_chars=120)
    class_set = right.selectbox("Class set", class_sets, format_func=lambda name: classes_now(db, name).title)
    recipe = _recipe(facts)
    rules = _rules(recipe.seed)
    with st.expander("Gold, exemplars and repeats"):
        recipe, rules = _with_known_maps(recipe, rules, [name for name in known_people(db) if name])
    codebook = st.text_area("Instructions for annotators, in addition to the codebook", height=68, key="project_words")
    if st.button("Create project", type="primary", key="make_project"):
        with above, clear_errors():
            suggesting = classifiers.suggesting(db, class_set)
            project = make_project(
                db,
                Heading(title, class_set, codebook, annotator=by),
                recipe,
                rules,
                people_there=people.who_may_label(),
                hints=(lambda names: hints_of(db, suggesting, names)) if suggesting else None,
            )
            st.session_state["project"] = project
            for field in ("project_title", "project_words"):  # the next form begins empty
                st.session_state.pop(field, None)
            st.toast(f"The project {plain(title)} was created. The link for annotators is below.")
            st.rerun()


def _recipe(facts: pd.DataFrame) -> ProjectRecipe:
    """Which maps: all that fit, or the first of them in an order that the seed fixes."""
    left, middle, right = st.columns(3)
    checkpoints = left.multiselect("Checkpoints", sorted(facts["checkpoint"].unique()), placeholder="all")
    tasks = middle.multiselect("Tasks", sorted(facts["task"].unique()), placeholder="all")
    layers = right.multiselect(
        "Layers", sorted(facts["layer"].unique().tolist()), format_func=lambda k: str(k + 1), placeholder="all"
    )
    how_many, seeded, uniform = st.columns(3, vertical_alignment="bottom")
    count = how_many.number_input("Maps", 0, 1_000_000, 300)
    seed = seeded.number_input("Seed", 0, 10**6, 0, key="project_seed")
    leave_out = uniform.toggle(
        "Leave out nearly uniform maps",
        key="project_uniform",
        help="Leaves out maps whose largest weight is below 0.1, because they show no pattern.",
    )
    return ProjectRecipe(
        tuple(checkpoints), tuple(tasks), tuple(map(int, layers)), int(count), int(seed), bool(leave_out)
    )


def _rules(seed: int) -> Rules:
    how_many, ordered, left, right = st.columns([4, 4, 5, 5])
    k = how_many.number_input("Annotators per map", 1, 25, 3)
    order = ordered.selectbox("Order", ORDERS, format_func=ORDER_TITLES.__getitem__, key="project_order")
    lapse = left.number_input("Minutes until a reservation expires", 1, 7 * 24 * 60, 15)
    ahead = right.number_input("Reserved maps per person", 1, 48, 8)
    typed_names = st.text_input(
        "Who may label", placeholder="names separated by commas; leave empty for everybody with the role annotator"
    )
    who = tuple(dict.fromkeys(name.strip() for name in typed_names.split(",") if name.strip()))
    return Rules(k=int(k), lapse=60.0 * lapse, ahead=int(ahead), order=str(order), seed=seed, people=who)


def _with_known_maps(recipe: ProjectRecipe, rules: Rules, names: list[str]) -> tuple[ProjectRecipe, Rules]:
    left, middle, right = st.columns(3)
    map_options: dict[str, Any] = {
        "exemplars": int(
            left.number_input(
                "Exemplars",
                0,
                200,
                0,
                help="Maps with a known class that everybody labels first. After each label, the "
                "annotator sees the correct class.",
            )
        ),
        "gold": int(
            middle.number_input(
                "Gold maps",
                0,
                5000,
                0,
                help="Maps with a known class that are hidden among the other maps to check the annotators.",
            )
        ),
        "known_from": right.selectbox(
            "Gold labels from",
            ["", *names],
            format_func=lambda name: name or "adjudications",
            help="The person whose labels define the correct class of exemplars and gold maps.",
        ),
    }
    places = st.columns(4)
    rates = {
        "pass_mark": places[0].number_input("Exemplars correct to pass", 0.0, 1.0, 0.7),
        "gold_rate": places[1].number_input("Share of gold maps", 0.0, 0.5, 0.1 if map_options["gold"] else 0.0),
        "threshold": places[2].number_input("Pause below this gold accuracy", 0.0, 1.0, 0.6),
        "repeat_rate": places[3].number_input("Share of repeats", 0.0, 0.5, 0.05),
    }
    return ProjectRecipe(**vars(recipe) | map_options), Rules(**vars(rules) | rates)


def order_again(db: Database, project: projects.Project, by: str) -> None:
    """A button that hands out first what the classifier is least sure of by now."""
    suggesting = classifiers.suggesting(db, project.class_set) or ""
    why = None if suggesting else "First choose a classifier for suggestions on Annotate > Classifier."
    if st.button("Order maps by the present classifier, most uncertain first", disabled=not suggesting, help=why):
        with clear_errors():
            count = order_anew(db, project.project, lambda names: hints_of(db, suggesting, names), annotator=by)
            st.success(f"{count} maps that still need labels have been reordered.")


def reason(level: AnnotatorStatus) -> str:
    """Why somebody is paused, as an admin reads it; "" for who is not."""
    reasons = {
        "gold": f"{level.right} of the last {level.golds} gold maps were labelled correctly",
        "exemplars": f"{level.trained} of {level.exemplars} exemplars were labelled correctly in round {level.round}",
        "people": "not in the list of annotators",
        "admin": "paused by an admin",
    }
    return reasons.get(level.cause, "")


def people_of(db: Database, project: projects.Project, by: str) -> None:
    """Everybody who was handed a map, how they stand, and the admin's word on one of them."""
    board = assignment_service.board_of(db, project.project)
    if not board.people:
        st.caption("No maps have been assigned yet.")
        return
    status = {name: board.status(name) for name in board.people}
    rows = [
        {"person": name, "phase": level.phase, "gold correct": f"{level.right} of {level.golds}", "why": reason(level)}
        for name, level in status.items()
    ]
    show_table(pd.DataFrame(rows))
    left, middle, right = st.columns([2, 1, 1], vertical_alignment="bottom")
    person = left.selectbox("Person", board.people, key=f"person_{project.project}")
    with clear_errors():
        for column, label, admitted in ((middle, "Resume", True), (right, "Pause", False)):
            if column.button(label, key=f"{label}_{project.project}", width="stretch"):
                projects.judge_person(db, project.project, person, admitted=admitted, annotator=by)
                st.rerun()
