"""Scores of heads by what changes without them: one a way in which a head is changed."""

from ...scoring.registry import KOVALEVA, HeadScore

MICHEL = "Michel et al. 2019"
OPERATORS = ("disable", "zero", "previous", "current", "next", "first", "mean", "resample", "constant")


def effect_scores(*templates: tuple[str, str, str]) -> tuple[HeadScore, ...]:
    """The scores of a study that changes heads.

    Args:
        templates: name, label and formula of each, {} where the operator stands.

    Returns:
        Those of the first operator, then of the second ...
    """
    return tuple(_effect(*(text.format(operator) for text in texts)) for operator in OPERATORS for texts in templates)


def _effect(name: str, label: str, formula: str) -> HeadScore:
    source = MICHEL if "zero" in name else KOVALEVA
    return HeadScore(name, label, formula, ("classifier", "labels"), None, None, source, about="task")


EFFECTS_ON_METRIC = effect_scores(
    ("{} heads", "effect on the metric: {}", "change of the metric when the head is changed: {}"),
    ("{} all-but-one", "alone in its layer: {}", "change of the metric, the layer's others changed: {}"),
)
