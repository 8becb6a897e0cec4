"""The study over sentences: a planted head survives, the numbers are those of loops, units add up."""

import json

import numpy as np
import pytest
import torch
from scipy import stats

from core import config
from core.capture.running import capture
from core.capture.words import groups_of
from core.errors import InputError
from core.frames.records import links_of
from core.frames.rows import parse_sentences, write_sentences
from core.map_sums import MapSums, Needs
from core.models.opening import open_checkpoint
from core.scoring.link_contrasts import LinkEnds, MeanContrasts
from core.scoring.link_contrasts import Pieces as WordPieces
from core.scoring.link_tests import exchange_draws, place_draws
from core.scoring.links import Looked, QueryResiduals, exchange_groups, links_in_pieces, positions, shifted
from core.studies.contract import ExampleUnit, Unit
from core.studies.frames import frame_heads
from core.studies.frames.frame_heads import (
    STUDY,
    Draws,
    Scores,
    chosen,
    packed,
    score_sentences,
    unpacked,
)
from core.studies.frames.records import FrameSentence
from tests.studies.figures import figures

pytestmark = pytest.mark.skipif(
    not (config.BUNDLED_MODELS / "atlas-encoder").is_dir(), reason="the bundled encoder is not in data/models"
)


@pytest.fixture(scope="module")
def encoder():
    return open_checkpoint("atlas-encoder")


@pytest.fixture(scope="module")
def decoder():
    return open_checkpoint("atlas-decoder")


def options(**changed):
    return STUDY.read({"draws": 199} | changed)


def rows_of(checkpoint, asked, sentences=None):
    found = score_sentences(checkpoint, sentences or chosen(asked)[0].kept[:24], asked)
    return STUDY.summarize(asked, [found])


def test_scores_are_those_of_a_loop_over_captured_maps(encoder):
    asked = options()
    sentences = chosen(asked)[0].kept[:6]
    found = {scored.id: scored.scores for scored in score_sentences(encoder, sentences, asked).sentences}
    for sentence in sentences:
        encoding = encoder.encode(sentence.text)
        weights = capture(encoder, encoding).weights
        pieces = [
            (element, target)
            for link in links_of(sentence)
            for element in positions(encoding, link.element)
            for target in positions(encoding, link.target)
        ]
        expected = [max(weights[layer, head, e, t] for e, t in pieces) for layer in range(6) for head in range(6)]
        np.testing.assert_allclose(found[sentence.id], expected, atol=2e-6)


def renormalised(weights):
    """Without attention to the first token."""
    without = weights.copy()
    without[..., 0] = 0
    return without / without.sum(-1, keepdims=True)


