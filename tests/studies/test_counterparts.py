"""Which head is which in another checkpoint: permuted heads, random weights, other tokenizers, impossible inputs."""

import random
import shutil

import numpy as np
import pytest
import torch

from core.capture.running import capture
from core.errors import InputError
from core.models.classifier import random_copy
from core.models.family import FAMILIES as RECORDS
from core.scoring.counterparts import matching
from core.studies.attention.inputs import SourceText
from core.studies.comparison import counterparts
from core.studies.comparison.counterparts import recurrences
from core.studies.comparison.head_similarity import common_inputs, compared
from core.studies.comparison.records import Counterpart, CounterpartsSummary, Recurrence, RecurrenceSummary
from tests.capture.conftest import TEXT, built, tiny
from tests.families.tiny import HYBRIDS, tiny_of_record
from tests.spread import one_in
from tests.studies.permuted import permuted
from tests.studies.through_json import rows_of

TEXTS = [*TEXT, "The small engine ran all night.", "Did the old dog hear it stop?"]
SOURCES = [SourceText(k, f"text-{k}", text, None) for k, text in enumerate(TEXTS)]


def saved(checkpoint, folder):
    checkpoint.model.save_pretrained(folder)
    checkpoint.tokenizer.save_pretrained(folder)
    return str(folder)


# hybrids: their layers without attention have no heads that could be found
@pytest.mark.thorough
@pytest.mark.parametrize("family", one_in(3, sorted(RECORDS.keys() - HYBRIDS)))
def test_heads_permuted_inside_their_layers_are_found_exactly(family):
    checkpoint = tiny_of_record(family)
    other, order = permuted(checkpoint)
    assert (order != np.arange(order.shape[1])).any()
    encoding = checkpoint.encode(TEXT[0])
    with torch.no_grad():
        outputs = [one.model(**one.inputs([encoding]))[0] for one in (checkpoint, other)]
    assert torch.allclose(*outputs, atol=1e-4)  # the same function
    shared = common_inputs(checkpoint, other, SOURCES, queries=None, seed=0)
    sums = compared(checkpoint, other, shared)
    found = matching(sums)
    layers, heads = order.shape
    expected = np.concatenate([layer * heads + np.argsort(order[layer]) for layer in range(layers)])
    assert found.match.tolist() == expected.tolist()
    assert found.agrees.all()
    similarity = sums.similarity()[np.arange(len(expected)), expected]
    assert similarity.min() > 0.999
    assert found.margin.min() > 0


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place = tmp_path_factory.mktemp("match")
    return {
        "bert": saved(tiny("bert"), place / "bert"),
        "permuted": saved(permuted(tiny("bert"))[0], place / "permuted"),
        "small": saved(
            built(
                "bert",
                {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32},
                encodes=True,
            ),
            place / "small",
        ),
        "gpt2": saved(tiny("gpt2"), place / "gpt2"),
    }


def rows(folders, first, other, **more):
    options = {"checkpoint": folders[first], "compare": folders[other], "texts": TEXTS, "random_inputs": 2} | more
    return rows_of("counterparts", options, random.Random(0))  # noqa: S311 - no secret


@pytest.mark.thorough
def test_rows_say_match_margin_p_and_agreement(folders):
    found = rows(folders, "bert", "permuted")
    heads, (summary,) = Counterpart.among(found), CounterpartsSummary.among(found)
    assert len(heads) == summary.heads == 12
    assert all(head.similarity > 0.999 and head.margin > 0 and head.agrees for head in heads)
    assert all((head.match_layer, head.match_head) == (head.best_layer, head.best_head) for head in heads)
    assert (summary.keys, summary.visible, summary.identical, summary.draws) == ("tokens", "all", False, 99)
    assert all(0.01 <= head.p <= 1 and head.matched == (head.p <= 0.05) for head in heads)
    assert str(summary.matched) in counterparts.STUDY.headline(found).sentence


@pytest.mark.thorough
def test_identical_checkpoints_are_one_and_said(folders):
    found = rows(folders, "bert", "bert")
    heads, (summary,) = Counterpart.among(found), CounterpartsSummary.among(found)
    assert [head.similarity for head in heads] == [1.0] * 12
    assert all((head.layer, head.head) == (head.match_layer, head.match_head) for head in heads)
    assert summary.identical
    assert "same weights" in counterparts.STUDY.headline(found).sentence


@pytest.mark.slow  # 7 CPU seconds: two more pairs of checkpoints
def test_another_shape_leaves_heads_without_a_match(folders):
    heads = Counterpart.among(rows(folders, "bert", "small"))
    matched = [(head.match_layer, head.match_head) for head in heads if head.match_layer is not None]
    assert sorted(matched) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    left = [head for head in heads if head.match_layer is None]
    assert len(left) == 8
    assert all(head.similarity is None and head.p is None and not head.matched for head in left)
    wide = Counterpart.among(rows(folders, "small", "bert"))
    assert len(wide) == 4
    assert all(head.match_layer is not None for head in wide)


