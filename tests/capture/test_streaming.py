"""What is taken from blocks of queries equals what whole maps give, in every family that can be intercepted."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers.masking_utils import causal_mask_function

from core.attention import Head
from core.capture import masks, streaming
from core.capture.function import AttentionRun, attention, running
from core.capture.interventions import Intervention
from core.capture.running import prepared, run
from core.capture.streaming import Streamer
from core.capture.words import groups_of
from core.errors import CheckpointError
from core.map_sums import MapSums, Needs, keys_as_values
from core.models.family import FAMILIES as RECORDS
from core.scoring.definitions import QUANTITIES
from core.scoring.distances import HeadDistances
from core.scoring.features import FeatureAttention, Kinds, Marked, mark, rhombi_of_inputs
from core.scoring.heads import SpecialPositions
from core.scoring.link_contrasts import LinkEnds, MeanContrasts, Pieces
from core.scoring.links import WEIGHTINGS, Looked, PairScores, Placement, QueryResiduals
from core.scoring.mean_patterns import MeanPatterns
from core.scoring.statistics import HeadStatistics
from core.scoring.tokens import LinkedWords, RelationAttention
from core.studies.attention.measures import Prepared
from core.studies.attention.roles import RoleMeasure
from core.studies.frames.frame_heads import Sinkless
from tests.capture.conftest import DECODERS, TEXT, TRANSLATORS, built, tiny
from tests.families.tiny import HYBRIDS, tiny_of_record
from tests.spread import one_in

NAMES = [name for name, record in RECORDS.items() if record.interceptable and record.streams]
LINKABLE = [name for name in NAMES if name not in (*TRANSLATORS, *HYBRIDS, "gpt_oss")]
SPAN = 1e-5


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Every input streams, in several blocks of queries that its length is no multiple of."""
    monkeypatch.setattr(streaming, "STREAMED_FROM", 1)
    monkeypatch.setattr(streaming, "MOST_QUERIES", 7)


