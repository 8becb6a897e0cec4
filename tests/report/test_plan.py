"""What a report runs, in which order, and what it refuses."""

from collections import Counter
from dataclasses import replace

import pytest

from core.errors import InputError
from core.report.data import Facts, find_data
from core.report.ids import Part
from core.report.plan import PART_STEPS, ReportOptions, plan
from core.store.database import Database
from core.studies.tuning import finetune

ENCODER, DECODER = Facts(causal=False, preset="small"), Facts(causal=True, preset="small")


@pytest.fixture
def db(tmp_path):
    with Database(tmp_path / "atlas.duckdb") as database:
        yield database


def steps(db, facts=ENCODER, **given):
    options = ReportOptions.read(
        {"checkpoints": ["a"], "parts": [part for part in PART_STEPS if part not in ("shares", "crossed")]} | given
    )
    return plan(db, options, find_data(None), {"a": facts})


def test_what_looks_at_a_fine_tuned_checkpoint_comes_after_the_fine_tuning(db):
    several = steps(db, tasks=["rte", "SST-2"])
    for task in ("rte", "sst2"):
        parts = [step.part for step in several if step.task == task]
        assert parts[:2] == [Part.TUNING, Part.CHANGE]
        assert {Part.HEADS, Part.LAYERS, Part.ALONE, Part.IMPORTANCE, Part.PRUNE} <= set(parts[2:])
    assert several[0].part == Part.FRAMES
    assert len({step.title for step in several}) == len(several)


def test_what_heads_do_together_is_measured_only_where_it_is_asked_for_by_name(db):
    assert not {step.part for step in steps(db, tasks=["rte"], parts=[])} & {Part.SHAPLEY, Part.GATES, Part.PAIRS}
    asked = steps(db, tasks=["rte", "stsb"], parts=["shapley", "pairs"])
    assert [(step.part, step.task) for step in asked] == [
        (Part.TUNING, "rte"),
        (Part.TUNING, "stsb"),
        (Part.SHAPLEY, "rte"),
        (Part.PAIRS, "rte"),
    ]


def test_every_seed_of_fine_tuning_is_looked_through_for_the_heads(db):
    (step,) = [step for step in steps(db, tasks=["rte"], seeds=3) if step.part == Part.MATCH]
    assert [step.options.compare[-9:-7], *(name[-9:-7] for name in step.options.also)] == ["s0", "s1", "s2"]


def test_what_fine_tuning_changes_is_looked_at_in_every_seed(db):
    several = steps(db, tasks=["rte"], seeds=3, parts=["change", "features"])
    assert [step.part for step in several] == [
        Part.TUNING,
        Part.CHANGE,
        Part.CHANGE_SEEDS,
        Part.FEATURES,
        Part.FEATURES_SEEDS,
        Part.FEATURES_SEEDS,
    ]
    _, first, others, *looked = several
    names = [*first.options.after, *others.options.after]
    assert [name[-9:-7] for name in names] == ["s0", "s1", "s2"]
    assert [step.options.compare for step in looked] == names
    assert len({step.title for step in several}) == len(several)
    assert not [step for step in steps(db, tasks=["rte"], parts=["features"], seeds=3) if step.options.compare]


def test_a_part_alone_brings_the_fine_tuning_that_it_needs(db):
    assert [step.part for step in steps(db, tasks=["rte"], parts=["layers"])] == [Part.TUNING, Part.LAYERS]
    assert [step.part for step in steps(db, tasks=["rte"], parts=["frames"])] == [Part.FRAMES]


def test_train_rows_of_the_small_tasks_are_swept_where_it_is_asked_for(db):
    asked = {"tasks": ["rte", "sst2"], "parts": ["crossed"], "train_limit": 900, "precision": "bfloat16"}
    (crossed,) = [step for step in steps(db, folds=4, **asked) if step.part == Part.CROSSED]
    options = crossed.options
    assert (crossed.task, options.folds, options.limit, options.dtype) == ("rte", 4, 900, "bfloat16")
    assert options.settings == {"precision": "bfloat16"}  # the rows are the study's own to draw
    with pytest.raises(InputError, match="Set the option folds"):
        steps(db, **asked)
    (layers,) = [step for step in steps(db, folds=4, **asked) if step.part == Part.CROSSED_LAYERS]
    assert (options.what, layers.options) == ("heads", replace(options, what="layers"))
    assert not {Part.CROSSED, Part.CROSSED_LAYERS} & {step.part for step in steps(db, tasks=["rte"])}


def test_links_of_few_dev_rows_are_looked_for_on_train_rows_with_folds(db):
    asked = {"tasks": ["rte", "sst2"], "parts": ["relations"], "train_limit": None}
    assert [step.part for step in steps(db, **asked)] == [Part.RELATIONS]
    (_, more) = steps(db, folds=3, **asked)
    options = more.options
    assert (more.part, more.task, options.tasks, options.split) == (Part.TRAIN_RELATIONS, "rte", ("rte",), "train")
    assert (options.relations, options.limit) == (("noun-pronoun",), None)


def test_heads_are_disabled_on_unseen_train_rows_where_it_is_asked_for(db):
    asked = {"tasks": ["sst2"], "parts": ["heads", "layers", "alone", "importance", "prune"]}
    for unseen, swept in ((True, "unseen"), (False, "dev")):
        splits = {step.part: step.options.split for step in steps(db, unseen=unseen, **asked) if step.part != "tuning"}
        assert splits == {"heads": swept, "layers": swept, "alone": swept, "importance": "train", "prune": "dev"}


def test_all_dev_rows_are_swept_and_some_train_rows_weighed(db):
    asked = {"tasks": ["sst2"], "parts": ["heads", "importance", "prune"]}
    limits = {step.part: step.options.limit for step in steps(db, sweep_limit=None, **asked) if step.part != "tuning"}
    assert limits == {Part.HEADS: None, Part.IMPORTANCE: 500, Part.PRUNE: None}
    assert {step.options.limit for step in steps(db, sweep_limit=80, **asked) if step.part != "tuning"} == {80}


def test_fewer_seeds_train_random_weights(db):
    (tuning,) = steps(db, tasks=["sst2"], parts=["tuning"], seeds=3, random_seeds=1)
    runs = [unit.arguments for unit in finetune.STUDY.units(replace(tuning.options, checkpoint="atlas-encoder"))]
    counted = Counter(run.source for run in runs)
    assert counted == {"pretrained": 3, "random": 1, "untrained": 3}


def test_the_same_options_give_the_same_plan(db):
    assert steps(db, DECODER, tasks=["stsb"]) == steps(db, DECODER, tasks=["stsb"])


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"tasks": ["nothing"]}, "task"),
        ({"parts": ["everything"]}, "A part of a report must be one of"),
        ({"checkpoints": []}, "at least one checkpoint"),
        ({"rows": 3}, "An option of a report must be one of"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(db, given, sentence):
    with pytest.raises(InputError, match=sentence):
        steps(db, **given)


def test_tasks_without_rows_are_named(db):
    data = find_data(None)
    without = type(data)(**vars(data) | {"dev": ("rte",)})
    with pytest.raises(InputError, match="Choose tasks from rte"):
        plan(db, ReportOptions.read({"checkpoints": ["a"], "tasks": ["stsb"]}), without, {"a": ENCODER})


def test_a_decoders_features_have_the_last_token_too(db):
    asked = {"tasks": ["rte"], "parts": ["features"]}
    mine, of_encoders = (next(iter(steps(db, facts, **asked))) for facts in (DECODER, ENCODER))
    assert mine.options.features == (*of_encoders.options.features, "last")
