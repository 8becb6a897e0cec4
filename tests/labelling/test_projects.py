"""Projects in the store: what is drawn, who is handed what, what admins may do, and that a kill changes nothing."""

import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from core.errors import AtlasError, InputError
from core.labelling import assignment_service
from core.labelling.assignment import Rules
from core.labelling.projects import ProjectRecipe, make_project
from core.store import labels, projects
from core.store.backup import copy_held
from core.store.database import Database
from core.store.people import Person, RightsError
from core.store.projects import Heading, ProjectCounts, project_counts
from tests.store.labelling import a_map, event

START = datetime(2026, 1, 31, 12)


def fill(db, count):
    labels.store_maps(
        db,
        [
            a_map(f"m{k}", row_id=f"r{k}", layer=k % 3, head=k % 2, checkpoint=("one", "two")[k % 4 == 0], maximum=0.5)
            for k in range(count)
        ],
    )


class Hand:
    """One person's browser: its outbox numbers its events, and every answer goes to a project."""

    def __init__(self, db, project, person):
        self.db, self.project, self.person, self.sent = db, project, person, []

    def holds(self, **when):
        return assignment_service.next_maps(self.db, self.project, self.person, **when).choices

    def say(self, choice, cls="vertical", *, kind="label", **other):
        number, batch = len(self.sent) + 1, f"tab-{self.person}-{self.project}"
        when = {key: other.pop(key) for key in ("now",) if key in other}
        one = event(number, choice.map_id, cls, kind=kind, batch=batch, annotator=self.person, project=self.project)
        one |= {"pass": choice.passing} | other
        found = assignment_service.record(self.db, [one], secret=self.person, **when)
        self.sent.append(one)
        return found


def label_all(db, project, people, **when):
    hands = [Hand(db, project, person) for person in people]
    while said := [hand.say(choice, **when) for hand in hands for choice in hand.holds(**when)[:1]]:
        assert all(said)


# ---------------------------------------------------------------- making


def test_a_project_spreads_over_checkpoints_and_heads_by_its_seed(db):
    found = projects.project_maps(
        db, make_project(db, Heading("first", "bert"), ProjectRecipe(count=8, seed=1), Rules())
    )
    facts = labels.map_facts(db).set_index("map_id")
    chosen = [facts.loc[one.map_id] for one in found]
    assert Counter(row["checkpoint"] for row in chosen) == {"one": 4, "two": 4}
    assert len({(row["layer"], row["head"]) for row in chosen if row["checkpoint"] == "one"}) == 4
    again = projects.project_maps(
        db, make_project(db, Heading("again", "bert"), ProjectRecipe(count=8, seed=1), Rules())
    )
    other = projects.project_maps(
        db, make_project(db, Heading("other", "bert"), ProjectRecipe(count=8, seed=2), Rules())
    )
    assert found == again
    assert found != other


def test_the_most_uncertain_maps_come_first_of_every_head(db):
    margins = {f"m{k}": 0.01 * k for k in range(24)}
    hints = lambda names: {name: ("block", 0.5, margins[name]) for name in names}  # noqa: E731
    project = make_project(db, Heading("p", "bert"), ProjectRecipe(count=24), Rules(order="uncertain"), hints=hints)
    facts = labels.map_facts(db).set_index("map_id")
    order = [one.map_id for one in projects.project_maps(db, project)]
    for _, mine in facts.groupby(["checkpoint", "layer", "head"]):
        own = [name for name in order if name in mine.index]
        assert own == sorted(own, key=margins.get)
    with pytest.raises(InputError, match="needs a classifier that suggests classes"):
        make_project(db, Heading("q", "bert"), ProjectRecipe(), Rules(order="uncertain"))


def test_gold_and_exemplars_are_of_every_class_and_no_work(db):
    classes = ("vertical", "diagonal", "block")
    labels.record_events(db, [event(k + 1, f"m{k}", classes[k % 3], annotator="expert") for k in range(12)])
    project = make_project(db, Heading("p", "bert"), ProjectRecipe(gold=3, exemplars=3, known_from="expert"), Rules())
    found = projects.project_maps(db, project)
    for kind in ("gold", "exemplar"):
        assert {one.given for one in found if one.kind == kind} == set(classes)
    assert len({one.map_id for one in found}) == len(found) == 24
    with pytest.raises(InputError, match="13 such maps were requested, but only 12 exist"):
        make_project(db, Heading("p", "bert"), ProjectRecipe(gold=10, exemplars=3, known_from="expert"), Rules())