def every_need(queries, keys, blocks=None):
    chance = np.random.default_rng(0)
    cells = np.stack([chance.integers(queries, size=40), chance.integers(keys, size=40)], 1)
    values = keys_as_values([(0,), range(1, keys, 3), ()], keys)
    return Needs(True, True, True, (-2, -1, 0, 1), values, (0, queries // 2), cells, blocks)


def of_maps(weights, needs):
    """The sums of whole maps [head, query, key], in float64."""
    heads, queries, keys = weights.shape
    nothing, sized = np.zeros((heads, 0)), np.zeros((heads, queries, 0))
    exact = weights.astype(np.float64)
    gaps = np.abs(np.arange(queries)[:, None] - np.arange(keys))
    diagonals = np.full((heads, len(needs.offsets), queries), np.nan)
    for number, offset in enumerate(needs.offsets):
        at = np.arange(max(0, -offset), min(queries, keys - offset))
        diagonals[:, number, at] = weights[:, at, at + offset]
    if needs.blocks is not None:
        for head in range(heads):
            needs.blocks(head, 0, weights[head])
    return MapSums(
        -(exact * np.log(np.maximum(exact, 1e-30))).sum(-1) if needs.entropy else nothing,
        (exact * gaps).sum(-1) if needs.distance else nothing,
        exact.sum(1) if needs.columns else nothing,
        diagonals,
        sized if needs.values is None else weights @ needs.values,
        weights[:, list(needs.rows)],
        nothing if needs.cells is None else weights[:, needs.cells[:, 0], needs.cells[:, 1]],
    )


def assert_alike(found, wanted):
    for name in ("entropies", "distances", "offsets", "values", "cells"):
        assert np.allclose(getattr(found, name), getattr(wanted, name), atol=SPAN, rtol=SPAN, equal_nan=True), name
    assert np.allclose(found.columns, wanted.columns, atol=SPAN, rtol=SPAN)
    assert np.allclose(found.rows, wanted.rows, atol=SPAN)


def both_ways(checkpoint, encoding):
    """Each call's sums and maps, and the outputs of both passes."""
    whole, sums = {}, {}
    with torch.no_grad(), prepared(checkpoint, watcher=whole.__setitem__, layers=range(checkpoint.calls)):
        plain = checkpoint.model(**checkpoint.inputs([encoding, encoding]))[0]
    for call, weights in whole.items():
        keys = weights.shape[-1] - checkpoint.family.sinks
        needs = [every_need(weights.shape[2], keys)] * 2
        streamer = Streamer(needs, sums.__setitem__, frozenset({call}))
        with torch.no_grad(), prepared(checkpoint) as asked, masks.lazily():
            asked.streamer = streamer
            streamed = checkpoint.model(**checkpoint.inputs([encoding, encoding]))[0]
        yield whole[call], sums[call], needs, (plain, streamed)


@pytest.mark.thorough
@pytest.mark.parametrize("name", one_in(3, NAMES))
def test_sums_equal_those_of_whole_maps(name):
    checkpoint = tiny_of_record(name)
    encoding = checkpoint.encode(TEXT[0], TEXT[1])
    for weights, sums, needs, (plain, streamed) in both_ways(checkpoint, encoding):
        assert torch.allclose(plain, streamed, atol=1e-4)
        keys = weights.shape[-1] - checkpoint.family.sinks
        for row in range(2):
            own, among = weights[row].numpy(), weights[row, ..., :keys].numpy()
            wanted = of_maps(among, needs[row])
            if checkpoint.family.sinks:  # a last column, which is no token and takes its part of every row
                whole = of_maps(own, Needs(entropy=True, columns=True, rows=needs[row].rows))
                wanted = replace(wanted, entropies=whole.entropies, columns=whole.columns, rows=whole.rows)
            assert_alike(sums[row], wanted)


def observers_of(checkpoint, encodings):
    layers, heads, causal = checkpoint.layers, checkpoint.heads, checkpoint.causal
    places = [
        SpecialPositions(encoding.first or 0, encoding.separators, len(encoding) - 1 if causal else 0)
        for encoding in encodings
    ]
    numbers = list(range(len(encodings)))
    return [
        HeadStatistics(layers, heads, causal=causal).take(places, numbers),
        HeadDistances(layers, heads, queries=4, seed=1).take(numbers),
        MeanPatterns(layers, heads),
    ]


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["bert", "modernbert", "llama", "gemma2", "mistral", "t5"])
def test_measures_have_the_same_results_either_way(name, monkeypatch):
    checkpoint = tiny_of_record(name)
    encodings = [checkpoint.encode(text, None) for text in (*TEXT, TEXT[0])]
    found, wanted = observers_of(checkpoint, encodings), observers_of(checkpoint, encodings)
    run(checkpoint, encodings, found)
    monkeypatch.setattr(streaming, "STREAMED_FROM", 10_000)
    run(checkpoint, encodings, wanted)
    statistics, distances, patterns = zip(found, wanted, strict=True)
    assert np.allclose(statistics[0].means.sums, statistics[1].means.sums, atol=SPAN, rtol=SPAN)
    assert np.array_equal(statistics[0].means.counts, statistics[1].means.counts)
    assert np.allclose(distances[0].result(), distances[1].result(), atol=SPAN)
    assert np.allclose(patterns[0].result(), patterns[1].result(), atol=SPAN)


def marked(encoding, number, *, causal):
    """Random features of an input, with their null draws and cells of contrasts."""
    length, chance = len(encoding), np.random.default_rng(number)
    tokens = chance.random((3, length)) < 0.3
    kinds = Kinds(chance.integers(3, size=length), np.array([False, True, False]))
    at = length - 1 if causal else 0
    (cells,) = rhombi_of_inputs([Marked(tokens, encoding.ordinary, kinds, at, (number,))], causal=causal)
    return mark(tokens, encoding.ordinary, classifying=at, seed=[number], rhombi=cells)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["roberta", "modernbert", "gpt2", "qwen2"])
