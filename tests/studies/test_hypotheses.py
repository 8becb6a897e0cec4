"""Hypotheses: registered before they are tested, refused where they cannot be, and decided by seven criteria."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from core import config
from core.attention import Head
from core.errors import AtlasError, InputError, StoreError
from core.jobs import worker
from core.scoring.corrections import batch_level
from core.store import hypotheses as store
from core.store.database import Database
from core.store.jobs import UnitEnd, add_job, add_units, store_outcome
from core.store.runs import Provenance, record_run, runs
from core.studies.attention.inputs import SourceText
from core.studies.attention.measures import FeatureMeasure, RelationMeasure, observe
from core.studies.attention.partials import InputOffset
from core.studies.contract import as_json
from core.studies.hypotheses import hypothesis, registering
from core.studies.hypotheses.hypothesis import STUDY, Batch, RowChoice, criteria_of, input_marks
from core.studies.hypotheses.predicates import Hypothesis, checked
from core.studies.hypotheses.records import CRITERIA, SEEN_BEFORE, Criterion
from core.studies.hypotheses.registering import Proposal, batch_of, options_of, register
from core.studies.transport import decode
from core.tasks.conllu import file_of, read_conllu
from core.tasks.relations import relation_of
from tests.simulations import planted_attention as worlds

THOUGHT, JUDGED = RowChoice("sst2", "train", 30), RowChoice("sst2", "dev", 30)


@pytest.fixture
def db(tmp_path):
    with Database(tmp_path / "a.duckdb") as opened:
        yield opened


def proposal(head="L1H1", predicate="offset", **parameters):
    return Proposal(Head.parse(head), predicate, parameters or {"offset": "first", "control": "next"})


# ---------------------------------------------------------------- registering


@pytest.mark.parametrize(
    ("given", "rows", "why"),
    [
        (proposal(), (JUDGED, JUDGED), "must not be tested on the examples from which it was formed"),
        (proposal(predicate="looks-at", control="verb"), (THOUGHT, JUDGED), "needs the parameter feature"),
        (proposal("L7H1"), (THOUGHT, JUDGED), "from L1H1 to L6H6; got L7H1"),
        (proposal(predicate="reads minds"), (THOUGHT, JUDGED), "A predicate must be one of"),
        (proposal(offset="first", control="first"), (THOUGHT, JUDGED), "two different properties"),
        (proposal(offset="last"), (THOUGHT, JUDGED), "previous, next, first"),
        (proposal(offset="first", charm="1"), (THOUGHT, JUDGED), 'got "charm"'),
        (proposal(predicate="needed-for", margin="0"), (THOUGHT, JUDGED), "above 0"),
        (proposal(predicate="needed-for", margin="0.1"), (THOUGHT, JUDGED), "must be a classifier"),
        (proposal(offset="first", counterpart="L1H1"), (THOUGHT, JUDGED), "a checkpoint and a head"),
    ],
)
def test_what_cannot_be_tested_is_refused_in_a_sentence_and_nothing_is_stored(db, given, rows, why):
    with pytest.raises(InputError, match=why):
        register(db, "atlas-encoder", [given], thought=rows[0], judged=rows[1])
    assert not store.batches(db)


@pytest.mark.thorough
def test_the_level_is_spent_over_batches_that_share_a_judging_row_and_withdrawn_ones_count(db):
    ids = []
    for judged in (JUDGED, RowChoice("sst2", "dev", 200), RowChoice("mrpc", "dev", 30)):
        _, (one,) = register(db, "atlas-encoder", [proposal()], thought=THOUGHT, judged=judged)
        ids.append(one)
    store.withdraw(db, ids[0], "a typing error")
    register(db, "atlas-encoder", [proposal()], thought=THOUGHT, judged=JUDGED)
    assert [batch.number for batch in store.batches(db)] == [1, 2, 1, 3]
    assert [batch.level for batch in store.batches(db)] == [batch_level(k) for k in (1, 2, 1, 3)]
    assert [one.withdrawn is not None for one in store.hypotheses(db)] == [True, False, False, False]
    with pytest.raises(StoreError, match=f"withdrawn only once; {ids[0]} was"):
        store.withdraw(db, ids[0])
    with pytest.raises(StoreError, match='must be given by its ID; got "nothing"'):
        store.withdraw(db, "nothing")


def test_a_withdrawn_hypothesis_is_not_tested_and_still_counts_in_its_batch(db):
    batch, (first, second) = register(
        db, "atlas-encoder", [proposal(), proposal("L1H2")], thought=THOUGHT, judged=JUDGED
    )
    store.withdraw(db, first)
    options = options_of(*batch_of(db, batch))
    assert ([one.hypothesis for one in options.hypotheses], options.registered) == ([second], 2)
    store.withdraw(db, second)
    with pytest.raises(InputError, match="has not been withdrawn"):
        options_of(*batch_of(db, batch))


def test_hypotheses_about_other_weights_stay_with_theirs(db, monkeypatch):
    batch, _ = register(db, "atlas-encoder", [proposal()], thought=THOUGHT, judged=JUDGED)
    monkeypatch.setattr(registering, "present_weights", lambda name: "f" * 64)
    with pytest.raises(InputError, match="Register the hypotheses again"):
        options_of(*batch_of(db, batch))
    assert store.batches(db)[0].weights_hash != "f" * 64


def test_a_row_that_changed_since_is_named(db):
    batch, _ = register(db, "atlas-encoder", [proposal()], thought=THOUGHT, judged=JUDGED)
    stored, members = batch_of(db, batch)
    row_id = stored.judged_rows[3][0]
    rows = (*stored.judged_rows[:3], (row_id, "0" * 16), *stored.judged_rows[4:])
    with pytest.raises(InputError, match=f"{row_id} has changed"):
        options_of(store.StoredBatch(**{**stored.__dict__, "judged_rows": rows}), members)


@pytest.mark.parametrize(
    "text", ["", "sst2:test", "sst2:dev:many", "sst2:dev:5:0:0", "sst2:dev:5:99999999999999999999"]
)
def test_rows_are_named_by_task_split_limit_and_seed(text):
    with pytest.raises(AtlasError):
        RowChoice.parse(text)
    assert str(RowChoice.parse("sst2:train:0:3")) == "sst2:train:0:3"


# ---------------------------------------------------------------- testing


@pytest.mark.thorough
def test_a_head_of_the_first_token_is_tested_through_json_and_its_states_are_stored(db):
    batch, ids = register(
        db,
        "atlas-encoder",
        [
            proposal(counterpart="atlas-encoder-sst2:L1H1", offset="first", control="next"),
            proposal("L1H1", offset="next"),
        ],
        thought=THOUGHT,
        judged=RowChoice("rte", "dev", 30),
    )
    options = options_of(*batch_of(db, batch))
    assert STUDY.read(json.loads(json.dumps(as_json(options)))) == options
    units = json.loads(json.dumps(worker.divide("hypothesis", as_json(options))["units"]))
    left = [worker.run_unit("hypothesis", as_json(options), unit) for unit in units]
    parts = [row for unit in left for row in json.loads(json.dumps(unit["rows"]))]
    rows = worker.summarize("hypothesis", as_json(options), parts)["rows"]
    states = {(row.hypothesis, row.criterion): row.state for row in Criterion.among(rows)}
    true = [states[ids[0], name] for name in CRITERIA]
    assert true == ["met", "met", "met", "not tested", "met", "met", "met"]
    assert states[ids[1], "explained"] == "not met"
    assert [row["value"] for row in rows if row["kind"] == "criteria met"] == [6.0, 0.0]
    assert "Held-out examples confirmed 1 of 2 preregistered hypotheses, and" in STUDY.headline(rows).sentence
    partials = [decode(STUDY.partial, part["partial"]) for part in parts]
    STUDY.keep(db, SimpleNamespace(options=options, rows=rows, run="r", partials=lambda: iter(partials)))
    tested = store.hypotheses(db)
    assert [(one.run, len(one.criteria)) for one in tested] == [("r", 7)] * 2
    kept = [Criterion.of(criterion) for criterion in tested[0].criteria]
    mine = [one for one in Criterion.among(rows) if one.hypothesis == ids[0]]
    assert [replace(one, run=None) for one in kept] == mine
    of_runs = runs(db)  # behind the criteria: where the head was thought of, where it was judged, and the counterpart
    assert {run.study for run in of_runs.itertuples()} == {"roles"}
    assert {one.run for one in kept} == {*of_runs["run"], None}


def own_rows(folder, name, sentences):
    """A file of rows of one's own, all of them dev."""
    file = folder / f"{name}.csv"
    file.write_text("sentence\n" + "".join(f'"{sentence}"\n' for sentence in sentences), encoding="utf-8")
    return RowChoice(str(file), "dev", None)


