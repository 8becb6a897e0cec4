"""Predicates of runs that are no sums over weights: classes, counterparts, frame links, properties and edges.

What is true is planted in the numbers that a study leaves; what is false is a neighbour's role, or holds for pairs of
the same answer too.
"""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from core import config
from core.attention import Head
from core.capture.components import ends_of
from core.errors import InputError
from core.findings import hypothesis_crate
from core.interval import Interval
from core.scoring.corrections import batch_level
from core.scoring.counterparts import similarity_sums
from core.store.database import Database
from core.studies.ablation.operators import Effects
from core.studies.ablation.patch import PatchPartial
from core.studies.circuits.edge_effects import STUDY as EDGES
from core.studies.circuits.edge_effects import EdgePartial
from core.studies.comparison.counterparts import Compared, CounterpartsPartial, Drawn
from core.studies.frames.frame_heads import Draws, Scores, packed
from core.studies.frames.records import FrameSentence
from core.studies.hypotheses.hypothesis import Batch, RowChoice, criteria_of
from core.studies.hypotheses.predicates import CLASSES, Hypothesis, checked
from core.studies.hypotheses.readings import Reading, evidence_of, needed_reading, share_reading
from core.studies.hypotheses.records import Criterion
from core.studies.hypotheses.registering import Proposal, batch_of, options_of, register
from core.studies.patterns import pattern_shares
from tests.studies.planted import CARRIER, save_planted, write_rows

FIRST = Head(0, 0)


def said(predicate, head=FIRST, **parameters):
    return Hypothesis("h", *head[:2], predicate, checked(predicate, parameters))


def told(hypothesis, partial):
    return evidence_of(hypothesis, partial, hypothesis.subject)


# ---------------------------------------------------------------- class


def classed(numbers):
    """What classifying leaves; numbers: classes [input, layer, head]."""
    inputs = len(numbers)
    nothing = np.zeros(inputs)
    piece = pattern_shares.ClassifiedChunk(
        "c", tuple(map(str, range(inputs))), CLASSES["bert"], numbers, nothing, nothing, nothing, nothing
    )
    return pattern_shares.Counts((piece,))


def _confused(true):
    """How often the bundled classifier calls held-out maps of a class each of its classes."""
    about = json.loads((config.ANNOTATIONS / "bert" / "classifier.json").read_text(encoding="utf-8"))
    called = np.sum(about["scores"]["confusions"], axis=0)[about["classes"].index(true)]
    return called / called.sum()


def test_the_share_of_a_class_has_a_binomial_p_and_is_freed_of_confusions():
    chance = np.random.default_rng(0)
    numbers = chance.choice(5, p=(0.8, 0.05, 0.05, 0.05, 0.05), size=(200, 1, 2))
    numbers[:, 0, 1] = chance.choice(5, p=_confused("diagonal"), size=200)  # always diagonal, as the classifier sees it
    found = told(said("class", **{"class": "vertical", "control": "diagonal"}), classed(numbers))
    hits = int((numbers[:, 0, 0] == 0).sum())
    assert found.effect.p == pytest.approx(stats.binomtest(hits, 200, 0.5, alternative="greater").pvalue)
    assert found.explained.is_beyond
    assert found.specific.is_beyond
    assert all(half.is_beyond for half in found.halves)
    neighbour = told(said("class", Head(0, 1), **{"class": "vertical", "control": "diagonal"}), classed(numbers))
    assert (neighbour.effect.p, neighbour.explained.p) == (1.0, 1.0)
    assert not neighbour.specific.is_beyond
    assert share_reading("a share", np.zeros(0, bool), 0.5) == Reading("a share", Interval(None, n=0), 1.0, 0.5, 0.5)


def test_counts_that_the_confusions_cannot_give_are_not_freed_of_them():
    numbers = np.ones((200, 1, 1), dtype=int)  # the classifier calls one diagonal map of five something else
    found = told(said("class", **{"class": "vertical", "control": "diagonal"}), classed(numbers))
    assert found.effect.p == 1.0
    assert "errs otherwise on these maps" in found.explained


