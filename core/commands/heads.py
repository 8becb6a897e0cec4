"""`python -m core heads CHECKPOINT --sentence S --target WORD --element WORDS`: the heads between two places."""

from dataclasses import dataclass
from typing import Annotated

from rich.table import Table

from .. import capture, models
from ..errors import InputError
from ..frames.records import AnnotatedSentence, Element, place
from ..studies.contract import Flag
from ..studies.frames.distance_null import distance_null
from ..studies.frames.frame_lookup import LinkReading, links_for, picture
from ..studies.options import Checkpoint
from ..studies.records import Result
from .output import Form, cell, show_rows, tell_table
from .study_commands import of_record


@dataclass(frozen=True)
class HeadsOptions:
    """A sentence with its target and elements, and how its heads are ranked."""

    checkpoint: Checkpoint
    sentence: Annotated[str, Flag("the sentence")]
    target: Annotated[str, Flag('the frame-evoking word; "walk#2" is its second occurrence')]
    element: Annotated[list[str], Flag("words of a frame element; give it again for another element")]
    direction: Annotated[str, Flag("element_to_target, target_to_element or later_to_earlier")] = "element_to_target"
    pairing: Annotated[str, Flag("product of word pieces, or the paper's zip")] = "product"
    without_first: Annotated[bool, Flag("leave out the first position", name="--without-first")] = False
    raw: Annotated[bool, Flag("rank by the weight alone", name="--raw")] = False
    revision: Annotated[str | None, Flag("revision of a hub id")] = None
    top: Annotated[int, Flag("heads of a table; the other forms have every head")] = 10

    @property
    def annotated(self) -> AnnotatedSentence:
        """The sentence with its words marked. Raises InputError for words that it lacks."""
        elements = tuple(
            Element(f"element {k}", (place(self.sentence, words, "element"),))
            for k, words in enumerate(self.element, 1)
        )
        return AnnotatedSentence(
            "typed", self.sentence, (place(self.sentence, self.target, "target"),), elements=elements
        )


@of_record(HeadsOptions)
def heads(asked: HeadsOptions, form: Form) -> None:
    """Rank the heads by how much more they attend between a target and a frame element of one sentence (Fig 3) than
    between places at the same distance."""
    marked = asked.annotated
    opened = models.opening.open_checkpoint(asked.checkpoint, revision=asked.revision)
    encoding = opened.encode(asked.sentence)
    ranking = picture(
        capture.running.capture(opened, encoding),
        encoding,
        links_for(encoding, marked),
        LinkReading(asked.direction, asked.pairing, asked.without_first),
        null=lambda: distance_null(opened),
    )
    if not ranking.visible:
        raise InputError(
            "In a decoder a query sees no later key, and here every key would lie after its query: use "
            "--direction later_to_earlier."
        )
    beside = f"{ranking.borrowed} places of the bundled sentences" if ranking.borrowed else "other places here"
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
    title = f"{opened.name}, {asked.direction}"
    _print([RankedHead.of(row) for row in rows[: asked.top]], title, f"same distance: {beside}")


@dataclass(frozen=True, kw_only=True)
class RankedHead(Result):
    """A head of the ranking. same_distance: NaN or None where nothing else lies at that distance; place_rank: the place
    of its link among all that it could have chosen."""

    rank: int
    name: str
    score: float
    same_distance: float | None
    difference: float | None
    place_rank: float
    places: int


def _print(heads: list[RankedHead], title: str, caption: str) -> None:
    table = Table(
        "rank", "head", "score", "same distance", "difference", "place", title=cell(title), caption=cell(caption)
    )
    for head in heads:
        beside = ("–" if value is None else f"{value:.3f}" for value in (head.same_distance, head.difference))
        place_of = f"{head.place_rank:.0f} of {head.places}"
        table.add_row(str(head.rank), head.name, f"{head.score:.3f}", *beside, place_of)
    tell_table(table)
