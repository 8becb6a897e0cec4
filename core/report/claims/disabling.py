"""Tests of claims about ablating and pruning heads, about head interactions, and about rankings of heads."""

from collections.abc import Sequence

from ...interval import Estimate
from ...scoring.corrections import ALPHA
from ...studies.ablation.records import AblatedTarget, LinkContrast
from ...studies.circuits.records import HeadPair, OrderContrast, RankingCorrelation, ShapleyHead, ShapleySum
from ...studies.records import picked
from ...tasks.relations import SAME_WORD
from .. import readings
from ..estimates import bonferroni_widened, share_interval
from ..evidence import Evidence, StepResult
from ..ids import Part
from ..measures.scores import best_by_layer, removable
from ..readings import sweep
from .outcomes import (
    FAILS,
    HOLDS,
    MARGIN,
    UNDECIDED,
    UNTESTED,
    Decision,
    Outcome,
    all_of,
    decided,
    for_each,
    found_by,
    gains,
    no_loss,
    on_rows,
    points,
    said,
    times_until,
    untested,
)

# -------------------- Sentences on what heads do together, and on the ways to rank them, as tests of Shapley


ALIKE = 0.5  # a rank correlation, which explains a quarter of the variance of ranks
AS_MUCH = -0.05  # margin as a fraction of the whole logit difference


def agrees(result: StepResult, *names: str) -> Outcome | None:
    """Test whether two rankings of heads agree, using Spearman's correlation with a bootstrap interval over heads."""
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
        result,
        decided(estimate, ALIKE),
        f"Spearman's correlation over {correlation.n} heads is {said(estimate)}.",
        correlation.n,
    )