TREEBANK = config.DATA / "treebank"
SENTENCES = [f"The {noun} sees a small {other} near the house." for noun in ("dog", "cat", "man") for other in
             ("bird", "tree", "boy", "girl", "car")]  # fmt: skip


@pytest.mark.parametrize(
    "changed",
    [str.upper, lambda text: text.replace(" ", "   "), lambda text: f"{text} !", lambda text: text.replace("e", "é")],
    ids=["case", "spaces", "punctuation", "accents"],
)
def test_the_same_input_written_otherwise_is_not_held_out(db, tmp_path, changed):
    thought, judged = own_rows(tmp_path, "a", SENTENCES), own_rows(tmp_path, "b", map(changed, SENTENCES))
    with pytest.raises(InputError, match="15 of the 15 examples"):
        register(db, "atlas-encoder", [proposal()], thought=thought, judged=judged)


def test_inputs_of_the_same_tokens_are_one_input(tmp_path):
    """Two words that the vocabulary lacks are the same token."""
    checkpoint = registering.studies.worker_cache.get_checkpoint("atlas-encoder")
    first, second = (own_rows(tmp_path, name, [f"The dog sees {word}."]).rows()[0] for name, word in
                     (("a", "\u96fb"), ("b", "\u8a71")))  # fmt: skip
    assert set(input_marks(first, checkpoint)) & set(input_marks(second, checkpoint))


