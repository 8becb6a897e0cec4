"""The study of layer probes on the bundled encoder, small."""

import numpy as np
import pytest
import torch
from scipy import stats

from core import config
from core.errors import InputError
from core.models.opening import open_checkpoint
from core.probing import layers
from core.probing.layers import Examples
from core.studies.probing import probe
from core.studies.probing.probe import PROPERTIES, STUDY, Answered, Mixed, Probed, WordProperty, word_property
from core.tasks.conllu import read_part
from tests.studies.figures import figures
from tests.studies.through_json import rows_of

pytestmark = pytest.mark.skipif(
    not (config.BUNDLED_MODELS / "atlas-encoder").is_dir(), reason="the encoder is not in data/models"
)


@pytest.fixture(autouse=True)
def features(tmp_path, monkeypatch):
    torch.set_num_threads(1)
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    monkeypatch.setattr(layers, "LEAST_STEPS", 25)
    monkeypatch.setattr(layers, "REFITS", 2)
    monkeypatch.setattr(probe, "SIZES", {"train": 100, "agree": 30, "part": 40})


@pytest.mark.thorough
def test_every_probe_stands_beside_its_control_and_random_weights():
    asked = ["part of speech", "main auxiliary"]
    rows = rows_of("probe", {"checkpoint": "atlas-encoder", "limit": 60, "properties": asked})
    probes = [row for row in rows if row["kind"] == "probe"]
    names = ["part of speech", "main auxiliary", "main auxiliary, rules part"]
    assert {row["property"] for row in probes} == set(names)
    assert len(probes) == 3 * 2 * 7  # properties, probes, layers and the embeddings
    for row in probes:
        assert row["low"] <= row["value"] <= row["high"]
        assert row["selectivity"] == pytest.approx(row["value"] - row["control"])
        assert row["gain"] == pytest.approx(row["value"] - row["random_weights"])
    parted = [row for row in probes if "linear_rule" in row]
    assert {row["linear_rule"] for row in parted} == {0.0}
    tags = [row for row in probes if row["property"] == "part of speech" and row["probe"] == "linear"]
    assert max(row["value"] for row in tags) > tags[0]["majority"] + 0.2
    mixing = [row for row in rows if row["kind"] == "mixing" and row["property"] == "part of speech"]
    assert sum(row["value"] for row in mixing) == pytest.approx(1)
    (centre,) = [row for row in rows if row["kind"] == "centre" and row["property"] == "part of speech"]
    assert centre["value"] == pytest.approx(sum(row["layer"] * row["value"] for row in mixing))
    assert centre["low"] <= centre["value"] <= centre["high"]


def test_one_class_is_refused_by_name(tmp_path):
    line = "1\tdogs\t_\tNOUN\tNNS\t_\t2\tnsubj\t_\t_\n2\tcats\t_\tNOUN\tNNS\t_\t0\troot\t_\t_\n"
    for part in ("train", "dev", "test"):
        (tmp_path / f"own-{part}.conllu").write_text(line)
    given = {"checkpoint": "atlas-encoder", "treebank": str(tmp_path), "properties": ["part of speech"]}
    with pytest.raises(InputError, match="all words of train have the same part of speech, 'NOUN'"):
        rows_of("probe", given)


def test_an_unknown_property_is_refused():
    with pytest.raises(InputError, match='got "colour"'):
        rows_of("probe", {"checkpoint": "atlas-encoder", "properties": ["colour"]})
    assert len(PROPERTIES) == len(np.unique(PROPERTIES))


@pytest.mark.parametrize("drawn", [0, 1, 3])
def test_mixing_weights_balance_at_a_layer_with_students_reach_over_samples(drawn):
    weights = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5], [0.5, 0.5, 0.0]])[: 1 + drawn]
    options = STUDY.read({"checkpoint": "x"})
    (*layers_of, centre) = STUDY.results(options, Probed((), (Mixed("word order", weights),)))
    assert [(one.layer, one.value, one.uniform) for one in layers_of] == [(k, weights[0, k], 1 / 3) for k in range(3)]
    assert (centre.value, centre.uniform, centre.n) == (0.75, 1.0, drawn)
    if drawn < 2:
        assert (centre.low, centre.high) == (None, None)
    else:
        reach = stats.t.ppf(0.975, drawn - 1) * np.std([1, 1.25, 0.5], ddof=1)
        assert (centre.low, centre.high) == pytest.approx((0.75 - reach, 0.75 + reach))


def test_places_are_in_the_order_of_words_and_end_with_the_tenth(tmp_path):
    words = ["the", "dog", "saw", "the", "cat", "and", "the", "man", "saw", "the", "old", "house"]
    lines = [
        f"{k}\t{word}\t_\tNOUN\t_\t_\t{max(0, k - 1)}\t{'dep' if k > 1 else 'root'}\t_\t_\n"
        for k, word in enumerate(words, start=1)
    ]
    for part in ("train", "dev", "test"):
        (tmp_path / f"own-{part}.conllu").write_text("".join(lines) + "\n" + "".join(lines[:3]))
    found = word_property(open_checkpoint("atlas-encoder"), "word order", str(tmp_path), None)
    assert found.classes == tuple(str(place) for place in range(1, 11))
    ((_, test),) = found.tests
    assert test.labels.tolist() == [*range(10), *range(3)]
    assert found.train.types[:3] == ("the", "dog", "saw")