def test_features_have_the_same_results_either_way(name, monkeypatch):
    checkpoint = tiny_of_record(name)
    encodings = [checkpoint.encode(text, None) for text in (*TEXT, "it", TEXT[0])]
    marks = [marked(encoding, number, causal=checkpoint.causal) for number, encoding in enumerate(encodings)]
    both = []
    for least in (1, 10_000):
        monkeypatch.setattr(streaming, "STREAMED_FROM", least)
        features = FeatureAttention(checkpoint.layers, checkpoint.heads, ["a", "b", "c"], causal=checkpoint.causal)
        run(checkpoint, encodings, [features.take(marks, list(range(len(marks))))])
        both.append(features.means)
    assert np.array_equal(both[0].counts, both[1].counts)
    assert both[0].counts.any()
    wide = 2 * len(features.definitions) * 3
    assert np.allclose(both[0].sums[..., :wide], both[1].sums[..., :wide], atol=SPAN)
    assert np.allclose(both[0].sums[..., wide:], both[1].sums[..., wide:], atol=2e-3)  # logarithms of 1e-6 and more


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["modernbert", "gpt2"])
def test_roles_have_the_same_results_either_way(name, monkeypatch):
    checkpoint = tiny_of_record(name)
    inputs = [Prepared(k, checkpoint.encode(text, None), ()) for k, text in enumerate((*TEXT, TEXT[0]))]
    both = []
    for least in (1, 10_000):
        monkeypatch.setattr(streaming, "STREAMED_FROM", least)
        roles = RoleMeasure(checkpoint)
        if least == 1:
            assert not whole_maps(checkpoint, [ready.encoding for ready in inputs], roles.take(inputs), monkeypatch)
        else:
            run(checkpoint, [ready.encoding for ready in inputs], roles.take(inputs))
        both.append(roles.roles.means)
    assert np.array_equal(both[0].counts, both[1].counts)
    assert both[0].counts.any()
    assert np.allclose(both[0].sums, both[1].sums, atol=SPAN)


def linked(encoding, number):
    """Random links of two relations between the words of an input, with a word that is spelled like another."""
    words, chance = [tuple(group) for group in groups_of(encoding)], np.random.default_rng(number)
    sentence = [-1 if encoding.sentence[word[0]] is None else encoding.sentence[word[0]] for word in words]
    inside = [k for k, place in enumerate(sentence) if place >= 0]
    pairs = {tuple(chance.choice(inside, 2, replace=False).tolist()) for _ in range(6)} if len(inside) > 1 else ()
    within = [(a, b) for a, b in pairs if sentence[a] == sentence[b]]
    across = [(a, b) for a in inside for b in inside if sentence[a] == 0 and sentence[b] == 1][::7]
    return LinkedWords(words, sentence, (within, across), [k % 9 for k in range(len(words))])


@pytest.mark.thorough
@pytest.mark.parametrize("name", one_in(3, LINKABLE))
def test_relations_have_the_same_results_either_way(name, monkeypatch):
    checkpoint = tiny_of_record(name)
    texts = [(TEXT[0], None if checkpoint.causal else TEXT[1]), (TEXT[1], None), ("it", None), (TEXT[1], None)]
    encodings = [checkpoint.encode(*text) for text in texts]
    words, both = [linked(encoding, number) for number, encoding in enumerate(encodings)], []
    for least in (1, 10_000):
        monkeypatch.setattr(streaming, "STREAMED_FROM", least)
        relations = RelationAttention(
            checkpoint.layers, checkpoint.heads, ["a", "b"], across=[False, True], causal=checkpoint.causal
        )
        observers = [relations.take(words, list(range(len(words))))]
        if least == 1:
            assert not whole_maps(checkpoint, encodings, observers, monkeypatch)
        else:
            run(checkpoint, encodings, observers)
        both.append(relations.means)
    assert np.array_equal(both[0].counts, both[1].counts)
    assert both[0].counts.any()
    contrasts = np.arange(both[0].sums.shape[-1]) % len(QUANTITIES) == QUANTITIES.index("contrast")
    assert np.allclose(both[0].sums[..., ~contrasts], both[1].sums[..., ~contrasts], atol=SPAN)
    assert np.allclose(both[0].sums[..., contrasts], both[1].sums[..., contrasts], atol=2e-3)  # logarithms


