"""The four classes of decoder maps of the GPT-2 replication."""

from collections.abc import Sequence

import numpy as np

from ..classes import Border, ClassSet, Codebook, PatternClass
from ..measures import BESIDE, HALF, MARK, SHORT, STRONG, CodebookMeasures, Map, cut_of, line_said, measured
from . import Random, background, normalised

NAME = "gpt2"


def _disputes(name: str, measures: CodebookMeasures, sentences: int) -> str | None:
    in_each = bool(measures.longest) and min(measures.longest) >= HALF
    if name == "block" and measures.longest and not in_each:
        return f"one sentence has no column with {SHORT} or more in over {min(measures.longest):.0%} of its rows"
    if name == "overall" and in_each and sentences > 1:
        return f"each sentence has a column with {SHORT} or more in at least {min(measures.longest):.0%} of its rows"
    if name == "diagonal" and not measures.line.weakest_third:
        return f"one third of the diagonal line has no cell with {MARK} or more"
    return None


def _explains(measures: CodebookMeasures, key: str) -> str:
    followed = " and ".join(f"{share:.0%}" for share in measures.longest)
    columns = f"columns with {SHORT} or more in {followed} of a sentence's rows (Block from {HALF:.0%} in each); "
    return columns * bool(measures.longest) + line_said(measures.line)


def _draw(rng: Random, name: str, length: int) -> Map:
    noise = background(rng, length)
    if name == "diagonal":
        return normalised(noise + 3 * np.eye(length, k=-int(rng.integers(0, 2))), causal=True)
    if name == "majority":
        picture = np.zeros((length, length))
        picture[:, : length // 3] = 1
        return normalised(0.1 * noise + picture, causal=True)
    if name == "block":
        picture = np.zeros((length, length))
        for start in (length // 4, 3 * length // 5):
            picture[:, start : start + 3] = 1
        return normalised(0.3 * noise + picture, causal=True)
    return normalised(noise, causal=True)


def _on_first_token(weights: Map, separators: Sequence[int], causal: bool) -> float:
    """Return the fraction of the second sentence's rows with at least STRONG on the first token."""
    return float((weights[cut_of(weights, separators) :, 0] >= STRONG).mean())


def _shortest(weights: Map, separators: Sequence[int], causal: bool) -> float:
    return min(measured(weights, separators=separators, causal=True).longest)


BORDERS = (
    Border(
        "columns-in-each-sentence",
        NAME,
        ("overall", "block"),
        f"A map belongs to the class Block if, in each sentence, one column has a weight of {SHORT} or more in at "
        f"least {HALF:.0%} of the rows. A map with single dark cells instead of dark columns belongs to the class "
        "Overall (attention all over the map).",
        _shortest,
        "column in {value:.0%} of the rows of the weaker sentence",
        HALF,
        two_sentences=True,
    ),
    Border(
        "first-sentence",
        NAME,
        ("overall", "majority"),
        "A map belongs to the class Majority (M1) if the tokens of the second sentence attend mostly to the first "
        f"sentence. The class Majority (M1) requires a weight of {STRONG} or more on the first token in at least "
        f"{BESIDE:.0%} of the rows of the second sentence. A map below this threshold belongs to the class Overall.",
        _on_first_token,
        "dark first column in {value:.0%} of the rows of the second sentence",
        BESIDE,
        two_sentences=True,
    ),
)

CLASS_SET = ClassSet(
    NAME,
    "GPT-2: four classes",
    "Lalwani 2024, task 1",
    (
        PatternClass(
            "diagonal",
            "Diagonal",
            "A dark line along the diagonal or next to it: each token attends to itself or to the few tokens before "
            "it.",
            "#E69F00",
            "1",
        ),
        PatternClass("block", "Block", "Some dark vertical blocks of attention in both sentences.", "#CC79A7", "2"),
        PatternClass(
            "majority",
            "Majority (M1)",
            "Most or all attention is on sentence 1, including its first token. If there is only one sentence, most "
            "attention is on its first half.",
            "#0072B2",
            "3",
        ),
        PatternClass(
            "overall",
            "Overall",
            "Attention all over the map, whether dark or pale. This class includes nearly uniform maps, and maps with "
            "other weight besides a clear line on the first and last token of sentence 1.",
            "#999999",
            "4",
        ),
    ),
    causal=True,
    codebook=Codebook(
        blank="overall",
        labelled=("gpt2", "decoder-30m"),
        rows=200,
        disputes=_disputes,
        explains=_explains,
        draw=_draw,
        borders=BORDERS,
    ),
    usual=True,
)
