"""Clark et al. 3.2 as a test: attention to [SEP] is a no-op, so the loss hardly moves with it."""

from core.report.claims.outcomes import HOLDS, Decision, Outcome, decided, found_by, of_each, said
from core.report.estimates import Estimate, mean_over
from core.report.evidence import Evidence, StepResult
from core.report.ids import Part
from core.report.readings import separator_layers
from core.studies.ablation.records import SeparatorLayer

FROM = 4 / 12  # of the depth: layer 5 of 12


def no_op(evidence: Evidence) -> list[Outcome]:
    """From layer 5 of 12 up (here: at that depth) the loss moves less with attention to separators than to others."""
    return of_each(evidence, Part.SEPARATORS, _smaller)


def _smaller(result: StepResult) -> Outcome | None:
    layers = separator_layers(result.rows)
    upper = [layer for layer in layers if layer.ratio is not None and (layer.layer or 0) / len(layers) >= FROM]
    mean = mean_over(_below_one(layer) for layer in upper)
    if mean is None:
        return None
    ratio = mean.turned + Estimate(1.0, 1.0, 1.0)
    weight = sum(layer.weight_on_separators or 0.0 for layer in upper) / len(upper)
    names = sorted((layer.layer or 0) + 1 for layer in upper)
    decision = decided(mean)
    sentence = (
        f"gradient by attention to separators over that to other tokens, layers {names[0]} to {names[-1]}: "
        f"{said(ratio, 2)}; weight on separators there {weight:.2f}"
    )
    norms = [layer.norm_on_separators for layer in upper if layer.norm_on_separators is not None]
    if norms:
        sentence += f", of norms {sum(norms) / len(norms):.2f}"
    falls = _falls(layers)
    if decision.word == HOLDS and falls:
        sentence += f"; the ratio falls from {falls[0]:.2f} below to {falls[1]:.2f} there"
    return found_by(result, Decision(decision.word, decision.times), sentence, upper[0].n)


def _below_one(layer: SeparatorLayer) -> Estimate:
    """How far the ratio lies below 1."""
    low, high = (None if end is None else 1 - end for end in (layer.ratio_high, layer.ratio_low))
    return Estimate(1 - (layer.ratio or 0.0), low, high)


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
