"""The five classes of encoder maps of Kovaleva et al. 2019."""

from collections.abc import Sequence

import numpy as np

from ..classes import Border, ClassSet, Codebook, PatternClass
from ..measures import (
    BESIDE,
    FAINT,
    FOLLOWED,
    HALF,
    LINED,
    MARK,
    NEARLY_UNIFORM,
    STRONG,
    CodebookMeasures,
    Map,
    cut_of,
    line_said,
    measured,
)
from . import Random, background, columns, halves, line, normalised

NAME = "bert"


def _disputes(name: str, measures: CodebookMeasures, sentences: int) -> str | None:
    column, line = measures.column, measures.line
    has_line = line.weakest_third > 0 and line.rows >= LINED
    if measures.largest < NEARLY_UNIFORM:
        return None if name == "heterogeneous" else f"no weight reaches {NEARLY_UNIFORM}"
    if name == "heterogeneous" and column.faint_rows >= FOLLOWED:
        return f"a column has {FAINT} or more in {column.faint_rows:.0%} of the rows"
    if name == "heterogeneous" and has_line:
        return f"a diagonal line has {MARK} or more in {line.rows:.0%} of its cells"
    if name == "vertical" and measures.two_columns < HALF and measures.clean < 2:
        return f"the two strongest columns have {FAINT} or more in only {measures.two_columns:.0%} of the rows"
    if name == "vertical" and has_line:
        return f"a diagonal line has {MARK} or more in {line.rows:.0%} of its cells"
    if name == "vertical+diagonal" and column.strong_rows < BESIDE:
        return f"the column next to the line has {STRONG} or more in only {column.strong_rows:.0%} of the rows"
    if name in ("diagonal", "vertical+diagonal") and not line.weakest_third:
        return f"one third of the diagonal line has no cell with {MARK} or more"
    if name == "diagonal" and column.strong_rows >= BESIDE:
        return f"a column next to the line has {STRONG} or more in {column.strong_rows:.0%} of the rows"
    if name == "block" and sentences < 2:
        return "squares inside a single sentence are Heterogeneous"
    return None


def _explains(measures: CodebookMeasures, key: str) -> str:
    column = measures.column
    return (
        f"strongest column {key}: mean {column.weight:.2f}, {FAINT} or more in {column.faint_rows:.0%} of the rows "
        f"(Vertical from {FOLLOWED:.0%}), {STRONG} or more in {column.strong_rows:.0%} (next to a line from "
        f"{BESIDE:.0%}); {line_said(measures.line)}; largest weight {measures.largest:.2f} (blank below "
        f"{NEARLY_UNIFORM})"
    )


def _draw(rng: Random, name: str, length: int) -> Map:
    noise = background(rng, length)
    if name == "vertical":
        return normalised(noise + 2 * columns(rng, length))
    if name == "diagonal":
        return normalised(noise + 3 * line(rng, length))
    if name == "vertical+diagonal":
        return normalised(noise + 2 * columns(rng, length) + 3 * line(rng, length))
    if name == "block":
        return normalised(0.05 * noise + halves(rng, length))
    return normalised(noise + (rng.random((length, length)) > 0.93) * rng.uniform(0, 1, (length, length)))


def _inside(weights: Map, separators: Sequence[int], causal: bool) -> float:
    """Return the mean share of a row's weight within its own sentence."""
    cut = cut_of(weights, separators)
    inside = np.concatenate([weights[:cut, :cut].sum(1), weights[cut:, cut:].sum(1)])
    return float(inside.mean())


BORDERS = (
    Border(
        "weak-columns",
        NAME,
        ("heterogeneous", "vertical"),
        f"A map belongs to the class Vertical if one column has a weight of {FAINT} or more in at least {FOLLOWED:.0%} "
        f"of the rows. A column with a weight of {FAINT} or more in fewer than {FOLLOWED:.0%} of the rows counts as "
        "scattered spots (class Heterogeneous), even if some cells are dark.",
        lambda weights, *_: measured(weights).column.faint_rows,
        "column in {value:.0%} of the rows",
        FOLLOWED,
    ),
    Border(
        "faint-stripes",
        NAME,
        ("heterogeneous", "vertical"),
        f"A map whose largest weight is below {NEARLY_UNIFORM} belongs to the class Heterogeneous, because the map "
        "looks blank on a colour scale from 0 to 1. Faint stripes of a pale map are visible only if the colour scale "
        "ends at the largest weight of the map.",
        lambda weights, *_: float(weights.max()),
        "largest weight {value:.2f}",
        NEARLY_UNIFORM,
        own_scale=True,
    ),
    Border(
        "line-beside-columns",
        NAME,
        ("vertical", "vertical+diagonal"),
        "A map with a dark column belongs to the class Vertical + Diagonal if a diagonal line is also visible from end "
        f"to end. The diagonal line must have a weight of {MARK} or more in at least {LINED:.0%} of its cells, "
        "including cells in each third of the line.",
        lambda weights, *_: measured(weights).line.rows,
        "line that covers {value:.0%} of its positions",
        LINED,
    ),
    Border(
        "column-beside-line",
        NAME,
        ("diagonal", "vertical+diagonal"),
        "A map with a diagonal line belongs to the class Vertical + Diagonal if one column has a weight of "
        f"{STRONG} or more in at least {BESIDE:.0%} of the rows. A map with a diagonal line but without a sufficiently "
        "dark column belongs to the class Diagonal.",
        lambda weights, *_: measured(weights).column.strong_rows,
        "column in {value:.0%} of the rows",
        BESIDE,
    ),
    Border(
        "squares",
        NAME,
        ("heterogeneous", "block"),
        "A map of two sentences belongs to the class Block if each sentence forms a visible square on the diagonal, "
        "and hardly any weight is outside these squares. A map of two sentences with patchy attention inside a "
        "sentence, or with attention between the sentences, belongs to the class Heterogeneous.",
        _inside,
        "{value:.0%} of the weight within its sentence",
        own_scale=True,
        two_sentences=True,
    ),
)

CLASS_SET = ClassSet(
    NAME,
    "BERT: five classes",
    "Kovaleva et al. 2019, section 4.1",
    (
        PatternClass(
            "vertical",
            "Vertical",
            "One or more dark columns: most queries attend to the same few keys, mainly [CLS] and [SEP].",
            "#0072B2",
            "1",
        ),
        PatternClass(
            "diagonal",
            "Diagonal",
            "A dark line along the main diagonal or next to it: each token attends to itself, to the previous or to "
            "the next token.",
            "#E69F00",
            "2",
        ),
        PatternClass(
            "vertical+diagonal",
            "Vertical + Diagonal",
            "Dark columns and a dark diagonal line, both clearly visible.",
            "#009E73",
            "3",
        ),
        PatternClass(
            "block",
            "Block",
            "Squares on the diagonal: tokens attend evenly to their own sentence, and hardly to the other sentence.",
            "#CC79A7",
            "4",
        ),
        PatternClass(
            "heterogeneous",
            "Heterogeneous",
            "None of the other classes: scattered spots, or a nearly uniform map (largest weight below "
            f"{NEARLY_UNIFORM}), which is blank on the scale from 0 to 1.",
            "#999999",
            "5",
        ),
    ),
    causal=False,
    codebook=Codebook(
        blank="heterogeneous",
        labelled=("bert", "encoder-60m", "bert-base-sst2", "minilm"),
        rows=1000,
        disputes=_disputes,
        explains=_explains,
        draw=_draw,
        borders=BORDERS,
        counted="The 32 to 61 % of Heterogeneous maps in the paper include Block; here the two classes are separate.",
    ),
    usual=True,
)
