"""The planted head is what a race finds, from few rows; rounds run in any order; bad input is a sentence."""

import random
from itertools import pairwise

import numpy as np
import pytest
import torch

from core.errors import InputError, InterventionError
from core.studies.ablation import sequential_test
from core.studies.ablation.records import SequentialTestSummary
from core.studies.ablation.sequential_test import STUDY, SequentialTestOptions, verdict_sentence
from core.tasks.glue import task_of
from tests.studies.figures import figures
from tests.studies.planted import CARRIER, save_planted, write_rows
from tests.studies.through_json import rows_of


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted")
    torch.set_num_threads(1)
    checkpoint = save_planted(folder / "checkpoint")
    return {"checkpoint": str(checkpoint), "task": "sst2", "data": str(write_rows(folder / "data", 150))}


HARDER = {"margin": 1.1, "clip": 4.0, "first": 16}  # near the carrier's effect: several rounds


def verdicts(rows):
    return {row["name"]: row["verdict"] for row in rows if row["kind"] == "verdict"}


@pytest.mark.thorough
def test_the_planted_head_matters_and_the_others_do_not(options):
    rows = rows_of("sequential-test", options)
    whole, body = rows[0], [row for row in rows if row["kind"] == "verdict"]
    assert {name for name, verdict in verdicts(rows).items() if verdict == "matters"} == {str(CARRIER)}
    assert set(verdicts(rows).values()) == {"matters", "does not matter"}
    assert (whole["matters"], whole["does not matter"], whole["open"], whole["over"]) == (1, 11, 0, True)
    assert whole["margin"] == pytest.approx(0.05 * np.log(2))
    assert whole["clip"] == pytest.approx(np.log(2))
    assert whole["fewest"] == 134  # rows of which bets against heads without any effect make 2 x 12 / .05
    assert whole["intervals"] == "bets"
    assert whole["evaluations"] == 64 + 11 * 150  # the carrier at once, the others when there are rows enough
    carrier = next(row for row in body if row["name"] == str(CARRIER))
    assert carrier["effect_low"] > whole["margin"]
    assert carrier["effect_low"] < carrier["effect"] == carrier["value"] < carrier["effect_high"]
    assert carrier["accuracy_change"] == pytest.approx(-0.5, abs=0.1)  # of all 150 rows
    assert carrier["accuracy_high"] < 0
    assert all(row.get("accuracy_change") is None for row in body if row is not carrier)
    assert STUDY.headline(rows).sentence == (
        f"Ablation changes the loss by more than the margin for 1 of 12 heads ({CARRIER}). For 11 heads, "
        "ablation changes the loss by less than the margin. For 0 heads, the test is undecided."
    )
    looks = [row for row in rows if row["kind"] == "look"]
    assert [(row["rows"], row["open"], row["settled"]) for row in looks] == [(64, 12, 1), (150, 11, 11)]
    assert 150 < whole["passes_full"] < 150 * (1 + 12), "a plain pass of each row, and the layers from each head on"
    assert whole["forward_ratio"] == pytest.approx(whole["passes_full"] / whole["passes"])
    assert "95" in figures(STUDY.headline(rows).interval)


@pytest.mark.thorough
def test_effects_are_those_of_a_sweep_of_the_same_rows(options):
    """The race's mean at its look is the mean change of the loss, counted one head and row at a time."""
    from core.capture.interventions import Intervention
    from core.capture.losses import row_losses
    from core.capture.running import predict
    from core.studies.ablation import setup

    rows = rows_of("sequential-test", options)
    chosen = STUDY.read(options)
    opened, every = setup.opened(chosen), setup.rows_of(chosen)
    first = [every[k] for k in sequential_test.row_order(chosen, len(every))[:64]]
    labels, encodings = opened.outputs(first), opened.encoded(first)
    plain = row_losses(predict(opened.checkpoint, encodings), labels)
    touched = [Intervention("disable", frozenset({CARRIER}))]
    changed = row_losses(predict(opened.checkpoint, encodings, interventions=touched), labels)
    row = next(row for row in rows if row.get("name") == str(CARRIER))
    most = float(np.log(2))
    assert row["effect"] == pytest.approx(float((changed.clamp_max(most) - plain.clamp_max(most)).mean()), abs=1e-4)