def frame_observers(checkpoint, encodings):
    """What frame links are scored with, on random pairs of every input."""
    layers, heads, causal = checkpoint.layers, checkpoint.heads, checkpoint.causal
    placements, looked, ends, chance = [], [], [], np.random.default_rng(0)
    for number, encoding in enumerate(encodings):
        ordinary = encoding.ordinary
        drawn = [sorted(chance.choice(ordinary, 2, replace=False).tolist(), reverse=True) for _ in range(4)]
        pairs = tuple(dict.fromkeys((a, b) for a, b in drawn))
        placements += [
            Placement(number, "most", pairs),
            Placement(number, "mean", pairs, average=True),
            Placement(number, "none", ()),
        ]
        looked.append(Looked(number, pairs[:2], ordinary))
        words = [tuple(group) for group in groups_of(encoding)]
        pieces = Pieces.of(words, [-1 if encoding.sentence[word[0]] is None else 0 for word in words], len(encoding))
        ends.append(LinkEnds(number, pieces, (((pairs[0][0],), (pairs[0][1],)),), np.zeros((len(words),) * 2, bool)))
    longest = max(len(encoding) for encoding in encodings)
    return [
        PairScores(placements, layers=layers, heads=heads),
        QueryResiduals(looked, layers=layers, heads=heads, longest=longest, causal=causal),
        MeanContrasts(ends, layers=layers, heads=heads, causal=causal, seed=0),
    ]


@pytest.mark.thorough
@pytest.mark.parametrize("sinkless", [False, True])
@pytest.mark.parametrize("name", one_in(3, LINKABLE))
def test_frame_links_have_the_same_results_either_way(name, sinkless, monkeypatch):
    checkpoint = tiny_of_record(name)
    encodings, both = [checkpoint.encode(text) for text in (TEXT[0], TEXT[1], TEXT[1])], []
    for least in (1, 10_000):
        monkeypatch.setattr(streaming, "STREAMED_FROM", least)
        scores, residuals, contrasts = observers = frame_observers(checkpoint, encodings)
        shown = [Sinkless(observer) for observer in observers] if sinkless else observers
        if least == 1:
            assert not whole_maps(checkpoint, encodings, shown, monkeypatch)
        else:
            run(checkpoint, encodings, shown)
        both.append((list(scores.result().values()), residuals, contrasts.result()))
    span = SPAN * (10 if sinkless else 1)  # rows are divided by what a sink leaves
    assert np.allclose(*(found[0] for found in both), atol=span, equal_nan=True)
    for kind in WEIGHTINGS:
        of_kind = [np.concatenate(found[1].result(kind)) for found in both]
        loose = 5e-3 if checkpoint.causal else 10 * span  # log odds of 1e-6 and more; else weights times keys
        assert np.allclose(*of_kind, atol=loose)
    assert np.allclose(both[0][2], both[1][2], atol=2e-3, equal_nan=True)
    assert np.isfinite(both[0][2]).any()


def whole_maps(checkpoint, encodings, observers, monkeypatch, **wanted):
    """Whether a run of these was given whole maps."""
    seen = []
    honest = [observer.update for observer in observers]
    for observer, update in zip(observers, honest, strict=True):
        monkeypatch.setattr(observer, "update", lambda *given, update=update: (seen.append(1), update(*given)))
    run(checkpoint, encodings, observers, **wanted)
    return bool(seen)


def test_maps_stay_whole_where_something_needs_them(monkeypatch):
    bert = tiny_of_record("bert")
    encodings = [bert.encode(TEXT[0])]
    assert not whole_maps(bert, encodings, observers_of(bert, encodings), monkeypatch)
    disabled = [Intervention("disable", frozenset({Head(0, 1)}))]
    assert whole_maps(bert, encodings, observers_of(bert, encodings), monkeypatch, interventions=disabled)
    everything = HeadDistances(bert.layers, bert.heads, queries=None).take([0])
    assert whole_maps(bert, encodings, [everything], monkeypatch)
    monkeypatch.setattr(streaming, "STREAMED_FROM", len(encodings[0]) + 1)
    assert whole_maps(bert, encodings, observers_of(bert, encodings), monkeypatch)