@pytest.mark.parametrize(("direction", "without_first"), [("element_to_target", False), ("target_to_element", True)])
def test_draws_move_and_exchange_links_as_loops_over_captured_maps_do(encoder, direction, without_first):
    asked = options(direction=direction, without_first=without_first, draws=30, seed=5)
    sentences = chosen(asked)[0].kept[:9]
    encodings = [encoder.encode(one.text) for one in sentences]
    maps = [capture(encoder, encoding).weights for encoding in encodings]
    maps = [renormalised(weights) for weights in maps] if without_first else maps
    turned = direction == "target_to_element"

    def pairs(links):
        every = [(e, t) for element, target in links for e in element for t in target]
        return tuple(dict.fromkeys((t, e) if turned else (e, t) for e, t in every))

    def score(number, links):
        return np.max([maps[number][:, :, q, k] for q, k in pairs(links)], axis=0).reshape(-1)

    links = [links_in_pieces(encoding, one) for encoding, one in zip(encodings, sentences, strict=True)]
    places = [shifted(own, encoding.ordinary) for own, encoding in zip(links, encodings, strict=True)]
    groups = exchange_groups([len(encoding) for encoding in encodings], seed=5)
    looked = [Looked(k, pairs(own), encodings[k].ordinary) for k, own in enumerate(links)]
    how = {"layers": 6, "heads": 6, "causal": False}
    residuals = QueryResiduals(looked, longest=max(map(len, encodings)), **how)
    ends = []
    for number, (encoding, own) in enumerate(zip(encodings, links, strict=True)):
        words = groups_of(encoding)
        special = [-1 if encoding.sentence[word[0]] is None else 0 for word in words]
        directed = tuple((target, element) if turned else (element, target) for element, target in own)
        taken = np.zeros((len(words), len(words)), dtype=bool)
        for queries, keys in directed:
            for of, to in np.ndindex(taken.shape):
                taken[of, to] |= bool(set(words[of]) & set(queries) and set(words[to]) & set(keys))
        pieces = WordPieces.of([tuple(word) for word in words], special, len(encoding))
        ends.append(LinkEnds(number, pieces, directed, taken))
    contrasts = MeanContrasts(ends, **how, seed=5)
    for layer in range(6):
        for number, weights in enumerate(maps):
            for observer in (residuals, contrasts):
                observer.update(layer, torch.from_numpy(weights[layer][None]), [number])
    found = score_sentences(encoder, sentences, asked)
    (draws,) = found.draws
    assert (draws.n, draws.draws, draws.layers, draws.heads, draws.causal) == (9, 30, 6, 6, False)
    moved = [np.stack([score(k, at) for at in own]) for k, own in enumerate(places)]
    swapped = [np.stack([[score(i, links[j]) for j in group] for i in group]) for group in groups]
    weight, share = residuals.result("weight"), residuals.result("share")
    for name, wanted in {
        "distance": place_draws(moved, 30, seed=5),
        "exchange": exchange_draws(swapped, 30, seed=6),
        "query": place_draws(weight, 30, seed=7),
        "share": place_draws(share, 30, seed=8),
    }.items():
        np.testing.assert_allclose(unpacked(getattr(draws, name), 30), wanted, atol=2e-3, err_msg=name)
    np.testing.assert_allclose(draws.query_observed, sum(one[0] for one in weight), atol=1e-3)
    np.testing.assert_allclose(draws.share_observed, sum(one[0] for one in share), atol=1e-3)
    np.testing.assert_allclose(draws.contrasts, contrasts.result(), atol=1e-3)
    lengths = [len(encoding) for encoding in encodings]
    assert draws.movable == sum(len(own) > 1 for own in places)
    assert draws.exchangeable == sum(lengths.count(length) > 1 for length in lengths) > 0
    assert draws.comparable == sum(len(own) > 1 for own in residuals.places)
    queries = [sorted({query for query, _ in pairs(own)}) for own in links]
    for name, key in (("previous", lambda q: q - 1), ("next", lambda q: q + 1), ("first", lambda q: 0)):
        means = [
            np.mean([maps[k][:, :, q, key(q)] for q in of if 0 <= key(q) < lengths[k] and (q or name != "previous")], 0)
            for k, of in enumerate(queries)
        ]
        np.testing.assert_allclose(draws.habits[name], np.sum(means, 0).reshape(-1), atol=1e-4)
    assert draws.fixed == pytest.approx({
        "previous": sum(any(k == q - 1 for q, k in pairs(own)) for own in links),
        "next": sum(any(k == q + 1 for q, k in pairs(own)) for own in links),
        "first": 0,
        "uniform": sum(1 / length for length in lengths),
    })  # fmt: skip
    for scored, sentence, own, at in zip(found.sentences, sentences, links, range(9), strict=True):
        assert (scored.id, scored.text, scored.frame) == (sentence.id, sentence.text, sentence.frame)
        assert (scored.target, scored.links) == (sentence.target_text, len(own))
        assert scored.before == sum(min(element) < min(target) for element, target in own)
        np.testing.assert_allclose(scored.scores, score(at, own), atol=2e-6)


