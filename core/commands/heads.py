"""`python -m core heads CHECKPOINT --sentence S --target WORD --element WORDS`: heads that link two places in a
sentence.
"""

from dataclasses import dataclass
from typing import Annotated

from rich.table import Table

from .. import models
from ..frames.records import AnnotatedSentence, Element, place
from ..studies.contract import Flag
from ..studies.frames.frame_lookup import LinkReading, look_up
from ..studies.options import Checkpoint, LinkDirection, LinkPairing
from ..studies.records import Result
from .output import Form, cell, show_rows, tell, tell_table
from .parameters import of_record


@dataclass(frozen=True)
class HeadsOptions:
    """Options for ranking heads: a sentence with a target and frame elements, and the method of ranking."""

    checkpoint: Checkpoint
    sentence: Annotated[str, Flag("sentence to analyse")]
    target: Annotated[str, Flag('word that evokes the frame; "walk#2" means the second "walk" in the sentence')]
    element: Annotated[
        list[str], Flag("words of one frame element in the sentence; repeat the option for further elements")
    ]
    direction: LinkDirection = "element_to_target"
    pairing: LinkPairing = "product"
    without_first: Annotated[bool, Flag("ignore attention to the first token", name="--without-first")] = False
    raw: Annotated[
        bool,
        Flag(
            "rank heads by raw attention weight (default: subtract the mean weight at the same distance)",
            name="--raw",
        ),
    ] = False
    revision: Annotated[
        str | None, Flag("revision of the checkpoint on the Hugging Face hub: branch, tag or commit (default: main)")
    ] = None
    top: Annotated[
        int, Flag("number of heads in the printed table; JSON, CSV and LaTeX output always contain all heads")
    ] = 10

    @property
    def annotated(self) -> AnnotatedSentence:
        """Return the sentence with its target and frame elements marked. Raises InputError if a word is not in the
        sentence."""
        elements = tuple(
            Element(f"element {k}", (place(self.sentence, words, "element"),))
            for k, words in enumerate(self.element, 1)
        )
        return AnnotatedSentence(
            "typed", self.sentence, (place(self.sentence, self.target, "target"),), elements=elements
        )


@of_record(HeadsOptions)
def heads(asked: HeadsOptions, form: Form) -> None:
    """Rank heads by attention between a target and a frame element in one sentence (Fig. 3 of Kovaleva et al. 2019).
    The baseline is attention between other positions at the same distance."""
    marked = asked.annotated
    opened = models.opening.open_checkpoint(asked.checkpoint, revision=asked.revision)
    for note in opened.notes:
        tell(note, err=True)
    encoding, ranking = look_up(opened, marked, LinkReading(asked.direction, asked.pairing, asked.without_first))
    beside = (
        f"{ranking.borrowed} positions in the bundled sentences"
        if ranking.borrowed
        else "other positions in this sentence"
    )
    provenance = {
        "checkpoint": opened.name,
        "weights_hash": opened.weights_hash,
        "dtype": opened.dtype,
        "sentence": asked.sentence,
        "tokens": list(encoding.tokens),
        "direction": asked.direction,
        "pairing": asked.pairing,
        "without_first": asked.without_first,
        "n": 1,
        "places": ranking.places,
        "beside": beside,
    }
    rows = ranking.rows("score" if asked.raw else "difference")
    if form != "table":
        show_rows("heads", provenance, rows, form)
        return
    table = Table(
        "rank", "head", "score", "same distance", "difference", "place",
        title=cell(f"{opened.name}, {asked.direction}"), caption=cell(f"same distance: {beside}"),
    )  # fmt: skip
    for head in map(RankedHead.of, rows[: asked.top]):
        compared = ("–" if value is None else f"{value:.3f}" for value in (head.same_distance, head.difference))
        place_of = f"{head.place_rank:.0f} of {head.places}"
        table.add_row(str(head.rank), head.name, f"{head.score:.3f}", *compared, place_of)
    tell_table(table)


@dataclass(frozen=True, kw_only=True)
class RankedHead(Result):
    """A head in a ranking by attention from one word to another. The baseline is attention at the same distance."""

    rank: int
    name: str
    score: float
    same_distance: float | None
    difference: float | None
    place_rank: float
    places: int
