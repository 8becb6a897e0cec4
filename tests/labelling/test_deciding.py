"""Who may decide on a map and when: one request of somebody else changes no truth, and no flag passes for a doubt."""

from datetime import timedelta

import pytest

from core.errors import AtlasError, InputError
from core.labelling import adjudicating, assignment_service, crowd
from core.labelling.adjudicating import Suspect
from core.labelling.assignment import Rules
from core.labelling.projects import ProjectRecipe, make_project
from core.store import labels, projects
from core.store.people import Person, RightsError
from core.store.projects import Heading
from core.store.rows import now
from tests.labelling.test_projects import START, Hand
from tests.store.labelling import event


@pytest.fixture
def map_count():
    return 6


@pytest.fixture
def project(db):
    """A project for three named people: they part on the first map and agree on the others."""
    rules = Rules(k=3, ahead=8, people=("ada", "bob", "cyd"))
    made = make_project(db, Heading("p", "bert"), ProjectRecipe(count=6), rules)
    for person in ("ada", "bob", "cyd"):
        hand = Hand(db, made, person)
        for choice in hand.holds(now=START):
            hand.say(choice, "diagonal" if (choice.map_id, person) == ("m0", "cyd") else "block", now=START)
    return made


def decides(db, person, name, cls="vertical", *, number=1, role="annotator", batch=None, **other):
    one = event(number, name, cls, batch=batch or f"d-{person}", annotator=person, queue_order="adjudication")
    handle = db.acting_as(Person(person, role))
    return assignment_service.record(handle, [one | {"pass": adjudicating.PASS} | other], secret=person)


def truth(db, project):
    return crowd.truth_of(db, "bert", "majority", project).labels.to_dict()


@pytest.mark.thorough
@pytest.mark.parametrize("passing", [1, 2, adjudicating.PASS])
def test_somebody_who_is_not_of_the_project_decides_on_none_of_its_maps(db, project, passing):
    before = truth(db, project)
    for k in range(6):
        with pytest.raises(RightsError, match=r"Only members of the project .* and admins"):
            decides(db, "eve", f"m{k}", number=k + 1, **{"pass": passing})
    assert truth(db, project) == before


@pytest.mark.thorough
@pytest.mark.parametrize(("person", "role"), [("ada", "annotator"), ("lead", "admin")])
def test_nobody_decides_on_a_map_that_is_not_in_dispute(db, project, person, role):
    before = truth(db, project)
    for k in range(1, 6):
        with pytest.raises(InputError, match="differing labels or a likely label error"):
            decides(db, person, f"m{k}", number=k, role=role)
    assert truth(db, project) == before
    decides(db, person, "m0", role=role)
    assert truth(db, project)["m0"] == "vertical"


@pytest.mark.thorough
def test_a_label_outside_the_project_makes_no_dispute_in_it(db, project):
    one = event(1, "m1", "diagonal", batch="tab-ada", annotator="ada")
    assignment_service.record(db.acting_as(Person("ada", "annotator")), [one], secret="ada")
    with pytest.raises(InputError, match="differing labels or a likely label error"):
        decides(db, "ada", "m1")


@pytest.mark.thorough
def test_somebody_whom_an_admin_paused_decides_on_nothing(db, project):
    projects.judge_person(db, project, "ada", admitted=False, annotator="lead")
    with pytest.raises(RightsError, match="excluded from the project"):
        decides(db, "ada", "m0")
    projects.judge_person(db, project, "ada", admitted=True, annotator="lead")
    decides(db, "ada", "m0")


def test_a_viewer_decides_on_nothing(db, project):
    with pytest.raises(RightsError):
        decides(db, "ada", "m0", role="viewer")


