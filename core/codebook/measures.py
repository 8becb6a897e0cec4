"""Measurements of a map and their thresholds in the codebook, which show what to check and never assign labels."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

NEARLY_UNIFORM = 0.1  # maps whose largest weight is below this are blank on the absolute scale
FAINT, STRONG = 0.15, 0.3  # weights in a column: visible; dark enough to count next to a line
FOLLOWED, BESIDE = 2 / 3, 1 / 3  # fraction of rows: of a visible column; of a dark column next to a line
HALF = 0.5  # fraction of a sentence's rows, for columns of decoders
CLEAN = 0.9  # fraction of rows of a column from the first to the last, allowing gaps
MARK = 0.1  # weight that marks a line; a line has marks in all three thirds of the map
SHORT = 0.1  # weight of a visible column in decoders
OFFSETS = (0, -1, 1, -2, 2)  # key minus query
LINED = 0.5  # fraction of marked positions of a line next to a column
STEPS = {0: "the token itself", -1: "the previous token", 1: "the next token", -2: "two back", 2: "two ahead"}
Map = Float[np.ndarray, "query key"]


@dataclass(frozen=True)
class Column:
    """The strongest column (key) of an attention map, with its mean weight. `faint_rows` and `strong_rows` are the
    fractions of rows with weights of at least FAINT and STRONG in this column."""

    key: int
    weight: float
    faint_rows: float
    strong_rows: float


@dataclass(frozen=True)
class Line:
    """The strongest diagonal line of an attention map. `offset` is key minus query, and `weight` is the mean weight.
    `rows` is the fraction of cells with a weight of at least MARK. `weakest_third` is the same fraction in the third of
    the line where it is lowest."""

    offset: int
    weight: float
    rows: float
    weakest_third: float


@dataclass(frozen=True)
class CodebookMeasures:
    """The measurements of an attention map. The codebook compares them with thresholds.

    Attributes:
        two_columns: fraction of rows with at least FAINT in one of the two best columns.
        clean: number of columns with at least FAINT in nearly every row.
        longest: for each sentence, the largest fraction of its rows in one column (causal maps; otherwise empty).
    """

    largest: float
    column: Column
    line: Line
    two_columns: float
    clean: int
    longest: tuple[float, ...] = ()


def measured(weights: Map, *, separators: Sequence[int] = (), causal: bool = False) -> CodebookMeasures:
    """Measure how strong the columns and diagonal lines of a map are. The first row of a causal map is ignored."""
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
    # Largest fraction of rows marked in column `best` or one other
    marks = considered >= FAINT
    return CodebookMeasures(
        float(considered.max()),
        column,
        _line(rows, causal),
        float((marks | marks[:, [best]]).mean(0).max()),
        int((faint >= CLEAN).sum()),
        _longest(rows, separators) if causal else (),
    )


def _line(rows: np.ndarray, causal: bool) -> Line:
    lines = {k: np.diagonal(rows, k) for k in OFFSETS if abs(k) < len(rows) and not (causal and k > 0)}
    if causal:
        lines = {k: line[1:] if k == 0 and len(line) > 1 else line for k, line in lines.items()}
    offset = max(lines, key=lambda k: float(lines[k].mean()))
    marks = lines[offset] >= MARK
    thirds = [float(part.mean()) for part in np.array_split(marks, 3) if part.size]
    return Line(offset, float(lines[offset].mean()), float(marks.mean()), min(thirds))


def _longest(rows: np.ndarray, separators: Sequence[int]) -> tuple[float, ...]:
    """Return, for each sentence, the largest fraction of its rows with at least SHORT in one of its columns."""
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
    """Return the number of sentences in an input: two if there is a separator before the last token, otherwise one."""
    return 2 if any(separator < length - 1 for separator in separators) else 1


def line_said(line: Line) -> str:
    """Describe a diagonal line in a map in words, with its measurements and the thresholds of the codebook."""
    return (
        f"line to {STEPS[line.offset]}: mean {line.weight:.2f}, {MARK} or more in {line.rows:.0%} of its cells "
        f"and in {line.weakest_third:.0%} of its weakest third (must be above 0 %)"
    )


def cut_of(weights: Map, separators: Sequence[int]) -> int:
    """Return the index at which the second sentence of a map begins. For a single sentence, return the middle of the
    map."""
    return next((separator + 1 for separator in sorted(separators) if separator + 1 < len(weights)), len(weights) // 2)