def planted_scores():
    """Two units of 20 and 30 sentences: of four heads the first is beyond every null model, the second beyond those of
    positions, the others beyond none."""
    chance, parts, scored = np.random.default_rng(0), [], []
    for unit, n in enumerate((20, 30)):
        scores = chance.normal((0.5, 0.4, 0.2, 0.1), 0.05, (n, 4))
        near = chance.normal((0.3, 0.3, 0.3, 0.1), 0.01, (199, 4)) * n
        far = chance.normal((0.2, 0.2, 0.2, 0.1), 0.01, (199, 4)) * n
        parts.append(
            Draws(
                n,
                199,
                2,
                2,
                False,
                {"previous": np.arange(4) + unit, "next": 2.0 * np.arange(4), "first": np.ones(4)},
                10 + unit,
                5,
                7,
                packed(near),
                packed(far),
                np.array([9.0, 1, 1, 1]),
                packed(far),
                np.array([9, 9.0, 9, 1]),
                packed(far),
                {"previous": 4.0, "uniform": 2.0},
                chance.normal((1, 1, 1, 0), 0.1, (n, 4)),
            )
        )
        scored += [
            FrameSentence(
                id=f"{unit}-{k}", text="t", frame="f", target="w", elements=["e"], before=k % 2, links=2,
                scores=row.tolist(),
            )
            for k, row in enumerate(scores)
        ]  # fmt: skip
    return Scores(tuple(scored), tuple(parts))


def test_heads_have_a_p_for_each_null_model_and_the_summary_adds_up_units():
    texts = ["The cook was getting angry.", "A dog was getting angry."]
    lines = [json.dumps({"text": text, "target": [text.index("angry"), text.index("angry") + 5],
                         "elements": [{"name": "E", "spans": [0, text.index(" was")]}]}) for text in texts]  # fmt: skip
    asked = options(rows="\n".join([*lines, "nothing"]), filter=False, direction="target_to_element", pairing="zip")
    merged = planted_scores()
    summary, *others = STUDY.results(asked, merged)
    heads, sentences = others[:4], others[4:]
    assert [one.name for one in heads] == ["L1H1", "L1H2", "L2H1", "L2H2"]  # by weight
    scores = np.array([one.scores for one in merged.sentences])
    nulls = {}
    for name, sums in {"distance": scores.sum(0), "exchange": scores.sum(0), "query": [18, 2, 2, 2],
                       "share": [18, 18, 18, 2]}.items():  # fmt: skip
        drawn = sum(unpacked(getattr(part, name), 199) for part in merged.draws)
        nulls[name] = (1 + (drawn >= np.array(sums) - 1e-9).sum(0)) / 200
    for name in ("query", "share"):
        nulls[name][3] = max(nulls[name][3], heads[3].p_contrast)
    largest = np.max(list(nulls.values()), axis=0)
    at_places = np.maximum(nulls["distance"], nulls["exchange"])
    q, q_places = stats.false_discovery_control(largest), stats.false_discovery_control(at_places)
    for k, head in enumerate(heads):
        assert (head.statistic, head.feature, head.n) == ("frames", "target_to_element", 50)
        assert head.value == pytest.approx(scores[:, k].mean())
        reach = stats.t.ppf(0.975, 49) * stats.sem(scores[:, k])
        assert (head.value - head.low, head.high - head.value) == pytest.approx((reach, reach), rel=0.2)
        for column, name in (("baseline", "distance"), ("exchanged", "exchange")):
            drawn = sum(unpacked(getattr(part, name), 199) for part in merged.draws)
            assert getattr(head, column) == pytest.approx(drawn[:, k].mean() / 50)
        for name, p in nulls.items():
            assert getattr(head, f"p_{name}") == pytest.approx(p[k]), (head.name, name)
        assert (head.p, head.q, head.q_places) == pytest.approx((largest[k], q[k], q_places[k]))
        assert (head.survives, head.beats_places, head.above_99) == (k == 0, k < 2, k == 0)
        assert (head.to_previous, head.to_next, head.to_first) == pytest.approx(((2 * k + 1) / 50, 4 * k / 50, 2 / 50))
        drawn = sum(unpacked(part.query, 199) for part in merged.draws)[:, k].mean()
        assert head.excess == pytest.approx(([18, 2, 2, 2][k] - drawn) / 50)
        contrasts = np.concatenate([part.contrasts for part in merged.draws])[:, k]
        assert head.contrast == pytest.approx(contrasts.mean())
        assert (head.p_contrast < 1e-6) == (k < 3)
    assert (summary.survivors, summary.beat_places, summary.above_99) == (["L1H1"], ["L1H1", "L1H2"], 1)
    assert summary.line_99 == pytest.approx(np.quantile(scores.mean(0), 0.99))
    assert (summary.n, summary.layers, summary.heads, summary.draws, summary.causal) == (50, 2, 2, 199, False)
    assert (summary.links, summary.links_before) == (100, 25)
    assert (summary.movable, summary.exchangeable, summary.comparable) == (21, 10, 14)
    assert summary.mean == pytest.approx(scores.mean())
    assert summary.fixed == pytest.approx({"previous": 8 / 50, "uniform": 4 / 50})
    assert (summary.read, summary.kept, summary.dropped, summary.skipped) == (2, 2, {}, 1)
    assert (summary.direction, summary.pairing, summary.average) == ("target_to_element", "zip", "sentences")
    assert [one.id for one in sentences] == [one.id for one in merged.sentences]
    assert sentences[3].scores == scores[3].tolist()
    rows = STUDY.summarize(asked, [merged])
    said = STUDY.headline(rows)
    assert figures(said.sentence) == figures(
        "A head attends to frame elements if its attention weight is significantly above all four baselines. 1 of 4 "
        "heads meet this condition: L1H1."
    )
    assert (said.n, said.of) == (50, "sentences")
    assert f"at the same distance is {heads[0].baseline:.2f}." in said.baseline
    table, read, *tested = STUDY.shown(rows)
    assert [(row["name"], row["value"], row["survives"], row["beats_places"]) for row in table] == [
        (head.name, head.value, head.survives, head.beats_places) for head in heads
    ]
    assert figures(read) == ["1", "2", "2"]
    assert [[figure for figure in figures(text) if figure[0] == "L"] for text in tested] == [
        ["L1H1"], ["L1H1", "L1H2"],
    ]  # fmt: skip
    (line,) = STUDY.warnings(rows)
    assert "3" in line
    earlier = Scores(merged.sentences, tuple(Draws(**{**part.__dict__, "contrasts": None}) for part in merged.draws))
    assert {(one.contrast, one.p_contrast) for one in STUDY.results(asked, earlier)[1:5]} == {(None, None)}