# ---------------------------------------------------------------- sentences from templates

TEMPLATED = ("subject number", "main auxiliary")


def words_of(case):
    """The words as they are written; each has the characters that its offsets name."""
    sentence = case.sentence
    written = [sentence.text[word.start : word.end] for word in sentence.words]
    assert [word.lower() for word in written] == [word.text for word in sentence.words]
    assert figures(sentence.text) == figures(" ".join(written[:-1]) + ".")
    assert written[0][0].isupper()
    return written


@pytest.mark.parametrize("split", ["train", "agree", "part"])
def test_the_number_of_a_subject_is_that_of_the_nearest_noun_but_in_the_parting_split(split):
    cases, between, plural = probe.diagnostics("subject number", split, seed=3), 0, 0
    for case in cases:
        words, ((verb, label),) = words_of(case), case.read
        assert words[verb] in ["smiled", "slept", "waited", "laughed", "arrived", "danced", "shouted", "stopped"]
        assert verb in (2, 5)
        between, plural = between + (verb == 5), plural + label
        is_plural, nearest = words[1].endswith("s"), words[verb - 1].endswith("s")
        assert label == is_plural
        assert probe.linear_rule("subject number", case.sentence, verb) == nearest
        assert (is_plural == nearest) == (split != "part")
        assert verb == 2 or words[1].rstrip("s") != words[4].rstrip("s")
    assert 0.25 < plural / len(cases) < 0.75
    assert between == len(cases) if split == "part" else 0.5 < between / len(cases) < 0.95


@pytest.mark.parametrize("split", ["train", "agree", "part"])
def test_the_main_auxiliary_is_the_first_one_but_in_the_parting_split(split):
    cases, moved = probe.diagnostics("main auxiliary", split, seed=3), 0
    auxiliaries = {"can", "will", "could", "would", "should", "might"}
    for case in cases:
        words = words_of(case)
        places = [k for k, word in enumerate(words) if word in auxiliaries]
        assert sorted(place for place, _ in case.read) == places
        that = words.index("that")
        for place, is_main in case.read:
            assert is_main == (place != that + 1)  # the relative clause is the subject's, which it follows
            first = place == places[0]
            assert probe.linear_rule("main auxiliary", case.sentence, place) == first
            assert (first == is_main) == (split != "part")
        moved += words[0].lower() in ("today", "quietly", "again", "outside")
        assert words[places[0]] != words[places[1]]
    assert 0.25 < moved / len(cases) < 0.75  # so that the index alone tells nothing


@pytest.mark.parametrize("task", TEMPLATED)
def test_no_sentence_of_a_template_is_in_two_splits_and_a_seed_draws_its_own(task):
    splits = {split: [case.sentence.text for case in probe.diagnostics(task, split)] for split in probe.SIZES}
    assert {split: len(texts) for split, texts in splits.items()} == probe.SIZES
    every = [text for texts in splits.values() for text in texts]
    assert len(set(every)) == len(every)
    assert splits["part"] == [case.sentence.text for case in probe.diagnostics(task, "part")]
    assert splits["part"] != [case.sentence.text for case in probe.diagnostics(task, "part", seed=1)]
    with pytest.raises(ValueError, match="got 'dev'"):
        probe.diagnostics(task, "dev")


# ---------------------------------------------------------------- answers


def examples(types, groups, vocabulary):
    """Layer 0 says nothing; layer 1 says which word type it is. The labels are those of the word types."""
    at = [sorted(vocabulary).index(word) for word in types]
    vectors = np.zeros((len(types), 2, len(vocabulary)), dtype=np.float16)
    vectors[range(len(types)), 1, at] = 1
    labels = np.array([vocabulary[word] for word in types])
    return Examples(vectors, np.arange(len(types)), labels, np.array(groups), tuple(types))