@for_each(Part.SHAPLEY)
def gradient_and_effect(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether gradient-based head importance correlates with the exact effect of ablating each head. Spearman's
    correlation with the change in the logit difference must be significantly above 0.5."""
    return agrees(result, "gradient", "effect")


@for_each(Part.SHAPLEY)
def gradient_and_shapley(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether Spearman's correlation between gradient-based importance and Shapley values of heads exceeds 0.5."""
    return agrees(result, "gradient", "Shapley value")


@for_each(Part.GATES)
def gradient_and_gate(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether Spearman's correlation between gradient-based importance and trained gates of heads exceeds 0.5."""
    return agrees(result, "gradient", "gate")


@for_each(Part.SHAPLEY)
def greedy_by_gradient(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether pruning heads by gradient (Michel et al.) is nearly as good as pruning by Shapley value. The
    remaining share of the logit difference may be at most 0.05 lower, averaged over pruning steps. Both pruning orders
    were determined on other examples."""
    contrasts, sums = OrderContrast.among(result.rows), ShapleySum.among(result.rows)
    if not contrasts or not sums or not sums[0].with_all > 0:
        return None
    (contrast,), full_difference = contrasts, sums[0].with_all
    # What gradient keeps
    value, high, low = (
        None if end is None else -end / full_difference for end in (contrast.value, contrast.low, contrast.high)
    )
    if value is None:
        return None
    estimate = Estimate(value, low, high)
    sentence = (
        "The share of the logit difference that remains with the order by gradient, minus the share with the order by "
        f"Shapley value, is {said(estimate)}."
    )
    return found_by(result, decided(estimate, AS_MUCH), sentence, contrast.n)


@for_each(Part.SHAPLEY)
def all_combinations(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Report that n heads have 2 to the power n subsets. No statistical test is needed. Also report how many heads have
    a Shapley value whose interval excludes 0."""
    heads = ShapleyHead.among(result.rows)
    if not heads:
        return None
    clear = sum(head.low is not None and head.high is not None and head.low * head.high > 0 for head in heads)
    sentence = (
        f"{len(heads)} heads have {2 ** len(heads):.2g} subsets. The contributions of heads over all subsets are "
        f"estimated from {heads[0].orders} orders on {heads[0].n} examples. The interval excludes 0 for {clear} of "
        f"{len(heads)} contributions.{_pairs_tried(evidence, result.task)}"
    )
    return found_by(result, Decision(HOLDS), sentence, heads[0].n)


def _pairs_tried(evidence: Evidence, task: str | None) -> str:
    result = evidence.one(Part.PAIRS, task)
    pairs = HeadPair.among(result.rows) if result else []
    interacting = sum(pair.verdict != "open" for pair in pairs)
    return f" All {len(pairs)} pairs were tested, and {interacting} interact significantly." if pairs else ""


# ----------------------------------------------------------------


def words_of_both(evidence: Evidence) -> list[Outcome]:
    """Test whether most heads that matter on both STS-B and RTE attend to the same word in the other sentence. A head
    matters if its ablation significantly lowers the score.

    In either direction, the attention must exceed that to the other words of the sentence and that to any noun (or
    other kind of word), corrected over these heads.
    """
    swept = {task: evidence.one(Part.HEADS, task) for task in ("stsb", "rte")}
    unswept = [task for task, result in swept.items() if result is None]
    if unswept:
        return untested(evidence, Part.HEADS, unswept[0])
    first, second = (clear_losses(sweep(result.rows).known) for result in swept.values() if result is not None)
    relations = {task: result for task, result in evidence.by_task(Part.RELATIONS).items() if task in swept}
    if not relations:
        return untested(evidence, Part.RELATIONS)
    if not first & second:
        return [Outcome(UNTESTED, "No head has a significant loss on both tasks.")]
    return [_of_the_same_word(result, task, first & second) for task, result in relations.items()]


def _of_the_same_word(result: StepResult, task: str, heads: set[str]) -> Outcome:
    """Count how many of these heads attend to the same word in the other sentence."""
    word_scores = picked(result.scores, task=task, feature=SAME_WORD)
    scores = [score for score in word_scores if score.name in heads and score.effect is not None]
    words: dict[str, list[str]] = {}
    for score in scores:
        parts = (score.effect_estimate, score.contrast_estimate)
        beyond_both = all_of(decided(bonferroni_widened(part, len(scores))) for part in parts)
        words.setdefault(score.name, []).append(beyond_both.word)
    sure = sum(HOLDS in head_words for head_words in words.values())
    never = sum(all(word == FAILS for word in head_words) for head_words in words.values())
    above = sum(
        any(score.effect is not None and score.effect > 0 for score in picked(scores, name=name)) for name in words
    )
    if not words:
        return Outcome(UNTESTED, "No example contains a word twice.", task)
    share = Estimate(above / len(words), sure / len(words), 1 - never / len(words))
    sentence = (
        f"{sure} of the {len(words)} heads that matter for both tasks ({', '.join(sorted(words))}) attend to the "
        f"same word in the other sentence, and {len(words) - sure - never} are undecided."
    )
    return found_by(result, decided(share, MOST_HEADS), sentence, len(words), task)


@for_each(Part.WORD_LINKS, "sst2")
def adjectives_matter(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether noun-adjective links affect the logit difference on SST-2 more than noun-preposition links. Both
    kinds of links are cut in all layers, in the same sentences, in the same number and at the same distances."""
    contrast = next((cut for cut in LinkContrast.among(result.rows) if cut.value is not None), None)
    if contrast is None:
        return None
    change = Estimate(contrast.value or 0.0, contrast.low, contrast.high)
    sentence = (
        "Cutting links between nouns and adjectives changes the logit difference more than cutting links between "
        f"nouns and prepositions, by {said(change, 2)} logits ({contrast.first_moves:.2g} compared with "
        f"{contrast.other_moves:.2g}). {contrast.links} links of each kind were cut in {contrast.n} examples."
    )
    return found_by(result, decided(change), sentence, contrast.n)


MOST_HEADS = 0.5  # "share their heads", "in most layers": more than half of them
LEAST_GAIN = 0.001  # the smallest gain that the paper reports for a single head
NO_MEAN = (
    "The stored ablation has no interval for the mean over heads (averaged ends of the heads' intervals are several "
    "times too wide). Rerun this step."
)


@for_each(Part.HEADS, "mrpc", "rte", swept=True)
def random_head_helps(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether ablating a random head raises the score on MRPC and RTE. The estimate is the mean change over heads,
    with a t interval over examples."""
    sweep = readings.sweep(result.rows)
    if not sweep.known:
        return None
    if sweep.mean is None:
        return Outcome(UNTESTED, NO_MEAN, result.task)
    up = sum(change.value > 0 for _, change in sweep.known)
    sentence = f"{on_rows(result)}Ablating one head changes {sweep.metric} by {points(sweep.mean)} on average. "
    sentence += f"Ablating {up} of {len(sweep.known)} heads increases it."
    return found_by(result, decided(sweep.mean), sentence, sweep.variants[0].n)


@for_each(Part.HEADS, swept=True)
def some_head_helps(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether each task has at least one head whose ablation raises the score (p at most .05 after max-T).

    Fails if every head's interval ends below a gain of 0.1 points, the smallest one in the paper. The range over splits
    does not count.
    """
    sweep = readings.sweep(result.rows)
    held, head_changes = sweep.held_out, sweep.known
    if not head_changes:
        return None
    clear = [pair for pair in head_changes if pair[1].value > 0 and pair[0].p <= ALPHA]
    best, change = (
        min(clear, key=lambda pair: pair[0].p) if clear else max(head_changes, key=lambda pair: pair[1].value)
    )
    sentence = (
        f"{on_rows(result)}The {'most significant' if clear else 'largest'} gain among {len(head_changes)} heads is "
        f"that without {best.name}: "
        f"{points(change)} (p {best.p:.2g}, corrected by max-T)."
    )
    if held is not None:
        sentence += (
            f" If the head is selected on half of the examples, the change on the other half is {points(held.gain)}."
        )
    none = all(gained.high is not None and gained.high < LEAST_GAIN for _, gained in head_changes)
    corrected = bonferroni_widened(change, len(head_changes))
    decision = Decision(HOLDS) if clear else Decision(FAILS) if none else Decision(UNDECIDED, times_until(corrected, 0))
    return found_by(result, decision, sentence, best.n, statistic=corrected, margin=0.0)


@for_each(Part.LAYERS, "rte", swept=True)
def first_layer_helps(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether ablating the first layer raises the score on RTE. The claim fails if the upper bound of the gain is
    below one point."""
    sweep = readings.sweep(result.rows)
    first = next((pair for pair in sweep.known if pair[0].layer == 0), None)
    if first is None:
        return None
    variant, change = first
    sentence = f"{on_rows(result)}Ablating the first layer changes {sweep.metric} by {points(change)} "
    sentence += f"(p {variant.p:.2g}, corrected over {len(sweep.known)} layers)."
    return found_by(result, gains(change), sentence, variant.n)


def shared_heads(evidence: Evidence) -> list[Outcome]:
    """Test whether more than half of the heads that matter for STS-B or RTE matter for both. A head matters if its
    ablation significantly lowers the score, corrected over heads. The claim fails if, for more than half of these
    heads, ablation costs significantly less than one point on at least one task."""
    stsb, rte = evidence.one(Part.HEADS, "stsb"), evidence.one(Part.HEADS, "rte")
    if stsb is None or rte is None:
        return untested(evidence, Part.HEADS, "stsb" if stsb is None else "rte")
    tasks = [readings.sweep(result.rows).known for result in (stsb, rte)]
    clear = [clear_losses(losses) for losses in tasks]
    either = sorted(clear[0] | clear[1])
    sentence = f"Heads with a significant loss: {', '.join(sorted(clear[0])) or 'none'} on STS-B, "
    sentence += f"{', '.join(sorted(clear[1])) or 'none'} on RTE, and {len(clear[0] & clear[1])} on both."
    if not either:
        return [Outcome(UNDECIDED, sentence, None, len(tasks[0]), stsb.run, margin=MOST_HEADS)]
    spared = [{variant.name for variant, change in losses if no_loss([change]).word == HOLDS} for losses in tasks]
    shared, apart = len(clear[0] & clear[1]), sum(any(name in names for names in spared) for name in either)
    share = Estimate(shared / len(either), shared / len(either), 1 - apart / len(either))
    decision = decided(share, MOST_HEADS)
    return [Outcome(decision.word, sentence, None, len(either), stsb.run, None, share, MOST_HEADS)]


def clear_losses(known: Sequence[tuple[AblatedTarget, Estimate]]) -> set[str]:
    """Return the names of heads whose ablation lowers the score significantly after correction over all heads."""
    return {variant.name for variant, change in known if decided(-bonferroni_widened(change, len(known))).word == HOLDS}


@for_each(Part.HEADS)
def nothing_changes(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether ablating heads of GPT-2 leaves all predictions unchanged. The claim fails if any single prediction
    changes."""
    sweep = readings.sweep(result.rows)
    head_changes, n = sweep.known, sweep.variants[0].n
    flipped = [variant.flipped for variant, _ in head_changes if variant.flipped is not None]
    moved = sum(flips > 0 for flips in flipped) if flipped else sum(change.value != 0 for _, change in head_changes)
    most = f" (at most {max(flipped)} of {n} predictions)" if flipped else ""
    share = share_interval(max(flipped) / n, n) if flipped and n else None
    decision = Decision(FAILS if moved else HOLDS, None, share, 0.0)
    return found_by(
        result, decision, f"Ablation changes predictions for {moved} of {len(head_changes)} heads{most}.", n
    )


# ---------------------------------------------------------------- Michel et al.


PRUNED = 0.4  # of the heads of BERT


@for_each(Part.PRUNE, swept=True, loses=True)
def many_heads_go(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether pruning the least important 40 % of the heads lowers the score by at most one point."""
    curves = readings.prune_curves(result.rows)
    if "importance" not in curves:
        return None
    pruned = min(curves["importance"], key=lambda step: abs(step.share - PRUNED))
    if pruned.change is None:
        return None
    low, high = (None if end is None else end - pruned.baseline for end in (pruned.low, pruned.high))
    change = Estimate(pruned.change, low, high)
    shares = {order: removable(steps)[0] for order, steps in curves.items()}
    chance = [share for order, share in shares.items() if order.startswith("random")]
    sentence = (
        f"{on_rows(result)}Removing {pruned.share:.0%} of the heads changes {pruned.metric} by {points(change)}, from "
        f"{pruned.baseline:.3f}. No loss is significant up to {shares['importance']:.0%} of the heads (in random "
        f"orders: up to {min(chance, default=0):.0%} to {max(chance, default=0):.0%})."
    )
    return found_by(result, no_loss([change]), sentence, pruned.n, statistic=change, margin=-MARGIN)


@for_each(Part.ALONE, loses=True)
def one_head_is_enough(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether, in most layers, removing all heads except the best one costs at most one point of the score."""
    sweep = readings.sweep(result.rows)
    if not sweep.known:
        return None
    best = best_by_layer(sweep.known)
    decisions = [no_loss([change]) for change in best]
    words = [decision.word for decision in decisions]
    enough, lost = words.count(HOLDS), words.count(FAILS)
    mean = 100 * sum(change.value for change in best) / max(1, len(best))
    sentence = (
        f"One head is enough in {enough} of {len(best)} layers, {sweep.metric} is lost in {lost}, and the other layers "
        f"are undecided. The mean change is {mean:+.1f} points. The best head of a layer is selected on the same "
        "examples."
    )
    return found_by(result, _most(decisions), sentence, sweep.variants[0].n)


def _most(decisions: Sequence[Decision]) -> Decision:
    """Return HOLDS if the claim holds for more than half of the cases, FAILS if it fails for half, or UNDECIDED."""
    words = [decision.word for decision in decisions]
    holds, fails, total = words.count(HOLDS), words.count(FAILS), max(1, len(words))
    better = sum(decision.statistic is not None and decision.statistic.value >= -MARGIN for decision in decisions)
    share = Estimate(better / total, holds / total, 1 - fails / total)
    if 2 * holds > len(words):
        return Decision(HOLDS, None, share, MOST_HEADS)
    if 2 * fails >= len(words):
        return Decision(FAILS, None, share, MOST_HEADS)
    times = sorted(decision.times for decision in decisions if decision.word == UNDECIDED and decision.times)
    missing = len(words) // 2 + 1 - holds
    return Decision(UNDECIDED, times[missing - 1] if len(times) >= missing else None, share, MOST_HEADS)
