"""What `development` and `match` say of figures made by hand: every column by another way, every sentence."""

import numpy as np
import pytest
from scipy import stats

from core.scoring.counterparts import similarity_sums
from core.scoring.definitions import BOUNDS, CLASS_SHARE
from core.studies.comparison.counterparts import STUDY as MATCH
from core.studies.comparison.counterparts import Compared, CounterpartsPartial, Drawn
from core.studies.comparison.development import STUDY as DEVELOPMENT
from core.studies.comparison.development import Stages, StageScores
from core.studies.comparison.records import (
    Beginning,
    Counterpart,
    CounterpartsSummary,
    CurvePoint,
    RecurrenceSummary,
    RoleBeginnings,
)

SCORES = ("previous", "first", f"{CLASS_SHARE}vertical")
# From which of five snapshots on each of two layers' three heads is above its score's bound; 5: never.
BEGINS = {"previous": [[1, 1, 1], [1, 1, 5]], "first": [[3, 3, 5], [3, 3, 3]], SCORES[2]: [[2, 5, 5], [0, 5, 5]]}


def stages(begins):
    """Below the bound by 0.1, then above it by 0.1; the interval reaches the bound for one more snapshot."""
    made = []
    for order in range(5):
        above = np.array([begins[score] for score in SCORES]) <= order
        late = np.array([begins[score] for score in SCORES]) <= order - 1
        bounds = np.array([BOUNDS.get(score, 0.5) for score in SCORES])[:, None, None]
        value = bounds + np.where(above, 0.1, -0.1)
        low, high = np.where(late, value - 0.05, value - 0.2), value + 0.05
        at = np.array([0, 1, 2, 5, 4, 3])
        made.append(StageScores(order, f"step{order}", f"hash{order}", SCORES, value, low, high, at, 7))
    return Stages(tuple(made))


def test_a_curve_gives_each_head_the_scores_of_its_match_and_each_role_its_beginning():
    options = DEVELOPMENT.read({"checkpoints": ["a", "b"], "texts": ["t"]})
    whole = stages(BEGINS)
    merged = DEVELOPMENT.merge(options, [Stages(whole.stages[3:]), Stages(whole.stages[:3])])
    results = DEVELOPMENT.results(options, merged)
    points = [result for result in results if isinstance(result, CurvePoint)]
    assert len(points) == 5 * 3 * 6
    assert [point.snapshot for point in points[:: 3 * 6]] == [f"step{k}" for k in range(5)]
    for point in points:
        stage, number = whole.stages[point.order], SCORES.index(point.score)
        place = {(1, 0): (1, 2), (1, 2): (1, 0)}.get((point.layer, point.head), (point.layer, point.head))
        assert (point.at_layer, point.at_head) == place
        ends = [float(end[(number, *place)]) for end in (stage.value, stage.low, stage.high)]
        assert [point.value, point.low, point.high] == ends
        assert (point.snapshot, point.n, point.weights_hash) == (stage.label, 7, f"hash{point.order}")
    begun = {(one.score, one.layer, one.head): one for one in results if isinstance(one, Beginning)}
    assert len(begun) == 5 + 5 + 2
    first = begun["first", 1, 1]
    assert (first.after, first.by, first.order) == ("step2", "step3", 3)
    assert (first.earliest, first.latest, first.bound) == ("step3", "step4", BOUNDS["first"])
    assert begun[SCORES[2], 1, 2].after is None  # of the head that it is matched with, from the first snapshot on
    assert begun[SCORES[2], 1, 2].by == "step0"
    orders = {one.score: one for one in results if isinstance(one, RoleBeginnings)}
    assert [(one.heads, one.earliest, one.median, one.place, one.snapshots) for one in orders.values()] == [
        (5, "step1", "step1", 1, 5),
        (5, "step3", "step3", 3, 5),
        (2, "step0", "step0", 0, 5),
    ]
    assert [(one.low, one.high, one.first) for one in list(orders.values())[:2]] == [
        ("step1", "step1", 1),
        ("step3", "step3", 0),
    ]
    said = DEVELOPMENT.headline([result.as_row() for result in results])
    assert said.sentence == (
        "During training, heads come to attend mostly to one kind of token, in this order: previous token (5 heads, "
        "half of them by step1), first token (5 heads, half of them by step3). The role previous token "
        "begins significantly earlier than the other roles. Heads come to have one pattern class in most maps: "
        "vertical (2 heads, half of them by step0)."
    )
    level = DEVELOPMENT.results(options, stages(BEGINS | {"first": BEGINS["previous"]}))
    assert (
        " This order is that of one training run and was not tested. Heads"
        in DEVELOPMENT.headline([one.as_row() for one in level]).sentence
    )
    never = DEVELOPMENT.results(options, stages(dict.fromkeys(SCORES, [[5] * 3] * 2)))
    assert DEVELOPMENT.headline([one.as_row() for one in never]).sentence == (
        "In the last snapshot, no head attends mostly to the previous, next or first token or to separators."
    )


# ---------------------------------------------------------------- match

# How far three heads are from the other checkpoint's four: the first two have changed places.
APART = np.array([[0.5, 0.1, 0.6, 0.7], [0.2, 0.6, 0.5, 0.9], [0.6, 0.5, 0.5, 0.4]])
SWAY = 0.05 * np.array([-1, 1, -1, 1, -1, 1, 1, -1])


