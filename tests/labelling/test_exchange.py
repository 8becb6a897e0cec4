"""Labels to other tools and back: nothing lost in a round trip, and what cannot be read is one sentence."""

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InputError
from core.labelling import foreign_maps
from core.labelling.dataset import export_dataset, import_dataset
from core.labelling.label_studio import export_studio, import_studio, png
from core.store import erasure, label_files, labels, projects
from core.store.database import Database
from core.store.people import Person, RightsError
from tests.labelling.test_projects import Hand
from tests.store.labelling import a_map, event


@pytest.fixture
def db(tmp_path):
    database = Database(tmp_path / "atlas.duckdb")
    labels.store_maps(database, [a_map(f"m{k}", row_id=f"r{k}") for k in range(4)])
    yield database
    database.close()


def everything(db):
    names = list(labels.stored_at(db))
    return labels.all_events(db), {row["map_id"]: row for row in labels.maps_of(db, names)}, labels.class_events(db)


FORMS = {
    "studio": (
        lambda db, folder: export_studio(db, folder / "a.json", "bert"),
        lambda db, folder: import_studio(db, folder / "a.json", "bert"),
    ),
    "dataset": (
        lambda db, folder: export_dataset(db, folder / "set", "bert"),
        lambda db, folder: import_dataset(db, folder / "set"),
    ),
    "jsonl": (
        lambda db, folder: label_files.export_labels(db, folder / "a.jsonl"),
        lambda db, folder: label_files.import_labels(db, folder / "a.jsonl"),
    ),
}
KINDS = st.sampled_from(["label", "label", "skip", "flag", "note", "undo"])
ACT = st.tuples(st.sampled_from(["ada", "bób"]), st.integers(0, 2), KINDS, st.integers(0, 3))
ACTS = st.lists(ACT, min_size=1, max_size=12)
CLASSES = ("vertical", "diagonal", "block", "wave")


@pytest.mark.thorough
@settings(max_examples=8, deadline=None)
@given(acts=ACTS, form=st.sampled_from(sorted(FORMS)))
def test_nothing_is_lost_in_a_round_trip(acts, form):
    write, read = FORMS[form]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Database(folder / "a.duckdb") as db, Database(folder / "b.duckdb") as other:
            labels.store_maps(db, [a_map(f"m{k}", row_id=f"r{k}") for k in range(3)])
            more = {"title": "Wave", "eye": "A wave.", "colour": "#56B4E9", "key": "6"}
            change = labels.ClassChange("add", "wave", **more)
            labels.change_class(db, "bert", change, annotator="ada", taken=["block"])
            for number, (who, place, kind, detail) in enumerate(acts, start=1):
                said = {"note": "ein Wort, 'so' <b>"} if kind == "note" else {}
                standing = labels.undoable(db, "bert", who)
                if kind == "undo":
                    if not standing:
                        continue
                    said = {"undoes": standing[-1]["event"], "map_id": standing[-1]["map_id"]}
                one = event(number, f"m{place}", CLASSES[detail], kind=kind, annotator=who, batch=f"tab-{who}") | said
                labels.record_events(db, [one])
            if not labels.all_events(db):
                return
            write(db, folder)
            assert read(other, folder).refused == []
            events, maps, classes = everything(db)
            used = {row["map_id"] for row in events}
            assert everything(other) == (events, {name: maps[name] for name in maps if name in used}, classes)
            assert read(other, folder).new == 0


def test_the_hubs_own_library_opens_the_folder(db, tmp_path):
    datasets = pytest.importorskip("datasets")
    labels.record_events(db, [event(1, "m1"), event(2, "m2", "block")])
    export_dataset(db, tmp_path / "set", "bert")
    found = datasets.load_dataset(str(tmp_path / "set"), cache_dir=str(tmp_path / "cache"))["train"]
    assert found["class"] == ["vertical", "block"] or list(found["class"]) == ["vertical", "block"]
    weights = np.frombuffer(found[0]["weights"], dtype="<f2").reshape(6, 6)
    assert weights.sum(1) == pytest.approx(1, abs=0.01)
    with pytest.raises(InputError, match="new or empty"):
        export_dataset(db, tmp_path / "set", "bert")
    with pytest.raises(InputError, match="must have at least one label"):
        export_dataset(db, tmp_path / "other", "gpt2")


