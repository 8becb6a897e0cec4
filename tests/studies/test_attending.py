"""Studies of what heads attend to: pieces merge to the whole, words meet pieces by characters, one pass feeds all."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from core.capture.running import capture
from core.errors import CheckpointError, InputError
from core.jobs import worker
from core.models.encoding import Encoding
from core.scoring.intervals import Means
from core.scoring.link_batches import WordTable
from core.studies import worker_cache
from core.studies.attention import (
    attending,
    budget,
    dependencies,
    effective,
    features,
    inputs,
    measures,
    relations,
    statistics,
)
from core.studies.attention.measures import FeatureFinder, Prepared, observe, special_positions
from core.studies.attention.partials import InputOffset
from core.studies.attention.records import DependencyScore
from core.studies.contract import ChunkUnit, Unit
from core.studies.lookup import find_study
from core.studies.tagging import open_pipeline
from core.studies.transport import decode, encode
from core.tasks.features import TaggedSentence, TaggedWord, feature_of
from tests.capture.conftest import tiny
from tests.studies.through_json import rows_of

PAIRS = [
    ["the old dog never stopped", "did the dog hear it ?"],
    ["She saw the man; he didn't see her.", ""],
    ["nobody in the village heard it stop , did they ?", "the old engine ran all night"],
]
ODD = ["ﬁne words", "a\u200bb c", "👍🏽 fine", "isn't", "שלום עולם", "x"]
MEASURED = {
    "budget": budget,
    "features": features,
    "relations": relations,
    "statistics": statistics,
    "effective": effective,
}


@pytest.fixture(scope="module")
def pipeline():
    return open_pipeline()


@pytest.fixture(scope="module", params=["bert", "gpt2"])
def checkpoint(request):
    return tiny(request.param)


def _options(module, texts, **changes):
    return module.STUDY.read({"texts": texts} | changes)


def _now(name, checkpoint, pipeline, texts, **changes):
    study = MEASURED[name].STUDY
    return study.measured_now(study.read({"texts": texts} | changes), checkpoint, lambda _: pipeline)


@pytest.mark.thorough
@pytest.mark.parametrize("name", MEASURED)
def test_rows_fit_in_json_and_say_what_was_not_found(checkpoint, pipeline, name):
    rows = _now(name, checkpoint, pipeline, PAIRS)
    assert json.loads(json.dumps(rows)) == rows or any(value != value for row in rows for value in row.values())
    heads = [row for row in rows if "layer" in row]
    assert {(row["layer"], row["head"]) for row in heads} == set(np.ndindex(3, 4))
    for row in rows:
        assert "note" not in row or (row["n"] == 0 and "value" not in row)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "asked"),
    [("budget", {}), ("budget", {"parts_of_speech": True}), ("features", {}), ("relations", {}), ("statistics", {})],
)
def test_pieces_of_the_work_merge_to_one_pass(monkeypatch, checkpoint, pipeline, name, asked):
    module = MEASURED[name]
    monkeypatch.setattr(worker_cache, "get_checkpoint", lambda *_, **__: checkpoint)
    monkeypatch.setattr(worker_cache, "pipeline", lambda *_: pipeline)
    options = _options(module, PAIRS, checkpoint="tiny", **asked)
    found = {}
    for cuts in ([(0, 3)], [(2, 3), (0, 2)]):
        partials = []
        for start, stop in cuts:
            done = module.STUDY.run(options, Unit("", ChunkUnit("tiny", inputs.PASTED, start, stop)))
            partials.append(decode(module.STUDY.partial, json.loads(json.dumps(encode(done.partial)))))
        found[len(cuts)] = module.STUDY.summarize(options, partials)
    assert len(found[1]) == len(found[2]) > 0
    for one, two in zip(found[1], found[2], strict=True):
        for key in ("statistic", "layer", "head", "n", "value", "low"):
            assert one.get(key) == pytest.approx(two.get(key), abs=1e-5, nan_ok=True)


def test_the_budget_of_a_part_of_speech_adds_up_to_one_and_needs_a_pipeline(checkpoint, pipeline):
    rows = _now(
        "budget", checkpoint, pipeline, ["The old dog saw her cat and the small bird ."] * 10, parts_of_speech=True
    )
    nouns = [
        row["value"] for row in rows if row["statistic"] == "budget of nouns" and (row["layer"], row["head"]) == (1, 2)
    ]
    assert sum(nouns) == pytest.approx(1)
    apart = [row for row in rows if row["statistic"] == "distance of a part of speech"]
    assert {"nouns", "adjectives and adverbs"} <= {row["feature"] for row in apart}
    assert all(0 < row["p"] <= 1 and 0 <= row["value"] <= 1 for row in apart)
    with pytest.raises(InputError, match="need a language pipeline"):
        budget.STUDY.measure(_options(budget, PAIRS, parts_of_speech=True, pipeline="none"), checkpoint)


@pytest.mark.thorough
def test_texts_that_are_split_differently_keep_every_measure_defined(checkpoint, pipeline):
    for text in ODD:
        for name in MEASURED:
            rows = _now(name, checkpoint, pipeline, [text])
            assert rows, (text, name)


def test_features_are_found_by_characters_and_not_by_spelling(pipeline):
    """Both "her"s of another text would match by string; only the tagged one's pieces are marked."""
    checkpoint = tiny("bert")
    text = "her dog saw her"
    encoding = checkpoint.encode(text)
    words = [TaggedWord("her", 12, 15, "PRP", "PRON", "obj", 2)]
    words += [TaggedWord("dog", 4, 7, "NN", "NOUN", "nsubj", 2), TaggedWord("saw", 8, 11, "VBD", "VERB", "root", 2)]
    one = Prepared(0, encoding, (TaggedSentence(text, tuple(words)),))
    features = [feature_of(name) for name in ("pronoun", "start", "separator", "first")]
    marks = FeatureFinder(features).find(one).carried
    assert set(np.flatnonzero(marks[0])) == set(encoding.pieces(12, 15))
    assert list(np.flatnonzero(marks[1])) == [0]
    assert list(np.flatnonzero(marks[2])) == [len(encoding) - 1]
    assert list(np.flatnonzero(marks[3])) == [1]


