"""Reports of other tools' users about labels: what Label Studio and pandas write, and names that look alike.

LS: HumanSignal/label-studio #1179 (meta is lost), #1605 (JSON-MIN), #764 and #1289 (annotations twice).
NAMES: HumanSignal/label-studio #7298 and #1165 (one person under two spellings of an e-mail address).
"""

import copy
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.errors import InputError
from core.labelling import assignment_service, crowd
from core.labelling.label_studio import export_studio, import_studio
from core.patterns.agreement import raters_of
from core.patterns.snapshot import current_labels
from core.store import label_files, labels
from core.store.database import Database
from core.store.people import Person
from tests.store.labelling import a_map, event

ADA, BEN = "ada@example.org", "ben@example.org"
BEFORE, EXPORTED, LATER = "2026-01-20T09:00:00", "2026-01-21T10:00:00.000000Z", "2026-01-22T09:00:00"


@pytest.fixture
def db(tmp_path):
    with Database(tmp_path / "atlas.duckdb") as database:
        labels.store_maps(database, [a_map(f"m{k}", row_id=f"r{k}") for k in range(4)])
        for who in (ADA, BEN):
            given = [
                event(k + 1, f"m{k}", batch=f"tab-{who}", annotator=who, happened=f"2026-01-20T09:00:0{k}")
                for k in range(4)
            ]
            labels.record_events(database, given)
        yield database


@pytest.fixture
def there(db, tmp_path):
    """The export as Label Studio gives it back: ids of its own, no `meta`, and its own time of change."""
    export_studio(db, tmp_path / "ours.json", "bert")
    tasks, number = json.loads((tmp_path / "ours.json").read_text()), 100
    for task in tasks:
        task |= {"drafts": [], "predictions": [], "meta": {}, "project": 1}
        for annotation in task["annotations"]:
            number += 1
            del annotation["meta"]
            annotation |= {"id": number, "unique_id": f"u{number}", "updated_at": EXPORTED, "task": task["id"]}
    return tasks


def bare(tasks):
    """Without the events that our export put beside the picture."""
    return [task | {"data": {k: v for k, v in task["data"].items() if k != "atlas"}} for task in copy.deepcopy(tasks)]


def storage(tasks):
    return [
        annotation | {"task": {"id": task["id"], "data": task["data"]}}
        for task in bare(tasks)
        for annotation in task["annotations"]
    ]


def json_min(tasks, **fields):
    return [
        {"map_id": task["data"]["map_id"], "image": "", "id": task["id"], "annotation_id": annotation["id"],
         "class": annotation["result"][0]["value"]["choices"][0], "annotator": annotation["completed_by"]["email"],
         "created_at": annotation["created_at"], "updated_at": annotation["updated_at"], "lead_time": 2.0} | fields
        for task in tasks
        for annotation in task["annotations"]
    ]  # fmt: skip


def completions(tasks):
    old = bare(tasks)
    for task in old:
        task["completions"] = task.pop("annotations")
    return old


FORMS = {
    "json": lambda tasks: tasks,
    "json without our events": bare,
    "each annotation twice": lambda tasks: bare(tasks) * 2,
    "completions": completions,
    "storage": storage,
    "json-min": json_min,
}


def written(tmp_path, content):
    file = tmp_path / "there.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


def change(db, name="m0", cls="diagonal", who=ADA, **other):
    number = len(labels.all_events(db)) + 1
    labels.record_events(db, [event(number, name, cls, batch="later", annotator=who, happened=LATER) | other])


@pytest.mark.thorough
@pytest.mark.parametrize("form", FORMS)
def test_a_project_that_nobody_changed_there_changes_nothing_here(db, there, tmp_path, form):
    change(db)
    events = len(labels.all_events(db))
    found = import_studio(db, written(tmp_path, FORMS[form](there)), "bert")
    assert (found.new, found.refused) == (0, [])
    assert found.already >= 8
    assert len(labels.all_events(db)) == events
    assert labels.decided(db, "bert", ADA)["m0"] == "diagonal"


@pytest.mark.thorough
@pytest.mark.parametrize("form", FORMS)
def test_an_empty_store_takes_each_label_once(there, tmp_path, form):
    with Database(tmp_path / "other.duckdb") as other:
        labels.store_maps(other, [a_map(f"m{k}", row_id=f"r{k}") for k in range(4)])
        file = written(tmp_path, FORMS[form](there))
        assert import_studio(other, file, "bert").new == 8
        assert import_studio(other, file, "bert").new == 0
        votes = crowd.votes_of(other, "bert")
        assert sorted(zip(votes.map_id, votes.annotator, strict=True)) == [
            (f"m{k}", who) for k in range(4) for who in (ADA, BEN)
        ]
        assert len(labels.all_events(other)) == 8


