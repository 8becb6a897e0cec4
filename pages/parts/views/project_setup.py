"""Projects: maps labelled by several people each; creation, pausing, closing and archiving."""

import tempfile
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.labelling import assignment_service
from core.labelling.assignment import ORDERS, AnnotatorStatus, Rules
from core.labelling.foreign_maps import import_maps
from core.labelling.label_studio import export_studio, import_studio
from core.labelling.projects import ProjectRecipe, make_project, order_anew
from core.labelling.queue import GROUP
from core.patterns.class_sets import class_set_names
from core.patterns.snapshot import known_class_set
from core.store import classifiers, erasure, labels, projects
from core.store.database import Database
from core.store.projects import Heading, project_counts
from pages.parts.label.label_sheet import hints_of
from pages.parts.label.label_tools import say_imported, say_names_alike
from pages.parts.shell import links, people, resources, url
from pages.parts.shell.messages import clear_errors, counted, plain
from pages.parts.widgets.tables import show_table

ACTS = {"pause": "Pause", "open": "Open again", "close": "Close", "archive": "Archive"}


def overview(db, all_projects) -> None:
    counts = project_counts(db)
    rows = []
    for project in all_projects:
        count = counts[project.project] if project.state != "archived" else None
        share_labelled = count.counted / (count.maps * project.rules["k"]) if count else None
        rows.append(
            {
                "title": project.title,
                "state": project.state,
                "labelled": share_labelled,
                "annotators per map": project.rules["k"],
                "people so far": count.people if count else None,
                "class set": project.class_set,
                "made by": project.made_by,
                "made": project.made,
            }
        )
    show_table(
        pd.DataFrame(rows),
        column_config={"labelled": st.column_config.ProgressColumn("labelled", min_value=0.0, max_value=1.0)},
    )


def one_project(db, project, by: str) -> None:
    """Show the actions on one project, and who may label in it."""
    links.link("annotate", "Label in it", icon=":material/stylus:", project=project.project)
    with clear_errors(), st.container(horizontal=True):
        for kind, label in ACTS.items():
            if project.state in projects.FROM[kind] and st.button(label, key=f"{kind}_{project.project}"):
                projects.change_project(db, project.project, kind, annotator=by)
                st.rerun()
    st.caption(
        plain(
            f"{project.title}: {project.state} since {project.changed:%d %B %Y %H:%M} UTC"
            + (f", by {project.changed_by}" if project.changed_by else "")
        )
    )
    if project.state != "archived":
        people_of(db, project, by)
    show_log(db, project)
    with st.expander("Rules, sampling and order of maps"):
        if project.state != "archived":
            order_again(db, project, by)
        left, right = st.columns(2)
        left.json(project.rules)
        right.json(project.recipe)


DONE = {
    "pause": "paused the project",
    "open": "opened the project again",
    "close": "closed the project; later changes of labels do not count",
    "archive": "archived the project",
    "admit": "resumed {person}",
    "exclude": "paused {person}",
    "order": "ordered the maps by the classifier",
    "decide": "decided that map {map_id} is {class}",
}


def show_log(db, project) -> None:
    """Show the actions of admins and the decisions in a project, newest first."""
    log = projects.history(db, project.project)
    with st.expander(f"Log: {counted(len(log), 'entries')}"):
        rows = [
            {"when, UTC": entry["stored"], "who": entry["annotator"], "what": DONE[entry["what"]].format(**entry)}
            for entry in log.to_dict("records")
        ]
        if rows:
            show_table(pd.DataFrame(rows))
        else:
            st.caption("This project has not been changed yet, and no decisions have been made on its maps.")