@pytest.mark.parametrize(
    ("recipe", "rules", "said"),
    [
        (ProjectRecipe(count=0), Rules(), "must have maps to label"),
        (ProjectRecipe(checkpoints=("gone",)), Rules(), "must have maps to label"),
        (ProjectRecipe(), Rules(k=3, people=("ada", "bob")), "3 annotators and 2 people"),
        (ProjectRecipe(), Rules(k=0), "from 1 to 25"),
        (ProjectRecipe(), Rules(gold_rate=0.9), "share of gold maps must be from 0 to 0.5"),
        (ProjectRecipe(), Rules(threshold=1.5), "annotator is paused must be from 0 to 1"),
        (ProjectRecipe(), Rules(lapse=1.0), "must be from 10 to 604800; got 1"),
        (ProjectRecipe(), Rules(order="newest"), "order of maps must be one of"),
    ],
)
def test_what_cannot_be_made_is_a_sentence(db, recipe, rules, said):
    with pytest.raises(InputError, match=said):
        make_project(db, Heading("p", "bert"), recipe, rules)
    assert projects.projects(db) == []


def test_more_people_a_map_than_are_there(db):
    with pytest.raises(InputError, match=r"got 3 annotators and 1 people \(ada\)"):
        make_project(db, Heading("p", "bert"), ProjectRecipe(), Rules(k=3), people_there=["ada"])
    with pytest.raises(InputError, match="nobody"):
        make_project(db, Heading("p", "bert"), ProjectRecipe(), Rules(k=1), people_there=[])


def test_only_an_admin_makes_and_closes(db):
    grace = db.acting_as(Person("grace", "annotator"))
    with pytest.raises(RightsError):
        make_project(grace, Heading("p", "bert"), ProjectRecipe(), Rules())
    project = make_project(db, Heading("p", "bert"), ProjectRecipe(), Rules())
    with pytest.raises(RightsError):
        projects.change_project(grace, project, "close", annotator="grace")
    with pytest.raises(RightsError):
        assignment_service.next_maps(grace, project, "ada")
    assert assignment_service.next_maps(grace, project, "grace").choices


# ---------------------------------------------------------------- life


def test_a_project_is_paused_opened_closed_and_archived(db):
    project = make_project(db, Heading("p", "bert", annotator="ada"), ProjectRecipe(), Rules())
    for kind, state in (("pause", "paused"), ("open", "open"), ("close", "closed"), ("archive", "archived")):
        projects.change_project(db, project, kind, annotator="ada")
        assert projects.one_project(db, project).state == state
        if state != "open":
            with pytest.raises(InputError, match=f"'p' is {state}"):
                assignment_service.next_maps(db, project, "ada")
    with pytest.raises(InputError, match="archived"):
        projects.change_project(db, project, "open", annotator="ada")


def test_of_two_admins_who_close_at_once_one_is_told(db):
    project = make_project(db, Heading("p", "bert"), ProjectRecipe(), Rules())

    def close(who):
        try:
            projects.change_project(db, project, "close", annotator=who)
        except InputError as error:
            return str(error)
        return None

    with ThreadPoolExecutor(2) as both:
        said = list(both.map(close, ["ada", "bob"]))
    assert said.count(None) == 1
    (told,) = [one for one in said if one]
    assert "is closed (last change by " in told
    assert len(db.read("SELECT * FROM project_event")) == 1


def test_labels_that_wait_while_a_project_closes_are_kept(db):
    project = make_project(db, Heading("p", "bert"), ProjectRecipe(count=4), Rules(k=1))
    hand = Hand(db, project, "ada")
    choice = hand.holds()[0]
    projects.change_project(db, project, "close", annotator="bob")
    hand.say(choice)
    assert list(projects.project_labels(db, project)["map_id"]) == []
    assert [event["map_id"] for event in labels.all_events(db)] == [choice.map_id]
    projects.change_project(db, project, "open", annotator="bob")
    assert list(projects.project_labels(db, project)["map_id"]) == [choice.map_id]