# ---------------------------------------------------------------- Label Studio


def annotation(*titles, by=None, **other):
    result = [{"from_name": "class", "to_name": "image", "type": "choices", "value": {"choices": list(titles)}}]
    return {"id": 1, "completed_by": by or {"email": "zoe@example.org"}, "result": result} | other


def studio(tmp_path, *tasks):
    file = tmp_path / "studio.json"
    file.write_text(json.dumps([{"id": 7, "data": {"map_id": name}, "annotations": [one]} for name, one in tasks]))
    return file


def test_what_was_labelled_there_comes_in_under_its_name(db, tmp_path):
    skipped = {"completed_by": {"email": "zoe@example.org"}, "was_cancelled": True, "result": []}
    two = ("m1", annotation("Block")), ("m2", annotation("vertical + diagonal", by=3))
    file = studio(tmp_path, *two, ("m3", skipped))
    found = import_studio(db, file, "bert", people={"3": "max"})
    assert (found.new, found.refused) == (3, [])
    assert labels.decided(db, "bert", "zoe@example.org") == {"m1": "block", "m3": None}
    assert labels.decided(db, "bert", "max") == {"m2": "vertical+diagonal"}
    assert import_studio(db, file, "bert", people={"3": "max"}).new == 0


def test_what_was_changed_there_comes_back_as_a_new_label(db, tmp_path):
    labels.record_events(db, [event(1, "m1", "block"), event(2, "m2", "block")])
    export_studio(db, tmp_path / "a.json", "bert")
    tasks = json.loads((tmp_path / "a.json").read_text())
    tasks[0]["annotations"][0]["result"][0]["value"]["choices"] = ["Diagonal"]
    (tmp_path / "b.json").write_text(json.dumps(tasks))
    assert import_studio(db, tmp_path / "b.json", "bert").new == 1
    assert labels.decided(db, "bert", "ada") == {"m1": "diagonal", "m2": "block"}
    assert "<Choice value=" in (tmp_path / "a.xml").read_text()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "one", "said"),
    [
        ("m1", annotation("Block", "Diagonal"), "2 choices (Block, Diagonal)"),
        ("m1", annotation(), "0 choices"),
        ("m1", annotation("Wavy"), "got 'Wavy'"),
        ("m1", annotation("Block", by=9), "the user '9' has none"),
        ("gone", annotation("Block"), "must refer to a stored map; got 'gone'"),
        (None, annotation("Block"), "must have the ID of its map"),
        ("m1", 7, "JSON object"),
    ],
)
def test_an_annotation_that_cannot_be_used_is_reported_and_the_rest_kept(db, tmp_path, name, one, said):
    found = import_studio(db, studio(tmp_path, (name, one), ("m2", annotation("Block"))), "bert")
    assert found.new == 1
    ((_, why),) = found.refused
    assert said in why
    again = import_studio(db, studio(tmp_path, (name, one), ("m3", annotation("Block"))), "bert", keep_rest=False)
    assert again.new == 0


