"""Roles are asked for where rows are written: a page that forgets to hide a button gives nothing away."""

import pytest

from core.errors import AtlasError, InputError
from core.jobs import api
from core.jobs.duration_estimate import keep_partial
from core.patterns import classifier_registry
from core.store import classifiers, erasure, exchange, findings, hypotheses, label_files, labels, projects, runs
from core.store.database import Database
from core.store.labels import retire
from core.store.people import ROLES, Person, RightsError, role_of
from core.store.runs import Provenance, Removed, put_back
from tests.store.labelling import SET, a_map, event


def add_class(db):
    labels.change_class(
        db, SET, labels.ClassChange("add", "wave", eye="A wave.", colour="#000000", key="6"), annotator="ada"
    )


def import_a_file(db, name):
    file = db.path.parent / "labels.jsonl"
    file.write_text("")
    label_files.import_labels(db, file)


WRITES = {  # what is done, and the lowest role that may
    "a label": ("annotator", lambda db, name: labels.record_events(db, [event(1, annotator=name)])),
    "maps to label": ("annotator", lambda db, name: labels.store_maps(db, [a_map("m2")])),
    "a run": ("annotator", lambda db, name: runs.record_run(db, "heads", {}, Provenance())),
    "start a job": ("admin", lambda db, name: api.wait(db, api.start(db, "no_such_study", {}), 60)),
    "train on labels": ("annotator", lambda db, name: api.wait(db, api.start(db, "train-patterns", {}), 60)),
    "cancel a job": ("admin", lambda db, name: api.cancel(db, "none")),
    "a new class": ("admin", lambda db, name: add_class(db)),
    "choose a classifier": ("admin", lambda db, name: classifiers.choose(db, SET, None, annotator=name)),
    "import labels": ("admin", import_a_file),
    "import a folder": ("admin", lambda db, name: label_files.import_folder(db, db.path.parent)),
    "import a run": ("admin", lambda db, name: exchange.import_run(db, db.path.parent / "none.jsonl")),
    "import an export": ("admin", lambda db, name: exchange.import_all(db, db.path.parent / "none")),
    "add the bundled labels": ("annotator", lambda db, name: classifier_registry.bundled_labels(db, "bert")),
    "delete a job": ("admin", lambda db, name: api.delete(db, "none")),
    "delete runs": ("admin", lambda db, name: runs.delete_runs(db, ["none"])),
}


def contents(db):
    return {name: db.cursor().execute(f'SELECT count(*) FROM "{name}"').fetchall() for name in exchange.tables(db)}  # noqa: S608


@pytest.fixture(scope="module")
def shared_db(tmp_path_factory):
    """Where each test compares before with after, however much others have written."""
    with Database(tmp_path_factory.mktemp("people") / "atlas.duckdb") as database:
        labels.store_maps(database, [a_map()])
        yield database


@pytest.mark.thorough
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("what", WRITES)
def test_a_write_needs_its_role(shared_db, what, role):
    db = shared_db
    lowest, write = WRITES[what]
    person = Person("eve@example.org", role)
    before = contents(db)
    try:
        write(db.acting_as(person), person.name)
        refused = None
    except RightsError as error:
        refused = str(error)
    except AtlasError:  # allowed, and then refused for what was asked: there is no such job, file or run
        refused = None
    assert (refused is None) == person.may(lowest)
    if refused:
        assert "\n" not in refused
        assert contents(db) == before


REFUSED = {  # what a viewer may not, as the refusal names it
    "label": lambda db: labels.record_events(db, [event(1, annotator="eve")]),
    "change stored data": lambda db: labels.store_maps(db, [a_map("m2")]),
    "start a job": lambda db: api.start(db, "no_such_study", {}),
    "cancel a job": lambda db: api.cancel(db, "none"),
    "resume a job": lambda db: api.resume(db, "none"),
    "add the bundled labels": lambda db: classifier_registry.bundled_labels(db, "bert"),
    "delete a job": lambda db: api.delete(db, "none"),
    "keep a part of a job": lambda db: keep_partial(db, "none"),
    "change classes": add_class,
    "choose the classifier that suggests": lambda db: classifiers.choose(db, SET, None, annotator="eve"),
    "import labels": lambda db: label_files.import_folder(db, db.path.parent),
    "import an export": lambda db: exchange.import_all(db, db.path.parent / "none"),
    "import a run": lambda db: exchange.import_run(db, db.path.parent / "none.jsonl"),
    "delete runs": lambda db: runs.delete_runs(db, ["none"]),
    "erase a person": lambda db: erasure.erase_name(db, "ada", annotator="eve"),
    "register a hypothesis": lambda db: hypotheses.add_batch(db, None, []),
    "withdraw a hypothesis": lambda db: hypotheses.withdraw(db, "none"),
    "close a project": lambda db: projects.change_project(db, "none", "close", annotator="eve"),
    "pause people": lambda db: projects.judge_person(db, "none", "ada", admitted=False, annotator="eve"),
    "order the maps of a project": lambda db: projects.order_maps(db, "none", [], annotator="eve"),
    "restore a result": lambda db: put_back(db, Removed("none")),
    "retract labels of others": lambda db: retire(db, ["tab:1"], annotator="eve", why="none"),
}


