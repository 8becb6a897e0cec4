import numpy as np
import pytest

from core.errors import InputError
from core.labelling.queue import QueueOptions, disputes, queue
from core.store import labels
from core.store.database import Database
from tests.store.labelling import SET, a_map, event

WISH = QueueOptions(SET, "ada")


@pytest.fixture
def db(tmp_path):
    database = Database(tmp_path / "atlas.duckdb")
    labels.store_maps(
        database,
        [
            a_map(f"m{k}", head=k, layer=k % 2, maximum=0.05 if k == 3 else 0.5, task="rte" if k > 3 else "mrpc")
            for k in range(6)
        ],
    )
    yield database
    database.close()


def test_random_order_is_seeded_and_holds_when_maps_are_added(db):
    one, two = queue(db, WISH), queue(db, QueueOptions(SET, "ada", seed=1))
    assert sorted(one) == sorted(two) == [f"m{k}" for k in range(6)]
    assert one != two
    labels.store_maps(db, [a_map("m9")])
    assert [name for name in queue(db, WISH) if name != "m9"] == one


def test_decided_maps_leave_the_queue_of_their_annotator_only(db):
    labels.record_events(db, [event(1, "m1"), event(2, "m2", kind="skip")])
    assert set(queue(db, WISH)) == {"m0", "m3", "m4", "m5"}
    assert len(queue(db, QueueOptions(SET, "bob"))) == 6
    assert queue(db, QueueOptions(SET, "ada", review="vertical")) == ["m1"]
    assert queue(db, QueueOptions(SET, "ada", passing=2)) == ["m1"]


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"task": "rte"}, {"m4", "m5"}),
        ({"layer": 1}, {"m1", "m3", "m5"}),
        ({"checkpoint": "other"}, set()),
        ({"leave_out_uniform": True}, {"m0", "m1", "m2", "m4", "m5"}),
    ],
)
def test_filters(db, change, names):
    assert set(queue(db, QueueOptions(SET, "ada", **change))) == names


def test_uncertain_first_needs_a_classifier(db):
    def hints(names):
        return {name: ("block", 0.5, int(name[1]) / 10) for name in names}

    assert queue(db, QueueOptions(SET, "ada", order="uncertain"), hints) == [f"m{k}" for k in range(6)]
    with pytest.raises(InputError, match="classifier"):
        queue(db, QueueOptions(SET, "ada", order="uncertain"))
    few = {"m3": ("block", 0.5, 0.4), "m1": ("block", 0.9, 0.8)}
    too_small = queue(db, QueueOptions(SET, "ada", order="uncertain"), lambda _: few)
    assert too_small[:2] == ["m3", "m1"]  # maps that no classifier is asked about come last


def test_disputed_maps_come_first_or_alone(db):
    labels.record_events(
        db, [event(1, "m4", batch="x", annotator="bob"), event(1, "m4", cls="block", batch="y", annotator="cyd")]
    )
    assert queue(db, QueueOptions(SET, "ada", order="disagreement"))[0] == "m4"
    assert queue(db, QueueOptions(SET, "ada", order="adjudication")) == ["m4"]


def test_what_the_codebook_disputes_comes_first_with_a_reason(db):
    length = 9
    striped = np.full((length, length), 0.6 / (length - 1))
    striped[:, 4] = 0.4
    flat = np.full((16, 16), 1 / 16, dtype="<f2")
    labels.store_maps(
        db,
        [
            a_map("striped", length=length, weights=striped.astype("<f2").tobytes(), maximum=0.4),
            a_map("flat", length=16, weights=flat.tobytes(), maximum=0.0625),
        ],
    )
    labels.record_events(db, [event(1, "striped", cls="heterogeneous", batch="x", annotator="bob")])
    labels.record_events(db, [event(1, "flat", cls="heterogeneous", batch="y", annotator="bob")])
    names = queue(db, QueueOptions(SET, "ada", order="codebook"))
    assert names[0] == "striped"
    assert len(names) == 8
    assert disputes(db, SET, names) == {"striped": "a column has 0.15 or more in 100% of the rows"}
