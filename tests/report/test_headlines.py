"""Headlines of results: true of rows whose answer is known, and of every study that ships."""

import pytest

from core.report.headlines import has_headline, headline
from core.store import shipped_record
from core.studies.lookup import study_modules

SWEEP = [
    {"kind": "baseline", "name": "untouched", "n": 40, "accuracy": 0.8},
    {
        "kind": "variant",
        "name": "L1H1",
        "accuracy_change": 0.025,
        "accuracy_low": 0.0,
        "accuracy_high": 0.05,
        "p": 0.4,
        "n": 40,
    },
    {
        "kind": "variant",
        "name": "L1H2",
        "accuracy_change": -0.25,
        "accuracy_low": -0.4,
        "accuracy_high": -0.1,
        "p": 0.01,
        "n": 40,
    },
]


def test_a_sweep_names_the_worst_head_with_its_interval():
    said = headline("disable", SWEEP)
    assert said.sentence.startswith("Ablating L1H2 changes accuracy most, by -25.0 points. 1 of 2 changes")
    assert (said.n, said.of, said.baseline) == (40, "examples", "The unmodified model scores 80.0.")
    assert said.interval == "L1H2 has a 95 % CI of -40.0 to -10.0, not corrected for the 2 ablations."


def test_a_null_is_said_beside_the_head_that_beats_it():
    rows = [
        {
            "layer": 0,
            "head": k,
            "feature": "noun",
            "statistic": "max",
            "value": v,
            "baseline": 0.1,
            "effect": v - 0.1,
            "q": q,
            "n": 7,
        }
        for k, (v, q) in enumerate([(0.9, 0.5), (0.4, 0.01)])
    ]
    said = headline("features", rows)
    assert said.sentence == (
        "In 1 of 2 head–feature pairs, attention is significantly higher than for random tokens at similar "
        "positions. The largest difference is that of head L1H2 and the token type noun: 0.40, compared with 0.10."
    )
    assert said.baseline == "The baseline (random tokens at similar positions) has a value of 0.10."


@pytest.mark.parametrize("rows", [[], [{"kind": "of an earlier version"}]])
def test_rows_of_an_earlier_version_are_counted(rows):
    counted = "The result has 1 row." if rows else "The result has 0 rows."
    assert headline("disable", rows).sentence == counted
    assert headline("no such study", rows).sentence == counted


STORES_NO_RESULT = {"draw-maps", "index-frames", "train-patterns"}  # what they keep is maps, an index, a classifier


def test_every_study_has_a_headline():
    assert set(filter(has_headline, study_modules())) == study_modules().keys() - STORES_NO_RESULT


@pytest.mark.parametrize("study", ["syntax", "probe", "representation", "transfer", "subnetworks"])
def test_the_examples_have_a_sentence_with_interval_and_baseline(study):
    known = shipped_record.runs(study)
    assert len(known)
    for run in known["run"]:
        said = headline(study, shipped_record.run_rows(run))
        assert said.sentence.endswith(".")
        assert said.n
        assert said.interval
        assert said.baseline or "above a constant prediction (" in said.sentence


def test_roles_are_counted_by_heads_that_have_them():
    rows = [
        {"statistic": role, "role": role, "layer": 0, "head": head, "value": 0.5, "has": has, "n": 9}
        for role, head, has in (("previous", 0, True), ("previous", 1, False), ("separator", 0, True))
    ]
    said = headline("roles", rows)
    assert said.sentence == (
        "1 head has a role, such as attending to the previous token. The roles are previous (1 head), separator (1 "
        "head)."
    )
    assert said.n == 9


def test_the_nearest_heads_are_named():
    rows = [
        {
            "kind": "head",
            "checkpoint": "a",
            "task": "sst2",
            "name": f"L1H{k + 1}",
            "layer": 0,
            "head": k,
            "n": 9,
            "value": 0.1 * (k + 1),
            "other": "L1H3",
            "group": k + 1,
            "clear": 0.2,
        }
        for k in range(2)
    ]
    assert headline("redundancy", rows).sentence.startswith(
        "Heads L1H1 and L1H3 have the most similar attention (distance 0.100). "
        "Clustered by mean attention pattern, the 2"
    )


@pytest.mark.thorough
def test_every_result_that_ships_has_a_sentence_and_its_n():
    known = shipped_record.runs()
    assert len(known)
    for run in known.itertuples():
        said = headline(run.study, shipped_record.run_rows(run.run))
        assert has_headline(run.study)
        assert not said.sentence[0].isdigit() or " of " in said.sentence, run.title
        assert said.sentence.endswith("."), run.title
        assert said.n, run.title


def swept(*changes, p=1.0):
    """Rows of an ablation of each head in turn with these changes of accuracy."""
    heads = [
        {"kind": "variant", "name": f"L1H{k}", "n": 40, "p": p, "accuracy_change": change,
         "accuracy_low": change - 0.1, "accuracy_high": change + 0.1}
        for k, change in enumerate(changes, start=1)
    ]  # fmt: skip
    return [{"kind": "baseline", "name": "untouched", "n": 40, "accuracy": 0.8}, *heads]


def test_the_largest_change_of_a_sweep_may_be_a_rise():
    assert headline("disable", swept(-0.009, 0.0175, p=0.01)).sentence.startswith(
        "Ablating L1H2 changes accuracy most, by +1.8 points. 2 of 2 changes are significant"
    )


def test_a_sweep_without_a_significant_change_says_so_first():
    assert headline("disable", swept(-0.02, 0.01)).sentence == (
        "No ablation changes accuracy significantly. Ablating L1H1 changes accuracy most, by -2.0 points."
    )


def test_a_sweep_in_which_nothing_changes_names_no_head():
    assert headline("disable", swept(0.0, 0.0)).sentence == "No ablation changes accuracy: all 2 changes are 0."
