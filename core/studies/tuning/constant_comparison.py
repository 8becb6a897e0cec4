"""Whether what was fine-tuned is shown to be above a constant predictor, in words."""

from collections.abc import Sequence

from ...scoring.chance import above_constant, above_zero
from ...tasks.glue import task_of
from .records import TunedScore

LEAST = 3  # rows that a correlation's interval needs more than


def better_constant(scores: Sequence[TunedScore], task: str) -> float | None:
    """What the better constant prediction has right on the dev rows; None where the rows do not say.

    Args:
        scores: the rows of `finetune`, of any tasks.

    Returns:
        A share, 0 to 1: of two labels the one that is right more often on dev, which train rows need not say.
    """
    known = [score.accuracy for score in scores if (score.kind, score.task) == ("baseline", task) and score.accuracy]
    if not known:
        return None
    return max(max(known), 1 - max(known)) if len(task_of(task).labels) == 2 else max(known)


def not_shown(scores: Sequence[TunedScore], score: TunedScore) -> str:
    """What to tell people where a run, or a mean of runs, is not shown to be above the constant; "" where it is.

    Args:
        scores: all rows of the `finetune` that it is of.
        score: of kind "run" or "mean".

    Returns:
        Half a sentence, or "" also where nothing can be said: no constant, no dev rows.
    """
    rows = next((run.dev_rows for run in scores if (run.kind, run.task) == ("run", score.task)), None)
    if not rows:
        return ""
    if task_of(score.task).is_score:
        return _uncorrelated(score, rows)
    constant = better_constant(scores, score.task)
    if score.accuracy is None or constant is None:
        return ""
    return above_constant(score.accuracy, constant, rows).sentence


def _uncorrelated(score: TunedScore, rows: int) -> str:
    if score.pearson is None:
        return "its scores are all the same, as a constant's are"
    return above_zero(score.pearson, rows).sentence if rows > LEAST else ""