def test_a_piece_that_spans_two_words_joins_them_and_its_inner_links_are_left_out():
    checkpoint = tiny("bert")
    encoding = checkpoint.encode("did they ?")
    whole = encoding.offsets[1]  # "did" may be one piece or several; words that cut into it are joined
    spans = [[(0, 1), (1, 3), (4, 8)]]
    found = measures.linked_words(encoding, spans, [[((0, 0), (0, 1)), ((0, 2), (0, 0))]])
    pieces = [position for word in found.words for position in word]
    assert sorted(pieces) == list(range(len(encoding)))
    if whole == (0, 3):
        assert [len(some) for some in found.links] == [1]
    assert all(a != b for some in found.links for a, b in some)


def test_equal_words_are_known_across_case_and_sentences():
    checkpoint = tiny("bert")
    encoding = checkpoint.encode("the dog saw", "A dog saw The")
    spans = [[(0, 3), (4, 7), (8, 11)], [(0, 1), (2, 5), (6, 9), (10, 13)]]
    found = measures.linked_words(encoding, spans, [[]])
    numbers = np.arange(len(found.words))
    equal = np.argwhere(np.triu(WordTable([found]).alike(np.array(0), numbers[:, None], numbers)))
    texts = [
        [
            (encoding.pair if encoding.sentence[word[0]] else encoding.text)[
                encoding.offsets[word[0]][0] : encoding.offsets[word[-1]][1]
            ]
            for word in (found.words[a], found.words[b])
        ]
        for a, b in equal
    ]
    assert sorted(texts) == [["dog", "dog"], ["saw", "saw"], ["the", "The"]]


def test_differences_of_two_checkpoints_are_paired(pipeline):
    options = _options(features, PAIRS, features=["noun"])
    seen = []
    for seed in (0, 1):
        checkpoint = tiny("bert", seed=seed)
        measure = features.STUDY.measure(options, checkpoint)
        observe(checkpoint, pipeline, inputs.sources(options, inputs.PASTED), [measure])
        seen.append(measure.sums(InputOffset(str(seed), inputs.PASTED, 0)))
    left, right = (
        {(score.layer, score.head, score.statistic): score.value for score in features.scores_of(sums)} for sums in seen
    )
    for score in features.difference_scores(*seen):
        key = (score.layer, score.head, score.statistic)
        assert score.value == pytest.approx(left[key] - right[key], abs=1e-9)
        assert score.low <= score.high
        assert np.isnan(score.p)  # of three inputs


@pytest.mark.thorough
@pytest.mark.parametrize(("family", "causal"), [("bert", False), ("gpt2", True)])
def test_the_classifying_token_is_the_first_of_encoders_and_the_last_of_decoders(family, causal):
    checkpoint = tiny(family)
    encoding = checkpoint.encode("the old dog ran .")
    assert measures.classifying(encoding, causal=causal) == (len(encoding) - 1 if causal else 0)
    rows = _now("features", checkpoint, open_pipeline(), ["the old dog ran ."], features=["first"])
    found = {(r["layer"], r["head"]): r["value"] for r in rows if r["statistic"] == "classifying"}
    maps = capture(checkpoint, encoding).weights
    query, key = len(encoding) - 1 if causal else 0, encoding.ordinary[0]
    assert found == {one: pytest.approx(float(maps[(*one, query, key)]), abs=1e-6) for one in np.ndindex(3, 4)}