def test_a_head_at_the_least_share_is_found_beyond_it_as_often_as_the_level_says():
    chance = np.random.default_rng(1)
    false = [share_reading("a share", chance.random(100) < 0.5, 0.5).p for _ in range(300)]
    assert np.mean(np.array(false) <= 0.05) <= 0.08


# ---------------------------------------------------------------- pairs of inputs


def patched(own, others, inputs=120, seed=0, same=0.0):
    """Head L1H1 of three brings back `own` of the answer's difference, the others `others`; of pairs whose answer
    stays the same it brings back `same`."""
    chance = np.random.default_rng(seed)
    moved = np.arange(inputs) % 2 == 0
    first = chance.uniform(1, 3, inputs)
    second = np.where(moved, -chance.uniform(0.5, 2, inputs), first - chance.uniform(0.2, 0.8, inputs))
    shares = np.array([own, others, others])[:, None] * np.ones(inputs)
    shares[0, ~moved] = same
    noise = chance.normal(0, 0.1, (3, inputs))
    values = second + (shares + noise) * (first - second)
    return PatchPartial(np.arange(inputs), 1, 3, np.ones(inputs), first, second, values)


PAIRED = said("property", kind="drop", least="0.1")


def test_a_property_comes_back_with_the_head_that_carries_it_and_with_no_other():
    true = told(PAIRED, patched(0.4, 0.0))
    assert true.effect.interval.value == pytest.approx(0.4, abs=0.03)
    assert true.causal is true.effect
    assert (true.effect.least, true.effect.baseline) == (0.1, 0.1)
    assert true.specific.measure == "share less that on pairs of the same answer"
    assert true.effect.p < 0.001
    assert all(one.is_beyond for one in (true.effect, true.explained, true.specific, *true.halves))
    every = told(PAIRED, patched(0.4, 0.4))  # what its neighbours bring back too
    assert every.effect.is_beyond
    assert every.explained.p > 0.01
    general = told(PAIRED, patched(0.4, 0.0, same=0.4))  # and what has nothing to do with the answer
    assert not general.specific.is_beyond
    none = told(PAIRED, patched(0.0, 0.0))
    assert none.effect.p > 0.5


@pytest.mark.thorough
def test_a_share_at_the_least_one_is_found_beyond_it_as_often_as_the_level_says():
    p = np.array([told(PAIRED, patched(0.1, 0.0, seed=seed)).effect.p for seed in range(200)])
    assert np.mean(p <= 0.05) <= 0.09


def test_too_few_pairs_with_different_answers_are_said_and_not_tested():
    partial = patched(0.4, 0.0)
    alike = replace(partial, second=np.abs(partial.second))
    assert "takes 12 pairs whose answers differ, and there are 0" in told(PAIRED, alike).effect


def edges(own, others, seed=0, same=0.0):
    chance = np.random.default_rng(seed)
    names = tuple(f"L1H{k + 1}>L2H1.v" for k in range(3))
    alike, gap = np.arange(90) % 3 == 0, chance.uniform(1, 2, 90)
    gap[alike] *= chance.choice((-1, 1), 30)
    shares = np.array([own, others, others])[:, None] * np.ones(90)
    shares[0, alike] = same
    return EdgePartial(names, 2, 3, (shares + chance.normal(0, 0.05, (3, 90))) * gap, gap, alike)


def test_what_a_later_head_reads_is_told_from_what_it_reads_of_all_heads():
    claim = said("read-by", reader="L2H1", input="v", least="0.05")
    true = told(claim, edges(0.2, 0.0))
    assert true.effect.interval.value == pytest.approx(0.2, abs=0.03)
    assert all(one.is_beyond for one in (true.effect, true.explained, true.specific, true.causal, *true.halves))
    assert told(claim, edges(0.2, 0.2)).explained.p > 0.01
    assert not told(claim, edges(0.2, 0.0, same=0.2)).specific.is_beyond
    assert told(claim, edges(0.0, 0.0)).effect.p > 0.5
    rows = [row.as_row() for row in EDGES.results(EDGES.read({"checkpoint": "c"}), edges(0.2, 0.0))]
    assert [row["name"] for row in rows] == list(edges(0, 0).names)
    assert "L1H1>L2H1.v has the largest effect" in EDGES.headline(rows).sentence