@pytest.mark.thorough
def test_every_head_has_its_interval_nulls_and_verdict(encoder):
    summary, *others = rows_of(encoder, options())
    heads = [row for row in others if row["kind"] == "head"]
    assert len(heads) == 36
    assert heads == sorted(heads, key=lambda row: -row["value"])
    assert all(row["low"] <= row["value"] <= row["high"] and 0 < row["p"] <= row["q"] <= 1 for row in heads)
    assert summary["above_99"] == 1, "99 % of 36 heads always leaves one"
    assert summary["n"] == 24
    assert set(summary["fixed"]) == {"previous", "next", "first", "uniform"}
    assert summary["fixed"]["previous"] == 0, "the paper's filter leaves no neighbours"


@pytest.mark.thorough
def test_a_planted_head_survives_and_a_first_word_head_and_a_random_one_do_not(encoder, monkeypatch):
    """A hand-built model in the place of the run: head L1H1 looks from each target to its element, L1H2 at the first
    word, the others at random."""
    asked = options(direction="target_to_element", draws=1999)
    sentences = chosen(asked)[0].kept
    known = {encoder.encode(one.text).ids: links_in_pieces(encoder.encode(one.text), one) for one in sentences}

    def run(checkpoint, encodings, observers):
        chance = np.random.default_rng(0)
        for number, encoding in enumerate(encodings):
            raw = 0.02 + 0.02 * chance.random((6, 6, len(encoding), len(encoding)))
            for element, target in known[encoding.ids]:
                raw[0, 0, target[0], element[0]] += 0.2
            raw[0, 1, :, 1] += 2.0
            maps = (raw / raw.sum(-1, keepdims=True)).astype("float32")
            for layer in range(6):
                for observer in observers:
                    observer.update(layer, torch.from_numpy(maps[layer][None]), [number])

    monkeypatch.setattr("core.capture.running.run", run)
    summary, *_ = rows_of(encoder, asked, sentences)
    assert summary["survivors"] == summary["beat_places"] == ["L1H1"]
    assert summary["comparable"] == summary["n"]