def show(tools: DeltaGenerator) -> None:
    db = resources.database()
    by = admin_name()
    all_projects = projects.projects(db)
    buttons = st.container(horizontal=True)
    with buttons.popover("New project", icon=":material/add:"):
        new_project(db, class_set_names(db), by)
    with buttons.popover("Import, export, erase", icon=":material/swap_horiz:"):
        from_elsewhere, studio, erasing = st.tabs(["Maps from elsewhere", "Label Studio", "Erase a person"])
        with from_elsewhere:
            maps_from_elsewhere(db)
        with studio:
            label_studio(db, class_set_names(db))
        with erasing:
            erase_person(db, by)
    if not all_projects:
        st.subheader("How do I start a labelling project?", anchor=False)
        st.markdown(
            "There is no project yet. In a project, every map is labelled by the same number of people.\n\n"
            "1. Sample maps from a checkpoint on Annotate > Label, or upload them under *Import, export, erase*.\n"
            "2. Press *New project*: choose the maps, the number of annotators per map, and who may label.\n"
            "3. Send the link of the project to the annotators. Each of them labels the maps that are assigned to "
            "them.\n4. Follow the labels on Projects > Progress, decide on maps with different labels on Projects > "
            "Adjudication, and export one class per map on Projects > Aggregated labels."
        )
        links.link("annotate", "Sample maps", icon=":material/stylus:")
        return
    st.subheader("Which labelling projects exist, and who may label in them?", anchor=False)
    overview(db, all_projects)
    titles = {project.project: project for project in all_projects}
    chosen = url.pick(st.selectbox, "Project", list(titles), key="project", format_func=lambda name: titles[name].title)
    one_project(db, titles[chosen], by)
    st.caption(
        plain(
            f"{counted(len(all_projects), 'projects')} · {date.today():%d %B %Y} · a label counts only in the "
            f"project in which it was given"
        )
    )


# ---------------------------------------------------------------- changes of a project


def maps_from_elsewhere(db: Database) -> None:
    st.caption("Upload two files. The .npz file has one float array [query, key] per map.")
    st.caption(
        "The .jsonl file has one line of metadata per map: key, checkpoint, layer and head (counted from 0). "
        "Optional fields: task, split, row_id, tokens, separators, causal and weights_hash."
    )
    maps, facts = (people.ask_file(label, [kind]) for label, kind in (("Maps", "npz"), ("Metadata", "jsonl")))
    if maps and facts and st.button("Import maps"):
        with clear_errors(), tempfile.TemporaryDirectory() as folder:
            files = Path(folder) / "maps.npz", Path(folder) / "facts.jsonl"
            for file, upload in zip(files, (maps, facts), strict=True):
                file.write_bytes(upload.getvalue())
            count, new = import_maps(db, *files)
            st.success(
                f"The upload has {counted(count, 'maps')}, of which {new} are new. Create a project with these "
                "maps, or label them on “Annotate > Label”."
            )


def label_studio(db: Database, class_sets: list[str]) -> None:
    class_set = st.selectbox("Class set", class_sets, key="studio_set")

    def exported() -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            export_studio(db, Path(folder) / "labels.json", class_set)
            return (Path(folder) / "labels.json").read_bytes()

    st.download_button("Export", exported, file_name=f"labels-{class_set}.json", on_click="ignore")
    say_names_alike(db, class_set)
    upload = people.ask_file("Label Studio's JSON", ["json"])
    users = st.text_input(
        "Names of the Label Studio users",
        placeholder="3=ada, 4=bob",
        help="Enter a name for each user ID of Label Studio that has no e-mail address.",
    )
    names = dict(part.strip().split("=", 1) for part in users.split(",") if "=" in part)
    if upload and st.button("Import", key="studio_import"):
        with clear_errors(), tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "upload.json"
            file.write_bytes(upload.getvalue())
            say_imported(import_studio(db, file, class_set, people=names))


def erase_person(db: Database, by: str) -> None:
    """Erase the name or events of a person, after confirmation."""
    name = st.selectbox("Person", erasure.erasable(db), index=None, key="erase_person")
    kinds = {
        "only the name (labels stay under a pseudonym)": erasure.erase_name,
        "the name and all labels": erasure.erase_events,
    }
    kind = st.radio("Erase", list(kinds))
    sure = st.checkbox(
        "I understand that this cannot be undone, and that earlier backups and exports still contain the name."
    )
    if st.button("Erase", disabled=not (name and sure)):
        with clear_errors():
            erased_person = kinds[kind](db, str(name), annotator=by)
            deleted = "All labels of this person were deleted. " if kinds[kind] is erasure.erase_events else ""
            st.success(
                f"{deleted}The name was replaced by {plain(erased_person.pseudonym)}. This changed "
                f"{counted(erased_person.events, 'rows')} of the database."
            )
    for erased in erasure.erasures(db):
        st.caption(
            plain(
                f"{erased.stored:%d %B %Y}: {erased.kind} of {erased.pseudonym}, {counted(erased.events, 'rows')}, "
                f"by {erased.annotator}"
            )
        )