@pytest.mark.parametrize("name", ["L1H1", "L1H1>L2H1", "L1H1>L2H1.x", "L2H1>L1H1.q", "L1H1>L1H2.q", "a>b.q"])
def test_what_is_no_edge_is_refused_in_a_sentence(name):
    with pytest.raises(InputError, match=r"[Cc]orrect the edge|later layer|must be named by its layer"):
        ends_of(name)


def criteria_met(hypothesis, judged):
    """The criteria that a hypothesis alone in its batch meets, thought of and judged on numbers like these."""
    partials = {(hypothesis.measured_by, "c", rows): judged for rows in ("thought of on", "judged on")}
    found = criteria_of([hypothesis], Batch("c", batch_level(1), 1), [], partials)
    return {criterion.criterion for criterion in found if criterion.state == "met"}


@pytest.mark.slow  # 4 CPU s: 200 draws of 400 pairs
def test_effects_of_twice_what_is_said_are_found_and_a_neighbours_are_not_explained():
    draws = range(100)
    every = {"seen", "held out", "explained", "causal", "specific", "stable"}
    true = [criteria_met(PAIRED, patched(0.2, 0.0, inputs=400, seed=seed)) >= every for seed in draws]
    neighbour = ["explained" in criteria_met(PAIRED, patched(0.2, 0.2, inputs=400, seed=seed)) for seed in draws]
    assert sum(true) >= 95
    assert sum(neighbour) <= 5


@pytest.mark.thorough
def test_a_loss_that_rises_by_twice_the_margin_is_causal_and_one_at_the_margin_is_not():
    chance, margin = np.random.default_rng(5), 0.01

    def causal(rise):
        changes = chance.normal(rise, 5 * margin, (2, 1, 400))
        effects = Effects(1, 1, ("zero", "mean"), np.zeros(400), changes, np.zeros((3, 0)))
        both = [needed_reading(effects, name, FIRST, margin).is_beyond for name in effects.operators]
        return all(both)

    assert sum(causal(2 * margin) for _ in range(100)) >= 95
    assert sum(causal(margin) for _ in range(100)) <= 5


# ---------------------------------------------------------------- likeness


def likened(similarity, runner, spread=0.05, inputs=80, seed=0):
    """Two heads: the first is `similarity` like the other checkpoint's first head and `runner` like its second."""
    chance = np.random.default_rng(seed)
    means = 1 - np.array([[similarity, runner], [0.3, 0.6]])
    distances = np.clip(means + chance.normal(0, spread, (inputs, 2, 2)), 0, 1)
    sums = similarity_sums(distances, np.arange(inputs))
    compared = Compared(sums.sums, sums.inputs, 2, 2, "tokens", False, "a", "b", "o")
    drawn = Drawn(np.array([[similarity, runner], [0.3, 0.6]]), chance.normal(0.4, 0.03, (99, 2)), 24, "o")
    return CounterpartsPartial((compared,), (drawn,))


def test_a_counterpart_is_like_its_head_beyond_random_weights_and_more_than_any_other():
    claim = said("counterpart", of="other:L1H1", control="L1H2")
    true = told(claim, likened(0.8, 0.5))
    assert true.effect.p == pytest.approx(0.01)
    assert all(one.is_beyond for one in (true.effect, true.explained, true.specific, *true.halves))
    both = told(claim, likened(0.8, 0.8))  # as like its neighbour
    assert both.effect.is_beyond
    assert not both.explained.is_beyond
    wrong = told(said("counterpart", of="other:L1H2"), likened(0.8, 0.5))
    assert wrong.explained.p > 0.99
    assert not any(half.is_beyond for half in wrong.halves)


