"""What runs say of a hypothesis, from numbers whose answer is known; what criteria keep; which runs are needed."""

import json
import lzma
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy import stats

from core import config
from core.attention import Head
from core.interval import Interval
from core.scoring.budget import BudgetAttention, BudgetTokens
from core.scoring.features import FeatureAttention, mark
from core.scoring.intervals import Means
from core.studies.ablation.operators import Effects
from core.studies.attention.features import STUDY as FEATURES
from core.studies.attention.partials import BudgetSums, FeatureSums, InputOffset, Pieces
from core.studies.hypotheses.hypothesis import RANDOM, Batch, HypothesisOptions, RowChoice, criteria_of, runs_of
from core.studies.hypotheses.predicates import Hypothesis, checked
from core.studies.hypotheses.readings import Reading, evidence_of
from core.studies.merging import merged
from core.studies.transport import decode, encode
from tests.studies.test_earlier_rows import FILE
from tests.studies.test_hypothesis_predicates import classed

FIRST, SECOND = Head(0, 0), Head(1, 0)
ROWS = RowChoice("sst2", "train", 30), RowChoice("sst2", "dev", 30)


def said(predicate, head=FIRST, **parameters):
    return Hypothesis("h", *head[:2], predicate, checked(predicate, parameters))


def told(hypothesis, partial):
    return evidence_of(hypothesis, partial, hypothesis.subject)


# ---------------------------------------------------------------- a component of the scores

NAMES = (("pair", "token", "token"), ("sort", "token"), ("sort", "position"))


def part(layer, model, weighting, token, position, names=NAMES):
    """Shares of both heads of a layer, 1/8 either way; p is half of what is beyond one."""
    value = np.array([[0.0, a, b] for a, b in zip(token, position, strict=True)])
    low, high = value - 0.125, value + 0.125
    ratios = SimpleNamespace(value=value, low=low, high=high, n=7, p_above=lambda least: (1 - value + least) / 2)
    return SimpleNamespace(
        layer=layer, model=model, weighting=weighting, names=names, moments=SimpleNamespace(ratios=lambda: ratios)
    )


def scores(random_names=NAMES):
    layers = [
        part(0, "trained", "even", (0.1, 0.1), (0.2, 0.3)),
        part(1, "trained", "attention", (0.9, 0.9), (0.0, 0.1)),
        part(1, "trained", "even", (0.25, 0.625), (0.75, 0.375)),
        part(0, "random", "even", (0.5, 0.5), (0.9, 0.9)),
        part(1, "random", "even", (0.5, 0.5), (0.125, 0.375), random_names),
        part(1, "random", "attention", (0.5, 0.5), (0.8, 0.8)),
    ]
    return SimpleNamespace(pieces=(SimpleNamespace(layers=layers),))


def test_a_component_has_its_share_beside_random_weights_and_another_component():
    found = told(said("decided-by", SECOND, component="position", least="0.5", control="token"), scores())
    share = Interval(0.75, 0.625, 0.875, n=7)
    assert found.effect == Reading("share of the scores' variance over keys", share, 0.375, 0.5, 0.5)
    assert found.explained == Reading("the same, beyond random weights", share, 0.25, 0.25, 0.25)
    assert found.specific == Reading("share beyond that of token", share, 0.25, 0.25, 0.25)
    assert "no halves" in found.halves
    alone = told(said("decided-by", Head(1, 1), component="position"), scores(NAMES[:2]))
    assert alone.effect.interval.value == 0.375
    assert alone.explained.least == 0  # random weights have no such part
    assert alone.specific == "no control was named"
    none = told(said("decided-by", SECOND, component="feed-forward"), scores())
    assert none.effect == none.explained == "scores of this checkpoint have no part of feed-forward"


# ---------------------------------------------------------------- a feature


