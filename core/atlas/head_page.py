"""The page of one head in one file: what is known of it, its maps to explore, its gallery, and every score."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
import pandas as pd
from jaxtyping import Float

from ..attention import Head
from ..config import command_line
from ..drawing.packing import Grid
from ..drawing.page import GridTabs, Part, Table, Words, html_page
from ..drawing.panes import Pane
from ..drawing.payload import as_bytes
from ..studies.hypotheses.records import JudgedHypothesis
from .head import facts, nearest, sentence


@dataclass(frozen=True)
class Shelved:
    """One input of a gallery.

    Attributes:
        where: its place in the gallery's order, in words.
        tokens: its pieces, one a row and column of the map.
        weights: the head's map of it, weights 0 to 1.
        causal: whether queries see only keys up to their own.
    """

    where: str
    value: float
    text: str
    tokens: tuple[str, ...]
    weights: Float[np.ndarray, "query key"]
    causal: bool = False


@dataclass(frozen=True)
class Gallery:
    """A head's inputs in the order of a score. of: that score, and over how many inputs."""

    inputs: Sequence[Shelved] = ()
    of: str = ""


def head_page(
    head: Head,
    checkpoint: str,
    scores: pd.DataFrame,
    rows: pd.DataFrame,
    *,
    task: str | None = None,
    maps: Grid | str = "",
    gallery: Gallery = Gallery(),
    hypotheses: Sequence[JudgedHypothesis] = (),
) -> str:
    """The page as text. scores: of all heads on one task, as the atlas has them; rows: this head's, as the table shows.

    maps: of all heads on one input, or why there are none. hypotheses: about this head, tested or not.
    """
    known = facts(scores, head)
    sources = "; ".join(f"{fact.about}: {fact.source}" for fact in known)
    parts: list[Part] = [Words(text=f"Sources: {sources}" if known else "")]
    grids = {} if isinstance(maps, str) else {"all heads": maps}
    grids |= {f"{example.where}: {example.value:.3f}": _grid(example, head) for example in gallery.inputs}
    parts += [GridTabs(grids, "Maps", gallery.of and f"Gallery: {gallery.of}.")] if grids else []
    parts += [Words(text=maps)] if isinstance(maps, str) else []
    if alike := nearest(scores, head):
        text = ", ".join(f"{other} ({apart:.2f})" for other, apart in alike)
        said = "by their statistics: root mean square difference, in standard deviations over heads"
        parts.append(Words("Nearest heads", f"{text}\n{said}"))
    parts += _judged(hypotheses)
    cells = rows.astype(object).where(rows.notna(), None).to_numpy().tolist()
    parts.append(Table([str(name) for name in rows.columns], cells, "Every score"))
    parts.append(Words("The same again", command=command_of(checkpoint, task)))
    place = f"{checkpoint} · {task} · " if task else f"{checkpoint} · "
    lead = f"{sentence(known)}\n{place}{date.today():%d %B %Y} · L1H1 is the first head of the first layer"
    return html_page(f"{head} of {checkpoint}", parts, lead=lead)


def _judged(hypotheses: Sequence[JudgedHypothesis]) -> list[Part]:
    """Each hypothesis with its verdict, and its criteria as a table."""
    parts: list[Part] = []
    for number, one in enumerate(hypotheses):
        parts.append(Words("" if number else "Hypotheses", f"{one.sentence}: {one.verdict}"))
        if one.criteria:
            columns = ["criterion", "state", "what", "value", "low", "high", "baseline", "n", "p, Holm", "level"]
            cells = [
                (criterion.criterion, criterion.state, criterion.measure, criterion.amount, criterion.low,
                 criterion.high, criterion.baseline, criterion.n, criterion.adjusted, criterion.level)
                for criterion in one.criteria
            ]  # fmt: skip
            parts.append(Table(columns, cells))
    return parts


def _grid(example: Shelved, head: Head) -> Grid:
    pane = Pane(
        f"{head}, {example.where}",
        1,
        1,
        example.tokens,
        as_bytes(example.weights),
        example.causal,
        named=str(head),
        scores={},
    )
    return Grid([pane], example.text[:200], str(head), note=f"{example.where}, {example.value:.3f}: {example.text}")


def command_of(checkpoint: str, task: str | None) -> str:
    """What a terminal types to get a checkpoint's scores."""
    return command_line("atlas", checkpoint, *(["--task", task] if task else []))