@pytest.mark.parametrize("changed", [str, str.lower, lambda text: f" {text}"], ids=["same", "case", "spaces"])
def test_repeated_rows_are_refused_as_tests_take_inputs_for_independent(db, tmp_path, changed):
    judged = own_rows(tmp_path, "b", [*SENTENCES, *map(changed, SENTENCES)])
    with pytest.raises(InputError, match="must occur only once in a test"):
        register(db, "atlas-encoder", [proposal()], thought=THOUGHT, judged=judged)


def test_batches_that_share_an_input_written_otherwise_share_the_level(db, tmp_path):
    for name, sentences in (("a", SENTENCES), ("b", [text.upper() for text in SENTENCES])):
        register(db, "atlas-encoder", [proposal()], thought=THOUGHT, judged=own_rows(tmp_path, name, sentences))
    assert [batch.number for batch in store.batches(db)] == [1, 2]
    assert store.ever_registered(db, store.batches(db)[0].weights_hash) == 2


def measured_before(db, judged, *, weights, row_ids):
    provenance = Provenance(checkpoint="atlas-encoder", weights_hash=weights, task=judged.task, split="dev",
                            row_ids=row_ids)  # fmt: skip
    options = {"checkpoint": "atlas-encoder", "tasks": [judged.task]}
    return record_run(db, "roles", options, provenance, title="all heads")


def test_a_treebank_that_a_run_read_counts_by_its_sentences_and_not_by_their_numbers(db, tmp_path):
    trees = [sentence.text for sentence in read_conllu(file_of(TREEBANK, "dev"), len(SENTENCES))]
    weights = registering.studies.worker_cache.get_checkpoint("atlas-encoder").weights_hash
    provenance = Provenance(checkpoint="atlas-encoder", weights_hash=weights, row_ids=["dev-0", "dev-1", "dev-2"])
    options = {"checkpoint": "atlas-encoder", "treebank": str(TREEBANK), "limit": 200}
    run = record_run(db, "dependencies", options, provenance, title="trees")
    for sentences, inputs in ((SENTENCES, 0), (trees, len(trees))):
        judged = own_rows(tmp_path, f"judged{inputs}", sentences)
        batch, _ = register(db, "atlas-encoder", [proposal()], thought=THOUGHT, judged=judged)
        found = next(one for one in store.batches(db) if one.batch == batch)
        assert [known["inputs"] for known in found.runs if known["run"] == run] == [inputs]


@pytest.mark.thorough
@pytest.mark.parametrize("how", ["run", "job without its run", "other weights", "other rows", "after"])
def test_what_a_stored_run_had_measured_is_marked_as_seen_before_registration(db, tmp_path, how):
    judged = own_rows(tmp_path, "b", SENTENCES)
    ids = [row.id for row in judged.rows()]
    weights = registering.studies.worker_cache.get_checkpoint("atlas-encoder").weights_hash
    if how in ("run", "other weights"):
        measured_before(db, judged, weights="0" * 64 if how == "other weights" else weights, row_ids=ids[:1])
    elif how == "other rows":
        measured_before(db, judged, weights=weights, row_ids=["dev-99"])
    elif how == "job without its run":
        job = add_job(db, "roles", "T", {"tasks": [judged.task]})
        add_units(db, job, {"tasks": [judged.task]}, [{"key": "k", "size": 1, "arguments": {}}])
        store_outcome(db, job, 0, UnitEnd(rows=[{"partial": 1}], provenance={"weights_hash": weights, "row_ids": ids}))
    batch, _ = register(db, "atlas-encoder", [proposal()], thought=THOUGHT, judged=judged)
    if how == "after":
        measured_before(db, judged, weights=weights, row_ids=ids)
    options = options_of(*batch_of(db, batch))
    assert (options.seen > 0) == (how in ("run", "job without its run"))
    (stored,) = store.batches(db)
    assert [run["inputs"] for run in stored.runs if run["source"] not in ("shipped",)] == {
        "run": [1], "job without its run": [15], "other rows": [0]
    }.get(how, [])  # fmt: skip


