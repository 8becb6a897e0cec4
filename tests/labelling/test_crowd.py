"""Many people's labels: whose votes count in a project, what is said of each method, soft labels, and doubts."""

import numpy as np
import pandas as pd
import pytest

from core.codebook.registry import BERT
from core.errors import InputError
from core.labelling import adjudicating, crowd
from core.labelling.adjudicating import Suspect
from core.labelling.assignment import Rules
from core.labelling.crowd import class_rate_spread, skill_spread
from core.labelling.projects import ProjectRecipe, make_project
from core.patterns.forest import parts
from core.patterns.snapshot import current_labels, read, snapshot, write
from core.patterns.training import ClassifierRecipe, Known, fit
from core.patterns.truth import posteriors, truth
from core.store import labels
from core.store.projects import Heading
from pages.parts.views.adjudication import said_of
from tests.labelling.test_projects import Hand
from tests.simulations.many_people import CLASSES, right, world
from tests.store.labelling import event


@pytest.fixture
def map_count():
    return 12


def test_votes_of_a_project_are_its_labels_surplus_too_without_gold(db):
    labels.record_events(db, [event(1, "m0", "block", annotator="expert"), event(2, "m1", "block", annotator="expert")])
    recipe = ProjectRecipe(count=5, gold=1, exemplars=1, known_from="expert")
    project = make_project(db, Heading("p", "bert"), recipe, Rules(k=1, gold_rate=0.5))
    for person in ("ada", "bob"):
        hand = Hand(db, project, person)
        for _ in range(8):
            for choice in hand.holds():
                hand.say(choice, "block")
    found = crowd.votes_of(db, "bert", project)
    assert len(found) == 5
    assert not set(found["map_id"]) & {"m0", "m1"}
    assert len(crowd.votes_of(db, "bert")) > 5


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("people", "worth"),
    [
        ("all honest", False),
        ("four answer at random", True),
        ("each weak at two classes", False),
        ("nine always give one class", True),
    ],
)
def test_a_learned_truth_is_advised_where_people_differ(people, worth):
    """Of 20 honest people of .85 Dawid-Skene had fewer maps right in most seeds; where nine give one class, .2 more."""
    for seed in range(5):
        found = crowd.advice(world(people, seed)[0], CLASSES)
        assert found.worth is worth
        assert found.sentence.startswith("Annotators differ" if worth else "Use the method “Most votes”")
        assert "make the same mistakes" in found.sentence


@pytest.mark.thorough
def test_what_is_advised_is_what_has_more_maps_right():
    for people, better in (("all honest", False), ("nine always give one class", True)):
        labels_of, true = world(people, 1)
        majority, learned = (right(truth(labels_of, CLASSES, method), true) for method in ("majority", "dawid-skene"))
        assert (learned > majority + 0.05) is better


def test_people_who_err_alike_cannot_be_told_and_the_page_says_so():
    labels_of, true = world("two of three err alike", 0)
    assert right(truth(labels_of, CLASSES, "dawid-skene"), true) < 0.3
    assert "No aggregation method can detect" in crowd.advice(labels_of, CLASSES).sentence


def test_the_spread_of_people_is_their_deviation_beyond_chance():
    """Four of twenty agree with nobody: .8 of them with a share a, .2 with 0 have a deviation of .4 a."""
    rng = np.random.default_rng(0)
    rows = [(k, person, int(rng.integers(1000) + 10) if person < 4 else 0) for k in range(200) for person in range(20)]
    given = pd.DataFrame(rows, columns=["task", "worker", "label"]).assign(label=lambda one: one.label.astype(str))
    skill = skill_spread(given.assign(label=np.where(given.worker < 4, "1", "0")))
    assert skill.value == pytest.approx(0, abs=0.03)  # labels of one class are compared, and these are always alike
    rates = class_rate_spread(given.assign(label=np.where(given.worker < 4, "1", "0")))
    assert rates.value == pytest.approx(np.sqrt(2) * 0.4, abs=0.01)  # .8 and .2 from the shares, over two classes
    assert rates.low < rates.value < rates.high
    alone = skill_spread(given[given.worker == 0])
    assert (alone.value, alone.low, alone.high) == (None, None, None)


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        (lambda one: one[one.annotator.isin(["person00", "person01"])], "at least three"),
        (lambda one: one.head(60), "must be at least 20"),
        (lambda one: one.drop_duplicates("map_id").assign(annotator="abc"[0]), "at least three"),
    ],
)
def test_too_few_people_or_labels_to_tell_them_apart(chosen, said):
    found = crowd.advice(chosen(world("four answer at random", 0)[0]), CLASSES)
    assert not found.worth
    assert said in found.sentence