@pytest.mark.thorough
def test_a_head_that_any_word_looks_along_beats_the_place_nulls_alone(encoder, monkeypatch):
    """L1H1 attends to the target's pieces from every query: the target is looked at, the element has no part in it."""
    asked = options(direction="element_to_target", draws=999)
    sentences = chosen(asked)[0].kept
    known = {encoder.encode(one.text).ids: links_in_pieces(encoder.encode(one.text), one) for one in sentences}

    def run(checkpoint, encodings, observers):
        chance = np.random.default_rng(0)
        for number, encoding in enumerate(encodings):
            raw = 0.02 + 0.02 * chance.random((6, 6, len(encoding), len(encoding)))
            for _, target in known[encoding.ids]:
                raw[0, 0][:, list(target)] += 0.3
            maps = (raw / raw.sum(-1, keepdims=True)).astype("float32")
            for layer in range(6):
                for observer in observers:
                    observer.update(layer, torch.from_numpy(maps[layer][None]), [number])

    monkeypatch.setattr("core.capture.running.run", run)
    summary, *_ = rows_of(encoder, asked, sentences)
    assert (summary["beat_places"], summary["survivors"]) == (["L1H1"], [])


def test_an_element_that_occurs_twice_is_placed_by_its_characters(encoder):
    text = "The dog knew that the other dog was getting angry."
    line = '{"text": "%s", "target": [44, 49], "elements": [{"name": "Experiencer", "spans": [%d, %d]}]}'
    first, second = (parse_sentences(line % (text, *span)).sentences[0] for span in ((4, 7), (28, 31)))
    encoding = encoder.encode(text)
    places = [links_in_pieces(encoding, one)[0][0] for one in (first, second)]
    assert places[0] != places[1]
    assert max(places[0]) < min(places[1])


@pytest.mark.thorough
def test_a_decoder_scores_only_what_it_can_see(decoder):
    asked = options(direction="element_to_target")
    summary, *others = rows_of(decoder, asked)
    sentences = [row for row in others if row["kind"] == "sentence"]
    assert 0 < summary["n"] < 24
    assert all(row["before"] < row["links"] for row in sentences), "an element before its target sees no target"
    both = rows_of(decoder, options(direction="later_to_earlier"))
    assert both[0]["n"] == 24
    heads = [row for row in both if row["kind"] == "head"]
    assert all(row["p_share"] >= row["p_contrast"] > 0 and np.isfinite(row["contrast"]) for row in heads)


def test_nothing_to_see_is_said(decoder):
    line = '{"text": "The cook was getting angry.", "target": [21, 26], "elements": [{"name": "E", "spans": [0, 8]}]}'
    asked = options(rows=line)
    with pytest.raises(InputError, match="later_to_earlier"):
        STUDY.summarize(asked, [score_sentences(decoder, chosen(asked)[0].kept, asked)])


@pytest.mark.thorough
def test_units_cover_every_sentence_once_and_add_up(encoder, monkeypatch):
    monkeypatch.setattr(frame_heads, "SENTENCES_A_UNIT", 50)
    asked = options()
    units = STUDY.units(asked)
    assert len(units) == 3
    kept = chosen(asked)[0].kept
    assert sorted(k for unit in units for k in unit.arguments.positions) == list(range(len(kept)))
    partials = [score_sentences(encoder, [kept[k] for k in unit.arguments.positions], asked) for unit in units]
    summary, *others = STUDY.summarize(asked, partials)
    scores = np.array([row["scores"] for row in others if row["kind"] == "sentence"])
    assert summary["n"] == len(kept) == len(scores)
    best = others[0]
    assert best["value"] == pytest.approx(scores.mean(0)[best["layer"] * 6 + best["head"]])


@pytest.mark.thorough
def test_averaging_over_links_counts_each_link(encoder):
    sentences = chosen(options())[0].kept[:24]
    links = sum(len(links_of(one)) for one in sentences)
    assert rows_of(encoder, options(average="links"))[0]["n"] == links > 24