def test_a_map_that_was_not_handed_out_takes_no_label_of_the_project(db):
    project = make_project(db, Heading("p", "bert"), ProjectRecipe(count=4), Rules())
    other = next(
        name for name in labels.stored_at(db) if name not in {m.map_id for m in projects.project_maps(db, project)}
    )
    with pytest.raises(InputError, match=r"to whom it is assigned; .* is not assigned to 'ada'"):
        Hand(db, project, "ada").say(assignment_service.Choice(other))
    with pytest.raises(InputError, match="must be listed on the Projects page"):
        Hand(db, "nothing", "ada").say(assignment_service.Choice(other))
    assert labels.all_events(db) == []  # all or none


def test_a_title_names_one_project(db):
    project = make_project(db, Heading("p", "bert"), ProjectRecipe(), Rules())
    with pytest.raises(InputError, match="'p' is the same as the title"):
        make_project(db, Heading(" p ", "bert"), ProjectRecipe(), Rules())
    projects.change_project(db, project, "archive", annotator="ada")
    make_project(db, Heading("p", "bert"), ProjectRecipe(), Rules())


def test_two_projects_on_the_same_maps_count_apart(db):
    one, two = (make_project(db, Heading(name, "bert"), ProjectRecipe(count=4), Rules(k=1)) for name in "ab")
    label_all(db, one, ["ada"])
    assert assignment_service.board_of(db, one).complete
    assert assignment_service.board_of(db, two).counted == 0
    label_all(db, two, ["ada"])
    assert assignment_service.board_of(db, two).complete


def test_a_class_that_is_removed_in_the_middle_takes_nothing_with_it(db):
    labels.change_class(
        db,
        "bert",
        labels.ClassChange("add", "wave", title="Wave", eye="A wave.", colour="#56B4E9", key="6"),
        annotator="ada",
        taken=["block"],
    )
    labels.record_events(db, [event(k, f"m{k}", "wave", annotator="expert") for k in range(1, 7)])
    recipe = ProjectRecipe(count=6, gold=6, known_from="expert")
    project = make_project(db, Heading("p", "bert"), recipe, Rules(k=1, gold_rate=0.5, ahead=4))
    hand = Hand(db, project, "ada")
    for choice in hand.holds():
        hand.say(choice, "wave")
    names = ["vertical", "wave", "heterogeneous"]
    labels.change_class(
        db, "bert", labels.ClassChange("merge", "wave", into="heterogeneous"), annotator="ada", taken=names
    )
    for choice in hand.holds():
        hand.say(choice, "wave")  # a browser that was open all the time
    for choice in hand.holds():
        hand.say(choice, "heterogeneous")
    standing = assignment_service.board_of(db, project).status("ada")
    assert standing.golds == standing.right > 0


def test_an_exemplar_answers_with_what_is_right(db):
    labels.record_events(db, [event(1, "m1", "block", annotator="expert")])
    project = make_project(db, Heading("p", "bert"), ProjectRecipe(exemplars=1, known_from="expert"), Rules())
    hand = Hand(db, project, "ada")
    found = hand.say(hand.holds()[0], "vertical")
    (told,) = found.feedback
    assert (told.given, told.known, told.right) == ("Vertical", "Block", False)
    assert told.eye
    assert found.statuses[project].round == 2
    assert labels.decided(db, "bert", "ada") == {"m1": "vertical"}


def test_counts_of_many_projects_are_each_projects_own(db):
    first, second, empty = (
        make_project(db, Heading(title, "bert"), ProjectRecipe(count=4), Rules(k=k))
        for title, k in (("p", 1), ("q", 2), ("r", 3))
    )
    label_all(db, first, ["ada"])
    label_all(db, second, ["ada", "bob"])
    projects.judge_person(db, second, "eve", admitted=False, annotator="admin")
    assert project_counts(db) == {
        first: ProjectCounts(4, 4, 1),
        second: ProjectCounts(4, 8, 3),
        empty: ProjectCounts(4, 0, 0),
    }


# ---------------------------------------------------------------- any order of things, kills between them