@pytest.mark.parametrize("name", ["deberta", "xlnet", "falcon", "gpt_neo"])
def test_families_reached_at_the_softmax_keep_their_maps(name, monkeypatch):
    checkpoint = tiny_of_record(name)
    encodings = [checkpoint.encode(TEXT[0])]
    assert whole_maps(checkpoint, encodings, observers_of(checkpoint, encodings), monkeypatch)


@pytest.mark.parametrize(("dtype", "bound"), [(torch.bfloat16, 1e-5), (torch.float16, 1e-5)])
def test_half_precision_has_the_same_numbers_as_its_maps(dtype, bound):
    """Scores are of the model's dtype in both ways; what follows is float32, so nothing is rounded twice."""
    checkpoint = built("llama", {**DECODERS["llama"]}, encodes=False)
    checkpoint = replace(checkpoint, model=checkpoint.model.to(dtype))
    whole, sums = [], []
    query, key, value = (torch.randn(1, 4, 40, 8).to(dtype) for _ in range(3))
    asked = AttentionRun(1, watcher=lambda _, weights: whole.append(weights), watched=frozenset({0}))
    needs = every_need(40, 40)
    streamed = AttentionRun(1, streamer=Streamer([needs], lambda _, own: sums.append(own[0]), frozenset({0})))
    with running(asked):
        plain, _ = attention(checkpoint.model, query, key, value, None)
    with running(streamed):
        without, _ = attention(checkpoint.model, query, key, value, None)
    wanted = of_maps(whole[0][0].numpy(), needs)
    assert np.allclose(sums[0].entropies, wanted.entropies, atol=bound)
    assert np.allclose(sums[0].values, wanted.values, atol=bound)
    assert torch.allclose(plain.float(), without.float(), atol=1e-2)


@pytest.mark.parametrize("least", [1, 10_000])
def test_a_score_that_is_no_number_is_named_by_head_and_token(least, monkeypatch):
    monkeypatch.setattr(streaming, "STREAMED_FROM", least)
    checkpoint = tiny("bert", seed=3)
    encodings = [checkpoint.encode(TEXT[0])]
    projection = checkpoint.model.encoder.layer[1].attention.self.query
    with torch.no_grad():
        projection.bias[8] = torch.nan  # of the second head of four
    with pytest.raises(CheckpointError, match=r"L2H2 has a NaN or infinite value at token 1"):
        run(checkpoint, encodings, observers_of(checkpoint, encodings))


def test_blocks_come_in_order_and_whole_to_what_needs_maxima():
    checkpoint, most, starts = tiny_of_record("mistral"), {}, []

    def largest(head, start, weights):
        starts.append((head, start))
        most.setdefault(head, []).append(weights.argmax(-1).numpy())

    encoding = checkpoint.encode(TEXT[0])
    for weights, _, _, _ in both_ways(checkpoint, encoding):
        most.clear()
        streamer = Streamer([Needs(blocks=largest)], lambda *_: None, frozenset({0}))
        with torch.no_grad(), prepared(checkpoint) as asked, masks.lazily():
            asked.streamer = streamer
            checkpoint.model(**checkpoint.inputs([encoding]))
        found = np.stack([np.concatenate(most[head]) for head in range(4)])
        assert np.array_equal(found, weights[0].argmax(-1).numpy())
        break
    assert starts[:5] == [(0, 0), (1, 0), (2, 0), (3, 0), (0, 7)]


def test_a_mask_that_is_a_rule_is_made_of_a_rule_alone_while_asked():
    """A padded input keeps its mask, and the placeholder is no number wherever a model would compute with it."""
    padded = torch.tensor([[True, True, False]])
    with masks.lazily():
        whole = masks.mask_of(1, 3, 3, mask_function=causal_mask_function, attention_mask=padded)
        lazy = masks.mask_of(1, 3, 3, mask_function=causal_mask_function, attention_mask=torch.ones(1, 3).bool())
    assert masks.rule_of(whole) is None
    assert (whole[0, 0] == 0).tolist() == [[True, False, False], [True, True, False], [True, True, False]]
    assert bool(lazy.isnan().all())
    assert masks.rows_of(lazy, slice(1, 3), torch.float32, lazy.device)[0, 0].tolist() == [
        [0, 0, torch.finfo(torch.float32).min],
        [0, 0, 0],
    ]