@pytest.mark.parametrize("text", ["", "{}", "[7]", "{", "[" * 100_000])
def test_a_file_that_is_no_export_of_label_studio_is_a_sentence(db, tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(InputError, match="Label Studio"):
        import_studio(db, tmp_path / "a.json", "bert")


def test_a_picture_is_a_png_of_the_weights():
    from io import BytesIO

    from PIL import Image

    found = np.asarray(Image.open(BytesIO(png(np.array([[1.0, 0.0], [0.5, 0.5]])))))
    assert found.shape == (256, 256)
    assert (found[0, 0], found[0, -1], found[-1, 0]) == (0, 255, 128)


# ---------------------------------------------------------------- maps from elsewhere


def notebook(folder, facts, names=("a", "b"), length=4):
    rng = np.random.default_rng(0)
    np.savez(folder / "maps.npz", **{name: rng.dirichlet(np.ones(length), length) for name in names})
    (folder / "facts.jsonl").write_text("\n".join(map(json.dumps, facts)))
    return folder / "maps.npz", folder / "facts.jsonl"


def fact(key, **other):
    return {"key": key, "checkpoint": "their-model", "layer": 2, "head": 1} | other


def test_maps_of_a_notebook_are_labelled_like_our_own(db, tmp_path):
    tokens = ["[CLS]", "a", "b", "[SEP]"]
    files = notebook(tmp_path, [fact("a", tokens=tokens, separators=[3]), fact("b", causal=True, task="sst2")])
    assert foreign_maps.import_maps(db, *files) == (2, 2)
    assert foreign_maps.import_maps(db, *files) == (2, 0)
    facts = labels.map_facts(db).query("checkpoint == 'their-model'").set_index("row_id")
    assert facts.loc["a", "task"] == "elsewhere"
    assert (facts.loc["b", "task"], bool(facts.loc["b", "causal"])) == ("sst2", True)
    name = facts.loc["a", "map_id"]
    labels.record_events(db, [event(1, name)])
    assert labels.maps_of(db, [name])[0]["tokens"] == tokens


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ([fact("a")], "'b' has weights but no metadata"),
        ([fact("a"), fact("b"), fact("c")], "'c' has metadata but no weights"),
        ([fact("a"), fact("a")], "second one for 'a'"),
        ([fact("a"), {"key": "b"}], "lacks at least one of them"),
        ([fact("a"), fact("b", colour="red")], "has 'colour'"),
        ([fact("a"), 7], "must be a JSON object"),
        ([fact("a"), fact("b", layer=-1)], "whole number from 0"),
        ([fact("a"), fact("b", tokens=["x"])], "must list the"),
    ],
)
def test_facts_that_do_not_fit_their_maps_are_a_sentence(db, tmp_path, facts, said):
    before = labels.stored_at(db)
    with pytest.raises(InputError, match=said):
        foreign_maps.import_maps(db, *notebook(tmp_path, facts))
    assert labels.stored_at(db) == before


# ---------------------------------------------------------------- erasure


def a_team(db):
    from core.labelling.assignment import Rules
    from core.labelling.projects import ProjectRecipe, make_project
    from core.store.projects import Heading

    project = make_project(
        db, Heading("p", "bert", annotator="ada"), ProjectRecipe(count=4), Rules(k=2, people=("ada", "bob"))
    )
    for who in ("ada", "bob"):
        hand = Hand(db, project, who)
        for choice in hand.holds():
            hand.say(choice)
    projects.judge_person(db, project, "ada", admitted=True, annotator="ada")
    return project


def names_in(db):
    return "\n".join(
        str(db.read(f"SELECT * FROM {table}").to_dict("records"))  # noqa: S608 - our tables
        for table in ("label_event", "claim", "project", "project_event", "label_batch", "erasure", "class_event")
    )


def test_a_name_is_taken_out_of_everything_and_labels_stay(db):
    from core.labelling import assignment_service

    project = a_team(db)
    before = assignment_service.board_of(db, project).counted
    found = erasure.erase_name(db, "ada", annotator="root")
    assert found.events > 0
    assert "'ada'" not in names_in(db)
    assert '"ada"' not in names_in(db)
    board = assignment_service.board_of(db, project)
    assert board.counted == before == 8
    assert board.people == ["bob", found.pseudonym]
    assert erasure.erasures(db) == [found]
    with pytest.raises(InputError, match="got 'ada'"):
        erasure.erase_name(db, "ada", annotator="root")


def test_a_persons_events_are_deleted_with_a_record_and_their_maps_are_free_again(db):
    from core.labelling import assignment_service

    project = a_team(db)
    found = erasure.erase_events(db, "ada", annotator="ada")
    assert {row["annotator"] for row in labels.all_events(db)} == {"bob"}
    assert "'ada'" not in names_in(db)
    assert (found.kind, found.annotator) == ("events", found.pseudonym)
    assert assignment_service.board_of(db, project).counted == 4


def test_only_an_admin_erases(db):
    a_team(db)
    with pytest.raises(RightsError):
        erasure.erase_name(db.acting_as(Person("bob", "annotator")), "ada", annotator="bob")
