"""Sentences on what heads do together, and on the ways to rank them, as tests of Shapley values, gates and pairs."""

from ...studies.circuits.records import HeadPair, OrderContrast, RankingCorrelation, ShapleyHead, ShapleySum
from ...studies.estimate import Estimate
from ..evidence import Evidence, StepResult
from ..ids import Part
from .outcomes import HOLDS, Decision, Outcome, decided, for_each, found_by, said

ALIKE = 0.5  # a rank correlation: a quarter of one ranking's variance is the other's
AS_MUCH = -0.05  # of the whole logit difference, that an order may keep less


def agrees(result: StepResult, *names: str) -> Outcome | None:
    """Spearman's correlation over heads of two ways to rank them, with its bootstrap interval over heads."""
    chosen = [
        correlation
        for correlation in RankingCorrelation.among(result.rows)
        if {correlation.first, correlation.second} == set(names)
    ]
    if not chosen or chosen[0].value is None:
        return None
    (correlation,) = chosen
    estimate = Estimate(float(correlation.value or 0.0), correlation.low, correlation.high)
    return found_by(
        result, decided(estimate, ALIKE), f"Spearman {said(estimate)} over {correlation.n} heads", correlation.n
    )


@for_each(Part.SHAPLEY)
def gradient_and_effect(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Spearman's correlation over heads of importance by gradient with the exact effect on the logit difference of
    taking each head out alone, its bootstrap interval over heads above one half."""
    return agrees(result, "gradient", "effect")


@for_each(Part.SHAPLEY)
def gradient_and_shapley(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Spearman's correlation over heads of importance by gradient with Shapley values, its bootstrap interval over
    heads above one half."""
    return agrees(result, "gradient", "Shapley value")


@for_each(Part.GATES)
def gradient_and_gate(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Spearman's correlation over heads of importance by gradient with gates that were trained to stay open or to
    close, its bootstrap interval over heads above one half."""
    return agrees(result, "gradient", "gate")


@for_each(Part.SHAPLEY)
def greedy_by_gradient(evidence: Evidence, result: StepResult) -> Outcome | None:
    """With heads removed weakest first, Michel's order by gradient keeps no less of the logit difference than the order
    by Shapley value, up to a twentieth of the whole: mean over all steps and rows that made neither order, paired."""
    contrasts, sums = OrderContrast.among(result.rows), ShapleySum.among(result.rows)
    if not contrasts or not sums or not sums[0].with_all > 0:
        return None
    (contrast,), full_difference = contrasts, sums[0].with_all
    value, high, low = (
        None if end is None else -end / full_difference for end in (contrast.value, contrast.low, contrast.high)
    )  # what gradient keeps
    if value is None:
        return None
    estimate = Estimate(value, low, high)
    sentence = f"the order by gradient keeps {said(estimate)} of the logit difference more than that by Shapley value"
    return found_by(result, decided(estimate, AS_MUCH), sentence, contrast.n)


@for_each(Part.SHAPLEY)
def all_combinations(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Arithmetic: n heads have 2 to the n sets. What each head adds over all of them is estimated from a few orders of
    the heads, with intervals; every pair can be tried."""
    heads = ShapleyHead.among(result.rows)
    if not heads:
        return None
    clear = sum(head.low is not None and head.high is not None and head.low * head.high > 0 for head in heads)
    sentence = (
        f"{len(heads)} heads have {2 ** len(heads):.2g} sets; what each adds over all of them is known from "
        f"{heads[0].orders} orders on {heads[0].n} rows with its interval, and {clear} of {len(heads)} are beyond 0"
        f"{_pairs_tried(evidence, result.task)}"
    )
    return found_by(result, Decision(HOLDS), sentence, heads[0].n)


def _pairs_tried(evidence: Evidence, task: str | None) -> str:
    result = evidence.one(Part.PAIRS, task)
    pairs = HeadPair.among(result.rows) if result else []
    interacting = sum(pair.verdict != "open" for pair in pairs)
    return f"; of {len(pairs)} pairs, each tried exactly, {interacting} interact beyond luck" if pairs else ""