class Killed(RuleBasedStateMachine):
    """Three people at one store; at any moment the process is killed: what it left on the disk is opened again."""

    @initialize(k=st.sampled_from([1, 2]))
    def begin(self, k):
        self.folder = tempfile.TemporaryDirectory()
        self.number, self.now, self.k = 0, START, k
        self.db = Database(Path(self.folder.name) / "0.duckdb")
        fill(self.db, 6)
        rules = Rules(k=k, lapse=60.0, ahead=2, repeat_rate=0.1)
        self.project = make_project(self.db, Heading("p", "bert"), ProjectRecipe(count=5), rules)
        self.hands = {name: Hand(self.db, self.project, name) for name in ("ada", "bob", "cyd")}
        self.given = {name: [] for name in self.hands}

    @rule(person=st.sampled_from(["ada", "bob", "cyd"]))
    def take(self, person):
        mine = {row["map_id"] for row in self.standing(person)}
        found = self.hands[person].holds(now=self.now)
        assert not mine & {one.map_id for one in found if one.purpose == "label"}
        self.given[person] = sorted({*self.given[person], *found}, key=str)

    def standing(self, person):
        rows = projects.project_labels(self.db, self.project).to_dict("records")
        return [row for row in rows if row["annotator"] == person]

    @rule(data=st.data(), kind=st.sampled_from(["label", "label", "skip"]), cls=st.sampled_from(["block", "vertical"]))
    def answer(self, data, kind, cls):
        person = data.draw(st.sampled_from(sorted(self.hands)))
        if self.given[person]:
            choice = data.draw(st.sampled_from(self.given[person]))
            self.hands[person].say(choice, cls, kind=kind, now=self.now)

    @rule(data=st.data())
    def undo(self, data):
        person = data.draw(st.sampled_from(sorted(self.hands)))
        rows = self.standing(person)
        if rows:
            row = data.draw(st.sampled_from(rows))
            choice = assignment_service.Choice(row["map_id"], "label", row["pass"])
            self.hands[person].say(choice, kind="undo", undoes=row["event"], now=self.now)

    @rule(person=st.sampled_from(["ada", "bob", "cyd"]))
    def send_again(self, person):
        if sent := self.hands[person].sent:
            assert assignment_service.record(self.db, sent, secret=person, now=self.now).acknowledged == len(sent)

    @rule(seconds=st.sampled_from([1, 100]))
    def time_passes(self, seconds):
        self.now += timedelta(seconds=seconds)

    @rule()
    def kill(self):
        """The file and its log as they lie there, nothing folded: what a SIGKILL leaves."""
        self.number += 1
        before = Path(self.folder.name) / f"{self.number - 1}.duckdb"
        after = Path(self.folder.name) / f"{self.number}.duckdb"
        for ending in ("", ".wal"):
            if before.with_name(before.name + ending).exists():
                copy_held(before.with_name(before.name + ending), after.with_name(after.name + ending))
        self.db.close()
        self.db = Database(after)
        for hand in self.hands.values():
            hand.db = self.db

    @invariant()
    def nothing_acknowledged_is_lost_and_no_map_has_too_many(self):
        sent = sum(len(hand.sent) for hand in self.hands.values())
        assert len(labels.all_events(self.db)) == sent
        board = assignment_service.board_of(self.db, self.project)
        counts = ProjectCounts(len(board.labels_by_map()), board.counted, len(board.people))
        assert project_counts(self.db) == {self.project: counts}
        votes = board.labels_by_map()
        assert max(map(len, votes.values())) <= self.k
        rows = projects.project_labels(self.db, self.project)
        rows = rows[(rows["kind"] == "label") & rows["counted"]]
        stored = {name: {} for name in votes}
        for row in rows.to_dict("records"):
            stored[row["map_id"]][row["annotator"]] = row["class"]
        assert stored == votes

    def teardown(self):
        if not hasattr(self, "db"):
            return
        self.now += timedelta(hours=1)
        label_all(self.db, self.project, ["eve", "fay"], now=self.now)
        assert {len(one) for one in assignment_service.board_of(self.db, self.project).labels_by_map().values()} == {
            self.k
        }
        self.db.close()
        self.folder.cleanup()


class TestKilled(Killed.TestCase):
    settings = settings(max_examples=2, stateful_step_count=20, deadline=None)  # databases on the disk


@pytest.mark.slow  # twice as many examples
class TestOftenKilled(Killed.TestCase):
    settings = settings(max_examples=4, stateful_step_count=20, deadline=None)


def test_where_the_store_takes_nothing_the_books_say_nothing(db, monkeypatch):
    project = make_project(db, Heading("p", "bert"), ProjectRecipe(count=4), Rules(k=1))
    hand = Hand(db, project, "ada")
    choice = hand.holds()[0]

    def broken(*_):
        raise InputError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(projects, "add_answers", broken)
        with pytest.raises(AtlasError):
            hand.say(choice)
    assert labels.all_events(db) == []
    assert assignment_service.board_of(db, project).counted == 0
    hand.say(choice)
    assert assignment_service.board_of(db, project).counted == 1
