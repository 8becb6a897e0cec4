"""Tests of claims about pattern shares, with the classifier's errors in their intervals."""

from collections.abc import Sequence

import numpy as np

from ... import patterns
from ...interval import Estimate
from ...patterns.class_shares import MISFIT_LEVEL
from ...studies.patterns.records import ClassShare, HeadClass, MovedShare
from .. import readings
from ..estimates import share_interval
from ..evidence import Evidence, StepResult
from ..ids import Part
from .outcomes import (
    FAILS,
    UNDECIDED,
    UNTESTED,
    Outcome,
    decided,
    enough_heads,
    for_each,
    found_by,
    gains,
    points,
    within,
)

SHARE_MARGIN = 0.1  # above 7.3 points, the largest change in the notebook of Prasanna et al.
MEANINGFUL = ("heterogeneous", "block")
CONFUSED = "The interval includes the errors of the classifier."
UNCORRECTED = "The interval does not include the errors of the classifier."
MISFIT = "There is no interval, because the classifier errs differently on these maps than on its labelled maps."
OLD_SHARES = "The shares were counted before changes were paired by input. Rerun this step."
NO_COUNTS = "The stored heads lack the number of their maps in each class. Rerun this step."


@for_each(Part.SHARES)
def shares_stay(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether fine-tuning changes the share of every attention pattern by at most ten points. The changes are
    corrected for classifier errors if these errors are known."""
    moved = readings.moved_shares(result.rows)
    if not moved:
        tuned = any(counted.checkpoint != evidence.checkpoint for counted in readings.class_shares(result.rows))
        return Outcome(UNTESTED, OLD_SHARES, result.task) if tuned else None
    changes = true_changes(result, moved, joint=True)
    most = max(range(len(moved)), key=lambda k: abs(changes[k].value))
    sentence = (
        f"Among {len(moved)} classes, {moved[most].name} changes most: {points(changes[most])}, with an interval "
        f"that holds jointly for all classes. {_how(result, changes[most], moved[most].joint)}"
    )
    return found_by(result, within(changes, SHARE_MARGIN), sentence, moved[most].inputs)


@for_each(Part.SHARES)
def more_vertical(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether fine-tuning increases the share of vertical attention maps. Known classifier errors are corrected.
    The claim fails if the increase is not significant and its upper bound is below one point."""
    moved = {share.name: share for share in readings.moved_shares(result.rows)}
    if not moved:
        tuned = any(share.checkpoint != evidence.checkpoint for share in readings.class_shares(result.rows))
        return Outcome(UNTESTED, OLD_SHARES, result.task) if tuned else None
    if "vertical" not in moved:
        return Outcome(UNTESTED, "The class set has no class Vertical.", result.task)
    share = moved["vertical"]
    change = true_changes(result, list(moved.values()), joint=False)[list(moved).index("vertical")]
    sentence = f"The share of vertical maps changes by {points(change)}. {_how(result, change, share.change)}"
    return found_by(result, gains(change), sentence, share.inputs)


def true_changes(result: StepResult, moved: Sequence[MovedShare], *, joint: bool) -> list[Estimate]:
    """Compute how fine-tuning changes the share of each attention pattern. The changes are corrected for classifier
    errors if the confusion matrix of the classifier is known.

    The classifier's errors are assumed to be equal before and after fine-tuning. There are no intervals if the shares
    before or after are inconsistent with the confusions. `joint` requests intervals that hold for all classes together.
    """
    counted = [share.joint if joint else share.change for share in moved]
    held_out = _confusions(result, len(moved))
    if held_out is None or any(None in (estimate.low, estimate.high) for estimate in counted):
        return [_both_added(result, share.name, estimate) for share, estimate in zip(moved, counted, strict=True)]
    halves = [
        max(estimate.value - (estimate.low or 0.0), (estimate.high or 0.0) - estimate.value) for estimate in counted
    ]
    values = np.array([estimate.value for estimate in counted])
    several = len(moved) if joint else 1
    corrected = patterns.class_shares.true_changes(values, np.array(halves), held_out, several=several)
    return [
        Estimate(float(value), None, None) if _misfits(result) else Estimate(float(value), float(low), float(high))
        for value, low, high in corrected.T
    ]


def _misfits(result: StepResult) -> bool:
    """Return whether the shares before or after fine-tuning are impossible given the classifier's confusions."""
    return any(share.misfit is not None and share.misfit < MISFIT_LEVEL for share in ClassShare.among(result.rows))


def _how(result: StepResult, change: Estimate, counted: Estimate) -> str:
    if change.value == counted.value:
        return UNCORRECTED
    return MISFIT if change.low is None and _misfits(result) else CONFUSED


def _confusions(result: StepResult, classes: int) -> np.ndarray | None:
    """Return the held-out confusion counts of the classifier from the options of the step, or None."""
    confusions = np.array(getattr(result.step.options, "confusions", ())).astype(int)  # whole maps, in JSON 3.0
    return confusions if confusions.ndim == 3 and confusions.shape[1:] == (classes, classes) else None


def _both_added(result: StepResult, name: str, counted: Estimate) -> Estimate:
    """Return the change of a share if only corrected shares are known. Its interval adds both intervals, and is at
    least as wide as that of the raw change."""
    shares = [
        share
        for share in ClassShare.among(result.rows)
        if (share.part, share.name) == ("corrected", name) and share.share is not None
    ]
    tuned = [share for share in shares if share.checkpoint != result.step.checkpoint]
    untuned = [share for share in shares if share.checkpoint == result.step.checkpoint]
    if not tuned or not untuned:
        return counted
    change = tuned[0].estimate - untuned[0].estimate
    below, above = (abs(counted.value - (end or 0.0)) for end in (counted.low, counted.high))
    ends = [change.low, change.high]
    return Estimate(
        change.value,
        None if ends[0] is None else min(ends[0], change.value - below),
        None if ends[1] is None else max(ends[1], change.value + above),
    )


@for_each(Part.SHARES)
def few_meaningful(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether fewer than half of the fine-tuned heads can carry meaning. A head can carry meaning if its attention
    maps have the class Heterogeneous or Block for more than half of the inputs.

    Each head has an interval over inputs, corrected for the classifier's confusions if known. A head whose maps are
    inconsistent with the confusions is undecided.
    """
    rows = [row for row in result.rows if row.get("part") != "head" or "counts" in row]
    if len(rows) < len(result.rows):
        return Outcome(UNTESTED, NO_COUNTS, result.task)
    heads = [head for head in HeadClass.among(rows) if head.checkpoint != evidence.checkpoint]
    counted_heads = [head for head in heads if sum(head.counts.values())]
    meaningless, corrected = _meaningless(result, counted_heads)
    if not meaningless:
        return None
    words = [decided(share, 0.5).word for share in meaningless]
    sentence = f"{words.count(FAILS)} of {len(words)} heads have maps that could carry meaning in more than half of "
    sentence += f"the inputs, and {words.count(UNDECIDED)} are undecided. {CONFUSED if corrected else UNCORRECTED}"
    return found_by(result, enough_heads(meaningless, 0.5, 0.5 + 1e-6), sentence, heads[0].inputs)


def _meaningless(result: StepResult, heads: Sequence[HeadClass]) -> tuple[list[Estimate], bool]:
    """Return each head's share of maps without meaningful classes, and whether shares are corrected."""
    names = list(dict.fromkeys(name for head in heads for name in head.counts))
    counts = np.array([[head.counts.get(name, 0) for name in names] for head in heads])
    chosen = np.array([name not in MEANINGFUL for name in names])
    wilson = [share_interval(count[chosen].sum() / count.sum(), int(count.sum())) for count in counts]
    held_out = _confusions(result, len(names))
    if held_out is None:
        return wilson, False
    corrected = patterns.class_shares.true_shares(counts, chosen, held_out)
    return [
        Estimate(float(value), None, None) if np.isnan(low) else Estimate(float(value), float(low), float(high))
        for value, low, high in corrected.T
    ], True
