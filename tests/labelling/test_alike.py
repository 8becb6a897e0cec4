"""Groups of alike maps, and what labelling them together costs and loses."""

import itertools
import json

import numpy as np
import pytest

from core.errors import InputError
from core.labelling import assignment_service
from core.labelling.assignment import Rules
from core.labelling.projects import ProjectRecipe, make_project
from core.labelling.queue import GROUP, alike_maps, groups
from core.patterns.shapes import shapes
from core.patterns.snapshot import bundled_snapshot
from core.store import labels
from core.store.projects import Heading
from pages.parts.team.project_sheet import next_sheet
from tests.labelling.test_projects import Hand
from tests.patterns.test_clusters import planted
from tests.store.labelling import a_map, event

OVERLOOKED = 0.1  # of the maps in a group that belong to another class


def add_planted(db):
    """Store 30 maps of each of three patterns; return the pattern by map."""
    maps, classes = planted(per_class=30)
    class_of = {f"p{k}": int(cls) for k, cls in enumerate(classes)}
    facts = [{"maximum": float(one.max()), "weights": one.astype("<f2").tobytes()} for one in maps]
    rows = [a_map(name, length=len(one)) for name, one in zip(class_of, maps, strict=True)]
    labels.store_maps(db, [row | fact for row, fact in zip(rows, facts, strict=True)])
    return class_of


def test_groups_have_every_map_once_and_maps_of_one_pattern(db):
    class_of = add_planted(db)
    found = alike_maps(db, list(class_of))
    assert sorted(name for group in found for name in group) == sorted(class_of)
    assert max(map(len, found)) <= GROUP
    mixed = sum(len(group) - max(np.bincount([class_of[name] for name in group])) for group in found)
    assert mixed <= 0.1 * len(class_of)
    assert len(found) <= 20
    assert sorted(alike_maps(db, ["p3", "p1"])) == [["p1"], ["p3"]]  # too few to cluster


def test_a_project_assigns_alike_maps_and_its_gold_maps_alone(db):
    class_of = add_planted(db)
    labels.record_events(db, [event(k + 1, f"m{k}", annotator="expert") for k in range(4)])
    recipe = ProjectRecipe(count=90, gold=4, known_from="expert", tasks=("mrpc",))
    rules = Rules(k=1, ahead=48, order="clusters", gold_rate=0.1)
    project = make_project(db, Heading("p", "bert"), recipe, rules)
    sheet = next_sheet(db, project, "ada")
    header = json.loads(bytes(sheet.data)[4 : 4 + int.from_bytes(bytes(sheet.data)[:4], "little")])
    assert header["mode"] == "together"
    group = {one["id"]: one["group"] for one in header["maps"]}
    assert [one["group"] for one in header["maps"]] == sorted(group.values())
    choices = {choice.map_id: choice for choice in assignment_service.next_maps(db, project, "ada").choices}
    gold = [name for name in group if choices[name].purpose == "gold"]
    assert gold
    assert all(list(group.values()).count(group[name]) == 1 for name in gold)
    together = [name for name in group if list(group.values()).count(group[name]) > 1]
    assert len(together) > 24
    mixed = sum(class_of.get(one) != class_of.get(two) for one, two in itertools.pairwise(together)
                if group[one] == group[two])  # fmt: skip
    assert mixed < 0.2 * len(together)
    hand = Hand(db, project, "ada")
    way = {"way": "together", "queue_order": "clusters"}
    hand.say(choices[together[0]], **way)
    with pytest.raises(InputError, match="must be labelled alone"):
        hand.say(choices[gold[0]], **way)


def test_a_project_of_another_order_refuses_labels_given_together(db):
    project = make_project(db, Heading("p", "bert"), ProjectRecipe(count=8), Rules(k=1))
    hand = Hand(db, project, "ada")
    with pytest.raises(InputError, match="only if the project assigned them as a group"):
        hand.say(hand.holds()[0], way="together", queue_order="clusters")


def cost(groups_of_maps, truth, rng, most_wrong=1.0):
    """Keys and clicks per map, and the fraction of wrong labels, of a person who gives each group its largest class.

    The person unmarks the other maps but OVERLOOKED of them, and labels these one by one; or all maps of a group in
    which more than `most_wrong` belong to other classes, after one key that unmarks all.
    """
    acts = wrong = 0
    for group in groups_of_maps:
        errors = truth[group] != np.bincount(truth[group]).argmax()
        if len(group) == 1 or errors.mean() > most_wrong:
            acts += len(group) + (len(group) > 1)
            continue
        overlooked = errors & (rng.random(len(group)) < OVERLOOKED)
        acts += 1 + 2 * int((errors & ~overlooked).sum())
        wrong += int(overlooked.sum())
    return acts / len(truth), wrong / len(truth)


@pytest.mark.thorough
@pytest.mark.parametrize("class_set", ["bert", "gpt2"])
def test_together_takes_half_the_keys_at_most_and_loses_at_most_a_point(class_set):
    """Prints the figures with `pytest -s -m thorough`."""
    labelled = bundled_snapshot(class_set).without_ties()
    truth, statistics = np.unique(labelled.column("class"), return_inverse=True)[1], shapes(labelled.maps)
    rng, found = np.random.default_rng(0), groups(statistics)
    for most_wrong, allowed in ((1.0, 0.015), (1 / 3, 0.01)):
        acts, wrong = np.mean([cost(found, truth, rng, most_wrong) for _ in range(20)], axis=0)
        print(f"{class_set}, one by one above {most_wrong:.0%}: {acts:.3f} acts per map, {wrong:.2%} wrong")
        assert acts <= 0.5
        assert wrong <= allowed