def linked(own, elsewhere, sentences=60, draws=199, seed=0):
    """Two heads; the first gives `own` to frame links, and `elsewhere` at the same distance in other places."""
    chance = np.random.default_rng(seed)
    scores = np.clip(chance.normal((own, 0.2), 0.05, (sentences, 2)), 0, 1)
    scored = tuple(
        FrameSentence(id=str(k), text="", frame=None, target="", elements=[], before=0, links=1, scores=row.tolist())
        for k, row in enumerate(scores)
    )
    null = packed(chance.normal((elsewhere, 0.2), 0.05 / sentences**0.5, (draws, 2)) * sentences)
    observed = scores.sum(0)
    return Scores(
        scored, (Draws(sentences, draws, 1, 2, False, {}, 0, 0, 0, null, null, observed, null, observed, null, {}),)
    )


def test_a_frame_link_is_beyond_its_distance_and_all_four_nulls():
    claim = said("frame-link", direction="element_to_target")
    true = told(claim, linked(0.4, 0.2))
    assert (true.effect.p, true.explained.p) == (pytest.approx(1 / 200), pytest.approx(1 / 200))
    assert all(half.is_beyond for half in true.halves)
    assert all(half.interval.low < half.interval.value < half.interval.high for half in true.halves)
    measures = [one.measure for one in (true.effect, true.explained)]
    beside = ("its distance elsewhere", "four nulls")
    assert measures == [f"largest weight of a frame link, beside {null}" for null in beside]
    distance = told(claim, linked(0.4, 0.4))  # what the distance explains
    assert distance.explained.p > 0.01
    assert not told(said("frame-link", Head(0, 1), direction="element_to_target"), linked(0.4, 0.2)).effect.is_beyond


def sample_sizes(evidence):
    """The inputs of each reading: effect, explained, specific, halves."""
    readings = (evidence.effect, evidence.explained, evidence.specific, *evidence.halves)
    return [one.interval.n if isinstance(one, Reading) else None for one in readings]


def test_every_reading_has_the_number_of_its_inputs():
    numbers = np.random.default_rng(0).choice(5, p=(0.8, 0.05, 0.05, 0.05, 0.05), size=(201, 1, 2))
    either = int(np.isin(numbers[:, 0, 0], [0, 1]).sum())
    vertical = said("class", **{"class": CLASSES["bert"][0], "control": CLASSES["bert"][1]})
    assert sample_sizes(told(vertical, classed(numbers))) == [201, 201, either, 101, 100]
    assert sample_sizes(told(PAIRED, patched(0.4, 0.0, inputs=121))) == [61, 61, 60, 31, 30]  # every second one moved
    read = said("read-by", reader="L2H1", input="v", least="0.05")
    assert sample_sizes(told(read, edges(0.2, 0.0))) == [60, 60, 30, 30, 30]  # of 90 pairs 30 have the same answer
    counterpart = said("counterpart", of="other:L1H1", control="L1H2")
    assert sample_sizes(told(counterpart, likened(0.8, 0.5, inputs=81))) == [81, 81, 81, 41, 40]
    link = said("frame-link", direction="element_to_target")
    assert sample_sizes(told(link, linked(0.4, 0.2, sentences=61))) == [61, 61, None, 31, 30]


# ---------------------------------------------------------------- registered, and refused