def compared(numbers, name="b", *, backward=False, weights=("h", "g"), apart=APART):
    """Inputs of these numbers; each head is SWAY closer or further from every other on an input."""
    distances = apart + SWAY[list(numbers), None, None]
    sums = similarity_sums(distances, np.array(list(numbers)))
    return Compared(sums.sums, sums.inputs, 1, 2, "tokens", backward, *weights, name)


def drawn(name="b", draws=19):
    """Random weights are as near to head 3 as the other checkpoint is, and nearer than it to no other."""
    largest = np.stack([[0.5, 0.5, 0.6 + 0.02 * (k % 2)] for k in range(draws)]) + 0.001 * np.arange(draws)[:, None]
    return Drawn(1 - APART, largest, 6, name)


def test_counterparts_have_their_similarity_its_interval_and_p_beside_random_weights():
    options = MATCH.read({"checkpoint": "a", "compare": "b", "texts": ["t"]})
    merged = MATCH.merge(
        options,
        [
            CounterpartsPartial((compared([5, 6, 7]),)),
            CounterpartsPartial(drawn=(drawn(),)),
            CounterpartsPartial((compared(range(5)),)),
        ],
    )
    results = MATCH.results(options, merged)
    heads, (whole,) = (
        [one for one in results if isinstance(one, Counterpart)],
        [one for one in results if isinstance(one, CounterpartsSummary)],
    )
    assert [(one.layer, one.head, one.match_layer, one.match_head) for one in heads] == [
        (0, 0, 0, 1),
        (1, 0, 0, 0),
        (2, 0, 1, 1),
    ]
    reach = stats.t.isf(0.025, 7) * SWAY.std(ddof=1) / np.sqrt(8)
    assert [(one.similarity, one.low, one.high) for one in heads] == [
        pytest.approx((value, value - reach, value + reach)) for value in (0.9, 0.8, 0.6)
    ]
    assert [one.margin for one in heads] == pytest.approx([0.4, 0.3, 0.1])
    assert [one.margin_low for one in heads] == pytest.approx([0.4, 0.3, 0.1])  # the same on every input
    assert [(one.best_layer, one.best_head) for one in heads] == [(0, 1), (0, 0), (1, 1)]
    assert [one.best for one in heads] == pytest.approx([0.9, 0.8, 0.6])
    assert [(one.p <= 0.05, one.agrees, one.matched, one.n) for one in heads] == [
        (True, True, True, 8),
        (True, True, True, 8),
        (False, True, False, 8),
    ]
    assert (whole.matched, whole.same_place, whole.heads, whole.others, whole.draws) == (2, 0, 3, 4, 19)
    assert (whole.rows, whole.n, whole.visible, whole.identical) == (6, 8, "all", False)
    said = MATCH.headline([one.as_row() for one in results])
    assert said.sentence == "2 of 3 heads of a have a counterpart in b."
    assert (said.n, said.of, said.baseline) == (
        8,
        "inputs",
        "The baseline consists of 19 models with random weights. Their attention has the same entropy as the attention "
        "of the compared checkpoint.",
    )
    seen_back = CounterpartsPartial((compared(range(8), backward=True),), (drawn(),))
    (words,) = [one for one in MATCH.results(options, seen_back) if isinstance(one, CounterpartsSummary)]
    assert words.visible == "up to the query"
    assert MATCH.headline([words.as_row()]).sentence.endswith("in b, over cells that both see.")
    undrawn = MATCH.results(options, CounterpartsPartial((compared(range(8), weights=("h", "h")),)))
    assert [(one.p, one.matched) for one in undrawn[:3]] == [(None, False)] * 3
    assert MATCH.headline([one.as_row() for one in undrawn]).sentence == (
        "0 of 3 heads of a have a counterpart in b. Both checkpoints have the same weights, so every head is most "
        "similar to itself."
    )
    fewer = MATCH.results(options, CounterpartsPartial((compared(range(8), apart=APART[:, :2]),), (drawn(),)))
    assert [(one.match_layer, one.match_head, one.similarity, one.low, one.p) for one in fewer[2:3]] == [(None,) * 5]


def test_heads_that_recur_are_counted_over_checkpoints():
    options = MATCH.read({"checkpoint": "a", "compare": "b", "also": ["c"], "texts": ["t"]})
    both = tuple(compared(range(8), name) for name in "bc"), (drawn("b"), drawn("c"))
    results = MATCH.results(options, CounterpartsPartial(*both))
    (whole,) = [one for one in results if isinstance(one, RecurrenceSummary)]
    assert (whole.runs, whole.heads, whole.everywhere, whole.nowhere) == (2, 3, 2, 1)
    assert whole.share == pytest.approx(2 / 3)
    said = MATCH.headline([one.as_row() for one in results])
    assert said.sentence == (
        "2 of 3 heads of a have a counterpart in all 2 other checkpoints. The number of heads without any "
        f"counterpart is 1. On average, 67 % of the heads (95 % CI {100 * whole.low:.0f} to {100 * whole.high:.0f}) "
        "have a counterpart in another checkpoint."
    )
    assert (said.n, said.of, said.baseline) == (
        8,
        "inputs",
        "The baseline consists of models with random weights. These models have the same architecture and the same "
        "attention entropy as the compared checkpoints.",
    )