@pytest.mark.thorough
def test_a_decision_is_made_once_and_may_be_replaced_by_who_made_it(db, project):
    decides(db, "ada", "m0")
    assert decides(db, "ada", "m0").acknowledged == 1  # sent again
    with pytest.raises(InputError, match="is already decided"):
        decides(db, "bob", "m0", "diagonal")
    decides(db, "ada", "m0", "diagonal", number=2)
    assert truth(db, project)["m0"] == "diagonal"
    undo = {"kind": "undo", "undoes": "d-ada:2", "queue_order": "random", "class": None}
    decides(db, "ada", "m0", number=3, **undo)
    assert truth(db, project)["m0"] == "vertical"


@pytest.mark.thorough
def test_decisions_show_in_the_log_of_the_project(db, project):
    decides(db, "ada", "m0")
    projects.change_project(db, project, "close", annotator="lead")
    log = projects.history(db, project)
    assert log[["annotator", "what"]].to_numpy().tolist() == [["lead", "close"], ["ada", "decide"]]
    assert (log["map_id"].iloc[1], log["class"].iloc[1]) == ("m0", "vertical")


def test_without_a_project_a_map_must_be_in_dispute(db):
    for person, cls in (("ada", "block"), ("bob", "diagonal")):
        labels.record_events(db, [event(1, "m1", cls, batch=person, annotator=person)])
        labels.record_events(db, [event(2, "m2", "block", batch=person, annotator=person)])
    with pytest.raises(InputError, match="differing labels or a likely label error"):
        decides(db, "eve", "m2")
    with pytest.raises(InputError, match="differing labels or a likely label error"):
        decides(db, "eve", "m3", number=2)
    decides(db, "eve", "m1", number=3)


def test_a_map_without_a_name_of_one_is_refused_as_before(db):
    with pytest.raises(AtlasError):
        decides(db, "eve", None)
    with pytest.raises(AtlasError):
        decides(db, "eve", ["m0"])


# ---------------------------------------------------------------- doubts


@pytest.mark.thorough
def test_a_flag_of_an_annotator_is_no_doubt_of_a_classifier(db, project):
    flag = event(1, "m1", kind="flag", batch="tab-ada", annotator="ada", suggestion="vertical", probability=0.9)
    flag |= {"happened": (now() + timedelta(hours=23)).isoformat(), "queue_order": "adjudication"}
    assignment_service.record(db.acting_as(Person("ada", "annotator")), [flag], secret="ada")
    assert [dispute.map_id for dispute in adjudicating.disputes(db, "bert", project)] == ["m0"]


@pytest.mark.parametrize("batch", ["doubts-0123456789abcdef", "retired-1", "file-1"])
def test_no_browser_sends_an_outbox_of_the_programs_own(db, batch):
    flag = event(1, "m1", kind="flag", batch=batch, annotator="ada", suggestion="vertical")
    with pytest.raises(InputError, match="must not start with"):
        assignment_service.record(db.acting_as(Person("ada", "annotator")), [flag], secret="ada")


@pytest.mark.thorough
def test_a_decision_closes_a_doubt_whatever_the_clocks_say(db, project):
    suspects = [Suspect("m1", "block", "vertical", 0.4)]
    adjudicating.queue_doubts(db, "bert", suspects, annotator="lead")
    with db.write() as cursor:  # queued where a clock was ahead
        cursor.execute("UPDATE label_event SET happened = ? WHERE kind = 'flag'", [now() + timedelta(hours=23)])
    (doubt,) = [dispute for dispute in adjudicating.disputes(db, "bert", project) if dispute.doubt]
    assert (doubt.map_id, doubt.doubt, doubt.queued_by) == ("m1", "vertical", "lead")
    decides(db, "bob", "m1", "block")
    assert [dispute.map_id for dispute in adjudicating.disputes(db, "bert", project)] == ["m0"]
    adjudicating.queue_doubts(db, "bert", [Suspect("m1", "block", "diagonal", 0.5)], annotator="lead")
    assert {dispute.map_id for dispute in adjudicating.disputes(db, "bert", project)} == {"m0", "m1"}