def test_a_feature_is_read_as_the_study_of_features_says_it():
    """From the frozen partial results, beside the frozen rows."""
    entries = [one for one in json.loads(lzma.decompress(FILE.read_bytes())) if one["study"] == "features"]
    entry = next(one for one in entries if "negation" in one["options"]["features"])
    options = FEATURES.read(entry["options"])
    partial = FEATURES.merge(options, [decode(FEATURES.partial, row["partial"]) for row in entry["partials"]])
    first = SimpleNamespace(pieces=partial.pieces[:1])
    at = first.pieces[0].at
    mine = [row for row in entry["rows"] if (row["checkpoint"], row["task"]) == (at.checkpoint, at.task)]
    rows = {
        row["feature"]: row for row in mine if (row["statistic"], row.get("layer"), row.get("head")) == ("max", 1, 0)
    }
    noun = rows["noun"]
    for control, column in (("negation", "contrast"), ("start", "effect")):  # which has no kind of word
        found = told(said("looks-at", SECOND, feature="noun", control=control), first)
        assert (found.effect.interval.value, found.effect.baseline) == pytest.approx((noun["effect"], noun["baseline"]))
        assert (found.effect.interval.n, found.explained.interval.value) == (noun["n"], pytest.approx(noun["contrast"]))
        assert found.specific.interval.value == pytest.approx(noun[column] - rows[control][column])
        assert found.specific.measure == f"that less the same of {control}"
    place = told(said("looks-at", SECOND, feature="start"), first)
    assert (place.explained, place.specific) == (
        "a place of the input has no tokens like it at its distance",
        "no control was named",
    )


def test_places_are_tested_beside_random_weights_and_words_beside_drawn_word_types():
    runs = runs_of(batch(said("looks-at", feature="noun"), said("looks-at", SECOND, feature="start")))
    assert {run.rows for run in runs if run.is_random} == set(RANDOM)
    alone = runs_of(batch(said("looks-at", feature="noun")))
    assert not any(run.is_random for run in alone)


@pytest.mark.thorough
@pytest.mark.parametrize(("favoured", "is_held_out"), [("some", False), ("all", True)])
def test_a_head_that_prefers_one_word_is_not_held_out_for_nouns(favoured, is_held_out):
    """400 inputs of three of 40 nouns and three of 40 other words. One head prefers every noun, the other two
    nouns so much that nouns have as much more weight on average."""
    chance, likes = np.random.default_rng(3), np.zeros(80)
    likes[:40] = 1 if favoured == "all" else 20 * (np.arange(40) % 20 == 0)
    observer = FeatureAttention(1, 1, ["noun"], causal=False)
    for number in range(400):
        six = chance.permutation([*chance.choice(40, 3), *chance.choice(np.arange(40, 80), 3)])
        words = np.array([-1, *six, -1])
        nouns = ((words >= 0) & (words < 40))[None]
        weights = torch.tensor(1 + np.where(words >= 0, likes[words], 0.0), dtype=torch.float64)
        marks = mark(nouns, range(1, 7), classifying=0, seed=[number], types=words)
        observer.take([marks], [number]).update(0, (weights / weights.sum()).expand(1, 1, 8, 8), [0])
    sums = FeatureSums(InputOffset("c", "t", 0), 1, 1, False, observer.means, ("noun",), types=observer.types)
    partials = {("features", "c", rows): SimpleNamespace(pieces=(sums,)) for rows in ("thought of on", "judged on")}
    rows = criteria_of([said("looks-at", feature="noun")], Batch("c", 0.03, 1), [], partials)
    found = {row.criterion: row for row in rows}
    assert found["seen"].state == "met"  # by the interval over inputs, of either head
    assert (found["held out"].state == "met") == is_held_out


