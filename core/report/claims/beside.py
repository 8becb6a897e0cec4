"""Sentences on other ways to fine-tune, as tests of stored runs that the plan's own stand beside."""

from ...config import command_line
from ...studies.tuning.records import finetuned_task
from ..evidence import Evidence, StepResult
from ..ids import Part
from ..measures.scores import nothing_to_lose
from .outcomes import MARGIN, UNTESTED, Outcome, found_by, no_loss, points
from .seeds import needs, score_of, welch, with_luck


def by_separator(evidence: Evidence) -> list[Outcome]:
    """Classifying by [SEP] loses no more than a point beside classifying by [CLS], rows and seeds in the interval."""
    return _no_worse(evidence, Part.BY_SEPARATOR, "--set pooling=sep")


def fresh_last_layers(evidence: Evidence) -> list[Outcome]:
    """With the last two layers fresh, and trained alone, the score loses no more than a point beside fine-tuning as
    ever, rows and seeds in the interval."""
    return _no_worse(evidence, Part.FRESH_LAST, "--set reset_last=2 --set train_last=2")


def _no_worse(evidence: Evidence, part: Part, settings: str) -> list[Outcome]:
    outcomes = [_compared(evidence, result) for result in evidence.of(part)]
    tested = [outcome for outcome in outcomes if outcome is not None]
    command = f"{command_line('finetune', evidence.checkpoint, '--task', 'rte')} {settings} --seeds 3"
    return tested or [Outcome(UNTESTED, f"no rows: {command} makes them, to be set beside the same without --set")]


def _compared(evidence: Evidence, result: StepResult) -> Outcome | None:
    """The score by other settings less that of the plan's; the dev rows of both added, whatever they have in common."""
    usual = evidence.one(Part.TUNING, result.task)
    why = nothing_to_lose(evidence, result.task)
    if usual is None or why:
        return Outcome(UNTESTED, why, result.task) if why else None
    tunings = [finetuned_task(tuned.rows) for tuned in (result, usual)]
    metric, n = tunings[0].metric, min(tuning.rows for tuning in tunings)
    means = [tuning.mean("pretrained") for tuning in tunings]
    scores = [mean for mean in means if mean is not None and mean.of_metric(metric) is not None]
    if len(scores) < 2:
        return None
    (rows, luck), (below, usual_luck) = (score_of(score, metric, n) for score in scores)
    difference, joint_luck = rows - below, welch(luck, usual_luck)
    change = with_luck(difference, joint_luck)
    sentence = f"{metric} {points(change)} beside {below.value:.3f} as ever"
    decision = needs(no_loss([change]), difference, joint_luck, -MARGIN)
    return found_by(result, decision, sentence, n, seeds=min(score.n or 1 for score in scores))
