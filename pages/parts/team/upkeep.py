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
        "Upload two files. The .npz file has one float array [query, key] per map. The .jsonl file has one line of "
        "metadata per map: key, checkpoint, layer and head (from 0), and optionally task, row_id, tokens, separators "
        "and causal."
    )
    maps, facts = (uploads.ask_file(label, [kind]) for label, kind in (("Maps", "npz"), ("Metadata", "jsonl")))
    if maps and facts and st.button("Import maps"):
        with clear_errors(), tempfile.TemporaryDirectory() as folder:
            files = Path(folder) / "maps.npz", Path(folder) / "facts.jsonl"
            for file, upload in zip(files, (maps, facts), strict=True):
                file.write_bytes(upload.getvalue())
            count, new = import_maps(db, *files)
            st.success(
                f"{counted(count, 'maps')} read, {new} of them new. Create a project with them, or label them "
                f"on Annotate > Label."
            )


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
    users = st.text_input(
        "Names of its users",
        placeholder="3=ada, 4=bob",
        help="Names for the user IDs of Label Studio whose users have no e-mail address.",
    )
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
            st.success(
                f"The name was replaced by {plain(erased_person.pseudonym)} in {counted(erased_person.events, 'rows')}."
            )
    for erased in erasure.erasures(db):
        st.caption(
            plain(
                f"{erased.stored:%d %B %Y}: {erased.kind} of {erased.pseudonym}, {counted(erased.events, 'rows')}, "
                f"by {erased.annotator}"
            )
        )