def test_weights_of_word_types_survive_storage_and_add_up_over_units():
    def seen(start, types):
        at = InputOffset("c", "t", start)
        return Pieces((FeatureSums(at, 1, 1, False, Means(1, 1, 3), ("noun",), types=types),))

    first = seen(0, {5: np.array([1.0, 0.0, 0.5]), 7: np.array([2.0, 2.0, 0.25])})
    stored = decode(Pieces[FeatureSums], json.loads(json.dumps(encode(first))))
    (both,) = merged([stored, seen(1, {7: np.array([1.0, 1.0, 0.5])})]).pieces
    assert {word: sums.tolist() for word, sums in both.types.items()} == {5: [1.0, 0.0, 0.5], 7: [3.0, 3.0, 0.75]}


# ---------------------------------------------------------------- without the head

SWAY = 0.01 * np.array([-2, -1, -1, 0, 0, 1, 1, 2] * 8)


def without(rises, operators=("zero", "mean")):
    """Effects on the loss, which each head's removal raises by so much, whichever stands in for it."""
    changes = np.array([[rise + SWAY for rise in rises]] * len(operators))
    changes[1] += 0.05
    return Effects(1, len(rises), operators, np.zeros(len(SWAY)), changes, np.zeros((3, 0)))


def test_a_needed_head_raises_the_loss_by_more_than_the_margin_and_than_its_neighbours():
    found = told(said("needed-for", Head(0, 1), margin="0.02"), without([0.0, 0.1, 0.04]))
    assert found.effect.measure == "rise of the loss in nats, zero"
    assert (found.effect.interval.value, found.effect.least, found.effect.baseline) == pytest.approx((0.1, 0.02, 0.02))
    ends = stats.t.interval(0.95, len(SWAY) - 1, 0.1, stats.sem(SWAY))
    assert (found.effect.interval.low, found.effect.interval.high, found.effect.interval.n) == pytest.approx(
        (*ends, len(SWAY)), abs=1e-4
    )
    assert found.explained.interval.value == pytest.approx(0.1 - 0.02)
    assert [half.interval.value for half in found.halves] == pytest.approx([0.075, 0.085])
    assert found.specific == "no other task was named"
    assert told(said("needed-for", margin="0.02"), without([0.1])).explained == "its layer has no other head"


# ---------------------------------------------------------------- criteria


def test_criteria_keep_what_was_read_and_where():
    chance = np.random.default_rng(0)
    numbers = chance.choice(5, p=(0.8, 0.05, 0.05, 0.05, 0.05), size=(200, 1, 2))
    partials = {
        ("pattern-shares:bert", "c", "thought of on"): classed(numbers[:100]),
        ("pattern-shares:bert", "c", "judged on"): classed(numbers),
        ("pattern-shares:bert", "d", "judged on"): classed(numbers[:, :, ::-1]),
        ("operators", "c", "judged on"): without([0.1, 0.3]),
    }
    runs = [SimpleNamespace(key=key, source=f"{key[0]} {key[2]} {key[1]}") for key in partials]
    claim = said("class", **{"class": "vertical", "counterpart": "d:L1H2", "margin": "0.02"})
    criteria = criteria_of([claim], Batch("c", 0.04, 2), runs, partials)
    found = {one.criterion: one for one in criteria}
    assert list(found) == ["seen", "held out", "explained", "causal", "specific", "stable", "transfers"]
    assert {one.state for name, one in found.items() if name != "specific"} == {"met"}
    assert (found["specific"].state, found["specific"].note) == ("not tested", "no control was named")
    hits = int((numbers[:, 0, 0] == 0).sum())
    held = found["held out"]
    assert (held.measure, held.n, held.baseline) == ("share of the maps", 200, 0.5)
    assert (held.amount, held.level) == (hits / 200, 0.04)
    p = stats.binomtest(hits, 200, 0.5, alternative="greater").pvalue
    assert (held.p, held.adjusted) == pytest.approx((p, 2 * p))  # the other of the batch was withdrawn
    interval = stats.binomtest(hits, 200).proportion_ci(0.95, "wilson")
    assert (held.low, held.high) == pytest.approx((interval.low, interval.high))
    assert {one.measured_by for one in criteria} == {run.source for run in runs} | {""}
    assert found["transfers"].measured_by == "pattern-shares:bert judged on d"
    assert found["transfers"].amount == found["held out"].amount
    assert found["transfers"].p is None
    causal = found["causal"]
    assert (causal.measure, causal.note) == ("rise of the loss in nats, zero", "both operators, the weaker shown")
    assert (causal.amount, causal.baseline, causal.n) == pytest.approx((0.1, 0.02, len(SWAY)))
    assert found["stable"].note == "both halves of the inputs, the weaker shown"
    weak = {one.criterion: one for one in criteria_of([claim], Batch("c", 0.04, 2), runs, {})}
    assert {(one.state, one.note) for name, one in weak.items()} == {("not tested", "not run yet")}
    bare = said("class", **{"class": "vertical"})
    notes = {one.criterion: one.note for one in criteria_of([bare], Batch("c", 0.04, 1), runs, partials)}
    assert notes["transfers"] == "no counterpart was named"
    assert notes["causal"] == "no margin was named for what happens without the head"