@pytest.mark.thorough
def test_leaving_out_position_0_raises_every_mean(encoder):
    usual, without = (rows_of(encoder, options(without_first=on))[0]["mean"] for on in (False, True))
    assert without > usual


def test_draws_travel_as_text():
    values = np.random.default_rng(0).random((7, 4)).astype("float32")
    np.testing.assert_array_equal(unpacked(packed(values), 7), values)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"direction": "sideways"}, "sideways"),
        ({"average": "tokens"}, "over"),
        ({"draws": 0}, "at least one random draw"),
        ({"longest_sentence": 2}, "Relax the filter"),
        ({"sentences": "/no/such.jsonl"}, "must be a readable"),
        ({"core": "coreness"}, "The rule for core elements"),
    ],
)
def test_bad_options_are_refused_before_anything_runs(changed, said):
    with pytest.raises(InputError, match=said):
        STUDY.units(options(**changed))


def test_rows_given_as_text_are_used(encoder):
    some = write_sentences(chosen(options())[0].kept[:3])
    assert [one.id for one in chosen(options(rows=some))[0].kept] == ["s001", "s002", "s003"]


@pytest.mark.thorough
def test_a_unit_scores_its_own_sentences_and_says_which(encoder):
    asked = options(draws=9)
    kept = chosen(asked)[0].kept
    done = STUDY.run(asked, Unit("some", ExampleUnit((5, 2))))
    assert done.provenance.row_ids == (kept[5].id, kept[2].id)
    assert done.provenance.weights_hash == encoder.weights_hash
    assert [scored.id for scored in done.partial.sentences] == [kept[5].id, kept[2].id]
    direct = score_sentences(encoder, [kept[5]], asked).sentences[0]
    np.testing.assert_allclose(done.partial.sentences[0].scores, direct.scores, atol=1e-5)


def test_sums_of_long_inputs_lose_the_sink_as_whole_maps_do():
    chance = np.random.default_rng(4)
    maps = [chance.dirichlet(np.ones(5), (2, 5)) for _ in range(3)]
    maps[0][1, 2] = [1, 0, 0, 0, 0]  # a query that looks at the sink only
    cells = [np.array([[2, 0], [2, 1], [3, 0], [4, 4]]), None, np.array([[1, 3], [0, 2]])]
    seen, blocks = [], []

    class Observer:
        def needs(self, inputs, queries, keys):
            reduce = [None, None, lambda head, start, weights: blocks.append(weights)]
            return [Needs(cells=of, blocks=reducer) for of, reducer in zip(cells, reduce, strict=True)]

        def update_sums(self, layer, sums, inputs):
            seen.append((layer, [found.cells for found in sums], inputs))

    observer, none = frame_heads.Sinkless(Observer()), np.zeros(0)
    asked = observer.needs([5, 6, 7], 5, 5)
    at = [np.zeros((0, 2), dtype=int) if of is None else of for of in cells]
    sums = [
        MapSums(none, none, none, none, weights @ needs.values, none, weights[:, of[:, 0], of[:, 1]])
        for weights, needs, of in zip(maps, asked, at, strict=True)
    ]
    observer.update_sums(3, sums, [5, 6, 7])
    ((layer, found, inputs),) = seen
    assert (layer, inputs) == (3, [5, 6, 7])
    expected = [weights[:, :, 1:] / np.maximum(weights[:, :, 1:].sum(-1, keepdims=True), 1e-9) for weights in maps]
    expected = [np.pad(weights, ((0, 0), (0, 0), (1, 0))) for weights in expected]
    expected[0][1, 2] = maps[0][1, 2]
    for got, weights, of in zip(found, expected, at, strict=True):
        np.testing.assert_allclose(got, weights[:, of[:, 0], of[:, 1]], rtol=1e-5)
    assert [needs.blocks is None for needs in asked] == [True, True, False]
    asked[2].blocks(0, 0, torch.tensor(maps[2][0]))
    np.testing.assert_allclose(blocks[0], expected[2][0], rtol=1e-5)