def test_answers_are_counted_by_layer_and_sentence_beside_control_majority_and_the_word_alone(monkeypatch):
    monkeypatch.setattr(layers, "LEAST_STEPS", 150)
    vocabulary = {"a": 0, "b": 1, "c": 1, "d": 2, "e": 1}
    train = examples([*"abcd" * 10, *"bc" * 5], np.arange(50) // 5, vocabulary)
    test = examples([*"abbd", *"cca", *"eedab"], [0] * 4 + [1] * 3 + [2] * 5, vocabulary)
    parted = examples([*"dab", *"da"], [0, 0, 0, 1, 1], vocabulary)
    question = WordProperty("tag", ("x", "y", "z"), train, (("tag", test), ("tag, parted", parted)), 0.25)
    found = probe.answers(question, "trained", seed=2)
    assert [(one.property, one.probe) for one in found] == [
        (name, kind) for kind in ("linear", "one hidden layer") for name in ("tag", "tag, parted")
    ]
    control = layers.control_labels(train, [test, parted], seed=2)
    commonest = int(np.bincount(control[0]).argmax())
    for one in found:
        own, labels = (test, control[1]) if one.property == "tag" else (parted, control[2])
        known = [word != "e" for word in own.types]  # of a word type that was never seen, the vector tells nothing
        assert one.words.tolist() == np.bincount(own.groups).tolist()
        assert (one.classes, one.source) == (3, "trained")
        assert one.right.shape == one.control.shape == (2, own.groups.max() + 1)
        for group in range(own.groups.max() + 1):
            inside = own.groups == group
            assert one.right[0, group] == (own.labels[inside] == 1).sum()
            assert one.control[0, group] == (labels[inside] == commonest).sum()
            if all(np.array(known)[inside]):
                assert one.right[1, group] == one.control[1, group] == inside.sum()
        assert one.majority == pytest.approx(np.mean(own.labels == 1))
        assert one.alone == 1  # "e" has the most frequent label
        assert one.linear == (None if one.property == "tag" else 0.25)


def test_a_layer_is_compared_with_its_control_and_random_weights_sentence_by_sentence():
    words = np.array([2, 3, 4, 1])

    def answered(source, right, control, probe="linear", **others):
        return Answered("tag", source, probe, np.array(right), np.array(control), words, 5, 0.3, 0.6, **others)

    trained = answered("trained", [[0, 1, 2, 0], [2, 3, 4, 1]], [[0, 1, 2, 0], [1, 1, 0, 1]], linear=0.2)
    fresh = answered("random", [[0, 0, 1, 0], [1, 1, 3, 1]], [[0] * 4] * 2)
    other = answered("random", [[2, 3, 4, 1]] * 2, [[0] * 4] * 2, probe="one hidden layer")
    first, second = STUDY.results(STUDY.read({"checkpoint": "x"}), Probed((other, trained, fresh), ()))
    assert [(one.name, one.layer, one.n) for one in (first, second)] == [
        ("tag, layer 0", 0, 10),
        ("tag, layer 1", 1, 10),
    ]
    assert (first.value, first.control, first.selectivity) == pytest.approx((0.3, 0.3, 0))
    assert (first.selectivity_low, first.selectivity_high) == (0, 0)  # equal in every sentence
    assert (second.value, second.low, second.high, second.control, second.selectivity) == pytest.approx(
        (1, 1, 1, 0.3, 0.7)
    )
    assert 0 <= second.selectivity_low < 0.7 < second.selectivity_high <= 1
    assert (first.random_weights, first.gain) == pytest.approx((0.1, 0.2))
    assert (second.random_weights, second.gain) == pytest.approx((0.6, 0.4))
    for one in (first, second):
        assert 0 <= one.gain_low < one.gain < one.gain_high < 0.7
        assert (one.word_alone, one.majority, one.classes, one.linear_rule) == (0.6, 0.3, 5, 0.2)
    (alone, _) = STUDY.results(STUDY.read({"checkpoint": "x"}), Probed((trained, other), ()))
    assert (alone.random_weights, alone.gain, alone.gain_low) == (None, None, None)
    said = STUDY.headline([one.as_row() for one in (first, second)])
    assert figures(said.sentence) == figures(
        "Among 2 combinations of property and layer, the probe for tag in layer 1 exceeds its control task most. "
        "Its accuracy is 1.00, compared with 0.30 in the control task."
    )


def test_units_have_the_words_of_their_property_and_name_the_weights(tmp_path):
    line = "1\tdogs\t_\tNOUN\tNNS\t_\t2\tnsubj\t_\t_\n2\trun\t_\tVERB\tVB\t_\t0\troot\t_\t_\n"
    for part, count in (("train", 3), ("dev", 9), ("test", 2)):
        (tmp_path / f"own-{part}.conllu").write_text("\n".join([line] * count))
    asked = ["word order", "subject number", "word order"]
    units = STUDY.units(STUDY.read({"checkpoint": "x", "treebank": str(tmp_path), "properties": asked}))
    assert [(unit.key, unit.arguments.name, unit.arguments.source, unit.size) for unit in units] == [
        (f"{source}|{name}", name, source, size)
        for name, size in (("word order", 10), ("subject number", 6000))
        for source in ("trained", "random")
    ]
    few = STUDY.read({"checkpoint": "x", "treebank": str(tmp_path), "properties": asked[:1], "limit": 1})
    assert STUDY.units(few)[0].size == 4
    sentence = read_part(str(tmp_path), "test", None).sentences[0]
    labels = {name: probe._labels(name, sentence) for name in PROPERTIES[:3]}
    assert labels == {
        "part of speech": [(0, "NOUN"), (1, "VERB")],
        "dependency relation": [(0, "nsubj"), (1, "root")],
        "word order": [(0, "1"), (1, "2")],
    }