def test_a_role_of_words_has_no_p_where_its_place_cannot_be_told_from_it():
    """The subject is the only noun of each, so nothing can be compared with it: its n, and no p. A place has one."""
    texts = [
        f"{name} saw her ."
        for name in (
            "dogs",
            "men",
            "cats",
            "boys",
            "girls",
            "birds",
            "cows",
            "pigs",
            "mice",
            "kings",
            "queens",
            "women",
            "horses",
            "teachers",
        )
    ]
    rows = _now("features", tiny("gpt2"), open_pipeline(), texts, features=["subject", "first"])
    of = {name: [row for row in rows if row["feature"] == name] for name in ("subject", "first")}
    assert {row["n"] for row in of["subject"]} == {14}
    assert not np.isfinite([(row["p"], row["q"]) for row in of["subject"]]).any()
    assert np.isfinite([row["p"] for row in of["first"]]).all()


def test_a_typed_line_is_a_sentence_or_a_pair():
    assert inputs.pair_of(" One dog. ") == "One dog."
    assert inputs.pair_of("One dog. | Two dogs.") == ("One dog.", "Two dogs.")
    assert inputs.pair_of("a|b") == "a|b"


@pytest.mark.parametrize(
    ("module", "changes", "says"),
    [
        (features, {"features": ["adverbs"]}, "Choose one"),
        (features, {"features": []}, "At least one token feature"),
        (relations, {"relations": ["coreference"]}, "Choose one"),
        (statistics, {"queries": 0}, "queries of the study statistics must be at least 1; got 0"),
        (features, {"texts": [], "tasks": []}, "At least one task"),
        (
            features,
            {"texts": [], "tasks": ["sst2"], "limit": -1},
            "limit of the study features must be at least 0; got -1",
        ),
        (dependencies, {"treebank": None}, "A treebank folder must have exactly one file"),
    ],
)
def test_wrong_options_are_refused_before_anything_runs(module, changes, says):
    base = {} if module is dependencies else {"texts": ["a b"]}
    with pytest.raises(InputError, match=says):
        module.STUDY.units(module.STUDY.read(base | changes))


def test_token_types_cover_every_position_once():
    encoding = tiny("bert").encode("the old dog , it ran .", "did it ?")
    types = measures.token_types(encoding)
    assert sorted(k for keys in types.values() for k in keys) == list(range(len(encoding)))
    assert types["start"] == (0,)
    assert types["separator"] == encoding.separators
    assert [encoding.tokens[k] for k in types["punctuation"]] == [",", "."]
    marked = tuple({",": "Ġ▁,", ".": "##."}.get(token, token) for token in encoding.tokens)
    types = measures.token_types(replace(encoding, tokens=marked))
    assert [marked[k] for k in types["punctuation"]] == ["Ġ▁,", "##."]


def test_links_of_gold_trees_leave_out_roots_and_punctuation():
    words = [
        TaggedWord("dogs", 0, 4, "NNS", "NOUN", "nsubj:pass", 1),
        TaggedWord("bark", 5, 9, "VBP", "VERB", "root", 1),
        TaggedWord(".", 9, 10, ".", "PUNCT", "punct", 1),
    ]
    assert dependencies.tree_links(dependencies.ALL, words) == [(0, 1)]
    assert dependencies.tree_links("nsubj", words) == [(0, 1)]
    assert dependencies.tree_links("obj", words) == []


CONLLU = """# text = old dogs bark
1\told\told\tADJ\tJJ\t_\t2\tamod\t_\t_
2\tdogs\tdog\tNOUN\tNNS\t_\t3\tnsubj\t_\t_
3\tbark\tbark\tVERB\tVBP\t_\t0\troot\t_\t_
"""