def test_what_was_seen_before_is_not_met_as_held_out():
    reading = Criterion(hypothesis="h", subject="L1H1", sentence="s", criterion="held out", state="met", p=1e-9)
    for seen, state in ((0, "met"), (1, SEEN_BEFORE)):
        batch = Batch("planted", batch_level(1), 1, seen)
        assert hypothesis._levelled(reading, 1e-9, batch).state == state


# ---------------------------------------------------------------- planted heads: who meets what


def noun_head(rng):
    """A head that looks at nouns, whatever the query is."""
    query, bias, key = worlds._nothing()
    bias[0] = rng.uniform(1.5, 3)
    key[0, worlds.BLOCKS["kind"].start + worlds.KINDS.index("noun")] = 1.0
    return query, bias, key


def verb_head(rng):
    """The neighbour's role: a head that looks at verbs."""
    query, bias, key = noun_head(rng)
    key[0] = np.roll(key[0], worlds.KINDS.index("verb") - worlds.KINDS.index("noun"))
    return query, bias, key


NOUN = ("looks-at", {"feature": "noun", "control": "verb"})
LINKED = ("relation", {"relation": "verb-object", "direction": "forward", "control": "determiner-noun"})
TRUE = {"nouns": (noun_head, NOUN), "links": (worlds.linked, LINKED)}
FALSE = {
    "verbs, said of nouns": (verb_head, NOUN),
    "distance, said of nouns": (worlds.distance, NOUN),
    "same word, said of nouns": (worlds.same_word, NOUN),
    "nouns, said of links": (noun_head, LINKED),
    "distance, said of links": (worlds.distance, LINKED),
    "same word, said of links": (worlds.same_word, LINKED),
}


def texts_of(inputs):
    """So many inputs to think of hypotheses on, and others that judge."""
    tasks = ("mrpc", "qnli", "qqp", "mnli", "rte", "sst2")[: 6 if inputs > 100 else 1]
    pools = [text for task in tasks for text in worlds.pool(task)]
    texts = list(dict.fromkeys(pools))
    order = np.random.default_rng(7).permutation(len(texts))
    chosen = [texts[k] for k in order[: 2 * inputs]]
    assert len(chosen) == 2 * inputs
    return chosen[:inputs], chosen[inputs:]


def draws(world, claim, seed, inputs):
    """The criteria of 16 heads of one world of which the same is said, each of them alone in its batch."""
    sides = texts_of(inputs)
    checkpoint = worlds.planted(world, [*sides[0], *sides[1]], seed, relation="verb-object")
    predicate, parameters = claim
    hypotheses = [
        Hypothesis(f"h{layer}{head}", layer, head, predicate, checked(predicate, parameters))
        for layer, head in np.ndindex(worlds.LAYERS, worlds.HEADS)
    ]
    study = "features" if predicate == "looks-at" else "relations"
    partials = {}
    for rows, texts in zip(("thought of on", "judged on"), sides, strict=True):
        if study == "features":
            names = [parameters["feature"], parameters["control"]]
            measure = FeatureMeasure(checkpoint, names, seed=seed, word_types=True)
        else:
            measure = RelationMeasure(checkpoint, [relation_of(parameters[n]) for n in ("relation", "control")])
        sources = [
            SourceText(k, f"row-{k}", *((text, None) if isinstance(text, str) else text))
            for k, text in enumerate(texts)
        ]
        observe(checkpoint, worlds.pipeline(), sources, [measure])
        partials[study, "planted", rows] = SimpleNamespace(pieces=(measure.sums(InputOffset("planted", "t", 0)),))
    batch = Batch("planted", batch_level(1), 1)
    return [{row.criterion: row.state for row in criteria_of([one], batch, [], partials)} for one in hypotheses]


TESTABLE = ("seen", "held out", "explained", "specific", "stable")


def counted(name, number, inputs):
    world, claim = (TRUE | FALSE)[name]
    found = []
    for seed in range(-(-number // 16)):
        found += draws(world, claim, seed, inputs)
    return found[:number]


@pytest.mark.slow
@pytest.mark.parametrize("name", TRUE)
def test_true_hypotheses_meet_all_testable_criteria_in_95_of_100_draws(name):
    found = counted(name, 100, 400)
    assert sum(all(states[name] == "met" for name in TESTABLE) for states in found) >= 95


@pytest.mark.slow
@pytest.mark.parametrize("name", FALSE)
def test_false_hypotheses_reach_the_third_criterion_in_at_most_5_of_100_draws(name):
    assert sum(states["explained"] == "met" for states in counted(name, 100, 400)) <= 5


@pytest.mark.slow  # 7 CPU seconds; a planted head goes through JSON below, and worlds are drawn with the slow tests
def test_a_planted_truth_is_met_and_its_neighbours_role_is_not():
    assert all(states["explained"] == "met" for states in counted("nouns", 16, 60))
    assert sum(states["explained"] == "met" for states in counted("verbs, said of nouns", 16, 60)) <= 2