def test_people_who_share_no_map_cannot_be_compared():
    one = world("four answer at random", 0)[0].drop_duplicates("map_id")
    apart = one.assign(annotator=[f"p{k % 3}" for k in range(len(one))])
    assert "no map has labels from two annotators" in crowd.advice(apart, CLASSES).sentence


def test_a_method_that_is_none_is_a_sentence():
    assert crowd.checked_method(None) is None
    with pytest.raises(InputError, match="dawid-skene"):
        crowd.checked_method("median")


def test_a_person_has_skill_confusion_and_pace(db):
    wrong = {"m0": "block", "m1": "block", "m2": "vertical"}
    events = [event(k, f"m{k}", "block", batch=who, annotator=who) for who in ("ada", "bob") for k in range(1, 7)]
    events += [event(k, f"m{k}", wrong.get(f"m{k}", "block"), batch="cyd", annotator="cyd") for k in range(1, 7)]
    for one in events:
        labels.record_events(db, [one])
    table = crowd.people_table(crowd.truth_of(db, "bert", "majority"), labels.pace(db, "bert"))
    assert table.iloc[0]["person"] == "cyd"
    assert "block labelled as vertical" in table.iloc[0]["most confused"]
    assert set(table["median seconds"]) == {1.5}


def test_a_snapshot_by_a_method_has_soft_labels_and_keeps_adjudications(db, tmp_path):
    votes = {"ada": "block", "bob": "vertical", "cyd": "block"}
    for who, cls in votes.items():
        own = [event(1, "m1", cls, batch=who, annotator=who), event(2, "m2", cls, batch=who, annotator=who)]
        labels.record_events(db, own)
    decision = event(1, "m2", "diagonal", batch="d", annotator="dan", queue_order="adjudication")
    labels.record_events(db, [decision | {"pass": adjudicating.PASS}])
    found = read(write(snapshot(db, "bert", method="majority"), tmp_path))
    rows = dict(zip(found.column("map_id"), zip(found.column("class"), found.soft, strict=True), strict=True))
    assert rows["m1"][0] == "block"
    assert rows["m1"][1].tolist() == pytest.approx([1 / 3, 0, 0, 2 / 3, 0])
    assert rows["m2"][0] == "diagonal"
    assert rows["m2"][1].tolist() == [0, 1, 0, 0, 0]
    by_default = {row["map_id"]: row for row in snapshot(db, "bert").facts}
    assert {name: row["class"] for name, row in by_default.items()} == {name: cls for name, (cls, _) in rows.items()}
    likely = posteriors(current_labels(db, "bert"), BERT.names).loc["m1"].to_numpy()
    assert by_default["m1"]["soft"] == pytest.approx((rows["m1"][1] + likely) / 2), "half votes, half the rater model"
    assert by_default["m2"]["soft"] == [0, 1, 0, 0, 0]


def some_maps(count=40):
    rng = np.random.default_rng(1)
    maps, given = [], []
    for k in range(count):
        weights = rng.random((12, 12)) * 0.2 + (np.eye(12) if k % 2 else np.outer(np.ones(12), np.arange(12) == 3)) * 3
        maps.append((weights / weights.sum(-1, keepdims=True)).astype(np.float32))
        given.append("diagonal" if k % 2 else "vertical")
    return maps, given


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["trees", "baseline", "paper"])
def test_soft_labels_that_are_sure_fit_as_hard_ones(kind):
    maps, given = some_maps()
    names = ("vertical", "diagonal")
    recipe = ClassifierRecipe(kind=kind, epochs=2, batch=8)
    hard = fit(maps, given, names, recipe)
    sure = np.array([[float(one == name) for name in names] for one in given])
    soft = fit(maps, given, names, recipe, known=Known(soft=sure))
    for name, tensor in hard.tensors.items():
        assert np.allclose(tensor.numpy(), soft.tensors[name].numpy(), atol=1e-4), name


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["trees", "baseline", "paper"])
def test_unsure_soft_labels_make_an_unsure_classifier(kind):
    from core.patterns.suggestions import judged

    maps, given = some_maps()
    names, recipe = ("vertical", "diagonal"), ClassifierRecipe(kind=kind, epochs=8, batch=8)
    unsure = np.array([[0.6, 0.4] if one == "vertical" else [0.4, 0.6] for one in given])
    sharp = judged(fit(maps, given, names, recipe), maps).probabilities.max(axis=1).mean()
    dull = judged(fit(maps, given, names, recipe, known=Known(soft=unsure)), maps).probabilities.max(axis=1).mean()
    assert dull < sharp - 0.1


