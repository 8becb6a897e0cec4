"""The study over sentences: a planted head survives, the numbers are those of loops, units add up."""

import numpy as np
import pytest
import torch

from core import config
from core.errors import InputError
from core.frames.records import links_of
from core.frames.rows import parse_rows, write_rows
from core.models.opening import open_checkpoint
from core.studies.contract import Unit
from core.studies.frames import frame_heads
from core.studies.frames.frame_heads import STUDY, chosen, score_sentences
from core.studies.frames.frame_partials import links_in_pieces, packed, positions, unpacked
from core.studies.units import ExampleUnit

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
    from core.capture.running import capture

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
    first, second = (parse_rows(line % (text, *span)).sentences[0] for span in ((4, 7), (28, 31)))
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
    some = write_rows(chosen(options())[0].kept[:3])
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
