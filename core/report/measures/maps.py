"""Measured numbers from attention maps for each exhibit, with interval, n and run. One pure function per exhibit.

Items have the IDs that `published_values.Figure` uses.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ...attention import Head
from ...interval import Estimate
from ...studies.attention.records import DependencyScore, LengthCorrelation, Score
from ...studies.records import picked
from .. import readings
from ..evidence import Evidence, StepResult
from ..ids import Condition, ExhibitId, Item, Part, Quantity
from ..published_values import frame_heads, printed_layers
from ..readings import by_layer, over_heads
from ..verdicts import Measured

LOOKED_AT = ("start", "separator", "noun", "verb", "pronoun", "subject", "object", "negation", "punctuation")
TOP = 2  # best heads named beside the paper's


def layers_of(estimates: Iterable[Estimate | None], like: Measured, subject: str = "") -> list[Measured]:
    """Convert one estimate per layer to measured numbers. All other fields are copied from `like`."""
    listed = list(estimates)
    return [
        replace(like, item=Item(Quantity.LAYER, subject, layer=k, layers=len(listed)), estimate=estimate)
        for k, estimate in enumerate(listed, 1)
        if estimate is not None
    ]


def condition_of(evidence: Evidence, checkpoint: str | None) -> Condition:
    """Return BEFORE for the report's own checkpoint, and TUNED for a checkpoint that was fine-tuned from it."""
    return Condition.BEFORE if checkpoint == evidence.checkpoint else Condition.TUNED


# ---------------------------------------------------------------- attention of the checkpoint


def shares(evidence: Evidence) -> list[Measured]:
    """Collect the share of each pattern class among maps, before and after fine-tuning (Kovaleva et al., Fig. 2)."""
    return [
        Measured(
            ExhibitId.SHARES, result.task, Item(Quantity.CLASS_SHARE, share.name),
            condition_of(evidence, share.checkpoint), share.estimate, share.inputs, "inputs", result.run,
            f"{share.maps:,} maps, classifier {share.classifier}",
        )
        for result in evidence.of(Part.SHARES)
        for share in readings.class_shares(result.rows)
    ]  # fmt: skip


def _frames(result: StepResult, exhibit: ExhibitId, condition: Condition) -> list[Measured]:
    frames = readings.frames(result.rows)
    ranked = sorted(frames.heads, key=lambda frame_head: -frame_head.estimate.value)
    head_names = {str(head) for head in frame_heads()} | {frame_head.name for frame_head in ranked[:TOP]}
    n, of, run = frames.summary.n, frames.summary.average, result.run

    def measured(item: Item, estimate: Estimate, note: str = "") -> Measured:
        return Measured(exhibit, None, item, condition, estimate, n, of, run, note)

    values = [
        measured(
            Item(Quantity.HEAD, head=Head.parse(frame_head.name)),
            frame_head.estimate,
            f"{'survives' if frame_head.survives else 'does not survive'} {frames.summary.nulls} nulls, "
            f"baseline {frame_head.baseline:.3f}",
        )
        for frame_head in ranked
        if frame_head.name in head_names
    ]
    values.append(measured(Item(Quantity.BEST_HEAD), ranked[0].estimate, ranked[0].name))
    values.append(measured(Item(Quantity.PERCENTILE), Estimate(frames.summary.line_99)))
    mean = over_heads(frames.heads)
    return values if mean is None else [*values, measured(Item(Quantity.MEAN_OVER_HEADS), mean)]


def frames(evidence: Evidence) -> list[Measured]:
    """Collect attention along frame links for selected heads, the best head and the mean (Kovaleva et al., Fig. 3)."""
    results = evidence.of(Part.FRAMES)
    return [value for result in results for value in _frames(result, ExhibitId.FRAMES, Condition.BEFORE)]


def sink(evidence: Evidence) -> list[Measured]:
    """Collect attention between targets and frame elements in GPT-2, with and without attention to the first token."""
    parts = ((Part.SINK, Condition.BEFORE), (Part.SINKLESS, Condition.WITHOUT_FIRST))
    return [
        value
        for part, condition in parts
        for result in evidence.of(part)
        for value in _frames(result, ExhibitId.SINK, condition)
    ]


