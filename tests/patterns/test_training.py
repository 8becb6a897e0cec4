import numpy as np
import pytest
import torch

from core.codebook.registry import BERT, GPT2
from core.errors import InputError, TrainingStoppedError
from core.patterns import training
from core.patterns.suggestions import probabilities, suggestions
from core.patterns.training import Classifier, ClassifierRecipe, Course, Known, fit
from tests.codebook.drawn_maps import synthetic_maps

QUICK = ClassifierRecipe(epochs=2, batch=16)


@pytest.fixture(scope="module")
def small():
    return synthetic_maps(each=6)


@pytest.mark.parametrize("class_set", [BERT, GPT2], ids=lambda one: one.name)
def test_the_baseline_learns_maps_drawn_from_the_definitions(class_set):
    maps, labels, _ = synthetic_maps(class_set, each=20)
    unseen, truth, _ = synthetic_maps(class_set, each=10, seed=1)
    classifier = fit(maps, labels, class_set.names, ClassifierRecipe(kind="baseline"))
    named = [one.name for one in suggestions(classifier, unseen)]
    assert np.mean([a == b for a, b in zip(named, truth, strict=True)]) > 0.9


@pytest.mark.thorough
def test_the_papers_network_learns_maps_drawn_from_the_definitions():
    maps, labels, _ = synthetic_maps(each=24)
    unseen, truth, _ = synthetic_maps(each=10, seed=1)
    classifier = fit(maps, labels, BERT.names, ClassifierRecipe(epochs=40, batch=16))
    named = [one.name for one in suggestions(classifier, unseen, dtype="float32")]
    assert np.mean([a == b for a, b in zip(named, truth, strict=True)]) > 0.8


def test_no_input_is_on_both_sides_of_a_fold_and_every_map_is_tested_once():
    _, labels, groups = synthetic_maps(each=20, inputs=10)
    tested = []
    for train, test in training.folds(labels, groups, count=5, seed=0):
        assert not {groups[k] for k in train} & {groups[k] for k in test}
        tested += list(test)
    assert sorted(tested) == list(range(len(labels)))


@pytest.mark.parametrize("kind", ["paper", "replication"])
def test_a_cancelled_fit_goes_on_and_ends_with_the_same_weights(kind, small, tmp_path):
    maps, labels, _ = small
    recipe = ClassifierRecipe(kind=kind, epochs=4, batch=16)
    state = tmp_path / "fit.safetensors"
    with pytest.raises(TrainingStoppedError):
        fit(maps, labels, BERT.names, recipe, course=Course(state=state, on_epoch=lambda epoch: epoch.number < 2))
    seen = []
    resumed = fit(
        maps,
        labels,
        BERT.names,
        recipe,
        course=Course(state=state, on_epoch=lambda epoch: seen.append(epoch.number) or True),
    )
    whole = fit(maps, labels, BERT.names, recipe)
    assert seen == [3, 4]
    assert all(torch.equal(value, whole.tensors[name]) for name, value in resumed.tensors.items())


def test_epochs_are_told_with_loss_and_f1(small):
    maps, labels, _ = small
    told = []
    fit(maps, labels, BERT.names, QUICK, course=Course(on_epoch=lambda epoch: told.append(epoch) or True))
    assert [(one.number, one.of) for one in told] == [(1, 2), (2, 2)]
    assert all(one.loss > 0 and 0 <= one.f1 <= 1 for one in told)


def test_fitting_leaves_the_global_generator_and_the_maps_alone(small):
    maps, labels, _ = small
    before, state = [one.copy() for one in maps], torch.get_rng_state()
    fit(maps, labels, BERT.names, QUICK)
    assert torch.equal(state, torch.get_rng_state())
    assert all(np.array_equal(a, b) for a, b in zip(maps, before, strict=True))


@pytest.mark.thorough
@pytest.mark.parametrize("kind", training.CLASSIFIER_KINDS)
def test_a_classifier_survives_its_bytes(kind, small):
    maps, labels, _ = small
    classifier = fit(maps, labels, BERT.names, ClassifierRecipe(kind=kind, epochs=1, batch=16))
    again = Classifier.from_bytes(classifier.as_bytes())
    assert again.recipe == classifier.recipe
    assert again.classes == BERT.names
    assert np.array_equal(probabilities(again, maps)[0], probabilities(classifier, maps)[0])