def test_soft_labels_of_another_shape_are_a_sentence():
    with pytest.raises(InputError, match="an array of 2 maps by 3 classes; got the shape 2 by 2"):
        parts(np.array([0, 1]), 3, np.eye(2))


# ---------------------------------------------------------------- adjudication


def vote(db, name, **given):
    for who, cls in given.items():
        labels.record_events(db, [event(1, name, cls, batch=f"{who}-{name}", annotator=who)])


def test_disputes_come_with_votes_notes_and_doubts_until_they_are_settled(db):
    vote(db, "m1", ada="block", bob="vertical")
    vote(db, "m2", ada="block", bob="block")
    vote(db, "m3", ada="block", bob="vertical", cyd="diagonal")
    labels.record_events(db, [event(9, "m1", kind="note", note="see the corner", batch="n", annotator="bob")])
    suspects = [Suspect("m2", "block", "vertical", 0.4)]
    assert adjudicating.queue_doubts(db, "bert", suspects, annotator="admin") == 1
    assert adjudicating.queue_doubts(db, "bert", suspects, annotator="admin") == 0
    found = adjudicating.disputes(db, "bert")
    assert [one.map_id for one in found] == ["m3", "m1", "m2"]
    assert found[1].votes == (("ada", "block"), ("bob", "vertical"))
    assert found[1].notes == (("bob", "see the corner"),)
    assert found[2].doubt == "vertical"
    classes = adjudicating.known_class_set(db, "bert")
    assert said_of(found[1], classes, named=True) == ["ada: Block; bob: Vertical", "Note by bob: see the corner"]
    assert said_of(found[1], classes, named=False) == [
        "Person A: Block; Person B: Vertical",
        "Note by Person B: see the corner",
    ]
    for name in ("m1", "m2"):
        decision = event(1, name, "block", batch=f"d-{name}", annotator="ada", queue_order="adjudication")
        labels.record_events(db, [decision | {"pass": adjudicating.PASS}])
    assert [one.map_id for one in adjudicating.disputes(db, "bert")] == ["m3"]
    assert crowd.votes_of(db, "bert").query("map_id == 'm1' and `pass` == 1")["annotator"].tolist() == ["ada", "bob"]


def test_a_second_pass_is_the_same_person_where_names_are_hidden(db):
    dispute = adjudicating.Dispute("m1", (("ada", "block"), ("ada, pass 2", "vertical"), ("bob", "block")))
    (said,) = said_of(dispute, adjudicating.known_class_set(db, "bert"), named=False)
    assert said == "Person A: Block; Person A, pass 2: Vertical; Person B: Block"


def test_a_doubt_of_a_class_that_is_gone_is_a_sentence(db):
    with pytest.raises(InputError, match="got 'wave'"):
        adjudicating.queue_doubts(db, "bert", [Suspect("m1", "block", "wave", 0.4)], annotator="admin")


@pytest.mark.thorough
def test_a_planted_label_error_is_doubted(db):
    from core.patterns.snapshot import Snapshot

    maps, given = some_maps(60)
    given[7] = "vertical"
    facts = [{"map_id": f"x{k}", "class": one, "group": f"g{k}", "checkpoint": "c"} for k, one in enumerate(given)]
    found = adjudicating.doubted(Snapshot("bert", ("vertical", "diagonal"), facts, maps))
    assert [one.map_id for one in found] == ["x7"]
    assert found[0].suggested == "diagonal"
