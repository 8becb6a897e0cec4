"""The label store as a machine: several people, undo, an admin, import, export, SIGKILL, another database.

Whatever they do in whatever order, what stands is what a plain replay in memory says, and nobody changes what
another thinks.
"""

import contextlib
import multiprocessing
import os
import signal
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from core.errors import AtlasError
from core.store import label_files, labels
from core.store.database import Database
from core.store.labels import retire
from core.store.people import Person
from tests.store.labelling import SET, a_map, event

CHILDREN = multiprocessing.get_context("forkserver")  # a child starts in milliseconds and holds none of our locks
CHILDREN.set_forkserver_preload(["core.store.labels"])
PEOPLE, MAPS, CLASSES = ("ada", "bob"), ("m1", "m2"), ("vertical", "block", "diagonal")


def serve(path, who, events, answers):
    """What a server does until it is killed: store each event, and acknowledge it."""
    db = Database(path)
    for one in events:
        labels.record_events(db, [one], secret=who)
        answers.send(one["sequence"])
    time.sleep(60)


class LabelStore(RuleBasedStateMachine):
    """opinions: (person, map) -> the labels that stand, newest last, as a replay in memory has them."""

    @initialize()
    def begin(self):
        self.folder = tempfile.TemporaryDirectory()
        self.place = Path(self.folder.name)
        self.db, self.other = Database(self.place / "a.duckdb"), Database(self.place / "b.duckdb")
        for db in (self.db, self.other):
            labels.store_maps(db, [a_map(name) for name in MAPS])
        self.sent = {who: [] for who in PEOPLE}
        self.opinions = {(who, name): [] for who in PEOPLE for name in MAPS}

    def send(self, who, one, secret=None):
        return labels.record_events(self.db.acting_as(Person(role="annotator")), [one], secret=secret or who)

    @rule(who=st.sampled_from(PEOPLE), name=st.sampled_from(MAPS), cls=st.sampled_from(CLASSES))
    def label(self, who, name, cls):
        one = event(len(self.sent[who]) + 1, name, cls, batch=f"tab-{who}", annotator=who)
        self.send(who, one)
        self.sent[who].append(one)
        self.opinions[who, name].append((f"tab-{who}:{one['sequence']}", cls))

    @rule(who=st.sampled_from(PEOPLE), name=st.sampled_from(MAPS), back=st.integers(0, 2))
    def undo(self, who, name, back):
        stack = self.opinions[who, name]
        if stack:
            target, _ = stack.pop(max(0, len(stack) - 1 - back))
            one = event(len(self.sent[who]) + 1, name, kind="undo", undoes=target, batch=f"tab-{who}", annotator=who)
            self.send(who, one)
            self.sent[who].append(one)

    @rule(who=st.sampled_from(PEOPLE), name=st.sampled_from(MAPS))
    def an_admin_retires(self, who, name):
        if self.opinions[who, name]:
            target, _ = self.opinions[who, name].pop()
            retire(self.db, [target], annotator="eve", why="a slip")

    @rule(
        who=st.sampled_from(PEOPLE),
        wanted=st.lists(st.tuples(st.sampled_from(MAPS), st.sampled_from(CLASSES)), min_size=1, max_size=4),
        after=st.integers(0, 3),
    )
    def killed(self, who, wanted, after):
        """The server is killed at work: what it acknowledged is there, and the outbox sent again completes the rest."""
        first = len(self.sent[who]) + 1
        events = [event(first + k, m, c, batch=f"tab-{who}", annotator=who) for k, (m, c) in enumerate(wanted)]
        acknowledged = self._killed_after(who, events, min(after, len(events)))
        stored = [row["event"] for row in labels.all_events(self.db)]
        assert {f"tab-{who}:{number}" for number in acknowledged} <= set(stored)
        assert len(stored) == len(set(stored))
        self.sent[who] += events
        labels.record_events(self.db, self.sent[who], secret=who)
        for one in events:
            self.opinions[who, one["map_id"]].append((f"tab-{who}:{one['sequence']}", one["class"]))

    def _killed_after(self, who, events, count):
        """Numbers acknowledged by a server that got SIGKILL when it had acknowledged `count` of them."""
        self.db.close()
        ours, theirs = CHILDREN.Pipe(duplex=False)
        server = CHILDREN.Process(target=serve, args=(self.place / "a.duckdb", who, events, theirs), daemon=True)
        server.start()
        theirs.close()
        acknowledged = [ours.recv() for _ in range(count)]
        os.kill(server.pid, signal.SIGKILL)
        server.join()
        with contextlib.suppress(EOFError):
            while True:
                acknowledged.append(ours.recv())
        self.db = Database(self.place / "a.duckdb")
        return acknowledged

    @rule(who=st.sampled_from(PEOPLE), ahead=st.integers(1, 3), name=st.sampled_from(MAPS))
    def attack(self, who, ahead, name):
        """Undo what the other did or will do, send under their batch, label with no class: all are refused."""
        (victim,) = set(PEOPLE) - {who}
        theirs = f"tab-{victim}:{max(1, len(self.sent[victim]) - 1 + ahead)}"
        number = len(self.sent[victim]) + ahead
        harms = [
            event(1, name, kind="undo", undoes=theirs, batch=f"own-{who}", annotator=who),
            event(1, name, kind="retire", undoes=f"tab-{victim}:1", batch=f"own-{who}", annotator=who),
            event(1, name, "wavy", batch=f"own-{who}", annotator=who),
        ]
        if self.sent[victim]:
            harms.append(event(number, name, batch=f"tab-{victim}", annotator=victim))
        for harm in harms:
            try:
                self.send(who, harm)
            except AtlasError:
                continue
            raise AssertionError(harm)

    @rule(who=st.sampled_from(PEOPLE))
    def send_again(self, who):
        if self.sent[who]:
            assert labels.record_events(self.db, self.sent[who], secret=who).new == 0

    @rule()
    def restart(self):
        self.db.close()
        self.db = Database(self.place / "a.duckdb")

    @rule(ending=st.sampled_from(label_files.ENDINGS))
    def copy_to_the_other_database(self, ending):
        label_files.export_labels(self.db, self.place / f"out{ending}")
        report = label_files.import_labels(self.other, self.place / f"out{ending}")
        assert report.refused == []
        assert labels.all_events(self.other) == labels.all_events(self.db)
        for who in PEOPLE:
            assert labels.decided(self.other, SET, who) == labels.decided(self.db, SET, who)

    @invariant()
    def what_stands_is_what_a_replay_says(self):
        for who in PEOPLE:
            expected = {name: self.opinions[who, name][-1][1] for name in MAPS if self.opinions[who, name]}
            assert labels.decided(self.db, SET, who) == expected

    @invariant()
    def the_databases_are_two(self):
        assert self.db.id != self.other.id

    def teardown(self):
        self.db.close()
        self.other.close()
        self.folder.cleanup()


class TestLabelStore(LabelStore.TestCase):
    settings = settings(max_examples=3, stateful_step_count=25, deadline=None)  # 1.5 CPU seconds an example


@pytest.mark.slow  # 18 CPU seconds
class TestManyLabelStores(LabelStore.TestCase):
    settings = settings(max_examples=12, stateful_step_count=25, deadline=None)
