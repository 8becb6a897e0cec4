"""The codebook's own measurements of a map beside its thresholds, and whether they dispute a class that was given.

They say where to look again, with a reason. They never label: what is disputed is decided by an eye.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from core.patterns.classes import BERT, GPT2, NEARLY_UNIFORM

FAINT, STRONG = 0.15, 0.3  # weights in a column: that can be followed; that stands beside a line
FOLLOWED, BESIDE = 2 / 3, 1 / 3  # of the rows: a faint column is followed through; a strong one stands beside a line
HALF = 0.5  # of a sentence's rows, for the decoders' columns; a column in fewer rows than that is none
CLEAN = 0.9  # of the rows: from the first to the last, a few missing
MARK = 0.1  # a weight that marks a line; a line has marks in all three thirds of the map
SHORT = 0.1  # a weight that a decoder's column is followed by
OFFSETS = (0, -1, 1, -2, 2)  # key minus query
LINED = 0.5  # of the rows marked: a line that stands out beside a column
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


def dispute(class_set: str, name: str, measures: CodebookMeasures, *, sentences: int) -> str | None:
    """Why the codebook disputes a class given to a map, as a sentence; None where it does not, or knows no such set.

    sentences: of the map's input.
    """
    rules = {BERT.name: _of_encoders, GPT2.name: _of_decoders}.get(class_set)
    return rules(name, measures, sentences) if rules else None


def _of_encoders(name: str, measures: CodebookMeasures, sentences: int) -> str | None:
    column, line = measures.column, measures.line
    has_line = line.weakest_third > 0 and line.rows >= LINED
    if measures.largest < NEARLY_UNIFORM:
        return None if name == "heterogeneous" else f"no weight reaches {NEARLY_UNIFORM}"
    if name == "heterogeneous" and column.faint_rows >= FOLLOWED:
        return f"a column has {FAINT} or more in {column.faint_rows:.0%} of the rows"
    if name == "heterogeneous" and has_line:
        return f"a line is marked in {line.rows:.0%} of the rows"
    if name == "vertical" and measures.two_columns < HALF and measures.clean < 2:
        return f"the two strongest columns have {FAINT} or more in only {measures.two_columns:.0%} of the rows"
    if name == "vertical" and has_line:
        return f"a line is marked in {line.rows:.0%} of the rows"
    if name == "vertical+diagonal" and column.strong_rows < BESIDE:
        return f"the column beside the line has {STRONG} in only {column.strong_rows:.0%} of the rows"
    if name in ("diagonal", "vertical+diagonal") and not line.weakest_third:
        return "the line has no mark in one third of the map"
    if name == "diagonal" and column.strong_rows >= BESIDE:
        return f"a column beside the line has {STRONG} in {column.strong_rows:.0%} of the rows"
    if name == "block" and sentences < 2:
        return "squares inside a single sentence are Heterogeneous"
    return None


def _of_decoders(name: str, measures: CodebookMeasures, sentences: int) -> str | None:
    in_each = bool(measures.longest) and min(measures.longest) >= HALF
    if name == "block" and measures.longest and not in_each:
        return (
            f"in one of the sentences no column is followed through more than {min(measures.longest):.0%} of its rows"
        )
    if name == "overall" and in_each and sentences > 1:
        return f"in each sentence a column is followed through {min(measures.longest):.0%} of its rows or more"
    if name == "diagonal" and not measures.line.weakest_third:
        return "the line has no mark in one third of the map"
    return None


STEPS = {0: "the token itself", -1: "the previous token", 1: "the next token", -2: "two back", 2: "two ahead"}


def explained(class_set: str, measures: CodebookMeasures, tokens: Sequence[str]) -> str:
    """The measurements of a map beside the codebook's thresholds, as one line; "" for a class set without any.

    tokens: of the map, or none.
    """
    if class_set not in (BERT.name, GPT2.name):
        return ""
    column, line = measures.column, measures.line
    key = f"{tokens[column.key]} ({column.key + 1})" if column.key < len(tokens) else f"{column.key + 1}"
    line_said = (
        f"line to {STEPS[line.offset]}: mean {line.weight:.2f}, {MARK} or more in {line.rows:.0%} of its places, "
        f"{line.weakest_third:.0%} of its weakest third (a line has marks in each)"
    )
    if class_set == GPT2.name and measures.longest:
        followed = " and ".join(f"{share:.0%}" for share in measures.longest)
        return f"columns followed through {followed} of a sentence's rows (Block from {HALF:.0%} in each); {line_said}"
    return (
        f"strongest column {key}: mean {column.weight:.2f}, {FAINT} or more in {column.faint_rows:.0%} of the rows "
        f"(Vertical from {FOLLOWED:.0%}), {STRONG} or more in {column.strong_rows:.0%} (beside a line from "
        f"{BESIDE:.0%}); {line_said}; largest weight {measures.largest:.2f} (blank below {NEARLY_UNIFORM})"
    )