SST2 = (RowChoice("sst2", "train", 40), RowChoice("sst2", "dev", 40))
FRAMES = (RowChoice("frames", "train", None), RowChoice("frames", "dev", None))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("predicate", "parameters", "rows", "why"),
    [
        ("class", {"class": "majority"}, SST2, "class of the class set bert must be"),
        ("class", {"class": "vertical", "control": "vertical"}, SST2, "two different properties"),
        ("class", {"class": "zigzag"}, SST2, "must be one of"),
        ("class", {"class": "vertical", "least": "2"}, SST2, "between 0 and 1"),
        ("class", {}, SST2, "needs the parameter class"),
        ("frame-link", {"direction": "element_to_target"}, SST2, "must be tested on examples of frames"),
        ("frame-link", {"direction": "sideways"}, FRAMES, "must be one of"),
        ("offset", {"offset": "first"}, FRAMES, "must be tested on examples of a task"),
        ("property", {"kind": "drop"}, SST2, "must be a classifier"),
        ("property", {"kind": "typed"}, SST2, "must be one of"),
        ("read-by", {"reader": "L2H1", "input": "v"}, SST2, "must be a classifier"),
        ("read-by", {"reader": "L2H1", "input": "w"}, SST2, "must be one of"),
        ("read-by", {"reader": "nobody", "input": "q"}, SST2, "must be named by its layer"),
        ("counterpart", {"of": "L1H1"}, SST2, "a checkpoint and a head"),
        ("counterpart", {"of": "atlas-encoder-sst2:L1H1", "control": "x"}, SST2, "must be named by its layer"),
    ],
)
def test_what_cannot_be_tested_is_refused_in_a_sentence(tmp_path, predicate, parameters, rows, why):
    with Database(tmp_path / "a.duckdb") as db, pytest.raises(InputError, match=why):
        register(db, "atlas-encoder", [Proposal(Head(0, 0), predicate, parameters)], thought=rows[0], judged=rows[1])


def states(db, checkpoint, head, predicate, parameters, rows):
    batch, _ = register(db, checkpoint, [Proposal(head, predicate, parameters)], thought=rows[0], judged=rows[1])
    rows = hypothesis_crate.computed(options_of(*batch_of(db, batch)))
    return {row.criterion: row for row in Criterion.among(rows)}


@pytest.mark.slow  # 8 CPU s: every head patched on 600 pairs
def test_a_property_is_carried_by_the_planted_head_alone(tmp_path):
    folder, data = (
        str(save_planted(tmp_path / "planted", mark="engine")),
        str(write_rows(tmp_path / "glue", 300, "engine")),
    )
    rows = (RowChoice("sst2", "train", None, 0, data), RowChoice("sst2", "dev", None, 0, data))
    with Database(tmp_path / "a.duckdb") as db:
        true, false = (
            states(db, folder, head, "property", {"kind": "drop", "least": "0.2"}, rows)
            for head in (CARRIER, Head(1, 0))
        )
    held = [name for name, row in true.items() if row.state == "met"]
    assert {"seen", "held out", "explained", "causal", "stable"} <= set(held), true
    assert true["causal"].note == "by patching"
    assert not {"held out", "explained", "causal"} & {name for name, row in false.items() if row.state == "met"}


@pytest.mark.slow  # 20 CPU s: whole studies on the bundled checkpoints
@pytest.mark.parametrize(
    ("checkpoint", "head", "predicate", "parameters", "rows", "met"),
    [
        ("atlas-encoder-sst2", "L1H1", "class", {"class": "vertical", "control": "diagonal"}, SST2,
         {"seen", "held out", "explained", "specific", "stable"}),
        ("atlas-encoder-sst2", "L1H1", "class", {"class": "diagonal", "control": "vertical"}, SST2, set()),
        ("atlas-encoder", "L3H6", "frame-link", {"direction": "element_to_target"}, FRAMES, None),
        ("atlas-encoder-sst2", "L1H3", "read-by", {"reader": "L3H2", "input": "v"},
         (RowChoice("sst2", "train", 100), RowChoice("sst2", "dev", 100)), None),
        ("atlas-encoder", "L1H1", "counterpart", {"of": "atlas-encoder-sst2:L1H1", "control": "L1H2"}, SST2,
         {"seen", "held out", "explained", "specific", "stable"}),
    ],
)  # fmt: skip
def test_every_predicate_is_registered_and_tested_on_bundled_checkpoints(
    tmp_path, checkpoint, head, predicate, parameters, rows, met
):
    with Database(tmp_path / "a.duckdb") as db:
        found = states(db, checkpoint, Head.parse(head), predicate, parameters, rows)
    assert found["held out"].state != "not tested"
    assert found["explained"].state != "not tested"
    if met is not None:
        assert {name for name, row in found.items() if row.state == "met"} == met
