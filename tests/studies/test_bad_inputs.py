"""Inputs in which nothing can be: one row, one head, rows that are all alike, no flip, one class, equal weights, two
tokens. Studies say so or say nothing; no p, q or interval claims anything, and nothing ends in a traceback."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from core.errors import AtlasError, InputError
from core.patterns.class_shares import moved_shares, shares
from core.patterns.evaluation import macro_f1_interval
from core.patterns.suggestions import TOO_SMALL
from core.scoring.budget import BudgetAttention, BudgetTokens
from core.scoring.effects import max_t, mean_intervals, metric_intervals, rank_agreement, recovered_share, split_half
from core.scoring.intervals import share_difference, share_of
from core.scoring.mean_patterns import redundancy_agreement
from core.scoring.sequential_test import Rules, standings
from core.studies.ablation.perturb import corrected
from core.studies.ablation.records import Perturbation, ablation_headline, too_few_flips
from core.studies.ablation.separators import ratio_interval
from core.studies.attention import features, norms, redundancy, relations, roles, statistics
from core.studies.attention.budget import STUDY as BUDGET
from core.studies.attention.partials import BudgetSums, InputOffset
from core.studies.outcomes import Metrics
from core.studies.patterns import map_classification, pattern_shares
from core.studies.tagging import open_pipeline
from tests.capture.conftest import tiny

ATTENDING = {
    "features": features,
    "relations": relations,
    "roles": roles,
    "statistics": statistics,
    "norms": norms,
    "redundancy": redundancy,
}
TEXTS = {
    "one row": ["the old dog never stopped"],
    "two tokens": ["x", "x", "x"],
    "all rows alike": ["the old dog never stopped"] * 14,
}


@pytest.fixture(scope="module")
def pipeline():
    return open_pipeline()


@pytest.fixture(scope="module")
def even():
    """All queries 0: every weight of a row is the same."""
    checkpoint = tiny("bert")
    for layer in checkpoint.model.encoder.layer:
        layer.attention.self.query.weight.data.zero_()
        layer.attention.self.query.bias.data.zero_()
    return checkpoint


def _rows(name, checkpoint, pipeline, texts):
    study, changes = ATTENDING[name].STUDY, {"sequences": 2, "period": 2} if name == "roles" else {}
    return study.measured_now(study.read({"texts": texts} | changes), checkpoint, lambda _: pipeline)


def _claims(rows):
    return [row for row in rows if row.get("has") or ((row.get("q") or 1) < 0.05 and (row.get("effect") or 0) > 0)]


@pytest.mark.thorough
@pytest.mark.parametrize("name", ATTENDING)
@pytest.mark.parametrize("texts", TEXTS)
def test_equal_weights_claim_nothing_of_where_heads_look(even, pipeline, name, texts):
    """Also of one row, of inputs of few tokens, and of fourteen times the same row."""
    try:
        rows = _rows(name, even, pipeline, TEXTS[texts])
    except InputError:  # a sentence, such as that two inputs are needed
        return
    if name == "norms":  # equal weights leave the lengths of value vectors, which do differ by token
        return
    assert _claims(rows) == []
    if name in ("features", "relations"):
        said = ATTENDING[name].STUDY.headline(rows).sentence
        assert said.startswith(("Attention is not significantly ", "No input contains the tokens or relations"))
    if texts == "one row":
        assert not [row for row in rows if row.get("p") is not None and row["p"] < 0.05]
    kinds = {row["kind"] for row in rows if row.get("statistic") == "place"}
    assert kinds <= {"broad"}


RIGHT = np.array([1, 0, 1, 1, 0, 1, 0, 0])


def test_one_row_has_no_interval_and_no_claim():
    gold, before, after = np.array([1]), np.array([1]), np.array([[0]])
    assert (max_t(before == gold, after == gold) > 0.05).all()
    for name in ("accuracy", "f1"):
        (one,) = metric_intervals(name, gold, before, after)
        assert one.low is None or one.low < 0 < (one.high or 0) or one.high >= 0
    (mean,) = mean_intervals(np.zeros(1), np.ones((1, 1)), most=None)
    assert mean.low is None
    with pytest.raises(InputError, match="two examples"):
        split_half(np.ones(1), np.ones((1, 1)))
    assert ratio_interval(np.array([1.0]), np.array([2.0])) == (0.5, None, None)
    assert share_of([1], [2]).low is None
    assert share_difference([1], [2], [3]).low is None
    assert np.isnan(recovered_share(np.ones(1), np.zeros(1), np.ones((1, 1))).p).all()


def test_one_head_has_no_ranks_and_no_pairs():
    assert rank_agreement(np.array([1.0]), np.array([2.0])).p is None
    assert np.isnan(redundancy_agreement(np.zeros((1, 1)), np.zeros((1, 1))).p)


def test_no_flip_at_all_is_bounded_and_never_claimed():
    after = np.tile(RIGHT, (3, 1))
    assert (max_t(RIGHT, after) == 1).all()
    for one in metric_intervals("accuracy", RIGHT, RIGHT, after):
        assert (one.value, one.low < 0 < one.high) == (0, True)
    assert too_few_flips(0, 872) == (
        "no CI, because none of 872 predictions changed: a CI needs 5 changed predictions, so at least 4,360 examples"
    )
    assert too_few_flips(2, 872).endswith("about 2,180 examples")
    assert too_few_flips(5, 872) == too_few_flips(None, 872) == ""


def test_a_sentence_has_no_interval_where_few_predictions_flip():
    def rows(flipped):
        metric = {"accuracy": 0.8, "accuracy_change": -0.01, "accuracy_low": -0.02, "accuracy_high": 0.01}
        return [
            {"kind": "baseline", "name": "untouched", "n": 100, "accuracy": 0.81},
            {
                "kind": "variant",
                "name": "L1H1",
                "n": 100,
                "layer": 0,
                "head": 0,
                "flipped": flipped,
                "p": 1.0,
                "mcnemar": 1.0,
                "heads": "",
                **metric,
            },
        ]

    assert "No CI, because" in ablation_headline(rows(1)).interval
    assert ablation_headline(rows(5)).interval.startswith("95 % CI")


def test_all_rows_alike_have_no_claim():
    """Eighty times the same loss says nothing of another row, and equal shares move by nothing."""
    state = standings(np.full((2, 80), 0.01), Rules(0.03, 0.7, 80, 2))
    assert len(state.open) == 2
    counts = np.tile([3, 1], (20, 1))
    assert all(one.low_all == one.high_all == 0 for one in moved_shares(counts, counts, ("a", "b")))
    assert [one.low for one in shares(counts, ("a", "b"))] == [0.75, 0.25]


def test_a_task_of_one_class():
    gold = np.ones(30, dtype=int)
    after = np.ones((2, 30), dtype=int)
    assert (max_t(gold, after) == 1).all()
    for name in ("accuracy", "f1"):
        assert all(one.low is None or one.low <= 0 <= one.high for one in metric_intervals(name, gold, gold, after))
    assert all(one.value is None for one in metric_intervals("pearson", gold, gold.astype(float), after.astype(float)))
    low, high = macro_f1_interval(gold * 0, gold * 0, [str(k) for k in range(30)], 2)
    assert (low, high) == (1, 1)


def test_p_of_perturbations_is_corrected_over_the_kinds():
    def kind(name, p):
        return Perturbation(kind="perturbation", name=name, meaning="", of_rows=9, n=9, metrics=Metrics(()), p=p)

    assert [one.p for one in corrected([kind("a", 0.01), kind("b", None), kind("c", 0.04), kind("d", 0.04)])] == (
        pytest.approx([0.03, None, 0.08, 0.08])
    )
    assert corrected([]) == []


def test_maps_of_three_tokens_are_too_small_to_have_a_pattern(monkeypatch):
    """They are left out and counted; where all are, a sentence says so."""
    lengths = {"x": TOO_SMALL, "a longer cell": 6}
    checkpoint = SimpleNamespace(encode=lambda text, pair: [0] * lengths[text])
    rows = [SimpleNamespace(text=text, pair=None, id=text) for text in ("x", "a longer cell", "x")]
    large, encodings = map_classification.large_enough(checkpoint, rows)
    assert [row.id for row in large] == ["a longer cell"]
    assert [len(one) for one in encodings] == [6]
    nothing = np.zeros(0)
    piece = pattern_shares.ClassifiedChunk("a", (), ("v", "d"), np.zeros((0, 1, 2), dtype=int), *[nothing] * 4, small=3)
    with pytest.raises(AtlasError, match="all 3 inputs of rte are shorter"):
        pattern_shares.STUDY.rows(pattern_shares.PatternSharesOptions(task="rte"), pattern_shares.Counts((piece,)))


# ---------------------------------------------------------------- attention budgets


def _budget(checkpoint, texts, **changes):
    return BUDGET.measured_now(BUDGET.read({"texts": texts, "pipeline": "none"} | changes), checkpoint, open_pipeline)


def test_a_budget_of_one_token_says_that_nothing_was_measured():
    """A decoder without a start token, whose only query sees only itself."""
    tokens = BudgetTokens(None, (), *(np.zeros(1, int),) * 3, np.zeros(1, bool), [], 0)
    observer = BudgetAttention(1, 1, causal=True)
    observer.take([tokens], [0]).update(0, torch.ones(1, 1, 1, 1), [0])
    sums = BudgetSums(InputOffset("c", "text", 0), 1, 1, True, observer.means, False)
    rows = [score.as_row() for score in BUDGET.scores(BUDGET.options(), sums)]
    assert {row.get("note") for row in rows} == {"no input has such a key"}
    assert BUDGET.headline(rows).sentence.startswith("Attention to kinds of tokens was not measured")


def test_a_budget_of_special_tokens_alone_adds_up_to_1():
    """A typed [SEP] is a token of the text."""
    checkpoint = tiny("bert")
    assert checkpoint.encode("[SEP]").tokens == ("[CLS]", "[SEP]", "[SEP]")
    rows = _budget(checkpoint, ["[SEP]"])
    for statistic in ("budget", "classifying budget"):
        shares = [row["value"] for row in rows if row["statistic"] == statistic and row.get("layer") == 0]
        assert sum(shares) == pytest.approx(checkpoint.heads)
    assert "give" in BUDGET.headline(rows).sentence


@pytest.mark.thorough
def test_a_pipeline_that_cannot_parse_leaves_syntax_out_and_says_so(tmp_path):
    import spacy

    spacy.blank("en").to_disk(tmp_path)
    rows = _budget(tiny("bert"), ["the old dog never stopped"], pipeline=str(tmp_path))
    assert not {"governor", "dependent"} & {row["feature"] for row in rows}
    assert "contested" not in {row["statistic"] for row in rows}
    assert "language pipeline that parses" in BUDGET.warnings(rows)[0]
    with pytest.raises(InputError, match="has no dependency parser"):
        features.STUDY.measured_now(
            features.STUDY.read({"texts": ["the dog"], "pipeline": str(tmp_path)}), tiny("bert"), open_pipeline
        )
