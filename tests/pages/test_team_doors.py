"""The doors of a project's sheet: open to pages of this app and to the role, shut to everything else."""

import json

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit import config as server
from streamlit.web.server import server_util
from streamlit.web.server.starlette.starlette_app_utils import create_signed_value, generate_xsrf_token_string
from streamlit.web.server.starlette.starlette_server_config import USER_COOKIE_NAME

from core.labelling import assignment_service
from core.labelling.assignment import Rules
from core.labelling.projects import ProjectRecipe, make_project
from core.sign_in import SignIn
from core.store import labels
from core.store.projects import Heading
from pages.parts.shell import guard, people, resources
from pages.parts.team import http_routes, project_sheet
from tests.labelling.test_projects import fill
from tests.pages.spliced import spliced
from tests.spread import one_in
from tests.store.labelling import event

PLACE = "http://localhost"
SECRET = "only-for-this-test-0123456789abcdef"


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    resources.database.clear()
    db = resources.database()
    fill(db.shared, 8)
    yield make_project(db.shared, Heading("p", "bert"), ProjectRecipe(count=6), Rules(k=1, ahead=4))
    resources.database.clear()


@pytest.fixture
def client():
    with TestClient(Starlette(routes=http_routes.ROUTES), base_url=PLACE) as found:
        token = generate_xsrf_token_string()
        found.cookies.set("_streamlit_xsrf", token)
        found.headers.update({"x-xsrftoken": token, "origin": PLACE})
        yield found


def maps_of(client, project, annotator="ada", path="/team/maps"):
    answer = client.post(path, json={"project": project, "annotator": annotator})
    size = int.from_bytes(answer.content[:4], "little")
    return json.loads(answer.content[4 : 4 + size])


def box(project, choices, annotator="ada", cls="block", **other):
    events = [
        event(k + 1, one["id"], cls, annotator=annotator, project=project) | {"pass": one["pass"]}
        for k, one in enumerate(choices)
    ]
    boxes = [{"database": resources.database().id, "batch": f"tab-{annotator}", "events": events}]
    return {"boxes": boxes, "secret": annotator} | other


@pytest.mark.parametrize("path", ["/team/maps", "/atlas/team/maps"])
def test_a_page_of_the_app_gets_maps_under_whatever_path_it_lives(client, project, path):
    header = maps_of(client, project, path=path)
    assert len(header["maps"]) == 4
    assert {one["pass"] for one in header["maps"]} == {1}
    assert header["project"] == project


def test_labels_are_stored_acknowledged_and_kept_once(client, project):
    maps = maps_of(client, project)["maps"]
    for _ in range(2):
        reply = client.post("/team/labels", json=box(project, maps)).json()
        assert reply["acknowledged"] == {"tab-ada": 4}
    assert len(labels.all_events(resources.database())) == 4
    assert assignment_service.board_of(resources.database(), project).counted == 4
    assert len(maps_of(client, project)["maps"]) == 2


def test_a_label_outside_any_project_comes_by_the_same_door(client, project):
    db = resources.database()
    name = maps_of(client, project)["maps"][0]["id"]
    sent = {"database": db.id, "batch": "tab-1", "events": [event(1, name, "vertical", annotator="cyd")]}
    reply = client.post("/team/labels", json={"boxes": [sent], "secret": "s"}).json()
    assert reply == {"acknowledged": {"tab-1": 1}, "feedback": [], "word": "", "more": False}
    assert labels.decided(db, "bert", "cyd") == {name: "vertical"}


def test_what_is_no_outbox_of_this_database_is_left_alone(client, project):
    elsewhere = {"database": "another", "batch": "tab-1", "events": [{"sequence": 1}]}
    for boxes in (7, [7, {}, {"database": 1}], [elsewhere], [elsewhere | {"database": None}]):
        assert client.post("/team/labels", json={"boxes": boxes}).json()["acknowledged"] == {}, boxes
    assert labels.all_events(resources.database()) == []


def test_what_cannot_be_kept_is_said_and_can_be_dropped(client, project):
    maps = maps_of(client, project)["maps"]
    sent = box(project, maps)
    sent["boxes"][0]["events"][1]["class"] = "wavy"
    reply = client.post("/team/labels", json=sent).json()
    assert "must be one of the classes" in reply["refused"]
    assert reply["acknowledged"] == {}
    reply = client.post("/team/labels", json=sent | {"drop": True}).json()
    assert reply["acknowledged"] == {"tab-ada": 4}
    assert assignment_service.board_of(resources.database(), project).counted == 3


