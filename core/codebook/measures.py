"""The codebook's own measurements of a map, and the thresholds that stand beside them.

They say where to look again, with a reason. They never label: what is disputed is decided by an eye.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

NEARLY_UNIFORM = 0.1  # maps whose largest weight stays below it are blank on the absolute scale
FAINT, STRONG = 0.15, 0.3  # weights in a column: that can be followed; that stands beside a line
FOLLOWED, BESIDE = 2 / 3, 1 / 3  # of the rows: a faint column is followed through; a strong one stands beside a line
HALF = 0.5  # of a sentence's rows, for the decoders' columns; a column in fewer rows than that is none
CLEAN = 0.9  # of the rows: from the first to the last, a few missing
MARK = 0.1  # a weight that marks a line; a line has marks in all three thirds of the map
SHORT = 0.1  # a weight that a decoder's column is followed by
OFFSETS = (0, -1, 1, -2, 2)  # key minus query
LINED = 0.5  # of the rows marked: a line that stands out beside a column
STEPS = {0: "the token itself", -1: "the previous token", 1: "the next token", -2: "two back", 2: "two ahead"}
Map = Float[np.ndarray, "query key"]


@dataclass(frozen=True)
class Column:
    """The strongest column: its key (zero-based), mean weight, and shares of rows at FAINT and at STRONG or more."""

    key: int
    weight: float
    faint_rows: float
    strong_rows: float


@dataclass(frozen=True)
class Line:
    """The strongest line: its offset (key minus query), mean weight, marked share of rows, and of its weakest third."""

    offset: int
    weight: float
    rows: float
    weakest_third: float


@dataclass(frozen=True)
class CodebookMeasures:
    """What the codebook asks of a map. two_columns: share of rows at FAINT or more in one of the two best columns (each
    sentence may look at its own); clean: columns at FAINT or more in nearly every row; longest: of each sentence the
    largest share of rows that one of its columns is followed through (causal maps; empty otherwise)."""

    largest: float
    column: Column
    line: Line
    two_columns: float
    clean: int
    longest: tuple[float, ...] = ()


def measured(weights: Map, *, separators: Sequence[int] = (), causal: bool = False) -> CodebookMeasures:
    """The measurements of one map whose rows sum to 1; a causal map's first row, which is always 1, is left out."""
    rows = np.asarray(weights, dtype=np.float64)
    considered = rows[1:] if causal and len(rows) > 1 else rows
    faint = (considered >= FAINT).mean(0)
    best = int(np.argmax(faint + considered.mean(0)))
    column = Column(
        best,
        float(considered[:, best].mean()),
        float(faint[best]),
        float((considered[:, best] >= STRONG).mean()),
    )
    return CodebookMeasures(
        float(considered.max()),
        column,
        _line(rows, causal),
        _either(considered >= FAINT, best),
        int((faint >= CLEAN).sum()),
        _longest(rows, separators) if causal else (),
    )


def _either(marks: np.ndarray, best: int) -> float:
    """The largest share of rows that are marked in column `best` or in one other."""
    return float((marks | marks[:, [best]]).mean(0).max())


def _line(rows: np.ndarray, causal: bool) -> Line:
    lines = {k: np.diagonal(rows, k) for k in OFFSETS if abs(k) < len(rows) and not (causal and k > 0)}
    if causal:
        lines = {k: line[1:] if k == 0 and len(line) > 1 else line for k, line in lines.items()}
    offset = max(lines, key=lambda k: float(lines[k].mean()))
    marks = lines[offset] >= MARK
    thirds = [float(part.mean()) for part in np.array_split(marks, 3) if part.size]
    return Line(offset, float(lines[offset].mean()), float(marks.mean()), min(thirds))


def _longest(rows: np.ndarray, separators: Sequence[int]) -> tuple[float, ...]:
    """Of each sentence the largest share of its rows at SHORT or more in one of its columns."""
    length = len(rows)
    cuts = sorted({cut + 1 for cut in separators if cut + 1 < length})[:1]
    parts = [range(cuts[0]), range(cuts[0], length)] if cuts else [range(length)]
    return tuple(
        float((rows[part.start + (part.start == 0) : part.stop, part.start : part.stop] >= SHORT).mean(0).max())
        if len(part) > 1
        else 0.0
        for part in parts
    )


def sentences(separators: Sequence[int], length: int) -> int:
    """How many sentences an input has: two where a separator stands before its last token."""
    return 2 if any(separator < length - 1 for separator in separators) else 1


def line_said(line: Line) -> str:
    """A line's measurements beside the thresholds."""
    return (
        f"line to {STEPS[line.offset]}: mean {line.weight:.2f}, {MARK} or more in {line.rows:.0%} of its places, "
        f"{line.weakest_third:.0%} of its weakest third (a line has marks in each)"
    )


def cut_of(weights: Map, separators: Sequence[int]) -> int:
    """Where the second sentence begins; the middle of a map of one."""
    return next((separator + 1 for separator in sorted(separators) if separator + 1 < len(weights)), len(weights) // 2)