def test_bytes_of_something_else_are_refused():
    with pytest.raises(InputError, match="safetensors"):
        Classifier.from_bytes(b"\x80\x04not a classifier")


@pytest.mark.thorough
@pytest.mark.parametrize("kind", training.CLASSIFIER_KINDS)
def test_probabilities_sum_to_one_and_do_not_depend_on_the_batch(kind, small):
    maps, labels, _ = small
    classifier = fit(maps, labels, BERT.names, ClassifierRecipe(kind=kind, epochs=1, batch=16))
    together, _ = probabilities(classifier, maps)
    alone = np.concatenate([probabilities(classifier, [one])[0] for one in maps])
    np.testing.assert_allclose(together.sum(1), 1, atol=1e-5)
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_longer_maps_at_inference_are_cropped_and_counted(small):
    maps, labels, _ = small
    classifier = fit(maps, labels, BERT.names, QUICK)
    assert probabilities(classifier, [np.eye(90, dtype=np.float32), maps[0]])[1] == 1


def test_a_class_without_labels_is_never_suggested_by_the_baseline(small):
    maps, labels, _ = small
    kept = [k for k, name in enumerate(labels) if name != "block"]
    classifier = fit([maps[k] for k in kept], [labels[k] for k in kept], BERT.names, ClassifierRecipe(kind="baseline"))
    assert probabilities(classifier, maps)[0][:, BERT.names.index("block")].max() == 0


def test_balanced_weights_are_scikit_learns():
    numbers = torch.tensor([0, 0, 0, 1, 3])
    assert training._class_weights(numbers, 4).tolist() == pytest.approx([5 / 9, 5 / 3, 0, 5 / 3])


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["vertical"] * 9, "two classes"),
        (["vertical"] * 9 + ["block"], "block has 1"),
        (["vertical", "block"] * 3, "at least 5 different inputs"),
    ],
)
def test_too_few_labels_say_what_is_missing(labels, said):
    groups = [str(k % 3) for k in range(len(labels))]
    with pytest.raises(InputError, match=said):
        training.check_labels(labels, BERT.names, groups, folds=5)


def test_unknown_kinds_and_lengths_are_refused():
    with pytest.raises(InputError, match="baseline"):
        ClassifierRecipe(kind="forest")
    with pytest.raises(InputError, match="number of epochs must be at least 1"):
        ClassifierRecipe(epochs=0)
    maps, labels, _ = synthetic_maps(each=3)
    classifier = fit(maps, labels, BERT.names, ClassifierRecipe(kind="baseline"))
    with pytest.raises(InputError, match="bfloat16"):
        probabilities(classifier, maps, dtype="int8")


def test_both_is_the_mean_of_the_network_and_the_baseline(small):
    maps, labels, _ = small
    one, two, both = (
        probabilities(fit(maps, labels, BERT.names, ClassifierRecipe(kind=kind, epochs=1, batch=16)), maps)[0]
        for kind in ("paper", "baseline", "both")
    )
    np.testing.assert_allclose(both, (one + two) / 2, atol=1e-6)


@pytest.mark.parametrize(
    ("epochs", "falling", "rates"),
    [(4, 0.5, [1, 1, 1, 0.5]), (4, 1.0, [1, 0.75, 0.5, 0.25]), (3, 0.0, [1, 1, 1]), (5, 0.4, [1, 1, 1, 1, 0.5])],
)
def test_the_rate_falls_over_the_last_epochs_and_is_never_zero(epochs, falling, rates):
    recipe = ClassifierRecipe(epochs=epochs, falling=falling)
    assert [training._rate(epoch, recipe) for epoch in range(epochs)] == pytest.approx(rates)


def test_calibration_leaves_out_checkpoints_else_parts_that_share_no_head():
    heads = ["a", "b", "a", "c", "d", "b"]
    apart = Known(heads=heads).apart(6)
    assert apart == Known(origins=["x"] * 6, heads=heads).apart(6)
    assert all(apart[i] == apart[j] for i in range(6) for j in range(6) if heads[i] == heads[j])
    assert len(set(apart)) == 3
    assert Known(origins=["x", "y"] * 3, heads=heads).apart(6) == ["x", "y"] * 3
    assert Known().apart(2) == ["", ""]
