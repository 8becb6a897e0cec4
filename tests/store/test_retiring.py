"""What an admin takes back for others: only an admin can, what stood before stands again, files carry it on."""

import gzip

import pytest

from core.errors import InputError
from core.patterns import snapshot
from core.store import label_files, labels
from core.store.database import Database
from core.store.labels import retire
from core.store.people import Person, RightsError
from tests.store.labelling import SET, a_map, event
from tests.store.test_round_trips import FILES

ADA, BOB, EVE = Person("ada", "annotator"), Person("bob", "annotator"), Person("eve", "admin")


@pytest.fixture
def labelled(db):
    """Two labels of ada on one map, one of bob's on it."""
    labels.store_maps(db, [a_map("m1"), a_map("m2", head=1)])
    labels.record_events(db.acting_as(ADA), [event(1, batch="a"), event(2, cls="block", batch="a")])
    labels.record_events(db.acting_as(BOB), [event(1, batch="b", annotator="bob")])
    return db


def test_an_admin_takes_back_what_somebody_else_gave_and_the_label_before_stands(labelled):
    assert retire(labelled.acting_as(EVE), ["a:2"], annotator="eve", why="a slip").new == 1
    assert labels.decided(labelled, SET, "ada") == {"m1": "vertical"}
    assert labels.decided(labelled, SET, "bob") == {"m1": "vertical"}
    kept = labels.all_events(labelled)[-1]
    assert (kept["kind"], kept["annotator"], kept["note"], kept["undoes"]) == ("retire", "eve", "a slip", "a:2")
    assert [row["event"] for row in labels.undoable(labelled, SET, "ada")] == ["a:1"]
    labels.record_events(labelled.acting_as(ADA), [event(3, cls="diagonal", batch="a")])
    assert labels.all_events(labelled)[-1]["supersedes"] == "a:1"  # not the retired one


@pytest.mark.parametrize("who", [ADA, BOB, Person("vic", "viewer"), Person("", "annotator")])
def test_nobody_else_can_by_any_way(labelled, who):
    forged = event(9, kind="retire", undoes="a:2", batch="own", annotator=who.name or "eve")
    with pytest.raises(RightsError, match="admin"):
        retire(labelled.acting_as(who), ["a:2"], annotator=who.name or "eve", why="mine")
    with pytest.raises(RightsError, match=r"the role (annotator|viewer)"):
        labels.record_events(labelled.acting_as(who), [forged], secret="s")
    assert labels.decided(labelled, SET, "ada") == {"m1": "block"}


@pytest.mark.parametrize("bad", [["a:9"], ["a:2", "none"], [""]])
def test_what_is_not_stored_is_not_retired_and_nothing_else_either(labelled, bad):
    with pytest.raises(InputError, match="stored label events"):
        retire(labelled, bad, annotator="eve", why="a slip")
    assert labels.decided(labelled, SET, "ada") == {"m1": "block"}


def test_a_retirement_is_final_and_has_a_reason(labelled):
    retire(labelled, ["a:2"], annotator="eve", why="a slip")
    last = labels.all_events(labelled)[-1]["event"]
    with pytest.raises(InputError, match="is an undo"):
        retire(labelled, [last], annotator="eve", why="no, it was right")
    with pytest.raises(InputError, match="A reason is required"):
        retire(labelled, ["a:1"], annotator="eve", why=" ")


@pytest.mark.thorough
@pytest.mark.parametrize("ending", label_files.ENDINGS)
def test_files_carry_retirements_on(labelled, tmp_path, ending):
    retire(labelled, ["a:2"], annotator="eve", why="a slip")
    label_files.export_labels(labelled, tmp_path / f"out{ending}")
    with Database(tmp_path / "other.duckdb") as other:
        assert label_files.import_labels(other, tmp_path / f"out{ending}").refused == []
        assert labels.all_events(other) == labels.all_events(labelled)
        assert labels.decided(other, SET, "ada") == {"m1": "vertical"}


def test_labels_of_no_class_are_retired_and_the_label_below_counts_again(tmp_path):
    path = tmp_path / "atlas.duckdb"
    path.write_bytes(gzip.decompress((FILES / "before-owners.duckdb.gz").read_bytes()))
    with Database(path) as db:
        before = len(labels.all_events(db))
        assert snapshot.unknown_labels(db, SET) == {"wavy": 1}
        with pytest.raises(RightsError):
            snapshot.retire_unknown(db.acting_as(ADA), SET, annotator="ada")
        assert snapshot.retire_unknown(db, SET, annotator="eve") == 1
        assert snapshot.unknown_labels(db, SET) == {}
        assert snapshot.retire_unknown(db, SET, annotator="eve") == 0
        assert len(labels.all_events(db)) == before + 1  # the label is still there
        assert labels.decided(db, SET, "ada").get("m1") != "wavy"