@pytest.mark.parametrize("doing", REFUSED)
def test_a_viewer_is_told_what_needs_another_role(shared_db, doing):
    with pytest.raises(
        RightsError, match=rf"^The role (annotator|admin) is required to {doing}; eve has the role viewer\."
    ):
        REFUSED[doing](shared_db.acting_as(Person("eve", "viewer")))


def test_an_annotator_neither_retires_labels_nor_unpins_findings_of_others(db):
    labels.store_maps(db, [a_map()])
    eve, ada = (db.acting_as(Person(name, "annotator")) for name in ("eve", "ada"))
    with pytest.raises(RightsError, match=r"^The role admin is required to retract labels of others"):
        labels.record_events(eve, [event(1, kind="retire", annotator="eve", undoes="tab:9")])
    of_ada, of_eve = (
        findings.pin(one, findings.Finding("run", "T", "", "about", "python -m core")) for one in (ada, eve)
    )
    with pytest.raises(RightsError, match=r"^The role admin is required to delete findings of other people"):
        findings.unpin(eve, of_ada)
    findings.unpin(ada, of_ada)
    assert [(finding.finding, finding.annotator) for finding in findings.findings(db)] == [(of_eve, "eve")]


def test_a_viewer_reads_and_nobody_does_not(db):
    labels.store_maps(db, [a_map()])
    assert len(labels.map_facts(db.acting_as(Person("eve", "viewer")))) == 1
    with pytest.raises(RightsError, match="read stored data"):
        labels.map_facts(db.acting_as(Person("eve", "none")))


def test_an_annotator_labels_under_their_own_name_only(db):
    labels.store_maps(db, [a_map()])
    ada = db.acting_as(Person("ada", "annotator"))
    labels.record_events(ada, [event(1, annotator="ada")])
    with pytest.raises(RightsError, match="own name"):
        labels.record_events(ada, [event(2, annotator="bob")])
    with pytest.raises(InputError, match="belongs to somebody else"):
        labels.record_events(db.acting_as(Person("root", "admin")), [event(2, annotator="bob")])
    labels.record_events(db.acting_as(Person("root", "admin")), [event(2, annotator="bob", batch="root")])
    assert sorted(labels.labels(db, SET)["annotator"]) == ["ada", "bob"]
    with pytest.raises(RightsError, match="The role annotator is required to label; vera has the role viewer"):
        Person("vera", "viewer").signs("vera")


def test_nobody_undoes_or_overwrites_what_another_person_did(db):
    labels.store_maps(db, [a_map()])
    labels.record_events(db, [event(1, annotator="ada")])
    bob = db.acting_as(Person("bob", "annotator"))
    for bad in (
        event(1, annotator="bob", batch="other", kind="undo", undoes="tab:1"),
        event(1, "m1", "diagonal", annotator="bob"),  # the number of ada's event
    ):
        with pytest.raises(InputError, match=r"by 'ada'|belongs to somebody else"):
            labels.record_events(bob, [bad])
    assert labels.labels(db, SET)["class"].tolist() == ["vertical"]


def test_handles_share_one_file_and_close_with_it(db):
    handle = db.acting_as(Person("eve", "annotator"))
    with handle.write() as cursor, db.write() as same:
        assert cursor is same
    assert handle.shared is db
    assert db.shared is db
    assert api.runner(handle) is api.runner(db)
    db.close()
    assert handle.closed


@pytest.mark.parametrize(
    ("name", "roles", "expected"),
    [
        ("a@x.org", {"admin": ["a@x.org"]}, "admin"),
        ("A@X.org ", {"admin": ["a@x.ORG"]}, "admin"),
        ("a@x.org", {"viewer": ["a@x.org"], "annotator": ["a@x.org"]}, "annotator"),
        ("b@x.org", {"admin": ["a@x.org"]}, "none"),
        ("b@x.org", {"admin": ["a@x.org"], "default": "viewer"}, "viewer"),
        ("b@x.org", {}, "none"),
        ("", {"admin": []}, "none"),
    ],
)
def test_the_role_of_someone_signed_in(name, roles, expected):
    assert role_of(name, roles) == expected


@pytest.mark.parametrize(
    "roles",
    [{"admin": "a@x.org"}, {"owner": ["a@x.org"]}, {"admin": [3]}, {"default": "root"}, {"viewer": {"a": 1}}],
)
def test_roles_that_are_written_wrongly_give_nobody_anything(roles):
    with pytest.raises(RightsError) as error:
        role_of("a@x.org", roles)
    assert "\n" not in str(error.value)
    assert ("must be a role (viewer, annotator, admin) with a list of names; the entry" in str(error.value)) == (
        "default" not in roles
    )