@pytest.mark.thorough
def test_encoder_and_decoder_meet_on_words_that_both_see(folders):
    found = rows(folders, "bert", "gpt2")
    (summary,) = CounterpartsSummary.among(found)
    assert (summary.keys, summary.visible) == ("words", "up to the query")
    assert "on words, over cells that both see" in counterparts.STUDY.headline(found).sentence


def test_words_give_the_weights_of_their_tokens():
    bert, gpt2 = tiny("bert"), tiny("gpt2")
    shared = common_inputs(bert, gpt2, SOURCES[:1], queries=None, seed=0)
    (block,) = shared.rows_of_other(gpt2)
    groups = shared.common[0].other
    weights = capture(gpt2, shared.other[0]).weights.reshape(-1, *[len(shared.other[0])] * 2)
    expected = np.array(
        [
            [[head[list(query)][:, list(key)].sum(1).mean() for key in groups] for query in groups[1:]]
            for head in weights
        ]
    )
    expected /= expected.sum(-1, keepdims=True)
    assert block.rows.numpy() == pytest.approx(expected, abs=1e-6)
    (mine,) = shared.rows_of_first(bert)
    assert mine.rows.sum(-1).numpy() == pytest.approx(1, abs=1e-5)
    assert (mine.rows[:, 0, 2:] == 0).all()  # of the first word, what the decoder cannot see


@pytest.mark.thorough
def test_random_weights_find_no_counterpart(folders, tmp_path):
    fresh = saved(random_copy(tiny("bert"), seed=7), tmp_path / "fresh")
    (summary,) = CounterpartsSummary.among(rows(folders | {"fresh": fresh}, "bert", "fresh"))
    assert summary.matched == 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"compare": None}, "second checkpoint"),
        ({"draws": 20}, "at least 99"),
        ({"texts": ["One sentence alone."]}, "At least 2 inputs"),
    ],
)
def test_what_cannot_be_is_a_sentence(folders, options, says):
    with pytest.raises(InputError, match=says):
        rows(folders, "bert", "gpt2", **options)


def test_texts_without_words_in_common_or_of_another_language_are_a_sentence(folders):
    with pytest.raises(InputError, match="words that both checkpoints delimit"):
        rows(folders, "bert", "gpt2", texts=["abandonment" * 3, "carrying" * 3])
    with pytest.raises(InputError, match=r"does not know 100% of them"):
        rows(folders, "bert", "gpt2", texts=["пёс бежал всю ночь", "никто не слышал его"])


@pytest.mark.slow
def test_random_weights_match_at_most_one_in_twenty_heads_of_the_bundled_encoder(tmp_path):
    from core.models.opening import open_checkpoint

    fresh = saved(random_copy(open_checkpoint("atlas-encoder"), seed=50), tmp_path / "fresh")
    for first, other in (("atlas-encoder", fresh), (fresh, "atlas-encoder")):
        found = rows_of("counterparts", {"checkpoint": first, "compare": other, "limit": 60})
        (summary,) = CounterpartsSummary.among(found)
        assert summary.matched <= 0.05 * summary.heads
    shutil.rmtree(fresh)


def test_of_several_checkpoints_the_heads_that_recur_are_counted():
    def found(compare, matched):
        place = {"match_layer": 0, "match_head": 0, "best_layer": 0, "best_head": 0, "best": 0.9, "n": 5}
        return Counterpart(checkpoint="A", compare=compare, layer=0, head=0, similarity=0.9, matched=matched, **place)

    assert recurrences([found("B", True)]) == []
    one, whole = recurrences([found("B", True), found("C", False)])
    assert (one.found, one.runs, one.same_place, one.share, one.similarity) == (1, 2, 1, 0.5, 0.9)
    assert (whole.everywhere, whole.nowhere, whole.share) == (0, 0, 0.5)


@pytest.mark.slow  # 10 CPU seconds: three pairs of checkpoints, with draws of random weights for each
def test_heads_that_recur_are_counted_over_several_checkpoints(folders):
    found = rows(folders, "bert", "permuted", also=[folders["bert"], folders["gpt2"]], draws=99)
    heads, recurring = Counterpart.among(found), Recurrence.among(found)
    (whole,) = RecurrenceSummary.among(found)
    assert len(heads) == 36
    assert {summary.compare for summary in CounterpartsSummary.among(found)} == {
        folders[name] for name in ("permuted", "bert", "gpt2")
    }
    by_head = {(of.layer, of.head): of for of in recurring}
    for (layer, head), of in by_head.items():
        own = [other for other in heads if (other.layer, other.head) == (layer, head)]
        assert (of.found, of.runs) == (sum(other.matched for other in own), 3)
        assert of.low <= of.share <= of.high
    assert whole.everywhere == sum(of.found == 3 for of in recurring)
    assert whole.share == pytest.approx(np.mean([head.matched for head in heads]))
    alone = Counterpart.among(rows(folders, "bert", "permuted"))
    assert [head for head in heads if head.compare == folders["permuted"]] == alone
    assert "have a counterpart in all 3 other checkpoints" in counterparts.STUDY.headline(found).sentence
