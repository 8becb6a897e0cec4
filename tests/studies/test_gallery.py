"""The gallery against brute force: the maps of all inputs captured and sorted; and nothing but numbers stays."""

import weakref
from dataclasses import replace

import numpy as np
import pytest

from core.capture.norms import norm_maps
from core.capture.running import capture
from core.errors import InputError
from core.scoring.registry import MAP_SCORES
from core.studies.attention.gallery import ENDS, chosen, input_scores
from core.studies.lookup import find_score
from tests.capture.conftest import tiny

TEXTS = ["the old dog", "a dog", "the old engine ran all night", "did the dog hear it ?", "she saw the man stop"] * 4
PREVIOUS = find_score("statistics/previous")


@pytest.fixture(scope="module", params=["bert", "gpt2"])
def checkpoint(request):
    return tiny(request.param)


def test_scores_of_every_input_and_head_are_those_of_their_maps(checkpoint):
    encodings = [checkpoint.encode(text) for text in TEXTS[:5]]
    values = input_scores(checkpoint, encodings, PREVIOUS)
    by_hand = [np.diagonal(capture(checkpoint, one).weights, -1, 2, 3).mean(-1) for one in encodings]
    np.testing.assert_allclose(values, by_hand, atol=1e-5)
    norms = input_scores(checkpoint, encodings, PREVIOUS, by_norms=True)
    for number, encoding in enumerate(encodings):
        maps = norm_maps(checkpoint, encoding).heads
        maps = maps / np.maximum(maps.sum(-1, keepdims=True), 1e-12)
        np.testing.assert_allclose(norms[number], np.diagonal(maps, -1, 2, 3).mean(-1), atol=1e-4)


@pytest.mark.parametrize("score", MAP_SCORES, ids=lambda score: score.name)
def test_the_gallery_is_what_sorting_every_map_gives(checkpoint, score):
    encodings = [checkpoint.encode(text) for text in TEXTS[:5]]
    values = input_scores(checkpoint, encodings, score)[:, 1, 2]
    if np.isnan(values).all():
        assert chosen(values) == []
        return
    shelf = chosen(values)
    order = sorted(range(5), key=lambda k: (-values[k], k))
    assert [one.input for one in shelf] == order  # five inputs: all are shown, once
    assert [one.value for one in shelf] == [float(values[k]) for k in order]


def test_ends_and_deciles_of_many_inputs_by_hand():
    values = np.random.default_rng(0).permutation(101).astype(float)
    values[7] = np.nan
    shelf = chosen(values)
    known = sorted((value for value in values if value == value), reverse=True)
    assert [one.value for one in shelf[:ENDS]] == known[:ENDS]
    assert [one.value for one in shelf[-ENDS:]] == known[-ENDS:]
    assert [one.where for one in shelf[:ENDS]] == ["highest 1", "highest 2", "highest 3"]
    assert shelf[-1].where == "lowest 1"
    deciles = {one.where: one.value for one in shelf if one.where.endswith("%")}
    assert deciles == {f"{share} %": known[round((1 - share / 100) * 99)] for share in range(10, 100, 10)}
    assert chosen(np.array([np.nan])) == []


def test_no_map_outlives_its_layer_however_many_inputs_there_are(checkpoint):
    seen, alive = [], []

    def spy(maps):
        seen.append(weakref.ref(maps.weights))
        alive.append(sum(one() is not None for one in seen))
        return PREVIOUS.of(maps)

    for count in (5, 20):
        seen.clear(), alive.clear()
        encodings = [checkpoint.encode(TEXTS[k]) for k in range(count)]
        values = input_scores(checkpoint, encodings, replace(PREVIOUS, of=spy))
        assert values.nbytes == count * checkpoint.layers * checkpoint.heads * 4  # one number a head and input
        assert max(alive) <= 2
        assert not any(one() is not None for one in seen)


def test_a_score_that_is_not_of_single_maps_is_refused(checkpoint):
    with pytest.raises(InputError, match="importance is computed from several maps"):
        input_scores(checkpoint, [checkpoint.encode("a dog")], find_score("importance/importance"))