@pytest.mark.thorough
@pytest.mark.parametrize(
    "headers",
    [
        {"x-xsrftoken": ""},
        {"x-xsrftoken": "2|00000000|00000000000000000000000000000000|1"},
        {"origin": "https://elsewhere.example"},
        {"content-type": "text/plain"},
    ],
)
@pytest.mark.parametrize("door", ["labels", "maps"])
def test_a_request_from_elsewhere_finds_the_door_shut(client, project, headers, door):
    sent = box(project, [{"id": "m1", "pass": 1}]) | {"project": project, "annotator": "ada"}
    body = json.dumps(sent)
    answer = client.post(f"/team/{door}", content=body, headers={"content-type": "application/json"} | headers)
    assert answer.status_code == 403
    assert "own pages only" in answer.json()["refused"]
    assert labels.all_events(resources.database()) == []
    assert assignment_service.board_of(resources.database(), project).people == []


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"7", b"{", b"\xff", b"[" * 100_000, b'{"a": "' + b"x" * (3 << 20) + b'"}']
)
def test_a_body_that_is_no_request_is_a_sentence(client, project, body):
    answer = client.post("/team/labels", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 403
    assert "Traceback" not in answer.text


@pytest.mark.parametrize("sent", [{}, {"boxes": 7}, {"project": [1]}, {"project": "gone", "annotator": {"a": 1}}])
def test_what_has_another_form_changes_nothing(client, project, sent):
    for door in ("labels", "maps"):
        assert client.post(f"/team/{door}", json=sent).status_code == 200
    assert labels.all_events(resources.database()) == []


def test_get_opens_nothing(client, project):
    assert client.get("/team/maps").status_code == 405


def test_who_may_only_look_labels_nothing(client, project, monkeypatch):
    monkeypatch.setenv("ATLAS_VISITORS", "viewer")
    assert (
        "role annotator is required"
        in client.post("/team/maps", json={"project": project, "annotator": "a"}).json()["refused"]
    )
    reply = client.post("/team/labels", json=box(project, [{"id": "m1", "pass": 1}])).json()
    assert "role annotator is required" in reply["refused"]


@pytest.fixture
def guarded(monkeypatch):
    roles = {"annotator": ["grace@example.org"], "viewer": ["vera@example.org"]}
    monkeypatch.setattr(people, "configured", lambda: SignIn(required=True, roles=roles))
    monkeypatch.setattr(server_util, "get_cookie_secret", lambda: SECRET)


def signed_in(client, address, *, secret=SECRET, origin=PLACE):
    claims = {"origin": origin, "is_logged_in": True, "email": address, "email_verified": True}
    claims["session"] = people.begin_session(claims)
    value = create_signed_value(secret, USER_COOKIE_NAME, json.dumps(claims)).decode()
    client.cookies.set(USER_COOKIE_NAME, value)


def asked(client, project, annotator):
    answer = client.post("/team/maps", json={"project": project, "annotator": annotator})
    return answer.json()["refused"] if answer.headers["content-type"] == "application/json" else ""


def test_with_sign_in_the_signed_cookie_says_who_asks(client, project, guarded):
    assert "the role none" in asked(client, project, "grace@example.org")  # nobody
    signed_in(client, "grace@example.org")
    assert asked(client, project, "grace@example.org") == ""
    assert "under your own name" in asked(client, project, "ada@example.org")
    signed_in(client, "vera@example.org")
    assert "role annotator is required" in asked(client, project, "vera@example.org")


@pytest.mark.parametrize("slip", [{"secret": "another-secret-0123456789"}, {"origin": "https://elsewhere.example"}])
def test_a_cookie_that_is_forged_or_from_elsewhere_is_nobody(client, project, guarded, slip):
    signed_in(client, "grace@example.org", **slip)
    assert "the role none" in asked(client, project, "grace@example.org")


def test_a_cookie_without_an_origin_is_nobody(client, project, guarded):
    signed_in(client, "grace@example.org")
    del client.headers["origin"]
    assert "the role none" in asked(client, project, "grace@example.org")


def test_the_server_checks_forgery():
    assert server.get_option("server.enableXsrfProtection") is True


def test_what_the_doors_ask_is_what_uploads_are_asked():
    assert http_routes.who_asks is guard.who_asks


def test_with_sign_in_chunks_of_two_cookies_are_nobody(client, project, guarded):
    for name, value in spliced("grace@example.org", "eve@example.org", PLACE, SECRET).items():
        client.cookies.set(name, value)
    assert "the role none" in asked(client, project, "grace@example.org")


# ---------------------------------------------------------------- what a hostile page would send

HARMFUL = [
    None,
    True,
    -1,
    2**70,
    1e300,
    float("nan"),
    "",
    "\0",
    "\ud800",
    "a\u202eb",
    "x" * 100_000,
    [[]],
    {"a": {}},
    "'; DROP TABLE label_event; --",
    "9998-12-31",
]
EVENT_FIELDS = [
    "sequence", "kind", "class_set", "map_id", "annotator", "pass", "class", "note", "undoes", "project", "seconds",
    "scale", "way", "queue_order", "suggestion", "probability", "classifier", "happened", "stored", "event", "batch",
]  # fmt: skip


def raw(client, door, sent):
    """As a hostile page sends it: json.dumps writes NaN and half characters, which a browser's JSON would not."""
    answer = client.post(f"/team/{door}", content=json.dumps(sent), headers={"content-type": "application/json"})
    assert answer.status_code in (200, 403)
    assert "Traceback" not in answer.text
    return answer


OF_KINDS = ("sequence", "note", "happened")  # a number, a text, a time


@pytest.mark.thorough
@pytest.mark.parametrize(
    "field", [one if one in OF_KINDS else pytest.param(one, marks=pytest.mark.slow) for one in EVENT_FIELDS]
)  # 0.8 CPU seconds each
def test_no_value_of_any_field_breaks_the_door(client, project, field, monkeypatch):
    monkeypatch.setattr(project_sheet, "MOST_BOXES", len(HARMFUL))
    one = maps_of(client, project)["maps"][0]
    boxes = []
    for number, harmful in enumerate(HARMFUL):
        boxes += box(project, [one])["boxes"]
        boxes[-1]["batch"] = f"tab-{number}"
        boxes[-1]["events"][0][field] = harmful
    for drop in (False, True):
        raw(client, "labels", {"boxes": boxes, "secret": "ada", "drop": drop})
    for stored in labels.all_events(resources.database()):
        assert 0 <= (stored["seconds"] or 0) <= 366 * 86_400
        assert stored["happened"].year < 2100
        assert (stored["class_set"], stored["annotator"]) == ("bert", "ada")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "field", one_in(3, ["boxes", "secret", "drop", "project", "annotator", "database", "events", "batch"])
)
def test_no_value_around_the_events_breaks_a_door(client, project, field):
    sent = box(project, maps_of(client, project)["maps"][:1]) | {"project": project, "annotator": "ada"}
    for harmful in HARMFUL:
        inner = sent | {"boxes": [sent["boxes"][0] | {field: harmful}]}
        raw(client, "labels", inner if field in ("database", "batch", "events") else sent | {field: harmful})
        if field in ("project", "annotator"):
            raw(client, "maps", sent | {field: harmful})
    people_there = assignment_service.board_of(resources.database(), project).people
    assert all(name.isprintable() and 0 < len(name) <= 200 for name in people_there)