def test_heads_are_chosen_on_dev_and_reported_on_test(tmp_path, monkeypatch):
    """Test differs from dev: its accuracy is of test's one link, whatever dev's was."""
    checkpoint = tiny("bert")
    monkeypatch.setattr(worker_cache, "get_checkpoint", lambda *_, **__: checkpoint)
    (tmp_path / "x-dev.conllu").write_text(CONLLU)
    (tmp_path / "x-test.conllu").write_text(
        CONLLU.replace("old dogs bark", "big men ran")
        .replace("old", "big")
        .replace("dogs", "men")
        .replace("bark", "ran")
    )
    rows = rows_of("dependencies", {"treebank": str(tmp_path), "checkpoint": "atlas-encoder"})
    found = {(row["feature"], row["statistic"]): row for row in rows}
    row = found["amod", "forward"]
    assert row["n"] == 1
    assert row["value"] in (0, 1)
    assert row["dev"] in (0, 1)
    assert [found["amod", way]["chosen"] for way in ("forward", "backward")].count(True) == 1
    assert not found["amod", "backward"]["chosen"] or found["amod", "backward"]["dev"] > row["dev"]
    assert (row["distance"], row["baseline"]) == (1, 1)
    assert found["obj", "forward"]["n"] == 0
    assert "note" in found["obj", "forward"]
    assert found["all", "forward"]["n"] == 2


def test_units_of_a_treebank_are_parts_of_its_first_sentences(tmp_path, monkeypatch):
    monkeypatch.setattr(dependencies, "ROWS_A_UNIT", 2)
    for part, count in (("dev", 5), ("test", 2)):
        (tmp_path / f"x-{part}.conllu").write_text("\n".join([CONLLU] * count))
    given = {"treebank": str(tmp_path), "checkpoint": "atlas-encoder", "limit": 3}
    units = dependencies.STUDY.units(dependencies.STUDY.read(given))
    assert [(unit.key, unit.arguments.start, unit.arguments.stop, unit.size) for unit in units] == [
        ("dev|0", 0, 2, 6), ("dev|2", 2, 3, 3), ("test|0", 0, 2, 6),
    ]  # fmt: skip


def test_an_accuracy_near_1_has_an_interval_up_to_1_and_any_other_number_its_own():
    """Student's interval of 49 links of which 48 are right, worked out by scipy, goes beyond 1."""
    right = np.r_[np.ones(48), 0.0]
    means = Means(1, 1, 1)
    means.update(0, right[:, None, None], np.ones((49, 1)), range(49))
    beyond = stats.t.interval(0.95, 47, right.mean(), stats.sem(right))[1]
    number, share = (attending.ends(means.result(), 0, 0, **most) for most in ({}, {"most": 1.0}))
    assert number[2] >= beyond > 1.0
    assert share == (number[0], number[1], 1.0)


def test_a_stored_accuracy_is_read_with_an_interval_up_to_1():
    stored = DependencyScore(value=0.98, low=0.85, high=1.02)
    assert (stored.estimate.low, stored.estimate.high) == (0.85, 1.0)
    assert DependencyScore(value=0.5, low=0.4, high=0.6).estimate.high == 0.6


def test_the_last_token_is_that_of_the_first_sentence():
    def encoding(sentence, separators):
        zeros, texts = (0,) * len(sentence), ("x",) * len(sentence)
        spans = tuple(None if number is None else (0, 1) for number in sentence)
        return Encoding("a b", None, zeros, zeros, texts, spans, sentence, 0, separators)

    pair = encoding((None, 0, 0, None, 1, 1), (3,))
    assert [list(special_positions(name, pair)) for name in ("last", "first", "start")] == [[2], [1], [0]]
    assert list(special_positions("last", encoding((None,), ()))) == []


def test_units_are_as_large_as_what_they_read():
    """About four letters a token; singular values take smaller chunks, which stay apart."""
    texts = ["x" * 24, ("y" * 20, "z" * 28)] * 40
    given = {"checkpoint": "a", "compare": "b", "texts": texts}
    whole = find_study("statistics").units(find_study("statistics").read(given))
    assert [(unit.key, unit.size) for unit in whole] == [("a|text|0", 720), ("b|text|0", 720)]
    effective = find_study("effective").units(find_study("effective").read(given))
    assert [(unit.key, unit.size) for unit in effective] == [
        (f"{name}|text|{start}", size) for name in "ab" for start, size in ((0, 288), (32, 288), (64, 144))
    ]
    assert [unit.arguments.stop for unit in effective] == [32, 64, 80] * 2


def test_a_missing_second_checkpoint_is_reported_before_the_job_starts():
    for study in ("features", "redundancy"):
        options = find_study(study).read({"compare": "atlas-encoder-sst2"})
        assert find_study(study).checkpoints(options) == ["atlas-encoder", "atlas-encoder-sst2"]
        with pytest.raises(CheckpointError):
            worker.divide(study, {"compare": "./no-such"})


def test_the_headline_of_typed_texts_names_no_task_that_there_is_not():
    study = find_study("effective")
    rows = study.measured_now(study.read({"texts": ["the old dog", ("it ran", "did it stop ?")]}), tiny("bert"), None)
    said = study.headline(rows)
    assert (said.n, said.of) == (2, "inputs")
    assert "r = " in said.interval
