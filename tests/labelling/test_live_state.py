"""The live state of a project is a function of the store: whatever happened, books that are read anew say the same."""

import json
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from core.errors import InputError
from core.labelling import assignment_service
from core.labelling.assignment import Rules
from core.labelling.projects import ProjectRecipe, make_project
from core.store import label_files, labels, projects
from core.store.database import Database
from core.store.projects import Heading, ProjectCounts, project_counts
from tests.labelling.test_projects import START, Hand, fill
from tests.store.labelling import event

PEOPLE = ("ada", "bob", "cyd")


def seen(db, project, now):
    """Everything that a project's books say to anybody."""
    board = assignment_service.board_of(db, project)
    at = assignment_service.seconds(now)
    people = {
        person: (
            board.status(person),
            {(choice.map_id, choice.purpose, choice.passing) for choice in board.claimed(person, at)},
            board.choose(person, at, 4),
            board.undoable(person, 99),
            board.repeats(person),
            [board.counts(person, name, at) for name in sorted(board.labels_by_map())],
        )
        for person in PEOPLE
    }
    sizes = [len(votes) for votes in board.labels_by_map().values()]
    assert board.histogram() == tuple(sizes.count(size) for size in range(board.rules.k + 1))
    return people, board.labels_by_map(), board.histogram(), board.counted, board.open_maps, board.waiting(at)


def seen_anew(db, project, now):
    """The same, of books that are read from the store."""
    assignment_service.forget(db)
    return seen(db, project, now)


class Events(RuleBasedStateMachine):
    """Three people and an admin at two projects, with labels of no project, undos that name none, and a clock that
    jumps."""

    @initialize()
    def begin(self):
        self.folder = tempfile.TemporaryDirectory()
        self.db, self.now, self.number = Database(Path(self.folder.name) / "a.duckdb"), START, 0
        fill(self.db, 8)
        rules = Rules(k=2, lapse=60.0, ahead=2, repeat_rate=0.2)
        for name in ("m6", "m7"):
            self.send("gold-giver", name, "block", project=None)
        gold = ProjectRecipe(count=5, gold=1, exemplars=1, known_from="gold-giver")
        self.projects = [
            make_project(self.db, Heading("p", "bert"), gold, Rules(**vars(rules) | {"gold_rate": 0.3})),
            make_project(self.db, Heading("q", "bert"), ProjectRecipe(count=5), rules),
        ]

    def send(self, person, name, cls="vertical", *, project, kind="label", **other):
        self.number += 1
        one = event(self.number, name, cls, kind=kind, batch=f"tab-{person}", annotator=person) | other
        one |= {"project": project} if project else {}
        try:
            assignment_service.record(self.db, [one], secret=person, now=self.now)
        except InputError:
            return None
        return one

    @rule(person=st.sampled_from(PEOPLE), which=st.integers(0, 1))
    def take(self, person, which):
        try:
            assignment_service.next_maps(self.db, self.projects[which], person, now=self.now)
        except InputError:
            assert projects.one_project(self.db, self.projects[which]).state != "open"

    @rule(
        person=st.sampled_from(PEOPLE),
        which=st.sampled_from([0, 0, 1, None]),
        name=st.integers(0, 7),
        cls=st.sampled_from(["block", "vertical"]),
        kind=st.sampled_from(["label", "label", "skip"]),
        passing=st.sampled_from([1, 1, 2]),
    )
    def answer(self, person, which, name, cls, kind, passing):
        project = None if which is None else self.projects[which]
        self.send(person, f"m{name}", cls, project=project, kind=kind, **{"pass": passing})

    @rule(data=st.data(), which=st.sampled_from([0, 1, None]))
    def undo(self, data, which):
        if stored := [row for row in labels.all_events(self.db) if row["kind"] in ("label", "skip")]:
            row = data.draw(st.sampled_from(stored))
            project = None if which is None else self.projects[which]
            self.send(
                row["annotator"], row["map_id"], project=project, kind="undo", undoes=row["event"],
                **{"pass": row["pass"]},
            )  # fmt: skip

    @rule(data=st.data(), which=st.sampled_from([0, 1, None]))
    def send_again(self, data, which):
        if stored := [row for row in labels.all_events(self.db) if row["batch"].startswith("tab-")]:
            row = data.draw(st.sampled_from(stored))
            one = {name: value for name, value in row.items() if name not in ("event", "stored", "supersedes")}
            one |= {} if which is None else {"project": self.projects[which]}
            try:
                assignment_service.record(self.db, [one], secret=row["annotator"], now=self.now)
            except InputError:
                return

    @rule(data=st.data())
    def retire(self, data):
        if stored := [row["event"] for row in labels.all_events(self.db) if row["kind"] in ("label", "skip")]:
            assignment_service.retire(self.db, [data.draw(st.sampled_from(stored))], annotator="admin", why="wrong")

    @rule(person=st.sampled_from(PEOPLE), admitted=st.booleans(), which=st.integers(0, 1))
    def judge(self, person, admitted, which):
        projects.judge_person(self.db, self.projects[which], person, admitted=admitted, annotator="admin")

    @rule(kind=st.sampled_from(["pause", "open", "close", "open"]), which=st.integers(0, 1))
    def change(self, kind, which):
        try:
            projects.change_project(self.db, self.projects[which], kind, annotator="admin")
        except InputError:
            return

    @rule(seconds=st.sampled_from([1, 40, 100, -3600, 2 * 86_400]))
    def time_passes(self, seconds):
        self.now += timedelta(seconds=seconds)

    @invariant()
    def the_books_are_a_function_of_the_store(self):
        for project in self.projects:
            live = seen(self.db, project, self.now)
            assert live == seen_anew(self.db, project, self.now)
            assert project_counts(self.db)[project].counted == live[3]

    def teardown(self):
        if hasattr(self, "db"):
            self.db.close()
            self.folder.cleanup()