# ---------------------------------------------------------------- an attention budget


def budget_sums(maps, *, syntax=False):
    """The sums of one layer's maps [input, head, query, key] over inputs of [CLS], three words and [SEP]."""
    word = np.array([-1, 0, 1, 2, -1])
    tokens = BudgetTokens(0, (4,), word, word, np.zeros(5, int), np.zeros(5, bool), [(0, 2)] if syntax else [], 0)
    observer, numbers = BudgetAttention(1, maps.shape[1], causal=False), list(range(len(maps)))
    observer.take([tokens] * len(maps), numbers).update(0, torch.from_numpy(maps), numbers)
    return SimpleNamespace(
        pieces=(BudgetSums(InputOffset("c", "t", 0), 1, maps.shape[1], False, observer.means, syntax),)
    )


def test_a_share_of_the_budget_is_tested_against_the_claimed_share():
    """[SEP] gets 0.5 to 0.7 of the first head's attention and the rest is even; the second head is uniform."""
    chance, maps = np.random.default_rng(5), np.full((40, 2, 5, 5), 0.2)
    on_separator = chance.uniform(0.5, 0.7, 40)
    maps[:, 0] = (1 - on_separator)[:, None, None] / 4
    maps[:, 0, :, 4] = on_separator[:, None]
    partial = budget_sums(maps)
    claim = {"category": "separator", "control": "start"}
    found = told(said("budget", least="0.5", **claim), partial)
    half = stats.t.ppf(0.975, 39) * stats.sem(on_separator)
    assert (found.effect.interval.value, found.effect.baseline) == pytest.approx((on_separator.mean(), 0.2))
    assert found.effect.interval.low == pytest.approx(on_separator.mean() - half, abs=0.2 * half)
    assert found.effect.is_beyond
    assert found.explained.interval.value == pytest.approx(on_separator.mean() - 0.2)
    assert found.specific.interval.value == pytest.approx((on_separator - (1 - on_separator) / 4).mean())
    assert len(found.halves) == 2
    assert not told(said("budget", least="0.7", **claim), partial).effect.is_beyond
    uniform = told(said("budget", Head(0, 1), least="0.15", category="separator"), partial)
    assert uniform.effect.is_beyond  # but not beyond uniform attention
    assert not uniform.explained.is_beyond
    assert told(said("budget", category="governor"), partial).effect == "no input has such a key"
    linked = told(said("budget", Head(0, 1), category="governor", least="0.05"), budget_sums(maps, syntax=True))
    assert linked.effect.interval.value == pytest.approx(0.2 / 3)
    assert linked.explained == "no input has such tokens"  # no other words are two apart
    sentence = said("budget", category="separator").sentence
    assert sentence == "L1H1 gives at least 0.5 of its attention to the category separator"


# ---------------------------------------------------------------- which runs


