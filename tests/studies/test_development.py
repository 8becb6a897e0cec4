"""Heads over training: revisions of a hub id, resolved once; planted beginnings; what cannot be."""

import gc
import random
import weakref

import pytest
import torch

from core.errors import CheckpointError, InputError
from core.models import opening
from core.studies import worker_cache  # noqa: F401 - it must not import the opener that a test replaces
from core.studies.comparison import development
from core.studies.comparison.development import OWN, bundled_curves, snapshots_of, spread_sentence
from core.studies.comparison.records import Beginning, CurvePoint, RoleBeginnings
from tests.capture.conftest import TEXT, built, tiny
from tests.models.loopback_hub import serving_hub
from tests.models.test_hub import on_hub
from tests.studies.permuted import permuted
from tests.studies.through_json import rows_of

NAME, WEIGHTS, STEPS = "someone/tiny-run", "model.safetensors", 12


def saved(checkpoint, folder):
    checkpoint.model.save_pretrained(folder)
    checkpoint.tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Twelve revisions: from step 5 on every head of layer 1 looks at the start token alone."""
    place, kept = tmp_path_factory.mktemp("run"), {}
    for step in range(STEPS):
        checkpoint = tiny("bert")
        with torch.no_grad():
            if step >= 5:
                one = checkpoint.model.encoder.layer[0].attention.self
                start = checkpoint.model.embeddings(torch.tensor([[checkpoint.tokenizer.cls_token_id]]))[0, 0]
                one.query.weight.zero_()
                one.query.bias.fill_(1.0)
                one.key.weight.copy_(start.expand(32, -1))
            checkpoint.model.embeddings.word_embeddings.weight[5] += 0.01 * step  # each has weights of its own
        kept[f"step{step * 1000}"] = saved(checkpoint, place / str(step))
    return kept


@pytest.fixture
def hub(folders, tmp_path, monkeypatch):
    with serving_hub({NAME: folders}) as served, on_hub(served, tmp_path, monkeypatch):
        yield served


@pytest.mark.thorough
def test_a_range_of_revisions_is_resolved_once_and_each_snapshot_is_let_go(hub, monkeypatch):
    alive, opened = [], opening.open_checkpoint

    def watched(name, **options):
        gc.collect()
        assert not [one for one in alive if one() is not None], "an earlier snapshot is still open"
        checkpoint = opened(name, **options)
        alive.append(weakref.ref(checkpoint.model))
        return checkpoint

    monkeypatch.setattr(opening, "open_checkpoint", watched)
    options = {"checkpoints": [f"{NAME}@step0..step11000"], "texts": TEXT, "scores": ["first", "entropy"]}
    found = rows_of("development", options, random.Random(0))  # noqa: S311 - no secret
    assert len(alive) == STEPS
    assert len([path for _, path, _ in hub.asked if path.endswith("/refs")]) == 1
    assert not [path for _, path, _ in hub.asked if "/revision/step" in path]  # by commit from then on
    assert len(hub.ranges(WEIGHTS)) == STEPS  # each was sent once
    points = CurvePoint.among(found)
    assert len(points) == STEPS * 2 * 12
    assert [point.snapshot for point in points[:: 2 * 12]] == [f"{NAME}@step{1000 * step}" for step in range(STEPS)]
    assert len({point.weights_hash for point in points}) == STEPS
    assert all(point.low <= point.value <= point.high for point in points)
    again = len(hub.ranges(WEIGHTS))
    rows_of("development", options)
    assert len(hub.ranges(WEIGHTS)) == again  # from the cache, by hash


def test_a_revision_that_there_is_not_is_a_sentence(hub):
    for name in (f"{NAME}@step0..step99000", f"{NAME}@step99000"):
        with pytest.raises(CheckpointError, match="step99000"):
            snapshots_of((name, f"{NAME}@step0"))
    with pytest.raises(InputError, match="differ only by their number"):
        snapshots_of((f"{NAME}@step0..end9",))
    with pytest.raises(InputError, match=r"begin with the smaller number; got step9\.\.step0\."):
        snapshots_of((f"{NAME}@step9..step0",))


@pytest.fixture(scope="module")
def planted(folders):
    return rows_of("development", {"checkpoints": [str(folder) for folder in folders.values()], "texts": TEXT})


@pytest.mark.thorough
def test_a_planted_beginning_lies_between_the_two_snapshots_where_it_was_put(folders, planted):
    names = [str(folder) for folder in folders.values()]
    mine = [one for one in Beginning.among(planted) if one.score == "first" and one.layer == 0]
    assert [(one.head, one.after, one.by) for one in mine] == [(head, names[4], names[5]) for head in range(4)]
    (order,) = [one for one in RoleBeginnings.among(planted) if one.score == "first"]
    assert order.heads >= len(mine)
    assert "first" in development.STUDY.headline(planted).sentence


def test_heads_are_followed_to_their_matches(tmp_path):
    other, order = permuted(tiny("bert"))
    names = [str(saved(tiny("bert"), tmp_path / "a")), str(saved(other, tmp_path / "b"))]
    options = {"checkpoints": names, "texts": TEXT, "scores": ["entropy"], "follow": True}
    points = CurvePoint.among(rows_of("development", options))
    first, last = points[:12], points[12:]
    assert [(point.at_layer, point.at_head) for point in first] == [
        (point.layer, int(order[point.layer, point.head])) for point in last
    ]
    assert [point.value for point in first] == pytest.approx([point.value for point in last], abs=1e-4)


@pytest.mark.parametrize(
    ("names", "says"),
    [
        ((), "got 0"),
        (("atlas-encoder",), "got 1"),
        (("atlas-encoder", "atlas-decoder", "atlas-encoder"), "twice"),
    ],
)
def test_what_cannot_be_is_a_sentence(names, says):
    with pytest.raises(InputError, match=says):
        rows_of("development", {"checkpoints": list(names), "texts": TEXT})


def test_snapshots_of_other_designs_and_scores_that_are_none_are_refused(folders, tmp_path):
    small = built(
        "bert",
        {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32},
        encodes=True,
    )
    names = [str(folders["step0"]), str(saved(small, tmp_path / "small"))]
    with pytest.raises(InputError, match="same layers and heads"):
        rows_of("development", {"checkpoints": names, "texts": TEXT})
    with pytest.raises(InputError, match='got "charm"'):
        rows_of("development", {"checkpoints": names, "texts": TEXT, "scores": ["charm"]})


def test_the_curve_that_ships_says_which_role_came_when():
    points = bundled_curves("atlas-encoder")[OWN]
    records = development.role_records(points)
    assert len({point.snapshot for point in points}) == 10
    orders = {record.score: record for record in records if isinstance(record, RoleBeginnings)}
    assert set(orders) == {"previous", "next", "first", "separator"}
    assert orders["previous"].heads == sum(
        point.value > 0.5 for point in points if point.score == "previous" and point.snapshot == "100 %"
    )
    assert bundled_curves("atlas-translator") == {}


def test_two_runs_from_other_seeds_ship_with_intervals_and_pattern_classes():
    curves = bundled_curves("atlas-encoder")
    assert list(curves) == [OWN, "seed 0", "seed 1"]
    orders = {}
    for seed in ("seed 0", "seed 1"):
        points = curves[seed]
        assert len({point.snapshot for point in points}) == 20
        assert {point.n for point in points} == {80}
        measured = [point for point in points if point.score == "previous"]
        assert all(point.low <= point.value <= point.high for point in measured)
        orders[seed] = RoleBeginnings.among([record.as_row() for record in development.role_records(points)])
    assert {order.score for order in orders["seed 0"]} > {"previous", "separator", "class vertical", "class diagonal"}
    assert spread_sentence(orders).startswith("In 2 training runs from other seeds")


def test_runs_with_and_without_the_same_order_are_told():
    def run(**places):
        return [
            RoleBeginnings(score=name, heads=1, first=0.0, snapshots=9, place=place) for name, place in places.items()
        ]

    assert (
        "same order: next, previous. The median beginnings of a role differ by at most 2 snapshots"
        in spread_sentence({"a": run(previous=5, next=3, first=1), "b": run(previous=7, next=4)})
    )
    assert "same order: first, previous and next." in spread_sentence(
        {"a": run(previous=5, next=5, first=1), "b": run(next=7, previous=7, first=1)}
    ), "roles that begin together have no order"
    assert "do not begin in the same order" in spread_sentence(
        {"a": run(previous=5, next=3), "b": run(previous=2, next=4)}
    )
    assert spread_sentence({"a": run(previous=5), "b": run(next=3)}) == "The training runs have no head role in common."


@pytest.mark.thorough
def test_pattern_classes_are_counted_by_the_bundled_classifier(tmp_path):
    names = [str(saved(tiny("bert"), tmp_path / "a")), str(saved(permuted(tiny("bert"))[0], tmp_path / "b"))]
    options = {"checkpoints": names, "texts": TEXT, "scores": ["first"], "patterns": "bert"}
    points = [point for point in CurvePoint.among(rows_of("development", options)) if point.score.startswith("class ")]
    assert len({point.score for point in points}) == 5
    for number in range(12):
        mine = [point for point in points if (point.layer, point.head) == divmod(number, 4) and point.order == 0]
        assert sum(point.value for point in mine) == pytest.approx(1)
        assert all(point.low <= point.value <= point.high for point in mine)
    with pytest.raises(InputError, match="class sets bert and gpt2; got 'own'"):
        rows_of("development", options | {"patterns": "own"})