class TestEvents(Events.TestCase):
    settings = settings(max_examples=2, stateful_step_count=15, deadline=None)  # databases on the disk


@pytest.mark.slow  # many more sequences
class TestManyEvents(Events.TestCase):
    settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def made(db, *, k=1, count=2, **rules):
    return make_project(db, Heading("p", "bert"), ProjectRecipe(count=count), Rules(k=k, **rules))


def test_a_label_sent_without_a_project_cannot_become_an_answer_to_one(db):
    project = made(db)
    hand = Hand(db, project, "ada")
    choice = hand.holds(now=START)[0]
    first = event(1, choice.map_id, "vertical", batch="tab-x", annotator="ada")
    assignment_service.record(db, [first], secret="ada", now=START)
    undo = event(2, choice.map_id, kind="undo", batch="tab-x", annotator="ada", undoes="tab-x:1")
    assignment_service.record(db, [undo], secret="ada", now=START)
    with pytest.raises(InputError, match="is stored for no project"):
        assignment_service.record(db, [first | {"project": project}], secret="ada", now=START)
    live = seen(db, project, START)
    assert live[3] == 0
    assert live == seen_anew(db, project, START)


def test_an_answer_to_one_project_cannot_become_an_answer_to_another(db):
    project, other = made(db), make_project(db, Heading("q", "bert"), ProjectRecipe(count=2), Rules(k=1))
    hand = Hand(db, project, "ada")
    choice = hand.holds(now=START)[0]
    Hand(db, other, "ada").holds(now=START)
    hand.say(choice, now=START)
    with pytest.raises(InputError, match="stored for another project"):
        assignment_service.record(db, [hand.sent[0] | {"project": other}], secret="ada", now=START)
    assert assignment_service.record(db, hand.sent, secret="ada", now=START).acknowledged == 1


@pytest.mark.parametrize("said", ["none", "other"])
def test_an_undo_counts_in_the_project_of_what_it_takes_back(db, said):
    project, other = made(db, count=4), make_project(db, Heading("q", "bert"), ProjectRecipe(count=4), Rules(k=1))
    hand = Hand(db, project, "ada")
    first, second = hand.holds(now=START)[:2]
    hand.say(first, now=START)
    undo = event(9, first.map_id, kind="undo", batch="tab-y", annotator="ada", undoes=f"tab-ada-{project}:1")
    undo |= {} if said == "none" else {"project": other}
    answer = event(10, second.map_id, "block", batch="tab-y", annotator="ada", project=project)
    assignment_service.record(db, [undo, answer], secret="ada", now=START)
    live = seen(db, project, START)
    assert live[1][first.map_id] == {}
    assert live[3] == 1
    assert live == seen_anew(db, project, START)


