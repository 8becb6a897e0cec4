"""Raw and effective attention (Brunner et al. 2020, section 3, Figs 2 and 3): mean weight on token types, and Pearson's
r between raw and effective weights, by head and by input length."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pydantic.dataclasses

from ... import scoring, studies
from ...scoring.definitions import TYPES
from ...scoring.registry import HeadScore
from ...store.rows import Row
from ...tasks.glue import task_name
from ..contract import Unit
from ..headline import Headline, defined, percent
from ..options import Limit
from ..records import Result
from .attending import Attending, of_heads
from .inputs import AttendingOptions, SourceText, chunks
from .partials import EffectiveSums, Pieces
from .records import EffectiveScore, LengthCorrelation

if TYPE_CHECKING:
    from .measures import EffectiveMeasure

ROWS_A_UNIT = 32
EQUAL = 0.9995  # r from which two maps count as equal
BIN = 8  # lengths of 1 to 8, 9 to 16 ... pieces are shown together


@pydantic.dataclasses.dataclass(frozen=True)
class EffectiveOptions(AttendingOptions):
    """Options for the study of effective attention."""

    limit: Limit = 100


class EffectiveStudy(Attending[EffectiveOptions, EffectiveSums]):
    """Compare raw and effective attention to token types, and their correlation by input length (Brunner et al.)."""

    name, options, partial = "effective", EffectiveOptions, Pieces[EffectiveSums]
    question = "How much do raw and effective attention differ?"
    kinds = (EffectiveScore, LengthCorrelation)
    head_scores = tuple(
        HeadScore(name, label, formula, ("values",), low, 1.0, "Brunner et al. 2020", about=about)
        for name, label, formula, low, about in (
            ("raw", "raw attention", "mean weight on tokens of a type", 0.0, "token type"),
            ("effective", "effective attention", "mean effective weight on tokens of a type", None, "token type"),
            ("correlation", "raw and effective", "Pearson's r between raw and effective attention", -1.0, ""),
        )
    )
    said_at = 11
    section = "beyond weights"
    gives = "effective attention"

    def units(self, options: EffectiveOptions) -> list[Unit]:
        """Divide the inputs into small chunks, because effective attention needs a singular value decomposition for
        each head."""
        return [Unit(chunk.key, chunk, size) for chunk, size in chunks(options, ROWS_A_UNIT)]

    def measure(self, options: EffectiveOptions, checkpoint: Any) -> "EffectiveMeasure":
        return studies.attention.measures.EffectiveMeasure(checkpoint)

    def observe(self, measure: Any, checkpoint: Any, pipeline: Any, inputs: Sequence[SourceText]) -> None:
        windows = studies.attention.measures.in_windows(checkpoint, inputs)
        measure.measure(studies.attention.measures.prepare(checkpoint, None, windows))

    def scores(self, options: EffectiveOptions, sums: EffectiveSums) -> list[Result]:
        whole, scores = sums.means.result(), list[Result]()
        named: list[tuple[str, str | None]] = [
            (kind, kind_type) for kind in studies.attention.measures.KINDS for kind_type in TYPES
        ]
        for number, name in enumerate([*named, ("correlation", None)]):
            value = whole.part(number)
            scores += of_heads(EffectiveScore, sums, value, *name, otherwise="no input has such tokens")
        bins: dict[int, np.ndarray] = {}
        for length, (total, inputs) in sorted(sums.by_length.items()):
            seen = np.array([total, inputs, sums.squares.get(length, np.nan)])
            low = (length - 1) // BIN * BIN + 1
            bins[low] = bins.get(low, np.zeros(3)) + seen
        results = []
        for low, (total, inputs, squares) in bins.items():
            least, most = scoring.intervals.student(total, squares, int(inputs)) or (None, None)
            results.append(
                LengthCorrelation(
                    checkpoint=sums.at.checkpoint, task=sums.at.task, length_from=low, length_to=low + BIN - 1,
                    mean=total / inputs, low=least, high=most, n=int(inputs),
                )
            )  # fmt: skip
        return scores + results

    def headline(self, rows: Sequence[Row]) -> Headline:
        heads = [score for score in EffectiveScore.of_heads(rows) if score.statistic == "correlation"]
        least = min(heads, key=lambda score: defined(score.value))
        mean = sum(defined(score.value) for score in heads) / len(heads)
        names = list(dict.fromkeys(task_name(score.task) for score in heads if score.task))
        over, on = ("", "") if len(names) < 2 else (f" over {', '.join(names)}", f" on {task_name(least.task)}")
        highest = None if least.high is None else min(1.0, least.high)
        interval = percent(least.low, highest, "{:.2f}", 1)
        interval = interval and f" ({interval})"
        lengths = LengthCorrelation.among(rows)
        lowest = f"Head {least.name} has the lowest correlation{on}: r = {least.value:.2f}"
        if any(length.mean > EQUAL for length in lengths):  # the interval of a mean that is mostly of ones misleads
            lowest = "The correlation r is the mean over heads and longer inputs, without a confidence interval"
            interval = ""
        return Headline(
            by_length(lengths, over) or f"Raw and effective attention correlate with r = {mean:.2f} on average{over}.",
            sum({score.task: int(score.n or 0) for score in heads}.values()),
            "inputs",
            f"{lowest}{interval}.",
            "If effective attention equals raw attention, their correlation r is 1.",
        )


STUDY = EffectiveStudy()


def by_length(lengths: Sequence[LengthCorrelation], over: str = "") -> str:
    """Return a sentence that compares raw and effective attention on short and long inputs, or "" without data."""
    equal = max((length.length_to for length in lengths if length.mean > EQUAL), default=0)
    longer = [length for length in lengths if length.length_from > equal]
    if not longer:
        return f"Raw and effective attention are equal on all inputs, of up to {equal} tokens." if equal else ""
    inputs = sum(length.n for length in longer)
    mean = sum(length.n * length.mean for length in longer) / inputs
    found = f"their mean correlation is r = {mean:.2f}{over}"
    if not equal:
        return f"Raw and effective attention differ on all {inputs} inputs: {found}."
    on = "the longer input" if inputs == 1 else f"the {inputs} longer inputs"
    return f"Raw and effective attention are equal on inputs of up to {equal} tokens. On {on}, the two differ: {found}."