def features(evidence: Evidence) -> list[Measured]:
    """Collect the mean attention to linguistic features, [SEP] and [CLS], over all layers and, if published by layer,
    for each layer (Kovaleva et al., Fig. 6)."""
    values = []
    for result in evidence.of(Part.FEATURES):
        for checkpoint in dict.fromkeys(score.checkpoint for score in picked(result.scores, statistic="max")):
            if checkpoint == "difference":
                continue
            for feature in LOOKED_AT:
                feature_scores = picked(result.scores, statistic="max", checkpoint=checkpoint, feature=feature)
                mean = over_heads(feature_scores)
                if mean is None:
                    continue
                item, n = Item(Quantity.MEAN_OVER_HEADS, feature), int(feature_scores[0].n or 0)
                about = (mean, n, "inputs that have it", result.run)
                condition = condition_of(evidence, checkpoint)
                overall = Measured(ExhibitId.FEATURES, result.task, item, condition, *about)
                values.append(overall)
                if feature in printed_layers():
                    values += layers_of(by_layer(feature_scores), overall, feature)
    return values


def classifying(evidence: Evidence) -> list[Measured]:
    """Collect attention from the classification token to each feature in the last layer (Kovaleva et al., Fig. 7)."""
    quantity = Quantity.FROM_LAST if evidence.causal else Quantity.FROM_CLS
    values = []
    for result in evidence.of(Part.FEATURES):
        condition = Condition.TUNED if result.step.options.compare else Condition.BEFORE
        for feature in LOOKED_AT:
            feature_scores = last_layer(result.scores, feature, evidence.checkpoint)
            mean = over_heads(feature_scores)
            if mean is not None:
                about = (mean, int(feature_scores[0].n or 0), "inputs that have it", result.run)
                values.append(Measured(ExhibitId.TOKENS, result.task, Item(quantity, feature), condition, *about))
    return values


def last_layer(some: Iterable[Score], feature: str, checkpoint: str) -> list[Score]:
    """Return the attention of each head in the last layer from the classification token to tokens with a feature."""
    classifying = picked(some, statistic="classifying", feature=feature)
    checkpoint_scores = [score for score in classifying if score.checkpoint != "difference"]
    tuned = [score for score in checkpoint_scores if score.checkpoint != checkpoint] or checkpoint_scores
    last = max((score.layer for score in tuned if score.layer is not None), default=None)
    return [score for score in tuned if last is not None and score.layer == last]


def relations(evidence: Evidence) -> list[Measured]:
    """Collect the best head for each syntactic relation (Kovaleva et al., Fig. 7). A note compares the head with its
    attention at the same distance elsewhere."""
    values = []
    for result in evidence.of(Part.RELATIONS):
        for task, feature, direction in dict.fromkeys(
            (score.task, score.feature, score.statistic) for score in result.scores
        ):
            link_scores = [
                score for score in picked(result.scores, task=task, feature=feature, statistic=direction) if score.n
            ]
            best = max(link_scores, key=lambda score: score.estimate.value, default=None)
            if best is None:
                continue
            item = Item(Quantity.BEST_HEAD, f"{feature} {direction}")
            note = f"{best.name}; at the same distance elsewhere {best.baseline:.3f}"
            about = (best.estimate, int(best.n or 0), "links", result.run, note)
            values.append(Measured(ExhibitId.TOKENS, task, item, Condition.BEFORE, *about))
    return values


def tokens(evidence: Evidence) -> list[Measured]:
    """Collect the numbers of Fig. 7 in Kovaleva et al.: attention between related words, and attention from [CLS]."""
    return [*relations(evidence), *classifying(evidence)]


# ---------------------------------------------------------------- the other papers


