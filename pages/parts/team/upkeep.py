"""What an admin does around projects: maps from elsewhere in, labels out in other tools' forms, people out."""

import tempfile
from pathlib import Path

import streamlit as st

from core.labelling.foreign_maps import import_maps
from core.labelling.label_studio import export_studio, import_studio
from core.store import erasure
from core.store.database import Database
from pages.parts.label.label_tools import say_imported, say_names_alike
from pages.parts.shell import uploads
from pages.parts.shell.messages import clear_errors, counted, plain


def maps_from_elsewhere(db: Database) -> None:
    """Two files and a button."""
    st.caption(
        "An .npz with a float array [query, key] for each map, and a .jsonl with a line of facts for each: key, "
        "checkpoint, layer and head (from 0), and if known task, row_id, tokens, separators, causal."
    )
    maps, facts = (uploads.ask_file(label, [kind]) for label, kind in (("Maps", "npz"), ("Facts", "jsonl")))
    if maps and facts and st.button("Bring them in"):
        with clear_errors(), tempfile.TemporaryDirectory() as folder:
            files = Path(folder) / "maps.npz", Path(folder) / "facts.jsonl"
            for file, upload in zip(files, (maps, facts), strict=True):
                file.write_bytes(upload.getvalue())
            count, new = import_maps(db, *files)
            st.success(f"{counted(count, 'maps')}, {new} new; make a project of them, or label them on the Label page.")


def label_studio(db: Database, class_sets: list[str]) -> None:
    """Label Studio's JSON, out and in."""
    class_set = st.selectbox("Class set", class_sets, key="studio_set")

    def exported() -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            export_studio(db, Path(folder) / "labels.json", class_set)
            return (Path(folder) / "labels.json").read_bytes()

    st.download_button("Export", exported, file_name=f"labels-{class_set}.json", on_click="ignore")
    say_names_alike(db, class_set)
    upload = uploads.ask_file("Label Studio's JSON", ["json"])
    users = st.text_input("Who its users are", placeholder="3=ada, 4=bob", help="where they have no e-mail address")
    people = dict(part.strip().split("=", 1) for part in users.split(",") if "=" in part)
    if upload and st.button("Import", key="studio_import"):
        with clear_errors(), tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "upload.json"
            file.write_bytes(upload.getvalue())
            say_imported(import_studio(db, file, class_set, people=people))


def erase_person(db: Database, by: str) -> None:
    """A person's name or events out of the record, after a second look."""
    name = st.selectbox("Person", erasure.known_people(db), index=None, key="erase_person")
    kinds = {
        "the name; labels stay, under a pseudonym": erasure.erase_name,
        "the label events too": erasure.erase_events,
    }
    kind = st.radio("Erase", list(kinds))
    sure = st.checkbox("This cannot be undone, and copies made before still have it.")
    if st.button("Erase", disabled=not (name and sure)):
        with clear_errors():
            erased_person = kinds[kind](db, str(name), annotator=by)
            st.success(
                f"Done: the name was replaced by {plain(erased_person.pseudonym)} in "
                f"{counted(erased_person.events, 'rows')}."
            )
    for erased in erasure.erasures(db):
        st.caption(
            plain(
                f"{erased.stored:%d %B %Y}: {erased.kind} of {erased.pseudonym}, {counted(erased.events, 'rows')}, "
                f"by {erased.annotator}"
            )
        )