def test_gold_after_somebody_was_let_go_on_counts_again_after_a_start(db):
    for k in range(10):
        one = event(k + 1, f"m{k}", "block", batch="tab-gold", annotator="gold")
        assignment_service.record(db, [one], secret="gold", now=START)
    recipe = ProjectRecipe(count=14, gold=10, known_from="gold")
    project = make_project(db, Heading("p", "bert"), recipe, Rules(k=1, gold_rate=0.5, ahead=48))
    hand = Hand(db, project, "ada")
    projects.judge_person(db, project, "ada", admitted=True, annotator="admin")
    golds = [choice for choice in hand.holds(now=START) if choice.purpose == "gold"]
    assert len(golds) >= 5
    for choice in golds:
        hand.say(choice, "vertical", now=START)
    live = seen(db, project, START)
    assert live[0]["ada"][0].cause == "gold"
    assert live == seen_anew(db, project, START)


# ---------------------------------------------------------------- what a project was when it was closed


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["close", "archive"])
@pytest.mark.parametrize(
    "later",
    ["label", "skip", "undo", "retire", "decision", "import", "import dated before", "import of an undo", "import of "
     "a decision", "import of a retirement"],
)  # fmt: skip
def test_what_comes_later_changes_nothing_in_a_closed_project(db, tmp_path, kind, later):
    from core.labelling import crowd

    project = made(db, k=2)
    hands = [Hand(db, project, person) for person in ("ada", "bob")]
    choices = [hand.holds(now=START) for hand in hands]
    for hand, held, cls in zip(hands, choices, ("block", "vertical"), strict=True):
        for choice in held:
            hand.say(choice, cls, now=START)
    counts, votes = project_counts(db)[project], crowd.votes_of(db, "bert", project)
    before = seen(db, project, START)[1:4]
    projects.change_project(db, project, kind, annotator="admin")
    choice, hand = choices[0][0], hands[0]
    if later in ("label", "skip"):
        hand.say(choice, "diagonal", kind=later, now=START)
    elif later == "undo":
        hand.say(choice, kind="undo", undoes=f"tab-ada-{project}:1", now=START)
    elif later.startswith("import"):
        one = event(900, choice.map_id, "diagonal", batch="tab-file", annotator="ada", project=project)
        one |= {"pass": choice.passing}
        if later.endswith("before"):
            one |= {"client_time": START.isoformat(), "stored": START.isoformat()}
        if later.endswith("undo"):
            one |= {"kind": "undo", "undoes": f"tab-ada-{project}:1"}
            one.pop("class")
        if later.endswith("decision"):
            one |= {"annotator": "z", "queue_order": "adjudication", "pass": 100}
        if later.endswith("retirement"):
            one |= {"kind": "retire", "undoes": f"tab-ada-{project}:1", "annotator": "admin", "note": "wrong"}
            one.pop("class")
        file = tmp_path / "labels.jsonl"
        file.write_text(json.dumps(one), "utf-8")
        report = label_files.import_labels(db, file)
        assert (report.new, len(report.refused)) in ((1, 0), (0, 1))
    elif later == "retire":
        assignment_service.retire(db, [f"tab-ada-{project}:1"], annotator="admin", why="wrong")
    else:
        decision = event(1, choice.map_id, "diagonal", batch="tab-z", annotator="ada", queue_order="adjudication")
        assignment_service.record(db, [decision | {"pass": 100}], secret="ada", now=START)
    assert project_counts(db)[project] == counts == ProjectCounts(2, 4, 2)
    assert seen(db, project, START)[1:4] == before == seen_anew(db, project, START)[1:4]
    again = crowd.votes_of(db, "bert", project)
    assert again[["event", "class"]].to_numpy().tolist() == votes[["event", "class"]].to_numpy().tolist()
    if later.startswith("import"):
        return  # an import of the same events would count after the project is opened again, in the order of its file
    if kind == "close":
        projects.change_project(db, project, "open", annotator="admin")
        assert crowd.votes_of(db, "bert", project)["event"].tolist() != votes["event"].tolist()
        log = projects.history(db, project)
        assert [what for what in log["what"] if what != "decide"] == ["open", "close"]
        assert ("decide" in log["what"].tolist()) == (later == "decision")


def test_a_project_closed_by_an_earlier_version_is_frozen_by_the_time(db):
    project = made(db)
    hand = Hand(db, project, "ada")
    first, second = hand.holds(now=START)
    hand.say(first, now=START)
    projects.change_project(db, project, "close", annotator="admin")
    with db.write() as cursor:
        moment = datetime(2026, 1, 31, 13)
        cursor.execute("UPDATE project_event SET body = NULL, stored = ? WHERE kind = 'close'", [moment])
    hand.say(second, now=START + timedelta(days=1))
    assert projects.project_labels(db, project)["map_id"].tolist() == [first.map_id]