@pytest.mark.thorough
@pytest.mark.parametrize("form", ["json", "json without our events", "completions", "storage"])
def test_what_was_changed_there_comes_in_if_it_is_the_newest(db, there, tmp_path, form):
    there[1]["annotations"][0]["result"][0]["value"]["choices"] = ["Block"]
    name, who = there[1]["data"]["map_id"], there[1]["annotations"][0]["completed_by"]["email"]
    assert import_studio(db, written(tmp_path, FORMS[form](there)), "bert").new == 1
    assert labels.decided(db, "bert", who)[name] == "block"
    change(db, name, "diagonal", who)
    assert import_studio(db, written(tmp_path, FORMS[form](there)), "bert").new == 0
    assert labels.decided(db, "bert", who)[name] == "diagonal"


def test_of_two_labels_by_one_person_the_last_created_stands(db, tmp_path):
    def made(cls, when):
        return {"completed_by": {"email": "zoe@example.org"}, "created_at": when,
                "result": [{"type": "choices", "value": {"choices": [cls]}}]}  # fmt: skip

    task = {"id": 1, "data": {"map_id": "m1"}, "annotations": [made("Block", LATER), made("Diagonal", BEFORE)]}
    assert import_studio(db, written(tmp_path, [task]), "bert").new == 2
    assert labels.decided(db, "bert", "zoe@example.org") == {"m1": "block"}
    old = task | {"annotations": [made("Vertical", "2026-01-01T00:00:00")]}
    found = import_studio(db, written(tmp_path, [old]), "bert")
    assert (found.new, found.already) == (0, 1)
    assert "older than the stored labels of the same people" in found.notes[0]


def test_a_name_that_was_given_for_a_user_goes_before_an_address(db, there, tmp_path):
    for task in there:
        for annotation in task["annotations"]:
            annotation["completed_by"] = {"id": 3, "email": "who@example.org"}
    content = [task | {"annotations": task["annotations"][:1]} for task in bare(there)]
    found = import_studio(db, written(tmp_path, content), "bert", people={"3": "ada"})
    assert found.new == 4
    assert "count as different people: 'ada' and 'ada@example.org'." in found.notes[0]
    assert set(labels.decided(db, "bert", "ada")) == {"m0", "m1", "m2", "m3"}
    assert labels.decided(db, "bert", "who@example.org") == {}
    found = import_studio(db, written(tmp_path, content), "bert", people={"who@example.org": "ada", "9": "bob"})
    assert found.new == 0
    assert found.notes == ["No annotation is by the user 9. Check --person."]


def test_ids_of_users_need_names(db, there, tmp_path):
    found = import_studio(db, written(tmp_path, json_min(there, annotator=1)), "bert")
    assert (found.new, len(found.refused)) == (0, 8)
    assert "--person ID=NAME" in found.refused[0][1]
    assert import_studio(db, written(tmp_path, json_min(there, annotator=1)), "bert", people={"1": "ada"}).new == 4


def test_records_as_pandas_writes_them_are_labels(db, tmp_path):
    rows = [{"map_id": f"m{k}", "class": "vertical", "annotator": "cleo"} for k in range(4)]
    assert import_studio(db, written(tmp_path, rows), "bert").new == 4
    assert labels.decided(db, "bert", "cleo") == {f"m{k}": "vertical" for k in range(4)}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ([{"id": 1, "data": {"map_id": "m1"}, "annotations": []}], "1 tasks and no annotations"),
        ([{"id": 1, "data": {"map_id": "m1"}, "predictions": [{"result": []}]}], "predictions but without annotations"),
        ([{"map": "m1", "label": "block"}], "1 JSON objects with the keys label, map"),
        ({"map_id": {"0": "m1"}, "class": {"0": "block"}}, "an object with the keys class, map_id"),
        ('{"map_id": "m1"}\n{"map_id": "m2"}\n', "JSON Lines: rename it to .jsonl"),
        ("map_id,class\nm1,block\n", "must be JSON"),
        ("[]", "an empty JSON list"),
    ],
)
def test_a_file_without_a_label_is_a_sentence_that_names_its_form(db, tmp_path, content, said):
    with pytest.raises(InputError, match=said):
        import_studio(db, written(tmp_path, content), "bert")