def test_units_in_any_order_give_the_same_verdicts(options):
    harder = options | HARDER
    found = rows_of("sequential-test", harder)
    assert len([row for row in found if row["kind"] == "look"]) > 1
    assert found == rows_of("sequential-test", harder, order=random.Random(2))  # noqa: S311 - the order of units


def test_a_race_under_way_has_rows_after_every_unit(options):
    """Of each round, also while some of its rows are missing: open, or as at the last look."""
    chosen = STUDY.read(options | HARDER)
    units, partials, seen = STUDY.units(chosen), [], []
    while units:
        for unit in units:
            partials.append(STUDY.run(chosen, unit).partial)
            seen.append(STUDY.summarize(chosen, partials))
        units = STUDY.more(chosen, partials)
    assert [rows[0]["over"] for rows in seen] == [False] * (len(seen) - 1) + [True]
    assert set(verdicts(seen[0]).values()) == {"open"}
    for earlier, later in pairwise(map(verdicts, seen)):
        assert all(later[name] == verdict for name, verdict in earlier.items() if verdict != "open")
    assert seen[-1] == rows_of("sequential-test", options | HARDER)


@pytest.mark.slow  # 2 CPU seconds; units in any order are default
def test_slices_of_another_size_give_the_same_verdicts(options, monkeypatch):
    found = rows_of("sequential-test", options | HARDER)
    monkeypatch.setattr(sequential_test, "EXACT_A_UNIT", 5)
    again = rows_of("sequential-test", options | HARDER)
    assert verdicts(found) == verdicts(again)
    assert [row.get("rows") for row in found] == [row.get("rows") for row in again]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(
            {"what": "layers"}, 3, marks=pytest.mark.slow
        ),  # 2 CPU seconds; a head and a group race by default
        ({"heads": "L1H1; L2H3,L3H1"}, 2),
    ],
)
def test_layers_and_groups_race_too(options, change, expected):
    found = verdicts(rows_of("sequential-test", options | change))
    assert len(found) == expected
    matters = {name for name, verdict in found.items() if verdict == "matters"}
    assert matters == ({"L2"} if "what" in change else {"L2H3,L3H1"})


@pytest.mark.thorough
@pytest.mark.parametrize(
    "operator",
    ["mean", *(pytest.param(name, marks=pytest.mark.slow) for name in ("zero", "resample"))],  # 3 CPU seconds a race
)
def test_whatever_stands_in_the_planted_head_matters(options, operator):
    rows = rows_of("sequential-test", options | {"operator": operator, "reference": 20, "draws": 2})
    matters = {name for name, verdict in verdicts(rows).items() if verdict == "matters"}
    assert matters == {str(CARRIER)}
    assert rows[0]["operator"] == operator


@pytest.mark.thorough
def test_the_verdict_says_what_is_clipped_and_how_many_rows_it_takes(options):
    (whole,) = [
        row for row in rows_of("sequential-test", options | {"limit": 64, "survivors": False}) if row["kind"] == "race"
    ]
    assert whole["does not matter"] == 0
    said = verdict_sentence(SequentialTestSummary.of(whole))
    assert "The loss of an example is clipped at 0.69" in said
    assert "fewer than 5.0% of the examples" in said
    assert "At least 134 examples are needed to show that a head does not matter, but only 64 are available." in said
    before = {name: value for name, value in whole.items() if name not in ("clip", "fewest", "hopeless")}
    assert whole["hopeless"] == 0  # all rows are taken
    assert (
        "11 are undecided. The test of 2 undecided heads was stopped for futility, because the chance of a verdict "
        "with all examples is below 5%."
    ) in verdict_sentence(SequentialTestSummary.of(whole | {"hopeless": 2}))
    assert "is clipped at" not in verdict_sentence(
        SequentialTestSummary.of(before)
    )  # of races of before, that clipped nothing


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("passes", "says"),
    [(200.0, "5.0 times less computation than"), (1500.0, "1.5 times the computation of")],
)
def test_a_test_that_took_more_than_ablating_every_head_says_so(options, passes, says):
    (whole,) = [
        row for row in rows_of("sequential-test", options | {"limit": 64, "survivors": False}) if row["kind"] == "race"
    ]
    said = verdict_sentence(SequentialTestSummary.of(whole | {"passes": passes, "passes_full": 1000.0}))
    assert f"{says} ablating every target on all examples ({passes:,.0f} instead of 1,000 forward passes)" in said


