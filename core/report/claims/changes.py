"""What fine-tuning changes in attention, as tests over every seed of it that was looked at.

A number of one checkpoint is a mean over seeds with rows and seeds in its interval; what is said of single heads has to
be so in every seed's checkpoint.
"""

from collections.abc import Sequence

from core.report.claims.outcomes import (
    FAILS,
    HOLDS,
    Outcome,
    all_of,
    decided,
    exists,
    found_by,
    of_each,
    said,
)
from core.report.claims.seeds import apart_over_seeds, decided_over_seeds, in_every_seed, mean_of_seeds, with_luck
from core.report.estimates import among, mean_over
from core.report.evidence import Evidence, StepResult
from core.report.ids import Part
from core.report.measures.scores import cosines
from core.report.readings import over_heads
from core.studies.estimate import Estimate
from core.studies.records import picked

# ---------------------------------------------------------------- maps before and after


def last_two_layers(evidence: Evidence) -> list[Outcome]:
    """The last two layers have lower cosines than all others (not claimed for QQP)."""
    tasks = [result.task or "" for result in evidence.of(Part.CHANGE) if result.task != "qqp"]
    return of_each(
        evidence, Part.CHANGE, lambda result: _changed(evidence, result, slice(-2, None), slice(None, -2)), tasks
    )


def all_but_first_two(evidence: Evidence) -> list[Outcome]:
    """The first two layers have higher cosines than all others."""
    return of_each(evidence, Part.CHANGE, lambda result: _changed(evidence, result, slice(2, None), slice(None, 2)))


def _changed(evidence: Evidence, result: StepResult, most: slice, least: slice) -> Outcome | None:
    seeds = [[score.estimate for score in cosines(one)] for one in evidence.each_seed(result)]
    layers = list(zip(*seeds, strict=True))
    if len(layers) < 3:
        return None
    numbers = ", ".join(f"{mean_of_seeds(layer)[0].value:.2f}" for layer in layers)
    sentence = f"cosine of layers 1 to {len(layers)}: {numbers}"
    decision = apart_over_seeds(layers[least], layers[most])
    return found_by(result, decision, sentence, cosines(result)[0].n, seeds=len(seeds))


# ---------------------------------------------------------------- features before and after


def gain(result: StepResult, feature: str) -> Estimate | None:
    """How much more heads attend to a feature after fine-tuning, mean over heads, paired by input; None without."""
    mean = over_heads(picked(result.scores, statistic="max", feature=feature, checkpoint="difference"))
    return None if mean is None or mean.low is None else mean.turned  # the study's difference is before less after


def gains_by_seed(evidence: Evidence, result: StepResult, feature: str) -> list[Estimate]:
    """`gain` of each seed; [] where the first has none."""
    gains = [gain(one, feature) for one in evidence.each_seed(result)]
    return [one for one in gains if one is not None] if gains[0] is not None else []


def said_of_seeds(gains: Sequence[Estimate]) -> str:
    """Their mean, rows and seeds in its interval."""
    return said(with_luck(*mean_of_seeds(gains)), 2)


def gained(evidence: Evidence, result: StepResult, features: Sequence[str]) -> Outcome | None:
    """Whether fine-tuning raises attention to all of these features."""
    gains = {name: seen for name in features if (seen := gains_by_seed(evidence, result, name))}
    if not gains:
        return None
    sentence = "; ".join(f"{name} {said_of_seeds(seen)}" for name, seen in gains.items())
    decision = all_of([decided_over_seeds(seen, len(gains)) for seen in gains.values()])
    seeds = min(map(len, gains.values()))
    return found_by(result, decision, f"after less before, mean over heads: {sentence}", result.n, seeds=seeds)


def more_to_nouns(evidence: Evidence) -> list[Outcome]:
    """Fine-tuning raises the attention of some heads to nouns, and of some to objects, corrected over heads: in every
    seed's checkpoint, each with its own heads."""
    return of_each(evidence, Part.FEATURES, lambda result: _some_heads_gain(evidence, result), ("mrpc", "rte", "qqp"))


def _some_heads_gain(evidence: Evidence, result: StepResult) -> Outcome | None:
    seeds = [gains for one in evidence.each_seed(result) if (gains := _gains_of_heads(one))]
    if not seeds:
        return None
    sentences = []
    for feature, known in seeds[0].items():
        up, down = (
            "/".join(str(_clear(of_seed.get(feature, ()), word)) for of_seed in seeds) for word in (HOLDS, FAILS)
        )
        means = [mean for of_seed in seeds if (mean := mean_over(of_seed.get(feature, ()))) is not None]
        sentences.append(f"{feature}: {up} of {len(known)} heads more, {down} less, mean {said_of_seeds(means)}")
    decision = in_every_seed([all_of([exists(known, 0.0) for known in of_seed.values()]) for of_seed in seeds])
    sentence = f"after less before, corrected over heads; {'; '.join(sentences)}"
    return found_by(result, decision, sentence, result.n, margin=0.0, seeds=len(seeds))


def _gains_of_heads(result: StepResult) -> dict[str, list[Estimate]]:
    gains: dict[str, list[Estimate]] = {}
    for feature in ("noun", "object"):
        scores = picked(result.scores, statistic="max", feature=feature, checkpoint="difference")
        known = [score.estimate.turned for score in scores if score.value is not None and score.low is not None]
        if known:  # the study's difference is before less after
            gains[feature] = known
    return gains


def _clear(heads: Sequence[Estimate], word: str) -> int:
    """How many heads gain (HOLDS) or lose (FAILS), corrected over them."""
    return sum(decided(among(one, len(heads)), 0.0).word == word for one in heads)