def test_a_file_of_empty_lines_is_a_sentence(db, tmp_path):
    (tmp_path / "a.jsonl").write_text("\n \n")
    with pytest.raises(InputError, match="only empty lines"):
        label_files.import_labels(db, tmp_path / "a.jsonl")
    (tmp_path / "a.jsonl").write_text("")
    assert label_files.import_labels(db, tmp_path / "a.jsonl").rows == 0


def test_parquet_of_something_else_without_rows_is_a_sentence(db, tmp_path):
    pq.write_table(pa.table({"sentence": pa.array([], pa.string())}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="neither rows nor this column"):
        label_files.import_labels(db, tmp_path / "a.parquet")


def test_an_export_without_labels_imports_nothing(tmp_path):
    db = Database(tmp_path / "empty.duckdb")
    for ending in label_files.ENDINGS:
        assert label_files.export_labels(db, tmp_path / f"a{ending}") == 0
        assert label_files.import_labels(db, tmp_path / f"a{ending}").rows == 0
    db.close()


# ---------------------------------------------------------------- names

SPELLINGS = ("ada@x.org", "Ada@x.org", " ada@x.org", "ADA@X.ORG ")


def test_spellings_of_one_address_are_one_person_in_a_file(db, tmp_path):
    rows = [
        {"map_id": f"m{k}", "class": "block", "class_set": "bert", "annotator": who} for k, who in enumerate(SPELLINGS)
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = label_files.import_labels(db, tmp_path / "a.jsonl")
    assert found.new == 4
    assert labels.decided(db, "bert", "ada@x.org") == {f"m{k}": "block" for k in range(4)}
    assert "'Ada@x.org' as 'ada@x.org'" in found.notes[0]
    assert "ada@x.org" in raters_of(current_labels(db, "bert"))
    assert not {"Ada@x.org", " ada@x.org"} & set(labels.annotators(db))


@pytest.mark.parametrize("who", SPELLINGS)
def test_spellings_of_one_address_are_one_person_on_a_page(db, who):
    one = event(1, "m1", "block", batch="tab-x", annotator=who)
    assignment_service.record(db.acting_as(Person("ada@x.org", "annotator")), [one], secret="s")
    again = event(2, "m1", kind="undo", batch="tab-x", annotator="ada@x.org", undoes="tab-x:1")
    assignment_service.record(db.acting_as(Person("ada@x.org", "annotator")), [again], secret="s")
    assert labels.decided(db, "bert", "ada@x.org") == {}


def test_a_label_of_an_earlier_version_is_taken_back_by_its_own_person(db):
    labels.record_events(db, [event(1, "m1", "block", batch="tab-x", annotator="ada@x.org")])
    with db.write() as cursor:  # as earlier versions stored it
        cursor.execute("UPDATE label_event SET annotator = 'Ada@x.org' WHERE batch = 'tab-x'")
    undo = event(2, "m1", kind="undo", batch="tab-x", annotator="Ada@x.org", undoes="tab-x:1")
    labels.record_events(db, [undo])
    assert labels.record_events(db, [undo]).new == 0
    assert labels.decided(db, "bert", "Ada@x.org") == {}


@pytest.mark.parametrize(
    "pair",
    [
        ("Ada", "ada"),
        ("ada", "ada "),
        ("Ada  L", "ada l"),
        ("ａｄａ", "ada"),
        ("\u0430da", "ada"),
        ("Ada", "ada@x.org"),
    ],
)
def test_other_names_that_look_alike_are_reported(db, tmp_path, pair):
    rows = [{"map_id": "m1", "class": "block", "class_set": "bert", "annotator": who} for who in pair]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (note,) = label_files.import_labels(db, tmp_path / "a.jsonl").notes
    assert note.startswith("These names look alike and count as different people: ")
    assert all(repr(who) in note for who in pair)


def test_a_class_with_fewer_maps_than_folds_brings_no_warning(recwarn):
    from core.patterns.training import folds

    names = ["block"] * 11 + ["diagonal"]
    parts = folds(names, [f"g{k}" for k in range(12)], count=5, seed=0)
    assert sorted(position for _, test in parts for position in test) == list(range(12))
    assert not [str(warning.message) for warning in recwarn]