@pytest.mark.thorough
def test_without_survivors_no_metric_is_swept(options):
    rows = rows_of("sequential-test", options | {"survivors": False})
    assert not [row for row in rows if "accuracy_change" in row]


@pytest.mark.thorough
def test_verdicts_of_earlier_versions_are_told_from_todays(options):
    (whole,) = [row for row in rows_of("sequential-test", options | {"limit": 64}) if row["kind"] == "race"]
    assert "At most 5% of such tests have a wrong verdict" in verdict_sentence(SequentialTestSummary.of(whole))
    earlier = verdict_sentence(SequentialTestSummary.of(whole | {"intervals": "at looks"}))
    assert "Run the test again" in earlier
    assert "At most 5%" not in earlier


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"margin": 0.0}, "above 0"),
        ({"margin": -1.0}, "above 0"),
        ({"clip": 0.01}, r"above the margin of 0\.0346"),
        ({"limit": 40}, "at least 64 examples for its first interim analysis; got 40"),
        ({"what": "duplicates"}, "heads, layers"),
        ({"heads": "L1H1,L2-attention", "operator": "zero"}, "sublayers and layers"),
        ({"operator": "resample", "reference": 1}, "two reference examples; got 1"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(options, change, said):
    with pytest.raises(InputError, match=said):
        STUDY.units(STUDY.read(options | change))


def test_heads_beside_something_else_to_race_are_refused(options):
    with pytest.raises(InputError, match="Remove the named heads, or set the option “what” to groups"):
        STUDY.read(options | {"what": "layers", "heads": "L1H1"})


def test_rows_of_one_class_cannot_race(options, tmp_path):
    folder = write_rows(tmp_path / "data", 150)
    file = folder / "SST-2" / "dev.tsv"
    lines = file.read_text().splitlines()
    file.write_text("\n".join([lines[0], *(line[:-1] + "1" for line in lines[1:])]) + "\n")
    with pytest.raises(InputError, match="more than one class"):
        STUDY.units(STUDY.read(options | {"data": str(folder)}))


@pytest.mark.thorough
def test_an_operator_without_effect_is_an_error_not_a_result(options, monkeypatch):
    from core.capture import losses

    real = losses.effects

    def still(*arguments, **named):
        measured = real(*arguments, **named)
        return losses.Effects(
            measured.plain, measured.exact * 0, measured.logits, measured.changed, measured.fast, measured.dtype
        )

    monkeypatch.setattr(losses, "effects", still)
    with pytest.raises(InterventionError, match="changed none of the first 64"):
        rows_of("sequential-test", options)


def test_the_margin_is_a_share_of_what_knowing_nothing_costs():
    task, scores = task_of("sst2"), task_of("stsb")
    rows = [sequential_test.TaskRow("dev-1", "a", None, label) for label in (0, 0, 0, 1)] * 16
    graded = [sequential_test.TaskRow("dev-1", "a", "b", score) for score in (0.0, 5.0)] * 32
    nothing = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25))

    def margin_and_clip(task, rows, **asked):
        rules = sequential_test.rules_of(SequentialTestOptions(checkpoint="any", **asked), task, rows, 3)
        return rules.margin, rules.clip

    assert margin_and_clip(task, rows) == pytest.approx((0.05 * nothing, nothing))
    assert margin_and_clip(scores, graded) == pytest.approx((0.05 * 6.25, 6.25))
    assert margin_and_clip(task, rows, margin=0.5) == pytest.approx((0.5, 1.0))
    assert margin_and_clip(task, rows, margin=0.1, clip=3.0) == (0.1, 3.0)


def test_a_row_counts_up_to_the_clip():
    loss, effects = np.array([0.1, 0.5, 2.0]), np.array([[3.0, 0.1, -1.9], [np.nan, -0.2, 1.0]])
    found = sequential_test.clipped(loss, effects, 0.7)
    np.testing.assert_allclose(found, [[0.6, 0.1, -0.6], [np.nan, -0.2, 0.0]])
