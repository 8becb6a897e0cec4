"""What a claim says of rows that cannot bear it: one head, one seed, no numbers."""

from dataclasses import replace

import numpy as np
import pytest

from core.report.claims import claim
from core.report.claims.outcomes import FAILS, HOLDS, KNOWN_ERROR, UNDECIDED, UNTESTED
from core.report.data import Facts, find_data, rows_in_both
from core.report.rendering.words import numbers_of
from core.report.report import evidence_of, outcomes
from core.studies.ablation import disable
from tests.report.evidence_made import CHECKPOINT, evidence, found, layer_rows
from tests.simulations import claim_worlds

PLANTED = {world.claim: world for world in claim_worlds.PLANTED}
BY_COUNTS = {
    "keeps-its-heads",
    "few-meaningful",
    "nothing-changes",
}  # of maps and of predictions: they have no number that can be NaN
MEASURED = ("value", "low", "high", "effect", "accuracy_", "ratio")
WORDS = (HOLDS, FAILS, UNDECIDED, UNTESTED, KNOWN_ERROR)


def made(name, change):
    """Evidence of a claim's world "twice", each row changed."""
    world = PLANTED[name]
    some = world.plant(world.truth["twice"], np.random.default_rng(0))
    return replace(
        some,
        results=tuple(
            replace(result, rows=tuple(row for row in map(change, result.rows) if row is not None))
            for result in some.results
        ),
    )


def first_head(row):
    """The row, if it is of the first head or of none."""
    return row if (row.get("layer") or 0) == 0 and (row.get("head") or 0) == 0 else None


def without_numbers(row):
    measured = (*MEASURED, "share") if "part" in row else MEASURED
    return {name: float("nan") if name.startswith(measured) else value for name, value in row.items()}


@pytest.mark.thorough
@pytest.mark.parametrize("name", PLANTED)
def test_a_checkpoint_with_one_head_gets_a_word_and_no_traceback(name):
    for one in claim(name).test(made(name, first_head)):
        assert one.outcome in WORDS
        assert one.said


@pytest.mark.thorough
@pytest.mark.parametrize("name", sorted(set(PLANTED) - BY_COUNTS))
def test_rows_of_nan_decide_nothing(name):
    for one in claim(name).test(made(name, without_numbers)):
        assert one.outcome in (UNDECIDED, UNTESTED), one.said


def test_one_seed_is_said_in_the_verdict():
    (record,) = outcomes(claim("last-two-layers"), evidence(found("change", layer_rows((0.9, 0.9, 0.5, 0.4)), "rte")))
    assert record.seeds == 1
    assert "one seed of fine-tuning" in numbers_of(record)


def test_equal_sentences_in_both_splits_are_counted_and_said(tmp_path):
    (tmp_path / "SST-2").mkdir()
    for split, texts in (("train", ("one", "two", "two", "three")), ("dev", ("two", "four", "three"))):
        lines = "".join(f"{text}\t{k % 2}\n" for k, text in enumerate(texts))
        (tmp_path / "SST-2" / f"{split}.tsv").write_text(f"sentence\tlabel\n{lines}")
    data = find_data(str(tmp_path))
    assert rows_in_both("sst2", data.glue) == 2
    some = claim_worlds.PLANTED[0].plant(0.02, np.random.default_rng(0)).results[0]
    tuned = found("tuning", [{"kind": "none"}], "sst2")
    (known,) = evidence_of([some, tuned], data, {CHECKPOINT: Facts(causal=False, preset="small")})
    assert known.learned == {"sst2": 2}


@pytest.mark.parametrize("split", ["unseen", "dev"])
def test_a_verdict_on_train_rows_that_were_never_seen_says_so(split):
    world = PLANTED["some-head"]
    (swept,) = world.plant(world.truth["twice"], np.random.default_rng(0)).results
    about = replace(swept, step=replace(swept.step, options=disable.DisableOptions("tuned", "sst2", split=split)))
    (told,) = outcomes(claim("some-head"), evidence(about))
    assert ("train examples that share no 4 consecutive words" in told.said) == (split == "unseen")


@pytest.mark.parametrize(("name", "said"), [("random-head", True), ("neighbours", False)])
def test_a_verdict_on_dev_rows_that_were_learned_from_says_so(name, said):
    world = PLANTED[name]
    some = world.plant(world.truth["twice"], np.random.default_rng(0))
    (plain,), (told,) = (outcomes(claim(name), replace(some, learned=by)) for by in ({}, {"rte": 3, "sst2": 3}))
    assert (told.said != plain.said) == said
    assert ("3 dev examples of this task are also train examples" in told.said) == said