# ---------------------------------------------------------------- a new project


ORDER_TITLES = {
    "random": "at random",
    "uncertain": "most uncertain first",
    "disagreement": "disagreements first",
    "clusters": "alike maps together",
}


def admin_name() -> str:
    """Return the name of the acting admin: the signed-in user, otherwise a typed name."""
    with st.columns(2)[0]:
        return people.annotator_name("Your name")


def new_project(db: Database, class_sets: list[str], by: str) -> None:
    """Show the form of a new project; create it and open it."""
    facts = labels.map_facts(db)
    above = st.container()  # where an error is seen wherever the form is scrolled to
    left, right = st.columns([3, 2])
    title = left.text_input("Title", key="project_title", max_chars=120)
    class_set = right.selectbox("Class set", class_sets, format_func=lambda name: known_class_set(db, name).title)
    recipe = _recipe(facts)
    rules = _rules(recipe.seed)
    with st.expander("Gold maps, exemplars and repeated maps"):
        recipe, rules = _with_known_maps(recipe, rules, [name for name in labels.annotators(db) if name])
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
    """Ask which maps: all that match, or a sample by seed."""
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
        "Leave out maps with nearly uniform attention",
        key="project_uniform",
        help="Leaves out attention maps whose largest weight is below 0.1, because such maps show no pattern.",
    )
    return ProjectRecipe(
        tuple(checkpoints), tuple(tasks), tuple(map(int, layers)), int(count), int(seed), bool(leave_out)
    )


def _rules(seed: int) -> Rules:
    how_many, ordered, left, right = st.columns([4, 4, 5, 5])
    k = how_many.number_input("Annotators per map", 1, 25, 3)
    order = ordered.selectbox("Order", ORDERS, format_func=ORDER_TITLES.__getitem__, key="project_order")
    lapse = left.number_input("Minutes until a reservation expires", 1, 7 * 24 * 60, 15)
    ahead = right.number_input("Reserved maps per person", 1, 48, GROUP if order == "clusters" else 8)
    typed_names = st.text_input(
        "Who may label",
        placeholder="names of annotators, separated by commas (default: everybody who may label)",
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
                help="Maps with a known class that all annotators label first. After each label, the annotator "
                "sees the correct class.",
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
            help="The source of the correct classes of exemplars and gold maps: adjudications, or the labels of one "
            "annotator.",
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
    """Show a button that reorders maps by the uncertainty of the classifier."""
    suggesting = classifiers.suggesting(db, project.class_set) or ""
    why = None if suggesting else "First choose a classifier for suggestions on “Annotate > Classifier”."
    if st.button("Order maps by the uncertainty of the current classifier", disabled=not suggesting, help=why):
        with clear_errors():
            count = order_anew(db, project.project, lambda names: hints_of(db, suggesting, names), annotator=by)
            st.success(f"Reordered maps: {count}. Only maps that still need labels are reordered.")


def reason(level: AnnotatorStatus) -> str:
    """Return why a person is paused, or ""."""
    reasons = {
        "gold": f"{level.right} of the last {level.golds} gold maps were labelled correctly",
        "exemplars": f"{level.trained} of {level.exemplars} exemplars were labelled correctly in round {level.round}",
        "people": "not in the list of annotators",
        "admin": "paused by an admin",
    }
    return reasons.get(level.cause, "")


def people_of(db: Database, project: projects.Project, by: str) -> None:
    """Show everybody who was assigned a map with their status, and admit or exclude one person."""
    board = assignment_service.board_of(db, project.project)
    if not board.people:
        st.caption("No maps of this project have been assigned yet.")
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
