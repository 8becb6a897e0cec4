"""Tests of claims about probes and about pruned weights, on examples that selected nothing."""

from ...interval import Estimate
from ...studies.headline import defined
from ...studies.probing.records import BestHeadTree, ParsedScore, ProbedLayer, Subnetwork
from ...studies.tuning.records import BestLayer, Transferred
from ..estimates import mean_over
from ..evidence import Evidence, StepResult
from ..ids import Part
from ..measures.scores import LINEAR
from .outcomes import (
    UNTESTED,
    Outcome,
    all_of,
    apart,
    decided,
    for_each,
    found_by,
    no_loss,
    points,
    said,
)

MUCH = 0.1  # "not much better": the best head of Clark et al. is 8.2 points above right-branching
PRUNED = 0.3  # the lower end of "30 to 40 %"
READING = "mean over tokens"


@for_each(Part.SYNTAX)
def no_whole_tree(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether the trees of the best head (chosen on dev) score at most ten points above a branching baseline. The
    baseline is left-branching or right-branching, whichever is better. Clark et al. report 8.2 points."""
    best = next(iter(BestHeadTree.defined(result.rows)), None)
    baselines = [score for score in ParsedScore.defined(result.rows) if score.name.endswith("-branching")]
    if best is None or best.rooted is None or not baselines:
        return None
    tree = Estimate(best.rooted, best.rooted_low, best.rooted_high)
    branching = max(baselines, key=lambda score: defined(score.value))
    sentence = (
        f"The best head, selected on dev, is {best.name}: UAS {said(tree, 2)}. Its tree is complete in "
        f"{100 * best.whole_trees:.1f} % of sentences. The UAS of {branching.name} is {said(branching.estimate, 2)}."
    )
    more = tree - branching.estimate
    return found_by(result, decided(-more, -MUCH), sentence, best.n, statistic=more, margin=MUCH)


@for_each(Part.SYNTAX)
def attention_knows_syntax(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether a parser trained on attention and embeddings beats two baselines. The baselines are right-branching
    trees, and the same parser on random weights. The baseline of the paper (distances and word embeddings) is not
    computed."""
    scores = {score.name: score for score in ParsedScore.defined(result.rows)}
    names = ("right-branching", "attention and embeddings, random weights")
    attention = scores.get("attention and embeddings")
    if attention is None or not set(names) <= set(scores):
        return None
    decision = apart([attention.estimate], [scores[name].estimate for name in names])
    baselines = "; ".join(f"{name} {scores[name].value:.2f}" for name in names)
    return found_by(
        result,
        decision,
        f"The UAS of attention and embeddings is {said(attention.estimate, 2)}. Baselines: {baselines}.",
        attention.n,
    )


@for_each(Part.PROBE)
def hierarchical(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether probes on the second half of the layers find the main auxiliary by syntactic structure, not by word
    order. Both rules fit the training sentences. Probes on the embeddings must follow the structure less."""
    layers = [
        layer
        for layer in ProbedLayer.defined(result.rows)
        if layer.probe == LINEAR and layer.property == "main auxiliary, rules part"
    ]
    if len(layers) < 3:
        return None
    estimates = [layer.estimate for layer in sorted(layers, key=lambda layer: layer.layer)]
    late, first = mean_over(estimates[-(len(estimates) // 2) :]), estimates[0]
    if late is None:
        return None
    sentence = (
        "If the rules disagree about the main auxiliary, the accuracy (0 linear, 1 hierarchical) is "
        f"{said(late, 2)} in the second half of the layers, and {said(first, 2)} in the embeddings."
    )
    return found_by(result, all_of([decided(late, 0.5), apart([late], [first])]), sentence, layers[0].n)


@for_each(Part.TRANSFER)
def middle_transfers(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether the mean score of classifiers is higher on the middle third of the layers than on each of the other
    thirds. The outcome also names the best layer."""
    layers = [
        layer
        for layer in Transferred.defined(result.rows)
        if layer.kind == "classifier" and layer.reading == READING and layer.layer
    ]
    depth = max((layer.layer or 0 for layer in layers), default=0)
    parts: list[list[Estimate]] = [[], [], []]
    for layer in layers:
        parts[min(2, int(3 * ((layer.layer or 1) - 0.5) / depth))].append(layer.estimate)
    first, middle, last = (mean_over(part) for part in parts)
    if first is None or middle is None or last is None:
        return None
    sentence = f"The mean {layers[0].metric} is {said(first)} in the first third of the layers, {said(middle)} in the "
    sentence += f"middle third and {said(last)} in the last third."
    best = next((layer for layer in BestLayer.defined(result.rows) if layer.reading == READING), None)
    if best is not None:
        sentence += (
            f" Layer {best.layer} of {best.layers} is best on half of the examples, and on the other half it is "
            f"{points(best.estimate)} above the last layer."
        )
    return found_by(result, apart([middle], [first, last]), sentence, layers[0].n)


def _nothing_to_lose(result: StepResult) -> Outcome | None:
    """Return UNTESTED if the unpruned checkpoint is not above the constant prediction."""
    networks = [score for score in Subnetwork.defined(result.rows) if score.kind in ("subnetwork", "curve")]
    unpruned = [score for score in networks if score.name == "full" or (score.kind == "curve" and not score.share)]
    for score in unpruned[:1]:
        if score.constant is not None and (score.low is None or score.low <= score.constant):
            sentence = f"the score of the unpruned checkpoint, {said(score.estimate)}, is not above that of a constant "
            sentence += f"prediction, {_shown(score)}"
            return Outcome(UNTESTED, f"Nothing can be lost: {sentence}.", result.task)
    return None


@for_each(Part.SUBNETWORKS)
def a_third_can_go(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether pruning the smallest 30 % of the weights before fine-tuning costs at most one point."""
    of_all = [
        score
        for score in Subnetwork.defined(result.rows)
        if (score.kind, score.scope, score.moment) == ("curve", "global", "before") and score.share is not None
    ]
    point = next((score for score in of_all if abs((score.share or 0.0) - PRUNED) < 1e-6), None)
    if point is None or (nothing := _nothing_to_lose(result)):
        return None if point is None else nothing
    change = point.change_estimate
    sentence = (
        f"Pruning {PRUNED:.0%} of the weights changes the score by {points(change)}. A constant prediction scores "
        f"{_shown(point)}."
    )
    return found_by(result, no_loss([change]), sentence, point.n)


def _shown(score: Subnetwork) -> str:
    return "undefined" if score.constant is None else f"{score.constant:.3f}"


@for_each(Part.SUBNETWORKS)
def good_and_bad(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether components that survive pruning score higher after retraining than equally many pruned components.
    The retrained pruned components must still score above a constant prediction."""
    score_of = {
        score.name: score for score in Subnetwork.defined(result.rows) if score.kind in ("subnetwork", "difference")
    }
    more = score_of.get("good less bad")
    if more is None or (nothing := _nothing_to_lose(result)):
        return None if more is None else nothing
    scores = "; ".join(f"{name} {score_of[name].value:.3f}" for name in ("full", "good", "bad", "random"))
    constant = score_of["bad"].constant or 0.0  # a correlation with a constant is undefined
    learned = score_of["bad"].estimate - Estimate(constant, constant, constant)
    return found_by(
        result,
        all_of([decided(more.estimate), decided(learned)]),
        f"The good subnetwork scores {points(more.estimate)} more than the bad one. Scores: {scores}; constant "
        f"prediction {_shown(score_of['bad'])}.",
        more.n,
    )