def statistics(evidence: Evidence) -> list[Measured]:
    """Count the heads that attend mainly to neighbouring tokens, and collect the entropy of attention from [CLS] in the
    last layer (as in Clark et al.)."""
    values = []
    for result in evidence.of(Part.STATISTICS):
        for task in dict.fromkeys(score.task for score in result.scores):
            task_scores = picked(result.scores, task=task)
            for name, quantity in (("previous", Quantity.ON_PREVIOUS), ("next", Quantity.ON_NEXT)):
                defined = [score for score in picked(task_scores, statistic=name) if score.value is not None]
                if defined:
                    unit = f"inputs, {len(defined)} heads"
                    about = (counted(defined, 0.5), int(defined[0].n or 0), unit, result.run, task or "")
                    values.append(Measured(ExhibitId.STATISTICS, None, Item(quantity), Condition.BEFORE, *about))
            entropies = picked(task_scores, statistic="classifying entropy")
            defined = [score for score in entropies if score.value is not None]
            layers = by_layer(defined)
            if layers and layers[-1] is not None:
                about = (layers[-1], int(defined[0].n or 0), "inputs", result.run, task or "")
                item = Item(Quantity.CLS_ENTROPY)
                values.append(Measured(ExhibitId.STATISTICS, None, item, Condition.BEFORE, *about))
    return values


def counted(some: Sequence[Score], bound: float) -> Estimate:
    """Count the heads with a value above `bound`. For the interval of the count, lower and upper confidence limits are
    counted instead of values."""
    lows, highs = [score.low for score in some], [score.high for score in some]
    low, high = (float(sum(end is not None and end > bound for end in ends)) for ends in (lows, highs))
    return Estimate(float(sum(score.estimate.value > bound for score in some)), low, high)


def dependencies(evidence: Evidence) -> list[Measured]:
    """Collect the accuracy of the best head and the best fixed distance for each dependency (Clark et al., Table 1)."""
    values = []
    for result in evidence.of(Part.DEPENDENCIES):
        for label in dict.fromkeys(score.feature or "" for score in result.scores):
            scores = picked(DependencyScore.among(result.rows), feature=label)
            defined = [score for score in scores if score.value is not None]
            if not defined:
                continue
            best = max(defined, key=lambda score: score.dev or 0.0)  # the direction too is chosen on dev
            item, note = Item(Quantity.BEST_HEAD, label), f"{best.name} {best.statistic}, chosen on dev"
            about = (best.estimate, int(best.n or 0), "links", result.run, note)
            head = Measured(ExhibitId.DEPENDENCIES, None, item, Condition.BEFORE, *about)
            values.append(head)
            if best.baseline is not None:
                fixed = Item(Quantity.FIXED_DISTANCE, label)
                baseline = Estimate(float(best.baseline))
                values.append(replace(head, item=fixed, estimate=baseline, note=f"{best.distance:+d}"))
    return values


def effective(evidence: Evidence) -> list[Measured]:
    """Collect raw and effective attention by token type, and their correlation by input length (Brunner et al.)."""
    values = []
    for result in evidence.of(Part.EFFECTIVE):
        for length in LengthCorrelation.among(result.rows):
            item = Item(Quantity.LENGTHS, f"{length.length_from} to {length.length_to}")
            about = (Estimate(length.mean), length.n, "inputs", result.run)
            x = float(length.length_to)
            values.append(Measured(ExhibitId.EFFECTIVE, length.task, item, Condition.NONE, *about, x=x))
        for condition in (Condition.RAW, Condition.EFFECTIVE):
            for token_type in ("start", "separator", "punctuation", "other"):
                for task in dict.fromkeys(score.task for score in result.scores):
                    type_scores = picked(result.scores, statistic=condition.value, feature=token_type, task=task)
                    mean = over_heads(type_scores)
                    if mean is not None:
                        item = Item(Quantity.TYPE_WEIGHT, token_type)
                        n = int(type_scores[0].n or 0)
                        values.append(
                            Measured(ExhibitId.EFFECTIVE, task, item, condition, mean, n, "inputs", result.run)
                        )
    return values