def test_a_request_of_thousands_of_notes_is_taken_in_parts(client, project, monkeypatch):
    monkeypatch.setattr(project_sheet, "MOST_EVENTS", 5)
    notes = [event(k + 1, "m1", kind="note", note="n", project=project) for k in range(12)]
    boxes = [{"database": resources.database().id, "batch": "tab-ada", "events": notes[::-1]}]
    taken = []
    for _ in range(3):
        reply = client.post("/team/labels", json={"boxes": boxes, "secret": "ada"}).json()
        taken.append((reply["acknowledged"]["tab-ada"], reply["more"]))
        boxes[0]["events"] = [note for note in notes if note["sequence"] > taken[-1][0]]
    assert taken == [(5, True), (10, True), (12, False)]
    assert len(labels.all_events(resources.database())) == 12


def test_of_many_outboxes_the_first_are_taken(client, project, monkeypatch):
    monkeypatch.setattr(project_sheet, "MOST_BOXES", 2)
    boxes = [
        {
            "database": resources.database().id,
            "batch": f"tab-{k}",
            "events": [event(1, kind="note", note="n", project=project)],
        }
        for k in range(3)
    ]
    reply = client.post("/team/labels", json={"boxes": boxes, "secret": "ada"}).json()
    assert (set(reply["acknowledged"]), reply["more"]) == ({"tab-0", "tab-1"}, True)


def test_labels_of_another_class_set_are_refused_with_a_sentence(client, project):
    maps = maps_of(client, project)["maps"]
    sent = box(project, maps)
    for label in sent["boxes"][0]["events"]:
        label["class_set"] = "gpt2"
    assert "must use the class set 'bert'; got 'gpt2'" in client.post("/team/labels", json=sent).json()["refused"]
    assert assignment_service.board_of(resources.database(), project).counted == 0