def batch(*hypotheses):
    return HypothesisOptions(
        checkpoint="c", hypotheses=hypotheses, thought=ROWS[0], judged=ROWS[1], level=0.05, registered=1
    )


def test_each_study_is_asked_for_what_the_hypotheses_are_about():
    runs = runs_of(
        batch(
            said("looks-at", feature="noun", control="verb", margin="0.1"),
            said("looks-at", SECOND, feature="negation"),
            said("relation", relation="verb-object", direction="forward", control="determiner-noun"),
            said("class", **{"class": "vertical", "counterpart": "d:L1H2"}),
            said("read-by", reader="L2H1", input="v"),
            said("read-by", Head(0, 1), reader="L2H1", input="k"),
            said("property", kind="drop"),
            said("offset", offset="first"),
            said("budget", category="next"),
            said("counterpart", of="d:L1H2"),
            said("decided-by", component="position"),
        )
    )
    fresh = [run.key for run in runs if run.is_random]  # of every study that does not test against chance itself
    assert sorted({study for study, *_ in fresh}) == ["budget", "edge-effects", "patch:drop",
                                                      "pattern-shares:bert", "relations", "roles"]  # fmt: skip
    assert all("(random weights" in str(run.options) for run in runs if run.is_random)
    assert [run.key for run in runs if not run.is_random] == [
        ("features", "c", "thought of on"),
        ("features", "c", "judged on"),
        ("operators", "c", "judged on"),
        ("relations", "c", "thought of on"),
        ("relations", "c", "judged on"),
        ("pattern-shares:bert", "c", "thought of on"),
        ("pattern-shares:bert", "c", "judged on"),
        ("pattern-shares:bert", "d", "judged on"),
        ("edge-effects", "c", "thought of on"),
        ("edge-effects", "c", "judged on"),
        ("patch:drop", "c", "thought of on"),
        ("patch:drop", "c", "judged on"),
        ("roles", "c", "thought of on"),
        ("roles", "c", "judged on"),
        ("budget", "c", "thought of on"),
        ("budget", "c", "judged on"),
        ("counterparts:d", "c", "thought of on"),
        ("counterparts:d", "c", "judged on"),
        ("why", "c", "thought of on"),
        ("why", "c", "judged on"),
    ]
    assert len({run.source for run in runs}) == len(runs)
    by_key = {run.key: run for run in runs}
    for run in runs:
        choice = ROWS[run.rows != "thought of on"]
        assert (run.options.split, run.options.limit, run.options.seed) == (choice.split, 30, 0)
        fresh = f" ({run.rows})" if run.is_random else ""
        assert run.source == f"{run.study} on {choice}, {run.checkpoint}{fresh}"
        assert getattr(run.options, "task", "sst2") == "sst2"
        assert getattr(run.options, "tasks", ("sst2",)) == ("sst2",)
    assert by_key["features", "c", "judged on"].options.features == ("negation", "noun", "verb")
    assert by_key["features", "c", "judged on"].options.word_types
    assert by_key["relations", "c", "judged on"].options.relations == ("determiner-noun", "verb-object")
    assert by_key["operators", "c", "judged on"].options.operators == ("zero", "mean")
    classes = by_key["pattern-shares:bert", "d", "judged on"].options
    assert (classes.checkpoints, classes.class_set, classes.name) == (("d",), "bert", "bundled, bert")
    assert classes.classifier == str(config.ANNOTATIONS / "bert" / "classifier.safetensors")
    assert by_key["edge-effects", "c", "judged on"].options.edges == ("L1H1>L2H1.v", "L1H2>L2H1.k")
    assert by_key["patch:drop", "c", "judged on"].options.kind == "drop"
    assert by_key["roles", "c", "judged on"].options.sequences == 2
    assert by_key["counterparts:d", "c", "judged on"].options.compare == "d"
    whole = by_key["why", "c", "judged on"].options
    assert (whole.removal, whole.single_heads) == (0, False)
