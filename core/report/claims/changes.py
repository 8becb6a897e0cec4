"""Tests of claims about what fine-tuning changes in attention, over every seed of fine-tuning.

A number of one checkpoint is a mean over seeds, with examples and seeds in its interval. A statement about single heads
must hold for every seed.
"""

from collections.abc import Sequence

import numpy as np

from ...interval import Estimate
from ...scoring.circuits import recurs_by_chance
from ...studies.comparison.records import CounterpartsSummary
from ...studies.records import picked
from ..estimates import as_share, bonferroni_widened, mean_over, share_interval
from ..evidence import Evidence, StepResult
from ..ids import Part
from ..measures.scores import cosines
from ..readings import over_heads
from .outcomes import (
    FAILS,
    HOLDS,
    UNDECIDED,
    Decision,
    Outcome,
    all_of,
    decided,
    enough_heads,
    exists,
    for_each,
    found_by,
    percent,
    said,
)
from .seeds import (
    apart_over_seeds,
    both,
    decided_over_seeds,
    decided_with,
    in_every_seed,
    luck_of,
    mean_of_seeds,
    with_luck,
)

MOST = 0.5  # as a fraction of the heads


@for_each(Part.MATCH)
def fine_tuning_keeps_heads(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether, after fine-tuning, the counterparts of most heads have the same layer and head number.

    A counterpart is matched one to one and significantly more similar than random weights, in both halves of the
    inputs. The interval covers heads (Wilson) and, with several seeds, also seeds (Student's t). The squares of both
    errors are added.
    """
    seeds = CounterpartsSummary.among(result.rows)
    if not seeds:
        return None
    shares = [seed.same_place / seed.heads for seed in seeds]
    heads, luck = share_interval(float(np.mean(shares)), seeds[0].heads), luck_of(shares)
    kept_share = as_share(with_luck(heads, luck))
    decision = decided_with(heads, luck, MOST, more_rows=False)
    sentence = (
        f"{percent(kept_share)} of {seeds[0].heads} heads have their counterpart in the same position, and "
        f"{100 * np.mean([seed.matched / seed.heads for seed in seeds]):.0f} % have one in any position. Seeds: "
        f"{len(seeds)}."
    )
    return found_by(result, decision, sentence, seeds[0].n, statistic=kept_share, seeds=len(seeds))


LITTLE = 0.9  # cosine of a map before and after: less than 26 degrees is a small change
BY_CHANCE = 0.025  # of heads that gain in every seed: one of two ways to be right, by halves of 5 %

# ---------------------------------------------------------------- maps before and after


@for_each(Part.CHANGE)
def last_two_layers(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether fine-tuning changes the attention maps of the last two layers more than those of all other layers.
    Change is measured by the cosine similarity of maps before and after. QQP is not part of the claim."""
    return None if result.task == "qqp" else _changed(evidence, result, slice(-2, None), slice(None, -2))


@for_each(Part.CHANGE)
def all_but_first_two(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether fine-tuning changes the attention maps of the first two layers less than those of all other layers.
    Change is measured by the cosine similarity of maps before and after."""
    return _changed(evidence, result, slice(2, None), slice(None, 2))


def _changed(evidence: Evidence, result: StepResult, most: slice, least: slice) -> Outcome | None:
    seeds = [[score.estimate for score in cosines(seed_result)] for seed_result in evidence.each_seed(result)]
    layers = list(zip(*seeds, strict=True))
    if len(layers) < 3:
        return None
    numbers = ", ".join(f"{mean_of_seeds(layer)[0].value:.2f}" for layer in layers)
    sentence = f"The cosines of layers 1 to {len(layers)} are {numbers}."
    decision = apart_over_seeds(layers[least], layers[most])
    return found_by(result, decision, sentence, cosines(result)[0].n, seeds=len(seeds))


# ---------------------------------------------------------------- features before and after


def gain(result: StepResult, feature: str) -> Estimate | None:
    """Compute how much fine-tuning increases the mean attention of heads to a feature. Return None if this is
    unknown."""
    mean = over_heads(picked(result.scores, statistic="max", feature=feature, checkpoint="difference"))
    return None if mean is None or mean.low is None else -mean  # the study's difference is before less after


def gains_by_seed(evidence: Evidence, result: StepResult, feature: str) -> list[Estimate]:
    """Compute how much fine-tuning increases the attention to a feature, separately for each seed."""
    gains = [gain(seed_result, feature) for seed_result in evidence.each_seed(result)]
    return [seed_gain for seed_gain in gains if seed_gain is not None] if gains[0] is not None else []


def said_of_seeds(gains: Sequence[Estimate]) -> str:
    """Format the mean increase over seeds as text, with a confidence interval that covers examples and seeds."""
    return said(with_luck(*mean_of_seeds(gains)), 2)


@for_each(Part.FEATURES, "mrpc", "rte", "qqp")
def more_to_nouns(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether fine-tuning increases the attention of at least one head to nouns, and of at least one to objects.
    Both tests are corrected for the number of heads.

    With several seeds, this must hold in every seed. In addition, attention must increase in all seeds for more heads
    than expected by chance (p at most .025), or on average over heads, with examples and seeds in the interval.
    """
    return some_heads_gain(evidence, result, ("noun", "object"))


def some_heads_gain(evidence: Evidence, result: StepResult, features: Sequence[str]) -> Outcome | None:
    """Test the claim that fine-tuning increases the attention of some heads to each of the given features."""
    gains_by_result = [
        gains for seed_result in evidence.each_seed(result) if (gains := _gains_of_heads(seed_result, features))
    ]
    seeds = [gains for gains in gains_by_result if gains.keys() == gains_by_result[0].keys()]
    if not seeds:
        return None
    decision = in_every_seed([all_of([exists(heads, 0.0) for heads in gains.values()]) for gains in seeds])
    if len(seeds) > 1:
        decision = both(decision, all_of([_recurs([gains[name] for gains in seeds]) for name in seeds[0]]))
    numbers = [_heads_that_gain(name, [gains[name] for gains in seeds]) for name in seeds[0]]
    sentence = f"Changes of attention by fine-tuning, corrected over heads: {'; '.join(numbers)}.{_per_seed(seeds)}"
    return found_by(result, decision, sentence, result.n, margin=0.0, seeds=len(seeds))


def _gains_of_heads(result: StepResult, features: Sequence[str]) -> dict[str, list[Estimate]]:
    gains: dict[str, list[Estimate]] = {}
    for feature in features:
        scores = picked(result.scores, statistic="max", feature=feature, checkpoint="difference")
        head_gains = [-score.estimate for score in scores if score.value is not None and score.low is not None]
        if head_gains:  # the study's difference is before less after
            gains[feature] = head_gains
    return gains


def _recurs(seeds: Sequence[Sequence[Estimate]]) -> Decision:
    """Decide whether heads gain attention in all seeds: on average, or in more heads than by chance."""
    mean = decided_over_seeds(_means(seeds))
    if mean.word == HOLDS or recurs_by_chance(_clear(seeds, HOLDS)) > BY_CHANCE:
        return mean
    return Decision(HOLDS)


def _heads_that_gain(feature: str, seeds: Sequence[Sequence[Estimate]]) -> str:
    """Return text such as "noun: 5/6/4 of 72 heads gain (3 in all seeds, p 0.001), 2/3/2 lose, mean change 0.01"."""
    gaining, losing = _clear(seeds, HOLDS), _clear(seeds, FAILS)
    up, down = ("/".join(map(str, clear.sum(1))) for clear in (gaining, losing))
    recurring = f" ({gaining.all(0).sum()} in all seeds, p {recurs_by_chance(gaining):.2g})" if len(seeds) > 1 else ""
    return (
        f"{feature}: {up} of {gaining.shape[1]} heads gain{recurring}, {down} lose, mean change "
        f"{said_of_seeds(_means(seeds))}"
    )


def _per_seed(seeds: Sequence[object]) -> str:
    """Return a sentence on how counts such as "5/6/4" are meant; "" for one seed."""
    return " Counts are given for each seed." if len(seeds) > 1 else ""


def _means(seeds: Sequence[Sequence[Estimate]]) -> list[Estimate]:
    return [mean for heads in seeds if (mean := mean_over(heads)) is not None]


def _clear(seeds: Sequence[Sequence[Estimate]], word: str) -> np.ndarray:
    """Return whether each head gains (HOLDS) or loses (FAILS), corrected over heads. *Shape:* (seed, head)."""
    return np.array(
        [[decided(bonferroni_widened(head, len(heads)), 0.0).word == word for head in heads] for heads in seeds]
    )


@for_each(Part.CHANGE)
def most_change_little(evidence: Evidence, result: StepResult) -> Outcome | None:
    """Test whether fine-tuning leaves the maps of most heads similar (cosine above 0.9). Each head is decided by its
    own confidence interval.

    With several seeds, this must hold in every seed, and the cosine of the median head must be above 0.9, with
    examples and seeds in its interval.
    """
    seeds = [
        [score.estimate for score in picked(seed_result.scores, kind="head", statistic="cosine")]
        for seed_result in evidence.each_seed(result)
    ]
    if not all(seeds):
        return None
    decision = in_every_seed([enough_heads(heads, LITTLE, 0.5 + 1e-6) for heads in seeds])
    medians = [_median(heads) for heads in seeds]
    if len(seeds) > 1:
        decision = both(decision, decided_over_seeds(medians, zero=LITTLE))
    surely, maybe = (
        "/".join(str(sum(decided(head, LITTLE).word == word for head in heads)) for heads in seeds)
        for word in (HOLDS, UNDECIDED)
    )
    sentence = (
        f"{surely} of {len(seeds[0])} heads have a cosine significantly above {LITTLE}, and {maybe} are undecided."
    )
    sentence += f" The median head has a cosine of {said_of_seeds(medians)}." if len(seeds) > 1 else ""
    sentence += _per_seed(seeds)
    return found_by(result, decision, sentence, result.n, seeds=len(seeds))


def _median(heads: Sequence[Estimate]) -> Estimate:
    """Return the median over heads of the estimates and of both interval bounds. The resulting interval contains the
    true median if each head's interval contains the true value."""
    ends = [
        [head.value if end is None else end for head, end in zip(heads, side, strict=True)]
        for side in ((head.low for head in heads), (head.high for head in heads))
    ]
    low, high = (float(np.median(side)) for side in ends)
    return Estimate(float(np.median([head.value for head in heads])), low, high)
