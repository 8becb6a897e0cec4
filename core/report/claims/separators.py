"""Attention to [SEP] is a no-op, as tests: the loss hardly moves with it (Clark et al. 3.2), and what makes it."""

from ...studies.ablation.records import SeparatorLayer
from ...studies.estimate import Estimate
from ...studies.explanation.records import SortScore
from ...studies.records import picked
from ..estimates import mean_over
from ..evidence import Evidence, StepResult
from ..ids import Part
from ..readings import separator_layers
from .outcomes import HOLDS, UNTESTED, Decision, Outcome, decided, for_each, found_by, said, untested

FROM = 4 / 12  # of the depth: layer 5 of 12
HARDLY = 0.5  # of how the loss moves with attention to other tokens: "hardly" is less than half of it
ANY_WEIGHT = 0.1  # of all weight: below it separators have none to speak of, and moving it says nothing
MOSTLY = 0.5  # of its weight on separators: a head that looks at them
ORIGIN_MARGIN = 0.1  # of a score's variance: by so much feed-forward blocks must have more than words and places


@for_each(Part.SEPARATORS)
def no_op(evidence: Evidence, result: StepResult) -> Outcome | None:
    """From layer 5 of 12 up (here: at that depth) the loss moves with attention to separators less than half as much as
    with attention to other tokens (HARDLY). Heads that give separators no weight to speak of cannot test it."""
    layers = separator_layers(result.rows)
    upper = [layer for layer in layers if layer.ratio is not None and (layer.layer or 0) / len(layers) >= FROM]
    mean = mean_over(_below(layer) for layer in upper)
    if mean is None:
        return None
    ratio = -mean + Estimate(HARDLY, HARDLY, HARDLY)
    weight = sum(layer.weight_on_separators or 0.0 for layer in upper) / len(upper)
    names = sorted((layer.layer or 0) + 1 for layer in upper)
    sentence = (
        f"gradient by attention to separators over that to other tokens, layers {names[0]} to {names[-1]}: "
        f"{said(ratio, 2)}, hardly is below {HARDLY}; weight on separators there {weight:.2f}"
    )
    if weight < ANY_WEIGHT:
        return found_by(result, Decision(UNTESTED), f"{sentence}, none to speak of", upper[0].n)
    decision = decided(mean)
    norms = [layer.norm_on_separators for layer in upper if layer.norm_on_separators is not None]
    if norms:
        sentence += f", of norms {sum(norms) / len(norms):.2f}"
    falls = _falls(layers)
    if decision.word == HOLDS and falls:
        sentence += f"; the ratio falls from {falls[0]:.2f} below to {falls[1]:.2f} there"
    return found_by(result, decision, sentence, upper[0].n, statistic=ratio, margin=HARDLY)


def _below(layer: SeparatorLayer) -> Estimate:
    """How far the ratio lies below HARDLY."""
    low, high = (None if end is None else HARDLY - end for end in (layer.ratio_high, layer.ratio_low))
    return Estimate(HARDLY - (layer.ratio or 0.0), low, high)


def _falls(layers: list[SeparatorLayer]) -> tuple[float, float] | None:
    """Mean ratios below that depth and from it up, where the second is smaller."""
    parts: tuple[list[float], list[float]] = ([], [])
    for layer in layers:
        if layer.ratio is not None:
            parts[int((layer.layer or 0) / len(layers) >= FROM)].append(layer.ratio)
    if not all(parts):
        return None
    means = tuple(sum(part) / len(part) for part in parts)
    return (means[0], means[1]) if means[1] < means[0] else None


# ---------------------------------------------------------------- what makes heads look there


def made_by_blocks(evidence: Evidence) -> list[Outcome]:
    """Heads with most of their weight on separators do so for what feed-forward blocks wrote, by ORIGIN_MARGIN more
    than for words and places together (score shares: Elhage et al. 2021's split of the scores)."""
    shares, statistics = evidence.one(Part.WHY), evidence.by_task(Part.STATISTICS)
    if shares is None or not statistics:
        return untested(evidence, Part.WHY if shares is None else Part.STATISTICS)
    outcomes = []
    for task, weights in statistics.items():
        looking = {
            (score.layer, score.head)
            for score in picked(weights.scores, task=task, statistic="separator")
            if score.layer is not None and score.head is not None and (score.value or 0.0) > MOSTLY
        }
        measured = [row for row in shares.rows if row.get("value") is not None and row["value"] == row["value"]]
        sorts = picked(SortScore.among(measured), task=task, statistic="score share")
        head_sorts = [score for score in sorts if (score.layer, score.head) in looking]
        if head_sorts:
            outcomes.append(_origin(shares, task, head_sorts))
    return outcomes or [Outcome(UNTESTED, "no head has most of its weight on separators")]


def _origin(result: StepResult, task: str, scores: list[SortScore]) -> Outcome:
    """Whether blocks have more than words and places; the interval is as wide as all three together."""
    means = {
        name: mean_over(Estimate(score.value, score.low, score.high) for score in scores if score.feature == name)
        for name in ("feed-forward", "position", "token")
    }
    blocks, places, words = (means[name] or Estimate(0.0, 0.0, 0.0) for name in means)
    difference = blocks - places - words
    sentence = (
        f"of the scores of {len({(score.layer, score.head) for score in scores})} heads with more than half of their "
        f"weight on separators, feed-forward blocks have {said(blocks, 2)}, places {said(places, 2)}, words "
        f"{said(words, 2)}"
    )
    return found_by(result, decided(difference, ORIGIN_MARGIN), sentence, scores[0].n, task)
